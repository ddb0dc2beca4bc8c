//! Wrong firmwares, and which checker finds each: the checkers can fail. The list of what is wrong is
//! `pto_aicpu_fw::mutant`; mutants of the fanout are in `sim-shim/src/virtual_time/soak/mutants.rs` (found by the virtual
//! machine), those of orderings and barriers in `tests/loom` (functions named `wrong_..`, found by loom).

use std::panic::{AssertUnwindSafe, catch_unwind};

use pto_aicpu_fw::LockFree;
use pto_aicpu_fw::mutant::{Mutant, choose};

use crate::{hoarding, loader, slots, watchdog};

/// A checker: a test of this crate, by its name.
type Checker = (&'static str, fn());

const ONE: Checker = ("random runs, one dispatch a core", hoarding::with_one_dispatch::<LockFree>);
const TWO: Checker =
    ("random runs, two dispatches a core", hoarding::with_two_dispatches::<LockFree>);
const LONG: Checker = (
    "nothing is pended after a long kernel",
    slots::nothing_is_pended_after_a_long_kernel::<LockFree>,
);
const OVERDUE: Checker =
    ("an overdue core is named", watchdog::an_overdue_core_is_named::<LockFree>);
const LOADED: Checker =
    ("a graph is loaded and runs again", loader::a_graph_is_loaded_and_runs_again::<LockFree>);
const SLOW: Checker = ("a slow core is no stall", watchdog::a_slow_core_is_no_stall::<LockFree>);

/// Mutant, what finds it, and a part of what that says.
const TABLE: &[(Mutant, Checker, &str)] = &[
    (Mutant::ReleasesTwice, ONE, " -> "),
    (Mutant::DropsAnEdge, ONE, "STALL_DEADLOCK"),
    (Mutant::ForgetsTheState, ONE, " -> "),
    (Mutant::CountsTooEarly, ONE, "outstanding"),
    (Mutant::EndsWithTheBuild, ONE, "an end before the last task"),
    (Mutant::Hoards, ONE, "that only one instance sees"),
    (Mutant::ForgetsToCommit, ONE, "CORE_WRONG_STATUS"),
    (Mutant::PublishesAsReady, ONE, "that only one instance sees"),
    (Mutant::NeverRaises, ONE, "outstanding"),
    (Mutant::QueueLoses, ONE, "that only one instance sees"),
    (Mutant::QueueRepeats, ONE, "that only one instance sees"),
    (Mutant::PendsDespiteFreeCores, TWO, "waits for a busy core while another core is free"),
    (Mutant::TakesTheSecondForTheFirst, TWO, "counts as completed, and runs"),
    (Mutant::ForgetsTheSecond, TWO, "SCHEDULE_CORE_NOT_FREE"),
    (Mutant::NeverLooks, TWO, "STALL_CORE"),
    (Mutant::RingsTooEarly, TWO, " -> "),
    (Mutant::RingsWhatWasReplaced, TWO, "started on what it was not given"),
    (Mutant::PendsAfterLongKernels, LONG, "it goes on for long"),
    (Mutant::IgnoresSlowCores, OVERDUE, "STALL_CORE"),
    (Mutant::TakesWorkForAStall, SLOW, "STALL"),
    (Mutant::LoadsAnEdgeTooFew, LOADED, "before its producer"),
    (Mutant::LeavesTasksCountedDown, LOADED, "does not end"),
];

/// What a checker says of the firmware as it is chosen; `None`: it finds nothing.
fn verdict(check: fn()) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(check)).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or(panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default())
}

#[test]
fn every_mutant_is_found_by_its_checker() {
    let mut wrong = Vec::new();
    for &(mutant, (checker, check), words) in TABLE {
        choose(Mutant::None);
        if let Some(verdict) = verdict(check) {
            wrong.push(format!("{checker}: finds something where nothing is wrong: {verdict}"));
        }
        choose(mutant);
        let verdict = verdict(check);
        println!("{mutant:?}: {checker}: {verdict:?}");
        if !verdict.as_ref().is_some_and(|verdict| verdict.contains(words)) {
            wrong.push(format!("{mutant:?}: {checker} says {verdict:?}, and not '{words}'"));
        }
    }
    choose(Mutant::None);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
