//! The arguments of `pto soak`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use pto_host::default_campaign_threads;

use super::value::{os_threads, whole};

/// Options of groups of ranks and threads.
const MACHINE: &str = "Where it runs";
/// What is tried, where the usual is not wanted.
const TRIED: &str = "What is tried";

/// Random graphs on random devices with random options. Of every seed two scenarios are made: one in which
/// something goes wrong in two of three cases (the run must end with the fault that is right, name the core, and
/// leave the device usable for the run after it), and one in which nothing does (every task must be completed).
#[derive(Args, Debug)]
pub(crate) struct SoakArgs {
    /// How many seeds to run
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = whole(1, u64::MAX))]
    pub(crate) seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0, value_parser = whole(0, u64::MAX))]
    pub(crate) seed: u64,
    /// Runs one seed again, and reports what happened
    ///
    /// Of a scenario that fails it writes timelines (.json, for `pto view` and `pto analyze`) and graph files (.jsonl, for `pto run`
    /// and `pto graph`): of the whole scenario, and of the smallest one that still fails.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "seed"], value_parser = whole(0, u64::MAX))]
    pub(crate) replay: Option<u64>,
    /// With --replay: the folder for files of a failure
    ///
    /// [default: pto-soak-SEED]
    #[arg(long, value_name = "FOLDER", requires = "replay", conflicts_with_all = ["sessions", "groups"])]
    pub(crate) save: Option<PathBuf>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// Sessions instead of graphs
    ///
    /// Random programs over streams, events, copies and recordings. In every second seed there are failures, aborts, time-outs,
    /// circles of waits and faults of the device.
    #[arg(long, help_heading = TRIED, conflicts_with_all = ["faults", "no_faults", "tasks", "profile"])]
    pub(crate) sessions: bool,
    /// Groups instead of graphs
    ///
    /// Random programs of collectives, puts and sends on 2 to 8 ranks in virtual time. In two of three seeds there is a slow link, a
    /// transfer that is lost, or a rank that dies, never comes, fails, or makes another call than the others.
    #[arg(long, help_heading = TRIED, conflicts_with_all = ["sessions", "faults", "no_faults", "tasks", "profile"])]
    pub(crate) groups: bool,
    /// Only the scenarios with injected faults
    #[arg(long, help_heading = TRIED, conflicts_with = "no_faults")]
    pub(crate) faults: bool,
    /// Only the scenarios without injected faults
    #[arg(long, help_heading = TRIED)]
    pub(crate) no_faults: bool,
    /// Number of tasks of each graph
    #[arg(long, help_heading = TRIED, value_name = "N", default_value_t = 40, value_parser = whole(1_u32, 100_000))]
    pub(crate) tasks: u32,
    /// Costs and cores: a2a3, a5, ideal, or a file
    ///
    /// [default: a2a3 in three of four scenarios, ideal in the others]
    #[arg(long, help_heading = TRIED, value_name = "PROFILE|FILE")]
    pub(crate) profile: Option<String>,

    /// Number of OS threads [default: one a processor]
    ///
    /// Under mpirun the default is one for each rank.
    #[arg(long, help_heading = MACHINE, value_name = "N", value_parser = os_threads)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Under mpirun: the folder for what the ranks have tried
    ///
    /// A folder on a disk that all hosts share. If a rank dies, the same command goes on from there. The folder is removed at the end
    /// [default: pto-soak.journal].
    #[arg(long, help_heading = MACHINE, value_name = "FOLDER", conflicts_with = "replay")]
    pub(crate) journal: Option<PathBuf>,
}

impl SoakArgs {
    /// The folder of the journal.
    pub(crate) fn journal(&self) -> &Path {
        self.journal.as_deref().unwrap_or(Path::new("pto-soak.journal"))
    }

    /// OS threads of a campaign that this process runs alone.
    pub(crate) fn threads_alone(&self) -> NonZeroUsize {
        self.threads.unwrap_or_else(default_campaign_threads)
    }

    /// OS threads of each rank of a campaign under mpirun, which starts as many ranks as the user wants.
    pub(crate) fn threads_of_a_rank(&self) -> NonZeroUsize {
        self.threads.unwrap_or(NonZeroUsize::MIN)
    }
}
