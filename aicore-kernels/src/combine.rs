//! `out = b[0] op .. op a op .. op b[k - 1]` of any element type: what the collectives of a group reduce with.
//!
//! Half precision is computed in `f32` and rounded once in each step; integers wrap. One pass, in ascending order, so that `out` may be `a`.

use pto_abi::block::BlockContext;
use pto_graph::ElementType;
use pto_graph::group::{Reduction, part_stride};

use crate::args;
use crate::tile::arithmetic::Number;
use crate::tile::element::{Element, bf16, f16};

/// Calls [`all`] with the type that an element code stands for.
macro_rules! by_type {
    ($element:ident, $at:expr, $n:ident, $parts:expr, $reduction:ident, { $($code:ident => $type:ty),+ $(,)? }) => {
        match $element {
            $(ElementType::$code => {
                // SAFETY: the caller keeps the contract for this type.
                unsafe { all::<$type>($at, $n, $parts, $reduction) }
            })+
            _ => {}
        }
    };
}

/// The parts at `b`.
#[derive(Clone, Copy)]
struct Parts {
    count: u64,
    /// `a` comes behind so many of them.
    place: u64,
    /// Elements from one to the next.
    stride: u64,
}

/// Combines the elements at `a` and those of the parts at `b` to those at `out`, as `how` says: an [`ElementType`], a [`Reduction`] from bit 8 on,
/// and how many elements there are from bit 16 on. `parts` are the number of parts, each [`part_stride`] behind the one before, and from bit
/// 32 on how many of them come before `a`. Each block of the task does `n` elements; the last one has what is left.
/// With other codes, which no collective writes, nothing is done.
///
/// # Safety
/// The [argument contract](crate::args), with elements of that type.
#[inline]
pub unsafe fn combine(operands: [u64; 3], n: u64, (how, parts): (u64, u64), context: u64) {
    let [element, reduction, ..] = how.to_le_bytes();
    let (Ok(element), Ok(reduction)) =
        (ElementType::try_from(element), Reduction::try_from(reduction))
    else {
        return;
    };
    let (all, first) = (how >> 16, n * u64::from(BlockContext::of(context).block));
    let n = n.min(all.saturating_sub(first));
    let [a, b, out] = operands.map(|operand| operand + first * element.bytes());
    let (count, place) = (parts & 0xFFFF_FFFF, parts >> 32);
    let parts = Parts { count, place, stride: part_stride(all) };
    by_type!(element, [a, b, out], n, parts, reduction, {
        F32 => f32, F16 => f16, BF16 => bf16, F64 => f64, I8 => i8, U8 => u8, I16 => i16, U16 => u16, I32 => i32,
        U32 => u32, I64 => i64, U64 => u64,
    });
}

/// One loop for each type, with the operation chosen inside: the code of all kernels is loaded to each core.
///
/// # Safety
/// As [`combine`], with elements of this type.
unsafe fn all<T: Element>([a, b, out]: [u64; 3], n: u64, parts: Parts, reduction: Reduction) {
    for index in 0..args::size(n) {
        // SAFETY: the caller keeps the contract: element `index` of `a` is there.
        let own: T = unsafe { args::load(a, index) };
        let part = |of: u64| {
            let at = args::size(of * parts.stride) + index;
            // SAFETY: the same, of this part.
            unsafe { args::load::<T>(b, at) }
        };
        let op = |left: T, right: T| {
            let (left, right) = (left.widen(), right.widen());
            T::narrow(match reduction {
                Reduction::SUM => left.add(right),
                Reduction::PROD => left.mul(right),
                Reduction::MAX => left.larger(right),
                _ => left.smaller(right),
            })
        };
        let before = (0..parts.place).map(part).reduce(op);
        let sum = before.map_or(own, |before| op(before, own));
        let sum = (parts.place..parts.count).map(part).fold(sum, op);
        // SAFETY: the same; it is ours to write.
        unsafe { args::store(out, index, sum) };
    }
}
