//! The program of `cholesky`. For each column of tiles, from the left:
//!
//! ```text
//! potrf (AIV)   the tile on the diagonal: its factor, in place
//! trsm  (AIV)   each tile below it, with that factor
//! syrk  (AIC)   each tile on the diagonal further right, less the product of the tile of its row with itself
//! gemm  (AIC)   each tile below those, less the product of the tiles of its row and of its column
//! ```
//! A tile is `InOut` of every task that changes it, and `In` of those that use it; the edges follow from that. One kind of edge is
//! stated: the tiles far below the diagonal are solved when the first one of their column has been. They are not needed
//! earlier, and if all of a column were solved at the same time, their ends would keep the schedulers from the next factor, for which
//! everything waits. The tiles are strided views of one matrix. Factors and solutions are long kernels, each a task of its own. The products of a row are a range. Where they are short, some tiles of a row,
//! side by side, are a chain, which one core runs in one dispatch. The host says how many, because it knows what a product costs.

use pto_abi::GmAddr;
use pto_aicore_kernels::library;
use pto_graph::{BuildError, Chain, ElementType, Link, StreamBuilder, TensorRange, TensorView};

use crate::args::{Size, tiles};
use crate::streaming::{
    LINE, WIDTH, dense, extent, floats, moves, part, submit, submit_range, tile,
};

/// Fewer products than these are tasks of a range: a chain on tensors costs its builder about as much as eight of them.
const SHORT: u64 = 8;

/// Tiles below the diagonal that are solved as soon as there is a factor: the first one, for the next factor, and those that
/// the next columns need soon.
const NEAR: u64 = 4;

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
        /// Tiles of a row that one core changes in one dispatch; with 1, each product is a task.
        chained: Size,
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
    let status =
        dense(args.status, ElementType::U32, &[n / size + u64::from(n % size != 0), LINE])?;
    let program = Factor { args: &args, matrix, status };
    program.factor(stream, 0)?;
    for column in tiles(n, size) {
        program.column(stream, column)?;
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
    /// The factor of the tile on the diagonal from row `first` on.
    fn factor<G: StreamBuilder>(&self, stream: &mut G, first: u64) -> Result<(), BuildError> {
        let (n, size) = (self.args.n.get(), self.args.tile.get());
        let place = (first, size.min(n - first));
        let status =
            part(part(self.status, 0, (first / self.args.tile.non_zero(), 1))?, 1, (0, 1))?;
        let diagonal = tile(self.matrix, place, place)?;
        let potrf = library::cholesky_potrf(&diagonal, &status, place.1, n, first);
        submit(stream, &potrf.task())
    }

    /// Everything right of the factor of a column, and the factor of the next one.
    fn column<G: StreamBuilder>(
        &self,
        stream: &mut G,
        column: (u64, u64),
    ) -> Result<(), BuildError> {
        let n = self.args.n.get();
        let next = column.0 + column.1;
        let diagonal = tile(self.matrix, column, column)?;
        let mut first_solved = None;
        for row in tiles(n, self.args.tile.non_zero()).skip_while(|(row, _)| *row < next) {
            let solved = tile(self.matrix, row, column)?;
            let trsm = library::cholesky_trsm(&diagonal, &solved, row.1, column.1, n, n);
            let first = first_solved.as_slice();
            let after = if row.0 < next + NEAR * column.1 { &[][..] } else { first };
            let id = stream.submit_tensors(&trsm.task().after(after))?;
            self.update(stream, column, row)?;
            if row.0 == next {
                first_solved = Some(id);
                // As early as it can be: everything else waits for it.
                self.factor(stream, next)?;
            }
        }
        Ok(())
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

/// Tasks for a matrix of so many columns of tiles.
#[must_use]
pub const fn tasks(columns: u64) -> u64 {
    // One potrf a column, one trsm and one syrk for each pair of columns, one gemm for each triple.
    let pairs = columns * columns.saturating_sub(1) / 2;
    columns + 2 * pairs + pairs * columns.saturating_sub(2) / 3
}
