//! Listens to a builder program: each call becomes an entry that the machine charges for, and notes.
//!
//! A builder is a plain function over [`GraphBuilder`]; the firmware's builder stands below this one. The notes
//! travel by a thread-local list, because a set of builders is shared and cannot hold the state of a run; the
//! machine empties it whenever the builder publishes, on the same thread.

use std::cell::{Cell, RefCell};

use pto_abi::graph::{BuilderSet, TaskSpec};
use pto_abi::{BuildError, EdgeOutcome, Fault, GmAddr, GraphBuilder, TaskId};

use super::inject::INJECTED_ERROR;

/// One call of a builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    Add { slot: u32, args: usize, func_and_kind: u32 },
    Edge { producer: u32, consumer: u32, outcome: EdgeOutcome },
    Publish(u32),
    Read,
}

thread_local! {
    static NOTES: RefCell<Vec<Note>> = const { RefCell::new(Vec::new()) };
    static FAIL_AT: Cell<Option<u32>> = const { Cell::new(None) };
    static HAS_FAILED: Cell<bool> = const { Cell::new(false) };
}

/// Forgets what an earlier run left, and lets the builder fail at its task number `fail_at`.
pub(super) fn reset(fail_at: Option<u32>) {
    NOTES.with_borrow_mut(Vec::clear);
    FAIL_AT.set(fail_at);
    HAS_FAILED.set(false);
}

/// Whether the builder was made to fail since the last call.
pub(super) fn take_failure() -> bool {
    HAS_FAILED.take()
}

/// Hands the notes to `take`, in order, and forgets them.
pub(super) fn drain(take: impl FnMut(Note)) {
    NOTES.with_borrow_mut(|notes| notes.drain(..).for_each(take));
}

fn note(note: Note) {
    NOTES.with_borrow_mut(|notes| notes.push(note));
}

/// A set of builders whose calls are noted.
pub(super) struct Tapped<B>(pub(super) std::sync::Arc<B>);

impl<B: BuilderSet> BuilderSet for Tapped<B> {
    fn names(&self) -> &[&str] {
        self.0.names()
    }

    fn build<G: GraphBuilder>(&self, symbol: u64, graph: &mut G) -> Option<Result<(), BuildError>> {
        let mut graph = TappedGraph { graph, added: 0, has_failed: false };
        let built = self.0.build(symbol, &mut graph);
        if graph.has_failed { Some(Err(BuildError::Failed(INJECTED_ERROR))) } else { built }
    }
}

struct TappedGraph<'g, G> {
    graph: &'g mut G,
    added: u32,
    has_failed: bool,
}

impl<G: GraphBuilder> GraphBuilder for TappedGraph<'_, G> {
    fn orch_args(&self) -> &[u64] {
        self.graph.orch_args()
    }

    #[inline]
    fn add_task(&mut self, task: TaskSpec<'_>) -> Result<TaskId, Fault> {
        self.added += 1;
        if FAIL_AT.get().is_some_and(|at| at < self.added) {
            self.has_failed = true;
            HAS_FAILED.set(true);
            return Err(Fault::BUILD_FAILED);
        }
        let args = task.args.len();
        let func_and_kind = u32::from(task.func_id.0) | u32::from(task.kind.get()) << 16;
        let id = self.graph.add_task(task)?;
        note(Note::Add { slot: id.slot, args, func_and_kind });
        Ok(id)
    }

    #[inline]
    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        let outcome = self.graph.add_edge(producer, consumer)?;
        note(Note::Edge { producer: producer.slot, consumer: consumer.slot, outcome });
        Ok(outcome)
    }

    #[inline]
    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        // Before the call: the machine looks when the firmware tells it of the publish.
        note(Note::Publish(task.slot));
        self.graph.publish(task)
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        note(Note::Read);
        self.graph.read_u32(address)
    }
}
