//! The log that the variables of the interface ask for: which calls were made, and which failed.
//!
//! | variable | meaning |
//! |---|---|
//! | `ASCEND_GLOBAL_LOG_LEVEL` | 0: every call; 1 to 3, and without it: calls that fail; 4: nothing |
//! | `ASCEND_SLOG_PRINT_TO_STDOUT`, `ASCEND_LOG_PRINT_TO_STDOUT` | 1: to standard output instead of a file |
//! | `ASCEND_PROCESS_LOG_PATH` | the folder of the files; without it `ascend/log` in the home folder |
//!
//! Without any of them there is no log. A file is called `debug/plog/plog-PID_TIME.log` in its folder.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::refusal::Refusal;

const LEVEL: &str = "ASCEND_GLOBAL_LOG_LEVEL";
const FOLDER: &str = "ASCEND_PROCESS_LOG_PATH";
const TO_STDOUT: [&str; 2] = ["ASCEND_SLOG_PRINT_TO_STDOUT", "ASCEND_LOG_PRINT_TO_STDOUT"];

/// Levels as the variable has them; a line is written where its level is not below the variable's.
const DEBUG: u32 = 0;
const ERROR: u32 = 3;
const OFF: u32 = 4;

/// Where lines go.
enum Sink {
    Stdout,
    File(Mutex<File>),
}

struct Log {
    level: u32,
    sink: Sink,
}

/// The log of the process; `None`: it is off.
fn log() -> Option<&'static Log> {
    static LOG: OnceLock<Option<Log>> = OnceLock::new();
    LOG.get_or_init(|| {
        open().unwrap_or_else(|why| {
            eprintln!("pto cann: there is no log: {why}");
            None
        })
    })
    .as_ref()
}

/// Whether there is one.
pub(crate) fn is_on() -> bool {
    log().is_some()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn open() -> Result<Option<Log>, String> {
    let (level, folder) = (variable(LEVEL), variable(FOLDER));
    let is_printed = TO_STDOUT.iter().any(|name| variable(name).as_deref() == Some("1"));
    if level.is_none() && folder.is_none() && !is_printed {
        return Ok(None);
    }
    let number = level.as_deref().map_or(Some(ERROR), |text| text.parse().ok());
    let Some(level) = number.filter(|level| *level <= OFF) else {
        return Err(format!(
            "{LEVEL} is {}; set it to 0 (every call) to 4 (nothing)",
            level.unwrap_or_default()
        ));
    };
    if level == OFF {
        return Ok(None);
    }
    let sink = if is_printed { Sink::Stdout } else { Sink::File(Mutex::new(file(folder)?)) };
    Ok(Some(Log { level, sink }))
}

/// A new file for this process.
fn file(folder: Option<String>) -> Result<File, String> {
    let folder = match (folder, variable("HOME")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(home)) => Path::new(&home).join("ascend/log"),
        (None, None) => return Err(format!("there is no home folder; set {FOLDER}")),
    };
    let folder = folder.join("debug/plog");
    let time: String = now().chars().filter(char::is_ascii_digit).collect();
    let path = folder.join(format!("plog-{}_{time}.log", std::process::id()));
    let made = fs::create_dir_all(&folder).and_then(|()| File::create_new(&path));
    made.map_err(|error| {
        format!(
            "{} cannot be made: {error}; set {FOLDER} to a folder that can be written",
            path.display()
        )
    })
}

/// The time here, as `2026-11-23-02:31:07.123.456`.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = libc::time_t::try_from(since.as_secs()).unwrap_or(0);
    let mut text = [0; 32];
    // SAFETY: all fields of the structure may be zero.
    let mut parts = unsafe { std::mem::zeroed::<libc::tm>() };
    // SAFETY: both pointers are valid.
    unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) };
    // SAFETY: the buffer has as many bytes, and the format ends with a zero.
    unsafe {
        libc::strftime(
            text.as_mut_ptr(),
            text.len(),
            c"%Y-%m-%d-%H:%M:%S".as_ptr(),
            &raw const parts,
        )
    };
    // SAFETY: the buffer was zeros, and the text is shorter than it.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
    format!("{text}.{:03}.{:03}", since.subsec_millis(), since.subsec_micros() % 1000)
}

/// The program makes a call.
pub(crate) fn called(call: &str) {
    if let Some(log) = log().filter(|log| log.level == DEBUG) {
        log.write("DEBUG", call, "called");
    }
}

/// A call fails.
pub(crate) fn refused(call: &str, refusal: &Refusal) {
    if let Some(log) = log() {
        log.write("ERROR", call, &format!("{}: {}", refusal.code, refusal.text));
    }
}

impl Log {
    fn write(&self, level: &str, call: &str, text: &str) {
        let (process, time) = (std::process::id(), now());
        let line = format!("[{level}] ACL({process},{}):{time} [{call}] {text}\n", name());
        let written = match &self.sink {
            Sink::Stdout => {
                io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush())
            }
            Sink::File(file) => {
                file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
            }
        };
        // Said once: the disk that is full stays full.
        static LOST: OnceLock<()> = OnceLock::new();
        if let Err(error) = written {
            LOST.get_or_init(|| eprintln!("pto cann: lines of the log are lost: {error}"));
        }
    }
}

/// The name of the program.
fn name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let path = std::env::current_exe().unwrap_or_default();
        path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    })
}

/// Writes a line that the program itself logs: function, file and text, and the line in the file.
pub(crate) fn of_program(level: u32, [function, file, text]: [&str; 3], line: u32) {
    let level = ["DEBUG", "INFO", "WARNING", "ERROR"].get(level as usize).unwrap_or(&"LOG");
    if TO_STDOUT.iter().any(|name| std::env::var_os(name).is_some()) {
        println!("[{level}] {file}:{line} {function}: {text}");
    } else if *level == "ERROR" {
        eprintln!("[{level}] {file}:{line} {function}: {text}");
    }
}
