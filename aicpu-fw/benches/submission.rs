//! What a submission costs: argument checks, derivation of edges, slot, publish; nothing runs meanwhile.
//!
//! A window is filled, which is measured; then everything in it completes, which is not. Prints ns a task for 2 and 4
//! tensors, for windows from 256 to 65,536, for numbers of live tensors, for tiles of one matrix, and with all tensors
//! read only. `submission TENSORS WINDOW LIVE` prints one of the figures; `LIVE` may be `tiles`.

use std::time::Instant;

use pto_abi::kinds::{CoreKind, TaskState};
use pto_abi::ready::{QueueEnds, slots_for};
use pto_abi::runtime::{FaultLine, InstanceLine, Progress};
use pto_abi::stream::{
    Arg, ElementType, MapEntry, MapGrid, MapRecord, SlotRecord, StreamBuilder, StreamHeader,
    TensorTask, TensorView,
};
use pto_abi::sync::{AtomicU32, AtomicU64, Exclusive, Ordering};
use pto_abi::task::{CLOSED, EdgeChunk, Task};
use pto_abi::{FuncId, GmAddr};
use pto_aicpu_fw::builder::BuilderInputs;
use pto_aicpu_fw::ready_queue::ReadyQueue;
use pto_aicpu_fw::stream::map::{MapMemory, TensorMap};
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
    tensors: Vec<MapRecord>,
    tensor_places: Vec<AtomicU32>,
    cells: Vec<MapRecord>,
    cell_places: Vec<AtomicU32>,
    grids: Vec<MapGrid>,
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
            tensors: many(window),
            tensor_places: many(window),
            cells: many(4 * window),
            cell_places: many(4 * window),
            grids: many(window),
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

/// Submissions that are timed together.
const PIECE: usize = 256;

/// Tasks of `N` tensors and two scalars; ns for each, of the best of some windows.
fn measure<const N: usize>(window: usize, pattern: Pattern) -> f64 {
    let words = Words::new(window);
    let inputs = BuilderInputs {
        state: words.state(),
        line: &words.instances[0],
        orch_args: &[],
        generation: 1,
        has_kind: [true; 2],
    };
    let map = MapMemory {
        tensors: &words.tensors,
        tensor_places: &words.tensor_places,
        cells: &words.cells,
        cell_places: &words.cell_places,
        grids: &words.grids,
        entries: &words.entries,
    };
    let memory = StreamMemory {
        header: &words.header,
        records: &words.records,
        map: TensorMap::new(map, 0).unwrap(),
        tape: &[],
        arg_words: words.payloads.len() as u64,
        edge_chunks: words.chunks.len() as u64,
        heap_rings: 1,
        heap_bytes: 0,
        heap: GmAddr(0),
        first_task: 0,
    };
    let mut stream =
        Stream::<Exclusive, LockFree, _, _>::new(inputs, &memory, Schedulers::Run, Kernels, ());
    // By pieces that are short enough not to be interrupted in all of the rounds.
    let mut best = vec![u128::MAX; window / PIECE];
    for _ in 0..(8 * 65_536 / window).clamp(8, 100) {
        for (piece, best) in best.iter_mut().enumerate() {
            let start = Instant::now();
            for number in piece * PIECE..(piece + 1) * PIECE {
                submit::<N, _>(&mut stream, number as u64, pattern);
            }
            *best = start.elapsed().as_nanos().min(*best);
        }
        words.complete_all();
    }
    let line = &words.instances[0];
    assert!(line.published.load(Ordering::Relaxed) > 0);
    best.iter().sum::<u128>() as f64 / window as f64
}

/// The program makes its views, as programs do; the last one is written.
#[inline]
fn submit<const N: usize, G: StreamBuilder>(stream: &mut G, number: u64, pattern: Pattern) {
    let view = |arg| view(pattern, number, arg);
    let scalar = Arg::Scalar(number);
    let last = if matches!(pattern, Pattern::Reads { .. }) { Arg::In } else { Arg::InOut };
    let mut submit = |args: &[Arg<'_>]| {
        stream.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, args)).unwrap();
    };
    if N == 2 {
        submit(&[Arg::In(&view(0)), last(&view(1)), scalar, scalar]);
    } else {
        let (a, b, c, d) = (view(0), view(1), view(2), view(3));
        submit(&[Arg::In(&a), Arg::In(&b), Arg::In(&c), last(&d), scalar, scalar]);
    }
}

fn row(name: &str, columns: &[usize], pattern: Pattern) {
    for (tensors, measure) in [(2, measure::<2> as fn(usize, Pattern) -> f64), (4, measure::<4>)] {
        let figures: Vec<String> =
            columns.iter().map(|window| format!("{:>8.1}", measure(*window, pattern))).collect();
        println!("{:<34} {}", format!("{name}, {tensors} tensors"), figures.join(" "));
    }
}

fn main() {
    if let [_, tensors, window, live] = &*std::env::args().collect::<Vec<_>>() {
        // For callgrind and perf: one figure.
        let number = |text: &String| text.parse::<usize>().ok();
        if let (Some(tensors), Some(window)) = (number(tensors), number(window)) {
            let live = number(live).map(|live| Pattern::Chains { live: live as u64 });
            let pattern = live.unwrap_or(Pattern::Tiles);
            let measure = if tensors == 2 { measure::<2> } else { measure::<4> };
            println!("{:.1}", measure(window, pattern));
            return;
        }
    }
    let windows = [256, 1024, 4096, 16_384, 65_536];
    println!("{:<34} {}", "ns a task; window", windows.map(|w| format!("{w:>8}")).join(" "));
    for live in [16, 256, 1024, 4096, 16_384] {
        row(&format!("{live} tensors in turn"), &windows, Pattern::Chains { live });
    }
    row("all of them only read", &windows, Pattern::Reads { live: 1024 });
    row("4096 tiles of one matrix", &windows, Pattern::Tiles);
}
