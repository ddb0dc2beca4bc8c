//! `Monitor`: a state with a lock and a condition variable. Threads of the host wait on it for a change of a stream or an event. In
//! virtual time the waiting thread steps the session meanwhile.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use pto_abi::wait::spin_while;

use super::bell::Bell;
use super::others::{Outside, Quiet};
use super::serving;

/// A state that one thread changes and another one waits for.
#[derive(Default)]
pub(super) struct Monitor<S> {
    state: Mutex<S>,
    changed: Condvar,
    /// Threads that wait; changed while `state` is locked. With none, `change` saves the system call that wakes them.
    waiters: AtomicUsize,
}

/// A service that its callers can step.
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
    /// Nothing: nothing can happen before another command is submitted.
    Idle,
    /// Nothing: the service itself has called the caller.
    Within,
}

/// What steps the service: a thread of the session, or the threads that wait.
#[derive(Default)]
pub(super) struct Driver {
    /// Not set: a thread.
    stepped: OnceLock<Weak<dyn Step>>,
    /// What wakes that thread.
    pub(super) bell: Bell,
    /// Threads and processes outside of the session that may act while a thread waits.
    pub(super) outside: Outside,
    /// The session has ended, and its thread has returned.
    has_left: AtomicBool,
}

/// How long a waiting thread polls before it blocks: about what blocking costs, which is a sleep of the service and two threads that
/// wake up.
const SPIN: Duration = Duration::from_micros(100);
/// After this time the waiting thread yields its CPU between two polls: the thread that it waits for may have no other one.
const SPIN_WITHOUT_YIELD: Duration = Duration::from_micros(2);

/// How often a waiting thread checks whether the session has ended: what has not happened by then never will.
const END_CHECK: Duration = Duration::from_millis(200);

/// Why a wait has ended without what was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unmet {
    /// The time limit is over.
    TimedOut(Duration),
    /// The session is stuck: no further event can happen.
    Stuck(String),
}

const ENDED: &str = "the session has ended";

/// Whether two threads can be at work at once.
pub(super) fn has_cpus() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1))
}

impl Driver {
    /// From now on the threads that wait step `step`.
    pub(super) fn set_stepped(&self, step: Weak<dyn Step>) {
        // A session sets it once, before a thread can wait.
        self.stepped.set(step).unwrap_or_default();
    }

    /// Identifies the session, for [`serving`].
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// One turn, if the waiting threads step the service; `None`: a thread of the session does.
    pub(super) fn step(&self) -> Option<Stepped> {
        self.step_within(None)
    }

    fn step_within(&self, idle: Option<Duration>) -> Option<Stepped> {
        let Some(step) = self.stepped.get() else {
            // The caller waits: the thread of the session must look what the firmware has done.
            self.bell.ring();
            return None;
        };
        Some(step.upgrade().map_or(Stepped::Idle, |step| step.step(idle)))
    }

    /// One turn, if the waiting threads step the service and no other thread does so just now; whether anything was done.
    pub(super) fn try_step(&self, idle: Duration) -> bool {
        let step = self.stepped.get().and_then(Weak::upgrade);
        step.is_some_and(|step| step.try_step(Some(idle)) == Stepped::Worked)
    }

    /// Whether the waiting threads step the service.
    pub(super) fn is_stepped(&self) -> bool {
        self.stepped.get().is_some()
    }

    /// Polls for a moment, if another thread steps the service and has a CPU of its own.
    pub(super) fn expect_soon(&self, is_there: impl Fn() -> bool) {
        if self.stepped.get().is_some() || !has_cpus() {
            return;
        }
        let start = Instant::now();
        let goes_on = || {
            let looked = start.elapsed();
            if (SPIN_WITHOUT_YIELD..SPIN).contains(&looked) {
                std::thread::yield_now();
            }
            looked < SPIN
        };
        let _found = spin_while(goes_on, || is_there().then_some(()));
    }

    fn state(&self) -> String {
        let step = self.stepped.get().and_then(Weak::upgrade);
        step.map_or_else(|| ENDED.to_owned(), |step| step.state())
    }

    /// The thread that steps the service returns.
    pub(super) fn leave(&self) {
        // Release: pairs with the Acquire load in `wait_for_thread`, so that a thread that sees it sees all of the service's work.
        self.has_left.store(true, Ordering::Release);
    }

    fn wait_for_thread<S, T>(
        &self,
        monitor: &Monitor<S>,
        limit: Option<Duration>,
        mut look: impl FnMut(&mut S) -> Option<T>,
    ) -> Result<T, Unmet> {
        let start = Instant::now();
        loop {
            let left = limit.map(|limit| limit.saturating_sub(start.elapsed()));
            // Acquire: pairs with the Release store in `leave`.
            let has_left = self.has_left.load(Ordering::Acquire);
            let looks = if has_left { Duration::ZERO } else { END_CHECK };
            if let Some(found) = monitor.wait(left.unwrap_or(looks).min(looks), &mut look) {
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

    /// Waits on `monitor` until `look` finds something, at most for `limit`.
    pub(super) fn wait<S, T>(
        &self,
        monitor: &Monitor<S>,
        limit: Option<Duration>,
        mut look: impl FnMut(&mut S) -> Option<T>,
    ) -> Result<T, Unmet> {
        if serving::is_service(self.address()) {
            let found = look(&mut monitor.lock());
            let state = "what a command held waits for the session while it is dropped";
            return found.ok_or_else(|| Unmet::Stuck(state.to_owned()));
        }
        if self.stepped.get().is_none() {
            if let Some(found) = look(&mut monitor.lock()) {
                return Ok(found);
            }
            self.bell.ring();
            return self.wait_for_thread(monitor, limit, look);
        }
        let start = Instant::now();
        let mut quiet = Quiet::default();
        loop {
            if let Some(found) = look(&mut monitor.lock()) {
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
                    let found = look(&mut monitor.lock());
                    let has_time = left.is_none_or(|left| !left.is_zero());
                    if found.is_none()
                        && has_time
                        && self.outside.may_act_soon(&mut quiet, limit.is_some())
                    {
                        continue;
                    }
                    // So may an action of an outsider just before it became unable to act.
                    let found = found.or_else(|| look(&mut monitor.lock()));
                    return found.ok_or_else(|| match limit {
                        Some(limit) => Unmet::TimedOut(limit),
                        None => Unmet::Stuck(self.state()),
                    });
                }
            }
        }
    }
}

impl<S> Monitor<S> {
    /// A monitor of this state.
    pub(super) fn new(state: S) -> Self {
        Self { state: Mutex::new(state), changed: Condvar::new(), waiters: AtomicUsize::new(0) }
    }

    /// Locks the state.
    pub(super) fn lock(&self) -> MutexGuard<'_, S> {
        // Every state that a panic could leave is a valid one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the threads that wait for it.
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
