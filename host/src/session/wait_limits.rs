//! How long single waits of a stream may last. A limit belongs to one command: that of a wait which was refused goes with it, because the next command
//! gets the same number.

use std::collections::BTreeMap;
use std::time::Duration;

/// The limits, by the numbers of their commands.
#[derive(Debug, Default)]
pub(super) struct WaitLimits(BTreeMap<u64, Duration>);

impl WaitLimits {
    /// The wait with this number is about to be submitted.
    pub(super) fn set(&mut self, number: u64, limit: Duration) {
        self.0.insert(number, limit);
    }

    /// Removes the limit of a wait that was refused.
    pub(super) fn remove(&mut self, number: u64) {
        self.0.remove(&number);
    }

    /// Commands up to this number are over.
    pub(super) fn forget(&mut self, completed: u64) {
        self.0 = self.0.split_off(&completed.saturating_add(1));
    }

    /// How long the command with this number may wait, where it has a limit of its own.
    pub(super) fn of(&self, number: u64) -> Option<Duration> {
        self.0.get(&number).copied()
    }

    /// Whether no command has one.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
