//! Words of 64 bits that streams write and wait for, on a page that processes can share: notifies, events between processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use pto_host::Event;
use pto_host::session::{EventFuture, Stream, ValueTest};

use super::lane::Lane;
use super::mapping::{self, PAGE, SharedPages};
use super::memory_map::{self, Purpose};
use super::open::{Open, gm};
use super::{transfer, waits};
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal};
use crate::common::watch::{self, Watcher};

/// A page of words.
pub(crate) struct WordPage {
    pub(crate) open: Arc<Open>,
    shared: Option<Arc<SharedPages>>,
    address: usize,
}

impl WordPage {
    /// A new page of zeros on a device, or the page of another process.
    pub(crate) fn over(open: &Arc<Open>, shared: Option<SharedPages>) -> Answer<Self> {
        let open = Arc::clone(open);
        // Pages of a machine cannot be shared: then they are of the device alone.
        if shared.is_none() && mapping::check_supported().is_err() {
            let address = memory_map::allocate(&open, PAGE, Purpose::Words)?.address;
            transfer::fill(address, 0, PAGE);
            return Ok(Self { open, shared: None, address });
        }
        let shared = Arc::new(shared.map_or_else(|| SharedPages::new(PAGE), Ok)?);
        let block = memory_map::allocate_over(&open, Arc::clone(&shared), Purpose::Words)?;
        Ok(Self { open, shared: Some(shared), address: block.address })
    }

    /// The page, for other processes.
    pub(crate) fn shared(&self) -> Answer<&SharedPages> {
        mapping::check_supported()?;
        self.shared.as_deref().ok_or_else(|| Refusal::value("the page is of this process alone"))
    }

    /// The word `index`.
    pub(crate) fn at(self: &Arc<Self>, index: usize) -> WordRef {
        WordRef { words: Arc::clone(self), address: self.address + 8 * index }
    }
}

impl Drop for WordPage {
    fn drop(&mut self) {
        // A page that cannot be given back stays reserved.
        memory_map::free(self.address, Purpose::Words).unwrap_or_default();
    }
}

/// One word.
#[derive(Clone)]
pub(crate) struct WordRef {
    words: Arc<WordPage>,
    address: usize,
}

impl WordRef {
    /// The word as the host reaches it.
    pub(crate) fn cell(&self) -> &AtomicU64 {
        cell(self.address)
    }

    /// Writes it in the lane's turn.
    pub(crate) fn write(&self, lane: &Lane, value: u64) -> Answer {
        if lane.open.index == self.words.open.index {
            return write_at(lane, self.address, value);
        }
        let word = self.clone();
        lane.call(move || {
            // Release: pairs with the Acquire load in `wait_on_host`.
            word.cell().store(value, Ordering::Release);
            Ok(())
        })
    }

    /// Raises it to `value` when the last record of `event` is complete, which it is as well where its stream drops the record.
    pub(crate) fn raise(&self, lane: &Lane, event: &Event, value: u64) {
        if lane.open.index == self.words.open.index {
            lane.writes_word(self.address);
        }
        let raise = Raise { record: event.recorded(), word: self.clone(), value };
        Arc::new(raise).wake();
    }

    /// Makes the lane wait until the word is as `test` says, at most for `limit`.
    pub(crate) fn wait(
        &self,
        lane: &Lane,
        test: ValueTest,
        value: u64,
        limit: Option<Duration>,
    ) -> Answer {
        if lane.open.index == self.words.open.index {
            return wait_at(lane, self.address, (test, value), limit);
        }
        let (word, is_dropped) = (self.clone(), lane.drops());
        lane.call(move || wait_on_host(word.cell(), (test, value), limit, is_dropped))
    }
}

/// What raises a word when a record is complete.
struct Raise {
    record: EventFuture,
    word: WordRef,
    value: u64,
}

impl Wake for Raise {
    /// Some record of the event is complete. Records of several streams end in any order, so that the word only grows.
    fn wake(self: Arc<Self>) {
        if self.record.look(&Waker::from(Arc::clone(&self))).is_ready() {
            // Release: pairs with the Acquire load in `wait_on_host`, in this process or another.
            self.word.cell().fetch_max(self.value, Ordering::Release);
        }
    }
}

/// Writes the word at an address of the lane's device in its turn.
pub(crate) fn write_at(lane: &Lane, address: usize, value: u64) -> Answer {
    lane.writes_word(address);
    lane.stream().write_value(gm(address), value)?;
    Ok(())
}

/// Makes the lane wait for the word at an address of its device, at most for `limit`.
pub(crate) fn wait_at(
    lane: &Lane,
    address: usize,
    (test, value): (ValueTest, u64),
    limit: Option<Duration>,
) -> Answer {
    let at = gm(address);
    if let Some(limit) = limit {
        lane.stream().wait_value_within(at, test, value, limit)?;
        return Ok(());
    }
    let wait = |stream: &Stream| {
        stream.wait_value(at, test, value)?;
        Ok(())
    };
    // A stream is stuck only where a user asks for it.
    if watch::has(Watcher::Environment) {
        lane.awaits_word(address, wait)
    } else {
        wait(lane.stream())
    }
}

/// A word at an address of GM, as the host reaches it.
pub(crate) fn cell<'a>(address: usize) -> &'a AtomicU64 {
    // SAFETY: the callers have looked up that these eight bytes are in a live block, aligned; pages that are mapped stay readable.
    unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }
}

/// Waits on a thread of the host, unless the wait is no longer needed.
pub(crate) fn wait_on_host(
    cell: &AtomicU64,
    (test, value): (ValueTest, u64),
    limit: Option<Duration>,
    is_dropped: impl Fn() -> bool,
) -> Answer {
    // Acquire: pairs with the Release store in `WordRef::write`, and with the Release maximum in `Raise::wake`.
    let is_met = || test.is_met(cell.load(Ordering::Acquire), value) || is_dropped();
    waits::wait_until(limit, is_met).map_err(timed_out)
}

/// A wait of the host was in vain.
pub(crate) fn timed_out(waited: Duration) -> Refusal {
    let text = format!("a wait was not over after {waited:?}; look at who was to end it");
    Refusal::new(codes::WAIT_TIMEOUT, text)
}
