//! Our kernels, and those of the library, as one position-independent blob for the device `qemu`.
//!
//! A kernel gets its task's words. What the words mean is between the graph and the kernel; `args` turns them into
//! slices of cells, which may overlap.
#![cfg_attr(target_os = "none", no_std, no_main)]

use pto_kernels_blob::abi::block::BlockContext;
use pto_kernels_blob::args;

/// `y = y + a * x`. Words: x, y, n, a.
///
/// # Safety
/// `x` and `y` are addresses of `n` numbers (`f32`), `y` is written.
unsafe extern "C" fn axpy(words: *const u64) {
    // SAFETY: the graph gives these four words.
    let [x, y, n, a] = unsafe { args::words(words) };
    // SAFETY: the graph's addresses are those of `n` numbers.
    let [x, y] = unsafe { args::vectors([x, y], n) };
    let a = args::scalar(a);
    for (x, y) in x.iter().zip(y) {
        y.set(y.get() + a * x.get());
    }
}

/// Constants travel with the code.
static COEFFICIENTS: [f32; 5] = [1.0, -0.5, 0.25, -0.125, 0.0625];

/// `out = 1 - x/2 + x^2/4 - x^3/8 + x^4/16`. Words: x, out, n.
///
/// # Safety
/// `x` and `out` are addresses of `n` numbers (`f32`), `out` is written.
unsafe extern "C" fn polynomial(words: *const u64) {
    // SAFETY: the graph gives these three words.
    let [x, out, n] = unsafe { args::words(words) };
    // SAFETY: the graph's addresses are those of `n` numbers.
    let [x, out] = unsafe { args::vectors([x, out], n) };
    for (x, out) in x.iter().zip(out) {
        out.set(COEFFICIENTS.iter().rev().fold(0.0, |sum, factor| sum * x.get() + factor));
    }
}

/// Counts in the cell of its part, on a cube core. Words: table; behind them, which part it is.
///
/// # Safety
/// `table` is the address of 3 numbers (`u64`) for each block, of which this part has one.
unsafe extern "C" fn count_cube(words: *const u64) {
    // SAFETY: the graph gives one word, and the runtime the other.
    let [table, context] = unsafe { args::words(words) };
    // SAFETY: the cell of this part.
    unsafe { count(table, context, 0) }
}

/// As [`count_cube`], on a vector core.
///
/// # Safety
/// As [`count_cube`].
unsafe extern "C" fn count_vector(words: *const u64) {
    // SAFETY: the graph gives one word, and the runtime the other.
    let [table, context] = unsafe { args::words(words) };
    // SAFETY: the cell of this part.
    unsafe { count(table, context, 1) }
}

/// # Safety
/// As [`count_cube`].
unsafe fn count(table: u64, context: u64, first: u32) {
    let BlockContext { block, lane, .. } = BlockContext::of(context);
    let cell = args::size(u64::from(3 * block + first + lane));
    // SAFETY: by this function's contract.
    let count: u64 = unsafe { args::load(table, cell) };
    // SAFETY: as above.
    unsafe { args::store(table, cell, count + 1) }
}

pto_kernels_blob::kernel_blob! {
    library;
    64 AIV "axpy" axpy;
    65 AIC "polynomial" polynomial;
    66 AIC "count_cube" count_cube;
    67 AIV "count_vector" count_vector;
}

/// Elsewhere there is nothing to load.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("this is code for a device: build it with --target aarch64-unknown-none");
    std::process::exit(2);
}
