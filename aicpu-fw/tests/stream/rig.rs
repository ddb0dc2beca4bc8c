//! A streaming builder without a device, whose tasks do not run, and what it has made of a program.

use std::cell::Cell;
use std::collections::BTreeSet;

use pto_abi::stream::{BlockLine, HAS_PREDICATE};
use pto_abi::sync::{Exclusive, Ordering::Relaxed};
use pto_abi::task::SHAPED;
use pto_abi::{FuncId, GmAddr};
use pto_aicpu_fw::fanout::ConsumerWalk;
use pto_aicpu_fw::stream::{Schedulers, Stream};
use pto_aicpu_fw::{DeviceMemory, LockFree, Machine};
use pto_check::run_memory::{RunWords, StreamRun, StreamSizes, StreamWords};

const WINDOW: usize = 512;
const HEAP: u64 = 1 << 40;

/// Cores of each kind of the device; two vector cores and a cube core are in a cluster.
pub(crate) const CORES: u32 = 8;
/// A kernel that is not registered.
pub(crate) const NO_KERNEL: FuncId = FuncId(999);

pub(crate) struct CountingDevice;

std::thread_local! {
    /// Elements that the builder of this thread has read.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// How many elements of tensors the builder reads while `program` runs.
pub(crate) fn reads(program: impl FnOnce()) -> u32 {
    READS.set(0);
    program();
    READS.get()
}

impl DeviceMemory for CountingDevice {
    fn kernel_addr(&self, func: FuncId) -> GmAddr {
        if func == NO_KERNEL { GmAddr::NULL } else { GmAddr(64 + u64::from(func.0)) }
    }
    fn read_u32(&self, _: GmAddr) -> Option<u32> {
        None
    }
    fn has_element(&self, address: GmAddr, bytes: u64) -> bool {
        address.0.is_multiple_of(bytes)
    }
    fn read_element(&self, address: GmAddr, bytes: u64) -> Option<u64> {
        READS.set(READS.get() + 1);
        address.0.is_multiple_of(bytes).then_some(0)
    }
}

pub(crate) type TestStream<'a, H = ()> = Stream<'a, (Exclusive, LockFree, CountingDevice, H)>;

/// What a program has made: pairs of producers and consumers, the words of each task, and those of its shape, if it has
/// one; addresses of the heap as zero.
#[derive(Debug, PartialEq)]
pub(crate) struct Made {
    pub(crate) edges: BTreeSet<(u64, u64)>,
    pub(crate) words: Vec<Vec<u64>>,
    pub(crate) shapes: Vec<Option<Vec<u64>>>,
}

/// How large rings are.
#[derive(Clone, Copy)]
pub(crate) struct RingSizes {
    pub(crate) window: usize,
    pub(crate) words: usize,
    pub(crate) chunks: usize,
    pub(crate) heap_bytes: u64,
}

const LARGE: RingSizes =
    RingSizes { window: WINDOW, words: 16 * WINDOW, chunks: 8 * WINDOW, heap_bytes: 1 << 20 };

/// The memory of a run.
pub(crate) struct Memory(StreamWords);

impl core::ops::Deref for Memory {
    type Target = StreamWords;

    fn deref(&self) -> &StreamWords {
        &self.0
    }
}

impl Memory {
    pub(crate) fn new(sizes: RingSizes) -> Self {
        Self(StreamWords::new(StreamSizes {
            window: u32::try_from(sizes.window).unwrap(),
            arg_words: sizes.words,
            chunks: sizes.chunks,
            map_rows: 16,
            map_cells: 64,
            map_entries: 4096,
            heap_rings: 4,
            heap_bytes: sizes.heap_bytes,
            recording_words: 32 * WINDOW,
        }))
    }

    /// Runs `program` with a builder on this memory.
    pub(crate) fn run<H: Machine, R>(
        &self,
        host: H,
        program: impl FnOnce(&mut TestStream<'_, H>) -> R,
    ) -> R {
        let run = StreamRun {
            room: Some([0, CORES, CORES, CORES / 2, 0, 0, CORES / 2, CORES / 2]),
            has_kind: [true; 2],
            heap: GmAddr(HEAP),
            orch_args: &[],
            schedulers: Schedulers::Run,
        };
        self.with_stream(&run, CountingDevice, host, program).unwrap()
    }
}

pub(crate) fn with_stream(program: impl FnOnce(&mut TestStream<'_>)) -> Made {
    let memory = Memory::new(LARGE);
    let added = memory.run((), |stream| {
        program(stream);
        stream.added()
    });
    let RunWords { tasks, chunks, payloads, instances, .. } = &memory.run;
    let shapes = &memory.blocks;
    assert_eq!(added, instances[0].published.load(Relaxed));
    let added = usize::try_from(added).unwrap();
    let mut made = Made { edges: BTreeSet::new(), words: Vec::new(), shapes: Vec::new() };
    let hidden = |word: u64| if word >= HEAP { 0 } else { word };
    for (number, task) in (0..).zip(&tasks[..added]) {
        let fanin = task.edges_in.load(Relaxed);
        assert_eq!(task.fanin.load(Relaxed), fanin, "task {number}");
        let mut walk = ConsumerWalk::new(task.fanout.load(Relaxed));
        while let Some(consumer) = walk.next(task, chunks) {
            made.edges.insert((number, consumer.into()));
        }
        let first = task.payload.load(Relaxed) as usize;
        let count = usize::from(task.arg_count.load(Relaxed));
        let words = payloads[first..first + count].iter().map(|word| word.load(Relaxed));
        made.words.push(words.map(hidden).collect());
        let is_shaped = task.kind.load(Relaxed) & SHAPED != 0;
        let words = &shapes[made.shapes.len()];
        made.shapes.push(is_shaped.then(|| shape_words(words).map(hidden).collect()));
    }
    let into = |number: u64| made.edges.iter().filter(|(_, consumer)| *consumer == number).count();
    for (number, task) in (0..).zip(&tasks[..added]) {
        assert_eq!(task.edges_in.load(Relaxed) as usize, into(number), "task {number}");
    }
    made
}

/// The line of a task that waits, in the order of the fields.
fn shape_words(of: &BlockLine) -> impl Iterator<Item = u64> {
    let kernels = of.kernels.iter().map(|word| word.load(Relaxed));
    let ids = of.func_ids.iter();
    let numbers = ids.chain([&of.flags, &of.blocks, &of.next_block, &of.parts_left, &of.list]);
    let numbers = numbers.map(|word| word.load(Relaxed).into());
    let predicate = match of.flags.load(Relaxed) & HAS_PREDICATE {
        0 => [0; 3],
        _ => [of.test.load(Relaxed).into(), of.address.load(Relaxed), of.value.load(Relaxed)],
    };
    kernels.chain(numbers.collect::<Vec<u64>>()).chain(predicate).collect::<Vec<_>>().into_iter()
}
