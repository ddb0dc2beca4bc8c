//! The OS threads of a campaign: they take turns of seeds until there are none, or one of them says that it is enough.
//!
//! Invariant: who has taken a turn makes it, so that the turns that were made are the first ones.

use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};

use pto_abi::sync::{AtomicU32, AtomicU64, Ordering};

use crate::os_threads::MAX_OS_THREADS;

/// Makes turns of `seeds_a_turn` seeds on so many threads, of which the caller is one; more than [`MAX_OS_THREADS`] are not
/// started. `turn` tries the seeds, adds to what its thread has found, and says whether the campaign goes on. After each turn
/// `progress` is called with how many seeds are done, and says the same. What each thread has found is returned.
pub fn in_turns<R: Default + Send>(
    (seeds, seeds_a_turn): (Range<u64>, u64),
    threads: NonZeroUsize,
    turn: impl Fn(Range<u64>, &mut R) -> ControlFlow<()> + Sync,
    progress: impl Fn(u64) -> ControlFlow<()> + Sync,
) -> Vec<R> {
    let next = AtomicU64::new(seeds.start);
    let has_ended = AtomicU32::new(0);
    let work = || {
        let mut found = R::default();
        while has_ended.load(Ordering::Relaxed) == 0 {
            let first = next.fetch_add(seeds_a_turn, Ordering::Relaxed);
            if first >= seeds.end {
                break;
            }
            let end = first.saturating_add(seeds_a_turn).min(seeds.end);
            let is_enough = turn(first..end, &mut found).is_break();
            if progress(end - seeds.start).is_break() || is_enough {
                has_ended.store(1, Ordering::Relaxed);
            }
        }
        found
    };
    std::thread::scope(|scope| {
        // Where the process gets no further thread, fewer do the same work.
        let named = |_| std::thread::Builder::new().name("pto-soak".to_owned());
        let others = (1..threads.get().min(MAX_OS_THREADS)).map(named);
        let others: Vec<_> =
            others.map_while(|thread| thread.spawn_scoped(scope, work).ok()).collect();
        let mut all = vec![work()];
        all.extend(
            others.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }),
        );
        all
    })
}

#[cfg(test)]
mod tests {
    use super::in_turns;
    use std::num::NonZeroUsize;
    use std::ops::ControlFlow;

    /// The seeds that were tried, in order, of a campaign that ends when it comes to the seed `last`.
    fn tried(threads: usize, last: u64) -> Vec<u64> {
        let threads = NonZeroUsize::new(threads).unwrap();
        let turn = |seeds: std::ops::Range<u64>, found: &mut Vec<u64>| {
            let is_last = seeds.contains(&last);
            found.extend(seeds);
            if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let go_on = |_| ControlFlow::Continue(());
        let mut all = in_turns((7..1000, 16), threads, turn, go_on).concat();
        all.sort_unstable();
        all
    }

    #[test]
    fn every_seed_is_tried_once_on_any_number_of_threads() {
        for threads in [1, 2, 5] {
            assert_eq!(tried(threads, u64::MAX), (7..1000).collect::<Vec<_>>(), "{threads}");
        }
    }

    #[test]
    fn the_first_seeds_are_those_that_were_tried() {
        assert_eq!(tried(1, 30), (7..39).collect::<Vec<_>>());
        let some = tried(3, 30);
        assert!(some.len() >= 32 && some.iter().copied().eq(7..7 + some.len() as u64), "{some:?}");
        let none = |_: std::ops::Range<u64>, _: &mut ()| ControlFlow::Continue(());
        let mut reported = Vec::new();
        let sink = std::sync::Mutex::new(&mut reported);
        in_turns((7..1000, 16), NonZeroUsize::MIN, none, |done| {
            sink.lock().unwrap().push(done);
            if done == 32 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(reported, [16, 32]);
    }
}
