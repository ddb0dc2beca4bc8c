//! What a run in virtual time is made with.

use super::cost::KernelCosts;
use super::inject::Injection;
use super::profile::Profile;
use super::trace::Keep;

/// Whether kernels run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compute {
    /// They do, so that results can be checked.
    #[default]
    Run,
    /// They only take their time.
    Off,
    /// The same; in a group, each element of a tensor of a collective is followed: which ranks' values are in it.
    Contributions,
}

/// Whether lines of GM are followed from cache to cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineModel {
    /// Handshake lines only, which always are.
    #[default]
    Handshake,
    /// Also the lines that kernels of known access read and write; see [`super::lines`].
    Results,
}

/// Options of a run in virtual time. The same options and the same graph give the same run, on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualOptions {
    /// Decides every choice.
    pub seed: u64,
    /// What operations cost.
    pub profile: &'static Profile,
    /// What kernels cost.
    pub costs: KernelCosts,
    /// Whether kernels run.
    pub compute: Compute,
    /// Which lines are followed.
    pub lines: LineModel,
    /// What goes wrong, once: runs of the same machine after that one have no trouble.
    pub injection: Option<Injection>,
    /// Which events are kept.
    pub keep: Keep,
}

impl Default for VirtualOptions {
    /// Seed 0, profile a2a3, the cost model of the library kernels and 5 us for others, nothing goes wrong.
    fn default() -> Self {
        Self {
            seed: 0,
            profile: Profile::a2a3(),
            costs: KernelCosts::Library { fallback: 5_000 },
            compute: Compute::Run,
            lines: LineModel::Handshake,
            injection: None,
            keep: Keep::Hash,
        }
    }
}
