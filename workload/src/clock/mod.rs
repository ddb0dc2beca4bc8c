//! Runs a workload on this machine, in program order, on the `v9` clock.
//!
//! The clock counts cycles of tile operations and knows no data: only the tree orders tasks. Tasks run one after the other, in
//! program order, so results never depend on the clock. `walk` goes through the tree; `times` knows when a node is ready and
//! done; `issue` gives tasks to workers; `channels` lets processes meet.

mod bindings;
mod channels;
mod eval;
mod foreign;
mod issue;
mod loop_scope;
mod processes;
mod report;
mod size;
mod tasks;
mod times;
mod walk;

pub use bindings::{Bindings, BoundTensor, row_major};
pub use channels::Rendezvous;
pub use foreign::{Foreign, ForeignCall};
pub use issue::{Issue, WindowFull};
pub use loop_scope::LoopScope;
pub use report::{CHANNEL_LATENCY, Report, RunError, TaskTime};

use crate::tree::{Checked, Schedule, TreeNode, Workload};

use tasks::Runner;
use times::Times;
use walk::{Event, Walker};

/// Runs a workload.
///
/// # Errors
/// What ended the run. Tasks before it have been done.
pub fn run(checked: &Checked, bindings: &Bindings) -> Result<Report, RunError> {
    run_observed(checked, bindings, &mut |_| {})
}

/// Runs a workload, and shows every task.
///
/// # Errors
/// As [`run`].
pub fn run_observed(
    checked: &Checked,
    bindings: &Bindings,
    observer: &mut dyn FnMut(TaskTime),
) -> Result<Report, RunError> {
    let workload = checked.workload();
    if let Some(what) = workload.schedule.beyond_v9() {
        return Err(RunError::Schedule(what));
    }
    observed(workload, bindings, u64::MAX, observer)
}

/// Runs a workload in program order, whatever its schedule says: its results do not depend on that. Returns how many tasks ran.
///
/// # Errors
/// As [`run`]; the workload has more tasks than `most`. Where its loops say so, nothing has run.
pub fn results(checked: &Checked, bindings: &Bindings, most: u64) -> Result<u64, RunError> {
    let mut workload = checked.workload().clone();
    workload.schedule = Schedule::default();
    let least = size::least_tasks(&workload.root, bindings);
    if least > most {
        return Err(RunError::Tasks { least, most });
    }
    observed(&workload, bindings, most, &mut |_| {}).map(|report| report.tasks)
}

fn observed(
    workload: &Workload,
    bindings: &Bindings,
    most_tasks: u64,
    observer: &mut dyn FnMut(TaskTime),
) -> Result<Report, RunError> {
    let mut runner = Runner::new(workload, bindings, most_tasks, observer)?;
    if let TreeNode::Pipeline(processes) = &workload.root {
        return processes::run(processes, &mut runner);
    }
    tree(&workload.root, &mut runner)
}

/// Runs a tree that is no pipeline.
fn tree(root: &TreeNode, runner: &mut Runner) -> Result<Report, RunError> {
    let mut walker = Walker::new(root);
    let mut times = Times::default();
    let schedule = &runner.workload().schedule;
    let mut issue = Issue::new(schedule.workers, schedule.window);
    loop {
        match walker.next(runner.inputs())? {
            Event::Enter(order) => times.enter(order),
            Event::Exit => times.exit(),
            Event::Task(task) => {
                let ready = times.ready();
                times.done(runner.dispatched(task, walker.scope(), &mut issue, ready)?);
            }
            Event::Slot(node) => runner.slot(node, walker.scope())?,
            Event::Send { .. } | Event::Consume(_) => {}
            Event::Done => break,
        }
    }
    let (total_cycles, overflows) = (times.total(), issue.overflows());
    Ok(Report { total_cycles, overflows, tasks: runner.tasks() })
}
