//! The command `pto`: runs, checks, measures and shows programs on a PTO device.
//!
//! One module for each command (`run`, `check`, `graph`, `view`, `analyze`, `soak`, `bench`, `group`, `ptop`, `fw`, `acl`, `migrate`, `info`, `manual`);
//! `args` declares the command line, `errors` maps errors to messages and exit codes, and `output` writes text and JSON to
//! standard output. It is a library so that cargo compiles it while the last of its dependencies compile: a program waits for all of them.

mod acl;
mod analyze;
mod args;
mod arguments;
mod bench;
mod campaign;
mod chart;
mod check;
mod compiled_folder;
mod device;
mod device_metg;
mod dump;
mod errors;
mod fold;
mod form;
mod fw;
mod golden;
mod graph;
mod group;
mod help;
mod info;
mod input_file;
mod interrupt;
mod kernels;
mod list;
mod logging;
mod manual;
mod meaning;
mod migrate;
mod model;
mod npy;
mod output;
mod output_file;
mod predict;
mod program;
mod programs;
mod progress;
mod ptop;
mod replay;
mod request;
mod round;
mod run;
mod session_soak;
mod soak;
mod soak_case;
mod summary;
mod target;
mod tensor_folder;
mod text;
mod timeline;
mod training;
mod view;
mod virtual_report;
mod virtual_time;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{BenchArgs, BenchCommand, Cli, Command, CompatArgs, CompatCommand};
use crate::errors::{Exit, Failure};
use crate::form::Form;

/// The command, with the arguments of this process.
pub fn main() -> ExitCode {
    let (arguments, hints) = args::todays(std::env::args_os().collect());
    for hint in hints {
        // Where standard error is closed, nothing depends on it.
        writeln!(std::io::stderr(), "{hint}").unwrap_or_default();
    }
    let command = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli.command,
        Err(error) => return errors::refused_arguments(&error, asked_form()),
    };
    let form = command.form();
    match interrupt::end_on_interrupt(form).and_then(|()| run(&command)) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(form),
    }
}

/// The form that a command line asks for that is wrong elsewhere.
fn asked_form() -> Form {
    Form::from(std::env::args_os().any(|argument| argument == "--json"))
}

fn run(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Soak(args) => soak::soak(args),
        Command::Analyze(args) => analyze::analyze(args),
        Command::View(args) => view::view(args),
        Command::Graph(args) => graph::graph(args),
        Command::Check(args) => check::check(args),
        Command::Bench(args) => bench(args),
        Command::Info(args) => info::info(args),
        Command::Fw(args) => fw::fw(args),
        Command::Compat(args) => compat(args),
        Command::Program(args) => ptop::program(args),
        Command::Completions(args) => manual::completions(args),
        Command::Man(args) => manual::man(args),
    }
}

fn bench(args: &BenchArgs) -> Result<Exit, Failure> {
    match &args.command {
        None => bench::bench(args),
        Some(BenchCommand::Collectives(args)) => group::comm::bench(args),
        Some(BenchCommand::Groups(args)) => group::scaling::scaling(args),
    }
}

fn compat(args: &CompatArgs) -> Result<Exit, Failure> {
    match &args.command {
        CompatCommand::Cann(args) => acl::acl(args),
        CompatCommand::Simpler(args) => migrate::migrate(args),
    }
}
