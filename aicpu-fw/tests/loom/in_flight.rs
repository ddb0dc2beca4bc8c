//! The first command of a session begins what holds the memory of all of them, and the last one ends it (`host/src/session`).

#[path = "../../../host/src/session/in_flight.rs"]
mod count;

use loom::sync::{Mutex, MutexGuard};
use pto_abi::sync::{AtomicU64, Ordering};

use self::count::InFlight;
use crate::{explore, spawn};

/// The books: whether a run is on. They have a lock of their own, as those of the memory have.
#[derive(Default)]
struct Books(Mutex<bool>);

impl Books {
    fn set(&self, is_on: bool) {
        *self.0.lock().unwrap() = is_on;
    }

    /// What is freed now waits.
    fn is_on(&self) -> bool {
        *self.0.lock().unwrap()
    }
}

#[derive(Default)]
struct HeldSession {
    books: Books,
    in_flight: InFlight,
    /// Whether the run is held.
    kept: Mutex<bool>,
    /// The count, as wrong ones have it.
    wrong: AtomicU64,
}

impl HeldSession {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.kept.lock().unwrap()
    }

    fn begin(&self, kept: &mut bool) {
        if !std::mem::replace(kept, true) {
            self.books.set(true);
        }
    }

    fn end(&self, kept: &mut bool) {
        *kept = false;
        self.books.set(false);
    }

    /// A command is submitted, something is freed after it, and it is over.
    fn command(&self) {
        assert!(self.in_flight.enter(|| self.lock(), |kept| self.begin(kept)), "it is not closed");
        assert!(self.books.is_on(), "memory of a command was freed at once");
        self.in_flight.leave(1, || self.lock(), |kept| self.end(kept));
    }

    /// As [`HeldSession::command`], where the session may end meanwhile.
    fn command_or_none(&self) {
        if self.in_flight.enter(|| self.lock(), |kept| self.begin(kept)) {
            assert!(self.books.is_on(), "memory of a command was freed at once");
            self.in_flight.leave(1, || self.lock(), |kept| self.end(kept));
        }
    }

    /// As [`HeldSession::command`], but the count is raised before the lock is taken.
    fn counted_first(&self) {
        if self.wrong.fetch_add(1, Ordering::Acquire) == 0 {
            self.begin(&mut self.lock());
        }
        assert!(self.books.is_on(), "memory of a command was freed at once");
        if self.wrong.fetch_sub(1, Ordering::Release) == 1 {
            let mut kept = self.lock();
            if self.wrong.load(Ordering::Acquire) == 0 {
                self.end(&mut kept);
            }
        }
    }

    /// As [`HeldSession::command`], but without a second look whether a thread has entered.
    fn ended_blindly(&self) {
        assert!(self.in_flight.enter(|| self.lock(), |kept| self.begin(kept)), "it is not closed");
        assert!(self.books.is_on(), "memory of a command was freed at once");
        let mut is_last = false;
        self.in_flight.leave(1, || is_last = true, |()| ());
        if is_last {
            self.end(&mut self.lock());
        }
    }
}

/// Three threads submit one command each.
fn commands(command: fn(&HeldSession)) {
    explore(3, HeldSession::default, move |session| {
        let others = [(); 2].map(|()| spawn(move || command(session)));
        command(session);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(session.in_flight.count(), 0);
        assert!(!session.books.is_on(), "nothing is in flight, and the memory is held");
    });
}

#[test]
fn what_is_freed_after_a_command_waits_for_it() {
    commands(HeldSession::command);
}

/// Two threads submit while a third one ends the session: when it sees a count of zero, nothing is in flight, nothing comes any more, and nothing is held.
#[test]
fn after_its_end_nothing_is_submitted() {
    explore(3, HeldSession::default, move |session| {
        let others = [(); 2].map(|()| spawn(move || session.command_or_none()));
        session.in_flight.close(|| session.lock());
        if session.in_flight.count() == 0 {
            assert!(!session.in_flight.enter(|| session.lock(), |kept| session.begin(kept)));
        }
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(session.in_flight.count(), 0);
        assert!(!session.books.is_on(), "nothing is in flight, and the memory is held");
    });
}

#[test]
#[should_panic(expected = "memory of a command was freed at once")]
fn wrong_when_the_count_is_raised_before_the_hold_begins() {
    commands(HeldSession::counted_first);
}

#[test]
#[should_panic(expected = "memory of a command was freed at once")]
fn wrong_when_the_last_one_does_not_look_again() {
    commands(HeldSession::ended_blindly);
}
