//! What a user can write behind `pto bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pto_bench::shape::Shape;

use super::value::{MAX_AICPU, pair};

/// What is measured.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// A graph, again for more [default: the ten shapes of programs]
    #[arg(long = "graph", value_name = "NAME")]
    pub(crate) graphs: Vec<Shape>,
    /// About how many tasks each graph has
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "100000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(pto_abi::limits::MAX_TASKS)))]
    pub(crate) tasks: Vec<u32>,
    /// How long each kernel takes, in us; 0: empty kernels
    #[arg(long, value_name = "US,..", value_delimiter = ',', default_value = "0")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) kernel_us: Vec<u32>,
    /// How often each runner takes its turn
    #[arg(long, value_name = "N", default_value_t = 7)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rounds: u32,
    /// OS threads
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2")]
    #[arg(value_parser = os_threads)]
    pub(crate) threads: Vec<usize>,

    /// The scaling curves: 1,000 to 10,000,000 tasks
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) scaling: bool,
    /// METG(50 %) instead: the least granularity at which half of the machine's peak is reached
    /// [default graphs: four of Task Bench]
    #[arg(long, conflicts_with_all = ["scaling", "instructions"])]
    pub(crate) metg: bool,
    /// Instructions a task instead, counted by callgrind (Debian package valgrind)
    #[arg(long, conflicts_with = "scaling")]
    pub(crate) instructions: bool,
    /// Sessions instead: what a submission, a launch and a wake-up cost, beside the targets
    #[arg(long, conflicts_with_all = ["scaling", "metg", "instructions"])]
    pub(crate) sessions: bool,
    /// What stands for the rounds in tables and ratios
    #[arg(long, value_name = "STATISTIC", value_enum, default_value = "median")]
    pub(crate) by: Statistic,

    /// Also other libraries: builds a program for each, in ~/.cache/pto/peers
    #[arg(long, help_heading = "Peers")]
    pub(crate) peers: bool,
    /// The source folder of a library that no registry has: taskflow, dispenso or enkits
    #[arg(long, help_heading = "Peers", value_name = "NAME=DIR", value_parser = pair::<PathBuf>)]
    pub(crate) peer: Vec<(String, PathBuf)>,

    /// Cube cores
    #[arg(long, help_heading = "Device", value_name = "N", default_value_t = 24)]
    pub(crate) aic: u32,
    /// Vector cores, which run the tasks
    #[arg(long, help_heading = "Device", value_name = "N", default_value_t = 48)]
    pub(crate) aiv: u32,
    /// AICPU instances
    #[arg(long, help_heading = "Device", value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=i64::from(MAX_AICPU)))]
    pub(crate) aicpu: u32,

    /// Writes the curves as a picture
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// What callgrind counts: a mode, a graph, tasks, runs
    #[arg(long, hide = true, num_args = 4)]
    pub(crate) counted: Vec<String>,
}

/// What stands for several measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Statistic {
    /// Half of them lie below
    Median,
    /// The least: where others use the machine as well
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
        _ => Err("it must be 1 or 2".into()),
    }
}
