//! Campaigns over groups in virtual time: many seeds, each with a group, a network, a program of collectives, and what goes wrong.
//!
//! ```text
//! seed -> setting.rs (ranks, network, calls, trouble) -> program.rs (the calls, as a builder) -> expected.rs (what must come out)
//!      -> passed, or FailedSeed
//! ```
//! A seed decides the group, the calls, what goes wrong, and every choice of the machines.
//! What must hold: a run without trouble gives the results that the calls define; a run with trouble gives them, or ends with a failure
//! that names the rank or the transfer; and the group can be used again afterwards. `pto soak --groups` is the command for it.

mod expected;
#[cfg(test)]
mod followed;
mod program;
mod report;
mod setting;
mod tried;

use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};

pub use report::{FailedSeed, SoakReport};

use pto_sim_shim::virtual_time::campaign::in_turns;

/// Runs one seed again. What the seed decided, as a sentence, and what came of it.
///
/// # Errors
/// What was wrong.
pub fn replay(seed: u64) -> Result<(String, SoakReport), FailedSeed> {
    let setting = setting::Setting::drawn(seed);
    let text = setting.to_string();
    match tried::try_setting(&setting) {
        Ok(report) => Ok((text, report)),
        Err(what) => Err(FailedSeed { seed, setting: text, what }),
    }
}

/// Seeds that a thread takes at once.
const SEEDS_A_TURN: u64 = 16;

/// Runs the seeds on so many threads, and stops at the first failure. `progress` is called now and then with the number that is done, and says
/// whether to go on. What was tried is the first [`SoakReport::seeds`] of them, each completely, unless one failed.
pub fn soak(
    seeds: Range<u64>,
    threads: NonZeroUsize,
    progress: impl Fn(u64) -> ControlFlow<()> + Sync,
) -> SoakReport {
    let turn = |seeds: Range<u64>, report: &mut SoakReport| {
        for seed in seeds {
            match replay(seed) {
                Ok((_, passed)) => report.add(passed),
                Err(failed) => {
                    report.seeds += 1;
                    report.failures.push(failed);
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    };
    let mut total = SoakReport::default();
    let found = in_turns((seeds, SEEDS_A_TURN), threads, turn, progress);
    found.into_iter().for_each(|report| total.add(report));
    total.failures.sort_by_key(|failure| failure.seed);
    total
}

#[cfg(test)]
mod tests {
    use super::soak;
    use std::num::NonZeroUsize;
    use std::ops::ControlFlow;

    /// A rank with another size takes another algorithm, and its transfers meet none: the difference is reported all the same.
    #[test]
    fn a_rank_whose_transfers_meet_none_is_reported() {
        let report = soak(5401..5402, NonZeroUsize::MIN, |_| ControlFlow::Continue(()));
        assert!(report.failures.is_empty() && report.faulted == 1, "{}", report.failures[0]);
    }

    #[test]
    fn seeds_pass_have_troubles_and_are_the_same_again() {
        let tried = |threads| {
            let threads = NonZeroUsize::new(threads).expect("not zero");
            soak(0..60, threads, |_| ControlFlow::Continue(()))
        };
        let report = tried(1);
        assert!(report.failures.is_empty(), "{}", report.failures[0]);
        assert!(report.injected > 10 && report.faulted > 5, "{report:?}");
        assert_eq!(tried(2), report);
    }
}
