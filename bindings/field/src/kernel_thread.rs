//! Kernels on threads of their own in virtual time, where one OS thread calls those of all cores: a kernel that waits for another task goes on after
//! its call has returned, so that the other task runs.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pto_host::async_kernels::{AsyncKernel, goes_on};

use crate::meetings::spawn;

/// How long the machine waits for a kernel as if it were its call. Longer than nearly every kernel computes: after this time two runs may
/// differ.
const GRACE: Duration = Duration::from_secs(1);

/// Whether the kernel has returned.
#[derive(Default)]
struct KernelThread {
    has_returned: Mutex<bool>,
    returned: Condvar,
}

impl AsyncKernel for KernelThread {
    fn has_returned(&self, timeout: Duration) -> bool {
        let has_returned = self.has_returned.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.returned.wait_timeout_while(has_returned, timeout, |returned| !*returned);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Runs a kernel on a thread of its own. Returns whether the kernel is still running after this call; then this function has called
/// `goes_on` of the machine.
///
/// # Errors
/// The system has no thread for it: it has not run.
pub(crate) fn run(kernel: impl FnOnce() + Send + 'static) -> std::io::Result<bool> {
    let thread = Arc::new(KernelThread::default());
    let own = Arc::clone(&thread);
    let run = move || {
        kernel();
        *own.has_returned.lock().unwrap_or_else(PoisonError::into_inner) = true;
        own.returned.notify_all();
    };
    spawn(run)?;
    let is_going_on = !thread.has_returned(GRACE);
    if is_going_on {
        goes_on(thread);
    }
    Ok(is_going_on)
}
