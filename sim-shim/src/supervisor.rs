//! The supervisor: the calling thread of a run, which waits for the instances, and notices kernels and builders that do not return.
//!
//! The firmware's own watchdog ends every run whose schedulers still step. The supervisor is for what it cannot
//! see: an OS thread that is inside a kernel or a builder program that never returns.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pto_abi::runtime::{Epitaph, NOBODY};
use pto_abi::sync::{AtomicU32, AtomicU64, Ordering};
use pto_abi::{Fault, TaskId};
use pto_aicpu_fw::Launch;

use crate::clock;
use crate::wait::expect_soon;

/// What one OS thread is doing, in a line of its own.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Beat {
    turns: AtomicU64,
    worker: AtomicU32,
}

impl Beat {
    /// Whether the thread has made a turn.
    pub(crate) fn has_begun(&self) -> bool {
        self.turns.load(Ordering::Relaxed) > 0
    }

    /// One more turn of the thread's loop.
    #[inline]
    pub(crate) fn turn(&self) {
        self.turns.store(self.turns.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The thread is about to step this core.
    #[inline]
    pub(crate) fn core(&self, worker: u32) {
        self.turn();
        self.worker.store(worker, Ordering::Relaxed);
    }

    /// The thread steps no core.
    #[inline]
    pub(crate) fn no_core(&self) {
        self.worker.store(NOBODY, Ordering::Relaxed);
    }
}

/// Where the participants of a run report that they have returned.
#[derive(Default)]
pub(crate) struct Finish {
    /// As `remaining`, for who looks instead of sleeping.
    left: AtomicU32,
    remaining: Mutex<usize>,
    all_returned: Condvar,
}

impl Finish {
    pub(crate) fn of(participants: usize) -> Arc<Self> {
        let left = AtomicU32::new(u32::try_from(participants).unwrap_or(u32::MAX));
        let all_returned = Condvar::new();
        Arc::new(Self { left, remaining: Mutex::new(participants), all_returned })
    }

    /// So many more participants will return. Called by one that has not returned yet.
    pub(crate) fn expect(&self, participants: usize) {
        let mut remaining = self.remaining.lock().unwrap_or_else(PoisonError::into_inner);
        *remaining += participants;
        self.left.store(u32::try_from(*remaining).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// One participant has returned.
    pub(crate) fn returned(&self) {
        let mut remaining = self.remaining.lock().unwrap_or_else(PoisonError::into_inner);
        *remaining = remaining.saturating_sub(1);
        // Release: pairs with the Acquire load in `has_returned`.
        self.left.store(u32::try_from(*remaining).unwrap_or(u32::MAX), Ordering::Release);
        if *remaining == 0 {
            self.all_returned.notify_all();
        }
    }

    /// Whether all have returned.
    fn has_returned(&self) -> bool {
        // Acquire: pairs with the Release store in `returned`.
        self.left.load(Ordering::Acquire) == 0
    }

    /// Whether all have returned, waiting for `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let remaining = self.remaining.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.all_returned.wait_timeout_while(remaining, limit, |left| *left > 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
    }
}

/// Looks for the end of a run that no thread has begun, about 2 us of them, until the caller gives way once: the system may have put the thread that is to begin it on the
/// caller's CPU.
const LOOKS_WITHOUT_A_BEGINNING: u32 = 128;
/// How often the supervisor looks whether a thread is stuck.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What the return may take beyond the budgets of the firmware, on a busy machine.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// Whose time the budgets of tasks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// This machine's.
    Real,
    /// Virtual time: a busy machine may let a thread wait for longer than the budget, and the run has to be the same.
    Virtual,
}

impl Clock {
    /// For how many nanoseconds of this machine's time a thread may be at the task that this core runs.
    fn timeout_ns(self, launch: &Launch<'static>, worker: u32) -> u64 {
        if self == Self::Virtual {
            let grace = u64::try_from(GRACE.as_nanos()).unwrap_or(u64::MAX);
            return launch.budgets.task_ns.saturating_add(grace);
        }
        let lines = launch.arena.workers().get(worker as usize);
        let slot = lines.map(|lines| lines.current_dispatch().task);
        slot.map_or(launch.budgets.task_ns, |slot| launch.budgets.of(slot, &launch.state))
    }
}

/// Waits for a run of this many OS threads; `false`: a thread did not return. A kernel that runs for longer than its budget is a fault.
pub(crate) fn supervise(
    launch: &Launch<'static>,
    threads: usize,
    (finish, beats): (&Finish, &[&Beat]),
    clock: Clock,
) -> bool {
    // A firmware that stays up does not return soon, and those that it comes up for need the CPU.
    let is_short = !launch.budgets.of_launches;
    let mut looks = 0_u32;
    let look = || {
        looks += 1;
        if looks == LOOKS_WITHOUT_A_BEGINNING && beats.first().is_some_and(|beat| !beat.has_begun())
        {
            std::thread::yield_now();
        }
        finish.has_returned().then_some(())
    };
    if is_short && expect_soon(threads + 1, look).is_some() {
        return true;
    }
    let mut watch = BeatWatch::new(beats, clock::now_ns());
    let stop_budget = Duration::from_nanos(launch.bring_up_budget_ns) + GRACE;
    let mut faulted: Option<Instant> = None;
    loop {
        if finish.wait(LOOK_EVERY) {
            return true;
        }
        if launch.state.fault.is_raised() {
            let since = *faulted.get_or_insert_with(Instant::now);
            if since.elapsed() > stop_budget {
                return false;
            }
        } else if let Some((worker, since)) =
            watch.stuck(beats, clock::now_ns(), |worker| clock.timeout_ns(launch, worker))
        {
            raise_stuck(launch, worker, since);
        }
    }
}

/// The most that one look adds to the time for which a thread is watched: a process that was stopped, or a machine that slept, did not
/// watch meanwhile.
const MOST_A_LOOK: Duration = LOOK_EVERY.saturating_mul(4);

/// Notices a thread whose turns do not go on.
struct BeatWatch {
    /// For each thread: its turns, and the `watched_ns` at which they were first seen.
    seen: Vec<(u64, u64)>,
    /// When the supervisor looked last.
    looked_ns: u64,
    /// How long it has watched the threads.
    watched_ns: u64,
}

impl BeatWatch {
    fn new(beats: &[&Beat], now_ns: u64) -> Self {
        Self { seen: vec![(u64::MAX, 0); beats.len()], looked_ns: now_ns, watched_ns: 0 }
    }

    /// The core that a stuck thread steps (or `NOBODY`), and for how long it has been stuck.
    fn stuck(
        &mut self,
        beats: &[&Beat],
        now_ns: u64,
        timeout_ns: impl Fn(u32) -> u64,
    ) -> Option<(u32, u64)> {
        let most = u64::try_from(MOST_A_LOOK.as_nanos()).unwrap_or(u64::MAX);
        self.watched_ns += now_ns.saturating_sub(self.looked_ns).min(most);
        self.looked_ns = now_ns;
        let watched = self.watched_ns;
        for (beat, (turns, since)) in beats.iter().zip(&mut self.seen) {
            if !beat.has_begun() {
                // It is at nothing.
                continue;
            }
            let current = beat.turns.load(Ordering::Relaxed);
            let worker = beat.worker.load(Ordering::Relaxed);
            if current != *turns {
                (*turns, *since) = (current, watched);
            } else if watched.saturating_sub(*since) > timeout_ns(worker) {
                return Some((worker, watched - *since));
            }
        }
        None
    }
}

/// Raises the fault of a stuck thread, with the core and the task that it is in.
fn raise_stuck(launch: &Launch<'static>, worker: u32, since_ns: u64) {
    let fault = if worker == NOBODY { Fault::STALL_INSTANCE } else { Fault::STALL_CORE };
    if !launch.state.fault.raise(fault) {
        return;
    }
    let mut epitaph = Epitaph::of(fault);
    (epitaph.core, epitaph.since_ns, epitaph.time_ns) = (worker, since_ns, clock::now_ns());
    if let Some(lines) = launch.arena.workers().get(worker as usize) {
        let dispatch = lines.current_dispatch();
        let slot = dispatch.task;
        epitaph.task = TaskId { slot, generation: launch.run_epoch };
        epitaph.kernel = dispatch.kernel;
        if let Some(task) = launch.state.task(slot) {
            epitaph.func_id = task.func_id.load(Ordering::Relaxed).into();
            epitaph.task.generation = task.generation.load(Ordering::Relaxed);
        }
    }
    let sum = |counter: fn(&pto_abi::runtime::InstanceLine) -> &AtomicU64| {
        launch.state.sum(|line| counter(line).load(Ordering::Relaxed))
    };
    epitaph.added = sum(|line| &line.added);
    epitaph.published = sum(|line| &line.published);
    epitaph.completed = sum(|line| &line.completed);
    launch.arena.set_epitaph(&epitaph);
    launch.state.fault.seal_epitaph();
}

/// Raises the fault of host code that panicked.
pub(crate) fn raise_panic(launch: &Launch<'static>) {
    raise(launch, Fault::RUN_PANIC, clock::now_ns());
}

/// Raises the fault of a run whose host does not want it any more, or is gone.
pub(crate) fn raise_cancelled(launch: &Launch<'static>, now_ns: u64) {
    raise(launch, Fault::RUN_CANCELLED, now_ns);
}

fn raise(launch: &Launch<'static>, fault: Fault, now_ns: u64) {
    if launch.state.fault.raise(fault) {
        let mut epitaph = Epitaph::of(fault);
        epitaph.time_ns = now_ns;
        launch.arena.set_epitaph(&epitaph);
        launch.state.fault.seal_epitaph();
    }
}

#[cfg(test)]
mod tests {
    use super::{Beat, BeatWatch};

    const MS: u64 = 1_000_000;

    #[test]
    fn a_thread_is_stuck_when_it_was_seen_at_one_place_for_too_long() {
        let beats = [&Beat::default(), &Beat::default()];
        let mut watch = BeatWatch::new(&beats, 0);
        let timeout_ns = |worker| if worker == 3 { 120 * MS } else { 500 * MS };
        for look in 1..=4 {
            beats[0].turn();
            beats[1].core(3);
            assert_eq!(watch.stuck(&beats, look * 50 * MS, timeout_ns), None, "look {look}");
        }
        beats[0].turn();
        assert_eq!(watch.stuck(&beats, 250 * MS, timeout_ns), None);
        assert_eq!(watch.stuck(&beats, 300 * MS, timeout_ns), None);
        assert_eq!(watch.stuck(&beats, 350 * MS, timeout_ns), Some((3, 150 * MS)));
    }

    #[test]
    fn a_thread_that_has_not_begun_is_not_stuck() {
        let beats = [&Beat::default(), &Beat::default()];
        let mut watch = BeatWatch::new(&beats, 0);
        for look in 1..=20 {
            beats[0].turn();
            assert_eq!(watch.stuck(&beats, look * 50 * MS, |_| 500 * MS), None, "look {look}");
        }
        beats[1].core(2);
        for look in 21..=31 {
            beats[0].turn();
            assert_eq!(watch.stuck(&beats, look * 50 * MS, |_| 500 * MS), None, "look {look}");
        }
        beats[0].turn();
        assert_eq!(watch.stuck(&beats, 1_600 * MS, |_| 500 * MS), Some((2, 550 * MS)));
    }

    /// A machine that slept for an hour has looked once in that time.
    #[test]
    fn time_in_which_nobody_looked_is_not_held_against_a_thread() {
        let beats = [&Beat::default()];
        let mut watch = BeatWatch::new(&beats, 0);
        beats[0].core(0);
        assert_eq!(watch.stuck(&beats, 50 * MS, |_| 500 * MS), None);
        assert_eq!(watch.stuck(&beats, 3_600_000 * MS, |_| 500 * MS), None);
        for look in 1..=6 {
            let now = 3_600_000 * MS + look * 50 * MS;
            assert_eq!(watch.stuck(&beats, now, |_| 500 * MS), None, "look {look}");
        }
        let now = 3_600_000 * MS + 350 * MS;
        assert_eq!(watch.stuck(&beats, now, |_| 500 * MS), Some((0, 550 * MS)));
    }
}
