//! Device METG(50 %): how long a kernel must be for the makespan on the device to be at most twice the bound, in virtual time.
//!
//! All kernels of a graph take the same time. The bound is what the graph takes at least where everything else takes no time: the work of a
//! kind of core over its cores, or the longest path of kernels. That path is what data demand: a kernel waits for those whose results it needs, and for
//! no other one, whatever runs in one chain with it (`pto_check::demanded_path`).
//!
//! The slowest of the seeds counts.

use std::sync::Arc;

use pto_abi::BuildMode;
use pto_host::Hosting;
use pto_host::virtual_time::{Compute, KernelCosts, Profile, VirtualOptions, VirtualReport};
use serde::Serialize;

use crate::csr::Csr;
use crate::metg::{self, between};
use crate::program::Kernel;
use crate::runner::pto::{Die, Pto, Variant};
use crate::runner::{Error, LoadedGraph, Runner};

/// Tasks of each pattern: 64 rows of 72.
pub const TASKS: u32 = WIDTH * 64;
/// Points of a row: one for each core of a full die.
pub const WIDTH: u32 = 72;
/// The seeds of which the slowest counts.
const SEEDS: std::ops::Range<u64> = 0..3;
/// The shortest kernel that is tried, in ns; each one after it is twice as long.
const FIRST_NS: u64 = 64;
/// Into how many parts the last step of the search is cut. A program chooses lengths of chains by what kernels take, so that its makespan is no line.
const PARTS: u64 = 8;
/// The longest kernel that is tried.
pub const LONGEST_NS: u64 = 65_536;

/// Runs a program in virtual time.
type Run<'r, E> = &'r mut dyn FnMut(VirtualOptions) -> Result<Box<VirtualReport>, E>;

/// One graph.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceMetg {
    /// The graph's name.
    pub graph: String,
    /// AICPU instances of the runs, the builder's included.
    pub instances: usize,
    /// Kernels that ran, each one of a chain counted.
    pub kernels: u64,
    /// Kernels of the longest path that data demand.
    pub path: u64,
    /// Device METG(50 %) in us; `None`: a kernel of [`LONGEST_NS`] is not long enough.
    pub us: Option<f64>,
    /// Time of all AICPU instances for each kernel, in us, the builder's included, where kernels take what the cost model says.
    pub aicpu_us: f64,
}

/// What is run on: the profile, and whether the kernels compute. They must where predicates read what kernels wrote.
#[derive(Clone, Copy, Debug)]
pub struct On {
    /// The profile that is measured.
    pub profile: &'static Profile,
    /// Whether kernels compute.
    pub compute: Compute,
}

/// What one kernel time gives, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    kernel: u64,
    bound: u64,
    makespan: u64,
}

impl DeviceMetg {
    /// Searches on a program that `run` runs with the given options; `path`: the kernels of its longest path.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn search<E>(graph: &str, on: On, path: u64, run: Run<'_, E>) -> Result<Self, E> {
        let points = until_half(&mut |ns| point(ns, on, path, run))?;
        let us = half_ns(&points).map(|ns| ns / 1e3);
        let (mut kernels, mut instances, mut aicpu_us) = (0, 0, 0.0_f64);
        for seed in SEEDS {
            let report = run(on.options(seed, VirtualOptions::default().costs))?;
            kernels = kernels_of(&report);
            instances = report.instances.len();
            aicpu_us = aicpu_us.max(aicpu_us_of(&report));
        }
        Ok(Self { graph: graph.to_owned(), instances, kernels, path, us, aicpu_us })
    }

    /// Searches on a graph of the benchmark, half of whose tasks run on each kind of core; each half of a row is submitted as a range.
    ///
    /// # Errors
    /// Those of the device.
    pub fn of_pattern(name: &str, graph: &Arc<Csr>, on: On, die: Die) -> Result<Self, Error> {
        Self::search(name, on, graph.depth(), &mut |options| {
            let variant = Variant::Aicpu(BuildMode::CONCURRENT);
            let mut runner = Pto::open(Hosting::Virtual(options), variant, die)?;
            runner.load(LoadedGraph { graph, file: None })?;
            runner.run_virtual(Kernel::Halves)
        })
    }

    /// Whether shorter kernels are long enough than in another measurement.
    #[must_use]
    pub fn is_shorter_than(&self, other: &Self) -> bool {
        match (self.us, other.us) {
            (Some(us), Some(other)) => us < other,
            (us, _) => us.is_some(),
        }
    }

    /// What it should not exceed, if the project has such an aim.
    #[must_use]
    pub fn aim_us(&self) -> Option<f64> {
        match &*self.graph {
            "paged_attention" => Some(1.5),
            "decoder_layer" => Some(4.0),
            pattern if pattern.starts_with("tb_") => Some(4.0),
            _ => None,
        }
    }
}

impl On {
    fn options(self, seed: u64, costs: KernelCosts) -> VirtualOptions {
        let Self { profile, compute } = self;
        VirtualOptions { seed, profile, costs, compute, ..VirtualOptions::default() }
    }
}

/// Runs a program with kernels of `ns`.
fn point<E>(ns: u64, on: On, path: u64, run: Run<'_, E>) -> Result<Point, E> {
    let (mut makespan, mut bound) = (0, 0);
    for seed in SEEDS {
        let report = run(on.options(seed, KernelCosts::Constant(ns)))?;
        makespan = report.makespan_ns.max(makespan);
        bound = bound_ns(&report, path, ns).max(bound);
    }
    Ok(Point { kernel: ns, bound, makespan })
}

fn kernels_of(report: &VirtualReport) -> u64 {
    report.kinds.iter().map(|kind| kind.parts).sum()
}

fn aicpu_us_of(report: &VirtualReport) -> f64 {
    let worked: u64 = report.instances.iter().map(|instance| instance.worked_ns).sum();
    worked as f64 / kernels_of(report).max(1) as f64 / 1e3
}

/// The bound of a run whose kernels take `ns` each: its longest path of so many kernels, or the work of those that ran.
fn bound_ns(report: &VirtualReport, path: u64, ns: u64) -> u64 {
    let cores = report.kinds.iter().filter(|kind| kind.cores > 0);
    let work = cores.map(|kind| (kind.parts * ns).div_ceil(kind.cores.into()));
    work.fold(path * ns, u64::max)
}

/// Points with longer and longer kernels, until the bound is half of the makespan; and then a few between the last two.
fn until_half<E>(run: &mut dyn FnMut(u64) -> Result<Point, E>) -> Result<Vec<Point>, E> {
    let mut points: Vec<Point> = Vec::new();
    let mut ns = FIRST_NS;
    while ns <= LONGEST_NS {
        let point = run(ns)?;
        points.push(point);
        if point.is_half() {
            break;
        }
        ns *= 2;
    }
    if let &[.., below, at] = points.as_slice()
        && at.is_half()
    {
        let _ = points.pop();
        for part in 1..PARTS {
            let point = run(below.kernel + (at.kernel - below.kernel) * part / PARTS)?;
            points.push(point);
            if point.is_half() {
                return Ok(points);
            }
        }
        points.push(at);
    }
    Ok(points)
}

impl Point {
    const fn is_half(&self) -> bool {
        2 * self.bound >= self.makespan
    }
}

/// The kernel, in ns, from which on the bound is half of the makespan.
fn half_ns(points: &[Point]) -> Option<f64> {
    let share = |point: &Point| metg::Point {
        granularity_ns: point.kernel as f64,
        efficiency: point.bound as f64 / point.makespan.max(1) as f64,
    };
    let shares: Vec<_> = points.iter().map(share).collect();
    let at = shares.iter().position(|point| point.efficiency >= 0.5)?;
    let below = at.checked_sub(1).map(|below| shares[below]);
    Some(below.map_or(shares[at].granularity_ns, |below| between(below, shares[at])))
}

#[cfg(test)]
mod tests {
    use pto_host::virtual_time::{KindReport, VirtualReport};

    use super::{Point, bound_ns, half_ns, until_half};

    /// A program whose tasks cost so many ns in addition to their kernels.
    fn found(cost: u64) -> Option<f64> {
        let run = &mut |ns: u64| {
            let makespan = 100 * (ns + cost);
            Ok::<_, ()>(Point { kernel: ns, bound: 100 * ns, makespan })
        };
        half_ns(&until_half(run).unwrap())
    }

    #[test]
    fn half_is_where_a_kernel_takes_what_its_task_costs() {
        for cost in [100, 1_000, 3_000, 40_000] {
            let ns = found(cost).unwrap();
            assert!((ns / cost as f64 - 1.0).abs() < 0.05, "{cost}: {ns}");
        }
    }

    #[test]
    fn a_task_that_costs_more_than_the_longest_kernel_is_not_reached() {
        assert_eq!(found(1_000_000), None);
    }

    /// Three tasks after one another, one of them a chain of eight kernels: ten kernels of work on two cores.
    #[test]
    fn the_bound_is_work_or_the_path_that_data_demand() {
        let kind = KindReport { cores: 2, parts: 10, busy_ns: 10 * 7, ..KindReport::default() };
        let report = VirtualReport { kinds: [kind; 2], ..VirtualReport::default() };
        assert_eq!([3, 9].map(|path| bound_ns(&report, path, 7)), [35, 63]);
    }
}
