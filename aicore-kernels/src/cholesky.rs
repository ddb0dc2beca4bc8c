//! The tile kernels of a Cholesky factorisation `A = L @ L^T`, of the lower triangle, in place.
//!
//! ```text
//! potrf   a -> l            a tile on the diagonal                          AIV
//! trsm    a -> a @ l^-T     a tile below it, with the factor of the first   AIV
//! syrk    c -> c - a @ a^T  a tile on the diagonal further right            AIC
//! gemm    c -> c - a @ b^T  a tile below that one                           AIC
//! ```
//! What is above the diagonal of a tile on the diagonal is neither read nor written.

use crate::args;
use crate::attention::products::{tile_row, transposed};
use crate::lanes;
use crate::sqrt::sqrt;
use crate::view::{Matrix, Vector};

/// What `cholesky_potrf` reports of a tile that it could factorise; otherwise the number of a row, counted from 1.
pub const FACTORISED: u32 = 0;

/// `a = l` with `l @ l^T = a`. Arguments: a, status, n, `a_ld`, `first_row`.
///
/// `status` (`u32`) becomes [`FACTORISED`], or `first_row + i + 1` for the first row `i` whose pivot is not a finite number
/// above zero: the matrix is not positive definite, and the tile is left half done.
///
/// # Safety
/// The [argument contract](crate::args): `a` is n by n, read and written; `status` is one `u32`, written.
pub unsafe extern "C" fn potrf(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [a, status, n, a_ld, first_row] = unsafe { args::words(args) };
    // SAFETY: the same; a square matrix.
    let [a] = unsafe { args::matrices([[a, n, n, a_ld]]) };
    let failed = factor(a).map_or(u64::from(FACTORISED), |row| first_row + row as u64 + 1);
    // SAFETY: the same; one element.
    unsafe { args::store(status, 0, u32::try_from(failed).unwrap_or(u32::MAX)) };
}

/// `a = a @ l^-T`. Arguments: l, a, rows, n, `l_ld`, `a_ld`.
///
/// # Safety
/// The [argument contract](crate::args): `l` is n by n, its lower triangle read; `a` is rows by n, read and written.
pub unsafe extern "C" fn trsm(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [l, a, rows, n, l_ld, a_ld] = unsafe { args::words(args) };
    // SAFETY: the same; the shapes are those of a solve from the right.
    let [l, a] = unsafe { args::matrices([[l, n, n, l_ld], [a, rows, n, a_ld]]) };
    a.iter_rows().for_each(|row| solve_row(l, row));
}

/// `c = c - a @ a^T`, the lower triangle. Arguments: a, c, n, k, `a_ld`, `c_ld`.
///
/// # Safety
/// The [argument contract](crate::args): `a` is n by k, `c` is n by n, its lower triangle read and written.
pub unsafe extern "C" fn syrk(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [a, c, n, k, a_ld, c_ld] = unsafe { args::words(args) };
    // SAFETY: the same; the shapes are those of a product with its own transpose.
    let [a, c] = unsafe { args::matrices([[a, n, k, a_ld], [c, n, n, c_ld]]) };
    let mut row = 0;
    while c.rows() - row >= 2 {
        // The columns that both rows have, then the last one of the second row.
        tile_row::<2>(a, a.first_rows(row + 1), c, row, |c, dot| c - dot);
        if let Some(corner) = c.row(row + 1).get(row + 1) {
            corner.set(corner.get() - lanes::dot(a.row(row + 1), a.row(row + 1)));
        }
        row += 2;
    }
    if row < c.rows() {
        tile_row::<1>(a, a, c, row, |c, dot| c - dot);
    }
}

/// `c = c - a @ b^T`. Arguments: a, b, c, m, n, k, `a_ld`, `b_ld`, `c_ld`.
///
/// # Safety
/// The [argument contract](crate::args): `a` is m by k, `b` n by k, `c` m by n, read and written.
pub unsafe extern "C" fn gemm(args: *const u64) {
    // SAFETY: the caller keeps the argument contract.
    let [a, b, c, m, n, k, a_ld, b_ld, c_ld] = unsafe { args::words(args) };
    // SAFETY: the same; the shapes are those of a product with the second operand transposed.
    let [a, b, c] = unsafe { args::matrices([[a, m, k, a_ld], [b, n, k, b_ld], [c, m, n, c_ld]]) };
    transposed(a, b, c, |c, dot| c - dot);
}

/// Factorises in place; the first row whose pivot is not a finite number above zero.
pub fn factor(a: Matrix) -> Option<usize> {
    for j in 0..a.rows() {
        let (done, pivot) = (a.row(j).get(..j)?, a.row(j).get(j)?);
        let rest = pivot.get() - lanes::dot(done, done);
        let is_usable = rest > 0.0 && rest < f32::INFINITY;
        if !is_usable {
            return Some(j);
        }
        let root = sqrt(rest);
        pivot.set(root);
        for i in j + 1..a.rows() {
            let (head, element) = (a.row(i).get(..j)?, a.row(i).get(j)?);
            element.set((element.get() - lanes::dot(head, done)) / root);
        }
    }
    None
}

/// `row = row @ l^-T`, from left to right.
fn solve_row(l: Matrix, row: Vector) {
    for (j, element) in row.iter().enumerate() {
        let (Some(solved), Some(pivot)) = (row.get(..j), l.row(j).get(j)) else { return };
        element.set((element.get() - lanes::dot(solved, l.row(j))) / pivot.get());
    }
}
