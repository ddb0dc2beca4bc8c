//! A progress bar for what takes longer than a second, on a terminal only.

use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What a user waits without being told why.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// A phase that may take long. Dropping it removes the bar.
pub(crate) struct Phase {
    bar: ProgressBar,
    waiter: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Phase {
    /// Begins a phase of `steps` steps.
    pub(crate) fn begin(what: &'static str, steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        if !stderr().is_terminal() {
            return Self { bar, waiter: None };
        }
        let template = match steps {
            0 | 1 => "{spinner} {msg}  {elapsed}",
            _ => "{spinner} {msg}  {wide_bar} {pos}/{len}  {elapsed}",
        };
        // A template that indicatif does not understand costs the style, not the run.
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar()),
        );
        bar.set_message(what);
        let (end, ended) = channel();
        let shown = bar.clone();
        let waiter = thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        });
        Self { bar, waiter: Some((end, waiter)) }
    }

    /// One step is done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// So many steps are done.
    pub(crate) fn reach(&self, steps: u64) {
        self.bar.set_position(steps);
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        if let Some((end, waiter)) = self.waiter.take() {
            // Fails when the waiter is past its wait; either way it ends, and a bar that failed is no matter.
            let _ = end.send(());
            let _ = waiter.join();
        }
        self.bar.finish_and_clear();
    }
}
