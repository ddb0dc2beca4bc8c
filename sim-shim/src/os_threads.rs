//! How many OS threads a pool or a campaign takes: the most, and the default.

use std::num::NonZeroUsize;

/// The most OS threads that a pool or a campaign takes. More than there are AICPU instances and cores have nothing to do.
pub const MAX_OS_THREADS: usize = 256;

/// OS threads of a pool by default: one per CPU, at most 8 (more than the instances and
/// clusters of a die do not help).
#[must_use]
pub fn default_pool_threads() -> NonZeroUsize {
    one_per_cpu(8)
}

/// OS threads of a campaign by default: one per CPU, at most [`MAX_OS_THREADS`].
#[must_use]
pub fn default_campaign_threads() -> NonZeroUsize {
    one_per_cpu(MAX_OS_THREADS)
}

fn one_per_cpu(most: usize) -> NonZeroUsize {
    let cpus = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    NonZeroUsize::new(cpus.get().min(most)).unwrap_or(NonZeroUsize::MIN)
}
