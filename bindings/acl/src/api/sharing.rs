//! Memory between processes: keys of blocks, handles of physical memory.
//!
//! A key names the process that exports, and its file; it is text of at most 64 characters.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::facts::current_open;
use crate::common::argument::{Address, In, Out, Text, put_text};
use crate::common::codes;
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::mapping::{PAGE, Shared};
use crate::device::places::{self, Purpose};

use super::virtual_memory::{self, Physical};

/// What was imported by key, and where it stands.
static IMPORTED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// The key of a file of shared pages.
pub(super) fn key(sort: &str, shared: &Shared) -> String {
    let (process, file) = shared.origin();
    format!("pto-acl-{sort}-{process}-{file}")
}

/// The process and the file that a key names.
pub(super) fn parse(sort: &str, text: &str) -> Answer<(u32, i32)> {
    let rest = text.strip_prefix("pto-acl-").and_then(|rest| rest.strip_prefix(sort));
    let numbers =
        rest.and_then(|rest| rest.strip_prefix('-')).and_then(|rest| rest.split_once('-'));
    let parsed =
        numbers.and_then(|(process, file)| Some((process.parse().ok()?, file.parse().ok()?)));
    parsed.ok_or_else(|| {
        Refusal::value(format!(
            "\"{text}\" is no key of this library; pass what the exporter was given"
        ))
    })
}

/// Every process may import it.
pub(super) fn allow_all(shared: &Shared) -> Answer {
    shared.allow(None)
}

/// The file of a key that this process exported.
fn exported(text: &str) -> Answer<Shared> {
    let shared = Shared::open(parse("memory", text)?)?;
    require(!shared.is_foreign(), || {
        Refusal::value("another process exported the key; it names who may import")
    })?;
    Ok(shared)
}

api! {
    fn aclrtIpcMemGetExportKey(address: Address, bytes: usize, text: Out<u8>, room: usize, flags: u64) {
        let place = text.place("key")?;
        let at = address.required("address")?;
        require(bytes > 0, || Refusal::argument("the size is 0; export one byte at least"))?;
        require(room >= 65, || Refusal::value(format!("the key needs 65 bytes, and there are {room}")))?;
        require(flags <= 1, || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        require(at.is_multiple_of(PAGE), || Refusal::value(format!("{at:#x} does not begin a page")))?;
        places::device_of(at, bytes)?;
        let shared = places::share(at)?;
        if flags == 1 {
            allow_all(&shared)?;
        }
        put_text(&place, room, &key("memory", &shared))
    }

    fn aclrtIpcMemSetImportPid(text: Text, processes: In<i32>, count: usize) {
        let processes = processes.list("processes", count)?;
        require(count > 0, || Refusal::argument("no process is named; name one at least"))?;
        exported(&text.read("key")?)?.allow(Some(&processes))
    }

    fn aclrtIpcMemImportByKey(address: Out<Address>, text: Text, flags: u64) {
        let place = address.place("address")?;
        require(flags <= 1, || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        let text = text.read("key")?;
        let shared = Shared::open(parse("memory", &text)?)?;
        require(shared.is_foreign(), || Refusal::value("the memory is of this process; import it in another one"))?;
        shared.check_allowed()?;
        let block = places::allocate_over(&current_open()?, Arc::new(shared), Purpose::Imported)?;
        IMPORTED.lock().unwrap_or_else(PoisonError::into_inner).insert(text, block.address);
        place.set(Address::of(block.address));
        Ok(())
    }

    fn aclrtIpcMemClose(text: Text) {
        let text = text.read("key")?;
        let held = IMPORTED.lock().unwrap_or_else(PoisonError::into_inner).remove(&text);
        match held {
            Some(address) => places::free(address, Purpose::Imported),
            None => exported(&text).map(drop),
        }
    }

    fn aclrtMemExportToShareableHandle(memory: Handle, kind: u32, flags: u64, handle: Out<u64>) {
        let place = handle.place("handle")?;
        require(matches!(kind, 0 | 2), || Refusal::argument(format!("there is no kind {kind} of handles")))?;
        place.set(number(&*export(memory, flags)?));
        Ok(())
    }

    fn aclrtMemExportToShareableHandleV2(memory: Handle, flags: u64, kind: u32, handle: Out<u64>) {
        let place = handle.place("handle")?;
        require(kind != 2, || Refusal::unsupported("handles that several hosts share; use ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT"))?;
        require(kind == 1, || Refusal::argument(format!("there is no kind {kind} of handles")))?;
        place.set(number(&*export(memory, flags)?));
        Ok(())
    }

    fn aclrtMemImportFromShareableHandle(handle: u64, device: i32, memory: Out<Handle>) {
        crate::device::fleet::check(device)?;
        import(handle, &memory.place("memory")?)
    }

    fn aclrtMemImportFromShareableHandleV2(handle: In<u64>, kind: u32, flags: u64, memory: Out<Handle>) {
        require(kind != 2, || Refusal::unsupported("handles that several hosts share; use ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT"))?;
        require(kind == 1, || Refusal::argument(format!("there is no kind {kind} of handles")))?;
        require(flags == 0, || Refusal::argument("flags are reserved; pass 0"))?;
        import(handle.get("handle")?, &memory.place("memory")?)
    }

    fn aclrtMemSetPidToShareableHandle(handle: u64, processes: In<i32>, count: usize) {
        let processes = processes.list("processes", count)?;
        require(count > 0, || Refusal::argument("no process is named; name one at least"))?;
        Shared::open(origin(handle)?)?.allow(Some(&processes))
    }

    fn aclrtMemSetPidToShareableHandleV2(handle: In<u64>, kind: u32, processes: In<i32>, count: usize) {
        require(kind == 1, || Refusal::argument(format!("there is no kind {kind} of handles here")))?;
        let processes = processes.list("processes", count)?;
        Shared::open(origin(handle.get("handle")?)?)?.allow(Some(&processes))
    }
}

fn export(memory: Handle, flags: u64) -> Answer<Arc<Shared>> {
    require(flags <= 1, || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
    let shared = virtual_memory::physical(memory)?.export()?;
    if flags == 1 {
        allow_all(&shared)?;
    }
    Ok(shared)
}

fn import(handle: u64, place: &crate::common::argument::Place<Handle>) -> Answer {
    let shared = Shared::open(origin(handle)?)?;
    require(shared.is_foreign(), || {
        Refusal::value("the memory is of this process; import it in another one")
    })?;
    shared.check_allowed()?;
    place.set_at(0, virtual_memory::add(Physical::imported(shared)));
    Ok(())
}

/// A file of shared pages as a number.
fn number(shared: &Shared) -> u64 {
    let (process, file) = shared.origin();
    u64::from(process) << 32 | u64::from(file.cast_unsigned())
}

fn origin(handle: u64) -> Answer<(u32, i32)> {
    let process = u32::try_from(handle >> 32).unwrap_or(0);
    let file = u32::try_from(handle & 0xFFFF_FFFF).unwrap_or(0).cast_signed();
    require(process != 0, || {
        Refusal::new(codes::BAD_VALUE, format!("{handle:#x} is no handle that was exported"))
    })?;
    Ok((process, file))
}
