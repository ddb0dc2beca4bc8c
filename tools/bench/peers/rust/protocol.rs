//! The graph file, what a task does, commands and answers: see `../cpp/peer.h`.

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// For each task its producers, all of them tasks before it.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) tasks: u32,
    starts: Vec<u32>,
    producers: Vec<u32>,
}

impl Graph {
    pub(crate) fn producers_of(&self, task: u32) -> &[u32] {
        let task = task as usize;
        &self.producers[self.starts[task] as usize..self.starts[task + 1] as usize]
    }

    fn read(path: &str) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        let words: Vec<u32> =
            bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let [_, _, tasks, 0, edges, 0, lists @ ..] = &*words else {
            return Err(format!("{path} is not a graph file"));
        };
        let at = *tasks as usize + 1;
        if !bytes.starts_with(b"PTOCSR01") || lists.len() != at + *edges as usize {
            return Err(format!("{path} is not a graph file"));
        }
        let (starts, producers) = lists.split_at(at);
        Ok(Self { tasks: *tasks, starts: starts.to_vec(), producers: producers.to_vec() })
    }
}

/// What a task does.
#[derive(Clone, Copy)]
pub(crate) enum Kernel<'a> {
    /// Calls a function that the compiler does not know.
    Call(fn(u64), u64),
    /// Mixes its value from its producers' values.
    Check(&'a Graph, &'a [AtomicU64]),
}

impl Kernel<'_> {
    #[inline]
    pub(crate) fn run(self, task: u32) {
        match self {
            Self::Call(function, iterations) => function(iterations),
            Self::Check(graph, values) => {
                let producers = graph.producers_of(task).iter();
                // Relaxed: the order of tasks is what the peer is checked for.
                let inputs = producers.map(|at| values[*at as usize].load(Ordering::Relaxed));
                let value =
                    inputs.fold(mix(mix(0) ^ u64::from(task)), |sum, input| mix(sum ^ input));
                // A task that runs twice adds twice.
                values[task as usize].fetch_add(value, Ordering::Relaxed);
            }
        }
    }
}

fn empty(_: u64) {}

fn spin(iterations: u64) {
    let mut state = iterations;
    for _ in 0..iterations {
        state = black_box(mix(state));
    }
}

/// One step of splitmix64.
fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What is measured.
pub(crate) trait Peer {
    fn build(&mut self, graph: &Graph);
    fn run(&mut self, kernel: Kernel<'_>);
}

/// Answers commands until there are no more.
pub(crate) fn serve(mut peer: impl Peer) {
    let mut graph = Graph::default();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if line == "quit" {
            return;
        }
        let answer = match answer(&mut peer, &mut graph, &line) {
            Ok(answer) => format!("ok {answer}"),
            Err(what) => format!("error {what}"),
        };
        println!("{answer}");
        // Who asked may be gone.
        let _ = std::io::stdout().flush();
    }
}

fn answer(peer: &mut impl Peer, graph: &mut Graph, line: &str) -> Result<String, String> {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("load", path) => {
            *graph = Graph::read(path)?;
            Ok(format!("{} {}", graph.tasks, graph.producers.len()))
        }
        ("check", _) => {
            let values: Vec<AtomicU64> = (0..graph.tasks).map(|_| AtomicU64::new(0)).collect();
            peer.build(graph);
            peer.run(Kernel::Check(graph, &values));
            let sum = values.iter().fold(0, |sum, value| mix(sum ^ value.load(Ordering::Relaxed)));
            Ok(sum.to_string())
        }
        ("iteration", _) => {
            let each = || {
                let start = Instant::now();
                spin(20_000);
                start.elapsed().as_secs_f64() * 1e9 / 20_000.0
            };
            Ok((0..9).map(|_| each()).fold(f64::INFINITY, f64::min).to_string())
        }
        ("sample", iterations) => {
            let iterations =
                iterations.parse().map_err(|_| format!("not a number: {iterations}"))?;
            Ok(sample(peer, graph, iterations))
        }
        ("memory", _) => {
            let reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
            let before = peak_bytes();
            sample(peer, graph, 0);
            let grown = peak_bytes().zip(before).map(|(after, before)| after - before);
            Ok(grown.filter(|_| reset).unwrap_or(-1).to_string())
        }
        _ => Err(format!("no such command: {line}")),
    }
}

fn sample(peer: &mut impl Peer, graph: &Graph, iterations: u64) -> String {
    let function = black_box(if iterations == 0 { empty } else { spin } as fn(u64));
    let start = Instant::now();
    peer.build(graph);
    let built = start.elapsed();
    peer.run(Kernel::Call(function, iterations));
    let total = start.elapsed();
    format!("{} {} {}", built.as_nanos(), (total - built).as_nanos(), total.as_nanos())
}

/// Greatest resident size since the last reset.
fn peak_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: i64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}
