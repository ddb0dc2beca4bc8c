//! Plays a script: the calls of an interface, on one thread or on several, and the objects that they need.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Mutator;
use crate::choices::Choices;

use super::{scarce, signals};

/// Bytes of a call.
pub const CALL_BYTES: usize = 16;
/// Calls of the script of a seed.
pub const CALLS_OF_A_SEED: u64 = 200;
/// Objects of one kind that are open at once.
const MOST_OBJECTS: usize = 12;
/// How long something that must happen is waited for.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

static LISTED: AtomicBool = AtomicBool::new(false);
static THROWS: AtomicBool = AtomicBool::new(false);

/// From here on, calls are listed on standard error before they are made.
pub fn list_calls() {
    LISTED.store(true, Ordering::Relaxed);
}

/// From here on, functions that are called back panic, too; another panic than theirs ends the process.
pub fn throw() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if is_deliberate(panic.payload()) {
            return;
        }
        before(panic);
        std::process::abort();
    }));
    THROWS.store(true, Ordering::Relaxed);
}

/// The script of a seed: settings, and `calls` calls.
#[must_use]
pub fn script(seed: u64, calls: u64) -> Vec<u8> {
    let mut choices = Mutator::new(seed);
    let bytes = (calls + 1) * CALL_BYTES as u64;
    (0..bytes).map(|_| u8::try_from(choices.below(256)).unwrap_or(0)).collect()
}

/// What the settings of a script say.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    pub(super) threads: usize,
    /// Nothing is waited for that may never happen: what was submitted ends without an abort.
    pub(super) ends_alone: bool,
}

/// An interface, and the objects that were opened through it.
pub(super) trait Door: Sync {
    /// Makes one call.
    fn call(&self, choices: &mut Choices<'_>);
    /// Fails if what was submitted does not come to rest.
    fn finish(&self);
}

pub(super) fn play<D: Door>(script: &[u8], open: impl FnOnce(Settings, &mut Choices<'_>) -> D) {
    let mut parts = script.chunks(CALL_BYTES);
    let mut choices = Choices::new(parts.next().unwrap_or_default());
    let threads = choices.one_of(&[1, 1, 2, 4]);
    if choices.byte() < 64 {
        signals::begin();
    }
    let settings = Settings { threads, ends_alone: choices.byte().is_multiple_of(2) };
    let door = open(settings, &mut choices);
    let calls: Vec<_> = parts.take(4 * usize::try_from(CALLS_OF_A_SEED).unwrap_or(0)).collect();
    // The first call may be that there are no threads.
    let all_are_there = Barrier::new(threads);
    std::thread::scope(|scope| {
        let (door, calls, all_are_there) = (&door, &calls, &all_are_there);
        let make = |thread: usize| {
            all_are_there.wait();
            for call in calls.iter().filter(|call| usize::from(call[0]) % threads == thread) {
                survive(|| door.call(&mut Choices::new(&call[1..])));
            }
        };
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || make(thread))).collect();
        make(0);
        // What a thread keeps for itself is gone when it is joined.
        for other in others {
            other.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
    scarce::end();
    survive(|| door.finish());
    survive(|| drop(door));
    signals::end();
}

/// A panic that a script asked for is no defect where it comes back to the caller.
fn survive(work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work))
        && !is_deliberate(&*panic)
    {
        resume_unwind(panic);
    }
}

/// What functions panic with that are called back.
pub(super) struct Deliberate;

/// Panics when it is dropped.
pub(super) struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::panic::panic_any(Deliberate);
        }
    }
}

fn is_deliberate(payload: &(dyn Any + Send)) -> bool {
    payload.is::<Deliberate>()
        || payload.is::<Bomb>()
        || payload.downcast_ref::<&str>().is_some_and(|text| text.starts_with("deliberate"))
}

pub(super) fn throws() -> bool {
    THROWS.load(Ordering::Relaxed)
}

/// Says what is called next, where that is asked for.
pub(super) fn tell(what: fmt::Arguments<'_>) {
    if LISTED.load(Ordering::Relaxed) {
        eprintln!("{:?}: {what}", std::thread::current().id());
    }
}

/// Objects of one kind.
pub(super) struct Pool<T>(Mutex<Vec<Arc<T>>>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Pool<T> {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one. Beyond the most there may be, the oldest one goes.
    pub(super) fn put(&self, object: T) -> Arc<T> {
        let object = Arc::new(object);
        let mut all = self.lock();
        let oldest = (all.len() >= MOST_OBJECTS).then(|| all.remove(0));
        all.push(Arc::clone(&object));
        drop(all);
        drop(oldest);
        object
    }

    pub(super) fn any(&self, choices: &mut Choices<'_>) -> Option<Arc<T>> {
        let all = self.lock();
        let at = usize::from(choices.byte()).checked_rem(all.len())?;
        Some(Arc::clone(&all[at]))
    }

    pub(super) fn take(&self, choices: &mut Choices<'_>) -> Option<Arc<T>> {
        let mut all = self.lock();
        let at = usize::from(choices.byte()).checked_rem(all.len())?;
        Some(all.remove(at))
    }

    pub(super) fn all(&self) -> Vec<Arc<T>> {
        self.lock().clone()
    }
}
