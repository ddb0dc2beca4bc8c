//! What the programs, tensors and streams of a stitcher share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;
use pto_abi::limits::MAX_ORCH_ARGS;
use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_aicore_kernels::cost::OnChip;
use pto_graph::plan::BUILDER;
use pto_graph::plan::LaunchPart;
use pto_workload::program::MemorySpace;

use super::counters::{Counters, Counts};
use super::grain::Grain;
use super::pool::{Pool, Region};
use crate::allocator::Owner;
use crate::backend::OnChipMark;
use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::device_memory::DeviceMemory;
use crate::error::Error;
use crate::memory::Memory;
use crate::session::{OwnedWork, Reclaimer, Session, SessionError, StreamId};

/// What they share.
pub(super) struct StitcherCore {
    pub(super) memory: DeviceMemory,
    /// Waits for memory that comes back.
    reclaimer: Reclaimer,
    pub(super) counts: Counts,
    /// Cores of all kinds.
    pub(super) cores: usize,
    pub(super) grain: Grain,
    pool: Mutex<Pool>,
    on_chip: Mutex<Region>,
    on_chip_block: Option<GmAddr>,
    on_chip_bytes: u64,
    /// The device knows the region by it.
    on_chip_mark: Option<OnChipMark>,
    /// What transfers from there cost; `None`: they take the time of this machine.
    pub(super) on_chip_costs: Option<OnChip>,
    /// Whether the device expands plans and lists of tasks.
    pub(super) expands_plans: bool,
    /// A kernel for the gates of builders that share a launch; `None`: on this device, a builder has a launch of its own.
    pub(super) gate: Option<(FuncId, CoreKind)>,
    /// How many words of a launch describe its group; 0: the device is in none.
    group_words: usize,
}

/// A block of memory that a tensor owns.
pub(super) struct Block {
    shared: Arc<StitcherCore>,
    pub(super) address: GmAddr,
    bytes: u64,
    stream: StreamId,
    is_on_chip: bool,
    /// See `Taken`.
    pub(super) is_unordered: bool,
}

impl StitcherCore {
    pub(super) fn new(session: &Session, on_chip_bytes: u64) -> Result<Arc<Self>, SessionError> {
        let cores: u32 = session
            .with_device(|device| CoreKind::ALL.iter().map(|kind| device.cores(*kind)).sum())?;
        let block = match on_chip_bytes {
            0 => None,
            bytes => Some(session.alloc(bytes)?),
        };
        let marked = block.map(|at| at.0..at.0 + on_chip_bytes);
        let region = block.map_or_else(Region::default, |at| Region::new(at, on_chip_bytes));
        Ok(Arc::new(Self {
            memory: session.memory(),
            counts: Counts::default(),
            cores: usize::try_from(cores).unwrap_or(usize::MAX),
            grain: session.with_device(Grain::new)?,
            pool: Mutex::default(),
            on_chip: Mutex::new(region),
            reclaimer: session.reclaimer(),
            on_chip_block: block,
            on_chip_bytes,
            on_chip_mark: match marked {
                Some(region) => session.with_device(|device| device.mark_on_chip(region))?,
                None => None,
            },
            on_chip_costs: session.with_device(|device| device.on_chip_costs())?,
            expands_plans: session.with_device(Device::expands_plans)?,
            gate: session.with_device(gate)?,
            group_words: session.with_device(|device| device.group_words().len())?,
        }))
    }

    /// The launch of these parts.
    pub(super) fn launch(parts: &[LaunchPart]) -> OwnedWork {
        let orch_args = parts.iter().flat_map(LaunchPart::words).collect();
        OwnedWork::Stream { builder: BUILDER.to_owned(), orch_args }
    }

    /// Whether the device is a rank of a group.
    pub(super) const fn is_in_group(&self) -> bool {
        self.group_words > 0
    }

    /// Parts of a launch, at most: the words of the group take room of theirs.
    pub(super) const fn most_parts(&self) -> usize {
        MAX_ORCH_ARGS.saturating_sub(self.group_words) / LaunchPart::WORDS
    }

    pub(super) fn counters(&self) -> Counters {
        self.counts.read(self.memory.traffic())
    }

    /// Whether an address is in the fast region.
    pub(super) fn is_on_chip(&self, address: GmAddr) -> bool {
        let offset = self.on_chip_block.and_then(|block| address.0.checked_sub(block.0));
        offset.is_some_and(|offset| offset < self.on_chip_bytes)
    }

    fn memory(&self) -> &Arc<Memory> {
        self.memory.shared()
    }

    /// A block for a stream. Where the chip has no room, it is one of the device's memory.
    pub(super) fn block(
        self: &Arc<Self>,
        stream: StreamId,
        bytes: u64,
        place: MemorySpace,
    ) -> Result<Block, Error> {
        let on_chip = match place {
            MemorySpace::OnChip => lock(&self.on_chip).take(stream, bytes),
            MemorySpace::Host | MemorySpace::Pinned | MemorySpace::Device => None,
        };
        let (is_on_chip, is_unordered) =
            on_chip.map_or((false, false), |taken| (true, taken.is_unordered));
        let address = match on_chip {
            Some(taken) => taken.address,
            None => self.device_block(stream, bytes)?,
        };
        Ok(Block { shared: Arc::clone(self), address, bytes, stream, is_on_chip, is_unordered })
    }

    fn device_block(&self, stream: StreamId, bytes: u64) -> Result<GmAddr, Error> {
        if let Some(address) = lock(&self.pool).take(stream, bytes) {
            self.counts.pool_hits.add(1);
            return Ok(address);
        }
        self.counts.allocations.add(1);
        self.memory().alloc(bytes, Owner::User).or_else(|_| {
            // What is in the pool may be what is missing.
            self.free_pool();
            self.memory().alloc(bytes, Owner::User)
        })
    }

    /// Takes memory with `take`; where GM is full, again when some has come back from closed streams and commands that are over.
    pub(super) fn reclaiming<T>(&self, take: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        self.reclaimer.reclaiming(take)
    }

    /// A copy of these values in the device's memory.
    pub(super) fn upload<T: Pod>(&self, values: &[T]) -> Result<DeviceBuffer<T>, Error> {
        self.reclaiming(|| DeviceBuffer::upload(self.memory(), values))
    }

    /// Allocates `len` zeros in the device's memory.
    pub(super) fn zeroed<T: Pod>(&self, len: usize) -> Result<DeviceBuffer<T>, Error> {
        self.reclaiming(|| DeviceBuffer::zeroed(self.memory(), len))
    }

    /// A stream is opened.
    pub(super) fn open(&self, stream: StreamId) {
        lock(&self.pool).open(stream);
    }

    /// A stream is closed: its blocks are the device's again when its commands are over.
    pub(super) fn close(&self, stream: StreamId) {
        let blocks = lock(&self.pool).close(stream);
        self.free(blocks);
    }

    /// A run of a stream is there that is not submitted yet.
    pub(super) fn hold(&self, stream: StreamId) {
        lock(&self.pool).hold(stream);
    }

    /// So many runs of a stream are submitted: all that it was asked.
    pub(super) fn submitted(&self, stream: StreamId, runs: u64) {
        lock(&self.pool).submitted(stream, runs);
        lock(&self.on_chip).submitted(stream);
    }

    /// Gives the blocks of the pool back to the device, but for those that the session does not know to be in use.
    pub(super) fn free_pool(&self) {
        let blocks = lock(&self.pool).drain();
        self.free(blocks);
    }

    fn free(&self, blocks: Vec<GmAddr>) {
        for address in blocks {
            let freed = self.memory().free(address, Owner::User);
            debug_assert!(freed.is_ok(), "the pool owns its free blocks: {freed:?}");
        }
    }
}

/// The first kernel that a core of the device runs.
fn gate(device: &Device) -> Option<(FuncId, CoreKind)> {
    let kernels =
        device.describe().kernels.into_iter().filter(|_| device.shares_launches_with_builders());
    let mut kernels = kernels.map(|kernel| (kernel.func_id, kernel.kind));
    kernels.find(|(_, kind)| device.cores(*kind) > 0)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Block {
    pub(super) const fn is_on_chip(&self) -> bool {
        self.is_on_chip
    }

    pub(super) const fn stream(&self) -> StreamId {
        self.stream
    }

    /// From here on it belongs to another stream, which waits for the previous owner.
    pub(super) const fn transfer_to(&mut self, stream: StreamId) {
        self.stream = stream;
    }

    pub(super) fn is_of_session(&self, session: &Session) -> bool {
        self.shared.reclaimer.is_of(session)
    }

    pub(super) fn is_of(&self, shared: &Arc<StitcherCore>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.is_on_chip {
            lock(&self.shared.on_chip).give(self.address, self.bytes);
        } else if !lock(&self.shared.pool).give(self.stream, self.bytes, self.address) {
            self.shared.free(vec![self.address]);
        }
    }
}

impl Drop for StitcherCore {
    fn drop(&mut self) {
        self.free_pool();
        drop(self.on_chip_mark.take());
        if let Some(block) = self.on_chip_block {
            let freed = self.memory().free(block, Owner::User);
            debug_assert!(freed.is_ok(), "the region is freed once: {freed:?}");
        }
    }
}
