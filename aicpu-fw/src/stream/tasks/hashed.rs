//! The state by which streaming builders on the same memory differ: for machines that search all orders of steps, and go on
//! from each state once.

use core::hash::Hash;

use super::Tasks;
use crate::config::Config;
use crate::machine::Machine;

impl<C: Config> Tasks<'_, C> {
    /// Reports everything that later calls depend on to the host, if it wants that: before each turn of the others. The memory of
    /// the run is not part of it, nor is what is only reported, nor for how long it has waited: that decides only when a wait
    /// that can never end is given up. A recording that is being made is not, either: nothing is published then, and no task
    /// waits. `at`: where in a call the builder is, as far as that does not follow from the rest.
    #[inline]
    pub(super) fn report_state(&mut self, at: u64) {
        if let Some(into) = self.events.machine().hasher() {
            at.hash(&mut &mut *into);
            self.hash_state();
        }
    }

    #[cold]
    #[inline(never)]
    fn hash_state(&mut self) {
        let Self {
            state: _,
            storage,
            scopes,
            kernels: _,
            publisher,
            events,
            schedulers: _,
            blame: _,
            policy: _,
        } = self;
        let (traced_ns, machine) = events.parts();
        let Some(mut into) = machine.hasher() else { return };
        (publisher.reserve(), traced_ns).hash(&mut into);
        storage.hash_state(&mut into);
        scopes.hash_state(&mut into);
    }
}
