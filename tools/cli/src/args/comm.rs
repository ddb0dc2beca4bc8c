//! The arguments of `pto bench collectives` and `pto bench groups`.

use std::path::PathBuf;

use clap::Args;
use pto_graph::group::{Algorithm, Collective};
use pto_host::group::GroupTarget;

use super::value::{byte_count, group};

/// What to measure. The time of a call is that of --rounds calls in one program, less that of one, and the slowest rank's; of all
/// repetitions the shortest one counts.
#[derive(Args, Debug)]
pub(crate) struct CommBenchArgs {
    /// The group: local:RANKS, virtual:RANKS, virtual:RANKS:NETWORK, or mpi under mpirun
    #[arg(long, value_name = "GROUP", default_value = "local:2", value_parser = group)]
    pub(crate) group: GroupTarget,
    /// The collective: all_reduce, reduce_scatter, all_gather, all_to_all, broadcast or reduce
    #[arg(long, value_name = "NAME", default_value = "all_reduce", value_parser = collective)]
    pub(crate) collective: Collective,
    /// The algorithm: auto, direct, ring, halving, doubling, tree or two-level. A collective that does not have it takes the one of auto
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = algorithm)]
    pub(crate) algorithm: Algorithm,
    /// The smallest size in bytes; K, M, G stand for KiB, MiB, GiB
    #[arg(short = 'b', long, value_name = "BYTES", default_value = "8K", value_parser = byte_count)]
    pub(crate) from: u64,
    /// The largest size
    #[arg(short = 'e', long, value_name = "BYTES", default_value = "1M", value_parser = byte_count)]
    pub(crate) to: u64,
    /// By which factor each size is larger than the one before
    #[arg(short = 'f', long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..=1024))]
    pub(crate) factor: u64,
    /// How many calls are measured together
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) rounds: u64,
    /// How often each size is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) repeats: u64,
    /// Number of vector cores of each device; they reduce [default: 4; in virtual time 48]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=48))]
    pub(crate) aiv: Option<u32>,
    /// Writes time and bus bandwidth over size as a picture
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Number of AICPU instances of each device: one builds, the others schedule
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=16))]
    pub(crate) aicpu: u32,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Devices of a pod of A3 packages, with what kernels and transfers take, and nothing computed. The time is that of one call from the start of
/// the run to its end on the slowest rank.
#[derive(Args, Debug)]
pub(crate) struct CommScalingArgs {
    /// Numbers of devices
    #[arg(long, value_name = "N,N,..", value_delimiter = ',', default_value = "2,4,8,16,48,96,192,384", value_parser = clap::value_parser!(u32).range(2..=384))]
    pub(crate) ranks: Vec<u32>,
    /// Sizes in bytes; K, M, G stand for KiB, MiB, GiB
    #[arg(long, value_name = "BYTES,..", value_delimiter = ',', default_value = "8K,64M", value_parser = byte_count)]
    pub(crate) sizes: Vec<u64>,
    /// One collective only: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce
    #[arg(long, value_name = "NAME", value_parser = collective, conflicts_with = "layer")]
    pub(crate) collective: Option<Collective>,
    /// Calls of a collective in one run; the time is that of the run by their number
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "layer", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// The tensor-parallel layer only
    #[arg(long)]
    pub(crate) layer: bool,
    /// The network
    #[arg(long, value_name = "NAME", default_value = "a3-pod")]
    pub(crate) network: String,
    /// Number of AICPU instances of each device: one builds, the others schedule
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=16))]
    pub(crate) aicpu: u32,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The algorithm of this name.
fn algorithm(text: &str) -> Result<Algorithm, String> {
    let found = Algorithm::ALL.iter().find(|one| one.name() == text).copied();
    let names = || Algorithm::ALL.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("there is no algorithm '{text}'; use one of {}", names()))
}

/// The collective of this name.
fn collective(text: &str) -> Result<Collective, String> {
    let all = || Collective::ALL.iter().filter(|one| **one != Collective::BARRIER);
    let names = || all().map(|one| one.name()).collect::<Vec<_>>().join(", ");
    let found = all().find(|one| one.name() == text).copied();
    found.ok_or_else(|| format!("there is no collective '{text}'; use one of {}", names()))
}
