//! The program that `pto bench collectives` measures collectives with. It is no example, and the firmware of the simulator alone has it.

use pto_graph::group::{Algorithm, Collective, Communicator, Options, Order, Reduction};
use pto_graph::{BuildError, ElementType, StreamBuilder, TensorView};

use crate::streaming::extent;

crate::orch_args! {
    /// The words of `comm_bench`. The tensor fills the beginning of window 0; an all-to-all ends in window 1.
    pub struct Args {
        /// A [`Collective`].
        collective: u64,
        /// An [`Algorithm`].
        algorithm: u64,
        /// An [`Order`].
        order: u64,
        /// Elements of the tensor, of `f32`.
        elements: u64,
        /// How often.
        rounds: u64,
    }
}

/// Submits the collective so many times.
///
/// # Errors
/// `BUILD_ORCH_ARGS`: words that name nothing; those of the collectives.
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let args = Args::from_words(stream.orch_args())?;
    let elements = [extent(args.elements)?];
    let windows = [comm.window(0)?, comm.window(1)?];
    let [tensor, other] =
        windows.map(|window| TensorView::dense(window.base, ElementType::F32, &elements));
    let options = args.options().ok_or(pto_abi::Fault::BUILD_ORCH_ARGS)?;
    let collective = u8::try_from(args.collective).ok().and_then(|c| Collective::try_from(c).ok());
    for _ in 0..args.rounds {
        match collective {
            Some(Collective::ALL_REDUCE) => {
                comm.all_reduce(stream, &tensor, Reduction::SUM, &options)?;
            }
            Some(Collective::BROADCAST) => comm.broadcast(stream, &tensor, 0, &options)?,
            Some(Collective::REDUCE) => {
                comm.reduce(stream, &tensor, (0, Reduction::SUM), &options)?;
            }
            Some(Collective::ALL_GATHER) => comm.all_gather(stream, &tensor, &options)?,
            Some(Collective::REDUCE_SCATTER) => {
                comm.reduce_scatter(stream, &tensor, Reduction::SUM, &options)?;
            }
            Some(Collective::ALL_TO_ALL) => {
                comm.all_to_all(stream, (&tensor, &other), &options)?;
            }
            _ => return Err(pto_abi::Fault::BUILD_ORCH_ARGS.into()),
        }
    }
    Ok(())
}

impl Args {
    fn options(&self) -> Option<Options> {
        let algorithm = u8::try_from(self.algorithm).ok()?;
        let order = u8::try_from(self.order).ok()?;
        Some(Options {
            algorithm: Algorithm::try_from(algorithm).ok()?,
            order: Order::try_from(order).ok()?,
            ..Options::default()
        })
    }
}
