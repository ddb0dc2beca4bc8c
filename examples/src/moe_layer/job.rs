//! The host side of `moe_layer`.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use pto_abi::CoreKind;
use pto_aicore_kernels::func;
use pto_host::{Device, DeviceBuffer, Error as DeviceError};

use crate::args::Size;
use crate::host::check::{Expected, UNWRITTEN, Verdict, compare, compare_counts};
use crate::host::job::{Check, GraphSize, Prepared, check_room, index};
use crate::host::rounding::Rounded;
use crate::host::{
    Error, Example, ExampleDescription, Inputs, ParamSpec, Params, Program, Tensor, TensorSpec,
    TestSizes,
};
use crate::moe_layer::inputs::{MoeShape, MoeTensors};
use crate::moe_layer::reference::{judge, logits, output};
use crate::moe_layer::stream::Args;
use crate::streaming::LINE;

/// See [`crate::moe_layer`].
pub struct MoeLayer;

const fn size(name: &'static str, default: u64, help: &'static str) -> ParamSpec {
    ParamSpec { name, default, min: 1, max: 1 << 16, help }
}

pub(crate) static PARAMS: &[ParamSpec] = &[
    size("tokens", 16, "tokens"),
    size("hidden", 512, "elements of a token"),
    size("intermediate", 512, "elements between the projections of an expert"),
    size("experts", 32, "experts"),
    size("top_k", 2, "experts of a token; at most as many as there are"),
    size("tile_n", 128, "columns of a tile of a product"),
    ParamSpec::seed("of the random inputs"),
];

const TOKENS: &[&str] = &["tokens", "hidden"];
const UP: &[&str] = &["experts", "hidden", "intermediate"];

pub(crate) static INPUTS: &[TensorSpec] = &[
    TensorSpec::f32("x", TOKENS, "the tokens"),
    TensorSpec::f32(
        "router",
        &["hidden", "experts"],
        "what the logits of the experts are projected with",
    ),
    TensorSpec::f32("wg", UP, "gates"),
    TensorSpec::f32("wu", UP, "up projections"),
    TensorSpec::f32("wd", &["experts", "intermediate", "hidden"], "down projections"),
];

pub(crate) static OUTPUTS: &[TensorSpec] = &[
    TensorSpec::f32("out", TOKENS, "the tokens, and what their experts make of them"),
    TensorSpec::i32("choices", &["tokens", "top_k"], "the experts of each token"),
    TensorSpec::i32("ran", &["experts"], "whether an expert ran: 1, or 0"),
];

impl Example for MoeLayer {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "moe_layer",
            summary: "a mixture of experts, of which those without tokens do not run; both kinds of cores",
            program: Program::Tensors,
            params: PARAMS,
            sizes: TestSizes {
                whole: &[
                    ("tokens", "11"),
                    ("hidden", "60"),
                    ("intermediate", "72"),
                    ("experts", "16"),
                    ("top_k", "2"),
                    ("tile_n", "32"),
                ],
                little: &[
                    ("tokens", "5"),
                    ("hidden", "24"),
                    ("intermediate", "20"),
                    ("experts", "8"),
                    ("top_k", "2"),
                    ("tile_n", "16"),
                ],
            },
            inputs: INPUTS,
            outputs: OUTPUTS,
        }
    }

    fn prepare(
        &self,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        let shape = MoeShape::new(params)?;
        let mut args = Args { chained: chained(device, &shape), ..shape.args() };
        let size = GraphSize::streamed(args.tasks());
        check_room(device, &shape.elements(), &size)?;
        let tensors = MoeTensors::new(&shape, params.get("seed"), inputs);
        let buffers = MoeBuffers::new(&shape, &tensors, device)?;
        buffers.fill_args(&mut args);
        let logits = logits(&shape, &tensors);
        let words = args.words().to_vec();
        let check = ExpertsCheck { shape, tensors, logits, buffers, expected: None };
        Prepared::new(self.name(), (words, &Args::NAMES), size, Box::new(check))
    }
}

/// Nanoseconds that a chain of first products may take: a longer one keeps other cores waiting.
const CHAIN_NS: u64 = 50_000;

/// How many tiles of a product a chain has: so many that each cube core gets about one chain of the experts that have tokens, but no more than fit
/// [`CHAIN_NS`]. The chains of an expert are of about one length.
pub(crate) fn chained(device: &Device, shape: &MoeShape) -> Size {
    let [tokens, hidden, inner] = [shape.tokens, shape.hidden, shape.intermediate].map(Size::get);
    let [experts, top_k, tile] = [shape.experts, shape.top_k, shape.tile_n].map(Size::get);
    let words = [0, 0, 0, 0, tile.min(inner), hidden, hidden, inner, inner];
    let product = device.expected_kernel_ns(func::MOE_MATMUL, &words);
    let cores = u64::from(device.cores(CoreKind::AIC)).max(1);
    let (tiles, experts) = (inner.div_ceil(tile), experts.min(tokens * top_k));
    let of_a_core = (experts * tiles).div_ceil(cores).min(tiles);
    // One of `gate` and one of `up` for each tile.
    let fit = CHAIN_NS.checked_div(2 * product).unwrap_or(of_a_core).max(1);
    let chains = tiles.div_ceil(of_a_core.min(fit));
    Size::new(tiles.div_ceil(chains)).unwrap_or(Size::ONE)
}

/// Everything in the memory of the device.
pub(crate) struct MoeBuffers {
    /// x, router, gates, up and down projections.
    inputs: [DeviceBuffer<f32>; 5],
    out: DeviceBuffer<f32>,
    weights: DeviceBuffer<f32>,
    choices: DeviceBuffer<i32>,
    counts: DeviceBuffer<i32>,
    ran: DeviceBuffer<i32>,
}

impl MoeBuffers {
    pub(crate) fn new(
        shape: &MoeShape,
        tensors: &MoeTensors,
        device: &Device,
    ) -> Result<Self, DeviceError> {
        let MoeTensors { x, router, wg, wu, wd } = tensors;
        let [_, _, _, choices, marks] = shape.counts().map(index);
        Ok(Self {
            inputs: [
                device.upload(x)?,
                device.upload(router)?,
                device.upload(wg)?,
                device.upload(wu)?,
                device.upload(wd)?,
            ],
            out: device.zeroed(x.len())?,
            weights: device.zeroed(choices)?,
            choices: device.zeroed(choices)?,
            counts: device.zeroed(marks)?,
            ran: device.zeroed(marks)?,
        })
    }

    pub(crate) fn fill_args(&self, args: &mut Args) {
        [args.x, args.router, args.wg, args.wu, args.wd] =
            [0, 1, 2, 3, 4].map(|input: usize| self.inputs[input].address());
        args.out = self.out.address();
        args.weights = self.weights.address();
        args.choices = self.choices.address();
        args.counts = self.counts.address();
        args.ran = self.ran.address();
    }
}

/// The layer, and what its result should be.
pub(crate) struct ExpertsCheck {
    pub(crate) shape: MoeShape,
    pub(crate) tensors: MoeTensors,
    pub(crate) logits: Vec<Vec<Rounded>>,
    pub(crate) buffers: MoeBuffers,
    /// The output for these choices, once computed.
    pub(crate) expected: Option<(Vec<i32>, Vec<Expected>)>,
}

impl ExpertsCheck {
    /// The first element of each line.
    fn marks(buffer: &DeviceBuffer<i32>) -> Result<Vec<i32>, DeviceError> {
        Ok(buffer.read()?.into_iter().step_by(index(LINE)).collect())
    }

    /// How many tokens chose each expert: at least, and at most, so many.
    fn counts(&self, choices: &[i32]) -> Vec<(i32, i32)> {
        let of = |expert: u64| choices.iter().filter(|c| u64::try_from(**c) == Ok(expert)).count();
        let count = |expert| i32::try_from(of(expert)).unwrap_or(i32::MAX);
        (0..self.shape.experts.get()).map(|expert| (count(expert), count(expert))).collect()
    }
}

impl Check for ExpertsCheck {
    fn reset(&mut self) -> Result<(), DeviceError> {
        let MoeBuffers { out, weights, choices, counts, ran, .. } = &mut self.buffers;
        out.write(&vec![UNWRITTEN; out.len()])?;
        weights.write(&vec![UNWRITTEN; weights.len()])?;
        choices.write(&vec![-1; choices.len()])?;
        counts.write(&vec![-1; counts.len()])?;
        ran.write(&vec![0; ran.len()])
    }

    fn verify(&mut self) -> Result<Verdict, Error> {
        let choices = self.buffers.choices.read()?;
        let routed = judge(&self.shape, &self.logits, &choices);
        if !routed.passed() {
            return Ok(routed);
        }
        let counts = self.counts(&choices);
        let runs: Vec<_> =
            counts.iter().map(|(count, _)| (*count).min(1)).map(|n| (n, n)).collect();
        let listed = compare_counts("counts", &Self::marks(&self.buffers.counts)?, &counts);
        let ran = compare_counts("ran", &Self::marks(&self.buffers.ran)?, &runs);
        if self.expected.as_ref().is_none_or(|(known, _)| *known != choices) {
            let expected = output(&self.shape, &self.tensors, &self.logits, &choices);
            self.expected = Some((choices, expected));
        }
        let expected = self.expected.as_ref().map_or(&[][..], |(_, expected)| expected);
        let shape = [self.shape.tokens, self.shape.hidden].map(Size::get);
        let out = compare("out", &shape, &self.buffers.out.read()?, expected);
        Ok(out.and(routed).and(listed).and(ran))
    }

    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError> {
        let [tokens, hidden, experts, top_k] =
            [self.shape.tokens, self.shape.hidden, self.shape.experts, self.shape.top_k]
                .map(Size::get);
        Ok(vec![
            ("out", Tensor::f32(vec![tokens, hidden], self.buffers.out.read()?)),
            ("choices", Tensor::i32(vec![tokens, top_k], self.buffers.choices.read()?)),
            ("ran", Tensor::i32(vec![experts], Self::marks(&self.buffers.ran)?)),
        ])
    }
}
