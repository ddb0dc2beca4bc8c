//! Folders that pypto's compiler has written, as programs of `pto run` and `pto check`. The kernels are C++ and the inputs Python, so that the Python
//! package runs them (`simpler_setup.compiled_folder`).

use std::fmt::Debug;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command as Process, Stdio};

use clap::{Parser as _, ValueEnum as _};
use pto_host::group::GroupTarget;

use crate::args::{CheckArgs, Cli, Command, RunArgs};
use crate::errors::{Exit, Failure};

/// The interpreter, unless the environment names another one.
const PYTHON: &str = "python3";
const PYTHON_VARIABLE: &str = "PTO_PYTHON";
const MODULE: &str = "simpler_setup.compiled_folder";

/// Whether a command names a folder.
pub(crate) fn is_folder(name: &str) -> bool {
    Path::new(name).is_dir()
}

/// Runs a folder.
///
/// # Errors
/// An option that folders do not have; a Python without the package.
pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let mut plain = vec!["run".to_owned(), args.example.clone()];
    let mut words = Vec::new();
    if let Some(hosting) = args.hosting {
        let name = hosting
            .to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned());
        plain.extend(["--hosting".to_owned(), name.clone()]);
        words.extend(["--hosting".to_owned(), name]);
    }
    if let Some(GroupTarget::Local(devices)) = args.group {
        plain.extend(["--group".to_owned(), format!("local:{devices}")]);
        words.extend(["--device".to_owned(), format!("0-{}", devices.saturating_sub(1))]);
    }
    check_options(&plain, args, "--hosting and --group local:N")?;
    python(&args.example, &words)
}

/// Runs a folder and reports races and lines that a core leaves in its cache.
///
/// # Errors
/// As [`run`].
pub(crate) fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    check_options(&["check".to_owned(), args.target.clone()], args, "no option")?;
    python(&args.target, &["--check".to_owned()])
}

/// Refuses options besides those of `plain`.
fn check_options(plain: &[String], given: &impl Debug, allowed: &str) -> Result<(), Failure> {
    let words = std::iter::once("pto").chain(plain.iter().map(String::as_str));
    let parsed = Cli::try_parse_from(words).map_err(Failure::internal)?;
    let alone = match parsed.command {
        Command::Run(args) => format!("{args:?}"),
        Command::Check(args) => format!("{args:?}"),
        _ => String::new(),
    };
    if alone == format!("{given:?}") {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "a folder of pypto's compiler takes {allowed} here; for its other settings see `{PYTHON} -m {MODULE} --help`"
    )))
}

fn python(folder: &str, words: &[String]) -> Result<Exit, Failure> {
    let interpreter = std::env::var_os(PYTHON_VARIABLE).unwrap_or_else(|| PYTHON.into());
    let shown = interpreter.display().to_string();
    let start = |command: &mut Process| {
        command.status().map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::usage(format!(
                "there is no program {shown}; install Debian's python3, or name an interpreter with {PYTHON_VARIABLE}"
            )),
            _ => Failure::internal(format!("{shown} cannot be started: {error}")),
        })
    };
    let mut import = Process::new(&interpreter);
    import.args(["-c", "import simpler_setup, _task_interface"]).stderr(Stdio::null());
    if !start(&mut import)?.success() {
        return Err(Failure::usage(format!(
            "{shown} has no package simpler_setup, which compiles and runs such folders; install it (`pip install .`), or name an interpreter that has it with {PYTHON_VARIABLE}"
        )));
    }
    let mut command = Process::new(&interpreter);
    command.args(["-m", MODULE]).arg(folder).args(words);
    let status = start(&mut command)?;
    match status.code() {
        Some(0) => Ok(Exit::Pass),
        Some(1) => Ok(Exit::Wrong),
        Some(2) => Ok(Exit::Usage),
        _ => Err(Failure::faulted(format!("the program ended with {status}"))),
    }
}
