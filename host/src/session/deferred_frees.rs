//! Memory that is freed while commands are in flight becomes free when they are over: a command names addresses as plain words, and
//! the host does not know which of them its kernel touches.
//!
//! ```text
//! submitted: first one in flight? -> current = Memory::begin_run     (in_flight.rs)
//! finished:  nothing in flight?   -> current, old dropped
//! rotate:    current -> old, with the commands submitted so far; a new current.  Those over? -> old dropped
//! ```
//! Invariant: every command in flight was submitted during `current`, or during `old` and is in its list. So a session that is never
//! idle frees memory too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::in_flight::InFlight;
use crate::memory::{Memory, RunHold};

/// Whether a command is over.
pub(super) type IsOver = Box<dyn Fn() -> bool + Send>;

/// Holds back the memory that a session's commands may still use.
pub(super) struct DeferredFrees {
    memory: Arc<Memory>,
    in_flight: InFlight,
    epochs: Mutex<Epochs>,
}

#[derive(Default)]
struct Epochs {
    current: Option<RunHold>,
    old: Option<(RunHold, Vec<IsOver>)>,
}

impl DeferredFrees {
    pub(super) fn new(memory: &Arc<Memory>) -> Self {
        Self {
            memory: Arc::clone(memory),
            in_flight: InFlight::default(),
            epochs: Mutex::default(),
        }
    }

    /// Announces a command; `false`: the session has ended, and takes none. Memory that is freed from now on waits for the command.
    #[inline]
    #[must_use]
    pub(super) fn submitted(&self) -> bool {
        self.in_flight.enter(
            || self.epochs(),
            |epochs| {
                epochs.current.get_or_insert_with(|| self.memory.begin_run());
            },
        )
    }

    /// The session ends: from here on no command is submitted.
    pub(super) fn close(&self) {
        self.in_flight.close(|| self.epochs());
    }

    /// Commands that the service does not know to be over.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.count()
    }

    /// Records that this many commands have ended.
    pub(super) fn finished(&self, commands: u64) {
        self.in_flight.leave(commands, || self.epochs(), |epochs| **epochs = Epochs::default());
    }

    /// Frees the memory of the epoch before the last call, once the commands of that epoch are over. `positions` gives, for each command
    /// submitted so far, whether it is over; it is called only if memory was freed.
    pub(super) fn rotate(&self, positions: impl FnOnce() -> Vec<IsOver>) {
        let mut epochs = self.epochs();
        let is_over = |(_, commands): &mut (RunHold, Vec<IsOver>)| {
            commands.retain(|is_over| !is_over());
            commands.is_empty()
        };
        if epochs.old.as_mut().is_some_and(is_over) {
            epochs.old = None;
        }
        if epochs.old.is_none() && epochs.current.is_some() && self.memory.has_waiting() {
            let next = self.memory.begin_run();
            let before = epochs.current.replace(next);
            epochs.old = before.map(|hold| (hold, positions()));
        }
    }

    fn epochs(&self) -> MutexGuard<'_, Epochs> {
        self.epochs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::DeferredFrees;
    use crate::allocator::Owner;
    use crate::memory::Memory;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn freed_memory_waits_for_the_commands_of_its_time() {
        let memory = Arc::new(Memory::map(1 << 16).unwrap());
        let frees = DeferredFrees::new(&memory);
        let all = memory.free_bytes().0;
        let block = memory.alloc(64, Owner::User).unwrap();
        assert!(frees.submitted());
        memory.free(block, Owner::User).unwrap();
        assert!(memory.free_bytes().0 < all);
        frees.finished(1);
        assert_eq!(memory.free_bytes().0, all);
    }

    #[test]
    fn nothing_is_submitted_to_a_session_that_has_ended() {
        let memory = Arc::new(Memory::map(1 << 16).unwrap());
        let frees = DeferredFrees::new(&memory);
        let all = memory.free_bytes().0;
        assert!(frees.submitted());
        frees.close();
        assert!(!frees.submitted(), "while a command is in flight");
        let block = memory.alloc(64, Owner::User).unwrap();
        memory.free(block, Owner::User).unwrap();
        assert_eq!(frees.in_flight(), 1);
        frees.finished(1);
        assert_eq!((frees.in_flight(), memory.free_bytes().0), (0, all));
        assert!(!frees.submitted(), "when nothing is in flight");
        memory.free(memory.alloc(64, Owner::User).unwrap(), Owner::User).unwrap();
        assert_eq!(memory.free_bytes().0, all, "a refused command holds no memory");
    }

    #[test]
    fn a_session_that_is_never_idle_frees_memory_too() {
        let memory = Arc::new(Memory::map(1 << 16).unwrap());
        let frees = DeferredFrees::new(&memory);
        let all = memory.free_bytes().0;
        let block = memory.alloc(64, Owner::User).unwrap();
        assert!(frees.submitted());
        memory.free(block, Owner::User).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let first = Arc::clone(&over);
        let is_over = move || first.load(Ordering::Relaxed);
        frees.rotate(|| vec![Box::new(is_over)]);
        assert!(frees.submitted());
        frees.rotate(Vec::new);
        assert!(memory.free_bytes().0 < all, "the first command is not over");
        over.store(true, Ordering::Relaxed);
        frees.finished(1);
        frees.rotate(Vec::new);
        assert_eq!(memory.free_bytes().0, all, "the second one was submitted after the free");
    }
}
