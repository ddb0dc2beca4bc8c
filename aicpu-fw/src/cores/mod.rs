//! The cores of one scheduler: which are free, which are busy, and with what. Dense lists, because a step
//! walks the busy ones and takes any free one; of 128-bit masks and lists, the lists cost half the
//! instructions per task. Where a core may have two dispatches, the second one is *pending*: the core starts it by
//! itself.

pub(crate) mod apart;

use heapless::Vec;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::{CoreKind, Fault};

/// No task.
const NONE: u32 = u32::MAX;

/// A core in a set of cores.
#[inline]
pub(crate) const fn bit(core: usize) -> u128 {
    1 << (core % MAX_WORKERS)
}

/// One scheduler's cores, by the numbers that the platform gave them, which are below [`MAX_WORKERS`]: a number is
/// reduced to that, so that no bounds check is left.
#[derive(Hash)]
#[repr(C)]
pub(crate) struct CoreSet {
    busy: Vec<u8, MAX_WORKERS>,
    free: [Vec<u8, MAX_WORKERS>; CoreKind::COUNT],
    kinds: [CoreKind; MAX_WORKERS],
    running: [u32; MAX_WORKERS],
    pending: [u32; MAX_WORKERS],
    workers: Vec<u32, MAX_WORKERS>,
}

impl CoreSet {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self {
            workers: Vec::new(),
            kinds: [CoreKind::AIV; MAX_WORKERS],
            running: [NONE; MAX_WORKERS],
            pending: [NONE; MAX_WORKERS],
            free: [Vec::new(), Vec::new()],
            busy: Vec::new(),
        }
    }

    /// One more core, free.
    pub(crate) fn add(&mut self, worker: u32, kind: CoreKind) -> Result<(), Fault> {
        let full = Fault::RUNTIME_WORKER_COUNT;
        let core = u8::try_from(self.workers.len()).map_err(|_| full)?;
        self.workers.push(worker).map_err(|_| full)?;
        self.kinds[usize::from(core) % MAX_WORKERS] = kind;
        self.free[kind.index()].push(core).map_err(|_| full)
    }

    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    /// The number of a core on the device.
    pub(crate) fn worker(&self, core: usize) -> u32 {
        self.workers.get(core).copied().unwrap_or(u32::MAX)
    }

    /// The busy cores.
    #[inline]
    pub(crate) fn busy(&self) -> &[u8] {
        &self.busy
    }

    /// What a busy core runs: of two dispatches the older one.
    #[inline]
    pub(crate) fn running(&self, core: usize) -> u32 {
        self.running[core % MAX_WORKERS]
    }

    /// The kind of a core.
    #[inline]
    pub(crate) fn kind(&self, core: usize) -> CoreKind {
        self.kinds[core % MAX_WORKERS]
    }

    /// A busy core that has finished goes on with this task.
    #[inline]
    pub(crate) fn goes_on_with(&mut self, core: usize, slot: u32) {
        self.running[core % MAX_WORKERS] = slot;
    }

    pub(crate) fn is_busy(&self, core: usize) -> bool {
        self.busy.iter().any(|busy| usize::from(*busy) == core)
    }

    /// How many cores of `kind` are free.
    #[inline]
    pub(crate) fn free_count(&self, kind: CoreKind) -> usize {
        self.free[kind.index()].len()
    }

    /// Takes a free core of `kind`, the one that became free last.
    #[inline]
    pub(crate) fn take(&mut self, kind: CoreKind, slot: u32) -> Option<usize> {
        let core = self.free[kind.index()].pop()?;
        // A core is in one list at a time, so there is room.
        self.busy.push(core).unwrap_or_default();
        let core = usize::from(core);
        self.running[core % MAX_WORKERS] = slot;
        Some(core)
    }

    /// The free cores of `kind`; the last one is [taken](Self::take) first.
    #[inline]
    pub(crate) fn free(&self, kind: CoreKind) -> &[u8] {
        &self.free[kind.index()]
    }

    /// Whether a busy core could be given a second dispatch.
    #[inline]
    pub(crate) fn has_room(&self, core: usize, kind: CoreKind) -> bool {
        self.pending[core % MAX_WORKERS] == NONE && self.kind(core) == kind
    }

    /// Gives a busy core a second dispatch.
    #[inline]
    pub(crate) fn pend(&mut self, core: usize, slot: u32) {
        self.pending[core % MAX_WORKERS] = slot;
    }

    /// The busy core has finished the older of its two dispatches, and runs the other: which it is. `None`: it
    /// had one only.
    #[inline]
    pub(crate) fn advance(&mut self, core: usize) -> Option<u32> {
        let slot = core::mem::replace(&mut self.pending[core % MAX_WORKERS], NONE);
        if slot == NONE {
            return None;
        }
        self.running[core % MAX_WORKERS] = slot;
        Some(slot)
    }

    /// The busy core at `index` of the list is free again; the last one moves to this index.
    #[inline]
    pub(crate) fn release(&mut self, index: usize) {
        if index >= self.busy.len() {
            return;
        }
        let core = self.busy.swap_remove(index);
        // As in `take`.
        self.free[self.kind(usize::from(core)).index()].push(core).unwrap_or_default();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::CoreSet;
    use pto_abi::CoreKind;

    #[test]
    fn a_core_is_free_or_busy_never_both() {
        let mut cores = CoreSet::new();
        for (worker, kind) in [(7, CoreKind::AIC), (8, CoreKind::AIV), (9, CoreKind::AIV)] {
            cores.add(worker, kind).unwrap();
        }
        let first = cores.take(CoreKind::AIV, 100).unwrap();
        let second = cores.take(CoreKind::AIV, 101).unwrap();
        assert_eq!(cores.take(CoreKind::AIV, 102), None);
        assert_eq!((cores.running(first), cores.running(second)), (100, 101));
        assert_eq!(cores.busy().len(), 2);
        assert!(cores.is_busy(first) && !cores.is_busy(0));
        cores.release(0);
        assert_eq!((cores.free_count(CoreKind::AIV), cores.free_count(CoreKind::AIC)), (1, 1));
        assert_eq!(cores.take(CoreKind::AIV, 103), Some(first), "the one that became free last");
        cores.release(9);
        assert_eq!(cores.busy().len(), 2, "there is no such entry");
        assert_eq!((cores.worker(0), cores.worker(3)), (7, u32::MAX));
    }

    #[test]
    fn the_limit_is_a_fault() {
        let mut cores = CoreSet::new();
        (0..128).for_each(|worker| cores.add(worker, CoreKind::AIV).unwrap());
        assert!(cores.add(128, CoreKind::AIV).is_err());
    }
}
