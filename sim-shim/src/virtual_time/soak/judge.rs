//! Judges a run of a campaign: the faults that each injected trouble may cause, and the checks of every run.

use std::fmt;

use pto_abi::Fault;
use pto_abi::block::BlockContext;
use pto_abi::runtime::NOBODY;

use super::super::chooser::Chooser;
use super::super::inject::{Injection, Trouble};
use super::super::ledger::Invariant;
use super::super::options::VirtualOptions;
use super::super::trace::{Event, EventKind, Keep};
use super::scenario::Scenario;
use super::soak_device::{SoakDevice, SoakRun};

/// How a run may end that had this trouble; `None` among them: without a fault. The trouble may be harmless,
/// when it comes with the last task of a core, or when a slow core had a short kernel. And a core that has its next
/// dispatch already says with that one's doorbell or report what was lost of the one before.
#[must_use]
pub const fn expected(trouble: Trouble) -> &'static [Option<Fault>] {
    match trouble {
        Trouble::NoAnswer => &[Some(Fault::CORE_NO_ANSWER)],
        Trouble::Hang => &[Some(Fault::STALL_CORE)],
        Trouble::Slow(_) | Trouble::FinishTwice | Trouble::DoorbellLost => {
            &[Some(Fault::STALL_CORE), None]
        }
        Trouble::WrongId => &[Some(Fault::CORE_WRONG_STATUS), None],
        // The id of the task before is what the core showed before: it looks busy for ever. Before its first
        // task there is none, so that the id is foreign.
        Trouble::OldId => &[Some(Fault::STALL_CORE), Some(Fault::CORE_WRONG_STATUS), None],
        Trouble::DoorbellDelayed(delay) | Trouble::StatusDelayed(delay) => {
            if delay > 500_000 {
                &[Some(Fault::STALL_CORE)]
            } else {
                &[None]
            }
        }
        // A campaign records nothing, so that no run waits for the host.
        Trouble::NoFlush | Trouble::NoInvalidate | Trouble::HostSilent => &[None],
        Trouble::CorruptLine => &[Some(Fault::SCHEDULE_TASK_STATE)],
        // A task without producers is ready by then, and its count is not read any more.
        Trouble::CorruptCount => &[Some(Fault::STALL_DEADLOCK), None],
        Trouble::HostDies => &[Some(Fault::RUN_CANCELLED)],
        Trouble::BuilderStops => &[Some(Fault::STALL_BUILDER)],
        Trouble::BuilderFails => &[Some(Fault::BUILD_FAILED)],
    }
}

/// Which rule of the campaign a run broke. Two failures with the same cause are taken for the same fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// The graph does not fit an arena.
    TooLarge,
    /// The run ended with this fault, or without one, and another end was expected.
    End(Option<Fault>),
    /// The fault names another core than the one in trouble.
    WrongCore,
    /// A core is said to have had a task for longer than since the task's doorbell.
    TooOld,
    /// A checker of the machine found this.
    Violation(Invariant),
    /// Not all tasks were completed.
    Incomplete,
    /// A node holds a wrong value, or did not run once.
    WrongValue,
    /// The run took longer than its budgets and its tasks explain.
    TooLong,
}

/// What was wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRun {
    /// Which of a scenario's runs: 0 with its trouble, 1 without.
    pub run: u32,
    /// Which rule it broke.
    pub cause: FailureCause,
    /// In words.
    pub what: String,
}

/// A defect that the judge found in one run.
#[derive(Debug)]
pub(super) struct Wrong {
    cause: FailureCause,
    pub(super) what: String,
}

impl Wrong {
    fn new(cause: FailureCause, what: impl Into<String>) -> Self {
        Self { cause, what: what.into() }
    }

    /// Turns the finding into the failure of run number `run`.
    pub(super) fn in_run(self, run: u32) -> FailedRun {
        FailedRun { run, cause: self.cause, what: self.what }
    }
}

impl fmt::Display for FailedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = if self.run == 0 { "the run" } else { "the run after it, without trouble" };
        write!(f, "{run}: {}", self.what)
    }
}

/// What a scenario gave that passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Runs that were made: two if it has trouble.
    pub runs: u64,
    /// Tasks that were completed in them.
    pub tasks: u64,
    /// How the first run ended.
    pub fault: Option<Fault>,
    /// Whether its trouble happened.
    pub was_injected: bool,
    /// Trace hash of the first run.
    pub hash: u64,
    /// What the stale-line model found in the first run, where maintenance was left out on purpose.
    pub stale_lines: u64,
}

/// Events of a run that its judge looks at: those of the last kernels of each core.
const KEPT: Keep = Keep::Events(1 << 20);

/// Runs a scenario: with its trouble, and then once more without (the device must be usable).
///
/// # Errors
/// What was wrong with one of the runs.
pub fn try_scenario(scenario: &Scenario) -> Result<Passed, FailedRun> {
    let mut soak_device = SoakDevice::new(scenario.setup, &scenario.graph).ok_or_else(|| {
        Wrong::new(FailureCause::TooLarge, "the graph does not fit an arena").in_run(0)
    })?;
    let options = VirtualOptions { keep: KEPT, ..scenario.options };
    let first = soak_device.run(options, Chooser::seeded(options.seed));
    judge(scenario, &soak_device, &first).map_err(|wrong| wrong.in_run(0))?;
    let mut passed = Passed {
        runs: 1,
        tasks: first.report.tasks,
        fault: first.fault,
        was_injected: first.report.injections > 0,
        hash: first.report.trace_hash,
        stale_lines: first.report.violation_count,
    };
    if options.injection.is_some() {
        let options = VirtualOptions { injection: None, ..options };
        let calm = Scenario { options, ..scenario.clone() };
        let second = soak_device.run(options, first.chooser);
        judge(&calm, &soak_device, &second).map_err(|wrong| wrong.in_run(1))?;
        passed.runs += 1;
        passed.tasks += second.report.tasks;
    }
    Ok(passed)
}

/// Whether a run is what it must be.
pub(super) fn judge(
    scenario: &Scenario,
    soak_device: &SoakDevice,
    run: &SoakRun,
) -> Result<(), Wrong> {
    let injection = scenario.options.injection.filter(|_| run.report.injections > 0);
    let expected = injection.map_or(&[None][..], |injection| expected(injection.trouble));
    if !expected.contains(&run.fault) {
        let expected: Vec<_> = expected.iter().map(|fault| name(*fault)).collect();
        let (found, expected) = (name(run.fault), expected.join(" or "));
        let what = format!("{found}, where {expected} was expected{}", details(run));
        return Err(Wrong::new(FailureCause::End(run.fault), what));
    }
    if let (Some(injection), Some(fault)) = (injection, run.fault)
        && !injection.trouble.is_builders()
        && run.epitaph.core != injection.worker
    {
        let (named, worker) = (run.epitaph.core, injection.worker);
        let what =
            format!("{fault:?} names core {named}, and it was core {worker}{}", details(run));
        return Err(Wrong::new(FailureCause::WrongCore, what));
    }
    if had_ns(run).is_some_and(|had_ns| run.epitaph.since_ns > had_ns + A_COMMIT_NS) {
        let what = format!("a core is blamed for the time of another task{}", details(run));
        return Err(Wrong::new(FailureCause::TooOld, what));
    }
    judge_violations(injection.map(|injection| injection.trouble), run)?;
    judge_end(scenario, soak_device, run)
}

/// A commit rings one core after another, and the look of a watchdog is of one moment.
const A_COMMIT_NS: u64 = 1_000;

/// For how long the core that ran too long has had its task, by the machine; `None`: no core did, or its events were not kept.
fn had_ns(run: &SoakRun) -> Option<u64> {
    let epitaph = &run.epitaph;
    let is_it = |event: &&Event| {
        event.kind == EventKind::Dispatched
            && u32::from(event.agent) == epitaph.core
            && event.task == epitaph.task.slot
    };
    let of_core = run.fault == Some(Fault::STALL_CORE);
    let dispatched = run.report.events.iter().rev().filter(|_| of_core).find(is_it)?;
    Some(epitaph.time_ns.saturating_sub(dispatched.time_ns))
}

fn name(fault: Option<Fault>) -> &'static str {
    fault.map_or("no fault", Fault::name)
}

/// What the epitaph of a run says, in short; nothing, if it ended without a fault.
fn details(run: &SoakRun) -> String {
    let Some(_) = run.fault else { return String::new() };
    let epitaph = &run.epitaph;
    let number = |number: u32| match number {
        NOBODY => "-".to_owned(),
        number => number.to_string(),
    };
    let [instance, core, task] = [epitaph.instance, epitaph.core, epitaph.task.slot].map(number);
    let mut text = format!(
        "; by instance {instance} at {} ns, core {core}, task {task}{}; {} added, {} published, {} completed, {} cores busy",
        epitaph.time_ns,
        lasted(run),
        epitaph.added,
        epitaph.published,
        epitaph.completed,
        epitaph.busy_cores
    );
    let held = (epitaph.blocked_count as usize).min(epitaph.blocked.len());
    for blocked in epitaph.blocked.iter().take(held.min(4)) {
        text += &format!("; task {} waits for task {}", blocked.task, number(blocked.producer));
    }
    text
}

/// Which part of the task, for how long by the firmware, and for how long by the machine.
fn lasted(run: &SoakRun) -> String {
    let epitaph = &run.epitaph;
    let mut text = String::new();
    if epitaph.part != 0 {
        let BlockContext { block, blocks, lane } = BlockContext::of(epitaph.part);
        text += &format!(" (block {block} of {blocks}, lane {lane})");
    }
    if epitaph.since_ns > 0 {
        text += &format!(", for {} ns", epitaph.since_ns);
    }
    if let Some(had_ns) = had_ns(run) {
        text += &format!(" (its doorbell was {had_ns} ns before)");
    }
    text
}

fn judge_violations(trouble: Option<Trouble>, run: &SoakRun) -> Result<(), Wrong> {
    // Without maintenance a reader finds old lines: that is what the model is for.
    let unmaintained = matches!(trouble, Some(Trouble::NoFlush | Trouble::NoInvalidate));
    // The book takes a task for ready whose count is wrong, and it is on no list.
    let is_miscounted = matches!(trouble, Some(Trouble::CorruptCount));
    let is_expected = |rule| match rule {
        Invariant::LineOwnership => unmaintained,
        Invariant::Priority => is_miscounted,
        _ => false,
    };
    let mut violations = run.report.violations.iter();
    match violations.find(|found| !is_expected(found.rule)) {
        Some(found) => Err(Wrong::new(FailureCause::Violation(found.rule), found.to_string())),
        None => Ok(()),
    }
}

fn judge_end(scenario: &Scenario, soak_device: &SoakDevice, run: &SoakRun) -> Result<(), Wrong> {
    if run.fault.is_none() {
        let nodes = scenario.graph.nodes.len() as u64;
        if run.report.tasks != nodes {
            let what = format!("{} of {nodes} tasks were completed", run.report.tasks);
            return Err(Wrong::new(FailureCause::Incomplete, what));
        }
        if let Some(node) = soak_device.wrong_node() {
            let what = format!("node {node} holds a wrong value, or did not run once");
            return Err(Wrong::new(FailureCause::WrongValue, what));
        }
    }
    let setup = &scenario.setup;
    let budgets = setup.task_budget_ns + setup.stall_budget_ns + 2 * setup.bring_up_budget_ns;
    // Beyond its kernel a task takes less than 20 us of virtual time; on a slow core, its budget.
    let is_slow =
        matches!(scenario.options.injection, Some(Injection { trouble: Trouble::Slow(_), .. }));
    let task_ns = 20_000 + scenario.options.costs.longest_drawn_ns();
    let task_ns = task_ns + if is_slow { setup.task_budget_ns } else { 0 };
    let parts = scenario.graph.first_cells().last().copied().unwrap_or(0);
    let bound_ns = 2 * budgets + task_ns * u64::from(parts);
    let makespan_ns = run.report.makespan_ns;
    if makespan_ns > bound_ns {
        let what = format!("the run took {makespan_ns} ns; its bound is {bound_ns} ns");
        return Err(Wrong::new(FailureCause::TooLong, what));
    }
    Ok(())
}
