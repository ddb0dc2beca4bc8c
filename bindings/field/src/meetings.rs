//! Kernels that may wait for each other, in hosting modes in which one OS thread runs several cores.
//!
//! The kernels of a cluster wait for each other through flags and pipes, and so do all blocks of a task that starts at once. The engine calls
//! them one after the other on one thread, where the first one would wait for ever. So each gets a thread of its own. The last one to come is given
//! back to its caller, with what waits for the others behind it: the task completes behind all of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Bytes of a thread's stack: as many as cores have in hosting mode `threads`.
pub(crate) const STACK_BYTES: usize = 1 << 20;

/// Those that wait for each other: a task, and one block of it or all.
pub(crate) type Group = (u64, Option<u32>);

/// See the file.
#[derive(Default)]
pub(crate) struct Meetings {
    open: Mutex<HashMap<Group, Vec<JoinHandle<()>>>>,
}

impl Meetings {
    /// One of `party` kernels comes. The last one is given back: the caller is to run it, and it returns behind all of them.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(crate) fn arrive(
        &self,
        group: Group,
        party: usize,
        run: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Option<impl FnOnce() + Send + 'static>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let others = open.entry(group).or_default();
        if others.len() + 1 < party {
            let named = Builder::new().name("pto-kernel".to_owned());
            others.push(named.stack_size(STACK_BYTES).spawn(run)?);
            return Ok(None);
        }
        let others = open.remove(&group).unwrap_or_default();
        Ok(Some(move || {
            run();
            for other in others {
                // A kernel's signal is told where it is raised; a panic has nothing to add.
                let _ended = other.join();
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Meetings;

    #[test]
    fn the_last_one_waits_for_all() {
        let (meetings, here) = (Meetings::default(), Arc::new(AtomicUsize::new(0)));
        for number in 1..=5 {
            let here = Arc::clone(&here);
            let wait = move || {
                here.fetch_add(1, Ordering::Relaxed);
                while here.load(Ordering::Relaxed) < 5 {
                    std::thread::yield_now();
                }
                here.fetch_add(100, Ordering::Relaxed);
            };
            let last = meetings.arrive((7, None), 5, wait).unwrap();
            assert_eq!(last.is_some(), number == 5);
            if let Some(last) = last {
                last();
            }
            if number == 2 {
                assert!(meetings.arrive((7, Some(0)), 1, || ()).unwrap().is_some());
            }
        }
        assert_eq!(here.load(Ordering::Relaxed), 505, "all have ended");
    }
}
