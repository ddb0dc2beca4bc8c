//! What a user can write behind `pto bench`.

use clap::{Args, ValueEnum};
use pto_bench::shape::Shape;

use super::MAX_AICPU;

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
    pub(crate) kernel_us: Vec<u32>,
    /// How often each runner takes its turn
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// OS threads
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2")]
    #[arg(value_parser = os_threads)]
    pub(crate) threads: Vec<usize>,

    /// What stands for the rounds in tables and ratios
    #[arg(long, value_name = "STATISTIC", value_enum, default_value = "median")]
    pub(crate) by: Statistic,

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

    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
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
