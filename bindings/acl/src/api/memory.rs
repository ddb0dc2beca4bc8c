//! Memory of devices, and pinned memory of the host.

use crate::common::argument::{Address, In, Out};
use crate::common::entry::api;
use crate::common::notes::Pointee;
use crate::common::refusal::{Answer, Refusal, require};
use crate::device::memory_map::{self, Purpose};
use crate::device::settings::settings;
use crate::device::virtual_memory::Location;
use crate::device::{current, fleet, mapping};

/// `aclrtMallocConfig`, whose attributes are hints.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct MallocConfig {
    attributes: usize,
    count: usize,
}

impl Pointee for MallocConfig {}

/// `aclrtPtrAttributes`.
#[repr(C)]
struct Attributes {
    location: Location,
    page: u32,
    reserve: [u32; 4],
}

impl Pointee for Attributes {}

/// `aclrtMemUsageInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Usage {
    name: [u8; 32],
    now: u64,
    peak: u64,
    reserve: [usize; 8],
}

impl Pointee for Usage {}

const _: () = assert!(size_of::<Attributes>() == 28 && size_of::<Usage>() == 112);

api! {
    fn aclrtMalloc(address: Out<Address>, bytes: usize, policy: u32) {
        allocate(address, bytes, policy)
    }

    fn aclrtMallocAlign32(address: Out<Address>, bytes: usize, policy: u32) {
        allocate(address, bytes, policy)
    }

    fn aclrtMallocCached(address: Out<Address>, bytes: usize, policy: u32) {
        allocate(address, bytes, policy)
    }

    fn aclrtMallocWithCfg(address: Out<Address>, bytes: usize, policy: u32, config: In<MallocConfig>) {
        check_config(&config)?;
        allocate(address, bytes, policy)
    }

    fn aclrtMallocForTaskScheduler(address: Out<Address>, bytes: usize, policy: u32, config: In<MallocConfig>) {
        check_config(&config)?;
        allocate(address, bytes, policy)
    }

    fn aclrtFree(address: Address) {
        memory_map::free(address.required("address")?, Purpose::Memory)
    }

    fn aclrtFreeWithDevSync(address: Address) {
        let at = address.required("address")?;
        current::synchronize_device(None)?;
        memory_map::free(at, Purpose::Memory)
    }

    fn aclrtMallocHost(address: Out<Address>, bytes: usize) {
        allocate_host(address, bytes)
    }

    fn aclrtMallocHostWithCfg(address: Out<Address>, bytes: u64, config: In<MallocConfig>) {
        check_config(&config)?;
        allocate_host(address, size(bytes))
    }

    fn aclrtFreeHost(address: Address) {
        memory_map::free_pinned(address.required("address")?)
    }

    fn aclrtFreeHostWithDevSync(address: Address) {
        let at = address.required("address")?;
        current::synchronize_device(None)?;
        memory_map::free_pinned(at)
    }

    fn aclrtHostRegister(address: Address, bytes: u64, kind: u32, device: Out<Address>) {
        let output = device.required("device")?;
        require(matches!(kind, 0 | 4 | 8), || Refusal::argument(format!("there is no kind {kind} of registered memory")))?;
        let at = register(address, bytes)?;
        output.set(Address::of(at));
        Ok(())
    }

    fn aclrtHostRegisterV2(address: Address, bytes: u64, flags: u32) {
        require(flags & !(2 | 4 | 8 | 0x1000_0000) == 0, || {
            Refusal::argument(format!("flags {flags:#x} have unknown bits"))
        })?;
        register(address, bytes).map(drop)
    }

    fn aclrtHostUnregister(address: Address) {
        memory_map::unregister(address.required("address")?)
    }

    fn aclrtHostGetDevicePointer(address: Address, device: Out<Address>, flags: u32) {
        let output = device.required("device")?;
        require(flags == 0, || Refusal::argument("flag is reserved; pass 0"))?;
        let at = address.required("address")?;
        require(memory_map::is_pinned(at, 1), || {
            Refusal::value(format!("{at:#x} is not registered; register it first"))
        })?;
        output.set(address);
        Ok(())
    }

    fn aclrtGetMemInfo(attribute: u32, free: Out<usize>, total: Out<usize>) {
        let free = free.required("free")?;
        let total = total.required("total")?;
        require(attribute <= 17, || Refusal::argument(format!("there is no memory of attribute {attribute}")))?;
        let open = current::open()?;
        let (all, used) = (settings().memory, open.usage().0);
        // Memory here is HBM: there is no DDR of its own.
        let all = if matches!(attribute, 0 | 2 | 3 | 6 | 7) { 0 } else { all };
        total.set(size(all));
        free.set(size(all.saturating_sub(used)));
        Ok(())
    }

    fn aclrtGetMemUsageInfo(device: i32, usages: Out<Usage>, room: usize, count: Out<usize>) {
        let output = usages.required("usages")?;
        let count = count.required("count")?;
        require(room > 0, || Refusal::argument("there is room for no entry; pass one at least"))?;
        let (now, peak) = fleet::open(device)?.usage();
        let mut name = [0; 32];
        name[..7].copy_from_slice(b"runtime");
        output.set_at(0, Usage { name, now, peak, reserve: [0; 8] });
        count.set(1);
        Ok(())
    }

    fn aclrtPointerGetAttributes(address: Address, attributes: Out<Attributes>) {
        let output = attributes.required("attributes")?;
        let at = address.required("address")?;
        let location = match fleet::owner(at) {
            Some(open) if memory_map::block_at(at).is_some() => {
                Location { id: open.index.cast_unsigned(), kind: 1 }
            }
            _ if memory_map::is_pinned(at, 1) => Location { id: 0, kind: 0 },
            _ => Location { id: 0, kind: 2 },
        };
        let page = if location.kind == 2 { 0 } else { u32::try_from(mapping::PAGE).unwrap_or(0) };
        output.set(Attributes { location, page, reserve: [0; 4] });
        Ok(())
    }

    fn aclrtMemFlush(address: Address, bytes: usize) {
        coherent(address, bytes)
    }

    fn aclrtMemInvalidate(address: Address, bytes: usize) {
        coherent(address, bytes)
    }
}

/// Caches here are coherent: only the arguments are looked at.
fn coherent(address: Address, bytes: usize) -> Answer {
    let at = address.required("address")?;
    require(bytes > 0, || Refusal::argument("the size is 0; pass one byte at least"))?;
    memory_map::device_of(at, bytes).map(drop)
}

fn allocate(address: Out<Address>, bytes: usize, policy: u32) -> Answer {
    let output = address.required("address")?;
    let base = policy & 0xFF;
    require(base <= 7 && policy & !0x10_11FF == 0, || {
        Refusal::argument(format!("there is no policy {policy:#x} of allocation"))
    })?;
    output
        .set(Address::of(memory_map::allocate(&current::open()?, bytes, Purpose::Memory)?.address));
    Ok(())
}

fn allocate_host(address: Out<Address>, bytes: usize) -> Answer {
    let output = address.required("address")?;
    current::open()?;
    output.set(Address::of(memory_map::allocate_pinned(bytes)?));
    Ok(())
}

fn register(address: Address, bytes: u64) -> Answer<usize> {
    let at = address.required("address")?;
    require(bytes > 0, || Refusal::argument("the size is 0; register one byte at least"))?;
    require(at.is_multiple_of(mapping::PAGE), || {
        Refusal::value(format!("{at:#x} does not begin a page of {} bytes", mapping::PAGE))
    })?;
    current::open()?;
    memory_map::register(at, size(bytes))?;
    Ok(at)
}

fn check_config(config: &In<MallocConfig>) -> Answer {
    let config = config.optional();
    require(config.is_none_or(|config| config.count == 0 || config.attributes != 0), || {
        Refusal::argument("the configuration has attributes at null; pass an array")
    })
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
