//! The program of `newton_solve`. Of each system:
//!
//! ```text
//! start     (AIV)  x = a^T / (|a|_1 |a|_inf)
//! product   (AIC)  p = a @ x                       <-.
//! residual  (AIV)  e = 1 - p, sums of squares        | until |e|, which the program gets, is at most the tolerance
//! norm      (AIV)  |e|^2                             |
//! improve   (AIC)  x = x + x @ e                   --'
//! solve     (AIC)  out = x @ b
//! ```
//! So many systems are on their way at once as a *wave* has: while the program waits for the residual of one, the tasks of the
//! others run. The matrices on their way are tensors of a scope; `x` and its successor change places.

use pto_abi::{Fault, GmAddr};
use pto_aicore_kernels::library;
use pto_graph::call::InPlace;
use pto_graph::{BuildError, DependencyMode, ElementType, Scope, StreamBuilder, TensorView};

use crate::args::{OrchWord, Size, tiles};
use crate::streaming::{LINE, dense, extent, floats, part, submit, tile};

/// Systems of a wave, at most: one bit of a word for each.
pub const MAX_WAVE: u64 = 64;
/// The program's own code: a residual did not become small enough. The matrix has no inverse, or is close to one that has none.
pub const NOT_CONVERGED: i32 = 1;

/// The bits of an infinite `f32`: those of a finite one that is not below zero are less.
const INFINITY: u64 = f32::INFINITY.to_bits() as u64;

crate::orch_args! {
    /// The words of `newton_solve`.
    pub struct Args {
        /// `f32 [batch, n, n]`.
        a: GmAddr,
        /// `f32 [batch, n, columns]`.
        b: GmAddr,
        /// As `b`.
        out: GmAddr,
        /// `i32 [batch]`: how often the stage was repeated.
        iterations: GmAddr,
        /// Systems.
        batch: Size,
        /// Equations of a system.
        n: Size,
        /// Right-hand sides of a system.
        columns: Size,
        /// Rows and columns of a tile.
        tile: Size,
        /// Systems of a wave: at most [`MAX_WAVE`].
        wave: Size,
        /// The square of what |e| may be, in the Frobenius norm: a finite `f32`, not below zero.
        tolerance: f32,
        /// How often the stage is repeated at most.
        limit: u64,
    }
}

impl Args {
    /// Tiles of a matrix.
    const fn tiles(&self) -> u64 {
        let across = self.n.get().div_ceil(self.tile.get());
        across * across
    }

    /// Most tasks that the program submits.
    #[must_use]
    pub const fn most_tasks(&self) -> u64 {
        let across = self.n.get().div_ceil(self.tile.get());
        let (measure, improve) = (2 * self.tiles() + 1, self.tiles());
        let system = 1 + measure + across;
        let stage = improve.saturating_add(measure).saturating_mul(self.limit);
        system.saturating_add(stage).saturating_mul(self.batch.get())
    }
}

/// Submits the tasks.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, [`NOT_CONVERGED`], and those of [`StreamBuilder`].
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(stream.orch_args())?;
    if args.wave.get() > MAX_WAVE || args.tolerance.word() >= INFINITY {
        return Err(Fault::BUILD_ORCH_ARGS.into());
    }
    for systems in tiles(args.batch.get(), args.wave.non_zero()) {
        stream.scope::<(), BuildError>(DependencyMode::DERIVED, |scope| {
            Wave::new(scope, &args, systems)?.run(&mut **scope)
        })?;
    }
    Ok(())
}

/// Systems that are solved side by side, and their tensors on the heap.
struct Wave<'a, 's> {
    args: &'a Args,
    /// Number of the first one, and how many.
    systems: (u64, u64),
    /// `[systems * 2 * n, n]`: of each system x and its successor.
    x: TensorView<'s>,
    /// `[systems * n, n]`: p, then e.
    e: TensorView<'s>,
    /// `[systems * tiles, LINE]`: of each tile of e its sum of squares, in a line of its own.
    squares: TensorView<'s>,
    /// `[systems, LINE]`: |e|^2, in a line of its own.
    norm: TensorView<'s>,
}

impl<'a, 's> Wave<'a, 's> {
    fn new<G: StreamBuilder>(
        scope: &mut Scope<'s, '_, G>,
        args: &'a Args,
        systems: (u64, u64),
    ) -> Result<Self, BuildError> {
        let (n, count) = (args.n.get(), systems.1);
        let mut tensor = |rows: u64, cols: u64| -> Result<_, BuildError> {
            Ok(scope.tensor(ElementType::F32, &[extent(rows)?, extent(cols)?])?)
        };
        Ok(Self {
            args,
            systems,
            x: tensor(count * 2 * n, n)?,
            e: tensor(count * n, n)?,
            squares: tensor(count * args.tiles(), LINE)?,
            norm: tensor(count, LINE)?,
        })
    }

    fn run<G: StreamBuilder>(&self, stream: &mut G) -> Result<(), BuildError> {
        for system in 0..self.systems.1 {
            self.start(stream, system)?;
            self.measure(stream, system, 0)?;
        }
        // A bit for each system that goes on.
        let mut going = u64::MAX >> (MAX_WAVE - self.systems.1.min(MAX_WAVE));
        let mut iteration = 0;
        while going != 0 {
            let now = going;
            for system in (0..self.systems.1).filter(|system| now >> system & 1 == 1) {
                if self.ask_if_small(stream, system)? {
                    self.solve(stream, system, iteration)?;
                    going &= !(1 << system);
                } else if iteration == self.args.limit {
                    return Err(BuildError::Failed(NOT_CONVERGED));
                } else {
                    self.improve(stream, system, iteration)?;
                    self.measure(stream, system, iteration + 1)?;
                }
            }
            iteration += 1;
        }
        Ok(())
    }

    fn start<G: StreamBuilder>(&self, stream: &mut G, system: u64) -> Result<(), BuildError> {
        let n = self.args.n.get();
        let (a, x) = (self.matrix(system)?, self.x(system, 0)?);
        submit(stream, &library::newton_start(&a, &x, n, n, n).task())
    }

    /// The residual of `x` after so many iterations, and its norm.
    fn measure<G: StreamBuilder>(
        &self,
        stream: &mut G,
        system: u64,
        iteration: u64,
    ) -> Result<(), BuildError> {
        let (n, size) = (self.args.n.get(), self.args.tile.non_zero());
        let (a, x) = (self.matrix(system)?, self.x(system, iteration)?);
        let (e, squares) = (self.e(system)?, self.squares(system)?);
        let across = tiles(n, size).flat_map(|rows| tiles(n, size).map(move |cols| (rows, cols)));
        for (number, (rows, cols)) in (0_u64..).zip(across) {
            let (left, right) = (tile(a, rows, (0, n))?, tile(x, (0, n), cols)?);
            let e = tile(e, rows, cols)?;
            let product = library::matmul(&left, &right, &e, rows.1, cols.1, n, n, n, n);
            submit(stream, &product.task())?;
            let square = part(squares, 0, (number, 1))?;
            let (e, diagonal) = (InPlace(&e), rows.0.wrapping_sub(cols.0));
            let residual = library::newton_residual(e, e, &square, rows.1, cols.1, diagonal, n, n);
            submit(stream, &residual.task())?;
        }
        let norm = tile(self.norm, (system, 1), (0, 1))?;
        submit(stream, &library::newton_norm(&squares, &norm, self.args.tiles(), LINE).task())
    }

    /// Waits for |e|^2. As bits, numbers that are not below zero have their order, and NaN is above all of them.
    fn ask_if_small<G: StreamBuilder>(
        &self,
        stream: &mut G,
        system: u64,
    ) -> Result<bool, BuildError> {
        let found = stream.get(&self.norm, &[extent(system)?, 0])?;
        Ok(found <= self.args.tolerance.word())
    }

    /// The successor of x after so many iterations.
    fn improve<G: StreamBuilder>(
        &self,
        stream: &mut G,
        system: u64,
        iteration: u64,
    ) -> Result<(), BuildError> {
        let (n, size) = (self.args.n.get(), self.args.tile.non_zero());
        let (x, next) = (self.x(system, iteration)?, self.x(system, iteration + 1)?);
        let e = self.e(system)?;
        for rows in tiles(n, size) {
            for cols in tiles(n, size) {
                let (left, right) = (tile(x, rows, (0, n))?, tile(e, (0, n), cols)?);
                let (here, next) = (tile(x, rows, cols)?, tile(next, rows, cols)?);
                let (rows, cols) = (rows.1, cols.1);
                let product =
                    library::matmul_add(&left, &right, &here, &next, rows, cols, n, n, n, n, n);
                submit(stream, &product.task())?;
            }
        }
        Ok(())
    }

    fn solve<G: StreamBuilder>(
        &self,
        stream: &mut G,
        system: u64,
        iterations: u64,
    ) -> Result<(), BuildError> {
        let args = self.args;
        let (n, columns) = (args.n.get(), args.columns.get());
        let number = self.systems.0 + system;
        let shape = [args.batch.get() * n, columns];
        let b = part(floats(args.b, &shape)?, 0, (number * n, n))?;
        let all = part(floats(args.out, &shape)?, 0, (number * n, n))?;
        let x = self.x(system, iterations)?;
        for rows in tiles(n, args.tile.non_zero()) {
            let (left, out) = (part(x, 0, rows)?, part(all, 0, rows)?);
            let product = library::matmul(&left, &b, &out, rows.1, columns, n, n, columns, columns);
            submit(stream, &product.task())?;
        }
        let counts = dense(args.iterations, ElementType::I32, &[args.batch.get()])?;
        Ok(stream.set(&counts, &[extent(number)?], iterations)?)
    }

    /// The matrix of a system.
    fn matrix(&self, system: u64) -> Result<TensorView<'static>, BuildError> {
        let n = self.args.n.get();
        let all = floats(self.args.a, &[self.args.batch.get() * n, n])?;
        Ok(part(all, 0, ((self.systems.0 + system) * n, n))?)
    }

    /// x of a system after so many iterations.
    fn x(&self, system: u64, iteration: u64) -> Result<TensorView<'s>, BuildError> {
        let n = self.args.n.get();
        Ok(part(self.x, 0, ((2 * system + iteration % 2) * n, n))?)
    }

    /// The residual of a system.
    fn e(&self, system: u64) -> Result<TensorView<'s>, BuildError> {
        let n = self.args.n.get();
        Ok(part(self.e, 0, (system * n, n))?)
    }

    /// The first elements of the lines with the sums of squares of a system.
    fn squares(&self, system: u64) -> Result<TensorView<'s>, BuildError> {
        let tiles = self.args.tiles();
        Ok(tile(self.squares, (system * tiles, tiles), (0, 1))?)
    }
}
