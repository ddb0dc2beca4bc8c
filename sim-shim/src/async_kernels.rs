//! Kernels that go on after their call has returned.
//!
//! In virtual time one OS thread calls the kernels of all cores, one after the other. A kernel that waits for another task would wait for ever:
//! no other core runs meanwhile. So a kernel may run on a thread of its own, and say before its call returns that it goes on ([`goes_on`]). The core
//! stays busy then, others take their turns, and the task is finished in the turn in which the core finds that the kernel has returned.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// A kernel that goes on.
pub trait AsyncKernel: Send + Sync {
    /// Whether it has returned; waits for it that long.
    fn has_returned(&self, timeout: Duration) -> bool;
}

thread_local! {
    static GOES_ON: RefCell<Option<Arc<dyn AsyncKernel>>> = const { RefCell::new(None) };
}

/// The kernel that is called on this thread goes on after its call has returned. For the machine in virtual time alone: other machines have a thread for
/// a core, or finish its task when the call returns.
pub fn goes_on(kernel: Arc<dyn AsyncKernel>) {
    GOES_ON.set(Some(kernel));
}

/// What the call that has returned on this thread has not finished yet.
#[inline]
pub(crate) fn take() -> Option<Arc<dyn AsyncKernel>> {
    GOES_ON.take()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{AsyncKernel, goes_on, take};

    struct Never;

    impl AsyncKernel for Never {
        fn has_returned(&self, _: Duration) -> bool {
            false
        }
    }

    #[test]
    fn it_is_taken_once_and_on_its_own_thread() {
        goes_on(Arc::new(Never));
        assert!(std::thread::spawn(|| take().is_none()).join().unwrap());
        assert!(take().is_some());
        assert!(take().is_none());
    }
}
