//! Cores that are taken out of the list of free ones without being given a task: held for a cluster, or pledged to a task
//! whose blocks start at once; and cores that run a part of a task.

use pto_abi::CoreKind;
use pto_abi::limits::{MAX_TASKS, MAX_WORKERS};

use super::CoreSet;

/// In what a core runs: it is a part of the task in the slot below. No slot has this bit: a lookup of the
/// task finds none, and the caller then checks this bit.
pub(crate) const PART: u32 = 1 << 31;
const _: () = assert!(MAX_TASKS <= PART, "slots leave the bit alone");

impl CoreSet {
    /// A free core of `kind`, the one that became free last.
    pub(crate) fn free_core(&self, kind: CoreKind) -> Option<usize> {
        self.free[kind.index()].last().copied().map(usize::from)
    }

    /// Whether a core is free.
    pub(crate) fn is_free(&self, core: usize) -> bool {
        let free = &self.free[self.kind(core).index()];
        free.iter().any(|free| usize::from(*free) == core)
    }

    /// Takes a core out of the list of free ones.
    pub(crate) fn set_apart(&mut self, core: usize) {
        let free = &mut self.free[self.kinds[core % MAX_WORKERS].index()];
        if let Some(at) = free.iter().position(|free| usize::from(*free) == core) {
            free.swap_remove(at);
        }
    }

    /// A core that was set apart is free again.
    pub(crate) fn give_back(&mut self, core: usize) {
        let number = u8::try_from(core).unwrap_or(u8::MAX);
        // A core is in one list at a time, so there is room.
        self.free[self.kind(core).index()].push(number).unwrap_or_default();
    }

    /// A core that was set apart runs this from now on.
    pub(crate) fn assign(&mut self, core: usize, running: u32) {
        let number = u8::try_from(core).unwrap_or(u8::MAX);
        // As in `give_back`.
        self.busy.push(number).unwrap_or_default();
        self.running[core % MAX_WORKERS] = running;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{CoreSet, PART};
    use pto_abi::CoreKind;

    #[test]
    fn a_core_set_apart_is_neither_free_nor_busy() {
        let mut cores = CoreSet::new();
        (0..3).for_each(|worker| cores.add(worker, CoreKind::AIV).unwrap());
        cores.set_apart(1);
        assert_eq!((cores.free_count(CoreKind::AIV), cores.busy().len()), (2, 0));
        assert!(!cores.is_free(1) && cores.is_free(2));
        cores.set_apart(1);
        assert_eq!(cores.free_count(CoreKind::AIV), 2, "it is apart already");
        cores.assign(1, PART | 7);
        assert!(cores.is_busy(1) && cores.running(1) == PART | 7);
        cores.set_apart(2);
        cores.give_back(2);
        assert_eq!(cores.free_core(CoreKind::AIV), Some(2), "the one that became free last");
    }
}
