//! What a user can write after `pto program`, and after `pto query`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::value::{HostingMode, pair, tolerance};
use crate::help;

/// Program files.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct ProgramArgs {
    #[command(subcommand)]
    pub(crate) command: ProgramCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProgramCommand {
    #[command(after_help = help::PROGRAM_BUILD)]
    /// Writes a program file from a workload or a graph file
    Build(ProgramBuildArgs),
    #[command(after_help = help::PROGRAM_INSPECT)]
    /// Shows what a program file holds: sections, tensors with their layouts, operations, what it needs
    Inspect(ProgramInspectArgs),
    #[command(after_help = help::PROGRAM_RUN)]
    /// Runs a program on tensors from NumPy files, or drawn ones, and compares what it gives
    Run(Box<ProgramRunArgs>),
    #[command(after_help = help::PROGRAM_CHECK)]
    /// Compares what a program needs with a system (exit code 1: it cannot run there)
    Check(ProgramCheckArgs),
    #[command(after_help = help::PROGRAM_DIFF)]
    /// Shows in what two program files differ (exit code 1: they do)
    Diff(ProgramDiffArgs),
}

impl ProgramCommand {
    /// Whether it answers with one JSON object.
    pub(crate) const fn json(&self) -> bool {
        match self {
            Self::Build(args) => args.json,
            Self::Inspect(args) => args.json,
            Self::Run(args) => args.json,
            Self::Check(args) => args.json,
            Self::Diff(args) => args.json,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ProgramBuildArgs {
    /// A workload (.workload), or a graph file (.jsonl) with kernels of the library
    pub(crate) source: PathBuf,
    /// The file to write [default: the name of the source with .ptop]
    #[arg(short, long, value_name = "FILE.ptop")]
    pub(crate) output: Option<PathBuf>,
    /// The layout of a tensor: row-major, column-major, nz, or tiles ROWSxCOLS; for the last two the workload has the
    /// tensor as it stands in memory, and the extents of the matrix follow behind a colon (`W=nz:500x300`)
    #[arg(long = "layout", value_name = "NAME=FORMAT", value_parser = pair::<String>)]
    pub(crate) layouts: Vec<(String, String)>,
    /// Where the program needs a tensor: device or on-chip
    #[arg(long = "place", value_name = "NAME=PLACE", value_parser = pair::<String>)]
    pub(crate) places: Vec<(String, String)>,
    /// What a tensor is to the program, where it is not what the tasks say: output (all of it is written), updated
    /// (what is not written stays) or temporary
    #[arg(long = "role", value_name = "NAME=ROLE", value_parser = pair::<String>)]
    pub(crate) roles: Vec<(String, String)>,
    /// A NumPy file whose elements become those of a constant
    #[arg(long = "constant", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) constants: Vec<(String, PathBuf)>,
    /// The only target that the program is for [default: any]
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ProgramInspectArgs {
    /// The program file
    pub(crate) file: PathBuf,
    /// What to show; everything in short unless given
    #[arg(long, value_enum)]
    pub(crate) section: Option<ShownSection>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of a program file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShownSection {
    /// The text of the workload
    Source,
    /// The tile kernels
    Kernels,
}

#[derive(Args, Debug)]
pub(crate) struct ProgramCheckArgs {
    /// The program file
    pub(crate) file: PathBuf,
    /// A file that `pto query` wrote on the system where the program is to run [default: the simulator here]
    #[arg(long, value_name = "FILE.json")]
    pub(crate) system: Option<PathBuf>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ProgramDiffArgs {
    /// A program file
    pub(crate) first: PathBuf,
    /// Another one
    pub(crate) second: PathBuf,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct QueryArgs {
    /// The file to write the description to, for `pto program check --system`
    #[arg(short, long, value_name = "FILE.json")]
    pub(crate) output: Option<PathBuf>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ProgramRunArgs {
    /// The program file
    pub(crate) file: PathBuf,
    /// A NumPy file for a tensor that the program reads; floats that are not given are drawn, integers are zero
    #[arg(long = "input", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) inputs: Vec<(String, PathBuf)>,
    /// A size or a symbol of the program
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair::<String>)]
    pub(crate) params: Vec<(String, String)>,
    /// Decides what is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How often the program runs, each time on the inputs; what it updates goes on from run to run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) loops: u64,
    /// A NumPy file that an output is compared with
    #[arg(long = "expect", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) expect: Vec<(String, PathBuf)>,
    /// How far an output may be from that of --expect, as a part of the value
    #[arg(long, value_name = "X", default_value_t = 1e-5, value_parser = tolerance)]
    pub(crate) rtol: f64,
    /// How far an output may be from that of --expect, beside --rtol
    #[arg(long, value_name = "X", default_value_t = 1e-8, value_parser = tolerance)]
    pub(crate) atol: f64,
    /// Compares by Pearson correlation instead, which has to be at least this
    #[arg(long, value_name = "X", value_parser = tolerance)]
    pub(crate) pcc: Option<f64>,
    /// A folder for the outputs, a NumPy file for each; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// How the simulator is hosted on this machine
    #[arg(long, value_name = "MODE", value_enum, default_value = "pool")]
    pub(crate) hosting: HostingMode,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
