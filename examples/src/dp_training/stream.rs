//! The program of `dp_training`: a linear model `y = x @ w`, whose weights go down the gradient of the squared error. For each step and each tile
//! of columns of the weights:
//!
//! ```text
//! matmul_add (AIC)  error = x @ w + minus the targets, of the samples of this rank
//! matmul     (AIC)  change = scaled @ error, where scaled is x^T times minus the rate, for the mean over all samples
//! all_reduce        change = the sum over the ranks, in their order
//! add        (AIV)  w += change
//! ```
//! A tile of weights is dense, and so is its change. Tiles do not depend on each other: the sum of one is on its way while the next one is computed.

use pto_abi::GmAddr;
use pto_aicore_kernels::library;
use pto_graph::call::InPlace;
use pto_graph::group::{Communicator, Options, Order, Reduction};
use pto_graph::{BuildError, DependencyMode, ElementType, StreamBuilder};

use crate::args::{Size, tiles};
use crate::streaming::{extent, floats, part, submit};

crate::orch_args! {
    /// The words of `dp_training`.
    pub struct Args {
        /// `f32 [samples, inputs]`.
        x: GmAddr,
        /// `f32 [inputs, samples]`: `x^T`, times minus the rate, over the number of all samples.
        scaled: GmAddr,
        /// `f32 [samples, outputs]`: minus the targets.
        minus: GmAddr,
        /// `f32`: the weights, a dense tile `[inputs, cols]` after the other.
        w: GmAddr,
        /// Samples of this rank.
        samples: Size,
        /// Elements of a sample.
        inputs: Size,
        /// Elements of a result.
        outputs: Size,
        /// Columns of a tile of the weights.
        tile: Size,
        /// Steps.
        steps: Size,
    }
}

/// Submits the tasks of one rank.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`StreamBuilder`].
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let args = Args::from_words(stream.orch_args())?;
    for _ in 0..args.steps.get() {
        for cols in tiles(args.outputs.get(), args.tile.non_zero()) {
            descend(stream, &mut comm, &args, cols)?;
        }
    }
    Ok(())
}

/// One step of one tile of the weights.
fn descend<G: StreamBuilder>(
    stream: &mut G,
    comm: &mut Communicator,
    args: &Args,
    cols: (u64, u64),
) -> Result<(), BuildError> {
    let [samples, inputs, outputs] = [args.samples, args.inputs, args.outputs].map(Size::get);
    let (x, scaled) =
        (floats(args.x, &[samples, inputs])?, floats(args.scaled, &[inputs, samples])?);
    let minus = part(floats(args.minus, &[samples, outputs])?, 1, cols)?;
    let w = floats(args.w.offset(cols.0 * inputs * 4), &[inputs, cols.1])?;
    let cols = cols.1;
    stream.scope::<(), BuildError>(DependencyMode::DERIVED, |scope| {
        let mut tensor = |rows: u64| -> Result<_, BuildError> {
            Ok(scope.tensor(ElementType::F32, &[extent(rows)?, extent(cols)?])?)
        };
        let (error, change) = (tensor(samples)?, tensor(inputs)?);
        let stream = &mut **scope;
        let product = library::matmul_add(
            &x, &w, &minus, &error, samples, cols, inputs, inputs, cols, outputs, cols,
        );
        submit(stream, &product.task())?;
        let product =
            library::matmul(&scaled, &error, &change, inputs, cols, samples, samples, cols, cols);
        submit(stream, &product.task())?;
        let options = Options { order: Order::FIXED, ..Options::default() };
        comm.all_reduce(stream, &change, Reduction::SUM, &options)?;
        let w = InPlace(&w);
        submit(stream, &library::add(w, &change, w, inputs * cols).task())
    })
}

impl Args {
    /// Tasks of one rank: three of each tile, and five for each other rank.
    #[must_use]
    pub fn tasks(&self, ranks: u32) -> u64 {
        let tiles = self.outputs.get().div_ceil(self.tile.get());
        self.steps.get() * tiles * (3 + 5 * u64::from(ranks.saturating_sub(1)))
    }
}
