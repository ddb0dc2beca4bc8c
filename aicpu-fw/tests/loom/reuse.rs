//! A slot is taken anew only when no scheduler touches the task in it any more: the streaming builder, with a window of one,
//! against the schedulers' side of a task, from the queue to `COMPLETED`.

use std::marker::PhantomData;

use loom::cell::UnsafeCell;
use pto_abi::kinds::TaskState;
use pto_abi::sync::{Concurrent, Ordering};
use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_aicpu_fw::stream::{Schedulers, Stream};
use pto_aicpu_fw::{FanoutPolicy, LockFree, Machine};
use pto_check::run_memory::{StreamRun, StreamSizes, StreamWords};
use pto_graph::{GraphBuilder, TaskSpec};

use crate::words::FakeDevice;
use crate::{explore, spawn};

/// How the schedulers' side says that it is done with a task.
trait Done: Send + Sync + 'static {
    const ORDER: Ordering;
}

/// As `Flow::go_on` does.
struct AsItIs;

impl Done for AsItIs {
    const ORDER: Ordering = Ordering::Release;
}

/// Wrong on purpose.
struct Relaxed;

impl Done for Relaxed {
    const ORDER: Ordering = Ordering::Relaxed;
}

struct ReuseScenario<D> {
    words: StreamWords,
    /// Represents everything of a slot: the builder writes it when it takes the slot, a scheduler reads it. Loom finds
    /// accesses that nothing puts in order.
    slot: Witness,
    done: PhantomData<D>,
}

struct Witness(UnsafeCell<u64>);

// SAFETY: loom checks every access.
unsafe impl Sync for Witness {}

/// Writes the witness of the slot that a task is put into.
struct Takes<'r>(&'r Witness);

impl Machine for Takes<'_> {
    fn now_ns(&self) -> u64 {
        0
    }

    fn added(&mut self, _: u32) {
        self.0.0.with_mut(|_| ());
    }

    fn relax(&mut self) {
        loom::thread::yield_now();
    }
}

fn reuse<D: Done>() {
    let sizes = StreamSizes {
        window: 1,
        arg_words: 4,
        chunks: 1,
        map_rows: 2,
        map_cells: 2,
        map_entries: 2,
        heap_rings: 1,
        heap_bytes: 0,
        recording_words: 1,
    };
    let setup = move || ReuseScenario::<D> {
        words: StreamWords::new(sizes),
        slot: Witness(UnsafeCell::new(0)),
        done: PhantomData,
    };
    explore(3, setup, |run| {
        let schedulers = spawn(move || run_two(run));
        build(run);
        schedulers.join().unwrap();
    });
}

fn build<D>(run: &ReuseScenario<D>) {
    let of = StreamRun {
        room: None,
        has_kind: [true; 2],
        heap: GmAddr(0),
        orch_args: &[],
        schedulers: Schedulers::Run,
    };
    let submit = |stream: &mut Stream<'_, (Concurrent, LockFree, FakeDevice, Takes<'_>)>| {
        for word in 1..=2 {
            stream.submit(TaskSpec::new(FuncId(0), CoreKind::AIV, &[word]), &[]).unwrap();
        }
    };
    run.words.with_stream(&of, FakeDevice, Takes(&run.slot), submit).unwrap();
}

/// Two tasks, one after the other.
fn run_two<D: Done>(run: &ReuseScenario<D>) {
    let state = run.words.run.state().unwrap();
    for word in 1..=2 {
        let mut slot = [0];
        while state.queue(CoreKind::AIV).pop::<Concurrent>(&mut slot) == 0 {
            loom::thread::yield_now();
        }
        let task = state.task(slot[0]).unwrap();
        let first = task.payload.load(Ordering::Relaxed) as usize;
        assert_eq!(state.payloads[first].load(Ordering::Relaxed), word, "another task's argument");
        assert_eq!(LockFree::close::<Concurrent>(task), 0);
        run.slot.0.with(|_| ());
        // As the type says: Release pairs with the Acquire load in `SlotWindow::advance`.
        task.state.store(TaskState::COMPLETED.get(), D::ORDER);
    }
}

#[test]
fn a_slot_is_taken_when_its_task_is_done() {
    reuse::<AsItIs>();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_completion_is_found() {
    reuse::<Relaxed>();
}
