//! `attention_update`: merges one block into the running softmax (the "online softmax" of Milakov
//! and Gimelshein, as in `FlashAttention`).

use bitflags::bitflags;

use crate::attention::exp_below;
use crate::lanes;
use crate::view::{Matrix, Vector};

bitflags! {
    /// The position of this block in the sequence of blocks. Unknown bits are ignored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UpdateFlags: u64 {
        /// The first block: the accumulators are initialised from it and not read.
        const FIRST = 1 << 0;
        /// The last block: `out` is written.
        const LAST = 1 << 1;
    }
}

/// The maximum, the sum and the output row of a block, or of all blocks so far, for each row.
#[derive(Clone, Copy, Debug)]
pub struct Partial<'a> {
    /// The maxima of the scores, one a row.
    pub m: Vector<'a>,
    /// The sums of `e^(score - m)`, one a row.
    pub l: Vector<'a>,
    /// `p @ v`, rows by `head_dim`.
    pub o: Matrix<'a>,
}

/// Rows of `out` that a call with these flags writes, of `rows`.
#[must_use]
#[inline]
pub const fn written(rows: u64, flags: u64) -> u64 {
    if flags & UpdateFlags::LAST.bits() == 0 { 0 } else { rows }
}

/// Merges a block into the accumulators: the maxima, the sums and the output of each, as in [`Partial`].
///
/// `flags` are [`UpdateFlags`]. `out` may be that of the accumulators if their strides are equal; with any other
/// overlap the result is unspecified. It has [`written`] rows.
#[inline]
pub fn update<'a>(
    (m, l, o): (Vector<'a>, Vector<'a>, Matrix<'a>),
    (m_acc, l_acc, o_acc): (Vector<'a>, Vector<'a>, Matrix<'a>),
    out: Matrix<'a>,
    flags: u64,
) {
    let acc = Partial { m: m_acc, l: l_acc, o: o_acc };
    merge(Partial { m, l, o }, acc, UpdateFlags::from_bits_retain(flags));
    normalise(acc, out);
}

/// Merges `block` into `acc`, or copies it there if it is the first.
pub fn merge(block: Partial, acc: Partial, flags: UpdateFlags) {
    let rows = block.o.iter_rows().zip(acc.o.iter_rows());
    let block_ml = block.m.iter().zip(block.l);
    let acc_ml = acc.m.iter().zip(acc.l);
    for ((block_o, acc_o), ((m, l), (m_acc, l_acc))) in rows.zip(block_ml.zip(acc_ml)) {
        if flags.contains(UpdateFlags::FIRST) {
            m_acc.set(m.get());
            l_acc.set(l.get());
            lanes::map(block_o, acc_o, |o| o);
            continue;
        }
        let max = lanes::max(m_acc.get(), m.get());
        let keep = exp_below(m_acc.get(), max);
        let take = exp_below(m.get(), max);
        m_acc.set(max);
        l_acc.set(keep * l_acc.get() + take * l.get());
        lanes::zip_map(acc_o, block_o, acc_o, |acc, new| keep * acc + take * new);
    }
}

/// `out = acc.o / acc.l`, for as many rows as `out` has; 0 where the sum is 0 (fully masked).
pub fn normalise(acc: Partial, out: Matrix) {
    for ((l, o), out) in acc.l.iter().zip(acc.o.iter_rows()).zip(out.iter_rows()) {
        let l = l.get();
        let divisor = if l == 0.0 { 1.0 } else { l };
        lanes::map(o, out, |o| o / divisor);
    }
}
