//! The errors of compiling a workload to a plan.

/// Why a workload has no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It has processes, and a schedule that speaks of single tasks.
    #[error(
        "Workload {0} is a pipeline, whose processes order its tasks. Leave streams, batches, priorities and start thresholds out of its schedule."
    )]
    Pipeline(String),
    /// The workload has more parts of one kind than a plan can hold.
    #[error(
        "Workload {workload} has {found} {what}, and a plan holds {limit}. Take less, or make two workloads of it."
    )]
    TooMany {
        /// The workload.
        workload: String,
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        found: usize,
        /// How much a plan holds.
        limit: usize,
    },
    /// Its window does what no ring does.
    #[error(
        "Workload {workload} has a window in mode {mode}, and the ring of a device waits. Use mode stall, or the v9 clock."
    )]
    WindowMode {
        /// The workload.
        workload: String,
        /// The mode.
        mode: &'static str,
    },
    /// The key of its dispatch, or its priority, reads what a device does not know of a task.
    #[error(
        "Workload {workload}: the key of its dispatch, or its priority, reads argument {number} of a task, and a device knows the axes only. Make it an axis."
    )]
    Param {
        /// The workload.
        workload: String,
        /// The argument.
        number: u16,
    },
    /// A tensor has more dimensions than a device knows.
    #[error(
        "Tensor {name} has {found} dimensions, and a device knows {limit}. Merge leading dimensions."
    )]
    Rank {
        /// The tensor.
        name: String,
        /// Its dimensions.
        found: usize,
        /// What a device knows.
        limit: usize,
    },
    /// A tensor cannot be in memory.
    #[error("Tensor {name} has a dimension of {extent} places. A device knows 1 to 4,294,967,295.")]
    Extent {
        /// The tensor.
        name: String,
        /// The extent.
        extent: u64,
    },
    /// The reader of plans refuses what was written.
    #[error("At {location}: {fault} (word {at} of the plan)")]
    Refused {
        /// The loops, kernel and argument.
        location: String,
        /// Why.
        fault: pto_abi::Fault,
        /// The word.
        at: usize,
    },
}
