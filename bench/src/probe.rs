//! What this machine can do between two CPUs at the moment: the round trip of a cache line, and mailboxes of
//! several lines. Virtual CPUs move: the same line may take ten times as long a minute later, so that every
//! measurement with two threads stands between two probes.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use serde::Serialize;

/// A line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line {
    word: AtomicU64,
}

/// Below it, a round trip in ns is one between neighbours (41 to 68 were seen), above between CPUs that do not
/// share a cache (360 to 460).
pub const NEAR_NS: f64 = 200.0;

/// How far two CPUs are from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// They share a cache.
    Near,
    /// They do not.
    Far,
}

impl Distance {
    /// Of a round trip.
    #[must_use]
    pub fn of(round_trip_ns: f64) -> Self {
        if round_trip_ns < NEAR_NS { Self::Near } else { Self::Far }
    }
}

/// The round trip of a cache line between two threads, in ns: the least of a few batches.
#[must_use]
pub fn round_trip_ns() -> f64 {
    mailboxes(1, 500, 4)
}

/// One-line mailboxes: a thread puts a number into each of `slots` lines as it becomes free, another takes it and
/// answers in the line. Returns ns per number: the floor of any hand-over of tasks between two CPUs.
#[must_use]
pub fn mailbox_ns(slots: usize) -> f64 {
    mailboxes(slots, 20_000, 4)
}

fn mailboxes(slots: usize, numbers: u64, batches: u64) -> f64 {
    let lines: Arc<[Line]> = (0..slots).map(|_| Line::default()).collect();
    let theirs = Arc::clone(&lines);
    let answering = thread::spawn(move || {
        for number in 0..numbers * batches {
            let line = &theirs[place(number, slots)];
            // Acquire: pairs with the Release store of the other thread; what it wrote before is seen.
            while line.word.load(Ordering::Acquire) != 2 * number + 1 {
                spin_loop();
            }
            // Release: pairs with the Acquire load of the other thread.
            line.word.store(2 * number + 2, Ordering::Release);
        }
    });
    let mut least = f64::INFINITY;
    let mut sent = 0;
    for _ in 0..batches {
        let start = Instant::now();
        for number in sent..sent + numbers {
            let before = number.checked_sub(slots as u64);
            let line = &lines[place(number, slots)];
            // Acquire: pairs with the Release store of the answer.
            while before.is_some_and(|before| line.word.load(Ordering::Acquire) != 2 * before + 2) {
                spin_loop();
            }
            // Release: pairs with the Acquire load of the answering thread.
            line.word.store(2 * number + 1, Ordering::Release);
        }
        sent += numbers;
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let each = start.elapsed().as_secs_f64() * 1e9 / numbers as f64;
        least = least.min(each);
    }
    answering.join().expect("the answering thread does not panic");
    least
}

fn place(number: u64, slots: usize) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX) % slots
}

#[cfg(test)]
mod tests {
    use super::{mailbox_ns, round_trip_ns};

    #[test]
    fn lines_travel() {
        assert!(round_trip_ns() > 0.0);
        assert!(mailbox_ns(4) > 0.0);
    }
}
