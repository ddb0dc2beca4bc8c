//! `out = a op b` of any element type: what the collectives of a group reduce with.
//!
//! Half precision is computed in `f32` and rounded once; integers wrap. One pass, in ascending order, so that `out` may be `a` or `b`.

use pto_graph::ElementType;
use pto_graph::group::{REDUCE, Reduction, TRANSFER};

use crate::args;
use crate::library::func;
use crate::tile::arithmetic::Number;
use crate::tile::element::{Element, bf16, f16};

const _: () = assert!(func::REDUCE.0 == REDUCE.0 && func::TRANSFER.0 == TRANSFER.0);

/// Combines `n` elements at `a` and `b` to those at `out`, as `how` says: an [`ElementType`], and a [`Reduction`] from bit 8 on.
/// With other codes, which no collective writes, nothing is done.
///
/// # Safety
/// The [argument contract](crate::args), with elements of that type.
#[inline]
pub unsafe fn combine([a, b, out]: [u64; 3], n: u64, how: u64) {
    let [element, reduction, ..] = how.to_le_bytes();
    let (Ok(element), Ok(reduction)) =
        (ElementType::try_from(element), Reduction::try_from(reduction))
    else {
        return;
    };
    // SAFETY: the caller keeps the contract for this type.
    unsafe {
        match element {
            ElementType::F32 => all::<f32>([a, b, out], n, reduction),
            ElementType::F16 => all::<f16>([a, b, out], n, reduction),
            ElementType::BF16 => all::<bf16>([a, b, out], n, reduction),
            ElementType::F64 => all::<f64>([a, b, out], n, reduction),
            ElementType::I8 => all::<i8>([a, b, out], n, reduction),
            ElementType::U8 => all::<u8>([a, b, out], n, reduction),
            ElementType::I16 => all::<i16>([a, b, out], n, reduction),
            ElementType::U16 => all::<u16>([a, b, out], n, reduction),
            ElementType::I32 => all::<i32>([a, b, out], n, reduction),
            ElementType::U32 => all::<u32>([a, b, out], n, reduction),
            ElementType::I64 => all::<i64>([a, b, out], n, reduction),
            _ => all::<u64>([a, b, out], n, reduction),
        }
    }
}

/// # Safety
/// As [`combine`], with elements of this type.
unsafe fn all<T: Element>(at: [u64; 3], n: u64, reduction: Reduction) {
    // SAFETY: the caller keeps the contract.
    unsafe {
        match reduction {
            Reduction::SUM => each::<T>(at, n, Number::add),
            Reduction::PROD => each::<T>(at, n, Number::mul),
            Reduction::MAX => each::<T>(at, n, Number::larger),
            _ => each::<T>(at, n, Number::smaller),
        }
    }
}

/// # Safety
/// As [`all`].
#[inline(always)]
unsafe fn each<T: Element>(
    [a, b, out]: [u64; 3],
    n: u64,
    combine: impl Fn(T::Wide, T::Wide) -> T::Wide,
) {
    for index in 0..args::size(n) {
        // SAFETY: the caller keeps the contract: element `index` is there.
        let a: T = unsafe { args::load(a, index) };
        // SAFETY: the same.
        let b: T = unsafe { args::load(b, index) };
        let combined = T::narrow(combine(a.widen(), b.widen()));
        // SAFETY: the same; it is ours to write.
        unsafe { args::store(out, index, combined) };
    }
}
