//! What a device of a campaign is, and how it is launched.

use std::fmt;

use pto_abi::{BuildMode, FanoutStrategy, RuntimeVariant};

use super::super::spec::time_text;

/// What the device is, and how it is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Who builds the graph.
    pub variant: RuntimeVariant,
    /// AICPU instances, the builder included.
    pub aicpu: u32,
    /// Cube cores.
    pub aic: u32,
    /// Vector cores.
    pub aiv: u32,
    /// Whether schedulers wait for the builder.
    pub build_mode: BuildMode,
    /// How edges are added while their producer may complete.
    pub fanout: FanoutStrategy,
    /// Of a streaming run: how many tasks its window holds, a power of two; `None`: all. Its rings are as small.
    pub window: Option<u32>,
    /// Whether cores stay in service after a run without a fault.
    pub keeps_cores: KeepCores,
    /// How long one task may run, in nanoseconds.
    pub task_budget_ns: u64,
    /// How long nothing may move, in nanoseconds.
    pub stall_budget_ns: u64,
    /// How long a core may take to answer or to stop, in nanoseconds.
    pub bring_up_budget_ns: u64,
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variant, aicpu, aic, aiv, build_mode, fanout, .. } = self;
        write!(f, "{variant}, {build_mode}, {fanout} fanout, {aicpu} AICPU, {aic} AIC, {aiv} AIV")?;
        if let Some(window) = self.window {
            write!(f, ", window of {window} tasks")?;
        }
        let [task, stall, bring_up] =
            [self.task_budget_ns, self.stall_budget_ns, self.bring_up_budget_ns].map(time_text);
        write!(
            f,
            "; budgets: task {task}, stall {stall}, bring-up {bring_up}; cores {:?}",
            self.keeps_cores
        )
    }
}

/// What becomes of the cores after a run without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepCores {
    /// They leave their loops; the next run brings them up anew.
    Leave,
    /// They stay in service for the next run.
    Stay,
}
