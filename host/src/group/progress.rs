//! The thread that gives the engines of a process their turns while a run is on.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::engine::MemberEngine;

/// Turns without anything to do before the thread sleeps.
const PATIENCE: u32 = 20;
/// How long it sleeps while a run is on: as long as an idle thread of a pool.
const NAP: Duration = Duration::from_micros(50);

/// How many runs are on, and whether the thread is to go on.
#[derive(Default)]
pub(super) struct Activity {
    runs: Mutex<(u32, bool)>,
    changed: Condvar,
}

impl Activity {
    fn runs(&self) -> MutexGuard<'_, (u32, bool)> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run has begun.
    pub(super) fn one_more(&self) {
        self.runs().0 += 1;
        self.changed.notify_all();
    }

    /// A run is over.
    pub(super) fn one_less(&self) {
        let mut runs = self.runs();
        runs.0 = runs.0.saturating_sub(1);
    }

    /// Waits until a run is on; `false`: the thread is to end.
    fn wait(&self) -> bool {
        let idle = |state: &mut (u32, bool)| state.0 == 0 && !state.1;
        let runs = self.changed.wait_while(self.runs(), idle);
        !runs.unwrap_or_else(PoisonError::into_inner).1
    }
}

/// The thread; it ends with this value.
pub(super) struct Progress {
    activity: Arc<Activity>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts it.
    ///
    /// # Errors
    /// The process gets no further thread.
    pub(super) fn start(
        activity: Arc<Activity>,
        engines: Vec<Arc<MemberEngine>>,
    ) -> std::io::Result<Self> {
        let of_thread = Arc::clone(&activity);
        let named = std::thread::Builder::new().name("pto-transfers".to_owned());
        let thread = named.spawn(move || serve(&of_thread, &engines))?;
        Ok(Self { activity, thread: Some(thread) })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.activity.runs().1 = true;
        self.activity.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_default();
        }
    }
}

fn serve(activity: &Activity, engines: &[Arc<MemberEngine>]) {
    let mut idle = 0;
    while activity.wait() {
        let mut worked = false;
        for engine in engines {
            worked |= engine.turn();
        }
        idle = if worked { 0 } else { idle + 1 };
        if idle > PATIENCE {
            std::thread::park_timeout(NAP);
        } else if idle > 0 {
            std::thread::yield_now();
        }
    }
}
