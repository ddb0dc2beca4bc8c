//! What a submission costs: argument checks, derivation of edges, slot, publish; nothing runs meanwhile.
//!
//! A window is filled, which is measured; then everything in it completes, which is not. Prints ns a task for 2 and 4
//! tensors, for windows of 4,096 and 65,536, for numbers of live tensors, for tiles of one matrix, and with all tensors
//! read only, which is what write-after-read edges cost above.

use std::time::Instant;

use pto_abi::kinds::{CoreKind, TaskState};
use pto_abi::ready::{QueueEnds, slots_for};
use pto_abi::runtime::{FaultLine, InstanceLine, Progress};
use pto_abi::stream::{
    Arg, ElementType, MapBucket, MapCell, MapEntry, SlotRecord, StreamBuilder, StreamHeader,
    TensorTask, TensorView,
};
use pto_abi::sync::{AtomicU64, Exclusive, Ordering};
use pto_abi::task::{CLOSED, EdgeChunk, Task};
use pto_abi::{FuncId, GmAddr};
use pto_aicpu_fw::builder::BuilderInputs;
use pto_aicpu_fw::ready_queue::ReadyQueue;
use pto_aicpu_fw::stream::map::TensorMap;
use pto_aicpu_fw::stream::{Schedulers, Stream, StreamMemory};
use pto_aicpu_fw::{DeviceMemory, LockFree, SharedState};

struct Kernels;

impl DeviceMemory for Kernels {
    fn kernel_addr(&self, _: FuncId) -> GmAddr {
        GmAddr(64)
    }
    fn read_u32(&self, _: GmAddr) -> Option<u32> {
        None
    }
}

/// How a task uses its tensors.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// The last one is written, the others are read; tensors in turn.
    Chains { live: u64 },
    /// The same, with every access a read.
    Reads { live: u64 },
    /// The same as `Chains`, with 64 x 64 tiles of one matrix instead of tensors.
    Tiles,
}

struct Words {
    tasks: Vec<Task>,
    payloads: Vec<AtomicU64>,
    chunks: Vec<EdgeChunk>,
    ends: [QueueEnds; 2],
    slots: [Vec<AtomicU64>; 2],
    progress: Progress,
    fault: FaultLine,
    instances: Vec<InstanceLine>,
    header: StreamHeader,
    records: Vec<SlotRecord>,
    buckets: Vec<MapBucket>,
    cells: Vec<MapCell>,
    entries: Vec<MapEntry>,
}

fn many<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

impl Words {
    fn new(window: usize) -> Self {
        let queue = || many(slots_for(u32::try_from(window).unwrap()) as usize);
        Self {
            tasks: many(window),
            payloads: many(8 * window),
            chunks: many(4 * window),
            ends: Default::default(),
            slots: [queue(), queue()],
            progress: Progress::default(),
            fault: FaultLine::default(),
            instances: many(1),
            header: StreamHeader::default(),
            records: many(window),
            buckets: many(window),
            cells: many(4 * window),
            entries: many(4 * window),
        }
    }

    fn state(&self) -> SharedState<'_> {
        let queue = |kind: usize| ReadyQueue::new(&self.ends[kind], &self.slots[kind]).unwrap();
        SharedState {
            tasks: &self.tasks,
            payloads: &self.payloads,
            payloads_address: GmAddr(0x1000),
            chunks: &self.chunks,
            ready: [queue(0), queue(1)],
            progress: &self.progress,
            fault: &self.fault,
            instances: &self.instances,
            shapes: None,
        }
    }

    fn complete_all(&self) {
        for task in &self.tasks {
            // Release: pairs with the Acquire load in `Stream::advance`.
            task.fanout.fetch_or(CLOSED, Ordering::Relaxed);
            task.state.store(TaskState::COMPLETED.get(), Ordering::Release);
        }
        self.ends.iter().for_each(QueueEnds::discard);
    }
}

/// Tensor `arg` of task `number`.
#[inline]
fn view(pattern: Pattern, number: u64, arg: u64) -> TensorView<'static> {
    match pattern {
        Pattern::Chains { live } | Pattern::Reads { live } => {
            let base = GmAddr(0x10_0000 + 4096 * ((number + arg * 17) % live));
            TensorView::dense(base, ElementType::F32, &[32, 32])
        }
        Pattern::Tiles => {
            let at = u32::try_from((number * 7 + arg * 65) % 4096).unwrap_or(0);
            let matrix = TensorView::dense(GmAddr(0x4000_0000), ElementType::F32, &[4096, 4096]);
            matrix.slice(0, 64 * (at / 64), 64).slice(1, 64 * (at % 64), 64)
        }
    }
}

fn measure(window: usize, count: usize, pattern: Pattern) -> f64 {
    let words = Words::new(window);
    let inputs = BuilderInputs {
        state: words.state(),
        line: &words.instances[0],
        orch_args: &[],
        generation: 1,
        has_kind: [true; 2],
    };
    let memory = StreamMemory {
        header: &words.header,
        records: &words.records,
        map: TensorMap::new((&words.buckets, &words.cells), &words.entries, 0).unwrap(),
        arg_words: words.payloads.len() as u64,
        edge_chunks: words.chunks.len() as u64,
        heap_rings: 1,
        heap_bytes: 0,
        heap: GmAddr(0),
        first_task: 0,
    };
    let mut stream =
        Stream::<Exclusive, LockFree, _, _>::new(inputs, memory, Schedulers::Run, Kernels, ());
    let mut best = f64::INFINITY;
    for _ in 0..(12 * 65_536 / window).min(60) {
        let start = Instant::now();
        for number in 0..window as u64 {
            // The program makes its views, as programs do.
            let views: [TensorView<'static>; 4] =
                std::array::from_fn(|arg| view(pattern, number, arg as u64));
            let [a, b, c, d] = &views;
            let scalar = Arg::Scalar(number);
            let last = |view| match pattern {
                Pattern::Reads { .. } => Arg::In(view),
                _ => Arg::InOut(view),
            };
            let one = [last(a), scalar, scalar];
            let two = [Arg::In(a), last(b), scalar, scalar];
            let four = [Arg::In(a), Arg::In(b), Arg::In(c), last(d), scalar, scalar];
            let args = match count {
                1 => &one[..],
                2 => &two[..],
                _ => &four[..],
            };
            let task = TensorTask::new(FuncId(3), CoreKind::AIV, args);
            stream.submit_tensors(&task).unwrap();
        }
        let each = start.elapsed().as_nanos() as f64 / window as f64;
        best = best.min(each);
        words.complete_all();
    }
    let line = &words.instances[0];
    assert!(line.published.load(Ordering::Relaxed) > 0);
    best
}

fn main() {
    println!("{:<34} {:>10} {:>10}", "ns a task, 2 scalars beside", "4,096", "65,536");
    for count in [1, 2, 4] {
        let patterns = [
            Pattern::Chains { live: 64 },
            Pattern::Chains { live: 4096 },
            Pattern::Chains { live: 65_536 },
            Pattern::Reads { live: 4096 },
            Pattern::Tiles,
        ];
        for pattern in patterns {
            let small = measure(4096, count, pattern);
            let large = measure(65_536, count, pattern);
            let name = format!("{count} tensors, {pattern:?}");
            println!("{name:<34} {small:>10.1} {large:>10.1}");
        }
    }
}
