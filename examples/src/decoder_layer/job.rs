//! The host side of `decoder_layer`.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use pto_host::{Device, DeviceBuffer, Error as DeviceError};

use crate::args::Size;
use crate::decoder_layer::inputs::{DecoderShape, DecoderTensors};
use crate::decoder_layer::reference::{EPSILON, angle, reference};
use crate::decoder_layer::stream::Args;
use crate::host::check::{Expected, UNWRITTEN, Verdict, compare};
use crate::host::job::{Check, GraphSize, Prepared, check_room};
use crate::host::{
    Error, Example, ExampleDescription, Inputs, ParamSpec, Params, Program, Tensor, TensorSpec,
    TestSizes,
};
use crate::paged_attention::graph::TASKS_PER_UNIT;
use crate::paged_attention::inputs::{AttentionShape, Contexts};
use crate::paged_attention::job::{BLOCK_TABLE, CONTEXT_LENS};
use crate::paged_attention::job::{kernel_ns, scale};

/// See [`crate::decoder_layer`].
pub struct DecoderLayer;

pub(crate) static PARAMS: &[ParamSpec] = &[
    ParamSpec::extent("batch", 8, "requests"),
    ParamSpec::extent("hidden", 1024, "elements of a token"),
    ParamSpec::extent("intermediate", 2816, "elements between the projections of the MLP"),
    ParamSpec::extent("heads", 8, "query heads; a multiple of kv_heads"),
    ParamSpec::extent("kv_heads", 2, "heads of the cache"),
    ParamSpec::extent("head_dim", 128, "elements of a head; even"),
    ParamSpec::extent("block_size", 64, "tokens of a block of the cache"),
    ParamSpec {
        name: "max_context",
        default: 512,
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

const TOKENS: &[&str] = &["batch", "hidden"];
const CACHE: &[&str] = &["num_blocks", "block_size", "kv_heads", "head_dim"];

pub(crate) static INPUTS: &[TensorSpec] = &[
    TensorSpec::f32("x", TOKENS, "the tokens"),
    TensorSpec::f32(
        "norms",
        &["norms", "hidden"],
        "weights of the norms before attention and before the MLP",
    ),
    TensorSpec::f32("wqkv", &["hidden", "qkv"], "heads of queries, then of keys, then of values"),
    TensorSpec::f32("wo", &["attended", "hidden"], "output projection"),
    TensorSpec::f32("wg", &["hidden", "intermediate"], "gate of the MLP"),
    TensorSpec::f32("wu", &["hidden", "intermediate"], "up projection of the MLP"),
    TensorSpec::f32("wd", &["intermediate", "hidden"], "down projection of the MLP"),
    TensorSpec::f32("k", CACHE, "cache of the keys; the token that is decoded is written"),
    TensorSpec::f32("v", CACHE, "cache of the values; as k"),
    BLOCK_TABLE,
    CONTEXT_LENS,
];

pub(crate) static OUTPUTS: &[TensorSpec] =
    &[TensorSpec::f32("out", TOKENS, "the tokens after the layer")];

impl Example for DecoderLayer {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "decoder_layer",
            summary: "a decoding step of a layer of a transformer, with a paged cache; both kinds of cores",
            program: Program::Tensors,
            params: PARAMS,
            sizes: TestSizes {
                whole: &[
                    ("batch", "4"),
                    ("hidden", "96"),
                    ("intermediate", "200"),
                    ("heads", "4"),
                    ("kv_heads", "2"),
                    ("head_dim", "16"),
                    ("block_size", "16"),
                    ("max_context", "70"),
                    ("tile_n", "32"),
                    ("tile_k", "40"),
                ],
                little: &[
                    ("batch", "2"),
                    ("hidden", "40"),
                    ("intermediate", "70"),
                    ("heads", "4"),
                    ("kv_heads", "2"),
                    ("head_dim", "8"),
                    ("block_size", "8"),
                    ("max_context", "30"),
                    ("tile_n", "16"),
                    ("tile_k", "24"),
                ],
            },
            inputs: INPUTS,
            outputs: OUTPUTS,
        }
    }

    fn extent(&self, dim: &str, params: &Params) -> Option<u64> {
        extent(dim, params)
    }

    fn implied(
        &self,
        dim: &'static str,
        extent: u64,
        params: &Params,
    ) -> Option<(&'static str, u64)> {
        implied(dim, extent, params)
    }

    fn prepare(
        &self,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        let shape = DecoderShape::new(params)?;
        let contexts = Contexts::new(&shape.attention, params, inputs)?;
        let attention = contexts.units(&shape.attention).saturating_mul(TASKS_PER_UNIT);
        let mut args = words(&shape, contexts.num_blocks);
        args.chained = chained(device, &shape.attention);
        let size = GraphSize::streamed(args.tasks().saturating_add(attention));
        check_room(device, &shape.elements(&contexts), &size)?;

        let tensors = DecoderTensors::new(&shape, contexts, params, inputs)?;
        let buffers = DecoderBuffers::new(&shape, &tensors, device)?;
        buffers.fill_args(&mut args);
        let words = args.words().to_vec();
        let check = LayerCheck::new(shape, tensors, None, buffers);
        Prepared::new(self.name(), (words, &Args::NAMES), size, Box::new(check))
    }
}

/// The extents of the tensors of a layer.
pub(crate) fn extent(dim: &str, params: &Params) -> Option<u64> {
    let (heads, dim_of_head) = (params.get("heads"), params.get("head_dim"));
    match dim {
        "norms" => Some(2),
        "qkv" => Some((heads + 2 * params.get("kv_heads")) * dim_of_head),
        "attended" => Some(heads * dim_of_head),
        "max_blocks" => Some(params.get("max_context").div_ceil(params.get("block_size"))),
        "num_blocks" => Some(params.get("num_blocks")).filter(|blocks| *blocks > 0),
        _ => Some(params.get(dim)),
    }
}

/// The parameter of a layer that an extent implies.
pub(crate) fn implied(
    dim: &'static str,
    extent: u64,
    params: &Params,
) -> Option<(&'static str, u64)> {
    match dim {
        "norms" | "qkv" | "attended" => None,
        "max_blocks" => Some(("max_context", extent.saturating_mul(params.get("block_size")))),
        _ => Some((dim, extent)),
    }
}

/// Kernels of attention that one core runs in one dispatch, at most: contexts are few here, and many cores idle.
const CHAINED: u64 = 8;

/// Nanoseconds that such a chain may take: the next stage waits for it.
const CHAIN_NS: u64 = 4_000;

/// How many kernels of attention a chain has: as many as fit [`CHAIN_NS`].
fn chained(device: &Device, shape: &AttentionShape) -> Size {
    let fit = CHAIN_NS.checked_div(kernel_ns(device, shape)).unwrap_or(CHAINED);
    Size::new(fit.clamp(1, CHAINED)).unwrap_or(Size::ONE)
}

/// The words; addresses are null.
pub(crate) fn words(shape: &DecoderShape, num_blocks: u64) -> Args {
    let null = pto_abi::GmAddr::NULL;
    let attention = &shape.attention;
    Args {
        x: null,
        out: null,
        norms: null,
        wqkv: null,
        wo: null,
        wg: null,
        wu: null,
        wd: null,
        angles: null,
        k: null,
        v: null,
        block_table: null,
        context_lens: null,
        batch: attention.batch,
        hidden: shape.hidden,
        intermediate: shape.intermediate,
        kv_heads: attention.kv_heads,
        rows: attention.rows,
        head_dim: attention.head_dim,
        block_size: attention.block_size,
        max_blocks: attention.max_blocks,
        num_blocks,
        tile_n: shape.tile_n,
        tile_k: shape.tile_k,
        scale: scale(attention.head_dim),
        epsilon: EPSILON,
        chained: Size::ONE,
    }
}

/// Cosines and sines of each position.
#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
pub(crate) fn angles(shape: &DecoderShape) -> Vec<f32> {
    let [positions, _, planes] = shape.angles();
    let dim = shape.attention.head_dim.get();
    let row = |position| {
        let of =
            move |f: fn(f64) -> f64| (0..planes).map(move |p| f(angle(position, p, dim)) as f32);
        of(f64::cos).chain(of(f64::sin))
    };
    (0..positions).flat_map(row).collect()
}

/// Everything in the memory of the device.
pub(crate) struct DecoderBuffers {
    pub(crate) x: DeviceBuffer<f32>,
    norms: DeviceBuffer<f32>,
    weights: [DeviceBuffer<f32>; 5],
    angles: DeviceBuffer<f32>,
    pub(crate) k: DeviceBuffer<f32>,
    pub(crate) v: DeviceBuffer<f32>,
    tables: [DeviceBuffer<i32>; 2],
    pub(crate) out: DeviceBuffer<f32>,
}

impl DecoderBuffers {
    pub(crate) fn new(
        shape: &DecoderShape,
        tensors: &DecoderTensors,
        device: &Device,
    ) -> Result<Self, DeviceError> {
        let [wqkv, wo, wg, wu, wd] = &tensors.weights;
        let upload = |values: &Vec<f32>| device.upload(values);
        Ok(Self {
            x: upload(&tensors.x)?,
            norms: upload(&tensors.norms)?,
            weights: [upload(wqkv)?, upload(wo)?, upload(wg)?, upload(wu)?, upload(wd)?],
            angles: upload(&angles(shape))?,
            k: upload(&tensors.k)?,
            v: upload(&tensors.v)?,
            tables: [device.upload(&tensors.block_table)?, device.upload(&tensors.context_lens)?],
            out: device.zeroed(tensors.x.len())?,
        })
    }

    pub(crate) fn fill_args(&self, args: &mut Args) {
        args.x = self.x.address();
        args.out = self.out.address();
        args.norms = self.norms.address();
        [args.wqkv, args.wo, args.wg, args.wu, args.wd] =
            [0, 1, 2, 3, 4].map(|weight: usize| self.weights[weight].address());
        args.angles = self.angles.address();
        args.k = self.k.address();
        args.v = self.v.address();
        args.block_table = self.tables[0].address();
        args.context_lens = self.tables[1].address();
    }
}

/// What a device has of a layer, and what the whole layer gives.
pub(crate) struct LayerCheck {
    shape: DecoderShape,
    /// Of the whole layer, which the reference is computed of.
    tensors: DecoderTensors,
    /// What is on the device, where that is a share of the layer.
    share: Option<DecoderTensors>,
    buffers: DecoderBuffers,
    /// Once computed.
    expected: Vec<Expected>,
}

impl LayerCheck {
    pub(crate) const fn new(
        shape: DecoderShape,
        tensors: DecoderTensors,
        share: Option<DecoderTensors>,
        buffers: DecoderBuffers,
    ) -> Self {
        Self { shape, tensors, share, buffers, expected: Vec::new() }
    }
}

impl Check for LayerCheck {
    fn reset(&mut self) -> Result<(), DeviceError> {
        // The token that is decoded is not in the cache.
        let DecoderTensors { k, v, .. } = self.share.as_ref().unwrap_or(&self.tensors);
        self.buffers.k.write(k)?;
        self.buffers.v.write(v)?;
        self.buffers.out.write(&vec![UNWRITTEN; self.buffers.out.len()])
    }

    fn verify(&mut self) -> Result<Verdict, Error> {
        if self.expected.is_empty() {
            self.expected = reference(&self.shape, &self.tensors);
        }
        Ok(compare("out", &self.shape.x(), &self.buffers.out.read()?, &self.expected))
    }

    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError> {
        Ok(vec![("out", Tensor::f32(self.shape.x().to_vec(), self.buffers.out.read()?))])
    }
}
