//! Notifies (one record, one wait), words that streams write and wait for, and events between processes.

use std::sync::Arc;
use std::time::Duration;

use pto_host::session::ValueTest;

use super::current;
use super::event::{Event, IPC, Style};
use super::lane::Engine;
use super::mapping::SharedPages;
use super::profile;
use super::sharing::{Readers, allow_all, key, parse};
use super::stream::Stream;
use super::word::{WordPage, wait_at, write_at};
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, HandleTable, Kind};

/// The notifies of the process.
static NOTIFIES: HandleTable<Notify> = HandleTable::new(Kind::Notify);

/// A word that is 1 from a record to the wait that takes it.
pub(crate) struct Notify {
    handle: Handle,
    words: Arc<WordPage>,
}

/// A notify on the current device.
pub(crate) fn create() -> Answer<Handle> {
    over(None)
}

fn over(shared: Option<SharedPages>) -> Answer<Handle> {
    let words = Arc::new(WordPage::over(&current::open()?, shared)?);
    Ok(NOTIFIES.open_with(|handle| Notify { handle, words }).handle)
}

/// The notify of a handle.
pub(crate) fn get(notify: Handle) -> Answer<Arc<Notify>> {
    NOTIFIES.get(notify)
}

/// Forgets a notify.
pub(crate) fn destroy(notify: Handle) -> Answer {
    NOTIFIES.take(notify).map(drop)
}

/// The notify of another process.
pub(crate) fn import(key: &str) -> Answer<Handle> {
    let shared = SharedPages::open(parse("notify", key)?)?;
    shared.check_allowed()?;
    over(Some(shared))
}

impl Notify {
    /// A stream records it in its turn.
    pub(crate) fn record(&self, stream: &Stream) -> Answer {
        let (notify, word) = (self.handle, self.words.at(0));
        stream.take(Engine::Stream, "notify record", &[], move |lane| {
            lane.records(notify)?;
            word.write(lane, 1)
        })
    }

    /// A stream waits for its record, and takes it.
    pub(crate) fn wait(&self, stream: &Stream, limit: Option<Duration>) -> Answer {
        let (notify, word) = (self.handle, self.words.at(0));
        stream.take(Engine::Stream, "notify wait", &[], move |lane| {
            races::takes(lane.number(), notify);
            profile::waits(notify);
            word.wait(lane, ValueTest::EQUAL, 1, limit)?;
            word.write(lane, 0)
        })
    }

    /// Its key for other processes.
    pub(crate) fn export(&self, readers: Readers) -> Answer<String> {
        let shared = self.words.shared()?;
        readers.allow(shared)?;
        key("notify", shared)
    }

    /// Names the processes that may import it.
    pub(crate) fn allow(&self, processes: &[i32]) -> Answer {
        self.words.shared()?.allow(Some(processes))
    }
}

/// A stream writes a word of its device in its turn.
pub(crate) fn write_word(stream: &Stream, at: usize, value: u64) -> Answer {
    stream.take(Engine::Stream, "value write", &[], move |lane| write_at(lane, at, value))
}

/// What a word is compared by; `None`: there is no such test.
pub(crate) fn test_of(number: u32) -> Option<ValueTest> {
    let tests = [ValueTest::AT_LEAST, ValueTest::EQUAL, ValueTest::AND, ValueTest::NOR];
    tests.get(number as usize).copied()
}

/// A stream waits for a word of its device.
pub(crate) fn wait_for_word(stream: &Stream, at: usize, test: ValueTest, value: u64) -> Answer {
    stream.take(Engine::Stream, "value wait", &[], move |lane| {
        races::waits_for_unknown(lane.number());
        wait_at(lane, at, (test, value), None)
    })
}

/// The key of an event, for every process.
pub(crate) fn export_event(event: &Event) -> Answer<String> {
    let words = event.words.as_ref().ok_or_else(|| {
        let text = "the event was made without ACL_EVENT_IPC, so that no other process can have it";
        Refusal::value(text)
    })?;
    let shared = words.shared()?;
    allow_all(shared)?;
    key("event", shared)
}

/// The event of another process.
pub(crate) fn import_event(key: &str) -> Answer<Handle> {
    let shared = SharedPages::open(parse("event", key)?)?;
    require(shared.is_foreign(), || {
        Refusal::value("the event is of this process; open it in another one")
    })?;
    let open = current::open()?;
    let words = WordPage::over(&open, Some(shared))?;
    Event::open(&open, Style::New, IPC, Some(words))
}
