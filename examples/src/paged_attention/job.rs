//! The host side of `paged_attention`.

use std::boxed::Box;
use std::vec::Vec;

use pto_aicore_kernels::func;
use pto_host::{Device, DeviceBuffer, Error as DeviceError};

use crate::args::Size;
use crate::host::job::{FloatCheck, GraphSize, Prepared, check_room, index};
use crate::host::{
    Error, Example, ExampleDescription, Inputs, ParamSpec, Params, Program, TensorSpec, TestSizes,
};
use crate::paged_attention::graph::{Args, TASKS_PER_UNIT, WORDS_PER_UNIT};
use crate::paged_attention::inputs::{AttentionShape, AttentionTensors, Contexts};
use crate::paged_attention::reference::reference;
use crate::paged_attention::row::Cut;

/// See [`crate::paged_attention`].
pub struct PagedAttention;

pub(crate) static PARAMS: &[ParamSpec] = &[
    ParamSpec::extent("batch", 32, "requests"),
    ParamSpec::extent("heads", 16, "query heads; a multiple of kv_heads"),
    ParamSpec::extent("kv_heads", 4, "heads of the cache"),
    ParamSpec::extent("head_dim", 64, "elements of a query, a key and a value"),
    ParamSpec::extent("block_size", 64, "tokens of a block of the cache"),
    ParamSpec {
        name: "max_context",
        default: 1024,
        min: 1,
        max: i32::MAX as u64,
        help: "longest context, in tokens",
    },
    ParamSpec {
        name: "num_blocks",
        default: 0,
        min: 0,
        max: i32::MAX as u64,
        help: "blocks of the cache; 0: as many as the contexts need",
    },
    ParamSpec::seed("of the random inputs"),
];

const CACHE: &[&str] = &["num_blocks", "block_size", "kv_heads", "head_dim"];
const QUERY: &[&str] = &["batch", "heads", "head_dim"];

/// Of every cache in blocks.
pub(crate) const BLOCK_TABLE: TensorSpec = TensorSpec::i32(
    "block_table",
    &["batch", "max_blocks"],
    "where in the cache the blocks of each request are",
);
/// As [`BLOCK_TABLE`].
pub(crate) const CONTEXT_LENS: TensorSpec = TensorSpec::i32(
    "context_lens",
    &["batch"],
    "tokens of each request; random from 1 to max_context unless given",
);

pub(crate) static INPUTS: &[TensorSpec] = &[
    TensorSpec::f32("q", QUERY, "queries"),
    TensorSpec::f32("k", CACHE, "cache of the keys"),
    TensorSpec::f32("v", CACHE, "cache of the values"),
    BLOCK_TABLE,
    CONTEXT_LENS,
];

static OUTPUTS: &[TensorSpec] = &[TensorSpec::f32("out", QUERY, "softmax(q @ k^T) @ v")];

impl Example for PagedAttention {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "paged_attention",
            summary: "a decoding step of attention over a paged cache; both kinds of cores",
            program: Program::Graph,
            params: PARAMS,
            sizes: TestSizes {
                whole: &[
                    ("batch", "5"),
                    ("heads", "8"),
                    ("kv_heads", "2"),
                    ("head_dim", "40"),
                    ("max_context", "300"),
                ],
                little: &[
                    ("batch", "3"),
                    ("heads", "4"),
                    ("kv_heads", "2"),
                    ("head_dim", "24"),
                    ("block_size", "16"),
                    ("max_context", "70"),
                ],
            },
            inputs: INPUTS,
            outputs: OUTPUTS,
        }
    }

    fn extent(&self, dim: &str, params: &Params) -> Option<u64> {
        match dim {
            "max_blocks" => Some(params.get("max_context").div_ceil(params.get("block_size"))),
            "num_blocks" => Some(params.get("num_blocks")).filter(|blocks| *blocks > 0),
            _ => Some(params.get(dim)),
        }
    }

    fn implied(
        &self,
        dim: &'static str,
        extent: u64,
        params: &Params,
    ) -> Option<(&'static str, u64)> {
        match dim {
            "max_blocks" => Some(("max_context", extent.saturating_mul(params.get("block_size")))),
            _ => Some((dim, extent)),
        }
    }

    fn prepare(
        &self,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        let shape = AttentionShape::new(params)?;
        let contexts = Contexts::new(&shape, params, inputs)?;
        let units = contexts.units(&shape);
        let chained = chained(device, &shape, units);
        let size = room(&shape, &contexts, chained);
        check_room(device, &contexts.elements(&shape), &size)?;

        let order = contexts.longest_first();
        let tensors = AttentionTensors::new(&shape, contexts, params, inputs)?;
        let buffers = AttentionBuffers::new(&shape, (&tensors, &order), units, device)?;
        let words = buffers.args(&shape, tensors.num_blocks, chained).words().to_vec();
        let check = FloatCheck {
            name: "out",
            shape: shape.q(),
            out: buffers.out,
            reference: Box::new(move || reference(&shape, &tensors)),
            expected: Vec::new(),
            _floats: buffers.floats.into(),
            _tables: buffers.tables.into(),
        };
        Prepared::new(self.name(), (words, &Args::NAMES), size, Box::new(check))
    }
}

/// Kernels that one core runs in one dispatch, at most.
const CHAINED: u64 = 32;

/// Nanoseconds that a chain may take: a longer one keeps other cores waiting.
const CHAIN_NS: u64 = 20_000;

/// Units for each of which a chain may have one kernel more, whatever these take: with two kernels of a unit on 24 cube cores, such a chain is a thirtieth of what a
/// core has to do, and no core waits for long at the end.
const UNITS_A_KERNEL: u64 = 360;

/// Chains of a kernel that are wanted: some more than a device has cube cores. With fewer, cores would wait while others run a
/// chain; with more, the builder and the schedulers would be what takes longest.
const CHAINS: u64 = 32;

/// How many kernels a chain has, where there are so many units: as many as fit [`CHAIN_NS`] or [`UNITS_A_KERNEL`], but not so many that cores have nothing to do.
fn chained(device: &Device, shape: &AttentionShape, units: u64) -> Size {
    let kernel = kernel_ns(device, shape);
    let fit = CHAIN_NS.checked_div(kernel).unwrap_or(CHAINED).max(units / UNITS_A_KERNEL);
    Size::new(fit.min(units / CHAINS).clamp(1, CHAINED)).unwrap_or(Size::ONE)
}

/// How long the scores of a block are expected to take, which is about as long as the other kernels take.
pub(crate) fn kernel_ns(device: &Device, shape: &AttentionShape) -> u64 {
    let [rows, dim, size] = [shape.rows, shape.head_dim, shape.block_size].map(Size::get);
    let words = [0, 0, 0, rows, size, dim, dim, shape.kv_heads.get() * dim, size];
    device.expected_kernel_ns(func::ATTENTION_QK, &words)
}

/// Words of the four chains of a run: headers, links, arguments and variations.
const WORDS_PER_RUN: u64 = 4 + (2 + 9 + 5) + (2 + 9 + 5) + (2 + 9 + 5) + (2 + 12 + 8);
/// And for each block, at most of one head: the words that are no step.
const VARYING_WORDS_PER_UNIT: u64 = 2 + 1 + 2 + 1;

/// Room for the graph, whether its builder has chains or not: chains of few blocks take more words than their tasks.
fn room(shape: &AttentionShape, contexts: &Contexts, chained: Size) -> GraphSize {
    let size = graph_size(shape, contexts, chained);
    let blocks = |len: &i32| u64::from(len.unsigned_abs()).div_ceil(shape.block_size.get());
    let cut = Cut::of(chained, shape.kv_heads);
    let run = cut.run as u64;
    let runs = contexts.lens.iter().map(|len| blocks(len).div_ceil(run)).sum::<u64>();
    let rows = shape.kv_heads.get().div_ceil(cut.heads.get());
    let chains = runs.saturating_mul(rows * WORDS_PER_RUN);
    let varying = contexts.units(shape).saturating_mul(VARYING_WORDS_PER_UNIT);
    let arg_words = size.arg_words.max(chains.saturating_add(varying));
    GraphSize { arg_words, ..size }
}

/// The size of the graph.
pub(crate) fn graph_size(shape: &AttentionShape, contexts: &Contexts, chained: Size) -> GraphSize {
    let units = contexts.units(shape);
    let heads = Cut::of(chained, shape.kv_heads).heads.get();
    let rows = shape.batch.get() * shape.kv_heads.get().div_ceil(heads);
    GraphSize {
        tasks: units.saturating_mul(TASKS_PER_UNIT),
        arg_words: units.saturating_mul(WORDS_PER_UNIT),
        // One to each kernel from the one before, of the same chain or of the chain before, but to the first of a row; updates of a
        // further run wait for those before as well, instead.
        edges: units.saturating_mul(4) - rows,
    }
}

/// Everything in the memory of the device.
struct AttentionBuffers {
    /// q, k, v, scores, block stats, block out, running stats.
    floats: [DeviceBuffer<f32>; 7],
    /// Block table, context lengths, order of the requests.
    tables: [DeviceBuffer<i32>; 3],
    out: DeviceBuffer<f32>,
}

impl AttentionBuffers {
    fn new(
        shape: &AttentionShape,
        (tensors, order): (&AttentionTensors, &[i32]),
        units: u64,
        device: &Device,
    ) -> Result<Self, DeviceError> {
        let [rows, size, dim] = [shape.rows, shape.block_size, shape.head_dim].map(Size::get);
        let zeroed = |elements: u64| device.zeroed(index(elements));
        Ok(Self {
            floats: [
                device.upload(&tensors.q)?,
                device.upload(&tensors.k)?,
                device.upload(&tensors.v)?,
                zeroed(units * rows * size)?,
                zeroed(units * 2 * rows)?,
                zeroed(units * rows * dim)?,
                zeroed(shape.batch.get() * shape.heads() * 2)?,
            ],
            tables: [
                device.upload(&tensors.block_table)?,
                device.upload(&tensors.context_lens)?,
                device.upload(order)?,
            ],
            out: zeroed(shape.q().iter().product())?,
        })
    }

    fn args(&self, shape: &AttentionShape, num_blocks: u64, chained: Size) -> Args {
        let [q, k, v, scores, block_stats, block_out, stats] =
            [0, 1, 2, 3, 4, 5, 6].map(|buffer: usize| self.floats[buffer].address());
        Args {
            q,
            k,
            v,
            out: self.out.address(),
            block_table: self.tables[0].address(),
            context_lens: self.tables[1].address(),
            order: self.tables[2].address(),
            scores,
            block_stats,
            block_out,
            stats,
            batch: shape.batch,
            kv_heads: shape.kv_heads,
            rows: shape.rows,
            head_dim: shape.head_dim,
            block_size: shape.block_size,
            max_blocks: shape.max_blocks,
            num_blocks,
            scale: scale(shape.head_dim),
            chained,
        }
    }
}

/// `1 / sqrt(head_dim)`, rounded once.
#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
pub(crate) fn scale(head_dim: Size) -> f32 {
    (1.0 / (head_dim.get() as f64).sqrt()) as f32
}
