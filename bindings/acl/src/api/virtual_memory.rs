//! Virtual memory: addresses are reserved, physical memory is allocated, and one is mapped at the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::facts::current_open;
use crate::common::argument::{Address, In, Out};
use crate::common::entry::api;
use crate::common::notes::Pointee;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, Kind, Table};
use crate::device::fleet;
use crate::device::mapping::{self, Shared};
use crate::device::open::Open;
use crate::device::places::{self, GRANULARITY, Purpose};

static PHYSICAL: Table<Physical> = Table::new(Kind::Physical);

/// Where physical memory is mapped.
static MAPPINGS: Mutex<BTreeMap<usize, (Handle, Arc<Physical>)>> = Mutex::new(BTreeMap::new());

/// Physical memory: it goes when nobody has its handle and it is mapped nowhere.
pub(super) struct Physical {
    shared: Arc<Shared>,
    was_exported: AtomicBool,
    counted: Option<(Arc<Open>, u64)>,
    property: Property,
}

impl Physical {
    /// Memory of another process.
    pub(super) fn imported(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            was_exported: AtomicBool::new(false),
            counted: None,
            property: Property::default(),
        }
    }

    /// The file, for another process; once.
    pub(super) fn export(&self) -> Answer<Arc<Shared>> {
        // Relaxed: nothing else is told by it.
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
struct Property {
    handle_kind: u32,
    allocation_kind: u32,
    attribute: u32,
    location: Location,
    reserve: u64,
}

impl Pointee for Property {}

/// `aclrtMemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Location {
    pub(super) id: u32,
    pub(super) kind: u32,
}

impl Pointee for Location {}

/// `aclrtMemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Access {
    flags: u32,
    location: Location,
    reserve: [u8; 12],
}

impl Pointee for Access {}

const _: () = assert!(size_of::<Property>() == 32 && size_of::<Access>() == 24);

/// The physical memory of a handle.
pub(super) fn physical(handle: Handle) -> Answer<Arc<Physical>> {
    require(handle != 0, || {
        Refusal::argument("the handle is null; pass one of aclrtMallocPhysical")
    })?;
    PHYSICAL.get(handle)
}

/// A handle for physical memory.
pub(super) fn add(memory: Physical) -> Handle {
    PHYSICAL.open(memory)
}

api! {
    fn aclrtMemGetAllocationGranularity(property: In<Property>, option: u32, bytes: Out<usize>) {
        checked(&property.get("property")?)?;
        require(option <= 1, || Refusal::argument(format!("there is no granularity {option}; there are 0 and 1")))?;
        bytes.put("bytes", GRANULARITY)
    }

    fn aclrtReserveMemAddress(address: Out<Address>, bytes: usize, alignment: usize, wanted: Address, flags: u64) {
        let place = address.place("address")?;
        require(bytes > 0, || Refusal::argument("the size is 0; reserve one byte at least"))?;
        require(alignment == 0 || alignment.is_power_of_two() && alignment <= GRANULARITY, || {
            Refusal::argument(format!("the alignment {alignment} is reserved; pass 0"))
        })?;
        require(flags <= 1, || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        // The address that is wanted is a wish: another one is given.
        let _ = wanted;
        let block = places::allocate(&current_open()?, bytes, Purpose::Addresses)?;
        place.set(Address::of(block.address));
        Ok(())
    }

    fn aclrtReleaseMemAddress(address: Address) {
        let at = address.required("address")?;
        let block = places::block_at(at);
        let end = block.map_or(at, |block| block.address + block.bytes);
        let mapped = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner).range(at..end.max(at + 1)).count();
        require(mapped == 0, || {
            Refusal::value(format!("{mapped} pieces of physical memory are mapped at these addresses; unmap them first"))
        })?;
        places::free(at, Purpose::Addresses)
    }

    fn aclrtMallocPhysical(handle: Out<Handle>, bytes: usize, property: In<Property>, flags: u64) {
        let place = handle.place("handle")?;
        let property = property.get("property")?;
        checked(&property)?;
        require(bytes > 0, || Refusal::argument("the size is 0; pass a multiple of the granularity"))?;
        require(flags == 0, || Refusal::argument("flags are reserved; pass 0"))?;
        require(bytes.is_multiple_of(GRANULARITY), || {
            Refusal::value(format!("{bytes} bytes are no multiple of the granularity, {GRANULARITY}"))
        })?;
        let counted = if property.location.kind == 1 {
            let open = fleet::open(i32::try_from(property.location.id).unwrap_or(-1))?;
            open.take(bytes as u64)?;
            Some((open, bytes as u64))
        } else {
            None
        };
        let shared = Shared::new(bytes).inspect_err(|_| {
            if let Some((open, bytes)) = &counted {
                open.give_back(*bytes);
            }
        })?;
        let memory = Physical { shared: Arc::new(shared), was_exported: AtomicBool::new(false), counted, property };
        place.set(add(memory));
        Ok(())
    }

    fn aclrtFreePhysical(handle: Handle) {
        physical(handle)?;
        PHYSICAL.take(handle).map(drop)
    }

    fn aclrtMapMem(address: Address, bytes: usize, offset: usize, handle: Handle, flags: u64) {
        map(address, bytes, offset, handle, flags)
    }

    fn aclrtMemMapNoAccess(address: Address, bytes: usize, offset: usize, handle: Handle, flags: u64) {
        map(address, bytes, offset, handle, flags)
    }

    fn aclrtUnmapMem(address: Address) {
        let at = address.required("address")?;
        let taken = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner).remove(&at);
        let (_, memory) = taken.ok_or_else(|| {
            Refusal::value(format!("nothing is mapped at {at:#x}; unmap where it was mapped, once"))
        })?;
        mapping::restore(at, memory.shared.bytes())
    }

    fn aclrtMemSetAccess(address: Address, bytes: usize, accesses: In<Access>, count: usize) {
        let at = address.required("address")?;
        require(bytes > 0 && count > 0, || Refusal::argument("the size or the count is 0; name one access at least"))?;
        for access in accesses.list("accesses", count)? {
            require(matches!(access.flags, 0 | 1 | 3), || {
                Refusal::argument(format!("there is no access {}; there are 0, 1 and 3", access.flags))
            })?;
            if access.location.kind == 1 {
                fleet::check(i32::try_from(access.location.id).unwrap_or(-1))?;
            }
        }
        mapped(at).map(|_| ())
    }

    fn aclrtMemGetAccess(address: Address, location: In<Location>, flags: Out<u64>) {
        let at = address.required("address")?;
        location.get("location")?;
        mapped(at)?;
        flags.put("flags", 3)
    }

    fn aclrtMemRetainAllocationHandle(address: Address, handle: Out<Handle>) {
        let place = handle.place("handle")?;
        let (_, held, memory) = mapped(address.required("address")?)?;
        place.set(if PHYSICAL.find(held).is_some() { held } else { shared_again(&memory) });
        Ok(())
    }

    fn aclrtMemGetAllocationPropertiesFromHandle(handle: Handle, property: Out<Property>) {
        property.put("property", physical(handle)?.property)
    }

    fn aclrtMemGetAddressRange(address: Address, base: Out<Address>, bytes: Out<usize>) {
        let at = address.required("address")?;
        let block = places::block_at(at).ok_or_else(|| {
            Refusal::value(format!("{at:#x} is in no block of a device"))
        })?;
        if let Some(place) = base.optional() {
            place.set(Address::of(block.address));
        }
        bytes.put("bytes", block.bytes)
    }
}

fn checked(property: &Property) -> Answer {
    require(matches!(property.handle_kind, 0 | 2) && property.allocation_kind == 0, || {
        Refusal::argument("the property names an unknown kind of handle or allocation; pass 0")
    })?;
    require(property.reserve == 0, || Refusal::argument("reserve is not 0; pass 0"))?;
    require(matches!(property.location.kind, 0 | 1 | 4), || {
        Refusal::argument(format!(
            "there is no place of kind {} for physical memory",
            property.location.kind
        ))
    })?;
    if property.location.kind == 1 {
        fleet::check(i32::try_from(property.location.id).unwrap_or(-1))?;
    }
    Ok(())
}

fn map(address: Address, bytes: usize, offset: usize, handle: Handle, flags: u64) -> Answer {
    let at = address.required("address")?;
    require(bytes > 0, || Refusal::argument("the size is 0; pass that of the physical memory"))?;
    require(offset == 0 && flags == 0, || {
        Refusal::argument("offset and flags are reserved; pass 0")
    })?;
    let memory = physical(handle)?;
    require(bytes == memory.shared.bytes(), || {
        Refusal::value(format!(
            "{bytes} bytes are not the size of the physical memory, {}",
            memory.shared.bytes()
        ))
    })?;
    let block = places::block_at(at).filter(|block| {
        block.purpose == Purpose::Addresses
            && at + bytes <= block.address + mapping::pages(block.bytes)
    });
    require(block.is_some() && at.is_multiple_of(mapping::PAGE), || {
        Refusal::value(format!(
            "{bytes} bytes at {at:#x} are not reserved addresses; reserve them first"
        ))
    })?;
    let mut mappings = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let below = mappings.range(..at + bytes).next_back();
    require(below.is_none_or(|(start, (_, held))| start + held.shared.bytes() <= at), || {
        Refusal::value(format!("something is mapped at {at:#x}; unmap it first"))
    })?;
    memory.shared.map_at(at, 0, bytes)?;
    mappings.insert(at, (handle, memory));
    Ok(())
}

/// Gives mapped memory whose handle was freed a new handle, which its mappings have from now on.
fn shared_again(memory: &Arc<Physical>) -> Handle {
    let handle = PHYSICAL.share(Arc::clone(memory));
    let mut mappings = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    for (held, other) in mappings.values_mut() {
        if Arc::ptr_eq(other, memory) {
            *held = handle;
        }
    }
    handle
}

/// What is mapped at an address: where it begins, its handle, the memory.
fn mapped(at: usize) -> Answer<(usize, Handle, Arc<Physical>)> {
    let mappings = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let held = mappings.range(..=at).next_back();
    let held = held.filter(|(start, (_, memory))| at - **start < memory.shared.bytes());
    let found = held.map(|(start, (handle, memory))| (*start, *handle, Arc::clone(memory)));
    found.ok_or_else(|| {
        Refusal::value(format!("nothing is mapped at {at:#x}; map physical memory there first"))
    })
}
