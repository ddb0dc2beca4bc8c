//! Memory that is freed while commands are in flight waits for them: a command names addresses as plain words, and nobody
//! knows which of them its kernel touches.
//!
//! ```text
//! submitted: first one in flight? -> current = Memory::begin_run     (in_flight.rs)
//! finished:  nothing in flight?   -> current, old dropped
//! turn_over: current -> old, with the commands submitted so far; a new current.  Those over? -> old dropped
//! ```
//! Invariant: while commands are in flight, every one of them was submitted during `current`, or during `old` and stands in
//! its list. So a session that is never idle lets go of freed memory too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::in_flight::InFlight;
use crate::memory::{Memory, RunHold};

/// Has a command been over?
pub(super) type IsOver = Box<dyn Fn() -> bool + Send>;

/// What holds the memory of a session's commands.
pub(super) struct Holds {
    memory: Arc<Memory>,
    in_flight: InFlight,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    current: Option<RunHold>,
    old: Option<(RunHold, Vec<IsOver>)>,
}

impl Holds {
    pub(super) fn new(memory: &Arc<Memory>) -> Self {
        Self { memory: Arc::clone(memory), in_flight: InFlight::default(), kept: Mutex::default() }
    }

    /// A command is about to be submitted, unless the session has ended: whether it may. What is freed from now on waits for it, whoever frees
    /// it.
    #[inline]
    #[must_use]
    pub(super) fn submitted(&self) -> bool {
        self.in_flight.enter(
            || self.kept(),
            |kept| {
                kept.current.get_or_insert_with(|| self.memory.begin_run());
            },
        )
    }

    /// The session ends: nothing is submitted from here on.
    pub(super) fn close(&self) {
        self.in_flight.close(|| self.kept());
    }

    /// Commands that the service does not know to be over.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.count()
    }

    /// So many commands are over.
    pub(super) fn finished(&self, commands: u64) {
        self.in_flight.leave(commands, || self.kept(), |kept| **kept = Kept::default());
    }

    /// Lets go of what was freed before the last call, once the commands of that time are over. `positions`: for the
    /// commands submitted so far, where something was freed.
    pub(super) fn turn_over(&self, positions: impl FnOnce() -> Vec<IsOver>) {
        let mut kept = self.kept();
        let is_over = |(_, commands): &mut (RunHold, Vec<IsOver>)| {
            commands.retain(|is_over| !is_over());
            commands.is_empty()
        };
        if kept.old.as_mut().is_some_and(is_over) {
            kept.old = None;
        }
        if kept.old.is_none() && kept.current.is_some() && self.memory.has_waiting() {
            let next = self.memory.begin_run();
            let before = kept.current.replace(next);
            kept.old = before.map(|hold| (hold, positions()));
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Holds;
    use crate::allocator::Owner;
    use crate::memory::Memory;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn freed_memory_waits_for_the_commands_of_its_time() {
        let memory = Arc::new(Memory::map(1 << 16).unwrap());
        let holds = Holds::new(&memory);
        let all = memory.free_bytes().0;
        let block = memory.alloc(64, Owner::User).unwrap();
        assert!(holds.submitted());
        memory.free(block, Owner::User).unwrap();
        assert!(memory.free_bytes().0 < all);
        holds.finished(1);
        assert_eq!(memory.free_bytes().0, all);
    }

    #[test]
    fn nothing_is_submitted_to_a_session_that_has_ended() {
        let memory = Arc::new(Memory::map(1 << 16).unwrap());
        let holds = Holds::new(&memory);
        let all = memory.free_bytes().0;
        assert!(holds.submitted());
        holds.close();
        assert!(!holds.submitted(), "while a command is in flight");
        let block = memory.alloc(64, Owner::User).unwrap();
        memory.free(block, Owner::User).unwrap();
        assert_eq!(holds.in_flight(), 1);
        holds.finished(1);
        assert_eq!((holds.in_flight(), memory.free_bytes().0), (0, all));
        assert!(!holds.submitted(), "when nothing is in flight");
        memory.free(memory.alloc(64, Owner::User).unwrap(), Owner::User).unwrap();
        assert_eq!(memory.free_bytes().0, all, "what was refused holds no memory");
    }

    #[test]
    fn a_session_that_is_never_idle_lets_go_too() {
        let memory = Arc::new(Memory::map(1 << 16).unwrap());
        let holds = Holds::new(&memory);
        let all = memory.free_bytes().0;
        let block = memory.alloc(64, Owner::User).unwrap();
        assert!(holds.submitted());
        memory.free(block, Owner::User).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let first = Arc::clone(&over);
        let is_over = move || first.load(Ordering::Relaxed);
        holds.turn_over(|| vec![Box::new(is_over)]);
        assert!(holds.submitted());
        holds.turn_over(Vec::new);
        assert!(memory.free_bytes().0 < all, "the first command is not over");
        over.store(true, Ordering::Relaxed);
        holds.finished(1);
        holds.turn_over(Vec::new);
        assert_eq!(memory.free_bytes().0, all, "the second one was submitted after the free");
    }
}
