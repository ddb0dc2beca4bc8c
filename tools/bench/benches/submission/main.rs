//! Measures what a submission costs: argument checks, derivation of edges, slot, publish. No task runs meanwhile.
//!
//! The benchmark measures the time to fill a window. The time in which the tasks then complete does not count. It prints ns a task for 2 and 4
//! tensors, for windows from 256 to 65,536, for numbers of live tensors, for tiles of one matrix, and with all tensors
//! read only; and, where more memory is touched than the caches hold, the floor of `floor.rs` for comparison. Then a layer of
//! tasks with temporaries (`layer.rs`), submitted and replayed.
//!
//! `submission TENSORS WINDOW LIVE [floor]` prints one of the figures; `LIVE` may be `tiles`, or `random:LIVE`; `submission
//! layers` prints the layers only. In a build
//! with `--cfg pto_mutants`, `submission war` compares with a firmware that leaves the edges from readers to writers out.

mod floor;
mod layer;

use std::time::Instant;

use pto_abi::kinds::CoreKind;
use pto_abi::limits::MAX_ARGS;
use pto_abi::sync::{Exclusive, Ordering};
use pto_abi::{FuncId, GmAddr};
use pto_aicpu_fw::stream::{Schedulers, Stream};
use pto_aicpu_fw::{DeviceMemory, LockFree};
use pto_check::run_memory::{StreamRun, StreamSizes, StreamWords};
use pto_graph::{Arg, ElementType, StreamBuilder, TensorTask, TensorView};

struct FixedKernelAddress;

impl DeviceMemory for FixedKernelAddress {
    fn kernel_addr(&self, _: FuncId) -> GmAddr {
        GmAddr(64)
    }
    fn read_u32(&self, _: GmAddr) -> Option<u32> {
        None
    }
}

/// How a task uses its tensors.
#[derive(Clone, Copy, Debug)]
enum AccessPattern {
    /// The last one is written, the others are read; tensors in turn.
    Chains { live: u64 },
    /// The same, with tensors at random.
    Random { live: u64 },
    /// As `Chains`, with every access a read.
    Reads { live: u64 },
    /// As `Chains`, with 64 x 64 tiles of one matrix instead of tensors.
    Tiles,
}

impl AccessPattern {
    /// Which tensor or tile argument `arg` of task `number` is.
    #[inline]
    const fn tensor(self, number: u64, arg: u64) -> u64 {
        match self {
            Self::Chains { live } | Self::Reads { live } => (number + arg * 17) % live,
            Self::Random { live } => {
                let mixed = (number * 4 + arg).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) % live
            }
            Self::Tiles => (number * 7 + arg * 65) % TILES,
        }
    }

    /// How many tensors or tiles there are.
    const fn live(self) -> u64 {
        match self {
            Self::Chains { live } | Self::Reads { live } | Self::Random { live } => live,
            Self::Tiles => TILES,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let live = |text: &str| text.parse().ok();
        match text.strip_prefix("random:") {
            Some(text) => Some(Self::Random { live: live(text)? }),
            None if text == "tiles" => Some(Self::Tiles),
            None => Some(Self::Chains { live: live(text)? }),
        }
    }
}

/// Tiles of the matrix.
const TILES: u64 = 4096;

/// Tensor `arg` of task `number`.
#[inline]
fn view(pattern: AccessPattern, number: u64, arg: u64) -> TensorView<'static> {
    let tensor = pattern.tensor(number, arg);
    if !matches!(pattern, AccessPattern::Tiles) {
        return TensorView::dense(GmAddr(0x10_0000 + 4096 * tensor), ElementType::F32, &[32, 32]);
    }
    let at = u32::try_from(tensor).unwrap_or(0);
    let matrix = TensorView::dense(GmAddr(0x4000_0000), ElementType::F32, &[4096, 4096]);
    matrix.slice(0, 64 * (at / 64), 64).slice(1, 64 * (at % 64), 64)
}

/// Submissions that are timed together.
const PIECE: usize = 256;

type TestStream<'a> = Stream<'a, (Exclusive, LockFree, FixedKernelAddress, ())>;

/// Words of a window. The heap is what a run has by default, or what a window of temporaries takes.
fn words(window: usize) -> StreamWords {
    StreamWords::new(StreamSizes {
        window: u32::try_from(window).expect("a window"),
        arg_words: 8 * window - MAX_ARGS,
        chunks: 4 * window,
        map_rows: window,
        map_cells: 4 * window,
        map_entries: 4 * window,
        heap_rings: 4,
        heap_bytes: (64 << 20).max(2 * 4096 * window as u64),
        recording_words: 16 * window,
    })
}

/// Runs a program on these words. Nothing is in the heap.
fn with_stream<R>(words: &StreamWords, program: impl FnOnce(&mut TestStream<'_>) -> R) -> R {
    let run = StreamRun {
        room: None,
        has_kind: [true; 2],
        heap: GmAddr(1 << 40),
        orch_args: &[],
        schedulers: Schedulers::Run,
    };
    words.with_stream(&run, FixedKernelAddress, (), program).expect("the sizes are accepted")
}

/// Tasks of `N` tensors and two scalars; ns for each, of the best of some windows.
fn measure<const N: usize>(window: usize, pattern: AccessPattern) -> f64 {
    let words = words(window);
    let ns = with_stream(&words, |stream| {
        let step = |number| submit::<N, _>(stream, number, pattern);
        best_of_rounds(window, step, || words.complete_all())
    });
    assert!(words.run.instances[0].published.load(Ordering::Relaxed) > 0);
    ns
}

/// ns of each of the steps that fill a window, the best of some rounds by pieces that are short enough not to be
/// interrupted in all of them; `empty` comes between the rounds and does not count.
fn best_of_rounds(window: usize, mut step: impl FnMut(u64), mut empty: impl FnMut()) -> f64 {
    let mut best = vec![u128::MAX; window / PIECE];
    for _ in 0..(8 * 65_536 / window).clamp(8, 100) {
        for (piece, best) in best.iter_mut().enumerate() {
            let start = Instant::now();
            for number in piece * PIECE..(piece + 1) * PIECE {
                step(number as u64);
            }
            *best = start.elapsed().as_nanos().min(*best);
        }
        empty();
    }
    best.iter().sum::<u128>() as f64 / window as f64
}

/// The program makes its views, as programs do; the last one is written.
#[inline]
fn submit<const N: usize, G: StreamBuilder>(stream: &mut G, number: u64, pattern: AccessPattern) {
    let view = |arg| view(pattern, number, arg);
    let scalar = Arg::Scalar(number);
    let last = if matches!(pattern, AccessPattern::Reads { .. }) { Arg::In } else { Arg::InOut };
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

/// How one figure comes about, for so many tensors a task.
type Measure = fn(usize, AccessPattern) -> f64;

const SUBMIT: [(usize, Measure); 2] = [(2, measure::<2>), (4, measure::<4>)];
const FLOOR: [(usize, Measure); 2] = [(2, floor::measure::<2>), (4, floor::measure::<4>)];

fn row(name: &str, columns: &[usize], pattern: AccessPattern, measures: &[(usize, Measure)]) {
    for (tensors, measure) in measures {
        let figures: Vec<String> =
            columns.iter().map(|window| format!("{:>8.1}", measure(*window, pattern))).collect();
        println!("{:<36} {}", format!("{name}, {tensors} tensors"), figures.join(" "));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        #[cfg(pto_mutants)]
        [_, "war", names @ ..] => write_after_read(names),
        [_, "layers"] => layers(),
        // For callgrind and perf: one figure.
        [_, tensors, window, live, rest @ ..] if !tensors.starts_with('-') => {
            let table = if rest.is_empty() { SUBMIT } else { FLOOR };
            let measure = table.iter().find(|(count, _)| tensors.parse() == Ok(*count));
            let figure = measure.zip(window.parse().ok()).zip(AccessPattern::parse(live));
            let ((measure, window), pattern) = figure.expect("TENSORS WINDOW LIVE [floor]");
            println!("{:.1}", measure.1(window, pattern));
        }
        _ => curve(),
    }
}

fn curve() {
    let windows = [256, 1024, 4096, 16_384, 65_536];
    println!("{:<36} {}", "ns a task; window", windows.map(|w| format!("{w:>8}")).join(" "));
    for live in [16, 1024, 4096, 16_384] {
        row(&format!("{live} tensors in turn"), &windows, AccessPattern::Chains { live }, &SUBMIT);
    }
    row("all of them only read", &windows, AccessPattern::Reads { live: 1024 }, &SUBMIT);
    row("4096 tiles of one matrix", &windows, AccessPattern::Tiles, &SUBMIT);
    for live in [1024, 16_384, 65_536] {
        let pattern = AccessPattern::Random { live };
        row(&format!("{live} tensors at random"), &windows, pattern, &SUBMIT);
        row("  memory alone", &windows, pattern, &FLOOR);
    }
    layers();
}

/// Replays take room for a whole layer at once: the window is to hold some.
fn layers() {
    let windows = [1024, 4096, 16_384, 65_536];
    println!(
        "\n{:<36} {}",
        "a layer, ns a task; window",
        windows.map(|w| format!("{w:>8}")).join(" ")
    );
    for (tensors, measure) in [(2, layer::measure::<2> as fn(usize) -> _), (4, layer::measure::<4>)]
    {
        let ways = windows.map(measure);
        for (way, name) in ["submitted", "replayed"].into_iter().enumerate() {
            let figures = ways.map(|ns| format!("{:>8.1}", ns[way]));
            println!("{:<36} {}", format!("{name}, {tensors} tensors"), figures.join(" "));
        }
        let ratios = ways.map(|[submitted, replayed]| format!("{:>8.2}", submitted / replayed));
        println!("{:<36} {}", "  submitted over replayed", ratios.join(" "));
    }
}

/// All of it, or for callgrind one figure: `with 2`.
#[cfg(pto_mutants)]
fn write_after_read(only: &[&str]) {
    use pto_aicpu_fw::mutant::{Mutant, choose};
    println!("ns a task; window 4096, 1024 tensors in turn");
    let is_wanted = |word: &str| only.is_empty() || only.contains(&word);
    for (name, mutant) in [("with", Mutant::None), ("without", Mutant::ForgetsReaders)] {
        choose(mutant);
        let pattern = AccessPattern::Chains { live: 1024 };
        let measures = SUBMIT.into_iter().filter(|(count, _)| is_wanted(&count.to_string()));
        if is_wanted(name) {
            let name = format!("{name} write after read");
            row(&name, &[4096], pattern, &measures.collect::<Vec<_>>());
        }
    }
}
