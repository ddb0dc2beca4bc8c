//! The loop: programs from files, tensors on the device, round after round.

use std::string::String;
use std::vec;
use std::vec::Vec;

use pto_host::Session;
use pto_host::stitch::{
    Counters, HostTensor, Inputs, LoadedProgram, ProgramStream, Sequence, SequencePlan, Step,
    StitchError, Stitcher, Tensor,
};
use pto_host::workloads::Workload;
use pto_host::workloads::program::{Format, Program, Role, TensorDescription, TensorLayout};
use pto_host::workloads::tile::DType;

use super::reference::{Problem, Reference};
use super::report::{Report, correlation};
use super::sizes::TrainingSizes;
use super::texts;
use crate::host::job::index;

/// In which layouts the programs were compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layouts {
    /// All row-major.
    Same,
    /// The optimiser takes weights and gradient as tiles (NZ).
    Differ,
}

/// Rounds of programs that share a launch at most.
const ROUNDS_OF_A_LAUNCH: usize = 8;

/// A loop that is on.
pub struct Training {
    sizes: TrainingSizes,
    plan: SequencePlan,
    stitcher: Stitcher,
    stream: ProgramStream,
    programs: [LoadedProgram; 3],
    problem: Problem,
    reference: Reference,
    tensors: TrainingTensors,
    rounds: u64,
    /// The counters after the first round.
    settled: Counters,
}

struct TrainingTensors {
    x: Tensor,
    x_transposed: Tensor,
    target: Tensor,
    count: Tensor,
    losses: Tensor,
    weights: Tensor,
}

fn described(text: &str) -> Result<Program, StitchError> {
    let broken = |what: String| pto_host::workloads::program::ProgramError::Section {
        section: "source",
        at: 0,
        what,
    };
    let workload = Workload::parse(text).map_err(|error| broken(std::format!("{error}")))?;
    let checked = workload.check().map_err(|error| broken(std::format!("{error}")))?;
    Ok(Program::of_workload(&checked)?)
}

/// The programs, each compiled for itself and read from the bytes of its file.
fn programs(sizes: &TrainingSizes, layouts: Layouts) -> Result<[Program; 3], StitchError> {
    let nz = Format::nz(DType::F32.bytes());
    let stored = match nz {
        Format::Tiles { cols, .. } if layouts == Layouts::Differ => Some(u64::from(cols)),
        _ => None,
    };
    let kept = |tensor: &mut TensorDescription| {
        // The losses of earlier rounds stay.
        (tensor.role, tensor.begins_with_zeros) = (Role::Updated, false);
    };
    let between = |tensor: &mut TensorDescription| tensor.role = Role::Temporary;
    let backward = described(&texts::backward(sizes))?.with_tensor("L", kept)?;
    let backward = backward.with_tensor("D", between)?.with_tensor("P", between)?;
    let mut optimiser = described(&texts::optimiser(sizes, stored))?;
    if stored.is_some() {
        for name in ["W", "G"] {
            optimiser = optimiser.with_tensor(name, |tensor| {
                tensor.shape = vec![sizes.inner, sizes.outer];
                tensor.layout = TensorLayout::device().with_format(nz.clone());
            })?;
        }
    }
    let programs = [described(&texts::forward(sizes))?, backward, optimiser];
    for program in &programs {
        // What is loaded came through a file.
        Program::from_bytes(&program.to_bytes())?;
    }
    Ok(programs)
}

impl Training {
    /// Compiles the programs, and puts data and weights onto the device.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn new(
        session: &Session,
        sizes: TrainingSizes,
        layouts: Layouts,
    ) -> Result<Self, StitchError> {
        let stitcher = Stitcher::new(session)?;
        let stream = stitcher.overlapping_stream(3 * ROUNDS_OF_A_LAUNCH)?;
        let programs = programs(&sizes, layouts)?;
        let round = programs.iter().fold(Sequence::new(), |all, one| all.then(Step::new(one)));
        let plan = round.plan();
        let problem = Problem::drawn(&sizes);
        let given = |shape: [u64; 2], values: &[f32]| {
            let tensor = HostTensor::of_f32(&shape, values)?;
            stream.to_device(&tensor, &TensorLayout::device())
        };
        let TrainingSizes { batch, inner, outer, iterations, .. } = sizes;
        let weights = given([inner, outer], &problem.weights)?;
        let tensors = TrainingTensors {
            x: given([batch, inner], &problem.x)?,
            x_transposed: given([inner, batch], &problem.x_transposed(&sizes))?,
            target: given([batch, outer], &problem.target)?,
            count: stream.zeros(DType::I32, &[1, 1], &TensorLayout::device())?,
            losses: stream.zeros(DType::F32, &[iterations, 1], &TensorLayout::device())?,
            weights: stream.to_layout(weights, &plan.initial["W"])?,
        };
        let [forward, backward, optimiser] = programs;
        let programs =
            [stitcher.load(forward)?, stitcher.load(backward)?, stitcher.load(optimiser)?];
        let reference = Reference::new(&sizes, &problem);
        let settled = stitcher.counters();
        Ok(Self {
            sizes,
            plan,
            stitcher,
            stream,
            programs,
            problem,
            reference,
            tensors,
            rounds: 0,
            settled,
        })
    }

    /// What the planner says of a round.
    #[must_use]
    pub const fn plan(&self) -> &SequencePlan {
        &self.plan
    }

    /// The stream, and the weights as they will be after everything that was asked so far.
    #[must_use]
    pub const fn parts(&self) -> (&ProgramStream, &Tensor) {
        (&self.stream, &self.tensors.weights)
    }

    /// Asks for one round. It may not be over when this call returns.
    ///
    /// # Errors
    /// What the stream refuses.
    pub fn round(&mut self) -> Result<(), StitchError> {
        let (stream, [forward, backward, optimiser]) = (&self.stream, &self.programs);
        let tensors = &mut self.tensors;
        let wanted = forward.input_layout("W")?;
        let of_forward = match tensors.weights.has_layout(&wanted) {
            true => None,
            false => Some(stream.converted(&tensors.weights, &wanted)?),
        };
        let weights = of_forward.as_ref().unwrap_or(&tensors.weights);
        let given = Inputs::new().borrow("X", &tensors.x).borrow("W", weights);
        let y = stream.run(forward, given)?.take("Y")?;
        let given = Inputs::new()
            .give("Y", y)
            .borrow("T", &tensors.target)
            .borrow("XT", &tensors.x_transposed)
            .borrow("C", &tensors.count)
            .update("L", &mut tensors.losses);
        let gradient = stream.run(backward, given)?.take("G")?;
        let gradient = stream.to_layout(gradient, &optimiser.input_layout("G")?)?;
        let given = Inputs::new()
            .update("W", &mut tensors.weights)
            .give("G", gradient)
            .update("C", &mut tensors.count)
            .symbol_f32("rate", self.sizes.rate / self.sizes.inner as f32);
        stream.run(optimiser, given)?;
        self.rounds += 1;
        if self.rounds == 1 {
            self.stream.synchronize()?;
            self.settled = self.stitcher.counters();
        }
        Ok(())
    }

    /// Waits for the rounds, and compares what came out with the reference.
    ///
    /// # Errors
    /// A program failed.
    pub fn finish(mut self) -> Result<Report, StitchError> {
        self.stream.synchronize()?;
        let settled = self.settled;
        let used = self.stitcher.counters().since(&settled);
        let read = |tensor: &Tensor| -> Result<Vec<f32>, StitchError> {
            Ok(self.stream.to_host(tensor)?.to_f32().unwrap_or_default())
        };
        let mut losses = read(&self.tensors.losses)?;
        losses.truncate(index(self.rounds));
        let weights = read(&self.tensors.weights)?;
        (0..self.rounds).for_each(|_| self.reference.round());
        let expected = self.reference.weights(&self.problem);
        let start = self.problem.weights.iter().map(|weight| f64::from(*weight));
        let change = |after: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
            after.zip(start.clone()).map(|(after, before)| after - before).collect()
        };
        let moved = change(&mut weights.iter().map(|weight| f64::from(*weight)));
        let expected_move = change(&mut expected.iter().copied());
        let wide = |values: &[f32]| values.iter().map(|one| f64::from(*one)).collect::<Vec<_>>();
        Ok(Report {
            rounds: self.rounds,
            weight_bytes: 4 * self.sizes.inner * self.sizes.outer,
            pcc_weights: correlation(&wide(&weights), &expected),
            pcc_change: correlation(&moved, &expected_move),
            pcc_losses: correlation(&wide(&losses), self.reference.losses()),
            losses,
            first: settled,
            rest: used,
            planned_bytes: self.plan.bytes_each_round(),
            planned: self.plan.conversions.iter().map(|one| one.why.clone()).collect(),
        })
    }
}
