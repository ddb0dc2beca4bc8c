//! What a user can write after `pto program`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::device::DeviceChoice;
use super::value::{HostingMode, correlation, pair, tolerance, whole};
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
    /// Shows the contents of a program file: sections, tensors with their layouts, operations, requirements
    Inspect(ProgramInspectArgs),
    #[command(after_help = help::PROGRAM_RUN)]
    /// Runs a program on tensors from NumPy files or on random ones, and compares its outputs
    Run(Box<ProgramRunArgs>),
    #[command(after_help = help::PROGRAM_CHECK)]
    /// Says whether a program can run on a system (exit code 1 if it cannot)
    Check(ProgramCheckArgs),
    #[command(after_help = help::PROGRAM_DIFF)]
    /// Shows the differences between two program files (exit code 1 if there are any)
    Diff(ProgramDiffArgs),
    #[command(after_help = help::PROGRAM_QUERY)]
    /// Describes this system in a file, for `pto program check` on another machine
    Query(QueryArgs),
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
            Self::Query(args) => args.json,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ProgramBuildArgs {
    /// A workload (.workload), a graph file (.jsonl), a model (.onnx), or a description of a builder of the device (.json);
    /// - is standard input
    pub(crate) source: PathBuf,
    /// The program file to write [default: the name of the source with .ptop]
    #[arg(short, long, value_name = "FILE.ptop")]
    pub(crate) output: Option<PathBuf>,
    /// Of a model: the extents of an input, as in x=1,3,48,192
    #[arg(long = "shape", value_name = "NAME=EXTENTS")]
    pub(crate) shapes: Vec<String>,
    /// Sets the layout of a tensor: row-major, column-major, nz, or tiles ROWSxCOLS. With nz or tiles the workload declares
    /// the tensor as its tiles lie in memory, and the extents of the matrix follow after a colon (`W=nz:500x300`)
    #[arg(long = "layout", value_name = "NAME=FORMAT", value_parser = pair::<String>)]
    pub(crate) layouts: Vec<(String, String)>,
    /// Sets the memory that the program needs a tensor in: device or on-chip
    #[arg(long = "place", value_name = "NAME=PLACE", value_parser = pair::<String>)]
    pub(crate) places: Vec<(String, String)>,
    /// Sets the role of a tensor: output (the program writes every element), updated (elements that the program does not
    /// write keep their values) or temporary [default: what the tasks do with it]
    #[arg(long = "role", value_name = "NAME=ROLE", value_parser = pair::<String>)]
    pub(crate) roles: Vec<(String, String)>,
    /// Reads the elements of a constant tensor from a NumPy file, and stores them in the program file
    #[arg(long = "constant", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) constants: Vec<(String, PathBuf)>,
    /// Puts the kernels of a shared object into the program file, for tasks of a graph file that call them
    /// (bindings/include/pto_kernels.h). May be given once for each processor that the program is to run on; the first object is
    /// for this one
    #[arg(long, value_name = "OBJECT.so")]
    pub(crate) kernels: Vec<PathBuf>,
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
    /// What to show in full [default: a short form of everything]
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
    /// A file that `pto program query` wrote on the system where the program is to run [default: the simulator here]
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
    /// Another program file
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
    /// Reads a tensor from a NumPy file; may be given several times. Without a file floats are random, and integers are zero
    #[arg(long = "input", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) inputs: Vec<(String, PathBuf)>,
    /// Sets a size or a symbol of the program; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair::<String>)]
    pub(crate) params: Vec<(String, String)>,
    /// Decides the random values of tensors
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0, u64::MAX))]
    pub(crate) seed: u64,
    /// How often the program runs. The inputs are the same each time, and updated tensors keep their values between runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(1, u64::MAX))]
    pub(crate) rounds: u64,
    /// Compares an output with a NumPy file; may be given several times
    #[arg(long = "expect", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) expect: Vec<(String, PathBuf)>,
    /// Relative tolerance of --expect: an output may differ by --atol plus X times the expected value
    #[arg(long, value_name = "X", default_value_t = 1e-5, requires = "expect", value_parser = tolerance)]
    pub(crate) rtol: f64,
    /// Absolute tolerance of --expect: an output may differ by X plus --rtol times the expected value
    #[arg(long, value_name = "X", default_value_t = 1e-8, requires = "expect", value_parser = tolerance)]
    pub(crate) atol: f64,
    /// Compares by Pearson correlation instead, which must be at least X (0 to 1)
    #[arg(long, value_name = "X", requires = "expect", value_parser = correlation)]
    pub(crate) pcc: Option<f64>,
    /// Writes each output to a NumPy file in this folder, which is created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// Writes the timeline of the last run to a file, for `pto view` and `pto analyze`, with what all runs have copied, converted and allocated
    #[arg(long, value_name = "FILE.json")]
    pub(crate) trace: Option<PathBuf>,
    /// The device to run on; `pto info devices` describes all
    #[arg(long, value_name = "DEVICE", value_enum, default_value = "a2a3sim")]
    pub(crate) device: DeviceChoice,
    /// How the simulator uses the threads of this machine [default: pool]
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) hosting: Option<HostingMode>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
