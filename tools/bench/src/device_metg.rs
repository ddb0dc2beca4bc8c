//! Device METG(50 %): how long a kernel must be for the makespan on the device to be at most twice the bound, in virtual time.
//!
//! All kernels of a graph take the same time. The bound is what the graph takes at least where everything else takes no time: the work of a
//! kind of core over its cores, or the longest path. What the kernels of a chain have to wait for is not known, because a chain runs them in order
//! whether they depend on each other or not. There are therefore two bounds, and METG is between what they give:
//!
//! | bound | a chain adds to the path | METG |
//! |---|---|---|
//! | of single kernels | one kernel, as if no kernel waited for another of its chain | at most this; the aims are held against it |
//! | of chains | all of its kernels, as if each waited for the one before | at least this |
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
use crate::runner::{Error, Loaded, Runner};

/// Tasks of each pattern: 64 rows of 72.
pub const TASKS: u32 = WIDTH * 64;
/// Points of a row: one for each core of a full die.
pub const WIDTH: u32 = 72;
/// The seeds of which the slowest counts.
const SEEDS: std::ops::Range<u64> = 0..3;
/// The shortest kernel that is tried, in ns; each one after it is twice as long.
const FIRST_NS: u64 = 64;
/// The longest kernel that is tried.
pub const LONGEST_NS: u64 = 65_536;

/// The profile that is measured, and one on which only kernels take time.
pub type Profiles = (&'static Profile, &'static Profile);

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
    /// Device METG(50 %) in us, with the bound of single kernels; `None`: a kernel of [`LONGEST_NS`] is not long enough.
    pub us: Option<f64>,
    /// The same with the bound of chains.
    pub of_chains_us: Option<f64>,
    /// Time of all AICPU instances for each kernel, in us, the builder's included, where kernels take what the cost model says.
    pub aicpu_us: f64,
}

/// What is run on: the profiles, and whether the kernels compute. They must where predicates read what kernels wrote.
#[derive(Clone, Copy, Debug)]
pub struct On {
    /// See [`Profiles`].
    pub profiles: Profiles,
    /// Whether kernels compute.
    pub compute: Compute,
}

/// What one kernel time gives, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    kernel: u64,
    of_kernels: u64,
    of_chains: u64,
    makespan: u64,
}

impl DeviceMetg {
    /// Searches on a program that `run` runs with the given options.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn search<E>(graph: &str, on: On, run: Run<'_, E>) -> Result<Self, E> {
        let points = until_half(&mut |ns| point(ns, on, run))?;
        let us = |bound: fn(&Point) -> u64| half_ns(&points, bound).map(|ns| ns / 1e3);
        let (us, of_chains_us) = (us(|point| point.of_kernels), us(|point| point.of_chains));
        let (mut kernels, mut instances, mut aicpu_us) = (0, 0, 0.0_f64);
        for seed in SEEDS {
            let report = run(on.options(seed, on.profiles.0, VirtualOptions::default().costs))?;
            kernels = kernels_of(&report);
            instances = report.instances.len();
            aicpu_us = aicpu_us.max(aicpu_us_of(&report));
        }
        Ok(Self { graph: graph.to_owned(), instances, kernels, us, of_chains_us, aicpu_us })
    }

    /// Searches on a graph of the benchmark, half of whose tasks run on each kind of core; each half of a row is submitted as a range.
    ///
    /// # Errors
    /// Those of the device.
    pub fn of_pattern(name: &str, graph: &Arc<Csr>, on: On, die: Die) -> Result<Self, Error> {
        Self::search(name, on, &mut |options| {
            let variant = Variant::Aicpu(BuildMode::CONCURRENT);
            let mut runner = Pto::open(Hosting::Virtual(options), variant, die)?;
            runner.load(Loaded { graph, file: None })?;
            runner.run_virtual(Kernel::Halves)
        })
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
    fn options(self, seed: u64, profile: &'static Profile, costs: KernelCosts) -> VirtualOptions {
        let compute = self.compute;
        VirtualOptions { seed, profile, costs, compute, ..VirtualOptions::default() }
    }
}

/// Runs a program with kernels of `ns`.
fn point<E>(ns: u64, on: On, run: Run<'_, E>) -> Result<Point, E> {
    let (profile, ideal) = on.profiles;
    let leading = run(on.options(0, ideal, KernelCosts::Leading(ns)))?;
    let all = run(on.options(0, ideal, KernelCosts::Constant(ns)))?;
    let mut makespan = 0;
    for seed in SEEDS {
        let report = run(on.options(seed, profile, KernelCosts::Constant(ns)))?;
        makespan = report.makespan_ns.max(makespan);
    }
    let (of_kernels, of_chains) = (bound_ns(&leading, ns), bound_ns(&all, ns));
    Ok(Point { kernel: ns, of_kernels, of_chains, makespan })
}

fn kernels_of(report: &VirtualReport) -> u64 {
    report.kinds.iter().map(|kind| kind.tasks).sum()
}

fn aicpu_us_of(report: &VirtualReport) -> f64 {
    let worked: u64 = report.instances.iter().map(|instance| instance.worked_ns).sum();
    worked as f64 / kernels_of(report).max(1) as f64 / 1e3
}

/// The bound from the critical path of a run, and the work of its kernels, each of which counts `ns`.
fn bound_ns(report: &VirtualReport, ns: u64) -> u64 {
    let cores = report.kinds.iter().filter(|kind| kind.cores > 0);
    let work = cores.map(|kind| (kind.tasks * ns).div_ceil(kind.cores.into()));
    work.fold(report.critical_path_ns, u64::max)
}

/// Points with longer and longer kernels, until the bound of single kernels is half of the makespan.
fn until_half<E>(run: &mut dyn FnMut(u64) -> Result<Point, E>) -> Result<Vec<Point>, E> {
    let mut points = Vec::new();
    let mut ns = FIRST_NS;
    while ns <= LONGEST_NS {
        let point = run(ns)?;
        points.push(point);
        if 2 * point.of_kernels >= point.makespan {
            break;
        }
        ns *= 2;
    }
    Ok(points)
}

/// The kernel, in ns, from which on a bound is half of the makespan.
fn half_ns(points: &[Point], bound: fn(&Point) -> u64) -> Option<f64> {
    let share = |point: &Point| metg::Point {
        granularity_ns: point.kernel as f64,
        efficiency: bound(point) as f64 / point.makespan.max(1) as f64,
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

    /// A program whose tasks cost so many ns beside their kernels; a fifth of its work is a chain that has to be one.
    fn found(cost: u64) -> [Option<f64>; 2] {
        let run = &mut |ns: u64| {
            let makespan = 100 * (ns + cost);
            Ok::<_, ()>(Point { kernel: ns, of_kernels: 100 * ns, of_chains: 120 * ns, makespan })
        };
        let points = until_half(run).unwrap();
        [half_ns(&points, |point| point.of_kernels), half_ns(&points, |point| point.of_chains)]
    }

    #[test]
    fn half_is_where_a_kernel_takes_what_its_task_costs() {
        for cost in [100, 1_000, 3_000, 40_000] {
            let [ns, of_chains] = found(cost).map(Option::unwrap);
            assert!((ns / cost as f64 - 1.0).abs() < 0.05, "{cost}: {ns}");
            assert!((of_chains * 1.4 / cost as f64 - 1.0).abs() < 0.05, "{cost}: {of_chains}");
        }
    }

    #[test]
    fn a_task_that_costs_more_than_the_longest_kernel_is_not_reached() {
        assert_eq!(found(1_000_000), [None, None]);
    }

    /// Three tasks after one another, one of them a chain of eight kernels: ten kernels of work on two cores, a path of three.
    #[test]
    fn the_kernels_of_a_chain_are_work_and_no_path() {
        let kind = KindReport { cores: 2, tasks: 10, busy_ns: 3 * 7, ..KindReport::default() };
        let report =
            VirtualReport { critical_path_ns: 3 * 7, kinds: [kind; 2], ..VirtualReport::default() };
        assert_eq!(bound_ns(&report, 7), 35);
    }
}
