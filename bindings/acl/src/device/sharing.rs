//! Memory between processes: keys of blocks, handles of physical memory.
//!
//! A key names the process that exports, and the first page in its file; it is text of at most 64 characters.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::current;
use super::mapping::{Origin, SharedPages};
use super::memory_map::{self, Purpose};
use super::virtual_memory::{self, Physical};
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;

/// Blocks that were imported by key, and their addresses.
static IMPORTED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

fn imported() -> MutexGuard<'static, BTreeMap<String, usize>> {
    IMPORTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The key of shared pages.
pub(crate) fn key(sort: &str, shared: &SharedPages) -> Answer<String> {
    let (process, page) = shared.export()?;
    Ok(format!("pto-acl-{sort}-{process}-{page}"))
}

/// Where the pages are that a key names.
pub(crate) fn parse(sort: &str, text: &str) -> Answer<Origin> {
    let rest = text.strip_prefix("pto-acl-").and_then(|rest| rest.strip_prefix(sort));
    let numbers =
        rest.and_then(|rest| rest.strip_prefix('-')).and_then(|rest| rest.split_once('-'));
    let parsed =
        numbers.and_then(|(process, page)| Some((process.parse().ok()?, page.parse().ok()?)));
    parsed.ok_or_else(|| {
        Refusal::value(format!(
            "\"{text}\" is no key of this library; pass what the exporter was given"
        ))
    })
}

/// Every process may import it.
pub(crate) fn allow_all(shared: &SharedPages) -> Answer {
    shared.allow(None)
}

/// The file of a key that this process exported.
fn exported(text: &str) -> Answer<SharedPages> {
    let shared = SharedPages::open(parse("memory", text)?)?;
    require(!shared.is_foreign(), || {
        Refusal::value("another process exported the key; it names who may import")
    })?;
    Ok(shared)
}

/// The key of a block, for other processes.
pub(crate) fn export_block(at: usize, bytes: usize, readers: Readers) -> Answer<String> {
    memory_map::device_of(at, bytes)?;
    let shared = memory_map::share(at)?;
    readers.allow(&shared)?;
    key("memory", &shared)
}

/// Who may import what is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// The processes that the exporter names.
    Named,
    /// Every process.
    All,
}

impl Readers {
    /// Says so on the pages.
    pub(crate) fn allow(self, shared: &SharedPages) -> Answer {
        if self == Self::All { allow_all(shared) } else { Ok(()) }
    }
}

/// Names the processes that may import a key of this process.
pub(crate) fn allow(text: &str, processes: &[i32]) -> Answer {
    exported(text)?.allow(Some(processes))
}

/// Puts the block of a key onto the current device: its address here.
pub(crate) fn import_block(text: String) -> Answer<usize> {
    let shared = foreign(parse("memory", &text)?)?;
    let block = memory_map::allocate_over(&current::open()?, Arc::new(shared), Purpose::Imported)?;
    imported().insert(text, block.address);
    Ok(block.address)
}

/// Ends what a key was for, in the process that imported it, and in the one that exported it.
pub(crate) fn close(text: &str) -> Answer {
    let held = imported().remove(text);
    match held {
        Some(address) => memory_map::free(address, Purpose::Imported),
        None => exported(text).map(drop),
    }
}

/// The pages of another process, which allows it.
fn foreign(origin: Origin) -> Answer<SharedPages> {
    let shared = SharedPages::open(origin)?;
    require(shared.is_foreign(), || {
        Refusal::value("the memory is of this process; import it in another one")
    })?;
    shared.check_allowed()?;
    Ok(shared)
}

/// A number for physical memory, for another process.
pub(crate) fn export_physical(memory: Handle, readers: Readers) -> Answer<u64> {
    let shared = virtual_memory::physical(memory)?.export()?;
    readers.allow(&shared)?;
    let (process, page) = shared.export()?;
    Ok(u64::from(process) << 32 | u64::from(page))
}

/// A handle for the physical memory of another process.
pub(crate) fn import_physical(handle: u64) -> Answer<Handle> {
    Ok(virtual_memory::add(Physical::imported(foreign(origin(handle)?)?)))
}

/// Names the processes that may import a number.
pub(crate) fn allow_physical(handle: u64, processes: &[i32]) -> Answer {
    SharedPages::open(origin(handle)?)?.allow(Some(processes))
}

fn origin(handle: u64) -> Answer<Origin> {
    let process = u32::try_from(handle >> 32).unwrap_or(0);
    let page = u32::try_from(handle & 0xFFFF_FFFF).unwrap_or(0);
    require(process != 0, || {
        Refusal::new(codes::BAD_VALUE, format!("{handle:#x} is no handle that was exported"))
    })?;
    Ok((process, page))
}
