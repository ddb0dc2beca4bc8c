//! What threads that use one session at once do to its streams (`host/src/session`): opening and closing them, limits of waits, flags, and the last handle
//! that a function of a stream drops. The books are the host's own; the locks are loom's.

#[path = "../../../host/src/session/wait_limits.rs"]
mod limits;
#[path = "../../../host/src/session/stream_table.rs"]
mod table;

use std::time::Duration;

use loom::sync::{Condvar, Mutex, MutexGuard};
use pto_abi::sync::{AtomicU64, Ordering};

use self::limits::WaitLimits;
use self::table::{StreamTable, TableStream};
use crate::{explore, spawn};

/// A state, and who waits for a change of it.
struct Monitor<S> {
    state: Mutex<S>,
    changed: Condvar,
}

impl<S> Monitor<S> {
    fn new(state: S) -> Self {
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap()
    }

    fn change<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    fn wait<R>(&self, mut look: impl FnMut(&mut S) -> Option<R>) -> R {
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return found;
            }
            state = self.changed.wait(state).unwrap();
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct StreamEntry {
    number: u32,
    place: usize,
    is_closed: bool,
}

impl TableStream for StreamEntry {
    fn slot(&self) -> usize {
        self.place
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}

type Table = Monitor<StreamTable<StreamEntry>>;

const CAPACITY: usize = 2;

/// A table with room for two streams, which holds one.
fn almost_full(is_closed: bool) -> Table {
    let mut table = StreamTable::new(CAPACITY);
    table.open(|number, place| StreamEntry { number, place, is_closed }).flatten().unwrap();
    Monitor::new(table)
}

fn open(table: &Table) -> Option<StreamEntry> {
    let made = |number, place| StreamEntry { number, place, is_closed: false };
    table.wait(|table| table.open(made))
}

/// As [`open`], but the room is looked for first, and taken later.
fn looked_first(table: &Table) -> Option<StreamEntry> {
    let has_room = table.lock().live().len() < CAPACITY;
    has_room.then(|| open(table)).flatten()
}

fn check(table: &Table, opened: &[Option<StreamEntry>]) {
    let table = table.lock();
    let mut places: Vec<_> = table.live().iter().map(TableStream::slot).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), table.live().len(), "two streams have one place");
    let lost = opened.iter().flatten().find(|stream| !table.live().contains(stream));
    assert_eq!(lost, None, "a stream is not in the table");
}

/// Two threads open the last free stream: exactly one of them gets it.
fn last_slots(open: fn(&Table) -> Option<StreamEntry>) {
    explore(
        3,
        || almost_full(false),
        move |table| {
            let other = spawn(move || open(table));
            let opened = [open(table), other.join().unwrap()];
            check(table, &opened);
            assert_eq!(opened.iter().flatten().count(), 1, "one slot is left");
        },
    );
}

#[test]
fn the_last_slot_has_one_stream() {
    last_slots(open);
}

/// The second one to come is refused as late as in the table, which has the slot by then.
#[test]
fn a_slot_that_was_looked_for_before_is_looked_for_again() {
    last_slots(looked_first);
}

/// Two threads open a stream each while the service lets go of one that is closed.
fn closing(retire: fn(&Table)) {
    explore(
        2,
        || almost_full(true),
        move |table| {
            let service = spawn(move || retire(table));
            let other = spawn(move || open(table));
            let opened = [open(table), other.join().unwrap()];
            service.join().unwrap();
            check(table, &opened);
            assert!(opened.iter().all(Option::is_some), "there is a slot for both");
        },
    );
}

#[test]
fn a_closed_stream_gives_its_slot_to_who_waits() {
    closing(|table| {
        let gone = table.change(|table| table.retire(|stream| stream.is_closed));
        assert_eq!(gone.len(), 1);
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn wrong_when_waiters_are_notified_before() {
    closing(|table| {
        table.change(|_| ());
        table.lock().retire(|stream| stream.is_closed);
    });
}

/// What a submitter and the service know of the commands of a stream.
struct Commands {
    limits: Mutex<WaitLimits>,
    has_limits: AtomicU64,
    submitted: AtomicU64,
}

impl Commands {
    fn new() -> Self {
        let limits = Mutex::new(WaitLimits::default());
        Self { limits, has_limits: AtomicU64::new(0), submitted: AtomicU64::new(0) }
    }

    fn change(&self, change: impl FnOnce(&mut WaitLimits)) {
        let mut limits = self.limits.lock().unwrap();
        change(&mut limits);
        self.has_limits.store((!limits.is_empty()).into(), Ordering::Relaxed);
    }

    /// A wait with a limit, which the stream refuses or not; and one without.
    fn submit(&self, is_refused: bool, forgets: bool) {
        let number = self.submitted.load(Ordering::Relaxed) + 1;
        self.change(|limits| limits.set(number, Duration::from_millis(1)));
        if !is_refused {
            self.submitted.store(number, Ordering::Release);
        } else if forgets {
            self.change(|limits| limits.remove(number));
        }
        self.submitted.store(self.submitted.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// The service looks at the head: its number, and whether it may wait for ever.
    fn look(&self, completed: u64) -> Option<(u64, bool)> {
        let is_there = self.submitted.load(Ordering::Acquire) > completed;
        if self.has_limits.load(Ordering::Relaxed) != 0 {
            self.change(|limits| limits.forget(completed));
        }
        let is_limited = self.has_limits.load(Ordering::Relaxed) != 0
            && self.limits.lock().unwrap().of(completed + 1).is_some();
        is_there.then_some((completed + 1, !is_limited))
    }
}

fn limited(is_refused: bool, forgets: bool) {
    explore(3, Commands::new, move |commands| {
        let submitter = spawn(move || commands.submit(is_refused, forgets));
        let mut completed = 0;
        let last = if is_refused { 1 } else { 2 };
        while completed < last {
            let Some((number, waits_for_ever)) = commands.look(completed) else {
                loom::thread::yield_now();
                continue;
            };
            assert_eq!(waits_for_ever, number == last, "the limit is that of another command");
            completed = number;
        }
        submitter.join().unwrap();
        commands.look(completed);
        assert_eq!(commands.has_limits.load(Ordering::Relaxed), 0, "a limit is left");
    });
}

#[test]
fn a_limit_is_that_of_its_command() {
    limited(false, true);
    limited(true, true);
}

#[test]
#[should_panic(expected = "the limit is that of another command")]
fn wrong_when_a_refused_wait_leaves_its_limit() {
    limited(true, false);
}

/// One command of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flag {
    Wait,
    Lower,
}

/// Two threads wait for a flag in one stream; it is raised once. How many waits go by.
fn waits(submit: fn(&Mutex<Vec<Flag>>)) {
    explore(
        3,
        || Mutex::new(Vec::new()),
        move |stream| {
            let other = spawn(move || submit(stream));
            submit(stream);
            other.join().unwrap();
            let mut is_raised = true;
            let waits = |command: &&Flag| match command {
                Flag::Wait => is_raised,
                Flag::Lower => {
                    is_raised = false;
                    true
                }
            };
            let commands = stream.lock().unwrap();
            let over = commands.iter().take_while(waits).filter(|command| **command == Flag::Wait);
            assert_eq!(over.count(), 1, "one flag has satisfied two waits");
        },
    );
}

#[test]
fn a_flag_satisfies_one_wait() {
    waits(|stream| stream.lock().unwrap().extend([Flag::Wait, Flag::Lower]));
}

#[test]
#[should_panic(expected = "one flag has satisfied two waits")]
fn wrong_when_a_wait_and_its_lowering_are_submitted_apart() {
    waits(|stream| {
        stream.lock().unwrap().push(Flag::Wait);
        stream.lock().unwrap().push(Flag::Lower);
    });
}

/// What the threads of a session share at its end.
#[derive(Default)]
struct End {
    has_ended: bool,
    /// The function that a stream calls is over.
    is_quiet: bool,
    /// The service has returned.
    is_gone: bool,
}

/// A function of a stream drops the last handle; the service ends when nothing is being done.
fn last_handle(is_awaited: bool) {
    explore(
        2,
        || Monitor::new(End::default()),
        move |session| {
            let service = spawn(move || {
                session.wait(|end| (end.has_ended && end.is_quiet).then_some(()));
                session.change(|end| end.is_gone = true);
            });
            session.change(|end| end.has_ended = true);
            if is_awaited {
                session.wait(|end| end.is_gone.then_some(()));
            }
            session.change(|end| end.is_quiet = true);
            service.join().unwrap();
            assert!(session.lock().is_gone);
        },
    );
}

#[test]
fn a_function_that_drops_the_last_handle_goes_on() {
    last_handle(false);
}

#[test]
#[should_panic(expected = "deadlock")]
fn wrong_when_it_waits_for_the_service() {
    last_handle(true);
}
