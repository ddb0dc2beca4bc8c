//! What all tasks of a run share: failures, times, and the state that the kernels of a block find by a key.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, AtomicU64};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What all tasks of a run share.
pub(crate) struct Shared {
    /// The first code that a kernel's completion failed with.
    pub(crate) failed: AtomicI32,
    /// When the tasks of a timing slot began and ended, in nanoseconds since `start`.
    pub(crate) timing: [[AtomicU64; 2]; 16],
    /// What a kernel did that ended it: the first one.
    crash: Mutex<Option<String>>,
    start: Instant,
    /// State that the kernels of one block share, by task, block and key.
    pipes: Mutex<BTreeMap<(u64, u32), Pipes>>,
}

/// The shared state of one block.
#[derive(Default)]
struct Pipes {
    states: BTreeMap<u64, Box<[u64]>>,
    left: u32,
}

impl Shared {
    pub(crate) fn new() -> Self {
        let slot = || [AtomicU64::new(u64::MAX), AtomicU64::new(0)];
        Self {
            failed: AtomicI32::new(0),
            timing: std::array::from_fn(|_| slot()),
            crash: Mutex::new(None),
            start: Instant::now(),
            pipes: Mutex::new(BTreeMap::new()),
        }
    }

    /// A kernel has raised a signal.
    #[cold]
    pub(crate) fn crashed(&self, what: String) {
        let mut crash = self.crash.lock().unwrap_or_else(PoisonError::into_inner);
        crash.get_or_insert(what);
    }

    /// What [`crashed`](Self::crashed) was told first.
    pub(crate) fn crash(&self) -> Option<String> {
        self.crash.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Memory of `bytes` zeros that the kernels of a block find by `key`.
    pub(crate) fn pipe(&self, block: (u64, u32), key: u64, bytes: usize) -> *mut u64 {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let words = bytes.div_ceil(8).max(1);
        let states = &mut pipes.entry(block).or_default().states;
        // A second look with a larger size gets what is there: the kernels of a block agree on it.
        states.entry(key).or_insert_with(|| vec![0; words].into_boxed_slice()).as_mut_ptr()
    }

    /// One of the `parts` kernels of a block has returned: behind the last one the shared state goes.
    pub(crate) fn leave(&self, block: (u64, u32), parts: u32) {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let state = pipes.entry(block).or_default();
        state.left += 1;
        if state.left >= parts {
            pipes.remove(&block);
        }
    }
}
