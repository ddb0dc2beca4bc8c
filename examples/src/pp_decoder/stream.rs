//! The program of `pp_decoder`. Each rank runs it with its layers; for each micro-batch:
//!
//! ```text
//! receive  its tokens, from the rank before; the first one has them
//! a layer  of `decoder_layer`, after the other
//! send     its tokens, to the next rank
//! ```
//! Nothing says when a stage works on which micro-batch: its first kernel starts when its tokens have come.

use pto_abi::{Fault, GmAddr};
use pto_graph::group::Communicator;
use pto_graph::{BuildError, StreamBuilder, TensorView};

use crate::args::{Size, take};
use crate::decoder_layer::stages;
use crate::decoder_layer::stream::Args;
use crate::streaming::{extent, floats};

/// Words after those of the layer: the layers of this rank, and the requests of a micro-batch.
const MORE_WORDS: usize = 2;

/// The names of all words, and which of them are addresses.
pub const NAMES: [(&str, bool); Args::COUNT + MORE_WORDS] = {
    let mut names = [("", false); Args::COUNT + MORE_WORDS];
    let mut at = 0;
    while at < Args::COUNT {
        names[at] = Args::NAMES[at];
        at += 1;
    }
    names[Args::COUNT] = ("layers", false);
    names[Args::COUNT + 1] = ("micro", false);
    names
};

/// One rank's stage: the words of a layer, whose addresses are those of the first layer, with tensors of all layers one after the
/// other. `x` is `f32 [layers + 1, batch, hidden]`: what goes into each layer, and what comes out of the last one.
#[derive(Clone, Copy, Debug)]
pub struct PipelineStage {
    /// Of the first layer, for all requests.
    pub layer: Args,
    /// Layers of this rank.
    pub layers: Size,
    /// Requests of a micro-batch; it divides the requests.
    pub micro: Size,
}

impl PipelineStage {
    /// Reads the words.
    fn from_words(words: &[u64]) -> Result<Self, Fault> {
        let (layer, more) = words.split_at_checked(Args::COUNT).ok_or(Fault::BUILD_ORCH_ARGS)?;
        let mut words = more.iter();
        let stage = Self {
            layer: Args::from_words(layer)?,
            layers: take(&mut words)?,
            micro: take(&mut words)?,
        };
        let is_even = stage.layer.batch.get().is_multiple_of(stage.micro.get());
        if is_even && words.next().is_none() { Ok(stage) } else { Err(Fault::BUILD_ORCH_ARGS) }
    }

    /// The words.
    pub fn words(&self) -> impl Iterator<Item = u64> + use<> {
        self.layer.words().into_iter().chain([self.layers.get(), self.micro.get()])
    }

    /// How many micro-batches there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.layer.batch.get() / self.micro.non_zero()
    }

    /// Tasks of the layers in addition to those of attention, and two transfers of each micro-batch at most.
    #[must_use]
    pub fn tasks(&self, transfers: u64) -> u64 {
        let one = Args { batch: self.micro, ..self.layer };
        self.count() * (self.layers.get() * one.tasks() + transfers)
    }

    /// Where the tokens of a micro-batch are in front of a layer.
    fn tokens(&self, layer: u64, number: u64) -> GmAddr {
        let hidden = self.layer.hidden.get();
        let rows = layer * self.layer.batch.get() + number * self.micro.get();
        self.layer.x.offset(rows * hidden * 4)
    }

    /// The same, as a tensor.
    fn view(&self, layer: u64, number: u64) -> Result<TensorView<'static>, Fault> {
        floats(self.tokens(layer, number), &[self.micro.get(), self.layer.hidden.get()])
    }

    /// The words of one layer for one micro-batch.
    fn args(&self, layer: u64, number: u64) -> Args {
        let all = &self.layer;
        let [hidden, inner, kv, dim] =
            [all.hidden, all.intermediate, all.kv_heads, all.head_dim].map(Size::get);
        let attended = all.heads() * dim;
        let of_layer = |at: GmAddr, elements: u64| at.offset(layer * elements * 4);
        let cache = all.num_blocks * all.block_size.get() * kv * dim;
        let first = number * self.micro.get();
        Args {
            x: self.tokens(layer, number),
            out: self.tokens(layer + 1, number),
            norms: of_layer(all.norms, 2 * hidden),
            wqkv: of_layer(all.wqkv, hidden * (attended + 2 * kv * dim)),
            wo: of_layer(all.wo, attended * hidden),
            wg: of_layer(all.wg, hidden * inner),
            wu: of_layer(all.wu, hidden * inner),
            wd: of_layer(all.wd, inner * hidden),
            k: of_layer(all.k, cache),
            v: of_layer(all.v, cache),
            block_table: all.block_table.offset(first * all.max_blocks.get() * 4),
            context_lens: all.context_lens.offset(first * 4),
            batch: self.micro,
            ..*all
        }
    }
}

/// Submits the tasks of one rank.
///
/// # Errors
/// Those of `decoder_layer`, and of the transfers.
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let comm = Communicator::of(stream.launch_args())?;
    let stage = PipelineStage::from_words(stream.orch_args())?;
    let (rank, layers) = (comm.rank(), stage.layers.get());
    for number in 0..stage.count() {
        let tag = extent(number)?;
        if rank > 0 {
            comm.receive(stream, &stage.view(0, number)?, rank - 1, tag)?;
        }
        for layer in 0..layers {
            stages::layer(stream, &stage.args(layer, number))?;
        }
        if rank + 1 < comm.size() {
            comm.send(stream, &stage.view(layers, number)?, rank + 1, tag)?;
        }
    }
    Ok(())
}
