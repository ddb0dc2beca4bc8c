//! The streaming runtime end to end: build and run, with kernels that do nothing, on one OS thread.
//!
//! Two programs. The *ring*: each task reads one of 64 tensors and updates another one, so that it waits for two earlier
//! tasks (one wrote what it reads, one has read what it writes); with derived edges, with the same edges given by the
//! program, and as a graph of `aicpu_build_graph`. The *layer*: 64 tasks from an input through temporaries to an output;
//! submitted again and again, or recorded once and replayed.

use std::time::{Duration, Instant};

use pto_abi::{CoreKind, Fault, GmAddr, TaskId};
use pto_aicore_kernels::func;
use pto_check::run_memory::LAYER;
use pto_graph::{
    Arg, Bindings, BuildError, DependencyMode, ElementType, GraphBuilder, StreamBuilder, TaskSpec,
    TensorTask, TensorView, builder_set,
};
use pto_host::{Capacities, Device, DeviceOptions, KernelTimes, RunOptions, Work};
use serde::Serialize;

use crate::device;
use crate::runner::Error;
use crate::runner::pto::pool;

/// How a task of the streaming benchmark comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SubmitMethod {
    /// The ring, edges derived.
    Derived,
    /// The ring, edges from the program, in a manual scope.
    Explicit,
    /// The ring under `aicpu_build_graph`.
    Graph,
    /// The layer, edges derived.
    Submitted,
    /// The layer, recorded once.
    Replayed,
}

impl SubmitMethod {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Derived, Self::Explicit, Self::Graph, Self::Submitted, Self::Replayed];

    /// Its name, which is that of the program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Derived => "derived",
            Self::Explicit => "explicit",
            Self::Graph => "graph",
            Self::Submitted => "submitted",
            Self::Replayed => "replayed",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.name() == name)
    }
}

builder_set! {
    struct StreamPrograms { "graph" => graph }
    stream {
        "derived" => derived,
        "explicit" => explicit,
        "submitted" => submitted,
        "replayed" => replayed,
    }
}

/// Tensors of the ring.
const RING: u64 = SLOTS as u64;
const SLOTS: usize = 64;
/// How far ahead a task of the ring reads.
const AHEAD: u64 = 17;
/// Bytes of each tensor.
const BYTES: u64 = 4096;

fn words<G: GraphBuilder>(graph: &G) -> Result<(u64, GmAddr), BuildError> {
    let [tasks, base] = graph.orch_args() else { return Err(BuildError::Failed(1)) };
    Ok((*tasks, GmAddr(*base)))
}

fn tensor(base: GmAddr, number: u64) -> TensorView<'static> {
    TensorView::dense(base.offset(number % RING * BYTES), ElementType::F32, &[32, 32])
}

fn derived<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let (tasks, base) = words(stream)?;
    for number in 0..tasks {
        let (source, target) = (tensor(base, number + AHEAD), tensor(base, number));
        let args = [Arg::In(&source), Arg::InOut(&target)];
        stream.submit_tensors(&TensorTask::new(func::EMPTY_AIV, CoreKind::AIV, &args))?;
    }
    Ok(())
}

/// The last tasks, to name producers by.
struct Last([TaskId; SLOTS]);

fn slot(number: u64) -> usize {
    usize::try_from(number % RING).unwrap_or(0)
}

impl Last {
    fn before(&self, number: u64, distance: u64) -> TaskId {
        self.0[slot(number - distance)]
    }

    fn put(&mut self, number: u64, id: TaskId) {
        self.0[slot(number)] = id;
    }

    /// What the derivation finds for task `number`.
    fn producers(&self, number: u64) -> impl Iterator<Item = TaskId> {
        let distances = [RING - AHEAD, AHEAD];
        distances.into_iter().filter(move |d| *d <= number).map(move |d| self.before(number, d))
    }
}

fn explicit<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let (tasks, base) = words(stream)?;
    let mut last = Last([TaskId::NONE; SLOTS]);
    stream.scope(DependencyMode::MANUAL, |stream| {
        for number in 0..tasks {
            let (source, target) = (tensor(base, number + AHEAD), tensor(base, number));
            let args = [Arg::In(&source), Arg::InOut(&target)];
            let mut after = [TaskId::NONE; 2];
            let mut count = 0;
            for (entry, producer) in after.iter_mut().zip(last.producers(number)) {
                *entry = producer;
                count += 1;
            }
            let task = TensorTask::new(func::EMPTY_AIV, CoreKind::AIV, &args);
            let id = stream.submit_tensors(&TensorTask { after: &after[..count], ..task })?;
            last.put(number, id);
        }
        Ok(())
    })
}

fn graph<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let (tasks, base) = words(graph)?;
    let mut last = Last([TaskId::NONE; SLOTS]);
    for number in 0..tasks {
        let words = [number + AHEAD, number].map(|number| base.offset(number % RING * BYTES).0);
        let id = graph.add_task(TaskSpec::new(func::EMPTY_AIV, CoreKind::AIV, &words))?;
        for producer in last.producers(number) {
            graph.add_edge(producer, id)?;
        }
        graph.publish(id)?;
        last.put(number, id);
    }
    Ok(())
}

/// One layer of tasks with two tensors.
fn layer<G: StreamBuilder>(
    stream: &mut G,
    input: &TensorView<'_>,
    output: &TensorView<'_>,
) -> Result<(), Fault> {
    pto_check::run_memory::layer::<2, G>(stream, func::EMPTY_AIV, input, output)
}

fn submitted<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let (tasks, base) = words(stream)?;
    for number in 0..tasks / LAYER as u64 {
        layer(stream, &tensor(base, number), &tensor(base, number + 1))?;
    }
    Ok(())
}

fn replayed<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let (tasks, base) = words(stream)?;
    let shapes = [tensor(base, 0); 2];
    let recording = stream
        .record(&shapes, |stream, bound| layer(stream, &bound.tensor(0), &bound.tensor(1)))?;
    for number in 0..tasks / LAYER as u64 {
        let tensors = [tensor(base, number), tensor(base, number + 1)];
        stream.replay(&recording, &Bindings { tensors: &tensors, scalars: &[] })?;
    }
    Ok(())
}

/// A device for them.
#[derive(Debug)]
pub struct StreamBench {
    device: Device,
}

impl StreamBench {
    /// Opens it: a full die, one OS thread.
    ///
    /// # Errors
    /// Those of [`Device::open_sim`].
    pub fn open() -> Result<Self, Error> {
        let options = DeviceOptions { aic: 24, aiv: 48, gm_bytes: 4 << 30, hosting: pool(1) };
        let mut device = device::open(options, StreamPrograms)?;
        device.register_library()?;
        Ok(Self { device })
    }

    /// Builds and runs so many tasks; how long that took.
    ///
    /// # Errors
    /// Those of the device.
    pub fn run(&mut self, way: SubmitMethod, tasks: u32) -> Result<Duration, Error> {
        let tensors = self.device.zeroed::<u8>(usize::try_from(RING * BYTES).unwrap_or(0))?;
        let orch_args = [tasks.into(), tensors.address().0];
        let builder = way.name();
        let mut options = RunOptions { kernel_times: KernelTimes::Skip, ..RunOptions::default() };
        let work = match way {
            SubmitMethod::Graph => {
                let (arg_words, edges) = (2 * u64::from(tasks), 2 * u64::from(tasks));
                options.capacities =
                    Capacities { tasks, arg_words, edges, ..Capacities::default() };
                Work::AicpuBuilder { builder, orch_args: &orch_args }
            }
            _ => Work::Stream { builder, orch_args: &orch_args },
        };
        let start = Instant::now();
        self.device.run(work, &options)?;
        Ok(start.elapsed())
    }
}

/// ns a task of each way, the best of some runs in turn.
///
/// # Errors
/// Those of the device.
pub fn measure(tasks: u32, runs: u32) -> Result<Vec<(SubmitMethod, f64)>, Error> {
    let mut bench = StreamBench::open()?;
    let mut best = [Duration::MAX; SubmitMethod::ALL.len()];
    for _ in 0..runs {
        for (way, best) in SubmitMethod::ALL.into_iter().zip(&mut best) {
            *best = bench.run(way, tasks)?.min(*best);
        }
    }
    let each = |best: Duration| best.as_secs_f64() * 1e9 / f64::from(tasks);
    Ok(SubmitMethod::ALL.into_iter().zip(best.map(each)).collect())
}

#[cfg(test)]
mod tests {
    use super::measure;

    #[test]
    fn every_way_runs() {
        let figures = measure(6400, 1).unwrap();
        assert!(figures.iter().all(|(_, ns)| *ns > 0.0));
    }
}
