//! The host side of `tp_decoder`. Every rank draws the whole layer, and keeps its share; every rank has the whole output, and checks it.

use std::boxed::Box;

use pto_host::Device;

use crate::decoder_layer::inputs::{DecoderShape, DecoderTensors};
use crate::decoder_layer::job::{self, DecoderBuffers, LayerCheck, words};
use crate::host::job::{GraphSize, Prepared, check_room};
use crate::host::{
    Error, Example, ExampleDescription, GroupRank, Inputs, ParamSpec, Params, Program, TestSizes,
    for_groups,
};
use crate::paged_attention::graph::TASKS_PER_UNIT;
use crate::paged_attention::inputs::Contexts;
use crate::tp_decoder::shares;
use crate::tp_decoder::stream::{Args, more_tasks};

/// See [`crate::tp_decoder`].
pub struct TpDecoder;

static PARAMS: &[ParamSpec] = &[
    ParamSpec::extent("batch", 8, "requests"),
    ParamSpec::extent("hidden", 1024, "elements of a token"),
    ParamSpec::extent("intermediate", 2816, "elements between the projections of the MLP"),
    ParamSpec::extent("heads", 16, "query heads; a multiple of kv_heads"),
    ParamSpec::extent("kv_heads", 8, "heads of the cache, which the ranks share equally"),
    ParamSpec::extent("head_dim", 64, "elements of a head; even"),
    ParamSpec::extent("block_size", 64, "tokens of a block of the cache"),
    ParamSpec {
        name: "max_context",
        default: 256,
        min: 1,
        max: i32::MAX as u64,
        help: "longest context, in tokens, with the one that is decoded",
    },
    ParamSpec {
        name: "num_blocks",
        default: 0,
        min: 0,
        max: i32::MAX as u64,
        help: "blocks of the cache; 0: as many as the contexts need",
    },
    ParamSpec::extent("tile_n", 128, "columns of a tile of a product; of heads as many as fit"),
    ParamSpec::extent("tile_k", 512, "elements of a sum that a task adds; of heads as many as fit"),
    ParamSpec::seed("of the random inputs"),
];

/// Sizes that 8 ranks can share.
const LITTLE: &[(&str, &str)] = &[
    ("batch", "2"),
    ("hidden", "40"),
    ("intermediate", "48"),
    ("heads", "8"),
    ("kv_heads", "8"),
    ("head_dim", "4"),
    ("block_size", "8"),
    ("max_context", "20"),
    ("tile_n", "16"),
    ("tile_k", "24"),
];

impl Example for TpDecoder {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "tp_decoder",
            summary: "a decoding step of a layer, split over devices that add up their sums; both kinds of cores",
            program: Program::Tensors,
            params: PARAMS,
            sizes: TestSizes { whole: LITTLE, little: LITTLE },
            inputs: job::INPUTS,
            outputs: job::OUTPUTS,
        }
    }

    fn extent(&self, dim: &str, params: &Params) -> Option<u64> {
        job::extent(dim, params)
    }

    fn implied(
        &self,
        dim: &'static str,
        extent: u64,
        params: &Params,
    ) -> Option<(&'static str, u64)> {
        job::implied(dim, extent, params)
    }

    for_groups!();

    fn prepare_member(
        &self,
        member: GroupRank,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        let shape = DecoderShape::new(params)?;
        let own = shares::shape(&shape, member)?;
        let contexts = Contexts::new(&shape.attention, params, inputs)?;
        let attention = contexts.units(&own.attention).saturating_mul(TASKS_PER_UNIT);
        let mut args = words(&own, contexts.num_blocks);
        let tasks = args.tasks().saturating_add(more_tasks(&args, member.size));
        let size = GraphSize::streamed(tasks.saturating_add(attention));
        check_room(device, &own.elements(&contexts), &size)?;

        let tensors = DecoderTensors::new(&shape, contexts, params, inputs)?;
        let share = shares::tensors(&tensors, &shape, member);
        let buffers = DecoderBuffers::new(&own, &share, device)?;
        buffers.fill_args(&mut args);
        let words = args.words().to_vec();
        let check = LayerCheck::new(shape, tensors, Some(share), buffers);
        Prepared::new(self.name(), (words, &Args::NAMES), size, Box::new(check))
    }
}
