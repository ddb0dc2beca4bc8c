//! Which programs share a launch: whether the tasks of a graph are worth adding one by one.
//!
//! Graphs alone are joined on the host, and the device loads them as an image. In a launch with a plan or a builder the device adds the tasks of a graph one by one, which
//! takes longer than loading them. If the cores finish the tasks before the device has added them, sharing gains nothing, and the graph gets a launch of its own.

use pto_abi::CoreKind;
use pto_graph::task_list::ListedTask;

use crate::device::Device;

// What the device needs, in the profile `a2a3` (docs/decisions/stitching.md).
/// For adding a task of a list.
const ADDING_NS: u64 = 570;
/// For a task on its core, without its kernel.
const AROUND_NS: u64 = 1_150;
/// For a launch more.
const LAUNCH_NS: u64 = 4_000;

/// Estimates how long the cores of a device need for tasks.
pub(super) struct Grain {
    /// By the kind of core.
    cores: [u64; CoreKind::COUNT],
    #[cfg(feature = "sim")]
    costs: pto_sim_shim::virtual_time::KernelCosts,
}

impl Grain {
    pub(super) fn new(device: &Device) -> Self {
        Self {
            cores: [CoreKind::AIC, CoreKind::AIV].map(|kind| device.cores(kind).into()),
            #[cfg(feature = "sim")]
            costs: device.kernel_costs(),
        }
    }

    /// Whether a launch of their own finishes these tasks before the device could add them one by one. `false` if the costs of the kernels are unknown.
    pub(super) fn is_fine(&self, tasks: &[ListedTask]) -> bool {
        let added = ADDING_NS.saturating_mul(tasks.len() as u64);
        self.cores_ns(tasks).is_some_and(|cores| cores.saturating_add(LAUNCH_NS) < added)
    }

    /// How long the cores need for tasks that do not wait for each other.
    #[cfg(feature = "sim")]
    fn cores_ns(&self, tasks: &[ListedTask]) -> Option<u64> {
        let (mut sums, mut longest) = ([0_u64; CoreKind::COUNT], 0);
        for task in tasks {
            let words: Vec<_> = task.args.iter().map(pto_graph::owned::OwnedArg::word).collect();
            let takes = self.costs.expected(task.kernel.0, &words).saturating_add(AROUND_NS);
            let sum = sums.get_mut(task.kind.index())?;
            *sum = sum.saturating_add(takes);
            longest = longest.max(takes);
        }
        let busy = sums.iter().zip(self.cores).map(|(sum, cores)| sum / cores.max(1));
        busy.chain([longest]).max()
    }

    #[cfg(not(feature = "sim"))]
    fn cores_ns(&self, _tasks: &[ListedTask]) -> Option<u64> {
        None
    }
}
