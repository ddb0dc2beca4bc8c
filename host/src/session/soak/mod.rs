//! Campaigns over sessions in virtual time: many seeds, each a program over streams of its own, in an order of its own.
//!
//! ```text
//! seed -> setting.rs (device, session, what goes wrong) -> even: checked.rs    a program whose results are known
//!                                                          odd:  troubled.rs   commands fail, streams are aborted, cores hang
//!      -> passed, or FailedSeed
//! ```
//! A seed decides the program, what goes wrong, and every choice of the session, of the firmware and of the device. So it is a bug
//! report: the same seed does the same on every machine. `pto soak --sessions` is the command for it.

mod checked;
mod outcome;
mod setting;
mod troubled;

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};

use outcome::{ProgramOutcome, Wrong, mixed, require};
use setting::Setting;

use super::choice::Seeded;
use crate::session::owner::Session;
use pto_sim_shim::virtual_time::campaign::in_turns;

/// How much more a session may have in use after a program than after the one before: it keeps buffers for the next streams.
const KEPT_BYTES: u64 = 1 << 20;
/// Seeds that a thread takes at once.
const SEEDS_A_TURN: u64 = 16;

/// What came of seeds. Independent of the number of threads, unless a failure or the caller ended the campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoakReport {
    /// Seeds that were tried.
    pub seeds: u64,
    /// Commands that were submitted.
    pub commands: u64,
    /// How often the firmware came up.
    pub launches: u64,
    /// Streams that reported a failure or an abort, as was expected of them.
    pub failed_streams: u64,
    /// Virtual nanoseconds of all sessions.
    pub virtual_ns: u64,
    /// A hash of all events: the same seeds have the same hash.
    pub hash: u64,
    /// Seeds that failed, in ascending order.
    pub failures: Vec<FailedSeed>,
}

/// A seed that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedSeed {
    /// The seed.
    pub seed: u64,
    /// What was wrong.
    pub what: String,
}

impl fmt::Display for FailedSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.what)
    }
}

impl SoakReport {
    fn of(session: &Session, outcomes: &[ProgramOutcome]) -> Self {
        let virtual_ns = u64::try_from(session.now().as_nanos()).unwrap_or(u64::MAX);
        let launches = session.firmware_starts();
        let hashes = outcomes.iter().flat_map(|one| [one.commands, one.failed_streams, one.hash]);
        let words = hashes.chain([virtual_ns, launches]);
        Self {
            seeds: 1,
            commands: outcomes.iter().map(|one| one.commands).sum(),
            launches,
            failed_streams: outcomes.iter().map(|one| one.failed_streams).sum(),
            virtual_ns,
            hash: words.fold(0, |hash, word| mixed(hash ^ word)),
            failures: Vec::new(),
        }
    }

    fn add(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.commands += other.commands;
        self.launches += other.launches;
        self.failed_streams += other.failed_streams;
        self.virtual_ns += other.virtual_ns;
        self.hash ^= other.hash;
        self.failures.extend(other.failures);
    }
}

/// Runs one seed, on a device and a session of its own in virtual time.
///
/// # Errors
/// What was wrong.
pub fn replay(seed: u64) -> Result<SoakReport, FailedSeed> {
    let tried = if seed.is_multiple_of(2) { checked_alone(seed) } else { troubled_twice(seed) };
    tried.map_err(|Wrong(what)| FailedSeed { seed, what })
}

/// Runs a program of the seed in a session that is there, and compares what comes out with a reference.
///
/// # Errors
/// What was wrong.
pub fn checked(session: &Session, seed: u64) -> Result<(), FailedSeed> {
    let ran = checked::run(session, &mut of_program(seed));
    ran.map(drop).map_err(|Wrong(what)| FailedSeed { seed, what })
}

/// Runs a program of the seed in which things go wrong, in a session that is there and that those who wait step.
///
/// # Errors
/// What was wrong.
pub fn troubled(session: &Session, seed: u64) -> Result<(), FailedSeed> {
    let ran = troubled::run(session, &mut of_program(seed), false);
    ran.map(drop).map_err(|Wrong(what)| FailedSeed { seed, what })
}

/// What decides a program, apart from what decides its setting.
fn of_program(seed: u64) -> Seeded {
    Seeded::new(!seed)
}

fn checked_alone(seed: u64) -> Result<SoakReport, Wrong> {
    let setting = Setting::drawn(seed, false)?;
    let outcome = checked::run(&setting.session, &mut of_program(seed))?;
    Ok(SoakReport::of(&setting.session, &[outcome]))
}

/// What went wrong in the first program must not be seen in the second one.
fn troubled_twice(seed: u64) -> Result<SoakReport, Wrong> {
    let setting = Setting::drawn(seed, true)?;
    let (session, mut random) = (&setting.session, of_program(seed));
    let first = troubled::run(session, &mut random, setting.is_injected)?;
    let before = setting.free_bytes()?;
    let second = troubled::run(session, &mut random, setting.is_injected)?;
    let keeps = before.saturating_sub(setting.free_bytes()?);
    require(keeps <= KEPT_BYTES, || format!("the session keeps {keeps} bytes of a program"))?;
    Ok(SoakReport::of(session, &[first, second]))
}

/// Runs the seeds on so many threads, and stops at the first failure. `progress` is called now and then with the number that is done, and says
/// whether to go on. What was tried is the first [`SoakReport::seeds`] of them, each completely.
pub fn soak(
    seeds: Range<u64>,
    threads: NonZeroUsize,
    progress: impl Fn(u64) -> ControlFlow<()> + Sync,
) -> SoakReport {
    let turn = |seeds: Range<u64>, report: &mut SoakReport| {
        let mut goes_on = ControlFlow::Continue(());
        for seed in seeds {
            match replay(seed) {
                Ok(passed) => report.add(passed),
                Err(failed) => {
                    report.seeds += 1;
                    report.failures.push(failed);
                    goes_on = ControlFlow::Break(());
                }
            }
        }
        goes_on
    };
    let mut total = SoakReport::default();
    let found = in_turns((seeds, SEEDS_A_TURN), threads, turn, progress);
    found.into_iter().for_each(|report| total.add(report));
    total.failures.sort_by_key(|failure| failure.seed);
    total
}

#[cfg(test)]
mod tests {
    use super::{replay, soak};
    use std::num::NonZeroUsize;
    use std::ops::ControlFlow;

    #[test]
    fn a_campaign_is_the_same_on_one_thread_and_on_two() {
        let run = |threads| {
            let threads = NonZeroUsize::new(threads).unwrap();
            soak(0..48, threads, |_| ControlFlow::Continue(()))
        };
        let (one, two) = (run(1), run(2));
        assert!(one.failures.is_empty(), "{}", one.failures[0]);
        assert_eq!(one, two);
        assert!(one.commands > 48 * 8 && one.failed_streams > 0 && one.launches > 48, "{one:?}");
    }

    /// A ring is full while two streams are made to wait for each other, and one of them stops meanwhile.
    #[test]
    fn a_record_that_its_stream_refuses_comes_from_another_one() {
        assert_eq!(replay(5_147_811).map(|passed| passed.seeds), Ok(1));
    }

    #[test]
    fn a_campaign_ends_when_progress_says_so() {
        let report = soak(7..1000, NonZeroUsize::MIN, |_| ControlFlow::Break(()));
        assert_eq!((report.seeds, report.failures), (16, Vec::new()));
    }
}
