//! Runs a workload on this machine, in program order, on the `v9` clock.
//!
//! The clock counts cycles of tile operations and knows no data: only the tree orders tasks. Tasks run one after the other, in
//! program order, so results never depend on the clock. [`walk`] goes through the tree; [`times`] knows when a node is ready and
//! done; [`issue`] gives tasks to workers; [`channels`] lets processes meet.

mod bindings;
mod channels;
mod eval;
mod issue;
mod processes;
mod tasks;
mod times;
mod walk;

pub use bindings::{Bindings, Bound};
pub use channels::Rendezvous;
pub use eval::Place;
pub use issue::{Issue, WindowFull};

use crate::tile::TileFault;
use crate::tree::{Checked, Node};

use tasks::Runner;
use times::Times;
use walk::{Event, Walker};

/// The symbol that holds the latency of every channel; 0 where it is not bound.
pub const CHANNEL_LATENCY: &str = "__pto_wsp_channel_latency_cycles";

/// What a run counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// When the last task ended.
    pub total_cycles: u64,
    /// How many tasks ran.
    pub tasks: u64,
    /// How many tasks were issued although the window was full, in benchmark mode.
    pub overflows: u64,
}

/// A task of a run.
#[derive(Clone, Copy, Debug)]
pub struct TaskTime<'a> {
    /// The kernel.
    pub kernel: &'a str,
    /// The axes of the task.
    pub axes: &'a [i64],
    /// The worker, or the process of a pipeline.
    pub lane: u64,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A tensor is not bound.
    #[error("The tensor {0} is not bound. Bind its memory before the run.")]
    MissingTensor(String),
    /// A tensor is bound with strides for another number of dimensions.
    #[error("The tensor {name} has {needed} dimensions, and is bound with {found} strides.")]
    Strides {
        /// The tensor.
        name: String,
        /// Its dimensions.
        needed: usize,
        /// The strides.
        found: usize,
    },
    /// There is nothing with this name to bind.
    #[error("The workload has no tensor {0}.")]
    UnknownTensor(String),
    /// A symbol is not bound.
    #[error("The symbol {0} is not bound. Set it before the run.")]
    MissingSymbol(String),
    /// An array is not bound.
    #[error("The symbol {0} is not bound to an array. Set it before the run.")]
    MissingArray(String),
    /// An array of an axis is too short.
    #[error("The array {name} has {found} elements, and the axis needs {needed}.")]
    ArrayTooShort {
        /// The array.
        name: String,
        /// What the axis needs.
        needed: u64,
        /// What there is.
        found: usize,
    },
    /// An array of an axis has an element that cannot be.
    #[error("Element {index} of the array {name} is {value}. It must be {needed}.")]
    ArrayElement {
        /// The array.
        name: String,
        /// Which element.
        index: usize,
        /// What it is.
        value: i32,
        /// What it must be.
        needed: &'static str,
    },
    /// An expression has no value.
    #[error("At {place}: {message}")]
    Expression {
        /// The loop variables.
        place: Place,
        /// What is wrong.
        message: String,
    },
    /// A kernel faulted.
    #[error("At {place}: {fault}")]
    Fault {
        /// The loop variables.
        place: Place,
        /// The fault.
        fault: Box<TileFault>,
    },
    /// The window was full, in abort mode.
    #[error(
        "At {place}: {tasks} tasks are under way, and the window takes no more. Make it larger, or let it stall."
    )]
    WindowFull {
        /// The loop variables.
        place: Place,
        /// How many tasks are under way.
        tasks: u64,
    },
    /// No process can go on.
    #[error("The pipeline is in a deadlock: {0}.")]
    Deadlock(String),
}

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
    let mut runner = Runner::new(workload, bindings, observer)?;
    if let Node::Pipeline(processes) = &workload.root {
        return processes::run(processes, &mut runner);
    }
    tree(&workload.root, &mut runner)
}

/// Runs a tree that is no pipeline.
fn tree(root: &Node, runner: &mut Runner) -> Result<Report, RunError> {
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
                times.done(runner.dispatched(task, walker.place(), &mut issue, ready)?);
            }
            Event::Slot(node) => runner.slot(node, walker.place())?,
            Event::Send { .. } | Event::Consume(_) => {}
            Event::Done => break,
        }
    }
    let (total_cycles, overflows) = (times.total(), issue.overflows());
    Ok(Report { total_cycles, overflows, tasks: runner.tasks() })
}
