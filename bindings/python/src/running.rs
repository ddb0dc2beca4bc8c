//! A run without the GIL, which the user can interrupt: the run is on a thread of its own, and the caller's thread looks
//! for signals now and then.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pto_host::RunControl;
use pto_native::Failure;
use pyo3::prelude::*;

use crate::failure::raised_from;

/// How often the caller's thread looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Calls `run` with a control; meanwhile other threads have the GIL, and `progress` gets its progress. An exception
/// of a signal handler or of `progress` cancels the run, and is raised when the run has ended.
pub(crate) fn interruptible<R: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    run: impl FnOnce(&RunControl) -> R + Send,
) -> PyResult<R> {
    let control = RunControl::new();
    let (send, receive) = channel();
    let mut interrupted = None;
    let result = std::thread::scope(|scope| {
        let on_thread = control.clone();
        scope.spawn(move || {
            // The receiver lives until it has got this.
            let _: Result<(), _> = send.send(run(&on_thread));
        });
        // A reference to the receiver stays on this thread.
        let receive = std::sync::Mutex::new(receive);
        loop {
            let waited = py.detach(|| match receive.lock() {
                Ok(receive) => receive.recv_timeout(LOOK_EVERY),
                Err(_) => Err(RecvTimeoutError::Disconnected),
            });
            match waited {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if interrupted.is_none() => {
                    if let Err(error) = look(py, progress, &control) {
                        control.cancel();
                        interrupted = Some(error);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    });
    match (interrupted, result) {
        (Some(error), _) => Err(error),
        (None, Some(result)) => Ok(result),
        (None, None) => Err(crate::failure::invalid("the run's thread panicked")),
    }
}

/// Calls what may wait, such as for room in a ring; meanwhile other threads have the GIL.
pub(crate) fn unlocked<R: Send, E: Into<Failure> + Send>(
    py: Python<'_>,
    call: impl FnOnce() -> Result<R, E> + Send,
) -> PyResult<R> {
    py.detach(call).map_err(raised_from)
}

/// Waits by `wait`; meanwhile other threads have the GIL. `wait` asks now and then whether to go on: an exception of a signal handler ends it, and is raised.
pub(crate) fn until_done<E: Into<Failure> + Send>(
    py: Python<'_>,
    wait: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<(), E> + Send,
) -> PyResult<()> {
    let mut interrupted = None;
    let ended = py.detach(|| {
        wait(&mut || {
            interrupted = Python::attach(|py| py.check_signals()).err();
            interrupted.is_none()
        })
    });
    match interrupted {
        Some(error) => Err(error),
        None => ended.map_err(raised_from),
    }
}

fn look(py: Python<'_>, progress: Option<&Py<PyAny>>, control: &RunControl) -> PyResult<()> {
    py.check_signals()?;
    if let (Some(callback), Some(now)) = (progress, control.progress()) {
        callback.call1(py, (now.completed, now.added))?;
    }
    Ok(())
}
