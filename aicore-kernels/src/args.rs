//! From argument words to typed operands: the one module where kernels turn addresses into memory.
//!
//! # The argument contract
//!
//! The caller of a kernel promises, for the arguments in the order that [`crate::LIBRARY`] states:
//!
//! 1. `args` points to that many readable words (the block context may follow; these kernels ignore
//!    it);
//! 2. an address of a vector or matrix is aligned for its element, and every element in its extent
//!    (`n`, or `(rows - 1) * ld + cols`; nothing if a size is zero) is mapped until the kernel
//!    returns: initialised and readable, or writable for an output;
//! 3. meanwhile no other core writes an element that the kernel accesses, nor accesses one that it
//!    writes. Elements between the rows of a strided matrix are not accessed and may belong to
//!    others.
//!
//! Operands of the same call may overlap: the views are slices of [`Cell`]s, so that is never
//! undefined behaviour. What the result is then, each kernel says.

use core::cell::Cell;
use core::ptr;

use crate::view::{Matrix, Vector, extent};

const _: () = assert!(usize::BITS == 64, "argument words hold sizes and addresses");

/// Reads the first `N` argument words.
///
/// # Safety
/// `args` must point to `N` readable words.
#[inline]
#[must_use]
pub unsafe fn words<const N: usize>(args: *const u64) -> [u64; N] {
    // SAFETY: the caller promises `N` readable, hence initialised and aligned, words.
    unsafe { args.cast::<[u64; N]>().read() }
}

/// A size, count or stride word.
#[inline]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits, asserted above")]
pub const fn size(word: u64) -> usize {
    word as usize
}

/// A scalar word: the bits of an `f32` in the low half.
#[inline]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the high half is not part of the scalar")]
pub const fn scalar(word: u64) -> f32 {
    f32::from_bits(word as u32)
}

/// The word for an `f32` scalar: the inverse of [`scalar`].
#[inline]
#[must_use]
pub const fn scalar_word(value: f32) -> u64 {
    value.to_bits() as u64
}

/// Views of `n` elements at each of `addresses`.
///
/// # Safety
/// Points 2 and 3 of the [argument contract](self) hold for each address, as long as `'a`.
#[inline]
#[must_use]
pub unsafe fn vectors<'a, const N: usize>(addresses: [u64; N], n: u64) -> [Vector<'a>; N] {
    addresses.map(|address| {
        // SAFETY: the caller promises `n` elements at each address.
        unsafe { cells(address, size(n)) }
    })
}

/// Views of matrices, each given as `[address, rows, cols, ld]`.
///
/// A shape whose extent overflows, and can thus not be in memory, gives an empty matrix.
///
/// # Safety
/// Points 2 and 3 of the [argument contract](self) hold for each address, as long as `'a`.
#[inline]
#[must_use]
pub unsafe fn matrices<'a, const N: usize>(shapes: [[u64; 4]; N]) -> [Matrix<'a>; N] {
    shapes.map(|[address, rows, cols, ld]| {
        let (rows, cols, ld) = (size(rows), size(cols), size(ld));
        // SAFETY: the caller promises the extent at each address.
        let cells = unsafe { cells(address, extent(rows, cols, ld).unwrap_or(0)) };
        Matrix::new(cells, rows, cols, ld).unwrap_or(Matrix::EMPTY)
    })
}

/// Reads element `index` of the table at `table`.
///
/// # Safety
/// That element is mapped, aligned and initialised, and no other core writes it now.
#[inline]
#[must_use]
pub unsafe fn load<T: Copy>(table: u64, index: usize) -> T {
    let element = ptr::with_exposed_provenance::<T>(size(table)).wrapping_add(index);
    // SAFETY: the caller promises that the element is there.
    unsafe { element.read() }
}

/// Writes element `index` of the table at `table`.
///
/// # Safety
/// That element is mapped, aligned and writable, and no other core accesses it now.
#[inline]
pub unsafe fn store<T: Copy>(table: u64, index: usize, value: T) {
    let element = ptr::with_exposed_provenance_mut::<T>(size(table)).wrapping_add(index);
    // SAFETY: the caller promises that the element is there, and that it is ours.
    unsafe { element.write(value) }
}

/// # Safety
/// As [`vectors`], for one address.
#[inline]
unsafe fn cells<'a>(address: u64, n: usize) -> &'a [Cell<f32>] {
    if n == 0 {
        return &[]; // the address of an empty operand may be anything
    }
    let first = ptr::with_exposed_provenance::<Cell<f32>>(size(address));
    // SAFETY: the caller promises `n` aligned, initialised elements. They are read and written
    // through cells only, by this core only, so neither aliasing operands nor the neighbours'
    // writes between the rows break a promise that this reference makes.
    unsafe { core::slice::from_raw_parts(first, n) }
}
