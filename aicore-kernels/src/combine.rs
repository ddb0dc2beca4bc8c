//! `out = b[0] op .. op a op .. op b[k - 1]` of any element type: what the collectives of a group reduce with.
//!
//! Half precision is computed in `f32` and rounded once in each step; integers wrap. One pass, in ascending order, so that `out` may be `a`.

use pto_abi::block::BlockContext;
use pto_graph::ElementType;
use pto_graph::group::{Reduction, part_stride};
use pto_graph::signature::Elements;

use crate::args;
use crate::tile::arithmetic::Number;
use crate::tile::element::{Element, bf16, f16};

/// Calls [`all`] with the type of an element code.
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
struct PartLayout {
    count: u64,
    /// How many of them come before `a`.
    before: u64,
    /// Elements from one to the next.
    stride: u64,
}

impl PartLayout {
    const fn of(how: u64, parts: u64) -> Self {
        let (count, before) = (parts & 0xFFFF_FFFF, parts >> 32);
        Self { count, before, stride: part_stride(how >> 16) }
    }
}

/// The elements of an operand that so many blocks of `n` elements touch.
#[must_use]
pub fn elements(n: u64, how: u64, blocks: u64) -> Elements {
    let element = bytes_of_element(how);
    let bytes = n.saturating_mul(blocks).min(how >> 16).saturating_mul(element);
    Elements { bytes, element }
}

/// The same, of all parts: from the first element of the first one to the last that is touched of the last one.
#[must_use]
pub fn elements_of_parts(n: u64, how: u64, parts: u64, blocks: u64) -> Elements {
    let Elements { bytes, element } = elements(n, how, blocks);
    let PartLayout { count, before, stride } = PartLayout::of(how, parts);
    match count.max(before) {
        0 => Elements { bytes: 0, element },
        _ if bytes == 0 => Elements { bytes, element },
        all => {
            let before = (all - 1).saturating_mul(stride).saturating_mul(element);
            Elements { bytes: before.saturating_add(bytes), element }
        }
    }
}

/// 0: there is no such type.
fn bytes_of_element(how: u64) -> u64 {
    let [element, ..] = how.to_le_bytes();
    ElementType::try_from(element).map_or(0, ElementType::bytes)
}

/// Combines the elements at `a` and those of the parts at `b` to those at `out`, as `how` says: an [`ElementType`], a [`Reduction`] from bit 8 on,
/// and how many elements there are from bit 16 on. `parts` are the number of parts, each [`part_stride`] after the one before, and from bit
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
    let all = how >> 16;
    let first = n.saturating_mul(BlockContext::of(context).block.into()).min(all);
    let n = n.min(all - first);
    let [a, b, out] = operands.map(|operand| operand.wrapping_add(first * element.bytes()));
    let parts = PartLayout::of(how, parts);
    by_type!(element, [a, b, out], n, parts, reduction, {
        F32 => f32, F16 => f16, BF16 => bf16, F64 => f64, I8 => i8, U8 => u8, I16 => i16, U16 => u16, I32 => i32,
        U32 => u32, I64 => i64, U64 => u64,
    });
}

/// Elements that are reduced together: with the operation chosen outside of them, they become vector instructions. One in images without an operating
/// system, whose kernels are loaded to each core: groups of 16 made their code 4 % larger.
const GROUP: usize = if cfg!(target_os = "none") { 1 } else { 16 };

/// One pass for each type, with the operation chosen inside: the code of all kernels is loaded to each core.
///
/// # Safety
/// As [`combine`], with elements of this type.
unsafe fn all<T: Element>(operands: [u64; 3], n: u64, parts: PartLayout, reduction: Reduction) {
    let n = args::size(n);
    let whole = n - n % GROUP;
    for index in (0..whole).step_by(GROUP) {
        // SAFETY: the caller keeps the contract, and the group is one of whole ones.
        unsafe { group::<T, GROUP>(operands, index, parts, reduction) }
    }
    for index in whole..n {
        // SAFETY: the caller keeps the contract.
        unsafe { group::<T, 1>(operands, index, parts, reduction) }
    }
}

/// The elements from `index` on. All of them are loaded before one is stored.
///
/// # Safety
/// As [`all`], with this many elements from `index` on.
#[inline(always)]
unsafe fn group<T: Element, const N: usize>(
    [a, b, out]: [u64; 3],
    index: usize,
    parts: PartLayout,
    reduction: Reduction,
) {
    let part = |of: u64| {
        let at = args::size(of * parts.stride) + index;
        // SAFETY: the caller keeps the contract: these elements of this part are there.
        unsafe { load::<T, N>(b, at) }
    };
    // SAFETY: the caller keeps the contract: these elements of the tensor are there.
    let own: [T; N] = unsafe { load(a, index) };
    let mut sum = if parts.before > 0 { part(0) } else { own };
    for of in 1..parts.before {
        step(&mut sum, &part(of), reduction);
    }
    if parts.before > 0 {
        step(&mut sum, &own, reduction);
    }
    for of in parts.before..parts.count {
        step(&mut sum, &part(of), reduction);
    }
    for (lane, value) in sum.into_iter().enumerate() {
        // SAFETY: the caller keeps the contract: they are ours to write.
        unsafe { args::store(out, index + lane, value) };
    }
}

/// # Safety
/// As [`args::load`], for this many elements.
#[inline(always)]
unsafe fn load<T: Element, const N: usize>(table: u64, index: usize) -> [T; N] {
    let mut group = [T::default(); N];
    for (lane, value) in group.iter_mut().enumerate() {
        // SAFETY: the caller promises that the element is there.
        *value = unsafe { args::load(table, index + lane) };
    }
    group
}

/// `left = left op right`, element by element.
#[inline(always)]
fn step<T: Element, const N: usize>(left: &mut [T; N], right: &[T; N], reduction: Reduction) {
    match reduction {
        Reduction::SUM => each(left, right, Number::add),
        Reduction::PROD => each(left, right, Number::mul),
        Reduction::MAX => each(left, right, Number::larger),
        _ => each(left, right, Number::smaller),
    }
}

#[inline(always)]
fn each<T: Element, const N: usize>(
    left: &mut [T; N],
    right: &[T; N],
    op: impl Fn(T::Wide, T::Wide) -> T::Wide,
) {
    for (left, right) in left.iter_mut().zip(right) {
        *left = T::narrow(op(left.widen(), right.widen()));
    }
}
