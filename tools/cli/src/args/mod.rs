//! What a user can write.

mod acl;
mod bench;
mod check;
mod comm;
mod compat;
mod device;
mod fw;
mod migrate;
mod ptop;
mod renamed;
mod rings;
mod soak;
mod value;
mod virtual_time;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use log::LevelFilter;
use pto_abi::trace::MAX_RING_EVENTS;
use pto_abi::{BuildMode, FanoutStrategy, RuntimeVariant};
use pto_host::RunOptions;
use pto_host::group::GroupTarget;

use crate::form::Form;
use crate::help::{self, VERSION};

pub(crate) use acl::{AclArgs, AclCommand, AclSettings};
pub(crate) use bench::{BenchArgs, BenchCommand};
pub(crate) use check::CheckArgs;
pub(crate) use comm::{CommBenchArgs, CommScalingArgs};
pub(crate) use compat::{CompatArgs, CompatCommand};
pub(crate) use device::DeviceChoice;
pub(crate) use fw::{
    CompilerSource, FlashTarget, FwArgs, FwBuildArgs, FwCommand, FwFlashArgs, FwInspectArgs,
    FwListArgs, FwMachine, FwPlatform, FwRollbackArgs, FwSealArgs,
};
pub(crate) use migrate::MigrateArgs;
pub(crate) use ptop::{
    ProgramArgs, ProgramBuildArgs, ProgramCheckArgs, ProgramCommand, ProgramDiffArgs,
    ProgramInspectArgs, ProgramRunArgs, QueryArgs, ShownSection,
};
pub(crate) use renamed::todays;
pub(crate) use rings::RingArgs;
pub(crate) use soak::SoakArgs;
pub(crate) use value::HostingMode;
use value::{
    MAX_AICPU, MAX_CORES, build_mode, byte_count, fanout, group, log_level, milliseconds,
    os_threads, pair, runtime, tolerance, whole,
};
pub(crate) use virtual_time::{VirtualArgs, profile};

/// Runs graphs of kernels on a PTO device, and checks what comes out.
#[derive(Debug, Parser)]
#[command(name = "pto", version = VERSION, max_term_width = 100, after_help = help::PTO)]
#[command(arg_required_else_help = true, disable_help_flag = true)]
pub(crate) struct Cli {
    /// Prints this; `pto help COMMAND` shows all
    #[arg(short, long, global = true, display_order = 900, action = ArgAction::HelpShort)]
    help: Option<bool>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs an example, a graph file, a workload or a model, and checks its result
    #[command(after_help = help::RUN)]
    Run(Box<RunArgs>),
    /// Finds cycles, races and rings that are too small, without a run
    #[command(after_help = help::CHECK)]
    Check(Box<CheckArgs>),
    /// Shows the tasks and edges of a program, without a run
    #[command(after_help = help::GRAPH)]
    Graph(GraphArgs),
    /// Shows a recorded run: an interactive page, a picture, or a chart
    #[command(after_help = help::VIEW)]
    View(ViewArgs),
    /// Says where the time of a recorded run went
    #[command(after_help = help::ANALYZE)]
    Analyze(AnalyzeArgs),
    /// Runs random programs in virtual time, with and without injected faults
    #[command(after_help = help::SOAK)]
    Soak(SoakArgs),
    /// Measures what a task costs on this machine, and collectives of a group
    #[command(after_help = help::BENCH)]
    Bench(Box<BenchArgs>),
    /// Builds, inspects, runs, checks and compares program files
    #[command(after_help = help::PROGRAM)]
    Program(ProgramArgs),
    /// Builds, inspects, flashes and rolls back firmware images
    #[command(after_help = help::FW)]
    Fw(FwArgs),
    /// Runs programs for CANN (`aclrt*`), and says which programs for simpler run here
    #[command(after_help = help::COMPAT)]
    Compat(CompatArgs),
    /// Lists examples, devices and kernels, and explains limits, faults and exit codes
    #[command(after_help = help::INFO)]
    Info(InfoArgs),
    /// Writes a completion script for a shell
    #[command(hide = true, after_help = help::COMPLETIONS)]
    Completions(CompletionsArgs),
    /// Writes the manual pages, one for each command
    #[command(hide = true, after_help = help::MAN)]
    Man(ManArgs),
}

impl Command {
    /// In which form it answers.
    pub(crate) fn form(&self) -> Form {
        Form::from(match self {
            Self::Run(args) => args.json,
            Self::Soak(args) => args.json,
            Self::Analyze(args) => args.json,
            Self::View(_) | Self::Completions(_) | Self::Man(_) => false,
            Self::Graph(args) => args.json && args.output.is_none(),
            Self::Check(args) => args.json,
            Self::Bench(args) => args.json(),
            Self::Info(args) => args.json,
            Self::Fw(args) => args.command.json(),
            Self::Program(args) => args.command.json(),
            Self::Compat(args) => args.command.json(),
        })
    }
}

/// How a graph is run.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// An example, a graph file, a workload or a model; - is standard input
    ///
    /// `pto info examples` shows all examples, with their parameters and tensors. Files: a graph (.jsonl,
    /// docs/reference/graph-files.md), a workload (.workload, docs/reference/workloads.md), a model (.onnx, docs/how-to/models.md).
    #[arg(value_name = "EXAMPLE|FILE")]
    pub(crate) example: String,

    /// Kernels of your own, which a graph file may use
    ///
    /// A shared object; its kernels are used besides those of the library (docs/how-to/kernels.md).
    #[arg(long, value_name = "OBJECT.so")]
    pub(crate) kernels: Option<PathBuf>,
    /// Sets a parameter; may be given several times
    ///
    /// The shapes of inputs decide the sizes that are not set.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair::<String>)]
    pub(crate) params: Vec<(String, String)>,
    /// Reads an input; inputs without a file are random
    ///
    /// May be given several times.
    #[arg(long = "input", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) inputs: Vec<(String, PathBuf)>,
    /// The extents of an input of a model, as in x=1,3,48,192
    ///
    /// An extent may be a name, which the inputs that are given decide.
    #[arg(long = "shape", value_name = "NAME=EXTENTS")]
    pub(crate) shapes: Vec<String>,
    /// Writes an output to a file; may be given several times
    #[arg(long = "output", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) outputs: Vec<(String, PathBuf)>,
    /// Compares an output with a file
    ///
    /// The output is compared with the example's reference as well. May be given several times.
    #[arg(long = "expect", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) expect: Vec<(String, PathBuf)>,
    /// Relative tolerance of --expect
    ///
    /// An output may differ by --atol plus X times the expected value.
    #[arg(long, value_name = "X", default_value = "1e-5", requires = "expect", value_parser = tolerance)]
    pub(crate) rtol: f64,
    /// Absolute tolerance of --expect
    ///
    /// An output may differ by X plus --rtol times the expected value.
    #[arg(long, value_name = "X", default_value = "1e-8", requires = "expect", value_parser = tolerance)]
    pub(crate) atol: f64,
    /// Writes every tensor that the tasks write to a new folder
    ///
    /// Intermediate tensors are included: one NumPy file for each tensor, and index.json.
    #[arg(long, value_name = "DIR")]
    pub(crate) dump: Option<PathBuf>,
    /// Also predicts the time on a device, and what limits it there
    ///
    /// Virtual time with profile a2a3.
    #[arg(long)]
    pub(crate) predict: bool,
    /// How often to run the graph
    ///
    /// Each run is checked.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = whole(1, MAX_ROUNDS))]
    pub(crate) rounds: u32,
    /// Which messages are shown
    ///
    /// Messages of the host and of the firmware: off, error, warn, info, debug or trace.
    #[arg(long, value_name = "LEVEL", default_value = "warn", value_parser = log_level)]
    pub(crate) log: LevelFilter,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// Which runtime builds the graph; `pto info runtimes` lists them
    ///
    /// host_build_graph, aicpu_build_graph or tensormap_and_ringbuffer [default: aicpu_build_graph; for an example that needs
    /// tensors tensormap_and_ringbuffer].
    #[arg(long, help_heading = "Runtime", value_name = "VARIANT", value_parser = runtime)]
    pub(crate) runtime: Option<RuntimeVariant>,
    /// 1: tasks run while the graph is still built; 0: afterwards
    ///
    /// 1 is concurrent, 0 is sequential [default: the environment variable PTO_AICPU_BUILD_GRAPH_BUILD_MODE, or 1].
    #[arg(long, help_heading = "Runtime", hide_short_help = true, value_name = "MODE", value_parser = build_mode)]
    pub(crate) build_mode: Option<BuildMode>,
    /// locked or lock-free: how the consumers of a task are agreed on
    ///
    /// How the builder and a scheduler agree on the consumers of a running task.
    #[arg(long, help_heading = "Runtime", hide_short_help = true, value_name = "STRATEGY", value_parser = fanout)]
    #[arg(default_value_t = FanoutStrategy::LOCK_FREE)]
    pub(crate) fanout: FanoutStrategy,
    /// AICPU instances [default: 4, or the profile's]
    ///
    /// Under aicpu_build_graph and tensormap_and_ringbuffer one of them builds, and the others schedule. The default is
    /// smaller where the device has fewer clusters.
    #[arg(long, help_heading = "Runtime", value_name = "N")]
    #[arg(value_parser = whole(1, MAX_AICPU))]
    pub(crate) aicpu: Option<u32>,

    #[command(flatten)]
    pub(crate) rings: RingArgs,

    /// The device to run on
    ///
    /// `pto info devices` describes all. If qemu has no image yet, the first run builds the default one and flashes it, and says so;
    /// `pto fw build` and `pto fw flash` do that before.
    #[arg(
        long,
        help_heading = "Device",
        value_name = "DEVICE",
        value_enum,
        default_value = "a2a3sim"
    )]
    pub(crate) device: DeviceChoice,
    /// On a2a3: which of several devices, as CANN counts them
    #[arg(long, help_heading = "Device", value_name = "N")]
    pub(crate) device_id: Option<u32>,
    /// Cube cores [default: 24, or the profile's]
    ///
    /// On qemu the default is 4; on a2a3 it is the number in service.
    #[arg(long, help_heading = "Device", value_name = "N", value_parser = whole(0, MAX_CORES))]
    pub(crate) aic: Option<u32>,
    /// Vector cores [default: 48, or the profile's]
    ///
    /// On qemu the default is 8; on a2a3 it is two for each cube core. On qemu the sum of --aicpu, --aic and --aiv is at most
    /// 64.
    #[arg(long, help_heading = "Device", value_name = "N", value_parser = whole(0, MAX_CORES))]
    pub(crate) aiv: Option<u32>,
    /// Device memory, as in 512M or 4G [default: 4G]
    ///
    /// In bytes; K, M, G stand for KiB, MiB, GiB. On qemu and a2a3 the default is 1G.
    #[arg(long, help_heading = "Device", value_name = "BYTES", value_parser = byte_count)]
    pub(crate) memory: Option<u64>,
    /// Runs the program on each device of a group
    ///
    /// local:8 is eight devices of this process; virtual:8 the same in virtual time, with a network between them; mpi, one
    /// device in each process that mpirun has started.
    #[arg(long, help_heading = "Device", value_name = "GROUP", value_parser = group)]
    pub(crate) group: Option<GroupTarget>,
    /// With --group virtual:N: tries every order of arrivals
    ///
    /// Runs the example in every order in which its transfers can arrive, in so many runs at most. For small cases.
    #[arg(
        long,
        help_heading = "Device",
        hide_short_help = true,
        value_name = "RUNS",
        requires = "group"
    )]
    pub(crate) explore: Option<std::num::NonZeroU64>,
    /// How the simulator uses threads of this machine [default: pool]
    #[arg(long, help_heading = "Device", value_name = "MODE", value_enum)]
    pub(crate) hosting: Option<HostingMode>,
    /// OS threads of --hosting pool [default: one for each processor]
    #[arg(long, help_heading = "Device", hide_short_help = true, value_name = "N", value_parser = os_threads)]
    pub(crate) pool_threads: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(crate) virtual_time: VirtualArgs,

    /// How long one task may run on a core
    ///
    /// In milliseconds. With `--hosting virtual` all budgets are virtual time.
    #[arg(long, help_heading = "Budgets", value_name = "MS", value_parser = milliseconds)]
    #[arg(default_value = "60000")]
    pub(crate) task_budget_ms: Duration,
    /// How long a run may go without progress while no core is busy
    ///
    /// In milliseconds.
    #[arg(long, help_heading = "Budgets", hide_short_help = true, value_name = "MS", value_parser = milliseconds)]
    #[arg(default_value = "5000")]
    pub(crate) stall_budget_ms: Duration,
    /// How long a core may take to answer when the run starts
    ///
    /// In milliseconds.
    #[arg(long, help_heading = "Budgets", hide_short_help = true, value_name = "MS", value_parser = milliseconds)]
    #[arg(default_value = "10000")]
    pub(crate) bring_up_budget_ms: Duration,
    /// How long a whole run may take [default: no limit]
    ///
    /// In milliseconds.
    #[arg(long, help_heading = "Budgets", value_name = "MS", value_parser = milliseconds)]
    pub(crate) run_budget_ms: Option<Duration>,

    /// Records the run, and writes its timeline to a file
    ///
    /// The file is for `pto analyze`, `pto view`, Perfetto and Chrome. It is also written if the run ends with a fault; with
    /// --rounds it holds the last round.
    #[arg(long, help_heading = "Timeline", value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Events that each instance and each core can record
    ///
    /// The default is as many as the run causes.
    #[arg(long, help_heading = "Timeline", hide_short_help = true, value_name = "N")]
    #[arg(value_parser = whole(4, MAX_RING_EVENTS))]
    pub(crate) trace_events: Option<u32>,
    /// Which events are kept if there are more than --trace-events
    ///
    /// With `all` that is 16,384 at a time [default: newest; all for a program of tensormap_and_ringbuffer with more tasks
    /// than its window holds].
    #[arg(long, help_heading = "Timeline", hide_short_help = true, value_name = "END", value_enum)]
    pub(crate) trace_keep: Option<KeptEvents>,
    /// Records the run, and shows it as a chart
    #[arg(long, help_heading = "Timeline", conflicts_with = "json")]
    pub(crate) gantt: bool,
}

impl RunArgs {
    /// The options that only a run of one graph on one device has, and whether each is given.
    pub(crate) fn of_one_graph(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let options = [
            ("--build-mode", self.build_mode.is_some()),
            ("--fanout", self.fanout != FanoutStrategy::LOCK_FREE),
            ("--output", !self.outputs.is_empty()),
            ("--expect", !self.expect.is_empty()),
            ("--dump", self.dump.is_some()),
            ("--predict", self.predict),
            ("--trace", self.trace.is_some()),
            ("--gantt", self.gantt),
            ("--kernels", self.kernels.is_some()),
            ("--runtime", self.runtime.is_some()),
            ("--rounds", self.rounds > 1),
        ];
        options.into_iter().chain(self.rings.given())
    }

    /// `options` with the budgets that are asked for.
    pub(crate) fn with_budgets(&self, options: RunOptions) -> RunOptions {
        RunOptions {
            task_budget: self.task_budget_ms,
            stall_budget: self.stall_budget_ms,
            bring_up_budget: self.bring_up_budget_ms,
            run_budget: self.run_budget_ms,
            ..options
        }
    }
}

/// Which events a full ring keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeptEvents {
    /// The end of the run
    Newest,
    /// The beginning of the run
    Oldest,
    /// The whole run; a full ring waits until the host has read from it, which may slow the run down
    All,
}

/// What to analyse.
#[derive(Args, Debug)]
pub(crate) struct AnalyzeArgs {
    /// A file that `pto run --trace` wrote; - is standard input
    pub(crate) trace: PathBuf,
    /// Another recorded run to compare with; the answer says by how much TRACE differs from it
    #[arg(long, value_name = "TRACE")]
    pub(crate) against: Option<PathBuf>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to show, and how.
#[derive(Args, Debug)]
pub(crate) struct ViewArgs {
    /// A file that `pto run --trace` wrote; - is standard input. If two to four files are given, the page shows the runs below each other; the files
    /// of the ranks of an MPI job are one run, on one clock
    #[arg(value_name = "TRACE", required = true, num_args = 1..)]
    pub(crate) traces: Vec<PathBuf>,
    /// The file to write, .html or .svg; - is standard output [default: the name of the trace file with .html or .svg]
    #[arg(short, long, value_name = "FILE", conflicts_with = "text")]
    pub(crate) output: Option<PathBuf>,
    /// Writes a static picture (SVG) instead of a page
    #[arg(long, conflicts_with = "text")]
    pub(crate) svg: bool,
    /// Shows a chart on the terminal instead of a page
    #[arg(long)]
    pub(crate) text: bool,
}

/// Which graph, and in which form.
#[derive(Args, Debug)]
pub(crate) struct GraphArgs {
    /// An example (`pto info examples` shows all), a workload file (docs/reference/workloads.md), or a graph file
    /// (docs/reference/graph-files.md); - is standard input
    #[arg(value_name = "EXAMPLE|FILE")]
    pub(crate) target: String,
    /// For an example with programs for several runtimes: which program's graph to show. tensormap_and_ringbuffer shows the
    /// program with tensors [default: the program with tasks and edges, if there is one]
    #[arg(long, value_name = "VARIANT", value_parser = runtime)]
    pub(crate) runtime: Option<RuntimeVariant>,
    /// Of a model (.onnx): the extents of an input, as in x=1,3,48,192
    #[arg(long = "shape", value_name = "NAME=EXTENTS")]
    pub(crate) shapes: Vec<String>,
    /// Sets a parameter of the example or workload; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair::<String>)]
    pub(crate) params: Vec<(String, String)>,
    /// Reads an input that decides which tasks there are from a NumPy file, such as the array of a workload's axis; may be
    /// given several times
    #[arg(long = "input", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) inputs: Vec<(String, PathBuf)>,
    /// Draws a picture (SVG) of up to 3,000 tasks; this is the default
    #[arg(long, group = "form")]
    pub(crate) svg: bool,
    /// Makes an interactive page, which can hold large graphs
    #[arg(long, group = "form")]
    pub(crate) html: bool,
    /// Writes the graph in the language of Graphviz
    #[arg(long, group = "form")]
    pub(crate) dot: bool,
    /// Answers with one JSON object
    #[arg(long, group = "form")]
    pub(crate) json: bool,
    /// The file to write, .svg, .html, .dot or .json; - is standard output [default: -]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// For which shell.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell that the script is for
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Where the manual goes.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The folder to write the pages to; it is created if it does not exist
    pub(crate) folder: PathBuf,
}

/// Which facts.
#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    /// What to show in full [default: an overview]
    #[arg(value_enum)]
    pub(crate) what: Option<InfoTopic>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InfoTopic {
    /// Examples, with their parameters and tensors
    Examples,
    /// Runtime variants
    Runtimes,
    /// Devices
    Devices,
    /// Kernels of the library, with their arguments
    Kernels,
    /// The structs that host, AICPU and AICore share, field by field
    Layouts,
    /// The limits of every run
    Limits,
    /// Every fault: what it means and what to do
    Faults,
    /// The exit codes of `pto`
    ExitCodes,
}

/// Runs on one page: each has a part of its height.
pub(crate) const MAX_RUNS: usize = 4;

/// Rounds of a run: the report of each is kept.
const MAX_ROUNDS: u32 = 100_000;

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_declarations_are_consistent() {
        Cli::command().debug_assert();
    }

    /// A heading that one group of options sets stays for the options that are declared after the group.
    #[test]
    fn options_of_every_run_stand_under_no_heading() {
        let run = Cli::command().find_subcommand("run").expect("it is there").clone();
        for name in ["json", "log", "rounds"] {
            let option = run.get_arguments().find(|option| option.get_id() == name);
            assert_eq!(option.expect("it is there").get_help_heading(), None, "--{name}");
        }
    }
}
