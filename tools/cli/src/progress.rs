//! What a phase that takes long says on standard error: a progress bar on a terminal, and a line elsewhere.

use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::text::grouped;

/// How long a user waits before the command says why.
const DELAY: Duration = Duration::from_secs(1);
/// The same where standard error is no terminal.
const LOG_PATIENCE: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(100);

/// A phase that may take long. Dropping it removes the bar.
pub(crate) struct Phase {
    bar: ProgressBar,
    waiter: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Phase {
    /// Begins a phase of `steps` steps.
    pub(crate) fn begin(what: &'static str, steps: u64) -> Self {
        Self::begin_bounded(what, steps, "")
    }

    /// Begins a phase that may hang; the sentence says what ends it then.
    pub(crate) fn begin_bounded(what: &'static str, steps: u64, ended_by: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        if !stderr().is_terminal() {
            let shown = bar.clone();
            return Self::with_waiter(bar, LOG_PATIENCE, move || {
                eprintln!("{}", still(what, shown.position(), steps, LOG_PATIENCE, ended_by));
            });
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
        let shown = bar.clone();
        Self::with_waiter(bar, DELAY, move || {
            shown.set_draw_target(ProgressDrawTarget::stderr());
            shown.enable_steady_tick(TICK);
        })
    }

    /// A phase that calls `late` if it is not over by then.
    fn with_waiter(
        bar: ProgressBar,
        delay: Duration,
        late: impl FnOnce() + Send + 'static,
    ) -> Self {
        let (end, ended) = channel();
        let waiter = thread::spawn(move || {
            if ended.recv_timeout(delay) == Err(RecvTimeoutError::Timeout) {
                late();
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

/// The line about a phase that is not over after so long.
fn still(what: &str, done: u64, steps: u64, after: Duration, ended_by: &str) -> String {
    let of = if steps > 1 {
        format!(", {} of {} done", grouped(done), grouped(steps))
    } else {
        String::new()
    };
    let separator = if ended_by.is_empty() { "" } else { "; " };
    format!("{what}: not over after {} s{of}{separator}{ended_by}", after.as_secs())
}

#[cfg(test)]
mod tests {
    use super::still;
    use std::time::Duration;

    #[test]
    fn the_line_about_a_long_phase_says_how_far_it_is_and_what_ends_it() {
        let after = Duration::from_secs(10);
        assert_eq!(
            still("writing outputs", 0, 1, after, ""),
            "writing outputs: not over after 10 s"
        );
        assert_eq!(
            still("running", 7, 1_000, after, "--task-budget-ms ends a kernel that hangs"),
            "running: not over after 10 s, 7 of 1,000 done; --task-budget-ms ends a kernel that hangs"
        );
    }
}
