//! Sorting 32 scores, and the indices of the first of them.

use super::fault::FaultCause;

/// How many scores are sorted at once.
pub(super) const SCORES: usize = 32;

/// Sorts scores, descending, equal ones by index, NaN first; scores and indices in turn, the indices as floats.
///
/// Where fewer than 32 count, the others come last, as minus infinity.
pub(super) fn sort32(out: &mut [f32], scores: &[f32], indices: &[u32], counted: usize) {
    let mut pairs = [(f32::NEG_INFINITY, u32::MAX); SCORES];
    for (pair, found) in
        pairs.iter_mut().zip(scores.iter().copied().zip(indices.iter().copied())).take(counted)
    {
        *pair = found;
    }
    sort(&mut pairs);
    for (out, (score, index)) in out.chunks_exact_mut(2).zip(pairs) {
        out.copy_from_slice(&[score, index as f32]);
    }
}

/// Exchanges neighbours, in turn from the first and from the second on: so many turns as there are pairs sort them all. Unlike the
/// standard library's sort it holds no panic, which the image of the kernels must not have.
fn sort(pairs: &mut [(f32, u32); SCORES]) {
    for turn in 0..SCORES {
        let from = pairs.get_mut(turn % 2..).unwrap_or(&mut []);
        for [first, second] in from.as_chunks_mut::<2>().0 {
            if order(second, first).is_lt() {
                core::mem::swap(first, second);
            }
        }
    }
}

fn order((a, i): &(f32, u32), (b, j): &(f32, u32)) -> core::cmp::Ordering {
    let by_number = a.is_nan().cmp(&b.is_nan()).reverse();
    by_number.then(b.partial_cmp(a).unwrap_or(core::cmp::Ordering::Equal)).then(i.cmp(j))
}

/// The indices of the first pairs.
pub(super) fn topk(out: &mut [i32], pairs: &[f32]) -> Result<(), FaultCause> {
    /// Up to here an `f32` holds every integer.
    const EXACT: f32 = 16_777_216.0;
    for (at, (out, pair)) in (0..).zip(out.iter_mut().zip(pairs.as_chunks::<2>().0)) {
        let [_, index] = *pair;
        let is_index = (0.0..=EXACT).contains(&index);
        if !is_index {
            return Err(FaultCause::NoIndex { at });
        }
        #[expect(clippy::cast_possible_truncation, reason = "it was just seen to fit")]
        {
            *out = index as i32;
        }
    }
    Ok(())
}
