//! Calls a public interface with seeds, one after the other, each in a process that is watched: a crash, an abort or a script that does not end is told with
//! its seed, and with the calls that it made. `cargo xtask fuzz calls` builds and starts this program.
//!
//! ```text
//! watch --start--> child: "seed N" before each script --> ends well, ends otherwise, or says nothing for a minute
//!   ^--- a script that fails is made shorter, then listed ---'
//! ```

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pto_fuzz::calls::{self, CALL_BYTES, CALLS_OF_A_SEED};

/// A script that says nothing for so long does not end.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often a script that fails is tried with fewer calls.
const TRIES: usize = 40;

/// What it is called, and what plays a script through it.
type Door = (&'static str, fn(&[u8]));

/// The interfaces, and what plays a script on them. The last one is a planted mistake, for tests of this program.
const DOORS: &[Door] = &[("rust", calls::rust), ("c", calls::c), ("mistake", mistake)];

/// Fails where a script has a certain call.
fn mistake(script: &[u8]) {
    let has_call = script.chunks(CALL_BYTES).skip(1).any(|call| call[0] == 7);
    assert!(!has_call, "the planted mistake");
}

const USAGE: &str = "usage: pto-fuzz-calls rust|c [--seed N] [--calls N]\n\
    Example: pto-fuzz-calls rust --seed 1 --calls 100000\n\
    One seed alone: pto-fuzz-calls c --seed 17 --calls 200";

/// What the command line asks for.
struct Request {
    door: String,
    seed: u64,
    calls: u64,
    /// A script in a file, instead of those of seeds.
    script: Option<PathBuf>,
    is_child: bool,
    lists: bool,
}

fn request() -> Option<Request> {
    let mut words = std::env::args().skip(1);
    let mut request = Request {
        door: words.next().filter(|door| DOORS.iter().any(|(name, _)| name == door))?,
        seed: 1,
        calls: CALLS_OF_A_SEED,
        script: None,
        is_child: false,
        lists: false,
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
    let Some(request) = request() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if request.is_child {
        play(&request);
        return ExitCode::SUCCESS;
    }
    watch(&request)
}

/// The child: plays scripts.
fn play(request: &Request) {
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

fn child(request: &Request, arguments: &[&str]) -> Child {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command.arg(&request.door).arg("--child").args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("this program starts again")
}

/// How a child ended, and what it said.
struct Ended {
    /// `None`: it did not end by itself.
    status: Option<ExitStatus>,
    seed: Option<u64>,
    said: String,
}

impl Ended {
    fn is_well(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    fn how(&self) -> String {
        self.status.map_or_else(
            || format!("did not end within {} s", PATIENCE.as_secs()),
            |status| format!("ended with {status}"),
        )
    }
}

/// Waits for a child that says something now and then.
fn follow(mut child: Child) -> Ended {
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
        match lines.recv_timeout(PATIENCE) {
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
    Ended { status, seed, said: errors.join().unwrap_or_default() }
}

fn watch(request: &Request) -> ExitCode {
    let (seed, calls) = (request.seed.to_string(), request.calls.to_string());
    let ended = follow(child(request, &["--seed", &seed, "--calls", &calls]));
    if ended.is_well() {
        println!("{} calls through the door {} are safe", request.calls, request.door);
        return ExitCode::SUCCESS;
    }
    let seed = ended.seed.unwrap_or(request.seed);
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
fn played(request: &Request, script: &[u8], lists: bool) -> (Ended, bool) {
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
fn shorten(request: &Request, mut script: Vec<u8>) -> Vec<u8> {
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
