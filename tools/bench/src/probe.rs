//! What this machine can do between two CPUs at the moment: the round trip of a cache line, and mailboxes of
//! several lines. Virtual CPUs move: the same line may take ten times as long a minute later, so that every
//! measurement with two threads runs between two probes.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::stats::Spread;

/// A line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct PaddedCounter {
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
    mailboxes(1, 100, 20)
}

/// One-line mailboxes: a thread puts a number into each of `slots` lines as it becomes free, another takes it and
/// answers in the line. Returns ns per number: the floor of any hand-over of tasks between two CPUs.
#[must_use]
pub fn mailbox_ns(slots: usize) -> f64 {
    mailboxes(slots, 5_000, 20)
}

/// From waking a thread that has slept for `pause` to its answer, in us: the median of `times`. The floor of whatever wakes one.
#[must_use]
pub fn wake_us(pause: Duration, times: u32) -> f64 {
    let (asked, answered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (theirs, answers) = (Arc::clone(&asked), Arc::clone(&answered));
    let sleeper = thread::spawn(move || {
        let mut seen = 0;
        while seen < u64::from(times) {
            thread::park();
            // Acquire: pairs with the Release store of asked below.
            seen = theirs.load(Ordering::Acquire);
            // Release: pairs with the Acquire load of answered below.
            answers.store(seen, Ordering::Release);
        }
    });
    let mut found = Vec::new();
    for number in 1..=u64::from(times) {
        thread::sleep(pause);
        let start = Instant::now();
        // Release: pairs with the Acquire load of the sleeper above.
        asked.store(number, Ordering::Release);
        sleeper.thread().unpark();
        // Acquire: pairs with the Release store of the sleeper above.
        wait_for(|| Some(answered.load(Ordering::Acquire)).filter(|seen| *seen == number));
        found.push(start.elapsed().as_secs_f64() * 1e6);
    }
    sleeper.join().expect("the sleeper does not panic");
    Spread::of(&found).map_or(f64::NAN, |spread| spread.median)
}

/// No number: the answering thread ends.
const END: u64 = u64::MAX;
/// After so long there is no further batch: on a machine that others use, a trip may take milliseconds.
const LIMIT: Duration = Duration::from_millis(20);

fn mailboxes(slots: usize, numbers: u64, batches: u64) -> f64 {
    let lines: Arc<[PaddedCounter]> = (0..slots).map(|_| PaddedCounter::default()).collect();
    let theirs = Arc::clone(&lines);
    let answering = thread::spawn(move || {
        for number in 0.. {
            let word = &theirs[slot_of(number, slots)].word;
            // Acquire: pairs with the Release store in `put` below; what was written before it is seen.
            if wait_for(|| Some(word.load(Ordering::Acquire)).filter(|found| *found > 2 * number))
                == END
            {
                return;
            }
            // Release: pairs with the Acquire load in `put` below.
            word.store(2 * number + 2, Ordering::Release);
        }
    });
    let started = Instant::now();
    let mut least = f64::INFINITY;
    let mut sent = 0;
    let put = |number: u64, word: u64| {
        let line = &lines[slot_of(number, slots)];
        let answer = number.checked_sub(slots as u64).map_or(0, |before| 2 * before + 2);
        // Acquire: pairs with the Release store of the answering thread above.
        wait_for(|| Some(line.word.load(Ordering::Acquire)).filter(|found| *found == answer));
        // Release: pairs with the Acquire load of the answering thread above.
        line.word.store(word, Ordering::Release);
    };
    for _ in 0..batches {
        let start = Instant::now();
        for number in sent..sent + numbers {
            put(number, 2 * number + 1);
        }
        sent += numbers;
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let each = start.elapsed().as_secs_f64() * 1e9 / numbers as f64;
        least = least.min(each);
        if started.elapsed() > LIMIT {
            break;
        }
    }
    put(sent, END);
    answering.join().expect("the answering thread does not panic");
    least
}

/// Looks again and again; where the other thread has no CPU, gives it this one now and then.
fn wait_for(look: impl Fn() -> Option<u64>) -> u64 {
    loop {
        for _ in 0..1_000 {
            if let Some(found) = look() {
                return found;
            }
            spin_loop();
        }
        thread::yield_now();
    }
}

fn slot_of(number: u64, slots: usize) -> usize {
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
