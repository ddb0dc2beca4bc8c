//! Pooling. A unit is a channel of an image.

use super::memory::{In, Out};
use crate::element::{Element, with_type};
use crate::infer::{Geometry, strides_of};
use crate::operator::Pooling;

/// Runs units; the second output, if there is one, gets the positions of the largest elements.
pub(crate) fn run(
    pooling: &Pooling,
    geometry: &Geometry,
    x: &In<'_>,
    outputs: &mut [Out<'_>],
    units: (usize, usize),
) {
    with_type!(x.ty.dtype, T => typed::<T>(pooling, geometry, x, outputs, units));
}

/// The taps of a dimension that meet the input, for each output index: (first place, how many); and how many there are with the padding.
struct Taps {
    first: i64,
    from: usize,
    to: usize,
    padded: usize,
}

fn taps(geometry: &Geometry, dim: usize, index: usize) -> Taps {
    let (stride, dilation) = (geometry.strides[dim], geometry.dilations[dim]);
    let first = (index * stride).cast_signed() as i64 - geometry.begins[dim];
    let extent = geometry.input[dim].cast_signed() as i64;
    let place = |tap: usize| first + (tap * dilation).cast_signed() as i64;
    let kernel = geometry.kernel[dim];
    let from = (0..kernel).find(|tap| place(*tap) >= 0).unwrap_or(kernel);
    let to = (from..kernel).find(|tap| place(*tap) >= extent).unwrap_or(kernel);
    let end = extent + geometry.ends[dim];
    let padded = (0..kernel).filter(|tap| place(*tap) < end).count();
    Taps { first, from, to, padded }
}

/// One or two spatial dimensions, without positions, in whole rows. Numbers that `f64` holds exactly.
fn rows<T: Element>(
    pooling: &Pooling,
    geometry: &Geometry,
    values: &[T],
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    let rank = geometry.input.len();
    let (height, width) =
        if rank == 1 { (1, geometry.input[0]) } else { (geometry.input[0], geometry.input[1]) };
    let (out_height, out_width) = if rank == 1 {
        (1, geometry.spatial[0])
    } else {
        (geometry.spatial[0], geometry.spatial[1])
    };
    let of_lines: Vec<Taps> = match rank {
        1 => vec![Taps { first: 0, from: 0, to: 1, padded: 1 }],
        _ => (0..out_height).map(|line| taps(geometry, 0, line)).collect(),
    };
    let (line_step, last) = if rank == 1 { (1, 0) } else { (geometry.dilations[0], 1) };
    let of_columns: Vec<Taps> = (0..out_width).map(|column| taps(geometry, last, column)).collect();
    // For each tap the columns whose window meets the input there, and where the first one meets it.
    let columns: Vec<(usize, usize, usize)> = (0..geometry.kernel[last])
        .map(|tap| {
            let meets = |taps: &Taps| (taps.from..taps.to).contains(&tap);
            let from = of_columns.iter().position(meets).unwrap_or(out_width);
            let to = of_columns.iter().rposition(meets).map_or(from, |column| column + 1);
            let place = of_columns.get(from).map_or(0, |taps| {
                taps.first + (tap * geometry.dilations[last]).cast_signed() as i64
            });
            (from, to, usize::try_from(place).unwrap_or(0))
        })
        .collect();
    let stride = geometry.strides[last];
    let start = if matches!(pooling, Pooling::Max { .. }) { f64::NEG_INFINITY } else { 0.0 };
    let mut sums = vec![start; out_width];
    for line in units.0 * out_height..(units.0 + units.1) * out_height {
        let (unit, line_taps) = (line / out_height, &of_lines[line % out_height]);
        sums.fill(start);
        for tap in line_taps.from..line_taps.to {
            let place = line_taps.first + (tap * line_step).cast_signed() as i64;
            let row = (unit * height + usize::try_from(place).unwrap_or(0)) * width;
            let row = &values[row..row + width];
            for (from, to, first) in &columns {
                let pairs = sums[*from..*to]
                    .iter_mut()
                    .zip(row[*first..].iter().step_by(stride).map(|x| x.to_f64()));
                match pooling {
                    Pooling::Max { .. } => pairs
                        .for_each(|(sum, x)| *sum = if x > *sum || x.is_nan() { x } else { *sum }),
                    Pooling::Average { .. } => pairs.for_each(|(sum, x)| *sum += x),
                    Pooling::Lp { p: 1 } => pairs.for_each(|(sum, x)| *sum += x.abs()),
                    Pooling::Lp { p: 2 } => pairs.for_each(|(sum, x)| *sum += x * x),
                    Pooling::Lp { p } => pairs.for_each(|(sum, x)| *sum += x.abs().powf(*p as f64)),
                }
            }
        }
        let to = output.elements::<T>(line * out_width, out_width);
        for ((to, sum), taps) in to.iter_mut().zip(&sums).zip(&of_columns) {
            *to = T::from_f64(match pooling {
                Pooling::Max { .. } | Pooling::Lp { p: 1 } => *sum,
                Pooling::Average { count_padding: true } => {
                    sum / (line_taps.padded * taps.padded) as f64
                }
                Pooling::Average { .. } => {
                    sum / ((line_taps.to - line_taps.from) * (taps.to - taps.from)) as f64
                }
                Pooling::Lp { p: 2 } => sum.sqrt(),
                Pooling::Lp { p } => sum.powf(1.0 / *p as f64),
            });
        }
    }
}

fn typed<T: Element>(
    pooling: &Pooling,
    geometry: &Geometry,
    x: &In<'_>,
    outputs: &mut [Out<'_>],
    units: (usize, usize),
) {
    let rank = geometry.input.len();
    let plane: usize = geometry.input.iter().product();
    let pixels: usize = geometry.spatial.iter().product();
    let strides = strides_of(&geometry.input);
    let mut column_strides = vec![1_usize; rank];
    for dim in 1..rank {
        column_strides[dim] = column_strides[dim - 1] * geometry.input[dim - 1];
    }
    let values = x.elements::<T>();
    let all: Vec<Vec<Taps>> = (0..rank)
        .map(|dim| (0..geometry.spatial[dim]).map(|index| taps(geometry, dim, index)).collect())
        .collect();
    let is_float = T::DTYPE.is_float();
    let is_exact = !matches!(T::DTYPE, crate::DType::I64 | crate::DType::U64);
    if let ([output], true) = (&mut *outputs, is_exact && (1..=2).contains(&rank)) {
        return rows(pooling, geometry, values, output, units);
    }
    for unit in units.0..units.0 + units.1 {
        let from = &values[unit * plane..(unit + 1) * plane];
        for pixel in 0..pixels {
            let mut rest = pixel;
            let mut of_dims: Vec<&Taps> = Vec::with_capacity(rank);
            for dim in (0..rank).rev() {
                of_dims.push(&all[dim][rest % geometry.spatial[dim]]);
                rest /= geometry.spatial[dim];
            }
            of_dims.reverse();
            let count: usize = of_dims.iter().map(|taps| taps.to - taps.from).product();
            let mut best: Option<(T, usize)> = None;
            let mut sum = 0.0_f64;
            for number in 0..count {
                let (mut rest, mut at) = (number, 0);
                for dim in (0..rank).rev() {
                    let taps = of_dims[dim];
                    let tap = taps.from + rest % (taps.to - taps.from);
                    rest /= taps.to - taps.from;
                    let place = taps.first + (tap * geometry.dilations[dim]).cast_signed() as i64;
                    at += usize::try_from(place).unwrap_or(0) * strides[dim];
                }
                let x = from[at];
                match pooling {
                    Pooling::Max { .. } => {
                        let is_larger = best.is_none_or(|(largest, _)| {
                            if is_float {
                                let (x, largest) = (x.to_f64(), largest.to_f64());
                                x > largest || (x.is_nan() && !largest.is_nan())
                            } else {
                                x.to_i128() > largest.to_i128()
                            }
                        });
                        if is_larger {
                            best = Some((x, at));
                        }
                    }
                    Pooling::Average { .. } => sum += x.to_f64(),
                    Pooling::Lp { p: 1 } => sum += x.to_f64().abs(),
                    Pooling::Lp { p: 2 } => sum += x.to_f64() * x.to_f64(),
                    Pooling::Lp { p } => sum += x.to_f64().abs().powf(*p as f64),
                }
            }
            let place = unit * pixels + pixel;
            let result = match pooling {
                Pooling::Max { column_major } => {
                    if let (Some((_, at)), Some(positions)) = (best, outputs.get_mut(1)) {
                        let index = match column_major {
                            false => at,
                            true => (0..rank)
                                .map(|dim| {
                                    at / strides[dim] % geometry.input[dim] * column_strides[dim]
                                })
                                .sum(),
                        };
                        positions.elements::<i64>(place, 1)[0] =
                            (unit * plane + index).cast_signed() as i64;
                    }
                    best.map_or_else(|| T::from_f64(f64::NEG_INFINITY), |(largest, _)| largest)
                }
                Pooling::Average { count_padding } => {
                    let divisor = if *count_padding {
                        of_dims.iter().map(|taps| taps.padded).product()
                    } else {
                        count
                    };
                    T::from_f64(sum / divisor as f64)
                }
                Pooling::Lp { p: 1 } => T::from_f64(sum),
                Pooling::Lp { p: 2 } => T::from_f64(sum.sqrt()),
                Pooling::Lp { p } => T::from_f64(sum.powf(1.0 / *p as f64)),
            };
            if let Some(output) = outputs.first_mut() {
                output.elements::<T>(place, 1)[0] = result;
            }
        }
    }
}

/// The window that covers all spatial dimensions.
pub(crate) fn whole(shape: &[usize]) -> Geometry {
    let input = shape[2..].to_vec();
    let rank = input.len();
    Geometry {
        spatial: vec![1; rank],
        kernel: input.clone(),
        strides: vec![1; rank],
        dilations: vec![1; rank],
        begins: vec![0; rank],
        ends: vec![0; rank],
        output: crate::TensorType::new(crate::DType::F32, &[]),
        input,
    }
}
