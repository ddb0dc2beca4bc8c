//! `Resize`: each dimension has a list of (position, weight) for each of its output indices; an element is the sum over all dimensions. A unit is an element.

use super::memory::{In, Out};
use crate::element::{Element, with_type};
use crate::infer::{ResizeAxis, strides_of};
use crate::operator::{Coordinates, Interpolation, NearestMode, Resize};

/// What an output index takes of a dimension; empty: it is outside, and gets the extrapolation value.
type Taps = Vec<(usize, f64)>;

/// The coordinate in the input.
#[expect(clippy::cast_precision_loss, reason = "extents are small")]
fn coordinate(axis: &ResizeAxis, coordinates: Coordinates, index: usize) -> f64 {
    let (x, input, output, scale) =
        (index as f64, axis.input as f64, axis.output as f64, axis.scale);
    let exact = input * scale;
    match coordinates {
        Coordinates::HalfPixel => (x + 0.5) / scale - 0.5,
        Coordinates::HalfPixelSymmetric => {
            let adjustment = output / exact;
            let center = input / 2.0;
            center * (1.0 - adjustment) + (x + 0.5) / scale - 0.5
        }
        Coordinates::PytorchHalfPixel => {
            if axis.output == 1 {
                0.0
            } else {
                (x + 0.5) / scale - 0.5
            }
        }
        Coordinates::AlignCorners => {
            if axis.output == 1 {
                0.0
            } else {
                x * (input - 1.0) / (output - 1.0)
            }
        }
        Coordinates::Asymmetric => x / scale,
        Coordinates::CropAndResize => {
            let (begin, end) = axis.region;
            if axis.output == 1 {
                0.5 * (begin + end) * (input - 1.0)
            } else {
                begin * (input - 1.0) + x * (end - begin) * (input - 1.0) / (output - 1.0)
            }
        }
    }
}

fn nearest(mode: NearestMode, x: f64) -> f64 {
    match mode {
        NearestMode::RoundPreferFloor => (x - 0.5).ceil(),
        NearestMode::RoundPreferCeil => (x + 0.5).floor(),
        NearestMode::Floor => x.floor(),
        NearestMode::Ceil => x.ceil(),
    }
}

fn cubic(a: f64, distance: f64) -> f64 {
    let x = distance.abs();
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "clamped to the extent"
)]
fn taps(resize: &Resize, axis: &ResizeAxis, index: usize) -> Taps {
    if axis.input == axis.output
        && axis.scale == 1.0
        && resize.coordinates != Coordinates::CropAndResize
    {
        return vec![(index, 1.0)];
    }
    let last = axis.input.saturating_sub(1) as f64;
    let x = coordinate(axis, resize.coordinates, index);
    if resize.coordinates == Coordinates::CropAndResize && (x < 0.0 || x > last) {
        return Vec::new();
    }
    let place = |x: f64| x.clamp(0.0, last) as usize;
    let (radius, filter): (f64, Box<dyn Fn(f64) -> f64>) = match &resize.interpolation {
        Interpolation::Nearest(mode) => return vec![(place(nearest(*mode, x)), 1.0)],
        Interpolation::Linear => (1.0, Box::new(|x: f64| (1.0 - x.abs()).max(0.0))),
        Interpolation::Cubic { a } => {
            let a = *a;
            (2.0, Box::new(move |x| cubic(a, x)))
        }
    };
    // Where the output is smaller, a filter covers more of the input.
    let stretch = if resize.antialias && axis.scale < 1.0 { axis.scale } else { 1.0 };
    let reach = radius / stretch;
    let (from, to) = if stretch < 1.0 {
        ((x - reach).floor() + 1.0, (x + reach).ceil() - 1.0)
    } else {
        (x.floor() - radius + 1.0, x.floor() + radius)
    };
    let mut found: Taps = Vec::new();
    let mut at = from;
    while at <= to {
        let weight = filter((x - at) * stretch);
        let is_inside = (0.0..=last).contains(&at);
        if !resize.exclude_outside || is_inside {
            found.push((place(at), weight));
        }
        at += 1.0;
    }
    let sum: f64 = found.iter().map(|(_, weight)| weight).sum();
    if (resize.exclude_outside || stretch < 1.0) && sum != 0.0 {
        found.iter_mut().for_each(|(_, weight)| *weight /= sum);
    }
    found
}

/// Runs units.
pub(crate) fn run(
    resize: &Resize,
    axes: &[ResizeAxis],
    x: &In<'_>,
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    with_type!(x.ty.dtype, T => typed::<T>(resize, axes, x, output, units));
}

fn typed<T: Element>(
    resize: &Resize,
    axes: &[ResizeAxis],
    x: &In<'_>,
    output: &mut Out<'_>,
    (start, count): (usize, usize),
) {
    let values = x.elements::<T>();
    let strides = strides_of(&x.ty.shape);
    let all: Vec<Vec<Taps>> = axes
        .iter()
        .map(|axis| (0..axis.output).map(|index| taps(resize, axis, index)).collect())
        .collect();
    let is_nearest = matches!(resize.interpolation, Interpolation::Nearest(_));
    let is_float = T::DTYPE.is_float();
    let to = output.elements::<T>(start, count);
    let rank = axes.len();
    // Positions and weights of all but the innermost dimension, which change once a row.
    let inner = axes.last().map_or(1, |axis| axis.output);
    let mut outer: Vec<(usize, f64)> = Vec::new();
    let mut row = usize::MAX;
    for (number, to) in to.iter_mut().enumerate() {
        let place = start + number;
        if place / inner != row {
            row = place / inner;
            outer.clear();
            outer.push((0, 1.0));
            let mut rest = row;
            for dim in (0..rank.saturating_sub(1)).rev() {
                let taps = &all[dim][rest % axes[dim].output];
                rest /= axes[dim].output;
                let before = std::mem::take(&mut outer);
                for (at, weight) in &before {
                    outer.extend(
                        taps.iter()
                            .map(|(index, factor)| (at + index * strides[dim], weight * factor)),
                    );
                }
            }
        }
        let last: &[(usize, f64)] = match all.last() {
            Some(taps) => &taps[place % inner],
            None => &[(0, 1.0)],
        };
        if outer.is_empty() || last.is_empty() {
            *to = T::from_f64(resize.extrapolation);
            continue;
        }
        if is_nearest {
            *to = values[outer[0].0 + last[0].0];
            continue;
        }
        let mut sum = 0.0;
        for (at, weight) in &outer {
            for (index, factor) in last {
                sum += weight * factor * values[at + index].to_f64();
            }
        }
        // Of integers the nearest one.
        *to = T::from_f64(if is_float { sum } else { sum.round_ties_even() });
    }
}
