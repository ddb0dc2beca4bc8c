//! Campaigns: seeds pass, a seed replays, threads do not matter, and a failure is found and shrunk.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Instant;

use pto_sim_shim::virtual_time::soak::{Scenario, Troubles, replay, shrink, try_scenario};
use pto_sim_shim::virtual_time::{KernelCosts, SoakOptions, soak};

fn threads(count: usize) -> SoakOptions {
    let threads = NonZeroUsize::new(count).expect("not zero");
    SoakOptions { threads, ..SoakOptions::default() }
}

#[test]
fn seeds_pass_with_and_without_trouble() {
    // `cargo xtask test` asks for many more, and shows what is printed.
    let count =
        std::env::var("PTO_SOAK_SEEDS").ok().map_or(3_000, |n| n.parse().expect("a number"));
    for troubles in [Troubles::Some, Troubles::None] {
        let options = SoakOptions { troubles, ..SoakOptions::default() };
        let start = Instant::now();
        let report = soak(0..count, &options, |_| ControlFlow::Continue(()));
        println!(
            "{troubles:?} trouble: {count} seeds, {} runs, {} ended with the fault expected of them, {:.1?}",
            report.runs,
            report.faulted,
            start.elapsed()
        );
        assert!(report.failures.is_empty(), "{}", report.failures[0]);
        assert_eq!(report.seeds, count);
        assert!(troubles == Troubles::None || report.faulted > count / 4);
        assert!(troubles == Troubles::Some || (report.faulted, report.injected) == (0, 0));
    }
}

#[test]
fn a_campaign_does_not_depend_on_its_threads() {
    let [one, three] =
        [1, 3].map(|count| soak(500..900, &threads(count), |_| ControlFlow::Continue(())));
    assert_eq!(
        (one.runs, one.tasks, one.injected, one.faulted, one.hash),
        (three.runs, three.tasks, three.injected, three.faulted, three.hash)
    );
}

#[test]
fn a_seed_replays() {
    for seed in 0..50 {
        let [first, again] =
            [(); 2].map(|()| replay(seed, &SoakOptions::default()).expect("it passes"));
        assert_eq!(first, again);
    }
}

#[test]
fn progress_is_told() {
    let told = std::sync::Mutex::new(0);
    soak(0..200, &threads(2), |done| {
        let mut most = told.lock().unwrap();
        *most = done.max(*most);
        ControlFlow::Continue(())
    });
    assert_eq!(*told.lock().unwrap(), 200);
}

/// What a campaign that was stopped says is what one of as many seeds says: none of them was left out.
#[test]
fn a_campaign_that_is_stopped_has_tried_the_first_seeds() {
    for count in [1, 3] {
        let stopped = soak(700..2_000, &threads(count), |done| match done >= 128 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        assert!((128..1_000).contains(&stopped.seeds), "{}", stopped.seeds);
        let whole = soak(700..700 + stopped.seeds, &threads(1), |_| ControlFlow::Continue(()));
        assert_eq!((stopped.hash, stopped.runs), (whole.hash, whole.runs));
    }
}

#[test]
fn a_failing_scenario_is_shrunk_to_what_matters() {
    // Some kernels take longer than the task budget: a scenario of many tasks fails because of one.
    let mut scenario = Scenario::draw(1, 40, Troubles::None);
    scenario.options.costs = KernelCosts::Drawn { low: 0, high: 400_000, seed: 1 };
    let failure = try_scenario(&scenario).expect_err("a kernel takes too long");
    assert!(failure.what.contains("STALL_CORE"), "{failure}");
    let (small, small_failure) = shrink(&scenario, failure);
    assert_eq!(small.graph.nodes.len(), 1, "{small_failure}");
    assert_eq!(try_scenario(&small), Err(small_failure), "and it replays");
}
