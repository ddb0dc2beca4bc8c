//! The host side of `pp_decoder`. Each rank draws all layers, and keeps its own; the reference goes through the layers up to the last one of the
//! rank, which checks what comes out of it.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use pto_host::{Device, DeviceBuffer, Error as DeviceError};

use crate::args::Size;
use crate::decoder_layer::inputs::{DecoderShape, DecoderTensors};
use crate::decoder_layer::job::{angles, words};
use crate::decoder_layer::reference;
use crate::host::check::{Expected, UNWRITTEN, Verdict, compare};
use crate::host::error::invalid;
use crate::host::job::{Check, GraphSize, Prepared, check_room, index};
use crate::host::parallel;
use crate::host::random::Rng;
use crate::host::rounding::Rounded;
use crate::host::{
    Error, Example, ExampleDescription, GroupRank, Inputs, ParamSpec, Params, Program, Tensor,
    TensorSpec, TestSizes, for_groups,
};
use crate::paged_attention::graph::TASKS_PER_UNIT;
use crate::paged_attention::inputs::Contexts;
use crate::pp_decoder::stream::{NAMES, PipelineStage};

/// See [`crate::pp_decoder`].
pub struct PpDecoder;

static PARAMS: &[ParamSpec] = &[
    ParamSpec::extent("layers", 8, "layers, which the ranks share equally"),
    ParamSpec::extent("micro", 2, "requests of a micro-batch; a divisor of batch"),
    ParamSpec::extent("batch", 8, "requests"),
    ParamSpec::extent("hidden", 256, "elements of a token"),
    ParamSpec::extent("intermediate", 512, "elements between the projections of the MLP"),
    ParamSpec::extent("heads", 8, "query heads; a multiple of kv_heads"),
    ParamSpec::extent("kv_heads", 2, "heads of the cache"),
    ParamSpec::extent("head_dim", 32, "elements of a head; even"),
    ParamSpec::extent("block_size", 32, "tokens of a block of the cache"),
    ParamSpec {
        name: "max_context",
        default: 128,
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
    ParamSpec::extent("tile_k", 256, "elements of a sum that a task adds; of heads as many as fit"),
    ParamSpec::seed("of the random inputs"),
];

/// Sizes that 8 ranks can share.
const LITTLE: &[(&str, &str)] = &[
    ("layers", "8"),
    ("micro", "1"),
    ("batch", "2"),
    ("hidden", "16"),
    ("intermediate", "24"),
    ("heads", "2"),
    ("kv_heads", "1"),
    ("head_dim", "4"),
    ("block_size", "8"),
    ("max_context", "10"),
    ("tile_n", "16"),
    ("tile_k", "24"),
];

static INPUTS: &[TensorSpec] =
    &[TensorSpec::f32("x", &["batch", "hidden"], "the tokens in front of the first layer")];

static OUTPUTS: &[TensorSpec] = &[TensorSpec::f32(
    "out",
    &["batch", "hidden"],
    "the tokens after the last layer of the device",
)];

impl Example for PpDecoder {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "pp_decoder",
            summary: "the layers of a transformer as a pipeline of devices, in micro-batches; both kinds of cores",
            program: Program::Tensors,
            params: PARAMS,
            sizes: TestSizes { whole: LITTLE, little: LITTLE },
            inputs: INPUTS,
            outputs: OUTPUTS,
        }
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
        let (layers, micro) = (params.extent("layers")?, params.extent("micro")?);
        if !shape.attention.batch.get().is_multiple_of(micro.get()) {
            let (micro, batch) = (micro.get(), shape.attention.batch.get());
            return Err(invalid!("micro = {micro} does not divide batch = {batch}"));
        }
        let own = member.share("layers", layers)?;
        let contexts = Contexts::new(&shape.attention, params, inputs)?;
        let attention = own.get() * contexts.units(&shape.attention) * TASKS_PER_UNIT;
        let mut stage =
            PipelineStage { layer: words(&shape, contexts.num_blocks), layers: own, micro };
        let others = u64::from(member.rank > 0) + u64::from(member.rank + 1 < member.size);
        let size = GraphSize::streamed(stage.tasks(others).saturating_add(attention));
        let layer = shape.elements(&contexts);
        let elements: Vec<u64> =
            layer.iter().map(|one| one.saturating_mul(own.get() + 1)).collect();
        check_room(device, &elements, &size)?;

        let all = Layers::new(&shape, contexts, (params, inputs), index(layers.get()))?;
        let first = index(own.get()) * member.rank as usize;
        let range = first..first + index(own.get());
        let buffers = PipelineBuffers::new(&all, range.clone(), device)?;
        buffers.fill_args(&mut stage.layer);
        let words = stage.words().collect();
        let check = StageCheck { all, range, buffers, expected: Vec::new() };
        Prepared::new(self.name(), (words, &NAMES), size, Box::new(check))
    }
}

/// All layers. They share the tokens' contexts and, to begin with, the cache; each has weights of its own.
struct Layers {
    shape: DecoderShape,
    layers: Vec<DecoderTensors>,
}

impl Layers {
    fn new(
        shape: &DecoderShape,
        contexts: Contexts,
        (params, inputs): (&Params, &Inputs),
        count: usize,
    ) -> Result<Self, Error> {
        let first = DecoderTensors::new(shape, contexts, params, inputs)?;
        let mut layers = vec![first; count];
        for (number, layer) in layers.iter_mut().enumerate().skip(1) {
            let mut random = Rng::new(params.get("seed"), &std::format!("layer {number}"));
            let weights = shape.weights();
            for ((_, extents), values) in weights.iter().zip(&mut layer.weights) {
                let scale = (3.0 / extents[0] as f32).sqrt();
                values.iter_mut().for_each(|value| *value = random.unit() * scale);
            }
        }
        Ok(Self { shape: *shape, layers })
    }

    /// What comes out of so many layers.
    fn expected_after(&self, layers: usize) -> Vec<Expected> {
        let (hidden, x) = (index(self.shape.hidden.get()), &self.layers[0].x);
        let mut out = vec![Expected::default(); x.len()];
        parallel::rows(&mut out, hidden, |request, out| {
            let x = &x[request * hidden..][..hidden];
            let mut x: Vec<_> = x.iter().map(|x| Rounded::exact(*x)).collect();
            for layer in &self.layers[..layers] {
                x = reference::layer(&self.shape, layer, request, &x);
            }
            out.iter_mut().zip(x).for_each(|(out, x)| *out = x.expected());
        });
        out
    }
}

/// Everything in the memory of the device: of each kind of tensor those of all own layers, one after the other.
struct PipelineBuffers {
    x: DeviceBuffer<f32>,
    norms: DeviceBuffer<f32>,
    weights: [DeviceBuffer<f32>; 5],
    angles: DeviceBuffer<f32>,
    caches: [DeviceBuffer<f32>; 2],
    tables: [DeviceBuffer<i32>; 2],
}

impl PipelineBuffers {
    fn new(
        all: &Layers,
        range: std::ops::Range<usize>,
        device: &Device,
    ) -> Result<Self, DeviceError> {
        let own = &all.layers[range];
        let concatenated = |of: &dyn Fn(&DecoderTensors) -> &Vec<f32>| {
            let values: Vec<f32> = own.iter().flat_map(|layer| of(layer).iter().copied()).collect();
            device.upload(&values)
        };
        let weight = |number: usize| concatenated(&|layer| &layer.weights[number]);
        let first = &all.layers[0];
        Ok(Self {
            x: device.zeroed(first.x.len() * (own.len() + 1))?,
            norms: concatenated(&|layer| &layer.norms)?,
            weights: [weight(0)?, weight(1)?, weight(2)?, weight(3)?, weight(4)?],
            angles: device.upload(&angles(&all.shape))?,
            caches: [concatenated(&|layer| &layer.k)?, concatenated(&|layer| &layer.v)?],
            tables: [device.upload(&first.block_table)?, device.upload(&first.context_lens)?],
        })
    }

    fn fill_args(&self, args: &mut crate::decoder_layer::stream::Args) {
        args.x = self.x.address();
        args.norms = self.norms.address();
        [args.wqkv, args.wo, args.wg, args.wu, args.wd] =
            [0, 1, 2, 3, 4].map(|weight: usize| self.weights[weight].address());
        args.angles = self.angles.address();
        [args.k, args.v] = [0, 1].map(|cache: usize| self.caches[cache].address());
        [args.block_table, args.context_lens] =
            [0, 1].map(|table: usize| self.tables[table].address());
    }
}

/// A stage, and what should come out of it.
struct StageCheck {
    all: Layers,
    /// The layers of this rank.
    range: std::ops::Range<usize>,
    buffers: PipelineBuffers,
    /// Once computed.
    expected: Vec<Expected>,
}

impl StageCheck {
    fn shape(&self) -> [u64; 2] {
        [self.all.shape.attention.batch, self.all.shape.hidden].map(Size::get)
    }

    /// What is after the last layer.
    fn found(&self) -> Result<Vec<f32>, DeviceError> {
        let all = self.buffers.x.read()?;
        Ok(all[all.len() - self.all.layers[0].x.len()..].to_vec())
    }
}

impl Check for StageCheck {
    fn reset(&mut self) -> Result<(), DeviceError> {
        let own = &self.all.layers[self.range.clone()];
        let k: Vec<f32> = own.iter().flat_map(|layer| layer.k.iter().copied()).collect();
        let v: Vec<f32> = own.iter().flat_map(|layer| layer.v.iter().copied()).collect();
        self.buffers.caches[0].write(&k)?;
        self.buffers.caches[1].write(&v)?;
        let mut x = vec![UNWRITTEN; self.buffers.x.len()];
        if self.range.start == 0 {
            x[..self.all.layers[0].x.len()].copy_from_slice(&self.all.layers[0].x);
        }
        self.buffers.x.write(&x)
    }

    fn verify(&mut self) -> Result<Verdict, Error> {
        if self.expected.is_empty() {
            self.expected = self.all.expected_after(self.range.end);
        }
        Ok(compare("out", &self.shape(), &self.found()?, &self.expected))
    }

    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError> {
        Ok(vec![("out", Tensor::f32(self.shape().to_vec(), self.found()?))])
    }
}
