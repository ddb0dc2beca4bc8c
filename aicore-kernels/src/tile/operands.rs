//! What a matrix product reads and writes, whatever instructions it is made of.

use super::arithmetic::{Number, Sum};
use super::element::Element;
use super::elementwise::Grid;
use super::op::TileType;
use super::reduce::{summand, total};

/// Rows and columns of the largest block on any machine: a host says how much memory a kernel takes on a device.
pub(super) const LARGEST: [usize; 2] = [8, 16];

/// Working storage of a product in 64-bit words: the strips of the left operand, and one panel of the right one.
pub(super) const fn work_words(a: TileType) -> usize {
    let depth = a.cols as usize;
    depth * (a.rows as usize).next_multiple_of(LARGEST[0]) + depth * LARGEST[1]
}

/// What a product reads and writes; the grids say how much of each tile counts.
pub(super) struct Operands<'a, T, S> {
    pub(super) out: &'a mut [S],
    pub(super) a: (&'a [T], Grid),
    pub(super) b: (&'a [T], Grid),
    pub(super) acc: Option<&'a [S]>,
    pub(super) out_pitch: usize,
    pub(super) work: &'a mut [u64],
}

/// What elements of `S` are added in.
pub(super) type SumOf<S> = <<S as Element>::Wide as Number>::Sum;

/// Writes a row of a block of sums, rounded.
#[inline(always)]
pub(super) fn finish<S: Element, const C: usize>(
    out: &mut [S],
    acc: Option<&[S]>,
    at: core::ops::Range<usize>,
    sums: &[SumOf<S>; C],
) {
    let acc = acc.and_then(|acc| acc.get(at.clone()));
    let Some(out) = out.get_mut(at) else { return };
    // Two loops, so that each becomes vector instructions.
    match acc {
        None => out.iter_mut().zip(sums).for_each(|(out, sum)| *out = total(*sum)),
        Some(acc) => {
            for (out, (sum, acc)) in out.iter_mut().zip(sums.iter().zip(acc)) {
                *out = total(summand::<S, S>(*acc).plus(*sum));
            }
        }
    }
}
