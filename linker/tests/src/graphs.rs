//! Graphs of known shape, from the image's own builders: recorded here, to be sent as a graph image, to know
//! the edges, and to know the results.

use bytemuck::bytes_of;
use pto_abi::fault::Fault;
use pto_abi::image::{Checksum, GraphHeader, ImageTask};
use pto_abi::kinds::GraphFlags;
use pto_abi::{GmAddr, RuntimeVariant, TaskId};
use pto_aicore_kernels::dag_value;
use pto_graph::{BuildError, EdgeOutcome, GraphBuilder, TaskSpec};
use pto_virt_platform::builders;

/// A graph of the test image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each task waits for the one before.
    Chain(u64),
    /// No task waits.
    Independent(u64),
    /// Width, stages.
    ForkJoin(u64, u64),
    /// Columns, rows.
    Wavefront(u64, u64),
    /// Tasks with two tensors each, and how many tensors there are: the streaming runtime's.
    Tensors(u64, u64),
}

impl Shape {
    /// The builder's name.
    #[must_use]
    pub const fn builder(self) -> &'static str {
        match self {
            Self::Chain(_) => "chain",
            Self::Independent(_) => "independent",
            Self::ForkJoin(..) => "fork_join",
            Self::Wavefront(..) => "wavefront",
            Self::Tensors(..) => "tensors",
        }
    }

    /// Its last two orchestration words.
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        match self {
            Self::Chain(tasks) | Self::Independent(tasks) => [tasks, 0],
            Self::ForkJoin(width, stages) => [width, stages],
            Self::Wavefront(columns, rows) => [columns, rows],
            Self::Tensors(tasks, live) => [tasks, live],
        }
    }

    /// Which runtime runs it, where it is not said.
    #[must_use]
    pub const fn variant(self) -> RuntimeVariant {
        match self {
            Self::Tensors(..) => RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
            _ => RuntimeVariant::AICPU_BUILD_GRAPH,
        }
    }

    /// Runs the builder here.
    ///
    /// # Errors
    /// The builder's.
    pub fn record(self, words: &[u64]) -> Result<Recorder, BuildError> {
        let mut recorder = Recorder { words: words.to_vec(), ..Recorder::default() };
        match self {
            Self::Chain(_) => builders::chain(&mut recorder)?,
            // Its edges are the firmware's to find.
            Self::Independent(_) | Self::Tensors(..) => builders::independent(&mut recorder)?,
            Self::ForkJoin(..) => builders::fork_join(&mut recorder)?,
            Self::Wavefront(..) => builders::wavefront(&mut recorder)?,
        }
        Ok(recorder)
    }
}

/// Records tasks and edges.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    words: Vec<u64>,
    records: Vec<ImageTask>,
    args: Vec<u64>,
    producers: Vec<u32>,
}

impl Recorder {
    /// How many tasks.
    #[must_use]
    pub const fn tasks(&self) -> usize {
        self.records.len()
    }

    /// The producers of all tasks, one task's after the other's: the table that the tasks read.
    #[must_use]
    pub fn producers(&self) -> &[u32] {
        &self.producers
    }

    /// What each task must leave behind.
    #[must_use]
    pub fn values(&self, seed: u64) -> Vec<u64> {
        let mut values: Vec<u64> = Vec::with_capacity(self.records.len());
        for (index, record) in self.records.iter().enumerate() {
            let first = record.first_edge as usize;
            let producers = &self.producers[first..first + record.edge_count as usize];
            let inputs = producers.iter().map(|producer| values[*producer as usize]);
            let value = dag_value(seed, index as u64, inputs);
            values.push(value);
        }
        values
    }

    /// The graph image.
    #[must_use]
    pub fn image(&self) -> Vec<u8> {
        let count = |length: usize| length as u64;
        let (edges, words) = (count(self.producers.len()), count(self.args.len()));
        let task_count = u32::try_from(self.records.len()).expect("test graphs are small");
        let flags = GraphFlags::TOPOLOGICAL;
        let mut header = GraphHeader::new(flags, task_count, edges, words);
        let mut body = Vec::new();
        body.extend_from_slice(bytemuck::cast_slice(&self.records));
        body.extend_from_slice(bytemuck::cast_slice(&self.producers));
        let args_at = header.args_offset - header.tasks_offset;
        body.resize(usize::try_from(args_at).expect("small"), 0);
        body.extend_from_slice(bytemuck::cast_slice(&self.args));
        header.checksum = Checksum::of(&body);
        [bytes_of(&header), &body].concat()
    }
}

impl GraphBuilder for Recorder {
    fn orch_args(&self) -> &[u64] {
        &self.words
    }

    fn add_task(&mut self, task: TaskSpec<'_>) -> Result<TaskId, Fault> {
        let index = |length: usize| u32::try_from(length).map_err(|_| Fault::BUILD_TASKS_FULL);
        let slot = index(self.records.len())?;
        self.records.push(ImageTask {
            kernel: task.kernel.0,
            first_arg: index(self.args.len())?,
            first_edge: index(self.producers.len())?,
            edge_count: 0,
            func_id: task.func_id.0,
            arg_count: u8::try_from(task.args.len()).map_err(|_| Fault::BUILD_TOO_MANY_ARGS)?,
            kind: task.kind.get(),
        });
        self.args.extend_from_slice(task.args);
        Ok(TaskId { slot, generation: 1 })
    }

    fn add_edge(&mut self, producer: TaskId, _: TaskId) -> Result<EdgeOutcome, Fault> {
        self.producers.push(producer.slot);
        self.records.last_mut().ok_or(Fault::BUILD_UNKNOWN_TASK)?.edge_count += 1;
        Ok(EdgeOutcome::Added)
    }

    fn publish(&mut self, _: TaskId) -> Result<(), Fault> {
        Ok(())
    }

    fn read_u32(&self, _: GmAddr) -> Result<u32, Fault> {
        Err(Fault::BUILD_GM_RANGE)
    }
}
