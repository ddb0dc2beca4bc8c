//! Those who are no part of a session that is stepped, and may submit something while a thread waits in it: other threads of the process, other
//! processes. The session asks its owner about them.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Tells whether somebody outside of a session may still act. A session that is stepped asks when a thread waits in it and nothing can happen: without
/// anybody else a wait that nobody will end fails at once, and the time limit of a wait is over at once.
pub trait Others: Send + Sync {
    /// `None`: somebody may act. Otherwise nobody seems to be able to, and this is for how long that has to stay so before it counts.
    fn quiet(&self) -> Option<Duration>;
    /// As [`Others::quiet`], asked by a thread that waits, with a time limit or without one; the call takes a moment, in which others act.
    fn pause(&self, has_limit: bool) -> Option<Duration>;
}

/// Who is asked; nobody where nobody was named.
#[derive(Default)]
pub(super) struct Outside(OnceLock<&'static dyn Others>);

/// Since when nobody has been able to act.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quiet(Option<Instant>);

impl Outside {
    /// From now on these are asked.
    pub(super) fn set(&self, others: &'static dyn Others) {
        // A session is told once, before anybody waits.
        self.0.set(others).unwrap_or_default();
    }

    /// Whether somebody may act.
    pub(super) fn may_act(&self, quiet: &mut Quiet) -> bool {
        self.0.get().is_some_and(|others| quiet.look(others.quiet()))
    }

    /// As [`Outside::may_act`], asked by a thread that waits.
    pub(super) fn may_act_soon(&self, quiet: &mut Quiet, has_limit: bool) -> bool {
        self.0.get().is_some_and(|others| quiet.look(others.pause(has_limit)))
    }
}

impl Quiet {
    /// Takes what a look has found; whether it is not quiet, or not for long enough.
    fn look(&mut self, needed: Option<Duration>) -> bool {
        let Some(needed) = needed else {
            self.0 = None;
            return true;
        };
        let since = *self.0.get_or_insert_with(Instant::now);
        since.elapsed() < needed
    }
}
