//! Every lock-free protocol of the firmware under loom: all interleavings, all values that the memory model
//! lets a load see. `RUSTFLAGS="--cfg loom" cargo test -p pto-aicpu-fw --test loom --release`.
//!
//! The bodies are generic over [`Sharing`] or [`FanoutPolicy`](pto_aicpu_fw::FanoutPolicy); each one is
//! also run with a wrong one ([`Weak`], [`Exclusive`](pto_abi::sync::Exclusive), or one of the module's
//! own), and then it must fail: a test that cannot fail tests nothing.
//!
//! Loom looks for a race with the *last* access of a word only, so that a thread which reads a word before
//! it writes it hides others that polled it. Threads that poll therefore yield: then all orders come up.
#![cfg(loom)]

mod board;
mod command_ring;
mod fanin;
mod fanout;
mod fault;
mod in_flight;
mod lines;
mod log_ring;
mod proof;
mod queue;
mod reuse;
mod session_board;
mod session_threads;
#[path = "../common/stub.rs"]
mod stub;
mod termination;
#[path = "../common/words.rs"]
mod words;

use pto_abi::sync::{AtomicU32, AtomicU64, Concurrent, Ordering, Sharing};

/// Words of stack for the threads of a model; loom's own choice does not hold a scheduler.
const STACK_WORDS: usize = 0x8000;

/// Explores `model` over what `setup` makes. `preemptions`: how often threads may be interrupted where they
/// would not wait anyway; chosen for each model so that it takes seconds.
///
/// `model` runs on a thread of its own, and joins those that it spawns. After a yield loom does not let a
/// thread read a value again that it had seen before, its own initial values included; made elsewhere,
/// the words keep their old values as candidates.
fn explore<T: Send + Sync + 'static>(
    preemptions: usize,
    setup: impl Fn() -> T + Send + Sync + 'static,
    model: impl Fn(&'static T) + Send + Sync + 'static,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_threads = 5;
    builder.max_branches = 100_000;
    let model = std::sync::Arc::new(model);
    builder.check(move || {
        let owned: *mut T = Box::into_raw(Box::new(setup()));
        // SAFETY: from a box, which is taken back below, when every thread of the model has been joined.
        let shared: &'static T = unsafe { &*owned };
        let model = std::sync::Arc::clone(&model);
        spawn(move || model(shared)).join().unwrap();
        // SAFETY: made above from a box; no thread uses it any more.
        drop(unsafe { Box::from_raw(owned) });
    });
}

/// A thread with room for a scheduler.
fn spawn<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> loom::thread::JoinHandle<T> {
    loom::thread::Builder::new().stack_size(STACK_WORDS).spawn(body).unwrap()
}

/// Wrong on purpose: atomic, but some operations order nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Weak<const WHICH: u8>;

/// The words of tasks: fanin and fanout.
const WEAK_TASKS: u8 = 0;
/// The word of termination.
const WEAK_END: u8 = 1;

const fn weakened(is_weak: bool, ordering: Ordering) -> Ordering {
    if is_weak { Ordering::Relaxed } else { ordering }
}

impl<const WHICH: u8> Sharing for Weak<WHICH> {
    fn fetch_add(word: &AtomicU64, value: u64, ordering: Ordering) -> u64 {
        Concurrent::fetch_add(word, value, ordering)
    }
    fn fetch_sub(word: &AtomicU64, value: u64, ordering: Ordering) -> u64 {
        Concurrent::fetch_sub(word, value, weakened(WHICH == WEAK_END, ordering))
    }
    fn fetch_sub_u32(word: &AtomicU32, value: u32, ordering: Ordering) -> u32 {
        Concurrent::fetch_sub_u32(word, value, weakened(WHICH == WEAK_TASKS, ordering))
    }
    fn fetch_or_u32(word: &AtomicU32, value: u32, ordering: Ordering) -> u32 {
        Concurrent::fetch_or_u32(word, value, weakened(WHICH == WEAK_TASKS, ordering))
    }
    fn compare_exchange(
        word: &AtomicU64,
        current: u64,
        new: u64,
        ordering: Ordering,
    ) -> Result<u64, u64> {
        Concurrent::compare_exchange(word, current, new, ordering)
    }
    fn compare_exchange_u32(
        word: &AtomicU32,
        current: u32,
        new: u32,
        ordering: Ordering,
    ) -> Result<u32, u32> {
        Concurrent::compare_exchange_u32(
            word,
            current,
            new,
            weakened(WHICH == WEAK_TASKS, ordering),
        )
    }
}
