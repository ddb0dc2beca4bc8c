//! A seat: the place where a thread of the host waits for a change of a stream or an event. In virtual time the waiting thread
//! steps the session meanwhile.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use pto_abi::wait::spin_while;

use super::bell::Bell;
use super::others::{Outside, Quiet};
use super::serving;

/// A state that one side changes and the other one waits for.
#[derive(Default)]
pub(super) struct Seat<S> {
    state: Mutex<S>,
    changed: Condvar,
    /// Threads that wait; changed while `state` is locked. Waking nobody would cost a system call.
    waiters: AtomicUsize,
}

/// Somebody who can be stepped.
pub(super) trait Step: Send + Sync {
    /// One bounded turn of the service, in which at most so much time passes with nothing done; `None`: as much as it takes.
    fn step(&self, idle: Option<Duration>) -> Stepped;
    /// As `step`, unless another thread makes a turn just now.
    fn try_step(&self, idle: Option<Duration>) -> Stepped;
    /// Which streams wait for what.
    fn state(&self) -> String;
}

/// What a turn of the service has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stepped {
    /// Something.
    Worked,
    /// Nothing: nothing can happen unless somebody submits something.
    Idle,
    /// The caller is called by the service.
    Within,
}

/// Who steps the service: a thread of the session, or who waits.
#[derive(Default)]
pub(super) struct Driver {
    /// Not set: a thread.
    stepped: OnceLock<Weak<dyn Step>>,
    /// What wakes that thread.
    pub(super) bell: Bell,
    /// Who else may act while somebody waits.
    pub(super) outside: Outside,
    /// The session has ended, and its thread does nothing any more.
    has_left: AtomicBool,
}

/// How long somebody who waits looks by himself, before he asks to be told: about what being told costs, which is a nap of the service
/// and two threads that wake up.
const LOOKS: Duration = Duration::from_micros(100);
/// From this time on he lets other threads have his CPU between two looks: the one that he waits for may have no other one.
const LOOKS_ALONE: Duration = Duration::from_micros(2);

/// How often somebody who waits looks whether the session has ended: what it has not done by then will never be.
const LOOKS_FOR_END: Duration = Duration::from_millis(200);

/// Why a wait has ended without what was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unmet {
    /// The time is over.
    TimedOut(Duration),
    /// Nothing will happen any more.
    Stuck(String),
}

const ENDED: &str = "the session has ended";

/// Whether two threads can be at work at once.
pub(super) fn has_cpus() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1))
}

impl Driver {
    /// From now on `step` is stepped by those who wait.
    pub(super) fn set_stepped(&self, step: Weak<dyn Step>) {
        // A session sets it once, before anybody can wait.
        self.stepped.set(step).unwrap_or_default();
    }

    /// Which session it is of, for [`serving`].
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// One turn, where those who wait make the turns; `None`: a thread does.
    pub(super) fn step(&self) -> Option<Stepped> {
        self.step_within(None)
    }

    fn step_within(&self, idle: Option<Duration>) -> Option<Stepped> {
        let Some(step) = self.stepped.get() else {
            // Somebody waits: the thread is to look what the firmware has done.
            self.bell.ring();
            return None;
        };
        Some(step.upgrade().map_or(Stepped::Idle, |step| step.step(idle)))
    }

    /// One turn, where those who wait make the turns and nobody makes one just now; whether anything was done.
    pub(super) fn try_step(&self, idle: Duration) -> bool {
        let step = self.stepped.get().and_then(Weak::upgrade);
        step.is_some_and(|step| step.try_step(Some(idle)) == Stepped::Worked)
    }

    /// Whether those who wait make the turns.
    pub(super) fn is_stepped(&self) -> bool {
        self.stepped.get().is_some()
    }

    /// Looks for a moment, where somebody else steps the service and has a CPU to do it on.
    pub(super) fn expect_soon(&self, is_there: impl Fn() -> bool) {
        if self.stepped.get().is_some() || !has_cpus() {
            return;
        }
        let start = Instant::now();
        let goes_on = || {
            let looked = start.elapsed();
            if (LOOKS_ALONE..LOOKS).contains(&looked) {
                std::thread::yield_now();
            }
            looked < LOOKS
        };
        let _found = spin_while(goes_on, || is_there().then_some(()));
    }

    fn state(&self) -> String {
        let step = self.stepped.get().and_then(Weak::upgrade);
        step.map_or_else(|| ENDED.to_owned(), |step| step.state())
    }

    /// The thread that steps the service will do nothing any more.
    pub(super) fn leave(&self) {
        // Release: pairs with the Acquire load in `wait_for_thread`, so that who sees it sees everything that was done.
        self.has_left.store(true, Ordering::Release);
    }

    fn wait_for_thread<S, T>(
        &self,
        seat: &Seat<S>,
        limit: Option<Duration>,
        mut look: impl FnMut(&mut S) -> Option<T>,
    ) -> Result<T, Unmet> {
        let start = Instant::now();
        loop {
            let left = limit.map(|limit| limit.saturating_sub(start.elapsed()));
            // Acquire: pairs with the Release store in `leave`.
            let has_left = self.has_left.load(Ordering::Acquire);
            let looks = if has_left { Duration::ZERO } else { LOOKS_FOR_END };
            if let Some(found) = seat.wait(left.unwrap_or(looks).min(looks), &mut look) {
                return Ok(found);
            }
            if has_left {
                return Err(Unmet::Stuck(ENDED.to_owned()));
            }
            if left.is_some_and(|left| left <= looks) {
                return Err(Unmet::TimedOut(limit.unwrap_or_default()));
            }
        }
    }

    /// Waits at `seat` until `look` finds something, at most for `limit`.
    pub(super) fn wait<S, T>(
        &self,
        seat: &Seat<S>,
        limit: Option<Duration>,
        mut look: impl FnMut(&mut S) -> Option<T>,
    ) -> Result<T, Unmet> {
        if serving::is_service(self.address()) {
            let found = look(&mut seat.lock());
            let state = "what a command held waits for the session while it is dropped";
            return found.ok_or_else(|| Unmet::Stuck(state.to_owned()));
        }
        if self.stepped.get().is_none() {
            if let Some(found) = look(&mut seat.lock()) {
                return Ok(found);
            }
            self.bell.ring();
            return self.wait_for_thread(seat, limit, look);
        }
        let start = Instant::now();
        let mut quiet = Quiet::default();
        loop {
            if let Some(found) = look(&mut seat.lock()) {
                return Ok(found);
            }
            let left = limit.map(|limit| limit.saturating_sub(start.elapsed()));
            match self.step_within(left) {
                Some(Stepped::Worked) => quiet = Quiet::default(),
                Some(Stepped::Within) => {
                    let state = "a function of the host waits for the session that calls it";
                    return Err(Unmet::Stuck(state.to_owned()));
                }
                _ => {
                    // The last turn may have brought what is waited for.
                    let found = look(&mut seat.lock());
                    let has_time = left.is_none_or(|left| !left.is_zero());
                    if found.is_none()
                        && has_time
                        && self.outside.may_act_soon(&mut quiet, limit.is_some())
                    {
                        continue;
                    }
                    // So may what somebody did just before he could not act any more.
                    let found = found.or_else(|| look(&mut seat.lock()));
                    return found.ok_or_else(|| match limit {
                        Some(limit) => Unmet::TimedOut(limit),
                        None => Unmet::Stuck(self.state()),
                    });
                }
            }
        }
    }
}

impl<S> Seat<S> {
    /// With this state.
    pub(super) fn new(state: S) -> Self {
        Self { state: Mutex::new(state), changed: Condvar::new(), waiters: AtomicUsize::new(0) }
    }

    /// The state, to be looked at.
    pub(super) fn lock(&self) -> MutexGuard<'_, S> {
        // Every state that a panic could leave is a valid one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes who waits for it.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        let has_waiters = self.waiters.load(Ordering::Relaxed) > 0;
        drop(state);
        if has_waiters {
            self.changed.notify_all();
        }
        result
    }

    fn wait<T>(&self, limit: Duration, mut look: impl FnMut(&mut S) -> Option<T>) -> Option<T> {
        let start = Instant::now();
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return Some(found);
            }
            let left = limit.checked_sub(start.elapsed()).filter(|left| !left.is_zero())?;
            self.waiters.fetch_add(1, Ordering::Relaxed);
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            self.waiters.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
