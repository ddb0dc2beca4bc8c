//! Notifies (one record, one wait), words that streams write and wait for, and events between processes.

use std::sync::Arc;

use super::sharing::readers;
use super::time::seconds;
use crate::common::argument::{Address, In, Out, Text, put_text};
use crate::common::codes;
use crate::common::entry::api;
use crate::common::notes::{Note, Noted};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::notify::{self, Notify};
use crate::device::{current, memory_map};

api! {
    fn aclrtCreateNotify(notify: Out<Handle>, flags: u64) {
        let output = notify.required("notify")?;
        require(flags <= 1, || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        output.set(notify::create()?);
        Ok(())
    }

    fn aclrtDestroyNotify(notify: Handle) {
        notify::destroy(named(notify)?)
    }

    fn aclrtRecordNotify(notify: Handle, stream: Handle) {
        let notify = checked(notify)?;
        notify.record(&*current::submitting(stream)?)
    }

    fn aclrtWaitAndResetNotify(notify: Handle, stream: Handle, timeout: u32) {
        let notify = checked(notify)?;
        notify.wait(&*current::submitting(stream)?, seconds(timeout))
    }

    fn aclrtGetNotifyId(notify: Handle, id: Out<u32>) {
        let output = id.required("id")?;
        checked(notify)?;
        output.set(u32::try_from(notify >> 4 & 0xFFFF_FFFF).unwrap_or(0));
        Ok(())
    }

    fn aclrtNotifyGetExportKey(notify: Handle, text: Out<u8>, room: usize, flags: u64) {
        let output = text.required("key")?;
        require(room >= 65, || Refusal::value(format!("the key needs 65 bytes, and there are {room}")))?;
        require(matches!(flags, 0 | 2), || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        put_text(&output, room, &checked(notify)?.export(readers(flags == 2))?)
    }

    fn aclrtNotifyImportByKey(notify: Out<Handle>, text: Text, flags: u64) {
        let output = notify.required("notify")?;
        require(matches!(flags, 0 | 2), || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        output.set(notify::import(&text.read("key")?)?);
        Ok(())
    }

    fn aclrtNotifySetImportPid(notify: Handle, processes: In<i32>, count: usize) {
        let processes = processes.list("processes", count)?;
        require(count > 0, || Refusal::argument("no process is named; name one at least"))?;
        checked(notify)?.allow(&processes)
    }

    fn aclrtValueWrite(address: Address, value: u64, flags: u32, stream: Handle) {
        require(flags == 0, || Refusal::argument("flag is reserved; pass 0"))?;
        let at = word(address)?;
        notify::write_word(&*current::submitting(stream)?, at, value)
    }

    fn aclrtValueWait(address: Address, value: u64, test: u32, stream: Handle) {
        let test = notify::test_of(test).ok_or_else(|| {
            Refusal::argument(format!("there is no test {test} of a word; there are 0 to 3"))
        })?;
        let at = word(address)?;
        notify::wait_for_word(&*current::submitting(stream)?, at, test, value)
    }

    fn aclrtIpcGetEventHandle(event: Handle, handle: Out<[u8; 64]>) {
        let output = handle.required("handle")?;
        let text = notify::export_event(&*super::event::checked(event)?)?;
        let mut bytes = [0; 64];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        output.set(bytes);
        Ok(())
    }

    fn aclrtIpcOpenEventHandle(handle: EventKey, event: Out<Handle>) {
        let output = event.required("event")?;
        let text = String::from_utf8_lossy(&handle.0);
        output.set(notify::import_event(text.trim_end_matches('\0'))?);
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

fn named(notify: Handle) -> Answer<Handle> {
    require(notify != 0, || Refusal::argument("notify is null; pass a notify"))?;
    Ok(notify)
}

fn checked(notify: Handle) -> Answer<Arc<Notify>> {
    notify::get(named(notify)?)
}

/// A word of a device, aligned.
fn word(address: Address) -> Answer<usize> {
    let at = address.required("address")?;
    require(at.is_multiple_of(8), || {
        Refusal::new(codes::BAD_VALUE, format!("{at:#x} is not a multiple of 8"))
    })?;
    require(memory_map::device_of(at, 8)?.is_some(), || {
        Refusal::value(format!("{at:#x} is no address of a device"))
    })?;
    Ok(at)
}
