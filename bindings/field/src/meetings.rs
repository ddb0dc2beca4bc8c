//! Kernels that may wait for each other, in hosting modes in which one OS thread runs several cores.
//!
//! The kernels of a cluster wait for each other through flags and pipes, and so do all blocks of a task that starts at once. The engine calls
//! them one after the other on one thread, where the first one would wait for ever. So each gets a thread of its own. A kernel that comes is kept
//! until the last one of its group comes: the caller of the last one runs them all, and the task completes after all of them. No kernel of a group
//! begins before every one has its thread, because a kernel without the others would wait for ever.
//!
//! Why it is so: `docs/decisions/simpler-waiting-kernels.md`.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Bytes of a thread's stack: as many as cores have in hosting mode `threads`.
const STACK_BYTES: usize = 1 << 20;

/// Those that wait for each other: a task, and one block of it or all.
pub(crate) type Group = (u64, Option<u32>);

/// A kernel that has come and has not begun.
type Kernel = Box<dyn FnOnce() + Send>;

/// See the file.
#[derive(Default)]
pub(crate) struct Meetings {
    open: Mutex<HashMap<Group, Vec<Kernel>>>,
}

impl Meetings {
    /// One of `party` kernels comes. With the last one comes back what runs them all: it returns after all of them, or fails if the system has
    /// too few threads, and then none of them has run.
    pub(crate) fn arrive(
        &self,
        group: Group,
        party: usize,
        run: impl FnOnce() + Send + 'static,
    ) -> Option<impl FnOnce() -> io::Result<()> + Send + 'static> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let others = open.entry(group).or_default();
        if others.len() + 1 < party {
            others.push(Box::new(run));
            return None;
        }
        let others = open.remove(&group).unwrap_or_default();
        Some(move || run_together(others, run, spawn))
    }
}

/// Runs `last` on this thread and each of `others` on a thread that `spawn` starts; returns after all of them.
///
/// # Errors
/// A thread could not be started. No kernel has run.
fn run_together(
    others: Vec<Kernel>,
    last: impl FnOnce(),
    mut spawn: impl FnMut(Kernel) -> io::Result<JoinHandle<()>>,
) -> io::Result<()> {
    let mut threads = Vec::new();
    let mut all_have_threads = Ok(());
    for kernel in others {
        let (start, started) = channel::<()>();
        // A sender that goes without a word says that the group does not run.
        let run = move || {
            if started.recv().is_ok() {
                kernel();
            }
        };
        match spawn(Box::new(run)) {
            Ok(thread) => threads.push((start, thread)),
            Err(error) => {
                all_have_threads = Err(error);
                break;
            }
        }
    }
    if all_have_threads.is_ok() {
        for (start, _) in &threads {
            // The thread waits for this word.
            let _: Result<(), _> = start.send(());
        }
        last();
    }
    for (start, thread) in threads {
        drop(start);
        // A kernel's signal is reported where it is raised; a panic has nothing to add.
        let _ended = thread.join();
    }
    all_have_threads
}

/// Starts a thread for a kernel.
pub(crate) fn spawn(kernel: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name("pto-kernel".to_owned()).stack_size(STACK_BYTES).spawn(kernel)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Kernel, Meetings, run_together, spawn};

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
            let last = meetings.arrive((7, None), 5, wait);
            assert_eq!(last.is_some(), number == 5);
            if let Some(last) = last {
                last().unwrap();
            }
            if number == 2 {
                assert!(meetings.arrive((7, Some(0)), 1, || ()).is_some());
            }
        }
        assert_eq!(here.load(Ordering::Relaxed), 505, "all have ended");
    }

    /// Every thread of the group in turn is the one that the system does not have.
    #[test]
    fn no_kernel_of_a_group_runs_where_one_has_no_thread() {
        for missing in 0..4 {
            let ran = Arc::new(AtomicUsize::new(0));
            let kernel = || {
                let ran = Arc::clone(&ran);
                Box::new(move || {
                    ran.fetch_add(1, Ordering::Relaxed);
                }) as Kernel
            };
            let mut number = 0;
            let scarce = |kernel: Kernel| {
                number += 1;
                if number > missing { Err(io::ErrorKind::WouldBlock.into()) } else { spawn(kernel) }
            };
            let failed = run_together((0..4).map(|_| kernel()).collect(), kernel(), scarce);
            assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::WouldBlock);
            assert_eq!(ran.load(Ordering::Relaxed), 0, "{missing} of 4 had a thread");
            assert_eq!(Arc::strong_count(&ran), 1, "no thread and no kernel is left");
        }
    }
}
