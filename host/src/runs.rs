//! The runs that are in progress, and the freed memory that waits for their end.
//!
//! A run is given addresses as plain words, so the host does not know which of them a kernel will touch. Memory that its user
//! frees during runs therefore waits until the last of those runs has ended; only then it can be allocated again.
//!
//! ```text
//! Memory::begin_run -> Runs::begin      a number that no other run has
//! Memory::free      -> Runs::wait       true: the block waits, and its user may not use it any more
//! RunHold dropped   -> Runs::end        the blocks that no run holds any more
//! ```
//! Invariants: numbers of runs grow; a block waits only for runs that had begun when it was freed.

use std::collections::BTreeSet;

use pto_abi::GmAddr;

/// A block that waits.
#[derive(Debug)]
struct PendingFree {
    address: GmAddr,
    /// The newest run that was in progress when its user freed it.
    newest_run: u64,
}

/// The runs of one device.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    begun: u64,
    on: BTreeSet<u64>,
    waiting: Vec<PendingFree>,
}

impl Runs {
    /// A run begins; this is its number.
    pub(crate) fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.on.insert(self.begun);
        self.begun
    }

    /// Notes that `address` waits for the runs that are on; `false`: there are none.
    pub(crate) fn wait(&mut self, address: GmAddr) -> bool {
        let Some(&newest_run) = self.on.last() else { return false };
        self.waiting.push(PendingFree { address, newest_run });
        true
    }

    /// A run ends: takes out the blocks that wait for no run any more.
    pub(crate) fn end(&mut self, run: u64) -> Vec<GmAddr> {
        self.on.remove(&run);
        let oldest = self.on.first().copied();
        let is_free = |block: &PendingFree| oldest.is_none_or(|oldest| block.newest_run < oldest);
        let (free, waiting) = self.waiting.drain(..).partition(is_free);
        self.waiting = waiting;
        Vec::into_iter(free).map(|block: PendingFree| block.address).collect()
    }

    /// Takes out the blocks that wait for this run, which never ends.
    pub(crate) fn lose(&mut self, run: u64) {
        self.waiting.retain(|block| block.newest_run < run);
        self.on.remove(&run);
    }
}

#[cfg(test)]
mod tests {
    use super::Runs;
    use pto_abi::GmAddr;

    const BLOCK: GmAddr = GmAddr(64);

    #[test]
    fn nothing_waits_without_a_run() {
        let mut runs = Runs::default();
        assert!(!runs.wait(BLOCK));
        let run = runs.begin();
        assert!(runs.end(run).is_empty());
        assert!(!runs.wait(BLOCK));
    }

    #[test]
    fn a_block_waits_for_every_run_that_was_on() {
        let mut runs = Runs::default();
        let (first, second) = (runs.begin(), runs.begin());
        assert!(runs.wait(BLOCK));
        assert!(runs.end(second).is_empty(), "the first one may still use it");
        assert_eq!(runs.end(first), [BLOCK]);
    }

    #[test]
    fn a_block_does_not_wait_for_later_runs() {
        let mut runs = Runs::default();
        let first = runs.begin();
        assert!(runs.wait(BLOCK));
        let second = runs.begin();
        assert_eq!(runs.end(first), [BLOCK]);
        assert!(runs.end(second).is_empty(), "once");
    }

    #[test]
    fn what_waits_for_a_lost_run_never_comes_back() {
        let mut runs = Runs::default();
        let first = runs.begin();
        assert!(runs.wait(BLOCK));
        runs.lose(first);
        let second = runs.begin();
        assert!(runs.wait(GmAddr(128)));
        assert_eq!(runs.end(second), [GmAddr(128)]);
    }
}
