//! The program of `dist_cholesky`. Each rank runs it, and has its tiles. For each column of tiles, from the left:
//!
//! ```text
//! potrf    the owner of the tile on the diagonal, and sends the factor to those that have a tile below it
//! trsm     these, each of their tiles, and send it to those that need it
//! syrk     the owner of each tile on the diagonal further right
//! gemm     the owner of each tile below those
//! ```
//! No edge is stated, between kernels or between kernels and transfers: a tile that arrives is `Out` of its receive, and `In` of the
//! tasks that use it. A tile is changed by the same tasks in the same order on every grid, so that the factor is the same, bit for bit.

use pto_abi::GmAddr;
use pto_aicore_kernels::library;
use pto_graph::group::Communicator;
use pto_graph::{BuildError, DependencyMode, ElementType, StreamBuilder, TensorView};

use super::grid::Grid;
use crate::args::Size;
use crate::streaming::{LINE, dense, extent, floats, part, submit};

crate::orch_args! {
    /// The words of `dist_cholesky`.
    pub struct Args {
        /// `f32 [tile_index, tile, tile]`: the rank's tiles, of which a smaller one fills the beginning of its slot.
        tiles: GmAddr,
        /// `u32 [column of tiles, LINE]`: what each `potrf` of this rank reports, in the first element of a line.
        status: GmAddr,
        /// `f32 [column of tiles, tile, tile]`: room for the tiles of a column that arrive.
        arrived: GmAddr,
        /// Rows of the matrix.
        n: Size,
        /// Rows of a tile.
        tile: Size,
    }
}

/// One rank's side of the factorisation.
struct Rank<'a> {
    comm: &'a Communicator,
    args: &'a Args,
    grid: Grid,
    /// Rows of tiles.
    count: u64,
}

/// Submits the tasks.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`StreamBuilder`].
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let comm = Communicator::of(stream.launch_args())?;
    let args = Args::from_words(stream.orch_args())?;
    let count = args.n.get().div_ceil(args.tile.get());
    let grid = Grid::new(comm.rank(), comm.size(), count);
    let rank = Rank { comm: &comm, args: &args, grid, count };
    for col in 0..count {
        stream.scope::<(), BuildError>(DependencyMode::DERIVED, |scope| {
            let stream = &mut **scope;
            rank.factor(stream, col)?;
            rank.solve(stream, col)?;
            rank.update(stream, col)
        })?;
    }
    Ok(())
}

impl Rank<'_> {
    /// Rows of a row of tiles.
    const fn extent(&self, row: u64) -> u64 {
        let (tile, left) = (self.args.tile.get(), self.args.n.get() - row * self.args.tile.get());
        if left < tile { left } else { tile }
    }

    /// A tile among others of the same room.
    fn at(
        &self,
        base: GmAddr,
        tile_index: u64,
        (row, col): (u64, u64),
    ) -> Result<TensorView<'static>, BuildError> {
        let tile = self.args.tile.get();
        let address = base.offset(tile_index * tile * tile * 4);
        Ok(floats(address, &[self.extent(row), self.extent(col)])?)
    }

    /// A tile of this rank.
    fn own(&self, row: u64, col: u64) -> Result<TensorView<'static>, BuildError> {
        self.at(self.args.tiles, self.grid.tile_index(row, col), (row, col))
    }

    /// A tile of the column that is worked on: this rank's own, or where it arrives.
    fn factor_tile(&self, row: u64, col: u64) -> Result<TensorView<'static>, BuildError> {
        if self.grid.has(row, col) {
            return self.own(row, col);
        }
        self.at(self.args.arrived, row, (row, col))
    }

    /// Brings a tile of this column from its owner to all that need it.
    fn spread<G: StreamBuilder>(
        &self,
        stream: &mut G,
        row: u64,
        col: u64,
        needs: impl Fn(u64) -> bool,
    ) -> Result<(), BuildError> {
        let tag = extent(row * self.count + col)?;
        let tile = self.factor_tile(row, col)?;
        if self.grid.has(row, col) {
            for other in self.grid.others().filter(|other| needs(*other)) {
                self.comm.send(stream, &tile, extent(other)?, tag)?;
            }
        } else if needs(self.grid.rank()) {
            self.comm.receive(stream, &tile, extent(self.grid.owner(row, col))?, tag)?;
        }
        Ok(())
    }

    fn factor<G: StreamBuilder>(&self, stream: &mut G, col: u64) -> Result<(), BuildError> {
        if self.grid.has(col, col) {
            let status = dense(self.args.status, ElementType::U32, &[self.count, LINE])?;
            let status = part(part(status, 0, (col, 1))?, 1, (0, 1))?;
            let (tile, width) = (self.own(col, col)?, self.extent(col));
            let first = col * self.args.tile.get();
            submit(stream, &library::cholesky_potrf(&tile, &status, width, width, first).task())?;
        }
        self.spread(stream, col, col, |rank| self.grid.needs_diagonal(rank, col))
    }

    fn solve<G: StreamBuilder>(&self, stream: &mut G, col: u64) -> Result<(), BuildError> {
        let width = self.extent(col);
        for row in col + 1..self.count {
            if self.grid.has(row, col) {
                let (diagonal, tile) = (self.factor_tile(col, col)?, self.own(row, col)?);
                let rows = self.extent(row);
                let trsm = library::cholesky_trsm(&diagonal, &tile, rows, width, width, width);
                submit(stream, &trsm.task())?;
            }
            self.spread(stream, row, col, |rank| self.grid.needs(rank, row, col))?;
        }
        Ok(())
    }

    fn update<G: StreamBuilder>(&self, stream: &mut G, col: u64) -> Result<(), BuildError> {
        let width = self.extent(col);
        for row in col + 1..self.count {
            for right in (col + 1..=row).filter(|right| self.grid.has(row, *right)) {
                let (left, changed) = (self.factor_tile(row, col)?, self.own(row, right)?);
                let (rows, cols) = (self.extent(row), self.extent(right));
                if right == row {
                    let syrk = library::cholesky_syrk(&left, &changed, rows, width, width, rows);
                    submit(stream, &syrk.task())?;
                    continue;
                }
                let other = self.factor_tile(right, col)?;
                let gemm = library::cholesky_gemm(
                    &left, &other, &changed, rows, cols, width, width, width, cols,
                );
                submit(stream, &gemm.task())?;
            }
        }
        Ok(())
    }
}

/// Tasks of one rank.
#[must_use]
pub fn tasks(grid: &Grid, count: u64) -> u64 {
    let (mut tasks, rank) = (0, grid.rank());
    for col in 0..count {
        for row in col..count {
            let needs = |other: u64| match row == col {
                true => grid.needs_diagonal(other, col),
                false => grid.needs(other, row, col),
            };
            tasks += match grid.has(row, col) {
                true => 1 + grid.others().filter(|other| needs(*other)).count() as u64,
                false => u64::from(needs(rank)),
            };
            let changed = (col + 1..=row).filter(|right| row > col && grid.has(row, *right));
            tasks += changed.count() as u64;
        }
    }
    tasks
}
