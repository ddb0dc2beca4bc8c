//! Virtual memory: addresses are reserved, physical memory is allocated, and one is mapped at the other.
//!
//! Why it is so: `docs/decisions/cann-memory.md`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fleet;
use super::mapping::{self, SharedPages};
use super::memory_map::{self, Purpose};
use super::open::Open;
use crate::common::notes::Pointee;
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, HandleTable, Kind};

static PHYSICAL: HandleTable<Physical> = HandleTable::new(Kind::Physical);

/// Where physical memory is mapped.
static MAPPINGS: Mutex<BTreeMap<usize, (Handle, Arc<Physical>)>> = Mutex::new(BTreeMap::new());

/// Physical memory: it is freed when it has no handle and no mapping.
pub(crate) struct Physical {
    shared: Arc<SharedPages>,
    was_exported: AtomicBool,
    counted: Option<(Arc<Open>, u64)>,
    pub(crate) property: Property,
}

impl Physical {
    /// Memory of another process.
    pub(crate) fn imported(shared: SharedPages) -> Self {
        Self {
            shared: Arc::new(shared),
            was_exported: AtomicBool::new(false),
            counted: None,
            property: Property::default(),
        }
    }

    /// The pages, for another process; once.
    pub(crate) fn export(&self) -> Answer<Arc<SharedPages>> {
        // Relaxed: no other memory is published by it.
        let again = self.was_exported.swap(true, Ordering::Relaxed);
        require(!again, || {
            Refusal::value("the memory was exported; a handle can be exported once")
        })?;
        Ok(Arc::clone(&self.shared))
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        if let Some((open, bytes)) = &self.counted {
            open.give_back(*bytes);
        }
    }
}

/// `aclrtPhysicalMemProp`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Property {
    pub(crate) handle_kind: u32,
    pub(crate) allocation_kind: u32,
    pub(crate) attribute: u32,
    pub(crate) location: Location,
    pub(crate) reserve: u64,
}

impl Pointee for Property {}

/// `aclrtMemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Location {
    pub(crate) id: u32,
    pub(crate) kind: u32,
}

impl Pointee for Location {}

const _: () = assert!(size_of::<Property>() == 32);

fn mappings() -> MutexGuard<'static, BTreeMap<usize, (Handle, Arc<Physical>)>> {
    MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The physical memory of a handle.
pub(crate) fn physical(handle: Handle) -> Answer<Arc<Physical>> {
    PHYSICAL.get(handle)
}

/// A handle for physical memory.
pub(crate) fn add(memory: Physical) -> Handle {
    PHYSICAL.open(memory)
}

/// Takes physical memory where a property says.
pub(crate) fn allocate(bytes: usize, property: Property) -> Answer<Handle> {
    mapping::check_supported()?;
    let counted = if property.location.kind == 1 {
        let open = fleet::open(i32::try_from(property.location.id).unwrap_or(-1))?;
        open.take(bytes as u64)?;
        Some((open, bytes as u64))
    } else {
        None
    };
    let shared = SharedPages::new(bytes).inspect_err(|_| {
        if let Some((open, bytes)) = &counted {
            open.give_back(*bytes);
        }
    })?;
    let was_exported = AtomicBool::new(false);
    Ok(add(Physical { shared: Arc::new(shared), was_exported, counted, property }))
}

/// Gives a handle back; the memory goes when it is mapped nowhere.
pub(crate) fn free(handle: Handle) -> Answer {
    PHYSICAL.take(handle).map(drop)
}

/// Gives reserved addresses back.
pub(crate) fn release_addresses(at: usize) -> Answer {
    let block = memory_map::block_at(at);
    let end = block.map_or(at, |block| block.address + block.bytes);
    let mapped = mappings().range(at..end.max(at + 1)).count();
    require(mapped == 0, || {
        Refusal::value(format!(
            "{mapped} pieces of physical memory are mapped at these addresses; unmap them first"
        ))
    })?;
    memory_map::free(at, Purpose::Addresses)
}

/// Maps all of a handle's memory at reserved addresses.
pub(crate) fn map(at: usize, bytes: usize, handle: Handle) -> Answer {
    let memory = physical(handle)?;
    require(bytes == memory.shared.bytes(), || {
        Refusal::value(format!(
            "{bytes} bytes are not the size of the physical memory, {}",
            memory.shared.bytes()
        ))
    })?;
    let block = memory_map::block_at(at).filter(|block| {
        block.purpose == Purpose::Addresses
            && at + bytes <= block.address + mapping::pages(block.bytes)
    });
    require(block.is_some() && at.is_multiple_of(mapping::PAGE), || {
        Refusal::value(format!(
            "{bytes} bytes at {at:#x} are not reserved addresses; reserve them first"
        ))
    })?;
    let mut mappings = mappings();
    let below = mappings.range(..at + bytes).next_back();
    require(below.is_none_or(|(start, (_, held))| start + held.shared.bytes() <= at), || {
        Refusal::value(format!("something is mapped at {at:#x}; unmap it first"))
    })?;
    memory.shared.map_at(at)?;
    mappings.insert(at, (handle, memory));
    memory_map::mapped(at, bytes);
    Ok(())
}

/// Unmaps what was mapped at an address.
pub(crate) fn unmap(at: usize) -> Answer {
    let mut mappings = mappings();
    let (_, memory) = mappings.remove(&at).ok_or_else(|| {
        Refusal::value(format!("nothing is mapped at {at:#x}; unmap where it was mapped, once"))
    })?;
    memory_map::unmapped(at);
    races::freed(at, memory.shared.bytes());
    mapping::restore(at, memory.shared.bytes())
}

/// A device is reset: what is mapped at its addresses goes, and so does its physical memory.
pub(crate) fn forget_all(open: &Open) {
    let here: Vec<usize> = mappings().keys().copied().filter(|at| open.has(*at)).collect();
    // What cannot be unmapped stays there, at addresses that are not given out again.
    here.into_iter().for_each(|at| unmap(at).unwrap_or_default());
    for (handle, memory) in PHYSICAL.all() {
        if memory.counted.as_ref().is_some_and(|(owner, _)| owner.index == open.index) {
            PHYSICAL.forget(handle);
        }
    }
}

/// The handle of what is mapped at an address; a new one where it was freed.
pub(crate) fn retain(at: usize) -> Answer<Handle> {
    let (_, held, memory) = mapped(at)?;
    Ok(if PHYSICAL.find(held).is_some() { held } else { shared_again(&memory) })
}

/// Refuses an address at which nothing is mapped.
pub(crate) fn check_mapped(at: usize) -> Answer {
    mapped(at).map(drop)
}

/// Gives mapped memory whose handle was freed a new handle, which its mappings have from now on.
fn shared_again(memory: &Arc<Physical>) -> Handle {
    let handle = PHYSICAL.share(Arc::clone(memory));
    let mut mappings = mappings();
    for (held, other) in mappings.values_mut() {
        if Arc::ptr_eq(other, memory) {
            *held = handle;
        }
    }
    handle
}

/// What is mapped at an address: where it begins, its handle, the memory.
fn mapped(at: usize) -> Answer<(usize, Handle, Arc<Physical>)> {
    let mappings = mappings();
    let held = mappings.range(..=at).next_back();
    let held = held.filter(|(start, (_, memory))| at - **start < memory.shared.bytes());
    let found = held.map(|(start, (handle, memory))| (*start, *handle, Arc::clone(memory)));
    found.ok_or_else(|| {
        Refusal::value(format!("nothing is mapped at {at:#x}; map physical memory there first"))
    })
}
