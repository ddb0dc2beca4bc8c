//! The tile kernels of a Cholesky factorisation `A = L @ L^T`, of the lower triangle, in place.
//!
//! ```text
//! potrf   a -> l            a tile on the diagonal                          AIV
//! trsm    a -> a @ l^-T     a tile below it, with the factor of the first   AIV
//! syrk    c -> c - a @ a^T  a tile on the diagonal further right            AIC
//! gemm    c -> c - a @ b^T  a tile below that one                           AIC
//! ```
//! What is above the diagonal of a tile on the diagonal is neither read nor written.

use crate::attention::products::{tile_row, transposed};
use crate::lanes;
use crate::sqrt::sqrt;
use crate::view::{Matrix, Vector};

/// What `cholesky_potrf` reports of a tile that it could factorise; otherwise the number of a row, counted from 1.
pub const FACTORISED: u32 = 0;

/// `a = l` with `l @ l^T = a`. Returns what the kernel reports.
///
/// That is [`FACTORISED`], or `first_row + i + 1` for the first row `i` whose pivot is not a finite number
/// above zero: the matrix is not positive definite, and the tile is left half done.
#[inline]
pub fn potrf(a: Matrix, first_row: u64) -> u32 {
    let failed = factor(a).map_or(u64::from(FACTORISED), |row| {
        first_row.saturating_add(row as u64).saturating_add(1)
    });
    u32::try_from(failed).unwrap_or(u32::MAX)
}

/// `a = a @ l^-T`; of `l` the lower triangle is read.
#[inline]
pub fn trsm(l: Matrix, a: Matrix) {
    a.iter_rows().for_each(|row| solve_row(l, row));
}

/// `c = c - a @ a^T`, the lower triangle.
pub fn syrk(a: Matrix, c: Matrix) {
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

/// `c = c - a @ b^T`.
#[inline]
pub fn gemm(a: Matrix, b: Matrix, c: Matrix) {
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
