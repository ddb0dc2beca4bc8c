//! The owner of an address: a block of a device, pinned memory of the host, or neither.
//!
//! Every block of a device has pages of its own, so that it can be shared with another process later.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_acl_interface::handles::Generation;

use super::fleet;
use super::mapping::{self, PAGE, SharedPages, pages};
use super::open::{Open, check_size, gm};
use crate::common::argument::check_extent;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::thread::{self, Recent};
use crate::common::{checks, codes, races};

/// What a block of a device is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// `aclrtMalloc` and its neighbours.
    Memory,
    /// Addresses that physical memory is mapped at.
    Addresses,
    /// Pages of another process.
    Imported,
    /// Words of the library's own.
    Words,
}

/// A block of a device.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) address: usize,
    /// The size that was asked for.
    pub(crate) bytes: usize,
    pub(crate) open: Arc<Open>,
    pub(crate) purpose: Purpose,
    /// The file of its pages, if it is shared.
    pub(crate) shared: Option<Arc<SharedPages>>,
    /// The address that the allocator of the device returned.
    raw: usize,
    counted: u64,
}

/// Memory of the host that copies need not be waited for from.
#[derive(Clone, Copy, Debug)]
struct Pinned {
    bytes: usize,
    layout: Layout,
}

/// Blocks of devices and pinned memory of the host, by their addresses.
struct MemoryMap {
    blocks: BTreeMap<usize, Block>,
    /// Where physical memory is mapped in blocks of addresses, and how many bytes.
    mapped: BTreeMap<usize, usize>,
    /// Memory of `aclrtMallocHost`.
    pinned: BTreeMap<usize, Pinned>,
    /// Memory of the host that the program has registered, and how many bytes.
    registered: BTreeMap<usize, usize>,
}

static MEMORY_MAP: Mutex<MemoryMap> = Mutex::new(MemoryMap {
    blocks: BTreeMap::new(),
    mapped: BTreeMap::new(),
    pinned: BTreeMap::new(),
    registered: BTreeMap::new(),
});

/// Blocks of addresses: without any, no address is one that nothing is mapped at.
static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// Counts changes of the map: a thread reuses a look-up until the next change.
static GENERATION: Generation = Generation::new();

/// The map, for reading.
struct MapGuard(MutexGuard<'static, MemoryMap>);

impl Deref for MapGuard {
    type Target = MemoryMap;

    fn deref(&self) -> &MemoryMap {
        &self.0
    }
}

fn map() -> MapGuard {
    MapGuard(MEMORY_MAP.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The map, for changes.
fn changing() -> MutexGuard<'static, MemoryMap> {
    let held = MEMORY_MAP.lock().unwrap_or_else(PoisonError::into_inner);
    GENERATION.next();
    held
}

/// Whose memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Device(i32),
    /// The host; streams reach it while the program goes on.
    Pinned,
    Host,
}

/// Takes a block of a device. Physical memory counts where it is allocated; addresses cost nothing.
pub(crate) fn allocate(open: &Arc<Open>, bytes: usize, purpose: Purpose) -> Answer<Block> {
    check_size(bytes)?;
    let align = if purpose == Purpose::Addresses { GRANULARITY } else { PAGE };
    let room = pages(bytes);
    let counted = if purpose == Purpose::Memory { room as u64 } else { 0 };
    open.take(counted)?;
    let raw = open.session.alloc((room + align) as u64).inspect_err(|_| open.give_back(counted))?;
    let raw = usize::try_from(raw.0).unwrap_or(0);
    let address = raw.next_multiple_of(align);
    let block =
        Block { address, bytes, open: Arc::clone(open), purpose, shared: None, raw, counted };
    if purpose == Purpose::Addresses {
        // Relaxed: who has the addresses was given them after this.
        RESERVED.fetch_add(1, Ordering::Relaxed);
    }
    changing().blocks.insert(address, block.clone());
    if purpose != Purpose::Words {
        checks::born(address, format_args!("a block of {bytes} bytes of a device"));
    }
    Ok(block)
}

/// Bytes that virtual memory is mapped in multiples of.
pub(crate) const GRANULARITY: usize = 2 << 20;

/// Takes a block of a device, with the pages of `shared` in it.
pub(crate) fn allocate_over(
    open: &Arc<Open>,
    shared: Arc<SharedPages>,
    purpose: Purpose,
) -> Answer<Block> {
    let mut block = allocate(open, shared.bytes(), purpose)?;
    shared.map_at(block.address)?;
    block.shared = Some(shared);
    changing().blocks.insert(block.address, block.clone());
    Ok(block)
}

/// Frees the block that begins at `address`. The device may still use it; its memory is not reused before that is over.
pub(crate) fn free(address: usize, purpose: Purpose) -> Answer {
    let block = {
        let mut map = changing();
        let fits = map.blocks.get(&address).is_some_and(|block| block.purpose == purpose);
        if fits { map.blocks.remove(&address) } else { None }
    };
    let Some(block) = block else {
        let text = format!(
            "{address:#x} is not the beginning of a live block; free what was allocated, once"
        );
        checks::misused(checks::BAD_FREE, address, &text);
        return Err(Refusal::value(text));
    };
    if purpose == Purpose::Memory {
        races::freed(block.address, block.bytes);
    }
    release(block)
}

fn release(block: Block) -> Answer {
    if block.purpose == Purpose::Addresses {
        // Relaxed: as where it was added.
        RESERVED.fetch_sub(1, Ordering::Relaxed);
    }
    if block.shared.is_some() {
        mapping::restore(block.address, pages(block.bytes))?;
    }
    checks::died(block.address);
    block.open.give_back(block.counted);
    block.open.session.memory().free(gm(block.raw))?;
    Ok(())
}

/// Gives every block of a device back that a program has.
pub(crate) fn free_all(device: i32) {
    let of_device: Vec<Block> = { changing().blocks.extract_of(device) };
    for block in of_device {
        races::forget(block.address, block.bytes);
        // The device is reset: a block that cannot be given back stays reserved.
        release(block).unwrap_or_default();
    }
}

trait ExtractOf {
    fn extract_of(&mut self, device: i32) -> Vec<Block>;
}

impl ExtractOf for BTreeMap<usize, Block> {
    fn extract_of(&mut self, device: i32) -> Vec<Block> {
        let is = |block: &&Block| block.open.index == device && block.purpose != Purpose::Words;
        let starts: Vec<usize> = self.values().filter(is).map(|block| block.address).collect();
        starts.into_iter().filter_map(|start| self.remove(&start)).collect()
    }
}

/// The block that `address` lies in.
pub(crate) fn block_at(address: usize) -> Option<Block> {
    let map = map();
    let (start, block) = map.blocks.range(..=address).next_back()?;
    (address - start < pages(block.bytes)).then(|| block.clone())
}

/// Makes a block shared, if it is not yet.
pub(crate) fn share(address: usize) -> Answer<Arc<SharedPages>> {
    let block = block_at(address).filter(|block| block.address == address);
    let block = block.filter(|block| block.purpose == Purpose::Memory);
    let block = block.ok_or_else(|| {
        Refusal::value(format!(
            "{address:#x} is not the beginning of memory of a device; export what aclrtMalloc gave"
        ))
    })?;
    if let Some(shared) = block.shared {
        return Ok(shared);
    }
    let shared = Arc::new(SharedPages::new(block.bytes)?);
    let mut map = changing();
    let gone = || Refusal::value(format!("{address:#x} was freed meanwhile; export it before"));
    let block = map.blocks.get_mut(&address).ok_or_else(gone)?;
    // Another thread may have shared it meanwhile.
    if block.shared.is_none() {
        shared.fill_from(address)?;
        shared.map_at(address)?;
        block.shared = Some(shared);
    }
    block.shared.clone().ok_or_else(gone)
}

/// Physical memory is mapped at reserved addresses from now on.
pub(crate) fn mapped(address: usize, bytes: usize) {
    changing().mapped.insert(address, bytes);
}

/// Records that the address is no longer mapped.
pub(crate) fn unmapped(address: usize) {
    changing().mapped.remove(&address);
}

/// Refuses words of a kernel that are reserved addresses at which nothing is mapped.
#[inline]
pub(crate) fn check_words(words: &[u64]) -> Answer {
    if has_reserved() { look_at_words(words) } else { Ok(()) }
}

/// Whether any addresses are reserved.
#[inline]
pub(crate) fn has_reserved() -> bool {
    // Relaxed: as where it was added.
    RESERVED.load(Ordering::Relaxed) != 0
}

#[cold]
fn look_at_words(words: &[u64]) -> Answer {
    for word in words.iter().filter_map(|word| usize::try_from(*word).ok()) {
        let Some(open) = fleet::owner(word) else { continue };
        let is_reserved = |block: Block| block.purpose == Purpose::Addresses;
        if block_at(word).is_some_and(is_reserved) {
            map().find(Some(open), word, 1)?;
        }
    }
    Ok(())
}

/// The device whose addresses these are, where the range lies in one live block. `None`: addresses of the host.
#[inline]
pub(crate) fn device_of(address: usize, bytes: usize) -> Answer<Option<&'static Arc<Open>>> {
    if let [Some(owner)] = recalled([address], bytes) {
        return Ok(match owner {
            Owner::Device(device) => fleet::at(device),
            Owner::Pinned | Owner::Host => None,
        });
    }
    let Some(open) = fleet::owner(address) else { return Ok(None) };
    looked_up([address], bytes).map(|_| Some(open))
}

/// Whose two ranges are that are as long. Where a range is of a device, it lies in one live block.
#[inline(always)]
pub(crate) fn owners_of(addresses: [usize; 2], bytes: usize) -> Answer<[Owner; 2]> {
    if let [Some(first), Some(second)] = recalled(addresses, bytes) {
        return Ok([first, second]);
    }
    looked_up(addresses, bytes)
}

/// What this thread has looked up before, where nothing has changed since then.
#[inline]
fn recalled<const N: usize>(addresses: [usize; N], bytes: usize) -> [Option<Owner>; N] {
    let generation = GENERATION.now();
    thread::with(|thread| {
        std::array::from_fn(|side| {
            let (address, recent) = (addresses[side], &thread.recent[side]);
            let is_there = recent.generation == generation
                && recent.range.contains(&address)
                && bytes <= recent.range.end - address;
            is_there.then(|| recent.device.map_or(Owner::Pinned, Owner::Device))
        })
    })
}

/// Looks ranges up, and keeps for the thread where they are.
#[cold]
fn looked_up<const N: usize>(addresses: [usize; N], bytes: usize) -> Answer<[Owner; N]> {
    let opens = addresses.map(fleet::owner);
    let map = map();
    let generation = GENERATION.now();
    let mut owners = [Owner::Host; N];
    let mut recent: [Option<Recent>; N] = [const { None }; N];
    for (side, (address, open)) in addresses.into_iter().zip(opens).enumerate() {
        let found = map.find(open, address, bytes)?;
        let Some(range) = found else { continue };
        let device = open.map(|open| open.index);
        owners[side] = device.map_or(Owner::Pinned, Owner::Device);
        recent[side] = Some(Recent { generation, range, device });
    }
    drop(map);
    thread::with(|thread| {
        for (entry, found) in thread.recent.iter_mut().zip(recent) {
            *entry = found.unwrap_or_default();
        }
    });
    Ok(owners)
}

impl MemoryMap {
    /// The pages of the live block of a device, or of the pinned memory, that the bytes lie in; `None`: other memory of the host.
    fn find(
        &self,
        open: Option<&Arc<Open>>,
        address: usize,
        bytes: usize,
    ) -> Answer<Option<Range<usize>>> {
        let holds = |range: &Range<usize>| address.saturating_add(bytes) <= range.end;
        let Some(open) = open else {
            let held = self.pinned.range(..=address).next_back();
            let pinned = held.map(|(start, held)| *start..start + pages(held.bytes));
            let held = self.registered.range(..=address).next_back();
            let registered = held.map(|(start, bytes)| *start..start + pages(*bytes));
            return Ok(pinned.filter(holds).or_else(|| registered.filter(holds)));
        };
        let block = self.blocks.range(..=address).next_back();
        let range = block.map(|(start, block)| *start..start + pages(block.bytes));
        let range = range.filter(holds).ok_or_else(|| {
            let text = format!(
                "{bytes} bytes at {address:#x} of device {} are not in one live block",
                open.index
            );
            Refusal::value(text)
        })?;
        if block.is_none_or(|(_, block)| block.purpose != Purpose::Addresses) {
            return Ok(Some(range));
        }
        self.find_mapped(address, &range).filter(holds).map(Some).ok_or_else(|| {
            let text = format!(
                "{bytes} bytes at {address:#x} of device {} are reserved addresses, and no physical memory is mapped at all of them; call aclrtMapMem first",
                open.index
            );
            Refusal::value(text)
        })
    }

    /// The mapped addresses without a gap from the piece that `address` lies in on, in the block of these addresses.
    fn find_mapped(&self, address: usize, block: &Range<usize>) -> Option<Range<usize>> {
        let (start, bytes) = self.mapped.range(..=address).next_back()?;
        let mut end = start + bytes;
        while end < block.end
            && let Some(next) = self.mapped.get(&end)
        {
            end += next;
        }
        (address < end && *start >= block.start).then_some(*start..end)
    }
}

/// Takes pinned memory of the host.
pub(crate) fn allocate_pinned(bytes: usize) -> Answer<usize> {
    require(bytes > 0, || Refusal::argument("the size is 0; ask for at least one byte"))?;
    check_extent(0, bytes)?;
    let layout = Layout::from_size_align(pages(bytes), PAGE);
    let layout = layout.map_err(|_| Refusal::value(format!("{bytes} bytes are too many")))?;
    // SAFETY: the layout has at least one page.
    let start = unsafe { alloc_zeroed(layout) }.expose_provenance();
    require(start != 0, || {
        Refusal::new(codes::OUT_OF_MEMORY, format!("the host has no {bytes} bytes left"))
    })?;
    changing().pinned.insert(start, Pinned { bytes, layout });
    checks::born(start, format_args!("{bytes} bytes of pinned memory"));
    Ok(start)
}

/// Gives pinned memory back.
pub(crate) fn free_pinned(address: usize) -> Answer {
    let taken = {
        let mut map = changing();
        let taken = map.pinned.remove(&address);
        if let Some(pinned) = taken {
            // What was registered of it goes with it.
            let range = address..address + pages(pinned.bytes);
            map.registered.retain(|start, _| !range.contains(start));
        }
        taken
    };
    let Some(Pinned { layout, bytes }) = taken else {
        let text =
            format!("{address:#x} is not the beginning of memory of aclrtMallocHost; free it once");
        checks::misused(checks::BAD_FREE, address, &text);
        return Err(Refusal::value(text));
    };
    checks::died(address);
    races::freed(address, bytes);
    // SAFETY: `allocate_pinned` took it with this layout, and it was in the map until now.
    unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address), layout) };
    Ok(())
}

/// Registers memory of the host: the program's own, or what `aclrtMallocHost` gave, which is pinned without that too.
pub(crate) fn register(address: usize, bytes: usize) -> Answer {
    check_extent(address, bytes)?;
    require(fleet::owner(address).is_none(), || {
        Refusal::value(format!("{address:#x} is memory of a device; register memory of the host"))
    })?;
    let mut map = changing();
    let overlaps = map.registered.range(..address + bytes).next_back();
    require(overlaps.is_none_or(|(start, held)| start + held <= address), || {
        Refusal::new(
            codes::HOST_REGISTERED,
            format!("{address:#x} is registered; unregister it first"),
        )
    })?;
    map.registered.insert(address, bytes);
    Ok(())
}

/// Takes a registration back.
pub(crate) fn unregister(address: usize) -> Answer {
    let taken = changing().registered.remove(&address);
    require(taken.is_some(), || {
        let text = format!("{address:#x} is not registered; pass the address that was");
        Refusal::new(codes::HOST_NOT_REGISTERED, text)
    })
}

/// Whether the range is pinned memory of the host.
pub(crate) fn is_pinned(address: usize, bytes: usize) -> bool {
    map().find(None, address, bytes).is_ok_and(|found| found.is_some())
}
