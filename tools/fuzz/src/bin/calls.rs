//! Calls a public interface with seeds, one after the other, each in a process that is watched: a crash, an abort or a script that does not end is reported with
//! its seed, and with the calls that it made. `cargo xtask fuzz calls` builds and starts this program.
//!
//! ```text
//! watch --a batch of seeds for each processor--> child: "seed N" before each script --> ends well, ends otherwise, or says nothing for a minute
//!   ^--- a script that fails is made shorter, then listed ------------------------------'
//! ```
//! A batch has a process of its own, so that threads and memory that a script leaks do not pile up for long.

use std::io::{BufRead, BufReader, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pto_fuzz::calls::{self, CALL_BYTES, CALLS_OF_A_SEED};

/// A script that says nothing for so long does not end.
const TIMEOUT: Duration = Duration::from_secs(90);
/// Scripts of one process.
const SEEDS_OF_A_BATCH: u64 = 50;
/// How often a long run says how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// How often a script that fails is tried with fewer calls.
const TRIES: usize = 40;

/// What it is called, and what plays a script through it.
type Door = (&'static str, fn(&[u8]));

/// The interfaces, and what plays a script on them. The last one is a planted mistake, for tests of this program.
const DOORS: &[Door] =
    &[("rust", calls::rust), ("c", calls::c), ("cpp", calls::cpp), ("mistake", mistake)];

/// Fails where a script has a certain call.
fn mistake(script: &[u8]) {
    let has_call = script.chunks(CALL_BYTES).skip(1).any(|call| call[0] == 7);
    assert!(!has_call, "the planted mistake");
}

const USAGE: &str = "usage: pto-fuzz-calls rust|c|cpp [--seed N] [--calls N]\n\
    Example: pto-fuzz-calls rust --seed 1 --calls 100000\n\
    One seed alone: pto-fuzz-calls c --seed 17 --calls 200";

/// What the command line asks for.
struct CommandLine {
    door: String,
    seed: u64,
    calls: u64,
    /// A script in a file, instead of those of seeds.
    script: Option<PathBuf>,
    is_child: bool,
    lists: bool,
    /// What programs in C++ were compiled into, for all children.
    folder: Option<tempfile::TempDir>,
}

fn request() -> Option<CommandLine> {
    let mut words = std::env::args().skip(1);
    let mut request = CommandLine {
        door: words.next().filter(|door| DOORS.iter().any(|(name, _)| name == door))?,
        seed: 1,
        calls: CALLS_OF_A_SEED,
        script: None,
        is_child: false,
        lists: false,
        folder: None,
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seed" => request.seed = words.next()?.parse().ok()?,
            "--calls" => request.calls = words.next()?.parse().ok()?,
            "--script" => request.script = Some(words.next()?.into()),
            "--child" => request.is_child = true,
            "--list" => request.lists = true,
            _ => return None,
        }
    }
    Some(request)
}

fn main() -> ExitCode {
    let Some(mut request) = request() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if request.is_child {
        play(&request);
        return ExitCode::SUCCESS;
    }
    if request.door == "cpp" {
        let folder = tempfile::tempdir().expect("a folder for programs");
        calls::compile_cpp(folder.path());
        request.folder = Some(folder);
    }
    watch(&request)
}

/// The child: plays scripts.
fn play(request: &CommandLine) {
    calls::throw();
    if request.lists {
        calls::list_calls();
    }
    let door = DOORS.iter().find(|(name, _)| *name == request.door);
    let Some((_, feed)) = door else { return };
    if let Some(path) = &request.script {
        feed(&std::fs::read(path).expect("the script can be read"));
        return;
    }
    let mut left = request.calls;
    for seed in request.seed.. {
        if left == 0 {
            return;
        }
        println!("seed {seed}");
        std::io::stdout().flush().unwrap_or_default();
        let calls = left.min(CALLS_OF_A_SEED);
        feed(&calls::script(seed, calls));
        left -= calls;
    }
}

fn child(request: &CommandLine, arguments: &[&str]) -> Child {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command.arg(&request.door).arg("--child").args(arguments);
    if let Some(folder) = &request.folder {
        command.env(calls::CPP_FOLDER, folder.path());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("this program starts again")
}

/// How a child ended, and what it said.
struct ChildResult {
    /// `None`: it did not end by itself.
    status: Option<ExitStatus>,
    seed: Option<u64>,
    said: String,
}

impl ChildResult {
    fn is_well(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    fn how(&self) -> String {
        self.status.map_or_else(
            || format!("did not end within {} s", TIMEOUT.as_secs()),
            |status| format!("ended with {status}"),
        )
    }
}

/// Waits for a child that says something now and then.
fn follow(mut child: Child) -> ChildResult {
    let (line, lines) = channel();
    let out = child.stdout.take().map(BufReader::new);
    let seeds = std::thread::spawn(move || {
        for said in out.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
            // Who waits for it has given up.
            let _: Result<(), _> = line.send(said);
        }
    });
    let errors = child.stderr.take();
    let errors = std::thread::spawn(move || {
        let errors = errors.map(std::io::read_to_string);
        errors.and_then(Result::ok).unwrap_or_default()
    });
    let mut seed = None;
    let is_late = loop {
        match lines.recv_timeout(TIMEOUT) {
            Ok(said) => seed = said.strip_prefix("seed ").and_then(|number| number.parse().ok()),
            Err(RecvTimeoutError::Disconnected) => break false,
            Err(RecvTimeoutError::Timeout) => break true,
        }
    };
    if is_late {
        child.kill().unwrap_or_default();
    }
    let status = child.wait().ok().filter(|_| !is_late);
    seeds.join().unwrap_or_default();
    ChildResult { status, seed, said: errors.join().unwrap_or_default() }
}

/// The batches of a run, and how far it is.
struct Batches<'r> {
    request: &'r CommandLine,
    /// Calls of batches that have begun, of those that have ended well.
    begun: AtomicU64,
    ended: AtomicU64,
    failed: Mutex<Option<(u64, ChildResult)>>,
}

impl Batches<'_> {
    /// Takes one after the other, until none is left or one has failed.
    fn work(&self) {
        const CALLS: u64 = SEEDS_OF_A_BATCH * CALLS_OF_A_SEED;
        loop {
            let before = self.begun.fetch_add(CALLS, Ordering::Relaxed);
            if before >= self.request.calls || self.failed().is_some() {
                return;
            }
            let calls = CALLS.min(self.request.calls - before);
            let seed = self.request.seed.wrapping_add(before / CALLS_OF_A_SEED);
            let words = [seed, calls].map(|number| number.to_string());
            let ended = follow(child(self.request, &["--seed", &words[0], "--calls", &words[1]]));
            if !ended.is_well() {
                self.failed().get_or_insert((seed, ended));
                return;
            }
            self.ended.fetch_add(calls, Ordering::Relaxed);
        }
    }

    fn failed(&self) -> MutexGuard<'_, Option<(u64, ChildResult)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says how far the run is, until `over` hears of its end.
    fn tell(&self, over: &Receiver<()>) {
        let start = Instant::now();
        while over.recv_timeout(TOLD_EVERY) == Err(RecvTimeoutError::Timeout) {
            let ended = self.ended.load(Ordering::Relaxed).max(1);
            let (elapsed, all) = (start.elapsed().as_secs(), self.request.calls);
            let left = u128::from(elapsed) * u128::from(all - ended.min(all)) / u128::from(ended);
            eprintln!("{ended} of {all} calls after {elapsed} s, about {left} s left");
        }
    }
}

fn watch(request: &CommandLine) -> ExitCode {
    let (begun, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    let batches = &Batches { request, begun, ended, failed: Mutex::new(None) };
    let (is_over, over) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || batches.tell(&over));
        // Calls wait more than they compute.
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let workers: Vec<_> = (0..2 * processors).map(|_| scope.spawn(|| batches.work())).collect();
        workers.into_iter().for_each(|worker| worker.join().expect("a worker does not panic"));
        drop(is_over);
    });
    let failed = batches.failed().take();
    let Some((first, ended)) = failed else {
        let seconds = calls::time_of_children().as_secs_f64();
        println!(
            "{} calls through the door {} are safe, and took {seconds:.1} s of CPU time",
            request.calls, request.door
        );
        return ExitCode::SUCCESS;
    };
    let seed = ended.seed.unwrap_or(first);
    println!("seed {seed} of the door {} {}", request.door, ended.how());
    println!("{}", last_lines(&ended.said));
    let whole = calls::script(seed, CALLS_OF_A_SEED);
    let script = if ended.status.is_some() { shorten(request, whole) } else { whole };
    let (listed, is_again) = played(request, &script, true);
    println!("Its calls ({}):\n{}", script.len() / CALL_BYTES - 1, listed.said);
    if !is_again {
        println!("It ended well when it was tried again: the order of threads decides.");
    }
    println!(
        "Once more: cargo xtask fuzz calls {} --seed {seed} --calls {CALLS_OF_A_SEED}",
        request.door
    );
    ExitCode::FAILURE
}

fn last_lines(said: &str) -> String {
    let lines: Vec<_> = said.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Plays a script from a file; whether it failed.
fn played(request: &CommandLine, script: &[u8], lists: bool) -> (ChildResult, bool) {
    let path = std::env::temp_dir().join(format!("pto-fuzz-calls-{}", std::process::id()));
    std::fs::write(&path, script).expect("the script is written");
    let path_text = path.to_string_lossy();
    let mut arguments = vec!["--script", &*path_text];
    if lists {
        arguments.push("--list");
    }
    let ended = follow(child(request, &arguments));
    std::fs::remove_file(&path).unwrap_or_default();
    let failed = !ended.is_well();
    (ended, failed)
}

/// Leaves out calls for as long as the script still fails.
fn shorten(request: &CommandLine, mut script: Vec<u8>) -> Vec<u8> {
    let mut part = script.len() / CALL_BYTES / 2;
    let mut tries = 0;
    while part > 0 && tries < TRIES {
        let mut at = 1;
        while at * CALL_BYTES < script.len() && tries < TRIES {
            let end = ((at + part) * CALL_BYTES).min(script.len());
            let shorter = [&script[..at * CALL_BYTES], &script[end..]].concat();
            tries += 1;
            if played(request, &shorter, false).1 {
                script = shorter;
            } else {
                at += part;
            }
        }
        part /= 2;
    }
    script
}
