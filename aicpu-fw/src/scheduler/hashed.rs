//! What tells a scheduler from another one on the same memory: for machines that search all orders of steps and go on from each
//! state once.

use core::hash::{Hash, Hasher};

use super::Scheduler;
use crate::platform::Platform;

impl<P: Platform, F> Scheduler<'_, P, F> {
    /// Hashes everything that later steps depend on. The memory of the run is not part of it, nor is what is only told: the
    /// circumstances of a fault.
    pub fn hash_state<H: Hasher>(&self, into: &mut H) {
        let Self {
            state: _,
            line: _,
            completed,
            unflushed,
            release,
            shared,
            first_look,
            hands_over,
            cores,
            local,
            mode,
            generation,
            traced_ns,
            now_ns,
            look_from,
            early_from,
            staged,
            pace,
            watchdog,
            blame: _,
            ahead,
            shapes,
            policy: _,
        } = self;
        (completed, unflushed, release, shared, first_look, hands_over).hash(into);
        (cores, local, mode, generation, traced_ns, now_ns).hash(into);
        (look_from, early_from, staged, pace, ahead, shapes).hash(into);
        watchdog.hash_state(into);
    }
}
