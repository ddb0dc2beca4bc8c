//! The lasting effects of injected faults on a device: streams that are stuck, and a device that is poisoned.
//!
//! ```text
//! a stuck stream:  event before it   a wait for a word that is never written   event after it
//! ```
//! The wait is a command like any other: later commands wait in its stream, and an abort drops all of them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_host::Session;
use pto_host::session::{Event as Point, Notify, Stream, ValueTest};

use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};

/// Whether a stream of the process was ever stuck: most calls look no further.
static WAS_STUCK: AtomicBool = AtomicBool::new(false);

/// Whether a stream of the process was ever stuck.
#[inline]
pub(crate) fn was_any_stuck() -> bool {
    // Relaxed: a thread that submits after a command of another one has synchronised with it, or does not know the order.
    WAS_STUCK.load(Ordering::Relaxed)
}

/// A stream that is stuck.
pub(crate) struct Stuck {
    before: Point,
    after: Point,
    /// Words that are written after it.
    words: Mutex<BTreeSet<usize>>,
    /// The word that it waits for.
    _word: Notify,
}

impl Stuck {
    /// Lets a stream be stuck from here on.
    fn begin(session: &Session, stream: &Stream) -> Answer<Arc<Self>> {
        let (before, after, word) = (session.event()?, session.event()?, session.notify()?);
        stream.record(&before)?;
        stream.wait_value(word.address(), ValueTest::EQUAL, 1)?;
        stream.record(&after)?;
        Ok(Arc::new(Self { before, after, words: Mutex::default(), _word: word }))
    }

    /// A later command writes the word at this address.
    pub(crate) fn note_word(&self, address: usize) {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
    }

    fn writes(&self, address: usize) -> bool {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).contains(&address)
    }

    /// Whether an abort or a reset has ended it.
    pub(crate) fn is_over(&self) -> bool {
        self.after.is_complete()
    }

    /// Waits for what was submitted before it, and refuses to wait for later commands.
    pub(crate) fn refuse_to_wait(&self) -> Answer {
        self.before.synchronize()?;
        require(self.is_over(), || {
            let text = "a stream is stuck because PTO_ACL_FAIL asks for it, and this wait would never end; wait with a limit, abort the stream, or reset the device";
            Refusal::new(codes::STREAM_TIMEOUT, text)
        })
    }
}

/// The damage of a device.
#[derive(Default)]
pub(crate) struct Damage {
    is_poisoned: AtomicBool,
    stuck: Mutex<Vec<Arc<Stuck>>>,
}

impl Damage {
    fn stuck(&self) -> MutexGuard<'_, Vec<Arc<Stuck>>> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a stream of the device be stuck.
    pub(crate) fn stick(&self, session: &Session, stream: &Stream) -> Answer<Arc<Stuck>> {
        // Relaxed: as for `was_any_stuck`.
        WAS_STUCK.store(true, Ordering::Relaxed);
        let stuck = Stuck::begin(session, stream)?;
        let mut all = self.stuck();
        all.retain(|other| !other.is_over());
        all.push(Arc::clone(&stuck));
        Ok(stuck)
    }

    /// A stream of the device that is stuck.
    pub(crate) fn some_stuck(&self) -> Option<Arc<Stuck>> {
        self.stuck().iter().find(|stuck| !stuck.is_over()).cloned()
    }

    /// The stream that is stuck and would write the word at this address.
    pub(crate) fn writer_of(&self, address: usize) -> Option<Arc<Stuck>> {
        self.stuck().iter().find(|stuck| !stuck.is_over() && stuck.writes(address)).cloned()
    }

    /// Where a stream is stuck, drops what waits on the device: the memory that it would use may be gone. Whether one was.
    pub(crate) fn release(&self, session: &Session) -> bool {
        let stuck = std::mem::take(&mut *self.stuck());
        let is_stuck = stuck.iter().any(|stuck| !stuck.is_over());
        if is_stuck {
            session.abort();
        }
        is_stuck
    }

    /// Poisons the device: it executes nothing from now on.
    pub(crate) fn poison(&self) {
        // Relaxed: a command that another thread submits at this moment may still be done.
        self.is_poisoned.store(true, Ordering::Relaxed);
    }

    /// Whether the device does nothing.
    #[inline]
    pub(crate) fn is_poisoned(&self) -> bool {
        // Relaxed: as for `poison`.
        self.is_poisoned.load(Ordering::Relaxed)
    }

    /// Refuses where the device does nothing.
    pub(crate) fn check_healthy(&self) -> Answer {
        require(!self.is_poisoned(), || {
            let text = "the device is poisoned because PTO_ACL_FAIL asks for it; call aclrtResetDeviceForce";
            Refusal::new(codes::DRIVER, text)
        })
    }

    /// A reset by force has ended every command: the device is as new.
    pub(crate) fn heal(&self) {
        self.stuck().clear();
        // Relaxed: as for `poison`.
        self.is_poisoned.store(false, Ordering::Relaxed);
    }
}
