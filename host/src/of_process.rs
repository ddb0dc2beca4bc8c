//! Values that belong to the process that made them. A fork copies their memory and none of their threads: in the child a wait for such a
//! thread lasts for ever, and a join of it crashes.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// A value of the process that made it. In a child of `fork` it cannot be used, and nothing happens when it is dropped.
pub struct OfProcess<T> {
    value: ManuallyDrop<T>,
    origin: Origin,
}

/// Where a value was made.
#[derive(Clone, Copy)]
struct Origin {
    forks: u32,
    process: u32,
}

/// A value is used in a process that did not make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the object was opened in process {process}, and this process is a fork of it, which has none of its threads; \
     open a device in the child"
)]
pub struct OtherProcess {
    /// The process that made it.
    pub process: u32,
}

/// How many forks lie between the first process that asked and this one.
fn forks() -> u32 {
    static FORKS: AtomicU32 = AtomicU32::new(0);
    static COUNTED: Once = Once::new();
    extern "C" fn forked() {
        // Relaxed: the child of a fork has one thread.
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    COUNTED.call_once(|| {
        // SAFETY: the function adds to an atomic and does nothing else.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    // Relaxed: it changes in a fork alone, before the child has a second thread.
    FORKS.load(Ordering::Relaxed)
}

impl<T> OfProcess<T> {
    /// A value of this process.
    pub fn new(value: T) -> Self {
        let origin = Origin { forks: forks(), process: std::process::id() };
        Self { value: ManuallyDrop::new(value), origin }
    }

    /// Whether this process has made it.
    pub fn is_here(&self) -> bool {
        self.origin.forks == forks()
    }

    /// The value.
    ///
    /// # Errors
    /// This process is a fork of the one that made it.
    pub fn get(&self) -> Result<&T, OtherProcess> {
        self.check().map(|()| &*self.value)
    }

    /// The value, to be changed.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn get_mut(&mut self) -> Result<&mut T, OtherProcess> {
        self.check().map(|()| &mut *self.value)
    }

    /// The value alone.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn into_inner(self) -> Result<T, OtherProcess> {
        self.check()?;
        let mut whole = ManuallyDrop::new(self);
        // SAFETY: the whole is not dropped, so nothing uses the value after this.
        Ok(unsafe { ManuallyDrop::take(&mut whole.value) })
    }

    fn check(&self) -> Result<(), OtherProcess> {
        match self.is_here() {
            true => Ok(()),
            false => Err(OtherProcess { process: self.origin.process }),
        }
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.is_here() {
            // SAFETY: this is the only drop, and nothing uses the value after it.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for OfProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Ok(value) => value.fmt(f),
            Err(other) => write!(f, "({other})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OfProcess;
    use std::sync::Arc;

    /// What the child finds, as its exit code.
    fn in_a_child(look: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child looks at its memory and ends; it takes no lock that another thread may have held.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork");
        if child == 0 {
            let code = i32::from(!look());
            // SAFETY: it ends the child at once.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: `status` is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        status == 0
    }

    #[test]
    fn a_child_neither_gets_a_value_nor_drops_it() {
        let shared = Arc::new(7);
        let mut value = OfProcess::new(Arc::clone(&shared));
        let process = std::process::id();
        assert!(in_a_child(move || {
            let names_process = value.get().is_err_and(|other| other.process == process);
            let is_refused = value.get_mut().is_err() && !value.is_here();
            let own = OfProcess::new(3);
            drop(value);
            names_process && is_refused && Arc::strong_count(&shared) == 2 && own.get() == Ok(&3)
        }));
    }

    #[test]
    fn its_own_process_gets_it_and_drops_it_once() {
        let shared = Arc::new(7);
        let mut value = OfProcess::new(Arc::clone(&shared));
        assert_eq!((value.get().map(|value| **value), value.get_mut().is_ok()), (Ok(7), true));
        let inner = value.into_inner().expect("the same process");
        assert_eq!(Arc::strong_count(&shared), 2);
        drop(OfProcess::new(inner));
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
