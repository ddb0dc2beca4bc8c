//! Functions of Python that threads of a session call. An interpreter that ends takes the GIL away from such a thread for ever, so the end of the
//! interpreter waits for the calls that are under way, and no call begins after that.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

/// How long the end of the interpreter sleeps between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The bit that no call begins any more; below it, how many are under way. Relaxed: it is one word, and what the calls share has locks of its own.
static CALLS: AtomicU32 = AtomicU32::new(0);
const IS_OVER: u32 = 1 << 31;

/// A call that is under way.
struct UnderWay;

impl UnderWay {
    fn begin() -> Option<Self> {
        let is_over = CALLS.fetch_add(1, Ordering::Relaxed) & IS_OVER != 0;
        let begun = Self;
        (!is_over).then_some(begun)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Calls a function that has no arguments.
///
/// # Errors
/// What it raised, as text; the interpreter has ended, or ends.
pub(crate) fn call(function: &Py<PyAny>) -> Result<(), String> {
    let ended = || "the interpreter has ended, and calls no function of Python".to_owned();
    let _under_way = UnderWay::begin().ok_or_else(ended)?;
    let called = Python::try_attach(|py| function.call0(py).map(drop));
    called.ok_or_else(ended)?.map_err(|error| error.to_string())
}

/// The interpreter is about to end: waits for the calls that are under way.
#[pyfunction]
fn end_callbacks(py: Python<'_>) -> PyResult<()> {
    CALLS.fetch_or(IS_OVER, Ordering::Relaxed);
    while CALLS.load(Ordering::Relaxed) != IS_OVER {
        py.detach(|| std::thread::sleep(LOOK_EVERY));
        py.check_signals()?;
    }
    Ok(())
}

/// In a child of `fork`: the calls of the parent do not go on here.
#[pyfunction]
fn forget_callbacks() {
    CALLS.store(0, Ordering::Relaxed);
}

/// Lets the interpreter say when it ends and when it has forked.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let end = wrap_pyfunction!(end_callbacks, module)?;
    py.import("atexit")?.call_method1("register", (end,))?;
    let in_child = pyo3::types::PyDict::new(py);
    in_child.set_item("after_in_child", wrap_pyfunction!(forget_callbacks, module)?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&in_child))?;
    Ok(())
}
