//! Whether runs are on whose transfers are to be moved.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many runs are on, and whether the thread is to go on.
#[derive(Default)]
pub(super) struct Activity {
    runs: Mutex<(u32, bool)>,
    changed: Condvar,
}

impl Activity {
    fn runs(&self) -> MutexGuard<'_, (u32, bool)> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run has begun.
    pub(super) fn one_more(&self) {
        self.runs().0 += 1;
        self.changed.notify_all();
    }

    /// A run is over.
    pub(super) fn one_less(&self) {
        let mut runs = self.runs();
        runs.0 = runs.0.saturating_sub(1);
    }

    /// The thread is to end.
    pub(super) fn stop(&self) {
        self.runs().1 = true;
        self.changed.notify_all();
    }

    /// Waits until a run is on; `false`: the thread is to end.
    pub(super) fn wait(&self) -> bool {
        let idle = |state: &mut (u32, bool)| state.0 == 0 && !state.1;
        let runs = self.changed.wait_while(self.runs(), idle);
        !runs.unwrap_or_else(PoisonError::into_inner).1
    }
}
