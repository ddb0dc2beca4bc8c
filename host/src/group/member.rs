//! One rank of a group, whose device is in this process.

use std::sync::Arc;

use bytemuck::Pod;
use pto_abi::GmAddr;
use pto_graph::group::{Communicator, GroupWords, NetworkFigures, TRANSFER, words::MAX_WINDOWS};
use pto_sim_shim::group::{ByteRange, TransferEngine, TransferError};
use pto_sim_shim::virtual_time::group::{NetEndpoint, VirtualNet};

use super::activity::Activity;
use super::engine::MemberEngine;
use super::error::GroupError;
use super::report::TransferCounts;
use super::transport::{RankLocation, Transport};
use crate::allocator::Owner;
use crate::device::Device;
use crate::error::Error;

/// What moves the transfers of a member.
enum CopyEngine {
    /// An engine on the host.
    Engine(Arc<MemberEngine>),
    /// The machine in virtual time itself.
    Machine(Arc<VirtualNet>),
}

/// A device and its rank.
pub struct RankDevice {
    device: Device,
    rank: Membership,
}

/// The part of a device in its group; it outlives the time that a session has the device.
pub(super) struct Membership {
    location: RankLocation,
    transport: Arc<dyn Transport>,
    copy_engine: CopyEngine,
    windows: Vec<(GmAddr, u64)>,
}

impl RankDevice {
    pub(super) fn new(
        mut device: Device,
        transport: Arc<dyn Transport>,
        activity: &Arc<Activity>,
    ) -> Result<Self, GroupError> {
        let location = transport.location();
        let rank = location.rank;
        let of_rank = |source| GroupError::Rank { rank, source };
        register_library(&mut device).map_err(of_rank)?;
        let memory = Arc::clone(device.shared_memory());
        let (of_engine, activity) = (Arc::clone(&transport), Arc::clone(activity));
        let engine = Arc::new(MemberEngine::new(rank, of_engine, memory, activity));
        let attached = device.attach_transfers(Arc::clone(&engine) as Arc<dyn TransferEngine>);
        attached.map_err(of_rank)?;
        let copy_engine = CopyEngine::Engine(engine);
        Ok(Self {
            device,
            rank: Membership { location, transport, copy_engine, windows: Vec::new() },
        })
    }

    /// A rank of a group in virtual time.
    pub(super) fn in_virtual_time(
        mut device: Device,
        transport: Arc<dyn Transport>,
        net: Arc<VirtualNet>,
    ) -> Result<Self, GroupError> {
        let location = transport.location();
        let rank = location.rank;
        let of_rank = |source| GroupError::Rank { rank, source };
        register_library(&mut device).map_err(of_rank)?;
        device.join_network(NetEndpoint { net: Arc::clone(&net), rank }).map_err(of_rank)?;
        let (copy_engine, windows) = (CopyEngine::Machine(net), Vec::new());
        Ok(Self { device, rank: Membership { location, transport, copy_engine, windows } })
    }

    /// The number of the rank in its group.
    #[must_use]
    pub const fn rank(&self) -> u32 {
        self.rank.location.rank
    }

    /// The location of this rank.
    #[must_use]
    pub const fn location(&self) -> &RankLocation {
        &self.rank.location
    }

    /// The rank's device.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The rank's device, to register kernels with and to run alone.
    #[must_use]
    pub const fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    /// Where this rank's part of a window begins.
    ///
    /// # Errors
    /// `Window`: there is none with this number.
    pub fn window(&self, window: u32) -> Result<GmAddr, GroupError> {
        self.rank.address_in(window, 0, 0)
    }

    /// Writes values to this rank's part of a window, from `offset` bytes on.
    ///
    /// # Errors
    /// `Window`: they do not fit.
    pub fn write<T: Pod>(&self, window: u32, offset: u64, values: &[T]) -> Result<(), GroupError> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let at = self.rank.address_in(window, offset, bytes.len() as u64)?;
        self.device.copy_to_device(at, bytes).map_err(|source| self.error(source))
    }

    /// Reads `count` values from this rank's part of a window, from `offset` bytes on.
    ///
    /// # Errors
    /// `Window`: they are not there.
    pub fn read<T: Pod>(
        &self,
        window: u32,
        offset: u64,
        count: usize,
    ) -> Result<Vec<T>, GroupError> {
        let mut values = vec![T::zeroed(); count];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
        let at = self.rank.address_in(window, offset, bytes.len() as u64)?;
        self.device.copy_from_device(at, bytes).map_err(|source| self.error(source))?;
        Ok(values)
    }

    fn error(&self, source: Error) -> GroupError {
        GroupError::Rank { rank: self.rank(), source }
    }

    /// One more window, zeroed; its number.
    pub(super) fn add_window(&mut self, bytes: u64) -> Result<u32, GroupError> {
        let most = MAX_WINDOWS;
        let id = u32::try_from(self.rank.windows.len()).unwrap_or(u32::MAX);
        if self.rank.windows.len() >= most {
            return Err(GroupError::Windows { most });
        }
        let zeroed = self.device.shared_memory().alloc_zeroed(bytes, Owner::User);
        let base = zeroed.map_err(|source| self.error(source))?;
        self.rank.transport.map(id, ByteRange { address: base.0, bytes })?;
        self.rank.windows.push((base, bytes));
        Ok(id)
    }

    /// The device's part in its group.
    pub(super) const fn membership(&self) -> &Membership {
        &self.rank
    }

    /// The device, and its part in its group.
    pub(super) fn into_parts(self) -> (Device, Membership) {
        (self.device, self.rank)
    }

    /// What [`into_parts`](Self::into_parts) gave.
    pub(super) const fn of_parts(device: Device, rank: Membership) -> Self {
        Self { device, rank }
    }

    /// Leaves the group: its device, and its windows in the order of their numbers.
    pub(super) fn leave(self) -> (Device, Vec<(GmAddr, u64)>) {
        (self.device, self.rank.windows)
    }

    /// Takes over windows that it had in another group.
    pub(super) fn take_windows(&mut self, windows: Vec<(GmAddr, u64)>) -> Result<(), GroupError> {
        for (id, (base, bytes)) in (0..).zip(&windows) {
            self.rank.transport.map(id, ByteRange { address: base.0, bytes: *bytes })?;
        }
        self.rank.windows = windows;
        Ok(())
    }
}

impl Membership {
    /// The location of this rank.
    pub(super) const fn location(&self) -> &RankLocation {
        &self.location
    }

    /// The network in virtual time.
    pub(super) fn net(&self) -> Option<&VirtualNet> {
        match &self.copy_engine {
            CopyEngine::Machine(net) => Some(net),
            CopyEngine::Engine(_) => None,
        }
    }

    /// The communicator of all ranks.
    pub(super) fn communicator(&self, network: NetworkFigures) -> Communicator {
        // A group has no more ranks than tags tell apart.
        Communicator::of_group(self.words(network)).expect("a group of few ranks")
    }

    /// The address of this many bytes of this rank's part of a window.
    pub(super) fn address_in(
        &self,
        window: u32,
        offset: u64,
        bytes: u64,
    ) -> Result<GmAddr, GroupError> {
        let wrong = GroupError::Window { window, offset, bytes };
        let Some((base, size)) = self.windows.get(window as usize) else { return Err(wrong) };
        match offset.checked_add(bytes) {
            Some(end) if end <= *size => Ok(base.offset(offset)),
            _ => Err(wrong),
        }
    }

    /// The words of the group.
    pub(super) fn words(&self, network: NetworkFigures) -> GroupWords {
        let RankLocation { rank, size, ranks_per_node, .. } = self.location;
        let mut group = GroupWords::new((rank, size), ranks_per_node, network);
        for (base, bytes) in &self.windows {
            // There are no more windows than the words have room for.
            group = group.with_window(*base, *bytes).unwrap_or(group);
        }
        group
    }

    pub(super) fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// The engine on the host, if it has one.
    pub(super) fn engine(&self) -> Option<&Arc<MemberEngine>> {
        match &self.copy_engine {
            CopyEngine::Engine(engine) => Some(engine),
            CopyEngine::Machine(_) => None,
        }
    }

    /// What its last run transferred, and why its transfers failed, if they did.
    pub(super) fn take_outcome(&self) -> (TransferCounts, Option<TransferError>) {
        match &self.copy_engine {
            CopyEngine::Engine(engine) => engine.take_outcome(),
            CopyEngine::Machine(net) => {
                let ((transfers, bytes_given, bytes_got), failure) =
                    net.outcome(self.location.rank);
                (TransferCounts { transfers, bytes_given, bytes_got }, failure)
            }
        }
    }
}

/// The kernels of the library, unless the device has them.
fn register_library(device: &mut Device) -> Result<(), Error> {
    let has_library = device.describe().kernels.iter().any(|it| it.func_id == TRANSFER);
    if has_library { Ok(()) } else { device.register_library() }
}
