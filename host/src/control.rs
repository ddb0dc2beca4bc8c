//! Controls a run from another thread: asks how far the run is, and ends it.
//!
//! ```text
//! Device::run_controlled(.., control) -- lend(arena) -> [ run ] -> take back
//! another thread:   control.progress()   control.cancel(): RUN_CANCELLED is raised in the arena
//! ```

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_abi::Fault;
use pto_abi::arena::Arena;
use pto_abi::runtime::Epitaph;

use crate::device::Device;
use crate::error::Error;
use crate::options::{RunOptions, Work};
use crate::progress::RunProgress;
use crate::report::RunReport;

/// A handle on a run, to be cloned and taken to another thread. One control serves one run at a time.
#[derive(Clone, Default)]
pub struct RunControl(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_cancelled: bool,
    /// The arena of the current run, while there is one.
    arena: Option<Arena<'static>>,
}

impl RunControl {
    /// A control of the run that it will be given to.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the run with the fault `RUN_CANCELLED`: tasks that are on cores finish, no other one starts. A run
    /// that has not begun ends at once. Calls after the first do nothing.
    pub fn cancel(&self) {
        let mut state = self.state();
        state.is_cancelled = true;
        if let Some(arena) = &state.arena {
            raise(arena);
        }
    }

    /// Whether [`RunControl::cancel`] was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state().is_cancelled
    }

    /// How far the run is; `None`: it has not begun, or it is over.
    #[must_use]
    pub fn progress(&self) -> Option<RunProgress> {
        self.state().arena.as_ref().map(RunProgress::read)
    }

    /// Calls `run` while the control reaches `arena`, which lives until `run` has returned.
    pub(crate) fn over<R>(&self, arena: Arena<'static>, run: impl FnOnce() -> R) -> R {
        {
            let mut state = self.state();
            if state.is_cancelled {
                raise(&arena);
            }
            state.arena = Some(arena);
        }
        let taken_back = TakeBack(self);
        let result = run();
        drop(taken_back);
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every state that a panic could leave is a valid one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device {
    /// As [`Device::run`]; `control` reaches the run from other threads.
    ///
    /// # Errors
    /// Those of [`Device::run`]; `Fault` with `RUN_CANCELLED` after [`RunControl::cancel`].
    pub fn run_controlled(
        &mut self,
        work: Work<'_>,
        options: &RunOptions,
        control: &RunControl,
    ) -> Result<RunReport, Error> {
        self.run_on(work, options, |backend, arena| Ok(control.over(arena, || backend.run(arena))))
    }
}

/// Takes the arena back, also when the run panics.
struct TakeBack<'c>(&'c RunControl);

impl Drop for TakeBack<'_> {
    fn drop(&mut self) {
        self.0.state().arena = None;
    }
}

fn raise(arena: &Arena<'static>) {
    if arena.fault().raise(Fault::RUN_CANCELLED) {
        arena.set_epitaph(&Epitaph::of(Fault::RUN_CANCELLED));
        arena.fault().seal_epitaph();
    }
}

impl fmt::Debug for RunControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let on = state.arena.is_some();
        write!(f, "RunControl {{ run is on: {on}, cancelled: {} }}", state.is_cancelled)
    }
}
