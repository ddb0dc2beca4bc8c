//! `pto program`: program files. [`build`] writes them, [`inspect`] says what they hold, [`mod@run`] runs them, [`check`] compares them with a system, [`diff`]
//! with each other. `pto program query` ([`mod@query`]) describes the system here.

mod build;
mod builder;
mod check;
mod diff;
mod file_tensor;
mod graph;
mod inspect;
pub(crate) mod judge;
mod query;
mod run;
pub(crate) mod run_report;
mod shown;
mod system;

use std::path::Path;

use pto_host::workloads::program::Program;

use crate::args::{ProgramArgs, ProgramCommand};
use crate::errors::{Exit, Failure};

/// One of the commands.
pub(crate) fn program(args: &ProgramArgs) -> Result<Exit, Failure> {
    match &args.command {
        ProgramCommand::Build(args) => build::build(args),
        ProgramCommand::Inspect(args) => inspect::inspect(args, &read(&args.file)?),
        ProgramCommand::Run(args) => run::run(args, read(&args.file)?),
        ProgramCommand::Check(args) => check::check(args, &read(&args.file)?),
        ProgramCommand::Diff(args) => diff::diff(args, &read(&args.first)?, &read(&args.second)?),
        ProgramCommand::Query(args) => query::query(args),
    }
}

/// Reads a program file.
fn read(path: &Path) -> Result<Program, Failure> {
    let shown = path.display();
    let file = std::fs::read(path);
    let file =
        file.map_err(|error| Failure::internal(format!("cannot read '{shown}': {error}")))?;
    let program = Program::from_bytes(&file);
    program.map_err(|error| Failure::usage(format!("'{shown}': {error}")))
}
