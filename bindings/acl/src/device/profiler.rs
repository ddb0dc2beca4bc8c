//! The profiler: `aclprof*`. Between start and stop, commands of streams and calls of the host are recorded; the end writes them as a
//! timeline, which `pto view` shows. `PTO_ACL_TRACE` records the whole program into one file.
//!
//! ```text
//! Init -> READY -> Start -> RECORDING -> Stop -> READY -> Finalize: the file
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::profile::{CALLS, COMMANDS, RANGES};
use super::{fleet, profile, timeline};
use crate::common::codes;
use crate::common::entry;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, HandleTable, Kind};

/// The file that the whole program is recorded into; `%p` in its name is replaced by the number of the process.
const TRACE_VARIABLE: &str = "PTO_ACL_TRACE";

/// What a program can ask for: the bit of the interface, what is recorded for it, and its name.
const ASKED: [(u64, u32, &str); 16] = [
    (0x1, CALLS, "ACL_API"),
    (0x2, COMMANDS, "TASK_TIME"),
    (0x4, 0, "AICORE_METRICS"),
    (0x8, 0, "AICPU"),
    (0x10, 0, "L2CACHE"),
    (0x20, 0, "HCCL_TRACE"),
    (0x40, 0, "TRAINING_TRACE"),
    (0x80, RANGES, "MSPROFTX"),
    (0x100, CALLS, "RUNTIME_API"),
    (0x200, 0, "GE_API_L0"),
    (0x800, COMMANDS, "TASK_TIME_L0"),
    (0x1000, 0, "TASK_MEMORY"),
    (0x2000, COMMANDS, "TASK_TIME_L2"),
    (0x4000, 0, "OP_ATTR"),
    (0x8000, COMMANDS, "TASK_TIME_L3"),
    (0x0100_0000, 0, "GE_API_L1"),
];

/// The setting that names the folder.
const PATH: u32 = 16;

/// What a program can set: the number of the interface, and its name. All but the folder are of hardware counters and of the host's system.
const SETTINGS: [(u32, &str); 15] = [
    (1, "STORAGE_LIMIT"),
    (3, "SYS_HARDWARE_MEM_FREQ"),
    (4, "LLC_MODE"),
    (5, "SYS_IO_FREQ"),
    (6, "SYS_INTERCONNECTION_FREQ"),
    (7, "DVPP_FREQ"),
    (8, "HOST_SYS"),
    (9, "HOST_SYS_USAGE"),
    (10, "HOST_SYS_USAGE_FREQ"),
    (11, "LOW_POWER_FREQ"),
    (12, "SYS_MEM_SERVICEFLOW"),
    (13, "SYS_CPU_FREQ"),
    (14, "OPTYPE"),
    (15, "NTS_METRICS"),
    (PATH, "PATH"),
];

/// A configuration.
struct Config {
    devices: Vec<i32>,
    asked: u64,
}

static CONFIGS: HandleTable<Config> = HandleTable::new(Kind::ProfileConfig);

/// The profiler between `aclprofInit` and `aclprofFinalize`.
struct Profiler {
    folder: PathBuf,
    running: Vec<Handle>,
    /// Everything that was asked for.
    asked: u64,
    /// The names of the settings that ask for what is not recorded.
    settings: BTreeSet<&'static str>,
}

static PROFILER: Mutex<Option<Profiler>> = Mutex::new(None);

fn profiler() -> MutexGuard<'static, Option<Profiler>> {
    PROFILER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn none() -> Refusal {
    Refusal::new(codes::NO_PROFILING, "the profiler is not initialised; call aclprofInit first")
}

/// Makes the profiler ready; its files go into `folder`.
pub(crate) fn initialise(folder: PathBuf) -> Answer {
    let mut profiler = profiler();
    require(profiler.is_none() && !traces_all(), || {
        let text =
            "the profiler runs already; call aclprofFinalize first, and leave PTO_ACL_TRACE out";
        Refusal::new(codes::PROFILING_RUNS, text)
    })?;
    make_folder(&folder)?;
    *profiler = Some(Profiler { folder, running: Vec::new(), asked: 0, settings: BTreeSet::new() });
    Ok(())
}

fn make_folder(folder: &Path) -> Answer {
    std::fs::create_dir_all(folder).map_err(|error| {
        let text = format!("the folder {} cannot be made: {error}", folder.display());
        Refusal::new(codes::INVALID_FILE, text)
    })
}

/// Sets something, before a configuration is started: where the files go, or what a timeline says that it lacks.
pub(crate) fn set(number: u32, value: &str) -> Answer {
    let known = SETTINGS.iter().find(|(known, _)| *known == number);
    let (_, name) = known.ok_or_else(|| {
        Refusal::argument(format!(
            "there is no setting {number} of the profiler; there are 1 and 3 to {PATH}"
        ))
    })?;
    let mut profiler = profiler();
    let profiler = profiler.as_mut().ok_or_else(none)?;
    require(profiler.running.is_empty(), || {
        let text = format!("the profiler runs; set {name} before aclprofStart");
        Refusal::new(codes::PROFILING_RUNS, text)
    })?;
    if number == PATH {
        require(!value.is_empty(), || Refusal::argument("the folder has no name; pass one"))?;
        let folder = PathBuf::from(value);
        make_folder(&folder)?;
        profiler.folder = folder;
    } else {
        profiler.settings.insert(name);
    }
    Ok(())
}

/// Writes what was recorded, and ends the profiler.
pub(crate) fn finalise() -> Answer {
    let ended = profiler().take().ok_or_else(none)?;
    let record = profile::take();
    let missing = not_recorded(ended.asked).chain(ended.settings.iter().copied());
    let missing: Vec<&str> = missing.collect();
    timeline::write(&ended.file(), &record, &missing.join(", "))
}

/// A configuration: devices, and what is asked for of them.
pub(crate) fn create(devices: &[u32], asked: u64) -> Answer<Handle> {
    let device = |number: &u32| {
        fleet::check(i32::try_from(*number).unwrap_or(-1)).map(|_| number.cast_signed())
    };
    let devices = devices.iter().map(device).collect::<Answer<Vec<i32>>>()?;
    let known = ASKED.iter().fold(0, |known, (bit, ..)| known | bit);
    require(asked != 0 && asked & !known == 0, || {
        let text = format!(
            "the profiler knows nothing of the bits {:#x}; ask for some of {known:#x}",
            asked & !known
        );
        Refusal::new(codes::PROFILING_CONFIG, text)
    })?;
    Ok(CONFIGS.open(Config { devices, asked }))
}

/// Forgets a configuration.
pub(crate) fn destroy(config: Handle) -> Answer {
    CONFIGS.take(config).map(drop)
}

/// Records from here on what a configuration asks for.
pub(crate) fn start(config: Handle) -> Answer {
    let asked = CONFIGS.get(config)?;
    let mut profiler = profiler();
    let profiler = profiler.as_mut().ok_or_else(none)?;
    let is_taken = profiler
        .running
        .iter()
        .filter_map(|running| CONFIGS.find(*running))
        .any(|running| running.devices.iter().any(|device| asked.devices.contains(device)));
    require(!is_taken && !profiler.running.contains(&config), || {
        let text = "a device of this configuration is profiled already; call aclprofStop first";
        Refusal::new(codes::PROFILING_RUNS, text)
    })?;
    profiler.running.push(config);
    profiler.asked |= asked.asked;
    profile::start(recorded(asked.asked), Some(&asked.devices));
    Ok(())
}

/// Records no more of what a configuration asks for.
pub(crate) fn stop(config: Handle) -> Answer {
    CONFIGS.get(config)?;
    let mut profiler = profiler();
    let profiler = profiler.as_mut().ok_or_else(none)?;
    let at = profiler.running.iter().position(|running| *running == config);
    let at = at.ok_or_else(|| {
        Refusal::new(codes::NO_PROFILING, "this configuration is not profiled; start it first")
    })?;
    profiler.running.remove(at);
    let left = profiler.running.iter().filter_map(|running| CONFIGS.find(*running));
    profile::keep_recording(left.fold(0, |left, config| left | recorded(config.asked)));
    Ok(())
}

fn recorded(asked: u64) -> u32 {
    ASKED
        .iter()
        .filter(|(bit, ..)| asked & bit != 0)
        .fold(0, |bits, (_, recorded, _)| bits | recorded)
}

/// The names of what was asked for and is not recorded.
fn not_recorded(asked: u64) -> impl Iterator<Item = &'static str> {
    let missing = move |(bit, recorded, _): &&(u64, u32, &str)| asked & bit != 0 && *recorded == 0;
    ASKED.iter().filter(missing).map(|(_, _, name)| *name)
}

impl Profiler {
    /// A file that is not there yet.
    fn file(&self) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        // Relaxed: the counter only makes names differ.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.folder.join(format!("timeline-{}-{number}.json", std::process::id()))
    }
}

/// The file that the whole program is recorded into.
fn trace_file() -> Option<&'static Path> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let asked = || std::env::var(TRACE_VARIABLE).ok().filter(|path| !path.is_empty());
    let named = |path: String| PathBuf::from(path.replace("%p", &std::process::id().to_string()));
    FILE.get_or_init(|| asked().map(named)).as_deref()
}

fn traces_all() -> bool {
    trace_file().is_some()
}

/// Records the whole program, if the environment asks for that.
pub(crate) fn trace_program() {
    extern "C" fn at_exit() {
        let Some(path) = trace_file().filter(|_| !entry::is_forked()) else { return };
        if let Err(refusal) = timeline::write(path, &profile::take(), "") {
            eprintln!("pto cann: {}", refusal.text);
        }
    }
    if !traces_all() || profile::has(COMMANDS) {
        return;
    }
    profile::start(CALLS | COMMANDS | RANGES, None);
    // SAFETY: the function may be called at the end of the process.
    unsafe { libc::atexit(at_exit) };
}
