//! `pto`: runs examples on a device, and says what there is.
//!
//! One module for each command ([`run`], [`soak`], [`mod@bench`], [`check`], [`analyze`], [`view`], [`graph`], [`list`], [`info`], [`fw`]);
//! [`args`] is what a user can write, [`errors`]
//! what can go wrong and with which exit code, [`output`] how text and JSON reach standard output.

mod analyze;
mod args;
mod bench;
mod check;
mod device;
mod errors;
mod fw;
mod graph;
mod info;
mod list;
mod logging;
mod npy;
mod output;
mod program;
mod progress;
mod replay;
mod run;
mod soak;
mod summary;
mod text;
mod timeline;
mod view;
mod virtual_time;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Soak(args) => soak::soak(&args),
        Command::Analyze(args) => analyze::analyze(&args),
        Command::View(args) => view::view(&args),
        Command::Graph(args) => graph::graph(&args),
        Command::Check(args) => check::check(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::List(args) => list::list(&args),
        Command::Info(args) => info::info(&args),
        Command::Fw(args) => fw::fw(&args),
    };
    match result {
        Ok(code) => code.into(),
        Err(failure) => failure.report(),
    }
}
