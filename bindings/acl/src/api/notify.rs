//! Notifies (one record, one wait), words that streams write and wait for, and events between processes.

use std::sync::Arc;

use pto_host::session::ValueTest;

use super::facts::current_open;
use super::sharing::{allow_all, key, parse};
use super::time::seconds;
use crate::common::argument::{Address, In, Out, Text, put_text};
use crate::common::codes;
use crate::common::entry::api;
use crate::common::notes::{Note, Noted};
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, Kind, Table};
use crate::device::current;
use crate::device::event::{Event, IPC, Style};
use crate::device::lane::{Command, Engine, Work};
use crate::device::mapping::Shared;
use crate::device::places;
use crate::device::profile;
use crate::device::word::{Words, wait_at, write_at};

/// The notifies of the process.
static NOTIFIES: Table<Notify> = Table::new(Kind::Notify);

/// A word that is 1 from a record to the wait that takes it.
struct Notify(Arc<Words>);

api! {
    fn aclrtCreateNotify(notify: Out<Handle>, flags: u64) {
        let place = notify.place("notify")?;
        require(flags <= 1, || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        place.set(NOTIFIES.open(Notify(Arc::new(Words::over(&current_open()?, None)?))));
        Ok(())
    }

    fn aclrtDestroyNotify(notify: Handle) {
        checked(notify)?;
        NOTIFIES.take(notify).map(drop)
    }

    fn aclrtRecordNotify(notify: Handle, stream: Handle) {
        let word = checked(notify)?.0.at(0);
        let work: Work = Arc::new(move |lane| {
            races::recorded(lane.number(), notify);
            profile::recorded(notify);
            word.write(lane, 1)
        });
        current::submitting(stream)?.submit(Command::new(Engine::Stream, "notify record", work))
    }

    fn aclrtWaitAndResetNotify(notify: Handle, stream: Handle, timeout: u32) {
        let word = checked(notify)?.0.at(0);
        let work: Work = Arc::new(move |lane| {
            races::takes(lane.number(), notify);
            profile::waits(notify);
            word.wait(lane, ValueTest::EQUAL, 1, seconds(timeout))?;
            word.write(lane, 0)
        });
        current::submitting(stream)?.submit(Command::new(Engine::Stream, "notify wait", work))
    }

    fn aclrtGetNotifyId(notify: Handle, id: Out<u32>) {
        let place = id.place("id")?;
        checked(notify)?;
        place.set(u32::try_from(notify >> 4 & 0xFFFF_FFFF).unwrap_or(0));
        Ok(())
    }

    fn aclrtNotifyGetExportKey(notify: Handle, text: Out<u8>, room: usize, flags: u64) {
        let place = text.place("key")?;
        require(room >= 65, || Refusal::value(format!("the key needs 65 bytes, and there are {room}")))?;
        require(matches!(flags, 0 | 2), || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        let shared = Arc::clone(&checked(notify)?.0.shared);
        if flags == 2 {
            allow_all(&shared)?;
        }
        put_text(&place, room, &key("notify", &shared))
    }

    fn aclrtNotifyImportByKey(notify: Out<Handle>, text: Text, flags: u64) {
        let place = notify.place("notify")?;
        require(matches!(flags, 0 | 2), || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        let shared = Shared::open(parse("notify", &text.read("key")?)?)?;
        shared.check_allowed()?;
        place.set(NOTIFIES.open(Notify(Arc::new(Words::over(&current_open()?, Some(shared))?))));
        Ok(())
    }

    fn aclrtNotifySetImportPid(notify: Handle, processes: In<i32>, count: usize) {
        let processes = processes.list("processes", count)?;
        require(count > 0, || Refusal::argument("no process is named; name one at least"))?;
        checked(notify)?.0.shared.allow(Some(&processes))
    }

    fn aclrtValueWrite(address: Address, value: u64, flags: u32, stream: Handle) {
        require(flags == 0, || Refusal::argument("flag is reserved; pass 0"))?;
        let at = word(address)?;
        let work: Work = Arc::new(move |lane| write_at(lane, at, value));
        current::submitting(stream)?.submit(Command::new(Engine::Stream, "value write", work))
    }

    fn aclrtValueWait(address: Address, value: u64, test: u32, stream: Handle) {
        let test = match test {
            0 => ValueTest::AT_LEAST,
            1 => ValueTest::EQUAL,
            2 => ValueTest::AND,
            3 => ValueTest::NOR,
            _ => return Err(Refusal::argument(format!("there is no test {test} of a word; there are 0 to 3"))),
        };
        let at = word(address)?;
        let work: Work = Arc::new(move |lane| {
            races::waits_for_unknown(lane.number());
            wait_at(lane, at, (test, value), None)
        });
        current::submitting(stream)?.submit(Command::new(Engine::Stream, "value wait", work))
    }

    fn aclrtIpcGetEventHandle(event: Handle, handle: Out<[u8; 64]>) {
        let place = handle.place("handle")?;
        let event = super::event::checked(event)?;
        let words = event.words.as_ref().ok_or_else(|| {
            Refusal::value("the event was made without ACL_EVENT_IPC, so that no other process can have it")
        })?;
        allow_all(&words.shared)?;
        let mut bytes = [0; 64];
        let text = key("event", &words.shared);
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        place.set(bytes);
        Ok(())
    }

    fn aclrtIpcOpenEventHandle(handle: EventKey, event: Out<Handle>) {
        let place = event.place("event")?;
        let text = String::from_utf8_lossy(&handle.0);
        let shared = Shared::open(parse("event", text.trim_end_matches('\0'))?)?;
        require(shared.is_foreign(), || {
            Refusal::value("the event is of this process; open it in another one")
        })?;
        let open = current_open()?;
        let words = Words::over(&open, Some(shared))?;
        place.set(Event::open(&open, Style::New, IPC, Some(words))?);
        Ok(())
    }
}

/// `aclrtIpcEventHandle`, which is passed by value.
#[repr(C)]
struct EventKey([u8; 64]);

impl Noted for EventKey {
    fn note(&self) -> Note {
        Note::Foreign
    }
}

fn checked(notify: Handle) -> Answer<Arc<Notify>> {
    require(notify != 0, || Refusal::argument("notify is null; pass a notify"))?;
    NOTIFIES.get(notify)
}

/// A word of a device, aligned.
fn word(address: Address) -> Answer<usize> {
    let at = address.required("address")?;
    require(at.is_multiple_of(8), || {
        Refusal::new(codes::BAD_VALUE, format!("{at:#x} is not a multiple of 8"))
    })?;
    require(places::device_of(at, 8)?.is_some(), || {
        Refusal::value(format!("{at:#x} is no address of a device"))
    })?;
    Ok(at)
}
