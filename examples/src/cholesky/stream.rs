//! The program of `cholesky`. For each column of tiles, from the left:
//!
//! ```text
//! potrf (AIV)   the tile on the diagonal: its factor, in place
//! trsm  (AIV)   each tile below it, with that factor
//! syrk  (AIC)   each tile on the diagonal further right, less the product of the tile of its row with itself
//! gemm  (AIC)   each tile below those, less the product of the tiles of its row and of its column
//! ```
//! Factors and solutions are long kernels, each a task of its own. The products are short: those of a row, of which there are up to
//! as many as columns, are a chain, which one core runs in one dispatch. Edges are stated: a row's chain waits for the
//! solutions of its own row and of those above it; a solution waits for the factor, and for the chain of its row before.

use pto_abi::{Fault, GmAddr};
use pto_aicore_kernels::library;
use pto_graph::{BuildError, ElementType, Link, StreamBuilder, Variation};

use crate::args::{Size, tiles};
use crate::streaming::{F32, LINE, Stage, dense, floats};

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
    args.check()?;
    let mut updated = Stage::new();
    for column in tiles(args.n.get(), args.tile.non_zero()) {
        updated = args.column(stream, column, &updated)?;
    }
    Ok(())
}

impl Args {
    /// Both tensors can be addressed.
    fn check(&self) -> Result<(), Fault> {
        let (n, columns) = (self.n.get(), self.n.get().div_ceil(self.tile.get()));
        floats(self.matrix, &[n, n])?;
        dense(self.status, ElementType::U32, &[columns, LINE]).map(drop)
    }

    /// The tile at a row and a column.
    const fn tile_at(&self, row: u64, column: u64) -> GmAddr {
        self.matrix.offset((row * self.n.get() + column) * F32)
    }

    /// Submits the tasks of one column. `before`: of the column before, what has changed each row; returns the same of this one.
    fn column<G: StreamBuilder>(
        &self,
        stream: &mut G,
        (first, width): (u64, u64),
        before: &Stage,
    ) -> Result<Stage, BuildError> {
        let (n, diagonal) = (self.n.get(), self.tile_at(first, first));
        let status = self.status.offset(first / self.tile.get() * LINE * F32);
        let potrf = library::cholesky_potrf(diagonal, status, width, n, first);
        let potrf = stream.submit(potrf.task(), before.at(0).as_slice())?;
        let (mut solved, mut updated) = (Stage::new(), Stage::new());
        let rows = tiles(n, self.tile.non_zero()).skip_while(|(row, _)| *row <= first);
        for (index, (row, height)) in rows.enumerate() {
            let left = self.tile_at(row, first);
            let trsm = library::cholesky_trsm(diagonal, left, height, width, n, n);
            let after = [Some(potrf), before.at(index + 1)];
            solved.task(stream, trsm.task(), &after)?;
            self.update(stream, (index, first, row, height), (&solved, &mut updated))?;
        }
        Ok(updated)
    }

    /// Changes all tiles of a row to the right of column `first`: one core does, one tile after another.
    fn update<G: StreamBuilder>(
        &self,
        stream: &mut G,
        (index, first, row, height): (usize, u64, u64, u64),
        (solved, updated): (&Stage, &mut Stage),
    ) -> Result<(), BuildError> {
        let (n, size) = (self.n.get(), self.tile.get());
        let left = self.tile_at(row, first);
        let (other, changed) = (self.tile_at(first + size, first), self.tile_at(row, first + size));
        let gemm = library::cholesky_gemm(left, other, changed, height, size, size, n, n, n);
        let syrk = library::cholesky_syrk(left, self.tile_at(row, row), height, size, n, n);
        let varies = [step(1, size * n), step(2, size)];
        let times = u32::try_from(index).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
        let links = [Link::new(gemm.task()).times(times).varying(&varies), Link::new(syrk.task())];
        // The first row below the diagonal has no tile between.
        let links = if index == 0 { &links[1..] } else { &links[..] };
        updated.chain(stream, links, solved.tasks())
    }
}

/// An address that grows by so many elements.
const fn step(arg: usize, elements: u64) -> Variation<'static> {
    Variation::by(arg, (elements * F32).cast_signed())
}

/// Tasks for a matrix of so many columns of tiles.
#[must_use]
pub const fn tasks(columns: u64) -> u64 {
    // One potrf a column, one trsm and one syrk for each pair of columns, one gemm for each triple.
    let pairs = columns * columns.saturating_sub(1) / 2;
    columns + 2 * pairs + pairs * columns.saturating_sub(2) / 3
}
