//! `pto acl run`: a program on our library for the CANN interface.
//!
//! Programs link or load the library under several names. A folder with links of these names stands in front of the library path; the
//! settings of the library go through the environment (docs/acl.md).

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::args::{AclArgs, AclCommand, AclRunArgs};
use crate::errors::{Exit, Failure};

/// The names that programs know the library by.
const NAMES: &[&str] = &["libascendcl.so", "libacl_rt.so", "libmsprofiler.so"];
const FILE: &str = "libascendcl.so";

/// Runs a program, and ends as the program does.
pub(crate) fn acl(args: &AclArgs) -> Result<Exit, Failure> {
    let AclCommand::Run(args) = &args.command;
    let library = library(args.library.as_deref())?;
    let folder = links(&library)?;
    let (program, arguments) =
        args.program.split_first().unwrap_or_else(|| unreachable!("clap asks for one"));
    let mut command = Command::new(program);
    command.args(arguments).env("LD_LIBRARY_PATH", path(folder.path())).envs(settings(args));
    let status = command.status().map_err(|error| {
        Failure::usage(format!("cannot start '{}': {error}", Path::new(program).display()))
    })?;
    drop(folder);
    // A program that a signal ended: as a shell says it.
    let signalled = status.signal().map(|signal| 128 + signal);
    std::process::exit(status.code().or(signalled).unwrap_or(1))
}

/// The library: as named, or beside this command.
fn library(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().ok();
    let own = own.as_deref().and_then(Path::parent);
    let beside = own.into_iter().flat_map(|own| [own.join(FILE), own.join("../lib").join(FILE)]);
    let mut candidates =
        named.map(Path::to_path_buf).into_iter().chain(beside.filter(|_| named.is_none()));
    let found = candidates.find(|file| file.is_file()).and_then(|file| file.canonicalize().ok());
    found.ok_or_else(|| match named {
        Some(file) => Failure::usage(format!("there is no library '{}'", file.display())),
        None => Failure::usage(format!(
            "there is no {FILE} beside this command; build it (`cargo build -p pto-acl`), or name it with --library"
        )),
    })
}

/// A folder with the library under each of its names.
fn links(library: &Path) -> Result<TempDir, Failure> {
    let refused = |error: std::io::Error| {
        Failure::internal(format!("cannot make links to the library: {error}"))
    };
    let folder = tempfile::tempdir().map_err(refused)?;
    for name in NAMES {
        symlink(library, folder.path().join(name)).map_err(refused)?;
    }
    Ok(folder)
}

/// The library path with a folder in front.
fn path(folder: &Path) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(more) = std::env::var_os("LD_LIBRARY_PATH").filter(|more| !more.is_empty()) {
        path.push(":");
        path.push(more);
    }
    path
}

/// The settings that options ask for.
fn settings(args: &AclRunArgs) -> Vec<(&'static str, OsString)> {
    let mut settings = Vec::new();
    settings.extend(args.devices.map(|devices| ("PTO_ACL_DEVICES", devices.to_string().into())));
    settings.extend(args.memory.map(|memory| ("PTO_ACL_MEMORY", memory.to_string().into())));
    if args.is_virtual {
        settings.push(("PTO_ACL_SEED", args.seed.unwrap_or(0).to_string().into()));
    }
    if args.check || args.strict {
        settings.push(("PTO_ACL_CHECK", if args.strict { "strict" } else { "report" }.into()));
    }
    if let Some(trace) = &args.trace {
        // The program may work in another folder.
        let file = std::path::absolute(trace).unwrap_or_else(|_| trace.clone());
        settings.push(("PTO_ACL_TRACE", file.into_os_string()));
    }
    if !args.fails.is_empty() {
        let fails: Vec<String> = args.fails.iter().map(ToString::to_string).collect();
        settings.push(("PTO_ACL_FAIL", fails.join(",").into()));
    }
    settings
}
