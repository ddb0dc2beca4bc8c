//! `cholesky` for the streaming runtime: the tasks of [`super::graph`], with tensors instead of edges.
//!
//! A tile is `InOut` of every task that changes it, and `In` of those that use it; all edges follow from that. The tiles are strided views of one
//! matrix. Factors and solutions are long kernels, each a task of its own. The products of a row are a range. Where they are short, some tiles of a row,
//! side by side, are a chain, which one core runs in one dispatch. The host says how many, because it knows what a product costs.
//!
//! A row of tiles needs what the column before has changed in it, and what the rows above have solved in its own column. The program submits in an order that has both,
//! and in which a column lags `LAG` rows behind the previous column. Of six columns, numbered in that order:
//!
//! ```text
//! row 1   1
//! row 2   2   6
//! row 3   3   7  10
//! row 4   4   8  11  13
//! row 5   5   9  12  14  15
//! column  0   1   2   3   4
//! ```
//! The next factor is in the first rows of the next column. They would be submitted late if all rows of a column came first.

use pto_aicore_kernels::library;
use pto_graph::{BuildError, Chain, ElementType, Link, StreamBuilder, TensorRange, TensorView};

use super::graph::Args;
use crate::streaming::{LINE, WIDTH, dense, extent, floats, moves, submit, submit_range, tile};

/// Fewer products than these are tasks of a range: a chain on tensors costs its builder about as much as six of them, and keeps its kernels on one core.
const SHORT: u64 = 8;

/// Rows by which a column of tiles lags behind the previous column in the order of submission. With fewer, the rows that the last factors wait for come late;
/// with more, those that the next factors wait for.
const LAG: u64 = 3;

/// Submits the tasks.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`StreamBuilder`].
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(stream.orch_args())?;
    let (n, columns) = (args.n.get(), args.columns());
    let matrix = floats(args.matrix, &[n, n])?;
    let status = dense(args.status, ElementType::U32, &[columns, LINE])?;
    let program = Factor { args: &args, matrix, status };
    program.factor(stream, 0)?;
    for wave in 1..(LAG + 1) * columns {
        // The columns that have a row below the diagonal there.
        let first = (wave + 1).saturating_sub(columns).div_ceil(LAG);
        for column in first..=(wave - 1) / (LAG + 1) {
            program.row(stream, column, wave - LAG * column)?;
        }
    }
    Ok(())
}

/// The tensors.
struct Factor<'a> {
    args: &'a Args,
    matrix: TensorView<'static>,
    status: TensorView<'static>,
}

impl Factor<'_> {
    /// The factor of the tile on the diagonal.
    fn factor<G: StreamBuilder>(&self, stream: &mut G, number: u64) -> Result<(), BuildError> {
        let (first, rows) = self.args.tile_at(number);
        let status = tile(self.status, (number, 1), (0, 1))?;
        let diagonal = tile(self.matrix, (first, rows), (first, rows))?;
        let potrf = library::cholesky_potrf(&diagonal, &status, rows, self.args.n.get(), first);
        submit(stream, &potrf.task())
    }

    /// Solves the tile in this column and row of tiles, and changes what is right of it. The first row of a column ends with the next factor.
    fn row<G: StreamBuilder>(
        &self,
        stream: &mut G,
        column: u64,
        row: u64,
    ) -> Result<(), BuildError> {
        let n = self.args.n.get();
        let next = (row == column + 1).then_some(row);
        let (column, row) = (self.args.tile_at(column), self.args.tile_at(row));
        let (diagonal, solved) =
            (tile(self.matrix, column, column)?, tile(self.matrix, row, column)?);
        let trsm = library::cholesky_trsm(&diagonal, &solved, row.1, column.1, n, n);
        submit(stream, &trsm.task())?;
        self.update(stream, column, row)?;
        next.map_or(Ok(()), |number| self.factor(stream, number))
    }

    /// Changes all tiles of a row to the right of a column, from the left: chains of some tiles, the last of which ends on the diagonal, or ranges of tasks
    /// where a chain would be short.
    fn update<G: StreamBuilder>(
        &self,
        stream: &mut G,
        column: (u64, u64),
        row: (u64, u64),
    ) -> Result<(), BuildError> {
        let (matrix, n, size) = (self.matrix, self.args.n.get(), self.args.tile.get());
        let chained = self.args.chained.get();
        let left = tile(matrix, row, column)?;
        let changed = tile(matrix, row, row)?;
        let syrk = library::cholesky_syrk(&left, &changed, row.1, column.1, n, n);
        let mut at = column.0 + column.1;
        while at < row.0 {
            let end = row.0.min(at + chained * size);
            let (right, times) = ((at, size), (end - at) / self.args.tile.non_zero());
            let (other, changed) = (tile(matrix, right, column)?, tile(matrix, row, right)?);
            let gemm =
                library::cholesky_gemm(&left, &other, &changed, row.1, size, column.1, n, n, n);
            let varies = [moves(1, size * n), moves(2, size)];
            if times < SHORT {
                // What is left of the row, one task each, in one submission.
                let left = (row.0 - at) / self.args.tile.non_zero();
                let count = left.min(WIDTH as u64);
                let gemms = TensorRange::new(gemm.task()).times(extent(count)?).varying(&varies);
                submit_range(stream, &gemms)?;
                at += count * size;
                continue;
            }
            at = end;
            let gemms = Link::of(&gemm).times(extent(times)?).varying(&varies);
            let is_last = end == row.0;
            let links = [gemms, Link::of(&syrk)];
            let links = if is_last { &links[..] } else { &links[..1] };
            stream.submit_chain(&Chain::new(links), &[])?;
            if is_last {
                return Ok(());
            }
        }
        submit(stream, &syrk.task())
    }
}
