//! How far a run is, while it lasts: read from the lines that the AICPU instances write.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pto_abi::arena::Arena;
use pto_abi::runtime::InstanceLine;
use pto_abi::sync::{AtomicU64, Ordering};

/// How often a watcher is called.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How far a run is. The counts are late: instances report when they are idle, or every few thousand tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// Tasks added.
    pub added: u64,
    /// Tasks published.
    pub published: u64,
    /// Tasks completed.
    pub completed: u64,
}

impl RunProgress {
    pub(crate) fn read(arena: &Arena<'_>) -> Self {
        let sum = |counter: fn(&InstanceLine) -> &AtomicU64| {
            arena.instances().iter().map(|line| counter(line).load(Ordering::Relaxed)).sum()
        };
        Self {
            added: sum(|line| &line.added),
            published: sum(|line| &line.published),
            completed: sum(|line| &line.completed),
        }
    }
}

/// Calls `run`, and meanwhile calls `watch` with the progress of the run on `arena`.
///
/// # Errors
/// No thread can be started that watches; `run` was not called.
pub(crate) fn watched<R>(
    arena: &Arena<'static>,
    mut watch: impl FnMut(RunProgress) + Send,
    run: impl FnOnce() -> R,
) -> io::Result<R> {
    let (running, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("pto-watch".to_owned());
        named.spawn_scoped(scope, move || {
            while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                watch(RunProgress::read(arena));
            }
        })?;
        let result = run();
        drop(running);
        Ok(result)
    })
}
