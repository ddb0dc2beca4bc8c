//! The host side of `dp_training`. Every rank draws all samples, and keeps its share; every rank has all weights, and checks them.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use pto_host::{Device, DeviceBuffer, Error as DeviceError};

use crate::args::{Size, tiles};
use crate::dp_training::stream::Args;
use crate::host::check::{Expected, Verdict, compare};
use crate::host::job::{Check, GraphSize, Prepared, check_room, index};
use crate::host::random::Rng;
use crate::host::rounding::{Rounded, sum};
use crate::host::{
    Error, Example, ExampleDescription, GroupRank, Inputs, ParamSpec, Params, Program, Tensor,
    TensorSpec, TestSizes, for_groups,
};

/// See [`crate::dp_training`].
pub struct DpTraining;

/// The part of the gradient that a step goes down. Samples have a variance of a third, and so this rate is a third of what is stable.
const RATE: f64 = 1.0;

static PARAMS: &[ParamSpec] = &[
    ParamSpec::extent("samples", 128, "samples, which the ranks share equally"),
    ParamSpec::extent("inputs", 64, "elements of a sample"),
    ParamSpec::extent("outputs", 64, "elements of a result"),
    ParamSpec::extent("tile", 16, "columns of a tile of the weights"),
    ParamSpec::extent("steps", 3, "steps"),
    ParamSpec::seed("of the random samples, targets and weights"),
];

static INPUTS: &[TensorSpec] = &[
    TensorSpec::f32("x", &["samples", "inputs"], "the samples"),
    TensorSpec::f32("t", &["samples", "outputs"], "what the model is to give for them"),
    TensorSpec::f32("w", &["inputs", "outputs"], "the weights before the first step"),
];

static OUTPUTS: &[TensorSpec] =
    &[TensorSpec::f32("w", &["inputs", "outputs"], "the weights after the last step")];

const LITTLE: &[(&str, &str)] =
    &[("samples", "24"), ("inputs", "10"), ("outputs", "14"), ("tile", "4"), ("steps", "2")];

impl Example for DpTraining {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "dp_training",
            summary: "steps of gradient descent on devices that share the samples; both kinds of cores",
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
        let sizes = ["samples", "inputs", "outputs", "tile"].map(|name| params.extent(name));
        let [samples, width, outputs, tile] = sizes;
        let (samples, width, outputs, tile) = (samples?, width?, outputs?, tile?);
        let own = member.share("samples", samples)?;
        let null = pto_abi::GmAddr::NULL;
        let mut args = Args {
            x: null,
            scaled: null,
            minus: null,
            w: null,
            samples: own,
            inputs: width,
            outputs,
            tile,
            steps: params.extent("steps")?,
        };
        let size = GraphSize::streamed(args.tasks(member.size));
        let x = own.get() * width.get();
        check_room(device, &[x, x, own.get() * outputs.get(), width.get() * outputs.get()], &size)?;
        let model = TrainingData::new((samples, &args), params.get("seed"), inputs);
        let first = member.rank as usize * index(own.get());
        let share = first..first + index(own.get());
        let [x, scaled, minus] = model.share(share).map(|values| device.upload(&values));
        let w = device.zeroed::<f32>(model.w.len())?;
        let (x, scaled, minus) = (x?, scaled?, minus?);
        [args.x, args.scaled, args.minus, args.w] = [&x, &scaled, &minus, &w].map(|b| b.address());
        let words = args.words().to_vec();
        let check = WeightsCheck { model, w, _share: [x, scaled, minus], expected: Vec::new() };
        Prepared::new(self.name(), (words, &Args::NAMES), size, Box::new(check))
    }
}

/// All samples and targets, and the weights to begin with, row by row.
struct TrainingData {
    x: Vec<f32>,
    /// `x` times minus the rate, over the number of samples.
    scaled: Vec<f32>,
    minus: Vec<f32>,
    w: Vec<f32>,
    inputs: usize,
    outputs: usize,
    tile: Size,
    steps: u64,
}

impl TrainingData {
    #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
    fn new((samples, args): (Size, &Args), seed: u64, given: &Inputs) -> Self {
        let [samples, inputs, outputs] =
            [samples, args.inputs, args.outputs].map(|size| index(size.get()));
        let drawn = |name: &str, count: usize| match given.f32(name) {
            Some(values) => values.to_vec(),
            None => Rng::new(seed, name).units(count),
        };
        let x = drawn("x", samples * inputs);
        let scale = (-RATE / samples as f64) as f32;
        let minus = drawn("t", samples * outputs).into_iter().map(|target| -target);
        Self {
            scaled: x.iter().map(|x| x * scale).collect(),
            minus: minus.collect(),
            w: drawn("w", inputs * outputs),
            x,
            inputs,
            outputs,
            tile: args.tile,
            steps: args.steps.get(),
        }
    }

    /// What one rank has: samples, the transposed and scaled ones, and minus the targets.
    fn share(&self, samples: std::ops::Range<usize>) -> [Vec<f32>; 3] {
        let rows =
            |of: &[f32], width: usize| of[samples.start * width..samples.end * width].to_vec();
        let scaled = |input: usize| {
            let rows = samples.clone();
            rows.map(move |sample| self.scaled[sample * self.inputs + input])
        };
        let transposed = (0..self.inputs).flat_map(scaled).collect();
        [rows(&self.x, self.inputs), transposed, rows(&self.minus, self.outputs)]
    }

    /// The index of an element of the weights in the tiles.
    fn tile_index(&self, input: usize, output: usize) -> usize {
        let mut all = tiles(self.outputs as u64, self.tile.non_zero());
        let of = all.find(|(start, length)| (output as u64) < start + length);
        let (start, length) = of.map_or((0, 1), |(start, length)| (index(start), index(length)));
        start * self.inputs + input * length + output - start
    }

    /// The weights in the order of the device, from those in rows; or back.
    fn moved(&self, from: &[f32], is_to_device: bool) -> Vec<f32> {
        let mut moved = vec![0.0; from.len()];
        for (input, output) in (0..self.inputs).flat_map(|i| (0..self.outputs).map(move |o| (i, o)))
        {
            let (row, tile) = (input * self.outputs + output, self.tile_index(input, output));
            let (target, source) = if is_to_device { (tile, row) } else { (row, tile) };
            moved[target] = from[source];
        }
        moved
    }

    /// The weights after the last step.
    fn trained(&self) -> Vec<Expected> {
        let mut w: Vec<Rounded> = self.w.iter().map(|w| Rounded::exact(*w)).collect();
        for _ in 0..self.steps {
            let errors: Vec<Rounded> = self
                .x
                .chunks(self.inputs)
                .zip(self.minus.chunks(self.outputs))
                .flat_map(|(x, minus)| self.error(&w, x, minus))
                .collect();
            for (at, w) in w.iter_mut().enumerate() {
                let (input, output) = (at / self.outputs, at % self.outputs);
                let change = self.scaled.chunks(self.inputs).zip(errors.chunks(self.outputs));
                *w = *w + sum(change.map(|(x, error)| Rounded::exact(x[input]) * error[output]));
            }
        }
        w.into_iter().map(Rounded::expected).collect()
    }

    /// How far the result for one sample is from its target.
    fn error(&self, w: &[Rounded], x: &[f32], minus: &[f32]) -> Vec<Rounded> {
        let result = |output: usize| {
            let terms = x
                .iter()
                .enumerate()
                .map(|(input, x)| Rounded::exact(*x) * w[input * self.outputs + output]);
            sum(terms) + Rounded::exact(minus[output])
        };
        (0..self.outputs).map(result).collect()
    }
}

/// The weights, which are overwritten, and what they should be.
struct WeightsCheck {
    model: TrainingData,
    w: DeviceBuffer<f32>,
    /// What the tasks read.
    _share: [DeviceBuffer<f32>; 3],
    /// Once computed.
    expected: Vec<Expected>,
}

impl WeightsCheck {
    fn shape(&self) -> [u64; 2] {
        [self.model.inputs, self.model.outputs].map(|extent| extent as u64)
    }

    fn found(&self) -> Result<Vec<f32>, DeviceError> {
        Ok(self.model.moved(&self.w.read()?, false))
    }
}

impl Check for WeightsCheck {
    fn reset(&mut self) -> Result<(), DeviceError> {
        self.w.write(&self.model.moved(&self.model.w, true))
    }

    fn verify(&mut self) -> Result<Verdict, Error> {
        if self.expected.is_empty() {
            self.expected = self.model.trained();
        }
        Ok(compare("w", &self.shape(), &self.found()?, &self.expected))
    }

    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError> {
        Ok(vec![("w", Tensor::f32(self.shape().to_vec(), self.found()?))])
    }
}
