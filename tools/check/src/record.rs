//! Two ways to record: without running anything, and while a run goes on.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use pto_abi::symbol::symbol;
use pto_abi::{Fault, RuntimeVariant};
use pto_graph::{BuildError, BuilderSet, HostedBuilder, StreamBuilder};

use crate::derive::ample;
use crate::memory_map::Addresses;
use crate::program::Program;
use crate::recorder::Recorder;
use crate::rig::{Cores, Memory, Watch, Words};

/// Why a program was not recorded without running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRecorded {
    /// It waits for what its tasks compute.
    #[error(
        "after {tasks} tasks the program waits for a value that its own tasks compute: it depends on data, and is recorded \
         while it runs"
    )]
    DependsOnData {
        /// Tasks that it had submitted.
        tasks: usize,
    },
    /// It gave up.
    #[error("the program gave up after {tasks} tasks: {error}")]
    GaveUp {
        /// Tasks that it had submitted.
        tasks: usize,
        /// What it said.
        error: BuildError,
    },
}

/// Records a program of `set` for the streaming runtime, without running it: what it reads of the device, it reads from
/// `memory`. It submits at most `most_tasks`.
///
/// # Errors
/// See [`NotRecorded`].
pub fn record<B: BuilderSet, M: Memory>(
    (set, name): (&B, &str),
    orch_args: &[u64],
    most_tasks: usize,
    (cores, memory): (Cores, &M),
) -> Result<Program, NotRecorded> {
    let mut rings =
        ample(&Program::new(name, RuntimeVariant::TENSORMAP_AND_RINGBUFFER), most_tasks);
    loop {
        let mut program = Program::new(name, RuntimeVariant::TENSORMAP_AND_RINGBUFFER);
        let heap = Addresses::of(&program).heap;
        let (words, edges) = (Words::new(&rings), RefCell::new(Vec::new()));
        let built = words.with_stream((cores, heap), orch_args, memory, Watch(&edges), |stream| {
            let mut recorder = Recorder::new(stream, &mut program);
            let built = set.build_stream(symbol(name), &mut recorder);
            built.unwrap_or(Err(Fault::BUILD_NO_BUILDER.into()))
        });
        let tasks = program.tasks.len();
        match built.unwrap_or_else(|fault| Err(fault.into())) {
            Ok(()) => return Ok(program),
            Err(BuildError::Fault(Fault::STREAM_EDGES_RING)) => rings.edge_chunks *= 4,
            Err(BuildError::Fault(Fault::STREAM_ARGS_RING)) => rings.arg_words *= 4,
            Err(BuildError::Fault(Fault::STREAM_MAP_RING)) if rings.map_entries < 1 << 28 => {
                rings.map_entries *= 4;
            }
            Err(BuildError::Fault(Fault::STREAM_WINDOW_RING)) if rings.window < 1 << 25 => {
                rings.window *= 4;
            }
            Err(BuildError::Fault(Fault::STREAM_RECORDING_FULL))
                if rings.recording_words < 1 << 27 =>
            {
                rings.recording_words *= 4;
            }
            Err(BuildError::Fault(Fault::STREAM_WAIT_FOREVER)) => {
                return Err(NotRecorded::DependsOnData { tasks });
            }
            Err(error) => return Err(NotRecorded::GaveUp { tasks, error }),
        }
    }
}

/// The programs of a set, which are recorded while they run.
#[derive(Clone, Debug)]
pub struct Recording<B> {
    set: B,
    program: Arc<Mutex<Program>>,
}

impl<B: BuilderSet> Recording<B> {
    /// Records what one of these programs submits.
    pub fn new(set: B, name: &str, variant: RuntimeVariant) -> Self {
        Self { set, program: Arc::new(Mutex::new(Program::new(name, variant))) }
    }

    /// What was recorded since it was asked last.
    #[must_use]
    pub fn take(&self) -> Program {
        let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = Program::new(program.name.clone(), program.variant);
        let mut taken = std::mem::replace(&mut *program, empty);
        // While a program runs, tensors of the heap take the memory of those before.
        taken.heap.clear();
        taken
    }
}

impl<B: BuilderSet> BuilderSet for Recording<B> {
    const STREAMS: bool = B::STREAMS;

    fn names(&self) -> &[&str] {
        self.set.names()
    }

    fn build<G: HostedBuilder>(
        &self,
        symbol: u64,
        graph: &mut G,
    ) -> Option<Result<(), BuildError>> {
        let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        self.set.build(symbol, &mut Recorder::new(graph, &mut program))
    }

    fn stream_names(&self) -> &[&str] {
        self.set.stream_names()
    }

    fn build_stream<G: StreamBuilder + HostedBuilder>(
        &self,
        symbol: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        self.set.build_stream(symbol, &mut Recorder::new(stream, &mut program))
    }
}
