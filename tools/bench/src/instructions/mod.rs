//! Instructions a task on this machine's processor, counted by callgrind (Valgrind).
//!
//! A program runs a graph a few times, and then again a few times more; the difference is what the runs take, without
//! start and set-up. Counts do not depend on what else the machine does, except for the thread that waits for the end of
//! a run now and then, which is a fraction of an instruction a task.

mod profile;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use pto_abi::BuildMode;
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::family::Family;
use crate::peers;
use crate::runner::pto::{Die, Pto, Variant, pool};
use crate::runner::{Error, LoadedGraph, Runner};
use crate::stream::{StreamBench, SubmitMethod};

/// One runner on one graph.
#[derive(Clone, Debug, Serialize)]
pub struct Counted {
    /// The graph's name.
    pub graph: &'static str,
    /// The runner's name.
    pub runner: String,
    /// Its tasks.
    pub tasks: u32,
    /// Instructions a task, build and run.
    pub per_task: f64,
    /// The part of them that is ours: the same on every machine with the same compiler.
    pub own_per_task: f64,
    /// The same by the parts of the runtime, in the order of a task's path.
    pub parts: Vec<(&'static str, f64)>,
}

impl Counted {
    /// The part of the builder and its program: all but schedulers, cores and the turns that they get.
    #[must_use]
    pub fn build_per_task(&self) -> f64 {
        let runs = |part| matches!(part, "scheduler" | "cores" | "pool: turns");
        let run = self.parts.iter().filter(|(part, _)| runs(*part));
        self.own_per_task - run.map(|(_, count)| count).sum::<f64>()
    }
}

/// About how many tasks are counted.
pub const TASKS: u32 = 20_000;
/// Runs that are subtracted, and runs from which they are.
const RUNS: [u32; 2] = [1, 3];

/// What of ours is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountMode {
    /// A pool of one, built by the host.
    Host,
    /// A pool of one, with a graph that has run before.
    Prepared,
    /// A pool of one, built on the AICPU while it runs.
    Aicpu,
    /// The sweep with atomic counters.
    Sweep,
}

impl CountMode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Host, Self::Prepared, Self::Aicpu, Self::Sweep];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host-built",
            Self::Prepared => "prepared",
            Self::Aicpu => "aicpu-built",
            Self::Sweep => "sweep",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// What a program that is counted does: builds and runs a graph so many times.
///
/// # Errors
/// Those of the runner.
pub fn run(mode: CountMode, family: Family, tasks: u32, runs: u32) -> Result<(), Error> {
    let variant = match mode {
        CountMode::Host => Variant::Host,
        CountMode::Prepared => Variant::Prepared,
        CountMode::Aicpu | CountMode::Sweep => Variant::Aicpu(BuildMode::CONCURRENT),
    };
    let mut runner: Box<dyn Runner> = match mode {
        CountMode::Sweep => Box::<crate::runner::floor::AtomicSweep>::default(),
        _ => Box::new(Pto::open(pool(1), variant, Die::default())?),
    };
    let graph = Arc::new(family.graph(tasks));
    runner.load(LoadedGraph { graph: &graph, file: None })?;
    for _ in 0..runs {
        runner.sample(0)?;
    }
    Ok(())
}

/// The first argument of a call that runs the streaming benchmark.
pub const STREAM: &str = "stream";

/// The same with a program of the streaming benchmark.
///
/// # Errors
/// Those of the device.
pub fn run_stream(way: SubmitMethod, tasks: u32, runs: u32) -> Result<(), Error> {
    let mut bench = StreamBench::open()?;
    for _ in 0..runs {
        bench.run(way, tasks)?;
    }
    Ok(())
}

/// Counts ours: `program` is called with `arguments`, and then mode, graph, tasks and runs, which it gives to [`run`].
///
/// # Errors
/// When Valgrind is missing, or the program fails.
pub fn count(
    program: &Path,
    arguments: &[&str],
    mode: CountMode,
    family: Family,
) -> Result<Counted, String> {
    let profiles = RUNS.map(|runs| {
        let written = profile_file()?;
        let mut command = Command::new("valgrind");
        callgrind(&mut command, written.path()).arg(program).args(arguments);
        command.args([mode.name(), family.name(), &TASKS.to_string(), &runs.to_string()]);
        profile(command, "", &written)
    });
    let runner = match mode {
        CountMode::Sweep => mode.name().to_owned(),
        _ => format!("pto pool-1 {}", mode.name()),
    };
    per_task(runner, family.name(), family.graph(TASKS).tasks(), profiles)
}

/// Counts the streaming runtime: `program` is called with the word `stream`, and then way, tasks and runs, which it gives
/// to [`run_stream`].
///
/// # Errors
/// When Valgrind is missing, or the program fails.
pub fn count_stream(program: &Path, way: SubmitMethod) -> Result<Counted, String> {
    let profiles = RUNS.map(|runs| {
        let written = profile_file()?;
        let mut command = Command::new("valgrind");
        callgrind(&mut command, written.path()).arg(program);
        command.args([STREAM, way.name(), &TASKS.to_string(), &runs.to_string()]);
        profile(command, "", &written)
    });
    per_task("pto pool-1 streaming".to_owned(), way.name(), TASKS, profiles)
}

/// Counts a peer on one OS thread.
///
/// # Errors
/// When Valgrind is missing, or the peer fails.
pub fn count_peer(
    name: &str,
    peer: &peers::Program,
    folder: &Path,
    family: Family,
) -> Result<Counted, String> {
    let file = folder.join("counted");
    family.graph(TASKS).write(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let profiles = RUNS.map(|runs| {
        let written = profile_file()?;
        let mut command = Command::new("valgrind");
        callgrind(&mut command, written.path()).arg(&peer.path).args(&peer.arguments).arg("1");
        command.env("STARPU_SILENT", "1").env("STARPU_HOME", folder);
        let samples = "sample 0\n".repeat(runs as usize);
        profile(command, &format!("load {}\n{samples}quit\n", file.display()), &written)
    });
    per_task(format!("{name}, 1"), family.name(), family.graph(TASKS).tasks(), profiles)
}

fn callgrind<'a>(command: &'a mut Command, profile: &Path) -> &'a mut Command {
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(profile);
    command.arg("--tool=callgrind").arg(file)
}

fn per_task(
    runner: String,
    graph: &'static str,
    tasks: u32,
    profiles: [Result<Profile, String>; 2],
) -> Result<Counted, String> {
    let [few, many] = profiles;
    let (few, many) = (few?, many?);
    let each = |few: u64, many: u64| {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52 instructions")]
        let difference = many.saturating_sub(few) as f64;
        difference / f64::from(RUNS[1] - RUNS[0]) / f64::from(tasks)
    };
    let of = |profile: &Profile, part| profile.parts.get(part).copied().unwrap_or(0);
    let parts = profile::names().map(|part| (part, each(of(&few, part), of(&many, part))));
    let parts: Vec<_> = parts.filter(|(_, instructions)| *instructions >= 0.05).collect();
    let own = parts.iter().filter(|(part, _)| *part != profile::REST);
    Ok(Counted {
        graph,
        runner,
        tasks,
        own_per_task: own.map(|(_, instructions)| instructions).sum(),
        per_task: each(few.total, many.total),
        parts,
    })
}

/// What a program executed.
struct Profile {
    total: u64,
    parts: BTreeMap<&'static str, u64>,
}

/// What all threads of the program executed together.
fn profile(mut command: Command, input: &str, written: &NamedTempFile) -> Result<Profile, String> {
    let total = total(&mut command, input)?;
    let text = std::fs::read(written.path())
        .map_err(|error| format!("{}: {error}", written.path().display()))?;
    Ok(Profile { total, parts: profile::parts(&String::from_utf8_lossy(&text)) })
}

fn profile_file() -> Result<NamedTempFile, String> {
    NamedTempFile::new().map_err(|error| format!("a temporary file: {error}"))
}

/// What callgrind says on its way out.
fn total(command: &mut Command, input: &str) -> Result<u64, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        format!("valgrind cannot be started ({error}): apt-get install valgrind")
    })?;
    if let Some(mut to) = child.stdin.take() {
        to.write_all(input.as_bytes())
            .map_err(|error| format!("the program does not read: {error}"))?;
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let says = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("the program failed under valgrind: {says}"));
    }
    let collected = says.lines().find_map(|line| line.split_once("Collected : ")?.1.parse().ok());
    collected.ok_or_else(|| format!("valgrind does not say what it counted: {says}"))
}
