//! Wrong fanout policies and wrong cores: each must be caught within a few seeds, which shows that the checkers can fail.

use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::{CLOSED, Task};
use pto_aicpu_fw::{FanoutPolicy, LockFree, Locked};

use super::super::chooser::Chooser;
use super::super::core::Report;
use super::super::device::{Ring, VirtualDevice};
use super::super::ledger::Invariant;
use super::super::wrong_core::{Wrong, choose};
use super::judge::judge;
use super::scenario::{Scenario, Troubles};
use super::soak_device::SoakDevice;

/// A policy like [`LockFree`] with one method changed.
macro_rules! mutant {
    ($(#[$meta:meta])* $name:ident { $($changed:tt)* }) => {
        $(#[$meta])*
        struct $name;
        mutant!(@impl $name { $($changed)* });
    };
    (@impl $name:ident { count $count:expr }) => {
        impl FanoutPolicy for $name {
            const NAME: &'static str = stringify!($name);
            fn count(task: &Task) -> Option<u32> { ($count)(task) }
            fn commit<S: Sharing>(task: &Task, count: u32) -> bool { LockFree::commit::<S>(task, count) }
            fn close<S: Sharing>(task: &Task) -> u32 { LockFree::close::<S>(task) }
        }
    };
    (@impl $name:ident { commit $commit:expr }) => {
        impl FanoutPolicy for $name {
            const NAME: &'static str = stringify!($name);
            fn count(task: &Task) -> Option<u32> { LockFree::count(task) }
            fn commit<S: Sharing>(task: &Task, count: u32) -> bool { ($commit)(task, count) }
            fn close<S: Sharing>(task: &Task) -> u32 { LockFree::close::<S>(task) }
        }
    };
    (@impl $name:ident { close $close:expr }) => {
        impl FanoutPolicy for $name {
            const NAME: &'static str = stringify!($name);
            fn count(task: &Task) -> Option<u32> { LockFree::count(task) }
            fn commit<S: Sharing>(task: &Task, count: u32) -> bool { LockFree::commit::<S>(task, count) }
            fn close<S: Sharing>(task: &Task) -> u32 { ($close)(task) }
        }
    };
}

mutant! {
    /// Says of every edge that its producer has completed.
    AlwaysSatisfied { count |_: &Task| None }
}
mutant! {
    /// Counts an edge for the consumer, and not for the producer.
    LosesTheEdge { commit |_: &Task, _: u32| true }
}
mutant! {
    /// Says that the producer has completed when it has not: the edge is taken back.
    RefusesTheEdge { commit |_: &Task, _: u32| false }
}
mutant! {
    /// Leaves the fanout open: an edge that is added later is lost.
    ForgetsToClose { close |task: &Task| task.fanout.load(Ordering::Relaxed) & !CLOSED }
}
mutant! {
    /// Does not release the last consumer.
    DropsTheLast {
        close |task: &Task| {
            let count = task.fanout.load(Ordering::Relaxed) & !CLOSED;
            task.fanout.store(count | CLOSED, Ordering::Relaxed);
            count.saturating_sub(1)
        }
    }
}
mutant! {
    /// Closes, and forgets who waits.
    ReleasesNobody {
        close |task: &Task| {
            task.fanout.fetch_or(CLOSED, Ordering::Relaxed);
            0
        }
    }
}

/// The first seed that catches a policy by what it says there.
fn caught<F: FanoutPolicy>(seeds: u64, by: &str) -> Option<(u64, String)> {
    (0..seeds).find_map(|seed| {
        let scenario = Scenario::draw(seed, 40, Troubles::None);
        let mut soak_device = SoakDevice::new(scenario.setup, &scenario.graph)?;
        let run = soak_device.run_with::<F>(scenario.options);
        let wrong = judge(&scenario, &soak_device, &run).err()?;
        wrong.what.contains(by).then_some((seed, wrong.what))
    })
}

#[test]
fn every_mutant_is_caught() {
    // A program that waits for a value makes STALL_BUILDER of what is STALL_DEADLOCK otherwise.
    let found = [
        ("AlwaysSatisfied", caught::<AlwaysSatisfied>(100, "EdgeOrder")),
        ("RefusesTheEdge", caught::<RefusesTheEdge>(100, "EdgeOrder")),
        ("LosesTheEdge", caught::<LosesTheEdge>(100, "STALL_")),
        ("ForgetsToClose", caught::<ForgetsToClose>(100, "STALL_")),
        ("DropsTheLast", caught::<DropsTheLast>(100, "STALL_")),
        ("ReleasesNobody", caught::<ReleasesNobody>(100, "STALL_")),
    ];
    for (name, caught) in found {
        let (seed, what) = caught.unwrap_or_else(|| panic!("{name} was not caught"));
        println!("{name}: seed {seed}: {}", &what[..what.len().min(100)]);
    }
}

#[test]
fn every_wrong_core_is_caught() {
    let found = [
        (Wrong::ReportsFirst, "completed before its kernel had ended"),
        (Wrong::TakesTheNewer, "completed twice, or before it finished"),
        (Wrong::RunsTwice, "started twice"),
        (Wrong::Skips, "completed twice, or before it finished"),
        (Wrong::NeverReports, "STALL_CORE"),
    ];
    for (wrong, by) in found {
        choose(wrong);
        let caught = caught::<LockFree>(100, by);
        choose(Wrong::Nothing);
        let (seed, what) = caught.unwrap_or_else(|| panic!("{wrong:?} was not caught"));
        println!("{wrong:?}: seed {seed}: {}", &what[..what.len().min(100)]);
    }
}

#[test]
fn the_real_policies_are_not() {
    assert_eq!(caught::<LockFree>(200, ""), None);
    assert_eq!(caught::<Locked>(200, ""), None);
}

/// The rules that no policy can break, because the platform below refuses first: the checkers themselves.
#[test]
fn a_core_that_is_not_free_and_a_queue_without_end_are_found() {
    let scenario = Scenario::draw(1, 4, Troubles::None);
    let mut soak_device = SoakDevice::new(scenario.setup, &scenario.graph).unwrap();
    let mut device = VirtualDevice::new(
        soak_device.prepared(),
        scenario.options,
        Chooser::seeded(0),
        std::sync::Arc::default(),
    );
    let rules = |device: &mut VirtualDevice| {
        device.ledger.take_violations().0.iter().map(|found| found.rule).collect::<Vec<_>>()
    };
    device.published(0, 0, 0);
    device.dispatched(0, 5, 0);
    assert_eq!(rules(&mut device), []);
    device.ring(0, 5, 0, Ring::Dispatch);
    for task in 1..=2 {
        // No doorbell was rung, so that the next doorbell is taken for what was staged last.
        device.published(task, 0, 6);
        device.cores[0].arena_lines.stage(1, task, 0, 0);
        device.dispatched(0, 6, 0);
        let expected: &[Invariant] = if task == 1 { &[] } else { &[Invariant::FreeCore] };
        assert_eq!(rules(&mut device), expected, "it may have two");
    }
    for _ in 0..9 {
        let report = Report::of(&device.cores[0].arena_lines.worker, u64::MAX);
        device.cores[0].reports.push_back(report);
    }
    device.step_core(0, 7);
    assert_eq!(rules(&mut device), [Invariant::BoundedMemory]);
}
