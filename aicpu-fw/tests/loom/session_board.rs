//! The board of a session: no ring of a doorbell is lost while a firmware falls asleep, and the side that gets the head of a stream sees what the
//! other side has written.

use pto_abi::session::board::{ASLEEP, fall_asleep, ring, take_bell, wake_up};
use pto_abi::session::{LaneLine, StreamLine};
use pto_abi::sync::{AtomicU64, Ordering};

use crate::{explore, spawn};

/// A doorbell, and what was submitted before it was written.
type Bell = (AtomicU64, AtomicU64);

fn bell() -> Bell {
    (AtomicU64::new(0), AtomicU64::new(0))
}

/// Submits and rings; whether the firmware was asleep, so that the host has to wake it.
fn submit((bell, submitted): &Bell) -> bool {
    submitted.store(1, Ordering::Relaxed);
    ring(bell, 4)
}

/// Looks until it hears the bell or has fallen asleep; whether it has heard it.
fn listen((bell, submitted): &Bell, sleeps: fn(&AtomicU64) -> u64) -> bool {
    loop {
        if take_bell(bell) == 4 {
            assert_eq!(submitted.load(Ordering::Relaxed), 1, "what was submitted is not seen");
            return true;
        }
        if sleeps(bell) == 0 {
            return false;
        }
        wake_up(bell);
        loom::thread::yield_now();
    }
}

fn nothing_is_lost(sleeps: fn(&AtomicU64) -> u64) {
    explore(3, bell, move |bell| {
        let submitter = spawn(move || submit(bell));
        let heard = listen(bell, sleeps);
        let was_asleep = submitter.join().unwrap();
        assert!(heard || was_asleep, "lost: neither side hears the bell");
        assert!(!(heard && was_asleep), "both hear it");
    });
}

#[test]
fn of_a_submitter_and_a_firmware_that_falls_asleep_one_sees_the_other() {
    nothing_is_lost(fall_asleep);
}

/// Wrong: the flag is set after the look, and the bit that came between is gone.
fn fall_asleep_later(bell: &AtomicU64) -> u64 {
    let before = bell.load(Ordering::Acquire);
    bell.store(ASLEEP, Ordering::Release);
    before
}

#[test]
#[should_panic(expected = "lost")]
fn a_firmware_that_looks_before_it_falls_asleep_is_found() {
    nothing_is_lost(fall_asleep_later);
}

/// A stream's two lines, and a word that each side writes while it has the head. Each has a word of its own: after a yield, loom shows a
/// thread nothing older than what it has written itself.
type Head = (LaneLine, StreamLine, AtomicU64, AtomicU64);

fn head() -> Head {
    (LaneLine::default(), StreamLine::default(), AtomicU64::new(0), AtomicU64::new(0))
}

/// The host waits for the head, and gives it back.
fn host((lane, line, taken, moved): &Head, gives_back: fn(&StreamLine, &LaneLine)) {
    while !lane.is_handed(line) {
        loom::thread::yield_now();
    }
    assert_eq!(taken.load(Ordering::Relaxed), 1, "the host does not see how far the firmware was");
    moved.store(2, Ordering::Relaxed);
    gives_back(line, lane);
}

fn handover(gives_back: fn(&StreamLine, &LaneLine)) {
    explore(3, head, move |head| {
        let other = spawn(move || host(head, gives_back));
        let (lane, line, taken, moved) = head;
        taken.store(1, Ordering::Relaxed);
        lane.hand_over(line);
        while lane.is_handed(line) {
            loom::thread::yield_now();
        }
        let found = moved.load(Ordering::Relaxed);
        assert_eq!(found, 2, "the firmware does not see how far the host was");
        other.join().unwrap();
    });
}

#[test]
fn the_head_of_a_stream_goes_there_and_back() {
    handover(StreamLine::give_back);
}

#[test]
#[should_panic(expected = "the firmware does not see")]
fn a_host_that_gives_back_without_release_is_found() {
    handover(|line, lane| {
        line.returned.store(lane.handed.load(Ordering::Relaxed), Ordering::Relaxed);
    });
}
