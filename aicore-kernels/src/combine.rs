//! `out = a op b` of any element type: what the collectives of a group reduce with.
//!
//! Half precision is computed in `f32` and rounded once; integers wrap. One pass, in ascending order, so that `out` may be `a` or `b`.

use pto_abi::block::BlockContext;
use pto_graph::ElementType;
use pto_graph::group::Reduction;

use crate::args;
use crate::tile::arithmetic::Number;
use crate::tile::element::{Element, bf16, f16};

/// Calls [`all`] with the type that an element code stands for.
macro_rules! by_type {
    ($element:ident, $at:expr, $n:ident, $reduction:ident, { $($code:ident => $type:ty),+ $(,)? }) => {
        match $element {
            $(ElementType::$code => {
                // SAFETY: the caller keeps the contract for this type.
                unsafe { all::<$type>($at, $n, $reduction) }
            })+
            _ => {}
        }
    };
}

/// Combines the elements at `a` and `b` to those at `out`, as `how` says: an [`ElementType`], a [`Reduction`] from bit 8 on, and how many
/// elements there are from bit 16 on. Each block of the task does `n` of them; the last one has what is left.
/// With other codes, which no collective writes, nothing is done.
///
/// # Safety
/// The [argument contract](crate::args), with elements of that type.
#[inline]
pub unsafe fn combine(operands: [u64; 3], n: u64, how: u64, context: u64) {
    let [element, reduction, ..] = how.to_le_bytes();
    let (Ok(element), Ok(reduction)) =
        (ElementType::try_from(element), Reduction::try_from(reduction))
    else {
        return;
    };
    let (all, first) = (how >> 16, n * u64::from(BlockContext::of(context).block));
    let n = n.min(all.saturating_sub(first));
    let [a, b, out] = operands.map(|operand| operand + first * element.bytes());
    by_type!(element, [a, b, out], n, reduction, {
        F32 => f32, F16 => f16, BF16 => bf16, F64 => f64, I8 => i8, U8 => u8, I16 => i16, U16 => u16, I32 => i32,
        U32 => u32, I64 => i64, U64 => u64,
    });
}

/// One loop for each type, with the operation chosen inside: the code of all kernels is loaded to each core.
///
/// # Safety
/// As [`combine`], with elements of this type.
unsafe fn all<T: Element>([a, b, out]: [u64; 3], n: u64, reduction: Reduction) {
    for index in 0..args::size(n) {
        // SAFETY: the caller keeps the contract: element `index` is there.
        let a: T = unsafe { args::load(a, index) };
        // SAFETY: the same.
        let b: T = unsafe { args::load(b, index) };
        let (a, b) = (a.widen(), b.widen());
        let combined = match reduction {
            Reduction::SUM => a.add(b),
            Reduction::PROD => a.mul(b),
            Reduction::MAX => a.larger(b),
            _ => a.smaller(b),
        };
        // SAFETY: the same; it is ours to write.
        unsafe { args::store(out, index, T::narrow(combined)) };
    }
}
