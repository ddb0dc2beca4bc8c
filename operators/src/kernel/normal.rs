//! Normalisations. Statistics are computed in `f64`: the mean first, then the mean of squared distances from it.

use super::memory::{In, Out};
use super::reduce;
use crate::element::{Element, with_type};
use crate::operator::{Operator, Reduction};
use crate::tensor::TensorType;

/// An input as `f64`; ones or zeros where it is not given.
fn doubles(input: Option<&In<'_>>, count: usize, default: f64) -> Vec<f64> {
    match input {
        Some(input) => {
            with_type!(input.ty.dtype, T => input.elements::<T>().iter().map(|x| x.to_f64()).collect())
        }
        None => vec![default; count],
    }
}

/// Mean and mean of squared distances.
#[expect(clippy::cast_precision_loss, reason = "a number of elements")]
fn statistics<T: Element>(values: &[T]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().map(|x| x.to_f64()).sum::<f64>() / count;
    let variance =
        values.iter().map(|x| (x.to_f64() - mean) * (x.to_f64() - mean)).sum::<f64>() / count;
    (mean, variance)
}

/// By channels: a unit is a channel of an image (of a group, where there are groups).
pub(crate) fn by_channel(
    operator: &Operator,
    inputs: &[Option<&In<'_>>],
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    let Some(x) = inputs.first().copied().flatten() else { return };
    let channels = x.ty.shape[1];
    let inner: usize = x.ty.shape[2..].iter().product();
    let given =
        |at: usize, default: f64| doubles(inputs.get(at).copied().flatten(), channels, default);
    let (scale, bias) = (given(1, 1.0), given(2, 0.0));
    let (per_unit, epsilon) = match operator {
        Operator::GroupNormalization { groups, epsilon } => (channels / groups, *epsilon),
        Operator::InstanceNormalization { epsilon } | Operator::BatchNormalization { epsilon } => {
            (1, *epsilon)
        }
        _ => return,
    };
    let fixed = matches!(operator, Operator::BatchNormalization { .. })
        .then(|| (given(3, 0.0), given(4, 1.0)));
    with_type!(x.ty.dtype, T => {
        let values = x.elements::<T>();
        let size = per_unit * inner;
        for unit in units.0..units.0 + units.1 {
            let from = &values[unit * size..(unit + 1) * size];
            let own = if fixed.is_none() { statistics(from) } else { (0.0, 1.0) };
            let to = output.elements::<T>(unit * size, size);
            for number in 0..per_unit {
                let channel = (unit * per_unit + number) % channels;
                let (mean, variance) = fixed.as_ref().map_or(own, |(mean, variance)| (mean[channel], variance[channel]));
                let factor = scale[channel] / (variance + epsilon).sqrt();
                let addend = bias[channel] - mean * factor;
                let range = number * inner..(number + 1) * inner;
                for (to, x) in to[range.clone()].iter_mut().zip(&from[range]) {
                    *to = T::from_f64(if fixed.is_some() { x.to_f64() * factor + addend } else { (x.to_f64() - mean) * factor + bias[channel] });
                }
            }
        }
    });
}

/// By trailing dimensions: a unit is what is normalised together.
pub(crate) fn by_row(
    operator: &Operator,
    inputs: &[Option<&In<'_>>],
    outputs: &mut [Out<'_>],
    (size, units): (usize, (usize, usize)),
) {
    let Some(x) = inputs.first().copied().flatten() else { return };
    let (epsilon, is_layer) = match operator {
        Operator::LayerNormalization { epsilon, .. } => (*epsilon, true),
        Operator::RmsNormalization { epsilon, .. } => (*epsilon, false),
        _ => return,
    };
    let places = |at: usize| {
        inputs.get(at).copied().flatten().map(|input| {
            (
                doubles(Some(input), 0, 0.0),
                super::elementwise::Places::of(&input.ty.shape, &x.ty.shape),
            )
        })
    };
    let (scale, bias) = (places(1), places(2));
    with_type!(x.ty.dtype, T => {
        let values = x.elements::<T>();
        for unit in units.0..units.0 + units.1 {
            let from = &values[unit * size..(unit + 1) * size];
            let (mean, variance) = if is_layer {
                statistics(from)
            } else {
                #[expect(clippy::cast_precision_loss, reason = "a number of elements")]
                let mean = from.iter().map(|x| x.to_f64() * x.to_f64()).sum::<f64>() / size as f64;
                (0.0, mean)
            };
            let deviation = (variance + epsilon).sqrt();
            let to = outputs[0].elements::<T>(unit * size, size);
            for (number, (to, x)) in to.iter_mut().zip(from).enumerate() {
                let place = unit * size + number;
                let mut y = (x.to_f64() - mean) / deviation;
                if let Some((values, places)) = &scale {
                    y *= values[places.at(place)];
                }
                if let Some((values, places)) = &bias {
                    y += values[places.at(place)];
                }
                *to = T::from_f64(y);
            }
            for (at, statistic) in [(1, mean), (2, 1.0 / deviation)] {
                let Some(output) = outputs.get_mut(at) else { continue };
                with_type!(output.ty.dtype, S => output.elements::<S>(unit, 1)[0] = S::from_f64(statistic));
            }
        }
    });
}

/// `Lrn`: a unit is an image.
#[expect(clippy::cast_precision_loss, reason = "a number of channels")]
pub(crate) fn lrn(
    (size, alpha, beta, bias): (usize, f64, f64, f64),
    x: &In<'_>,
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    let channels = x.ty.shape[1];
    let inner: usize = x.ty.shape[2..].iter().product();
    with_type!(x.ty.dtype, T => {
        let values = x.elements::<T>();
        for image in units.0..units.0 + units.1 {
            let first = image * channels * inner;
            for channel in 0..channels {
                let from = channel.saturating_sub((size - 1) / 2);
                let to = channel.saturating_add(size / 2).min(channels - 1);
                for at in 0..inner {
                    let squares: f64 = (from..=to).map(|other| values[first + other * inner + at].to_f64()).map(|x| x * x).sum();
                    let place = first + channel * inner + at;
                    let y = values[place].to_f64() / (bias + alpha / size as f64 * squares).powf(beta);
                    output.elements::<T>(place, 1)[0] = T::from_f64(y);
                }
            }
        }
    });
}

/// `MeanVarianceNormalization`; one unit.
pub(crate) fn mean_variance(axes: &[usize], x: &In<'_>, output: &mut Out<'_>) {
    let shape = crate::infer::reduced(&x.ty.shape, axes, true);
    let ty = TensorType::new(crate::DType::F64, &shape);
    let places = super::elementwise::Places::of(&shape, &x.ty.shape);
    let source: Vec<f64> = doubles(Some(x), 0, 0.0);
    let mean_of = |values: &[f64]| {
        let mut mean = vec![0.0_f64; ty.elements()];
        let wide = TensorType::new(crate::DType::F64, &x.ty.shape);
        let input = In { ty: &wide, bytes: bytemuck::cast_slice(values) };
        let count = mean.len();
        reduce::run(
            Reduction::Mean,
            axes,
            &input,
            &mut Out::of(&ty, bytemuck::cast_slice_mut(&mut mean)),
            (0, count),
        );
        mean
    };
    let mean = mean_of(&source);
    let distances: Vec<f64> =
        source.iter().enumerate().map(|(at, x)| x - mean[places.at(at)]).collect();
    let variance = mean_of(&distances.iter().map(|x| x * x).collect::<Vec<_>>());
    with_type!(x.ty.dtype, T => {
        for (at, to) in output.all::<T>().iter_mut().enumerate() {
            // As the function of ONNX has it: 1e-9 keeps the quotient finite.
            *to = T::from_f64(distances[at] / (variance[places.at(at)].sqrt() + 1e-9));
        }
    });
}
