//! What a user can write.

mod acl;
mod bench;
mod check;
mod fw;
mod ptop;
mod soak;
mod value;
mod virtual_time;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use log::LevelFilter;
use pto_abi::trace::MAX_RING_EVENTS;
use pto_abi::{BuildMode, FanoutStrategy, RuntimeVariant};

use crate::form::Form;
use crate::help::{self, VERSION};

pub(crate) use acl::{AclArgs, AclCommand, AclRunArgs};
pub(crate) use bench::BenchArgs;
pub(crate) use check::CheckArgs;
pub(crate) use fw::{
    CompilerSource, FlashTarget, FwArgs, FwBuildArgs, FwCommand, FwFlashArgs, FwInspectArgs,
    FwListArgs, FwPlatform, FwRollbackArgs,
};
pub(crate) use ptop::{
    ProgramArgs, ProgramBuildArgs, ProgramCheckArgs, ProgramCommand, ProgramDiffArgs,
    ProgramInspectArgs, ProgramRunArgs, QueryArgs, ShownSection,
};
pub(crate) use soak::SoakArgs;
pub(crate) use value::HostingMode;
use value::{
    MAX_AICPU, build_mode, byte_count, fanout, heap_bytes, milliseconds, os_threads, pair, runtime,
    tolerance, window,
};
pub(crate) use virtual_time::{VirtualArgs, profile};

/// Runs graphs of kernels on a PTO device, and checks what comes out.
#[derive(Debug, Parser)]
#[command(name = "pto", version = VERSION, max_term_width = 100, after_help = help::PTO)]
#[command(arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs an example or a graph file, and checks its result
    #[command(after_help = help::RUN)]
    Run(Box<RunArgs>),
    /// Runs random graphs in virtual time, with faults and without, under checkers
    #[command(after_help = help::SOAK)]
    Soak(SoakArgs),
    /// Says where the time of a recorded run went
    #[command(after_help = help::ANALYZE)]
    Analyze(AnalyzeArgs),
    /// Shows a recorded run: an interactive page, a picture, or a chart
    #[command(after_help = help::VIEW)]
    View(ViewArgs),
    /// Shows the graph of an example, or of a graph file: tasks with their shapes, and edges, those that are derived as well
    #[command(after_help = help::GRAPH)]
    Graph(GraphArgs),
    /// Records what an example submits, or reads it from a file, and says whether it can run: cycles, races, ring sizes
    #[command(after_help = help::CHECK)]
    Check(Box<CheckArgs>),
    /// Measures what a task costs on this machine
    #[command(after_help = help::BENCH)]
    Bench(Box<BenchArgs>),
    /// Lists what there is to run, and to run it on
    #[command(after_help = help::LIST)]
    List(ListArgs),
    /// Shows layouts, limits and faults of the runtime
    #[command(after_help = help::INFO)]
    Info(InfoArgs),
    /// Builds, inspects and flashes firmware images
    #[command(after_help = help::FW)]
    Fw(FwArgs),
    /// Runs programs that are written for the CANN interface (`aclrt*`)
    #[command(after_help = help::ACL)]
    Acl(AclArgs),
    /// Builds, inspects, runs, checks and compares program files
    #[command(after_help = help::PROGRAM)]
    Program(ProgramArgs),
    /// Describes the system here, for checks of programs elsewhere
    #[command(after_help = help::QUERY)]
    Query(QueryArgs),
    /// Writes a script that completes the words of this command in a shell
    #[command(after_help = help::COMPLETIONS)]
    Completions(CompletionsArgs),
    /// Writes the manual pages, one for each command
    #[command(after_help = help::MAN)]
    Man(ManArgs),
}

impl Command {
    /// In which form it answers.
    pub(crate) fn form(&self) -> Form {
        Form::from(match self {
            Self::Run(args) => args.json,
            Self::Soak(args) => args.json,
            Self::Analyze(args) => args.json,
            Self::View(_) | Self::Acl(_) | Self::Completions(_) | Self::Man(_) => false,
            Self::Graph(args) => args.json && args.output.is_none(),
            Self::Check(args) => args.json,
            Self::Bench(args) => args.json,
            Self::List(args) => args.json,
            Self::Info(args) => args.json,
            Self::Fw(args) => args.command.json(),
            Self::Program(args) => args.command.json(),
            Self::Query(args) => args.json,
        })
    }
}

/// A device that runs graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceChoice {
    /// The simulator: firmware and kernels in this process
    A2a3sim,
    /// The flashed firmware image on an emulated AArch64 machine (QEMU)
    Virt,
    /// An Ascend 910B or 910C, through CANN (docs/hardware.md)
    A2a3,
}

/// How a graph is run.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The example (`pto list examples` shows all, with their parameters and tensors), or a graph file whose func ids are
    /// those of the library (docs/check.md)
    #[arg(value_name = "EXAMPLE|FILE")]
    pub(crate) example: String,

    /// A shared object with kernels for a graph file, beside those of the library (docs/check.md)
    #[arg(long, value_name = "OBJECT.so")]
    pub(crate) kernels: Option<PathBuf>,
    /// A parameter of the example; an input's shape gives those that are not set
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair::<String>)]
    pub(crate) params: Vec<(String, String)>,
    /// A NumPy file for an input; inputs that are not given are random
    #[arg(long = "input", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) inputs: Vec<(String, PathBuf)>,
    /// A NumPy file to write an output to
    #[arg(long = "output", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) outputs: Vec<(String, PathBuf)>,
    /// A NumPy file that an output is compared with, beside the reference of the example
    #[arg(long = "expect", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) expect: Vec<(String, PathBuf)>,
    /// How far an output may be from that of --expect, as a part of the value
    #[arg(long, value_name = "X", default_value_t = 1e-5, requires = "expect", value_parser = tolerance)]
    pub(crate) rtol: f64,
    /// How far an output may be from that of --expect, beside --rtol
    #[arg(long, value_name = "X", default_value_t = 1e-8, requires = "expect", value_parser = tolerance)]
    pub(crate) atol: f64,
    /// Writes every tensor that the tasks write, those of the heap as well, to a new folder: a NumPy file for each, and
    /// index.json
    #[arg(long, value_name = "DIR")]
    pub(crate) dump: Option<PathBuf>,
    /// Says as well what the run takes on a device (profile a2a3 of the machine in virtual time), and what bounds it
    #[arg(long)]
    pub(crate) predict: bool,
    /// How often to run the graph; each run is checked
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_ROUNDS))]
    pub(crate) rounds: u32,

    /// Who builds the graph: host_build_graph, aicpu_build_graph or tensormap_and_ringbuffer
    /// [default: aicpu_build_graph; of an example with tensors tensormap_and_ringbuffer, which alone takes it]
    #[arg(long, help_heading = "Runtime", value_name = "VARIANT", value_parser = runtime)]
    pub(crate) runtime: Option<RuntimeVariant>,
    /// Whether schedulers run while the graph is built: 1 (concurrent) or 0 (sequential)
    /// [default: PTO_AICPU_BUILD_GRAPH_BUILD_MODE, or 1]
    #[arg(long, help_heading = "Runtime", value_name = "MODE", value_parser = build_mode)]
    pub(crate) build_mode: Option<BuildMode>,
    /// How edges are added to running tasks: locked or lock-free
    #[arg(long, help_heading = "Runtime", value_name = "STRATEGY", value_parser = fanout)]
    #[arg(default_value_t = FanoutStrategy::LOCK_FREE)]
    pub(crate) fanout: FanoutStrategy,
    /// AICPU instances; of aicpu_build_graph one builds and the others schedule [default: 4, or the profile's]
    #[arg(long, help_heading = "Runtime", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_AICPU)))]
    pub(crate) aicpu: Option<u32>,

    /// Task slots of tensormap_and_ringbuffer: a power of two [default: 4096; recorded runs hold all tasks]
    #[arg(long, help_heading = "Runtime", value_name = "N", value_parser = window)]
    pub(crate) window: Option<u32>,
    /// Heap of each depth of scopes of tensormap_and_ringbuffer, in bytes; K, M, G stand for KiB, MiB, GiB
    /// [default: 64M]
    #[arg(long, help_heading = "Runtime", value_name = "BYTES", value_parser = heap_bytes)]
    pub(crate) heap_bytes: Option<u64>,

    /// The device; `pto list devices` says what they are
    #[arg(
        long,
        help_heading = "Device",
        value_name = "DEVICE",
        value_enum,
        default_value = "a2a3sim"
    )]
    pub(crate) device: DeviceChoice,
    /// Which of several devices, as CANN counts them; on a2a3
    #[arg(long, help_heading = "Device", value_name = "N")]
    pub(crate) device_id: Option<u32>,
    /// Cube cores [default: 24, or the profile's; on virt 4; on a2a3 those in service]
    #[arg(long, help_heading = "Device", value_name = "N")]
    pub(crate) aic: Option<u32>,
    /// Vector cores [default: 48, or the profile's; on virt 8; on a2a3 two for each cube core]. On virt --aicpu, --aic and --aiv are at most 64 together
    #[arg(long, help_heading = "Device", value_name = "N")]
    pub(crate) aiv: Option<u32>,
    /// Device memory in bytes; K, M, G stand for KiB, MiB, GiB [default: 4G; on virt and a2a3 1G]
    #[arg(long, help_heading = "Device", value_name = "BYTES", value_parser = byte_count)]
    pub(crate) gm_bytes: Option<u64>,
    /// How the simulator is hosted on this machine [default: pool]
    #[arg(long, help_heading = "Device", value_name = "MODE", value_enum)]
    pub(crate) hosting: Option<HostingMode>,
    /// OS threads of `--hosting pool` [default: one for each processor]
    #[arg(long, help_heading = "Device", value_name = "N", value_parser = os_threads)]
    pub(crate) pool_threads: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(crate) virtual_time: VirtualArgs,

    /// How long one task may run on a core, in milliseconds; with `--hosting virtual` budgets are virtual time
    #[arg(long, help_heading = "Budgets", value_name = "MS", value_parser = milliseconds)]
    #[arg(default_value = "60000")]
    pub(crate) task_budget_ms: Duration,
    /// How long a run may go without progress while no core is busy, in milliseconds
    #[arg(long, help_heading = "Budgets", value_name = "MS", value_parser = milliseconds)]
    #[arg(default_value = "5000")]
    pub(crate) stall_budget_ms: Duration,
    /// How long a core may take to answer, in milliseconds
    #[arg(long, help_heading = "Budgets", value_name = "MS", value_parser = milliseconds)]
    #[arg(default_value = "10000")]
    pub(crate) bring_up_budget_ms: Duration,
    /// How long a whole run may take, in milliseconds [default: no limit]
    #[arg(long, help_heading = "Budgets", value_name = "MS", value_parser = milliseconds)]
    pub(crate) run_budget_ms: Option<Duration>,

    /// Records the run, of several the last one, and writes its timeline to a file for Perfetto, Chrome,
    /// `pto analyze` and `pto view`; also of a run that ends with a fault
    #[arg(long, help_heading = "Timeline", value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Events that are kept of each AICPU instance and of each core [default: as many as the run causes]
    #[arg(long, help_heading = "Timeline", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(4..=i64::from(MAX_RING_EVENTS)))]
    pub(crate) trace_events: Option<u32>,
    /// Which events are kept where there are more; of all of them, rings hold 16,384 at a time [default: newest; of a stream
    /// with more tasks than its window holds, all]
    #[arg(long, help_heading = "Timeline", value_name = "END", value_enum)]
    pub(crate) trace_keep: Option<KeptEvents>,
    /// Records the run, and shows it as a chart
    #[arg(long, help_heading = "Timeline", conflicts_with = "json")]
    pub(crate) gantt: bool,

    /// Which messages of host and firmware are shown: off, error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    pub(crate) log: LevelFilter,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which events a full ring keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeptEvents {
    /// The end of the run
    Newest,
    /// The beginning of the run
    Oldest,
    /// The whole run, which waits while the host reads
    All,
}

/// What to analyse.
#[derive(Args, Debug)]
pub(crate) struct AnalyzeArgs {
    /// A file that `pto run --trace` wrote
    pub(crate) trace: PathBuf,
    /// Another recorded run: also says by how much the first one differs from it
    #[arg(long, value_name = "TRACE")]
    pub(crate) against: Option<PathBuf>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to show, and how.
#[derive(Args, Debug)]
pub(crate) struct ViewArgs {
    /// A file that `pto run --trace` wrote; of two to four files, the page shows the runs below each other
    #[arg(value_name = "TRACE", required = true, num_args = 1..=MAX_RUNS)]
    pub(crate) traces: Vec<PathBuf>,
    /// The file to write, .html or .svg; - is standard output [default: the trace's name with .html, or .svg]
    #[arg(short, long, value_name = "FILE", conflicts_with = "text")]
    pub(crate) output: Option<PathBuf>,
    /// A static picture instead of a page
    #[arg(long, conflicts_with = "text")]
    pub(crate) svg: bool,
    /// A chart on the terminal instead of a page
    #[arg(long)]
    pub(crate) text: bool,
}

/// Which graph, and in which form.
#[derive(Args, Debug)]
pub(crate) struct GraphArgs {
    /// An example (`pto list examples` shows all), or a graph file (docs/check.md)
    #[arg(value_name = "EXAMPLE|FILE")]
    pub(crate) target: String,
    /// Whose graph, where the example has programs for several runtimes: tensormap_and_ringbuffer for that with tensors
    /// [default: that of tasks and edges, if there is one]
    #[arg(long, value_name = "VARIANT", value_parser = runtime)]
    pub(crate) runtime: Option<RuntimeVariant>,
    /// A parameter of the example
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair::<String>)]
    pub(crate) params: Vec<(String, String)>,
    /// As a picture (the default; graphs of up to 3,000 tasks)
    #[arg(long, group = "form")]
    pub(crate) svg: bool,
    /// As an interactive page, also of large graphs
    #[arg(long, group = "form")]
    pub(crate) html: bool,
    /// For Graphviz
    #[arg(long, group = "form")]
    pub(crate) dot: bool,
    /// For programs
    #[arg(long, group = "form")]
    pub(crate) json: bool,
    /// The file to write, .svg, .html, .dot or .json; - is standard output, as is none
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// For which shell.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Where the manual goes.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The folder to write the pages to; it is made if it is not there
    pub(crate) folder: PathBuf,
}

/// Which list.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// What to list; everything, in short, unless given
    #[arg(value_enum)]
    pub(crate) what: Option<Listed>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    /// Examples, with their parameters and tensors
    Examples,
    /// Runtime variants
    Runtimes,
    /// Devices
    Devices,
    /// Kernels of the library, with their arguments
    Kernels,
}

/// Which facts.
#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    /// What to show; an overview unless given
    #[arg(value_enum)]
    pub(crate) what: Option<Shown>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shown {
    /// The structs that host, AICPU and AICore share, field by field
    Layouts,
    /// What no launch can exceed
    Limits,
    /// Every fault, with its remedy
    Faults,
}

/// Runs on one page: each has a part of its height.
const MAX_RUNS: usize = 4;

/// Rounds of a run: the report of each is kept.
const MAX_ROUNDS: i64 = 100_000;

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_declarations_are_consistent() {
        Cli::command().debug_assert();
    }
}
