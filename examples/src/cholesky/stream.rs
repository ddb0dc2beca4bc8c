//! The program of `cholesky`. For each column of tiles, from the left:
//!
//! ```text
//! potrf (AIV)   the tile on the diagonal: its factor, in place
//! trsm  (AIV)   each tile below it, with that factor
//! syrk  (AIC)   each tile on the diagonal further right, less the product of the tile of its row with itself
//! gemm  (AIC)   each tile below those, less the product of the tiles of its row and of its column
//! ```
//! No edge is stated: a tile is `InOut` of every task that changes it, and `In` of those that use it. The tiles are strided views
//! of one matrix.

use pto_abi::GmAddr;
use pto_aicore_kernels::library;
use pto_graph::{BuildError, ElementType, StreamBuilder};

use crate::args::{Size, tiles};
use crate::streaming::{LINE, dense, floats, part, submit, tile};

crate::orch_args! {
    /// The words of `cholesky`.
    pub struct Args {
        /// `f32 [n, n]`: A, of which the lower triangle is read; then L in its place.
        matrix: GmAddr,
        /// `u32 [column of tiles, LINE]`: what each `potrf` reports, in the first element of a line.
        status: GmAddr,
        /// Rows of the matrix.
        n: Size,
        /// Rows of a tile.
        tile: Size,
    }
}

/// Submits the tasks.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`StreamBuilder`].
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(stream.orch_args())?;
    let (n, size) = (args.n.get(), args.tile.non_zero());
    let matrix = floats(args.matrix, &[n, n])?;
    let status = dense(args.status, ElementType::U32, &[n.div_ceil(size.get()), LINE])?;
    let below = |start: u64| tiles(n, size).skip_while(move |(row, _)| *row < start);
    for (number, column) in (0_u64..).zip(tiles(n, size)) {
        let (first, width) = column;
        let diagonal = tile(matrix, column, column)?;
        let status = part(part(status, 0, (number, 1))?, 1, (0, 1))?;
        let potrf = library::cholesky_potrf(&diagonal, &status, width, n, first);
        submit(stream, &potrf.task())?;
        for row in below(first + width) {
            let solved = tile(matrix, row, column)?;
            let trsm = library::cholesky_trsm(&diagonal, &solved, row.1, width, n, n);
            submit(stream, &trsm.task())?;
        }
        for row in below(first + width) {
            let left = tile(matrix, row, column)?;
            for right in below(first + width).take_while(|right| right.0 < row.0) {
                let (other, changed) = (tile(matrix, right, column)?, tile(matrix, row, right)?);
                let (rows, cols) = (row.1, right.1);
                let gemm =
                    library::cholesky_gemm(&left, &other, &changed, rows, cols, width, n, n, n);
                submit(stream, &gemm.task())?;
            }
            let changed = tile(matrix, row, row)?;
            let syrk = library::cholesky_syrk(&left, &changed, row.1, width, n, n);
            submit(stream, &syrk.task())?;
        }
    }
    Ok(())
}

/// Tasks for a matrix of so many columns of tiles.
#[must_use]
pub const fn tasks(columns: u64) -> u64 {
    // One potrf a column, one trsm and one syrk for each pair of columns, one gemm for each triple.
    let pairs = columns * columns.saturating_sub(1) / 2;
    columns + 2 * pairs + pairs * columns.saturating_sub(2) / 3
}
