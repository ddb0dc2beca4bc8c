//! The interface of every graph builder: one builder program serves `host_build_graph` (the host runs it
//! and sends the image) and `aicpu_build_graph` (AICPU instance 0 runs it while the others schedule).

use core::fmt;

use crate::fault::Fault;
use crate::gm::GmWindow;
use crate::ids::{FuncId, GmAddr, TaskId};
use crate::kinds::CoreKind;
use crate::stream::StreamBuilder;

/// A task to be added.
#[derive(Clone, Copy, Debug)]
pub struct TaskSpec<'a> {
    /// Which kernel.
    pub func_id: FuncId,
    /// Which cores it runs on.
    pub kind: CoreKind,
    /// GM addresses and scalars, at most [`MAX_ARGS`](crate::limits::MAX_ARGS) words.
    pub args: &'a [u64],
    /// The kernel's code; [`GmAddr::NULL`]: as registered in `kernel_addrs[func_id]`.
    pub kernel: GmAddr,
}

impl<'a> TaskSpec<'a> {
    /// A task with the registered kernel.
    #[must_use]
    #[inline]
    pub const fn new(func_id: FuncId, kind: CoreKind, args: &'a [u64]) -> Self {
        Self { func_id, kind, args, kernel: GmAddr::NULL }
    }
}

/// What became of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeOutcome {
    /// The consumer waits for the producer.
    Added,
    /// The producer had completed; there is nothing to wait for.
    AlreadySatisfied,
}

/// Why a builder gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// A call of the interface failed.
    Fault(Fault),
    /// The builder's own code, not zero by convention; reported with `BUILD_FAILED`.
    Failed(i32),
}

impl From<Fault> for BuildError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Failed(code) => write!(f, "the builder returned {code}"),
        }
    }
}

impl core::error::Error for BuildError {}

/// Adds tasks and edges, and publishes tasks.
///
/// A task runs once it is published and all producers that it has edges from have completed. Edges *to* a
/// task are added before it is published; edges *from* a task may be added at any time.
pub trait GraphBuilder {
    /// The words that the host marshalled.
    fn orch_args(&self) -> &[u64];

    /// Adds a task, unpublished.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_FUNC`, `BUILD_KERNEL_MISSING`, `BUILD_TOO_MANY_ARGS`, `BUILD_NO_CORE_OF_KIND`,
    /// `BUILD_TASKS_FULL`, `BUILD_PAYLOADS_FULL`.
    fn add_task(&mut self, task: TaskSpec<'_>) -> Result<TaskId, Fault>;

    /// Makes `consumer` wait for `producer`, unless that has completed already.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`, `BUILD_STALE_TASK`, `BUILD_SELF_EDGE`, `BUILD_CONSUMER_PUBLISHED`,
    /// `BUILD_EDGES_FULL`, `BUILD_FANIN_LIMIT`.
    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault>;

    /// Makes a task visible to the schedulers.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`, `BUILD_STALE_TASK`, `BUILD_ALREADY_PUBLISHED`.
    fn publish(&mut self, task: TaskId) -> Result<(), Fault>;

    /// Reads a word of GM, such as an entry of a block table.
    ///
    /// # Errors
    /// `BUILD_GM_RANGE` when the word is not in GM or not aligned to 4 bytes.
    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault>;

    /// The same builder as one of tensors; `None`: the run does not stream.
    fn as_stream(&mut self) -> Option<&mut dyn StreamBuilder> {
        None
    }

    /// The run's arena, where the builder shares memory with the schedulers: builders in C are called with it.
    fn arena(&self) -> Option<GmWindow<'_>> {
        None
    }

    /// Adds a task that waits for `producers`, and publishes it.
    ///
    /// # Errors
    /// Those of [`add_task`](Self::add_task), [`add_edge`](Self::add_edge), [`publish`](Self::publish).
    fn submit(&mut self, task: TaskSpec<'_>, producers: &[TaskId]) -> Result<TaskId, Fault> {
        let id = self.add_task(task)?;
        for &producer in producers {
            self.add_edge(producer, id)?;
        }
        self.publish(id)?;
        Ok(id)
    }
}

/// The builder programs that are linked into a firmware, found by the symbol of their name.
pub trait BuilderSet: Send + Sync + 'static {
    /// Whether the firmware has the streaming runtime, so that they can be run under it. Where not, its code is not
    /// linked, and a run of that variant ends with `RUNTIME_VARIANT`.
    const STREAMS: bool = true;

    /// Their names.
    fn names(&self) -> &[&str];

    /// Runs the builder with this symbol; `None`: there is none.
    fn build<G: GraphBuilder>(&self, symbol: u64, graph: &mut G) -> Option<Result<(), BuildError>>;

    /// Their names, of those that need the streaming runtime.
    fn stream_names(&self) -> &[&str] {
        &[]
    }

    /// Runs the streaming builder with this symbol, or else the builder; `None`: there is neither.
    fn build_stream<G: StreamBuilder>(
        &self,
        symbol: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        self.build(symbol, stream)
    }
}

/// A firmware without builder programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBuilders;

impl BuilderSet for NoBuilders {
    fn names(&self) -> &[&str] {
        &[]
    }

    fn build<G: GraphBuilder>(&self, _: u64, _: &mut G) -> Option<Result<(), BuildError>> {
        None
    }
}

/// Declares a [`BuilderSet`]: `builder_set! { pub struct Builders { "name" => function, .. } }`, where each
/// function is `fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError>`. A second part,
/// `stream { "name" => function, .. }`, names functions of a [`StreamBuilder`], which the streaming variant prefers.
#[macro_export]
macro_rules! builder_set {
    (
        $(#[$meta:meta])* $vis:vis struct $set:ident { $( $name:literal => $build:path ),* $(,)? }
        $( stream { $( $stream_name:literal => $stream_build:path ),* $(,)? } )?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default)]
        $vis struct $set;

        impl $crate::graph::BuilderSet for $set {
            fn names(&self) -> &[&str] {
                &[$($name),*]
            }

            fn build<G: $crate::GraphBuilder>(
                &self,
                symbol: u64,
                graph: &mut G,
            ) -> Option<Result<(), $crate::BuildError>> {
                $(
                    const { assert!($crate::symbol::symbol($name) != 0) };
                    if symbol == const { $crate::symbol::symbol($name) } {
                        return Some($build(graph));
                    }
                )*
                let _ = (symbol, graph);
                None
            }

            $(
                fn stream_names(&self) -> &[&str] {
                    &[$($stream_name),*]
                }

                fn build_stream<G: $crate::stream::StreamBuilder>(
                    &self,
                    symbol: u64,
                    stream: &mut G,
                ) -> Option<Result<(), $crate::BuildError>> {
                    $(
                        const { assert!($crate::symbol::symbol($stream_name) != 0) };
                        if symbol == const { $crate::symbol::symbol($stream_name) } {
                            return Some($stream_build(stream));
                        }
                    )*
                    $crate::graph::BuilderSet::build(self, symbol, stream)
                }
            )?
        }
    };
}
