//! The command `pto`: runs, checks, measures and shows programs on a PTO device.
//!
//! One module for each command (`run`, `soak`, `bench`, `group`, `check`, `analyze`, `view`, `graph`, `list`, `info`, `fw`, `acl`, `migrate`, `ptop`, `manual`);
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

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, CommArgs, CommCommand, Command};
use crate::errors::{Exit, Failure};
use crate::form::Form;

/// The command, with the arguments of this process.
pub fn main() -> ExitCode {
    let command = match Cli::try_parse() {
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
        Command::Bench(args) => bench::bench(args),
        Command::Comm(args) => comm(args),
        Command::List(args) => list::list(args),
        Command::Info(args) => info::info(args),
        Command::Fw(args) => fw::fw(args),
        Command::Acl(args) => acl::acl(args),
        Command::Migrate(args) => migrate::migrate(args),
        Command::Program(args) => ptop::program(args),
        Command::Query(args) => ptop::query(args),
        Command::Completions(args) => manual::completions(args),
        Command::Man(args) => manual::man(args),
    }
}

fn comm(args: &CommArgs) -> Result<Exit, Failure> {
    match &args.command {
        CommCommand::Bench(args) => group::comm::bench(args),
        CommCommand::Scaling(args) => group::scaling::scaling(args),
    }
}
