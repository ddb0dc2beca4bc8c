//! Graphs of known pattern, from the image's own builders: built here, to be sent as a graph image, to know the edges, and to know the
//! results.

use pto_abi::RuntimeVariant;
use pto_abi::kinds::GraphFlags;
use pto_aicore_kernels::dag_value;
use pto_firmware::qemu::builders;
use pto_graph::{BuildError, GraphParts, SubmittedGraph};

/// A graph of the test image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Each task waits for the one before.
    Chain(u64),
    /// No task waits.
    Independent(u64),
    /// Width, stages.
    ForkJoin(u64, u64),
    /// Columns, rows.
    Wavefront(u64, u64),
    /// Columns, rows, and for how many neighbours in the row before a task waits; each row is a range.
    Rows(u64, u64, u64),
    /// Columns, and rows, in which each task waits for the one above it, as a list says; each row is a range.
    Listed(u64, u64),
    /// Tasks, words of each, kernels of a link of a chain (none: the tasks are no chains), and links.
    Words(u64, u64, u64, u64),
    /// The same of chains of a template, and whether each is made anew.
    Templates(u64, u64, u64, u64, bool),
    /// Tasks with two tensors each, and how many tensors there are: the streaming runtime's.
    Tensors(u64, u64),
    /// Tasks with two tiles each, in rows of eight, submitted one by one or each row at once.
    Tiles(u64, Submission),
    /// Tasks on tiles, each followed by a chain on tiles that it and others have changed: so many of both.
    TileChains(u64),
    /// The same on tiles that stand one after the other.
    DenseChains(u64),
    /// No task: the builder looks at what the image's own calls copy and fill.
    Memory,
    /// Tasks of plain words in a streaming run: how many, what they are, and whether each waits for the one before.
    StreamWords(u64, Unit, bool),
}

/// What is submitted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A task of four words.
    Task,
    /// A chain of a link of 16 kernels with nine words, the first of which is another one for each kernel.
    Chain,
    /// Such a chain, of a template.
    Template,
}

/// How the tasks of a range are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Submission {
    /// A call for each task.
    OneByOne,
    /// A call for each range.
    AtOnce,
}

impl Pattern {
    /// The builder's name.
    #[must_use]
    pub(crate) const fn builder(self) -> &'static str {
        match self {
            Self::Chain(_) => "chain",
            Self::Independent(_) => "independent",
            Self::ForkJoin(..) => "fork_join",
            Self::Wavefront(..) => "wavefront",
            Self::Rows(..) | Self::Listed(..) => "rows",
            Self::Words(..) | Self::Templates(..) => "words",
            Self::Tensors(..)
            | Self::Tiles(..)
            | Self::TileChains(_)
            | Self::DenseChains(_)
            | Self::Memory
            | Self::StreamWords(..) => "tensors",
        }
    }

    /// Its last two orchestration words.
    #[must_use]
    pub(crate) const fn words(self) -> [u64; 2] {
        match self {
            Self::Chain(tasks) | Self::Independent(tasks) => [tasks, 0],
            Self::ForkJoin(width, stages) => [width, stages],
            Self::Wavefront(columns, rows) => [columns, rows],
            Self::Rows(columns, rows, near) => [columns | near << 32, rows],
            Self::Listed(columns, rows) => [columns | 1 << 32 | 1 << 63, rows],
            Self::Words(tasks, words, times, links) => [tasks, words | times << 16 | links << 32],
            Self::Templates(tasks, words, times, links, anew) => {
                [tasks, words | times << 16 | links << 32 | (1 + anew as u64) << 48]
            }
            Self::Tensors(tasks, live) => [tasks, live],
            Self::Tiles(tasks, Submission::OneByOne) => [tasks, 1 << 32],
            Self::Tiles(tasks, Submission::AtOnce) => [tasks, 2 << 32],
            Self::TileChains(tasks) => [tasks / 2, 3 << 32],
            Self::DenseChains(tasks) => [tasks / 2, 4 << 32],
            Self::Memory => [0, 12 << 32],
            Self::StreamWords(tasks, unit, in_turn) => {
                let how = match unit {
                    Unit::Chain => 5,
                    Unit::Task => 7,
                    Unit::Template => 9,
                };
                [tasks, (how + in_turn as u64) << 32]
            }
        }
    }

    /// Which runtime runs it, where it is not said.
    #[must_use]
    pub(crate) const fn variant(self) -> RuntimeVariant {
        match self {
            Self::Tensors(..)
            | Self::Tiles(..)
            | Self::TileChains(_)
            | Self::DenseChains(_)
            | Self::Memory
            | Self::StreamWords(..) => RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
            _ => RuntimeVariant::AICPU_BUILD_GRAPH,
        }
    }

    /// Runs the builder here.
    ///
    /// # Errors
    /// The builder's.
    pub(crate) fn build(self, words: &[u64]) -> Result<Graph, BuildError> {
        let mut graph = SubmittedGraph::new(words);
        match self {
            Self::Chain(_) => builders::chain(&mut graph)?,
            // Its edges are the firmware's to find.
            Self::Independent(_)
            | Self::Tensors(..)
            | Self::Tiles(..)
            | Self::TileChains(_)
            | Self::DenseChains(_)
            | Self::Memory
            | Self::StreamWords(..) => {
                builders::independent(&mut graph)?;
            }
            Self::ForkJoin(..) => builders::fork_join(&mut graph)?,
            Self::Wavefront(..) => builders::wavefront(&mut graph)?,
            Self::Rows(..) | Self::Listed(..) => builders::rows(&mut graph)?,
            Self::Words(..) | Self::Templates(..) => builders::words(&mut graph)?,
        }
        let (flags, parts) = graph.finish();
        Ok(Graph { flags, parts })
    }
}

/// A graph that a builder has submitted.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    flags: GraphFlags,
    parts: GraphParts,
}

impl Graph {
    /// How many tasks.
    #[must_use]
    pub(crate) const fn tasks(&self) -> usize {
        self.parts.tasks.len()
    }

    /// The producers of all tasks, one task's after the other's: the table that the tasks read.
    #[must_use]
    pub(crate) fn producers(&self) -> &[u32] {
        &self.parts.producers
    }

    /// What each task must leave in memory.
    #[must_use]
    pub(crate) fn values(&self, seed: u64) -> Vec<u64> {
        let mut values: Vec<u64> = Vec::with_capacity(self.tasks());
        for index in 0..self.tasks() {
            let producers = self.parts.producers_of(index).iter();
            let inputs = producers.map(|producer| values[*producer as usize]);
            let value = dag_value(seed, index as u64, inputs);
            values.push(value);
        }
        values
    }

    /// The graph image.
    #[must_use]
    pub(crate) fn image(&self) -> Vec<u8> {
        self.parts.to_bytes(self.flags)
    }
}
