//! The interface of every graph builder: one builder program serves `host_build_graph` (the host runs it
//! and sends the image) and `aicpu_build_graph` (AICPU instance 0 runs it while the others schedule).
//!
//! What a builder answers beside this to whoever runs programs in other languages is
//! [`HostedBuilder`](crate::HostedBuilder).

use pto_abi::fault::Fault;
use pto_abi::ids::{GmAddr, TaskId};

use crate::task::TaskSpec;

/// What became of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeOutcome {
    /// The consumer waits for the producer.
    Added,
    /// The producer had completed; there is nothing to wait for.
    AlreadySatisfied,
}

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
