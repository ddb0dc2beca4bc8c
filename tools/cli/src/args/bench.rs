//! The arguments of `pto bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use pto_bench::family::Family;

use super::comm::{CommBenchArgs, CommScalingArgs};
use super::value::{MAX_AICPU, MAX_CORES, pair, whole};
use crate::help;

/// Options that replace the costs of tasks by something else.
const INSTEAD: &str = "Measured instead";

/// What is measured.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: Option<BenchCommand>,

    /// A graph to measure; may be given several times [default: ten graphs]
    #[arg(long = "graph", value_name = "NAME")]
    pub(crate) graphs: Vec<Family>,
    /// Tasks of each graph, about [default: 100000]
    ///
    /// Several numbers are separated by commas. With --tracing the default is 3000 and 100000.
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    #[arg(value_parser = whole(1, pto_abi::limits::MAX_TASKS))]
    pub(crate) tasks: Option<Vec<u32>>,
    /// Microseconds that each kernel takes; 0: it is empty
    ///
    /// Several numbers are separated by commas.
    #[arg(long, value_name = "US,..", value_delimiter = ',', default_value = "0")]
    #[arg(value_parser = whole(0_u32, 1_000_000))]
    pub(crate) kernel_us: Vec<u32>,
    /// How often each runner is measured
    ///
    /// The runners take turns.
    #[arg(long, value_name = "N", default_value_t = 7)]
    #[arg(value_parser = whole(1_u32, 10_000))]
    pub(crate) rounds: u32,
    /// Number of OS threads: 1, 2 or both
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2")]
    #[arg(value_parser = os_threads)]
    pub(crate) threads: Vec<usize>,
    /// Which figure of the rounds tables and ratios show
    #[arg(long, value_name = "STATISTIC", value_enum, default_value = "median")]
    pub(crate) by: Statistic,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// How the cost of a task grows with their number
    ///
    /// From 1,000 to 10,000,000 tasks.
    #[arg(long, help_heading = INSTEAD, conflicts_with = "tasks")]
    pub(crate) scaling: bool,
    /// Writes the curves of --scaling as a picture
    #[arg(long, help_heading = INSTEAD, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// METG(50 %): the shortest kernels that are worth it
    ///
    /// The shortest kernel time at which half of the machine's time is spent in kernels [default graphs: four patterns of Task Bench].
    #[arg(long, help_heading = INSTEAD, conflicts_with_all = ["scaling", "instructions"])]
    pub(crate) metg: bool,
    /// METG(50 %) on the device, in virtual time
    ///
    /// With profile a2a3: the kernel time at which the makespan is twice the bound. The graphs are five examples, and four patterns of
    /// Task Bench in rows of 72; names choose some of them.
    #[arg(long, help_heading = INSTEAD, value_name = "GRAPH,..", num_args = 0.., value_delimiter = ',', require_equals = true)]
    #[arg(conflicts_with_all = ["scaling", "metg", "instructions", "sessions", "peers", "graphs"])]
    pub(crate) device_metg: Option<Vec<String>>,
    /// Predicts published times of programs for simpler
    ///
    /// On a2a3 silicon, in virtual time: with a cost model of the scheduler of simpler, and with ours.
    #[arg(long, help_heading = INSTEAD)]
    #[arg(conflicts_with_all = ["scaling", "metg", "instructions", "sessions", "peers", "graphs", "device_metg"])]
    pub(crate) field_timings: bool,
    /// Instructions a task, counted with callgrind
    ///
    /// Debian's package is valgrind.
    #[arg(long, help_heading = INSTEAD, conflicts_with = "scaling")]
    pub(crate) instructions: bool,
    /// What it costs to trace a run
    ///
    /// Nanoseconds a task with events and without, on one OS thread [default graph: wavefront].
    #[arg(long, help_heading = INSTEAD, conflicts_with_all = ["scaling", "metg", "instructions", "sessions", "peers"])]
    pub(crate) tracing: bool,
    /// What submissions and launches of sessions cost
    ///
    /// A submission, a launch and a wake-up, and the target of each.
    #[arg(long, help_heading = INSTEAD, conflicts_with_all = ["scaling", "metg", "instructions"])]
    pub(crate) sessions: bool,
    /// With --sessions: one of N commands, and its memory
    ///
    /// Runs a session of N commands, and says how much memory it has added.
    #[arg(long, help_heading = INSTEAD, value_name = "N", requires = "sessions", value_parser = whole(1_u64, 100_000_000_000))]
    pub(crate) commands: Option<u64>,

    /// Also measures other libraries
    ///
    /// Builds a program for each in ~/.cache/pto/peers.
    #[arg(long, help_heading = "Peers")]
    pub(crate) peers: bool,
    /// Also measures taskflow, dispenso or enkits of a folder
    ///
    /// The folder has the sources of the library.
    #[arg(long, help_heading = "Peers", value_name = "NAME=DIR", value_parser = pair::<PathBuf>)]
    pub(crate) peer: Vec<(String, PathBuf)>,

    /// Number of cube cores
    #[arg(long, help_heading = "Device", value_name = "N", default_value_t = 24, value_parser = whole(0, MAX_CORES))]
    pub(crate) aic: u32,
    /// Number of vector cores, which run the tasks
    #[arg(long, help_heading = "Device", value_name = "N", default_value_t = 48, value_parser = whole(0, MAX_CORES))]
    pub(crate) aiv: u32,
    /// Number of AICPU instances [default: 4]
    ///
    /// --device-metg measures each pattern with 4, 5 and 6, and shows the best.
    #[arg(long, help_heading = "Device", value_name = "N", value_parser = whole(2, MAX_AICPU))]
    pub(crate) aicpu: Option<u32>,

    /// What callgrind counts: a mode, a graph, tasks, runs
    #[arg(long, hide = true, num_args = 4)]
    pub(crate) counted: Vec<String>,
}

impl BenchArgs {
    /// Whether it answers with JSON.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            None => self.json,
            Some(BenchCommand::Collectives(args)) => args.json,
            Some(BenchCommand::Groups(args)) => args.json,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measures a collective for each size: time, algorithm bandwidth, bus bandwidth; checks its result
    #[command(after_help = help::BENCH_COLLECTIVES)]
    Collectives(CommBenchArgs),
    /// Measures in virtual time how collectives and a tensor-parallel layer scale with the number of devices, and shows their bounds
    #[command(after_help = help::BENCH_GROUPS)]
    Groups(CommScalingArgs),
}

/// The statistic of several measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Statistic {
    /// The median of the rounds
    Median,
    /// The least of the rounds, for a machine that other programs use as well
    Least,
}

impl From<Statistic> for pto_bench::stats::Statistic {
    fn from(statistic: Statistic) -> Self {
        match statistic {
            Statistic::Median => Self::Median,
            Statistic::Least => Self::Least,
        }
    }
}

fn os_threads(text: &str) -> Result<usize, String> {
    match text {
        "1" => Ok(1),
        "2" => Ok(2),
        _ => Err("it must be 1 or 2, or both: 1,2".into()),
    }
}
