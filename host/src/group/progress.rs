//! The thread that gives the engines of a process their turns while a run is on, and their devices have no thread that waits and does so itself.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use pto_abi::wait::{Backoff, SpinPolicy};

use super::activity::Activity;
use super::engine::MemberEngine;

/// Turns without anything to do before the thread sleeps.
const POLICY: SpinPolicy = SpinPolicy { spins: 0, yields: 20 };
/// How long it sleeps while a run is on: as long as an idle thread of a pool.
const SLEEP: Duration = Duration::from_micros(50);

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
        self.activity.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_default();
        }
    }
}

fn serve(activity: &Activity, engines: &[Arc<MemberEngine>]) {
    let mut backoff = Backoff::new(POLICY);
    let mut seen = vec![0; engines.len()];
    while activity.wait() {
        let mut worked = false;
        let mut is_needed = false;
        for (engine, seen) in engines.iter().zip(&mut seen) {
            let helped = engine.helped();
            if std::mem::replace(seen, helped) == helped {
                is_needed = true;
                worked |= engine.turn();
            }
        }
        if !is_needed {
            // Threads of all devices wait for transfers, and move them. Should they begin to compute, this thread sees it after a sleep.
            std::thread::park_timeout(SLEEP);
            continue;
        }
        if worked {
            backoff.reset();
        } else if backoff.wait(std::thread::yield_now) {
            std::thread::park_timeout(SLEEP);
        }
    }
}
