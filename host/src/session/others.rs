//! Threads and processes outside of a stepped session that may submit something while a thread waits in it. The session asks its owner about
//! them.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Says whether threads or processes outside of a session may still act. A stepped session asks when a thread waits in it and nothing can
/// happen. If none of them can act, a wait that can never end fails at once, and the time limit of a wait is over at once.
pub trait Others: Send + Sync {
    /// `None`: one of them may act. `Some`: none seems able to; it counts once that has lasted for this long.
    fn quiet(&self) -> Option<Duration>;
    /// As [`Others::quiet`], for a thread that waits, with a time limit or without one; the call sleeps for a moment, in which others act.
    fn pause(&self, has_limit: bool) -> Option<Duration>;
}

/// The owner's answer, if the owner gave one.
#[derive(Default)]
pub(super) struct Outside(OnceLock<&'static dyn Others>);

/// Since when none has been able to act.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quiet(Option<Instant>);

impl Outside {
    /// From now on `others` is asked.
    pub(super) fn set(&self, others: &'static dyn Others) {
        // A session calls this once, before a thread waits.
        self.0.set(others).unwrap_or_default();
    }

    /// Whether one of them may act.
    pub(super) fn may_act(&self, quiet: &mut Quiet) -> bool {
        self.0.get().is_some_and(|others| quiet.look(others.quiet()))
    }

    /// As [`Outside::may_act`], for a thread that waits.
    pub(super) fn may_act_soon(&self, quiet: &mut Quiet, has_limit: bool) -> bool {
        self.0.get().is_some_and(|others| quiet.look(others.pause(has_limit)))
    }
}

impl Quiet {
    /// Takes an answer; whether it is not quiet, or not for long enough.
    fn look(&mut self, needed: Option<Duration>) -> bool {
        let Some(needed) = needed else {
            self.0 = None;
            return true;
        };
        let since = *self.0.get_or_insert_with(Instant::now);
        since.elapsed() < needed
    }
}
