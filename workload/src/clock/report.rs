//! What a run counted, or why it ended.

use std::fmt::Display;

use pto_abi::numbers::{Counted, Grouped};
use pto_aicore_kernels::tile::TileFault;

use super::loop_scope::LoopScope;

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
    #[error("The array {name} has {}, and the axis needs {needed}.", Counted(*found as u64, "element"))]
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
    #[error("At {scope}: {message}")]
    Expression {
        /// The loop variables.
        scope: LoopScope,
        /// What is wrong.
        message: String,
    },
    /// The loops go on without a task.
    #[error(
        "At {scope}: {turns} turns of loops went by without a task. Look at the size of the loop, and at the predicates of its tasks."
    )]
    Turns {
        /// The loop variables.
        scope: LoopScope,
        /// How many turns.
        turns: u64,
    },
    /// There are more tasks than may run.
    #[error(
        "The workload calls its kernels at least {} times, and {} calls are the limit. Make its loops shorter, or its tiles larger.",
        Grouped(*least), Grouped(*most)
    )]
    Tasks {
        /// The workload makes at least this many calls.
        least: u64,
        /// The largest number of calls that a workload may make.
        most: u64,
    },
    /// A kernel faulted.
    #[error("At {scope}: {fault}")]
    Fault {
        /// The loop variables.
        scope: LoopScope,
        /// The fault.
        fault: Box<TileFault>,
    },
    /// The schedule asks for what the clock has no meaning for.
    #[error("The schedule has a {0}, and the v9 clock has none. Leave it out, or run on a device.")]
    Schedule(&'static str),
    /// A tensor goes between ranks.
    #[error(
        "At {scope}: the workload exchanges a tensor with other ranks ({kind}), and this clock has none. Run it on the devices of a group."
    )]
    Exchange {
        /// The loop variables.
        scope: LoopScope,
        /// What becomes of the tensor.
        kind: &'static str,
    },
    /// The window was full, in abort mode.
    #[error(
        "At {scope}: {} under way, and the window takes no more. Make it larger, or let it stall.",
        Counted(*tasks, "task")
    )]
    WindowFull {
        /// The loop variables.
        scope: LoopScope,
        /// How many tasks are under way.
        tasks: u64,
    },
    /// No process can go on.
    #[error("The pipeline is in a deadlock: {0}.")]
    Deadlock(String),
}

impl RunError {
    /// The same error for an argument of a call, with the names of kernel and operand.
    pub(super) fn of_operand(self, kernel: &str, operand: impl Display) -> Self {
        match self {
            Self::Expression { scope, message } => {
                let message = format!("Kernel {kernel}, operand {operand}: {message}");
                Self::Expression { scope, message }
            }
            other => other,
        }
    }
}
