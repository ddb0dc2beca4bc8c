//! Reductions over any axes. A unit of work is an element of the output.
//!
//! Floats are reduced in `f64` and rounded once; integers in 128 bits, of which the type keeps the lower ones.

use pto_aicore_kernels::tile::math;

use super::memory::{In, Out};
use crate::element::{Element, with_type};
use crate::infer::strides_of;
use crate::operator::Reduction;

/// Outputs that are reduced at the same time, where the innermost dimension stays.
const BLOCK: usize = 256;

/// Extents and distances of dimensions, joined where they can be.
type Dims = Vec<(usize, usize)>;

fn dims(shape: &[usize], wanted: impl Fn(usize) -> bool) -> Dims {
    let strides = strides_of(shape);
    let mut dims: Dims = Vec::new();
    for (at, extent) in shape.iter().enumerate().filter(|(at, _)| wanted(*at)) {
        match dims.last_mut() {
            _ if *extent == 1 => {}
            Some((outer, stride)) if *stride == strides[at] * extent => {
                *outer *= extent;
                *stride = strides[at];
            }
            _ => dims.push((*extent, strides[at])),
        }
    }
    dims
}

fn offset(dims: &[(usize, usize)], mut index: usize) -> usize {
    let mut at = 0;
    for (extent, stride) in dims.iter().rev() {
        at += index % extent * stride;
        index /= extent;
    }
    at
}

/// The elements that become one: runs of (first, distance, count), relative to the position of the output element.
fn runs(reduced: &Dims, mut each: impl FnMut(usize, usize, usize)) {
    match reduced.split_last() {
        None => each(0, 1, 1),
        Some(((count, stride), outer)) => {
            let rows: usize = outer.iter().map(|(extent, _)| extent).product();
            (0..rows).for_each(|row| each(offset(outer, row), *stride, *count));
        }
    }
}

/// Reduces elements `start .. start + count` of the output.
pub(crate) fn run(
    reduction: Reduction,
    axes: &[usize],
    input: &In<'_>,
    output: &mut Out<'_>,
    range: (usize, usize),
) {
    with_type!(input.ty.dtype, T => {
        let is_logic = matches!(reduction, Reduction::All | Reduction::Any);
        if T::DTYPE.is_float() && !is_logic {
            floats::<T>(reduction, axes, input, output, range);
        } else {
            integers::<T>(reduction, axes, input, output, range);
        }
    });
}

/// The reduction of no elements.
fn empty(reduction: Reduction) -> f64 {
    match reduction {
        Reduction::Max => f64::NEG_INFINITY,
        Reduction::Min => f64::INFINITY,
        Reduction::Prod => 1.0,
        _ => 0.0,
    }
}

fn floats<T: Element>(
    reduction: Reduction,
    axes: &[usize],
    input: &In<'_>,
    output: &mut Out<'_>,
    (start, count): (usize, usize),
) {
    let shape = &input.ty.shape;
    let (kept, reduced) =
        (dims(shape, |at| !axes.contains(&at)), dims(shape, |at| axes.contains(&at)));
    let size: usize = axes.iter().map(|axis| shape[*axis]).product();
    let values = input.elements::<T>();
    let to = output.elements::<T>(start, count);
    let mut sums = vec![0.0_f64; BLOCK];
    let mut maxima = vec![0.0_f64; BLOCK];
    let inner = match kept.last() {
        Some((extent, 1)) => *extent,
        _ => 1,
    };
    let mut done = 0;
    while done < count {
        let place = start + done;
        let length = (inner - place % inner).min(count - done).min(BLOCK);
        let first = offset(&kept, place);
        let (sums, maxima) = (&mut sums[..length], &mut maxima[..length]);
        if size == 0 {
            sums.fill(empty(reduction));
        } else if reduction == Reduction::LogSumExp {
            fold(values, first, &reduced, Reduction::Max, maxima);
            // Of an infinite maximum: infinity is the sum, minus infinity is that of nothing.
            let shifts: Vec<f64> =
                maxima.iter().map(|x| if x.is_finite() { *x } else { 0.0 }).collect();
            sums.fill(0.0);
            runs(&reduced, |at, stride, count| {
                for step in 0..count {
                    let from = first + at + step * stride;
                    for ((sum, shift), x) in sums.iter_mut().zip(&shifts).zip(&values[from..]) {
                        *sum += math::exp(x.to_f64() - shift);
                    }
                }
            });
            sums.iter_mut().zip(&shifts).for_each(|(sum, shift)| *sum = sum.ln() + shift);
        } else {
            fold(values, first, &reduced, reduction, sums);
        }
        #[expect(clippy::cast_precision_loss, reason = "a number of elements")]
        for (to, sum) in to[done..].iter_mut().zip(sums.iter()) {
            *to = T::from_f64(match reduction {
                Reduction::Mean => sum / size as f64,
                Reduction::L2 => sum.sqrt(),
                Reduction::LogSum => sum.ln(),
                Reduction::LogSumExp if size == 0 => f64::NEG_INFINITY,
                _ => *sum,
            });
        }
        done += length;
    }
}

/// Reduces what stands at `first` and behind it, one output each.
fn fold<T: Element>(
    values: &[T],
    first: usize,
    reduced: &Dims,
    reduction: Reduction,
    to: &mut [f64],
) {
    to.fill(empty(reduction));
    macro_rules! folded {
        (|$sum:ident, $x:ident| $next:expr) => {
            runs(reduced, |at, stride, count| {
                if let ([to], 1) = (&mut *to, stride) {
                    // Eight sums, because one waits for itself.
                    let mut sums = [empty(reduction); 8];
                    let values = &values[first + at..first + at + count];
                    let chunks = values.chunks_exact(8);
                    let rest = chunks.remainder();
                    for chunk in chunks {
                        for ($sum, x) in sums.iter_mut().zip(chunk) {
                            let $x = x.to_f64();
                            *$sum = {
                                let $sum = *$sum;
                                $next
                            };
                        }
                    }
                    for ($sum, x) in sums.iter_mut().zip(rest) {
                        let $x = x.to_f64();
                        *$sum = {
                            let $sum = *$sum;
                            $next
                        };
                    }
                    for x in sums {
                        *to = combine(reduction, *to, x);
                    }
                    return;
                }
                for step in 0..count {
                    let from = first + at + step * stride;
                    for (to, x) in to.iter_mut().zip(&values[from..]) {
                        let ($sum, $x) = (*to, x.to_f64());
                        *to = $next;
                    }
                }
            })
        };
    }
    match reduction {
        Reduction::Max => folded!(|sum, x| if x > sum || x.is_nan() { x } else { sum }),
        Reduction::Min => folded!(|sum, x| if x < sum || x.is_nan() { x } else { sum }),
        Reduction::Prod => folded!(|sum, x| sum * x),
        Reduction::L1 => folded!(|sum, x| sum + x.abs()),
        Reduction::L2 | Reduction::SumSquare => folded!(|sum, x| sum + x * x),
        _ => folded!(|sum, x| sum + x),
    }
}

fn combine(reduction: Reduction, a: f64, b: f64) -> f64 {
    match reduction {
        Reduction::Max => {
            if b > a || b.is_nan() {
                b
            } else {
                a
            }
        }
        Reduction::Min => {
            if b < a || b.is_nan() {
                b
            } else {
                a
            }
        }
        Reduction::Prod => a * b,
        _ => a + b,
    }
}

/// Integers and `bool`; also `All` and `Any` of floats.
fn integers<T: Element>(
    reduction: Reduction,
    axes: &[usize],
    input: &In<'_>,
    output: &mut Out<'_>,
    (start, count): (usize, usize),
) {
    let shape = &input.ty.shape;
    let (kept, reduced) =
        (dims(shape, |at| !axes.contains(&at)), dims(shape, |at| axes.contains(&at)));
    let size: usize = axes.iter().map(|axis| shape[*axis]).product();
    let values = input.elements::<T>();
    let limits = (T::from_f64(f64::NEG_INFINITY).to_i128(), T::from_f64(f64::INFINITY).to_i128());
    for done in 0..count {
        let first = offset(&kept, start + done);
        let mut sum: i128 = match reduction {
            Reduction::Max => {
                if T::DTYPE == crate::DType::Bool {
                    0
                } else {
                    limits.0
                }
            }
            Reduction::Min => {
                if T::DTYPE == crate::DType::Bool {
                    1
                } else {
                    limits.1
                }
            }
            Reduction::Prod | Reduction::All => 1,
            _ => 0,
        };
        if size > 0 {
            runs(&reduced, |at, stride, count| {
                for step in 0..count {
                    let element = values[first + at + step * stride];
                    let x = element.to_i128();
                    sum = match reduction {
                        Reduction::Max => sum.max(x),
                        Reduction::Min => sum.min(x),
                        Reduction::Prod => sum.wrapping_mul(x),
                        Reduction::L1 => sum.wrapping_add(x.abs()),
                        Reduction::L2 | Reduction::SumSquare => sum.wrapping_add(x.wrapping_mul(x)),
                        Reduction::All => sum & i128::from(element.to_f64() != 0.0),
                        Reduction::Any => sum | i128::from(element.to_f64() != 0.0),
                        _ => sum.wrapping_add(x),
                    };
                }
            });
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "the root of a sum is rounded towards zero"
        )]
        let result = match reduction {
            Reduction::Mean => sum / i128::try_from(size).unwrap_or(1).max(1),
            Reduction::L2 => (sum as f64).sqrt() as i128,
            _ => sum,
        };
        if matches!(reduction, Reduction::All | Reduction::Any) {
            output.elements::<u8>(start + done, 1)[0] = u8::from(result != 0);
        } else {
            output.elements::<T>(start + done, 1)[0] = T::from_i128(result);
        }
    }
}
