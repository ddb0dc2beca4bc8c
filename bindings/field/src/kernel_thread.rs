//! Kernels on threads of their own in virtual time, where one OS thread calls those of all cores: a kernel that waits for another task goes on behind
//! its call, so that the other task gets its turn.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pto_host::async_kernels::{AsyncKernel, goes_on};

use crate::meetings::spawn;

/// How long the machine waits for a kernel as if it were its call. Longer than nearly every kernel computes: behind this time a run is not the same
/// twice.
const GRACE: Duration = Duration::from_secs(1);

/// Whether the kernel has returned.
#[derive(Default)]
struct Handed {
    has_returned: Mutex<bool>,
    returned: Condvar,
}

impl AsyncKernel for Handed {
    fn has_returned(&self, timeout: Duration) -> bool {
        let has_returned = self.has_returned.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.returned.wait_timeout_while(has_returned, timeout, |returned| !*returned);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Runs a kernel on a thread of its own; whether it goes on behind its call, which the machine was told.
///
/// # Errors
/// The system has no thread for it: it has not run.
pub(crate) fn run(kernel: impl FnOnce() + Send + 'static) -> std::io::Result<bool> {
    let handed = Arc::new(Handed::default());
    let own = Arc::clone(&handed);
    let run = move || {
        kernel();
        *own.has_returned.lock().unwrap_or_else(PoisonError::into_inner) = true;
        own.returned.notify_all();
    };
    spawn(run)?;
    let is_going_on = !handed.has_returned(GRACE);
    if is_going_on {
        goes_on(handed);
    }
    Ok(is_going_on)
}
