//! Numbers of instances and cores: few, odd, many; and many machines at once.

use std::num::NonZeroUsize;

use pto_abi::{CoreKind, RuntimeVariant};
use pto_sim_shim::Hosting;

use super::dag::{self, Dag};
use super::ways::{check, device, for_every_hosting, named, options};
use crate::common::LaunchOptions;

#[test]
fn two_to_sixteen_instances() {
    let dag = Dag::random(21, 150);
    for aicpu in [2, 3, 5, 8, 16] {
        for variant in RuntimeVariant::ALL {
            let options = LaunchOptions { aicpu, aic: 16, aiv: 32, variant: *variant, ..options() };
            named(&format!("{aicpu} instances, {variant}"), || {
                for_every_hosting(options, |device| check(device, &dag));
            });
        }
    }
    let options =
        LaunchOptions { aicpu: 1, variant: RuntimeVariant::HOST_BUILD_GRAPH, ..options() };
    for_every_hosting(options, |device| check(device, &dag));
}

#[test]
fn one_core() {
    let dag = Dag::new(dag::wavefront(8), &[CoreKind::AIC]);
    let options = LaunchOptions { aicpu: 2, aic: 1, aiv: 0, ..options() };
    for_every_hosting(options, |device| check(device, &dag));
    let dag = Dag::new(dag::wavefront(8), &[CoreKind::AIV]);
    let options = LaunchOptions { aicpu: 2, aic: 0, aiv: 1, ..options };
    for_every_hosting(options, |device| check(device, &dag));
}

#[test]
fn odd_numbers_of_cores() {
    let dag = Dag::random(22, 150);
    for (aicpu, aic, aiv) in [(4, 3, 7), (3, 7, 3), (4, 5, 1), (6, 43, 85)] {
        let options = LaunchOptions { aicpu, aic, aiv, ..options() };
        named(&format!("{aicpu} + {aic} + {aiv}"), || {
            for_every_hosting(options, |device| check(device, &dag));
        });
    }
}

/// A full die on a machine with few CPUs: 76 agents, and the stall budget of 5 s is never near.
#[test]
fn a_full_die_does_not_stall() {
    let dags = [Dag::random(23, 1_500), Dag::new(dag::wavefront(30), CoreKind::ALL)];
    let options = LaunchOptions { aicpu: 4, aic: 24, aiv: 48, stall_budget_ms: 5_000, ..options() };
    for_every_hosting(options, |device| dags.iter().for_each(|dag| check(device, dag)));
}

/// A thousand runs of a small graph on each of two machines at once, on more threads than CPUs.
#[test]
fn a_thousand_runs_under_oversubscription() {
    let pool = Hosting::Pool { os_threads: NonZeroUsize::new(4).unwrap() };
    std::thread::scope(|scope| {
        for (number, hosting) in [Hosting::Threads, pool].into_iter().enumerate() {
            scope.spawn(move || {
                let dag = Dag::random(24 + number as u64, 24);
                let mut device = device(hosting, options());
                (0..1_000).for_each(|_| check(&mut device, &dag));
            });
        }
    });
}
