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
mod program;
mod report;
mod setting;
mod tried;

use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};

pub use report::{FailedSeed, SoakReport};

/// Runs one seed again. What the seed decided, as a sentence, and what came of it.
///
/// # Errors
/// What was wrong.
pub fn replay(seed: u64) -> Result<(String, SoakReport), FailedSeed> {
    let setting = setting::Setting::drawn(seed);
    let told = setting.to_string();
    match tried::try_setting(&setting) {
        Ok(report) => Ok((told, report)),
        Err(what) => Err(FailedSeed { seed, setting: told, what }),
    }
}

/// Seeds that a thread takes at once.
const SEEDS_A_TURN: u64 = 16;

/// Runs the seeds on so many threads, and stops at the first failure. `progress` is told now and then how many are done, and says
/// whether to go on. What was tried is the first [`SoakReport::seeds`] of them, each completely, unless one failed.
pub fn soak(
    seeds: Range<u64>,
    threads: NonZeroUsize,
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
) -> SoakReport {
    let mut total = SoakReport::default();
    let mut next = seeds.start;
    while next < seeds.end {
        let turn = |at: usize| {
            let start = next.saturating_add(at as u64 * SEEDS_A_TURN).min(seeds.end);
            start..start.saturating_add(SEEDS_A_TURN).min(seeds.end)
        };
        let turns: Vec<_> = (0..threads.get()).map(turn).collect();
        next = turns.last().map_or(seeds.end, |last| last.end);
        side_by_side(&turns).into_iter().for_each(|report| total.add(report));
        if !total.failures.is_empty() || progress(total.seeds).is_break() {
            break;
        }
    }
    total
}

/// Each on a thread of its own. Where the process gets no further thread, the caller does it.
fn side_by_side(turns: &[Range<u64>]) -> Vec<SoakReport> {
    std::thread::scope(|scope| {
        let spawn = |turn: &Range<u64>| {
            let (seeds, own) = (turn.clone(), turn.clone());
            let named = std::thread::Builder::new().name("pto-soak".to_owned());
            (named.spawn_scoped(scope, move || of_turn(seeds)).ok(), own)
        };
        let (first, others) = turns.split_first().map_or((None, turns), |it| (Some(it.0), it.1));
        let others: Vec<_> = others.iter().map(spawn).collect();
        let mut reports: Vec<_> = first.map(|turn| of_turn(turn.clone())).into_iter().collect();
        reports.extend(others.into_iter().map(
            |(thread, seeds)| match thread.map(|it| it.join()) {
                Some(Ok(report)) => report,
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                None => of_turn(seeds),
            },
        ));
        reports
    })
}

fn of_turn(seeds: Range<u64>) -> SoakReport {
    let mut total = SoakReport::default();
    for seed in seeds {
        match replay(seed) {
            Ok((_, report)) => total.add(report),
            Err(failed) => {
                total.add(SoakReport { seeds: 1, failures: vec![failed], ..SoakReport::default() });
                break;
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::soak;
    use std::num::NonZeroUsize;
    use std::ops::ControlFlow;

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
