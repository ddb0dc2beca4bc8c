//! A slot is taken anew only when no scheduler touches the task in it any more: the streaming builder, with a window of one,
//! against the schedulers' side of a task, from the queue to `COMPLETED`.

use std::marker::PhantomData;

use loom::cell::UnsafeCell;
use pto_abi::kinds::TaskState;
use pto_abi::limits::MAX_ARGS;
use pto_abi::stream::{MapEntry, MapGrid, MapRow, SlotNote, StreamHeader};
use pto_abi::sync::{AtomicU32, AtomicU64, Ordering, Shared};
use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_aicpu_fw::stream::map::{MapMemory, TensorMap};
use pto_aicpu_fw::stream::{Schedulers, Stream, StreamMemory};
use pto_aicpu_fw::{BuilderHost, FanoutPolicy, LockFree};
use pto_graph::{GraphBuilder, TaskSpec};

use crate::words::{Kernels, Size, Words};
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

struct Run<D> {
    words: Words,
    header: StreamHeader,
    records: Vec<SlotNote>,
    tensors: Vec<MapRow>,
    tensor_places: Vec<AtomicU32>,
    cells: Vec<MapRow>,
    cell_places: Vec<AtomicU32>,
    grids: Vec<MapGrid>,
    entries: Vec<MapEntry>,
    tape: Vec<AtomicU64>,
    /// Stands for everything of a slot: the builder writes it when it takes the slot, a scheduler reads it. Loom finds
    /// accesses that nothing puts in order.
    slot: Witness,
    done: PhantomData<D>,
}

struct Witness(UnsafeCell<u64>);

// SAFETY: loom checks every access.
unsafe impl Sync for Witness {}

/// Writes the witness of the slot that a task is put into.
struct Takes<'r>(&'r Witness);

impl BuilderHost for Takes<'_> {
    fn published(&mut self) {}

    fn added(&mut self, _: u32) {
        self.0.0.with_mut(|_| ());
    }

    fn relax(&mut self) {
        loom::thread::yield_now();
    }
}

fn many<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

fn reuse<D: Done>() {
    let size = Size { tasks: 1, arg_words: 3 + MAX_ARGS, edges: 1, instances: 1 };
    let setup = move || Run::<D> {
        words: Words::new(size),
        header: StreamHeader::default(),
        records: many(1),
        tensors: many(2),
        tensor_places: many(2),
        cells: many(2),
        cell_places: many(2),
        grids: many(2),
        entries: many(2),
        tape: many(1),
        slot: Witness(UnsafeCell::new(0)),
        done: PhantomData,
    };
    explore(3, setup, |run| {
        let schedulers = spawn(move || run_two(run));
        build(run);
        schedulers.join().unwrap();
    });
}

fn build<D>(run: &Run<D>) {
    let map = MapMemory {
        tensors: &run.tensors,
        tensor_places: &run.tensor_places,
        cells: &run.cells,
        cell_places: &run.cell_places,
        grids: &run.grids,
        entries: &run.entries,
    };
    let memory = StreamMemory {
        header: &run.header,
        records: &run.records,
        map: TensorMap::new(map, 0).unwrap(),
        tape: &run.tape,
        arg_words: 4,
        edge_chunks: 1,
        heap_rings: 1,
        heap_bytes: 0,
        heap: GmAddr(0),
        first_task: 0,
    };
    let (inputs, host) = (run.words.inputs(), Takes(&run.slot));
    let mut stream =
        Stream::<Shared, LockFree, _, _>::new(inputs, &memory, Schedulers::Run, Kernels, host);
    for word in 1..=2 {
        stream.submit(TaskSpec::new(FuncId(0), CoreKind::AIV, &[word]), &[]).unwrap();
    }
}

/// Two tasks, one after the other.
fn run_two<D: Done>(run: &Run<D>) {
    let state = run.words.state();
    for word in 1..=2 {
        let mut slot = [0];
        while state.queue(CoreKind::AIV).pop::<Shared>(&mut slot) == 0 {
            loom::thread::yield_now();
        }
        let task = state.task(slot[0]).unwrap();
        let first = task.payload.load(Ordering::Relaxed) as usize;
        assert_eq!(state.payloads[first].load(Ordering::Relaxed), word, "another task's argument");
        assert_eq!(LockFree::close::<Shared>(task), 0);
        run.slot.0.with(|_| ());
        // As the type says: Release pairs with the Acquire load in `Stream::advance`.
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
