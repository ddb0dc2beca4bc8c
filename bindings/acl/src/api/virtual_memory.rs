//! Virtual memory: addresses are reserved, physical memory is allocated, and one is mapped at the other.

use crate::common::argument::{Address, In, Out};
use crate::common::entry::api;
use crate::common::notes::Pointee;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::memory_map::{self, GRANULARITY, Purpose};
use crate::device::virtual_memory::{self, Location, Property};
use crate::device::{current, fleet};

/// `aclrtMemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct AccessDescription {
    flags: u32,
    location: Location,
    reserve: [u8; 12],
}

impl Pointee for AccessDescription {}

const _: () = assert!(size_of::<AccessDescription>() == 24);

api! {
    fn aclrtMemGetAllocationGranularity(property: In<Property>, option: u32, bytes: Out<usize>) {
        checked(&property.get("property")?)?;
        require(option <= 1, || Refusal::argument(format!("there is no granularity {option}; there are 0 and 1")))?;
        bytes.put("bytes", GRANULARITY)
    }

    fn aclrtReserveMemAddress(address: Out<Address>, bytes: usize, alignment: usize, wanted: Address, flags: u64) {
        let output = address.required("address")?;
        require(bytes > 0, || Refusal::argument("the size is 0; reserve one byte at least"))?;
        require(alignment == 0 || alignment.is_power_of_two() && alignment <= GRANULARITY, || {
            Refusal::argument(format!("the alignment {alignment} is reserved; pass 0"))
        })?;
        require(flags <= 1, || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        // The address that is wanted is a wish: another one is given.
        let _ = wanted;
        let block = memory_map::allocate(&current::open()?, bytes, Purpose::Addresses)?;
        output.set(Address::of(block.address));
        Ok(())
    }

    fn aclrtReleaseMemAddress(address: Address) {
        let at = address.required("address")?;
        virtual_memory::release_addresses(at)
    }

    fn aclrtMallocPhysical(handle: Out<Handle>, bytes: usize, property: In<Property>, flags: u64) {
        let output = handle.required("handle")?;
        let property = property.get("property")?;
        checked(&property)?;
        require(bytes > 0, || Refusal::argument("the size is 0; pass a multiple of the granularity"))?;
        require(flags == 0, || Refusal::argument("flags are reserved; pass 0"))?;
        require(bytes.is_multiple_of(GRANULARITY), || {
            Refusal::value(format!("{bytes} bytes are no multiple of the granularity, {GRANULARITY}"))
        })?;
        output.set(virtual_memory::allocate(bytes, property)?);
        Ok(())
    }

    fn aclrtFreePhysical(handle: Handle) {
        virtual_memory::free(named(handle)?)
    }

    fn aclrtMapMem(address: Address, bytes: usize, offset: usize, handle: Handle, flags: u64) {
        map(address, bytes, offset, handle, flags)
    }

    fn aclrtMemMapNoAccess(address: Address, bytes: usize, offset: usize, handle: Handle, flags: u64) {
        map(address, bytes, offset, handle, flags)
    }

    fn aclrtUnmapMem(address: Address) {
        let at = address.required("address")?;
        virtual_memory::unmap(at)
    }

    fn aclrtMemSetAccess(address: Address, bytes: usize, accesses: In<AccessDescription>, count: usize) {
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
        virtual_memory::check_mapped(at)
    }

    fn aclrtMemGetAccess(address: Address, location: In<Location>, flags: Out<u64>) {
        let at = address.required("address")?;
        location.get("location")?;
        virtual_memory::check_mapped(at)?;
        flags.put("flags", 3)
    }

    fn aclrtMemRetainAllocationHandle(address: Address, handle: Out<Handle>) {
        let output = handle.required("handle")?;
        output.set(virtual_memory::retain(address.required("address")?)?);
        Ok(())
    }

    fn aclrtMemGetAllocationPropertiesFromHandle(handle: Handle, property: Out<Property>) {
        property.put("property", virtual_memory::physical(named(handle)?)?.property)
    }

    fn aclrtMemGetAddressRange(address: Address, base: Out<Address>, bytes: Out<usize>) {
        let at = address.required("address")?;
        let block = memory_map::block_at(at).ok_or_else(|| {
            Refusal::value(format!("{at:#x} is in no block of a device"))
        })?;
        if let Some(output) = base.optional() {
            output.set(Address::of(block.address));
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
            "there is no location of kind {} for physical memory",
            property.location.kind
        ))
    })?;
    if property.location.kind == 1 {
        fleet::check(i32::try_from(property.location.id).unwrap_or(-1))?;
    }
    Ok(())
}

/// A handle that is not null.
pub(super) fn named(handle: Handle) -> Answer<Handle> {
    require(handle != 0, || {
        Refusal::argument("the handle is null; pass one of aclrtMallocPhysical")
    })?;
    Ok(handle)
}

fn map(address: Address, bytes: usize, offset: usize, handle: Handle, flags: u64) -> Answer {
    let at = address.required("address")?;
    require(bytes > 0, || Refusal::argument("the size is 0; pass that of the physical memory"))?;
    require(offset == 0 && flags == 0, || {
        Refusal::argument("offset and flags are reserved; pass 0")
    })?;
    virtual_memory::map(at, bytes, named(handle)?)
}
