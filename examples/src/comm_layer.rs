//! The program that `pto bench groups` measures a tensor-parallel layer with: a product by column tiles, each of which is added up over all
//! ranks. It is no example, and the firmware of the simulator alone has it.

use core::num::NonZeroU64;

use pto_abi::Fault;
use pto_aicore_kernels::library;
use pto_graph::group::{Algorithm, Communicator, Options, Reduction};
use pto_graph::{BuildError, DependencyMode, StreamBuilder, TensorView};

use crate::args::tiles;
use crate::streaming::{floats, part, submit, tile};

/// Rows and columns of a tile that one core computes: in `f32` it fills the core's accumulator of 128 KiB.
const TILE: [u64; 2] = [128, 256];

pto_abi::closed_set! {
    /// What of the layer is done.
    pub struct LayerPart(u8) {
        /// Everything; the sum of a tile begins when its product is complete.
        OVERLAPPED = 0, "overlapped";
        /// Everything; the first sum begins when the last product is complete.
        APART = 1, "apart";
        /// The products.
        KERNELS = 2, "kernels";
        /// The sums.
        TRANSFERS = 3, "transfers";
    }
}

crate::orch_args! {
    /// The words of `comm_layer`. The operands fill window 0, the product the beginning of window 1.
    pub struct Args {
        /// Rows of the product.
        rows: u64,
        /// This rank's share of the inner extent.
        inner: u64,
        /// Columns of the product.
        cols: u64,
        /// Columns that are added up at once.
        together: u64,
        /// A [`LayerPart`].
        part: u64,
    }
}

/// Submits the layer.
///
/// # Errors
/// `BUILD_ORCH_ARGS`: words that cannot be; those of the collectives.
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let args = Args::from_words(stream.orch_args())?;
    let part = u8::try_from(args.part).ok().and_then(|code| LayerPart::try_from(code).ok());
    let part = part.ok_or(Fault::BUILD_ORCH_ARGS)?;
    let width = NonZeroU64::new(args.together).ok_or(Fault::BUILD_ORCH_ARGS)?;
    let operands = comm.window(0)?;
    let a = floats(operands.base, &[args.rows, args.inner])?;
    let b = floats(operands.at(4 * args.rows * args.inner), &[args.inner, args.cols])?;
    let count = args.cols.div_ceil(args.together);
    // A piece is dense: its columns stand side by side, and nothing else.
    let pieces = floats(comm.window(1)?.base, &[count * args.rows, args.together])?;
    let has = |wanted: &[LayerPart]| wanted.contains(&part);
    stream.scope::<(), BuildError>(DependencyMode::DERIVED, |scope| {
        let stream = &mut **scope;
        for (number, cols) in (0..).zip(tiles(args.cols, width)) {
            let piece = tile(pieces, (number * args.rows, args.rows), (0, cols.1))?;
            if has(&[LayerPart::OVERLAPPED, LayerPart::APART, LayerPart::KERNELS]) {
                product(stream, &args, (a, b, piece), cols)?;
            }
            if has(&[LayerPart::OVERLAPPED, LayerPart::TRANSFERS]) {
                add_up(stream, &mut comm, &piece)?;
            }
        }
        if part == LayerPart::APART {
            comm.barrier(stream, &pieces)?;
            for (number, cols) in (0..).zip(tiles(args.cols, width)) {
                let piece = tile(pieces, (number * args.rows, args.rows), (0, cols.1))?;
                add_up(stream, &mut comm, &piece)?;
            }
        }
        Ok(())
    })
}

/// `piece = a @ b`, of these columns, by tiles.
#[inline(never)]
fn product<G: StreamBuilder>(
    stream: &mut G,
    args: &Args,
    (a, b, piece): (TensorView<'_>, TensorView<'_>, TensorView<'_>),
    cols: (u64, u64),
) -> Result<(), BuildError> {
    let [height, width] = TILE.map(|side| NonZeroU64::new(side).unwrap_or(NonZeroU64::MIN));
    for rows in tiles(args.rows, height) {
        for within in tiles(cols.1, width) {
            let out = tile(piece, rows, within)?;
            let from = tile(b, (0, args.inner), (cols.0 + within.0, within.1))?;
            let left = part(a, 0, rows)?;
            let (m, n, k) = (rows.1, within.1, args.inner);
            let task = library::matmul(&left, &from, &out, m, n, k, args.inner, args.cols, cols.1);
            submit(stream, &task.task())?;
        }
    }
    Ok(())
}

/// The builder adds products in the meantime. Recursive halving has the fewest tasks; a sum alone would be there earlier by the direct way.
fn add_up<G: StreamBuilder>(
    stream: &mut G,
    comm: &mut Communicator,
    piece: &TensorView<'_>,
) -> Result<(), BuildError> {
    let options = Options { algorithm: Algorithm::HALVING, ..Options::default() };
    Ok(comm.all_reduce(stream, piece, Reduction::SUM, &options)?)
}
