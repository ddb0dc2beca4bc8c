//! `attention_update`: merges one block into the running softmax (the "online softmax" of Milakov
//! and Gimelshein, as in `FlashAttention`).

use bitflags::bitflags;

use crate::args;
use crate::attention::exp_below;
use crate::lanes;
use crate::view::{Matrix, Vector};

bitflags! {
    /// Where in the sequence of blocks this one stands. Unknown bits are ignored.
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

/// Merges a block into the accumulators.
/// Arguments: `m_block`, `l_block`, `o_new`, `m_acc`, `l_acc`, `o_acc`, out, rows, `head_dim`,
/// `o_ld`, `out_ld`, flags.
///
/// `flags` are [`UpdateFlags`]. `out` may be `o_acc` if their strides are equal; with any other
/// overlap the result is unspecified. Without [`UpdateFlags::LAST`] `out` and `out_ld` are ignored.
///
/// # Safety
/// The [argument contract](crate::args): `m_*` and `l_*` have `rows` elements, `o_new` and `o_acc`
/// are rows by `head_dim` with stride `o_ld`, `out` the same with stride `out_ld`; `*_acc` and
/// `out` are written.
pub unsafe extern "C" fn attention_update(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [m, l, o, m_acc, l_acc, o_acc, out, rows, head_dim, o_ld, out_ld, flags] =
        unsafe { args::words(args) };
    let flags = UpdateFlags::from_bits_retain(flags);
    let out_rows = if flags.contains(UpdateFlags::LAST) { rows } else { 0 };
    // SAFETY: the same; vectors of one element a row.
    let [m, l, m_acc, l_acc] = unsafe { args::vectors([m, l, m_acc, l_acc], rows) };
    let shapes = [
        [o, rows, head_dim, o_ld],
        [o_acc, rows, head_dim, o_ld],
        [out, out_rows, head_dim, out_ld],
    ];
    // SAFETY: the same; matrices of rows by head_dim, `out` without rows where it is not used.
    let [o, o_acc, out] = unsafe { args::matrices(shapes) };
    let acc = Partial { m: m_acc, l: l_acc, o: o_acc };
    merge(Partial { m, l, o }, acc, flags);
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
