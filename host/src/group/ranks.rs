//! A group: the members of this process, and the runs that they make together.
//!
//! Invariants:
//! - Windows have the same numbers and sizes at all members.
//! - Runs are numbered alike at all ranks: every rank makes the same runs in the same order.

use std::sync::Arc;
use std::time::Duration;

use pto_graph::BuilderSet;
use pto_graph::group::{Communicator, NetworkFigures};
use pto_sim_shim::virtual_time::VirtualOptions;
use pto_sim_shim::virtual_time::group::{NetFaults, NetworkProfile, VirtualNet};

use super::activity::Activity;
use super::error::{GroupError, RankFailure};
use super::local;
use super::member::RankDevice;
use super::progress::Progress;
use super::report::{GroupReport, RankReport};
use super::transport::Transport;
use super::virtual_transport::VirtualTransport;
use crate::device::Device;
use crate::error::Error;
use crate::image::GraphImage;
use crate::options::{DeviceOptions, RunOptions, Work};
use crate::report::RunReport;
use pto_sim_shim::Hosting;

/// The most ranks of a group of this process: as many as the largest pod that the network's profiles describe has dies.
const MAX_LOCAL_RANKS: u32 = 384;

/// How a group is opened.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// Each of its devices.
    pub device: DeviceOptions,
    /// Ranks of a node: collectives of two levels go by it. 0: all ranks are on one node.
    pub ranks_per_node: u32,
    /// What collectives choose their algorithms by. It must be the same at all ranks.
    pub network: NetworkFigures,
    /// How long a rank waits for the others before and after a run.
    pub meet_budget: Duration,
}

impl Default for GroupOptions {
    /// Devices of one OS thread each, because they share the machine.
    fn default() -> Self {
        let hosting = Hosting::Pool { os_threads: std::num::NonZeroUsize::MIN };
        Self {
            device: DeviceOptions { hosting, ..DeviceOptions::default() },
            ranks_per_node: 0,
            network: NetworkFigures::DEFAULT,
            meet_budget: Duration::from_secs(30),
        }
    }
}

/// What all ranks run: a streaming program.
pub struct GroupWork<'a> {
    /// The program's name, as in [`Device::builders`].
    pub builder: &'a str,
    /// The words that it reads, by rank; all ranks have as many.
    pub args: &'a (dyn Fn(u32) -> Vec<u64> + Sync),
}

/// Devices with ranks.
pub struct Group {
    members: Vec<RankDevice>,
    options: GroupOptions,
    runs: u64,
    /// The thread of the transfers; none in virtual time. It ends before the devices do.
    progress: Option<Progress>,
}

/// The parts of a group whose devices are in sessions.
pub(super) struct GroupParts {
    pub(super) members: Vec<RankDevice>,
    pub(super) options: GroupOptions,
    pub(super) runs: u64,
    pub(super) progress: Option<Progress>,
}

impl Group {
    /// Opens `size` devices of this process as ranks `0 .. size`; each has the library's kernels.
    ///
    /// # Errors
    /// `Size`; `Rank`: a device cannot be opened; `Thread`.
    pub fn open_local<B: BuilderSet + Clone>(
        size: u32,
        options: &GroupOptions,
        builders: B,
    ) -> Result<Self, GroupError> {
        if size == 0 || size > MAX_LOCAL_RANKS {
            return Err(GroupError::Size { size, most: MAX_LOCAL_RANKS });
        }
        let open = |rank| {
            let device = Device::open_sim(options.device, builders.clone());
            device.map_err(|source| GroupError::Rank { rank, source })
        };
        let devices = (0..size).map(open).collect::<Result<Vec<_>, _>>()?;
        Self::of_devices(devices, options)
    }

    /// Opens `size` devices in virtual time with a network between them, as ranks `0 .. size`. One machine runs them: the same
    /// seed and faults give the same run. The network's figures replace those of `options`.
    ///
    /// # Errors
    /// As [`open_local`](Self::open_local); `Size`: the network has fewer ranks.
    pub fn open_virtual<B: BuilderSet + Clone>(
        size: u32,
        options: &GroupOptions,
        (profile, faults): (NetworkProfile, NetFaults),
        builders: B,
    ) -> Result<Self, GroupError> {
        let most = profile.most_ranks().min(MAX_LOCAL_RANKS);
        if size == 0 || size > most {
            return Err(GroupError::Size { size, most });
        }
        let of_all = match options.device.hosting {
            Hosting::Virtual(of_all) => of_all,
            _ => VirtualOptions::default(),
        };
        let net = VirtualNet::new(size, profile, faults, of_all.compute);
        let open = |rank: u32| {
            let seed = of_all.seed.wrapping_add(u64::from(rank) << 32);
            let hosting = Hosting::Virtual(VirtualOptions { seed, ..of_all });
            let device = DeviceOptions { hosting, ..options.device };
            let device = Device::open_sim(device, builders.clone());
            let device = device.map_err(|source| GroupError::Rank { rank, source })?;
            let transport = Arc::new(VirtualTransport { net: Arc::clone(&net), rank, size });
            RankDevice::in_virtual_time(device, transport, Arc::clone(&net))
        };
        let members = (0..size).map(open).collect::<Result<Vec<_>, _>>()?;
        let options = GroupOptions { network: profile.figures(size), ..options.clone() };
        Ok(Self { members, options, runs: 0, progress: None })
    }

    /// Opens one device as the rank that `transport` says; the other ranks are elsewhere, and do the same.
    ///
    /// # Errors
    /// As [`open_local`](Self::open_local).
    pub fn join<B: BuilderSet>(
        transport: Arc<dyn Transport>,
        options: &GroupOptions,
        builders: B,
    ) -> Result<Self, GroupError> {
        let rank = transport.location().rank;
        let device = Device::open_sim(options.device, builders);
        let device = device.map_err(|source| GroupError::Rank { rank, source })?;
        Self::of_members(vec![(device, transport)], options)
    }

    /// Makes a group of devices of this process that are open already, by rank. They get the library's kernels.
    ///
    /// # Errors
    /// As [`open_local`](Self::open_local).
    pub fn of_devices(devices: Vec<Device>, options: &GroupOptions) -> Result<Self, GroupError> {
        let size = u32::try_from(devices.len()).unwrap_or(u32::MAX);
        let per_node = if options.ranks_per_node == 0 { size } else { options.ranks_per_node };
        let transports = local::transports(size, per_node);
        Self::of_members(devices.into_iter().zip(transports).collect(), options)
    }

    fn of_members(
        members: Vec<(Device, Arc<dyn Transport>)>,
        options: &GroupOptions,
    ) -> Result<Self, GroupError> {
        let activity = Arc::new(Activity::default());
        let join = |(device, transport)| RankDevice::new(device, transport, &activity);
        let members = members.into_iter().map(join).collect::<Result<Vec<_>, _>>()?;
        let engines = members
            .iter()
            .filter_map(|member| member.membership().engine())
            .map(Arc::clone)
            .collect();
        let progress = Progress::start(activity, engines);
        let progress = Some(progress.map_err(GroupError::Thread)?);
        Ok(Self { members, options: options.clone(), runs: 0, progress })
    }

    /// How many ranks there are, here and elsewhere.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.members.first().map_or(0, |member| member.location().size)
    }

    /// The members of this process, by rank.
    #[must_use]
    pub fn members(&self) -> &[RankDevice] {
        &self.members
    }

    /// The members of this process, by rank, to register kernels with.
    #[must_use]
    pub fn members_mut(&mut self) -> &mut [RankDevice] {
        &mut self.members
    }

    /// Collective. Memory of this many bytes at every rank, zeroed, that the other ranks may put to and get from; the window's number.
    ///
    /// # Errors
    /// `Windows`; `Rank`: a device has no memory left; `Transport`.
    pub fn window(&mut self, bytes: u64) -> Result<u32, GroupError> {
        let mut id = 0;
        for member in &mut self.members {
            id = member.add_window(bytes)?;
        }
        Ok(id)
    }

    /// Collective. Runs a program on all ranks, to the end of all of them.
    ///
    /// # Errors
    /// `Failed`: on which ranks, and why; the devices can be used again. `Disagree`, `Transport`: nothing was run.
    pub fn run(
        &mut self,
        work: &GroupWork<'_>,
        options: &RunOptions,
    ) -> Result<GroupReport, GroupError> {
        self.begin()?;
        let own = self.own_words(work);
        let words = own.first().map_or(0, Vec::len) as u64;
        self.agree(pto_graph::symbol(work.builder).rotate_left(8) ^ words)?;
        let network = self.options.network;
        for member in &mut self.members {
            let mut words = Vec::new();
            member.membership().words(network).encode(|word| words.push(word));
            member.device_mut().set_group(words);
        }
        let work = own.iter().map(|orch_args| Work::Stream { builder: work.builder, orch_args });
        let results = run_all(&mut self.members, work, options);
        // A run outside of the group has no ranks to transfer to.
        self.members.iter_mut().for_each(|member| member.device_mut().set_group(Vec::new()));
        self.report(results)
    }

    /// Collective. Runs a graph on each rank, to the end of all of them; `graphs` are those of the members of this process, by rank. A
    /// [`HostGraph`](crate::HostGraph) has transfers by [`submit_transfer`](crate::HostGraph::submit_transfer).
    ///
    /// # Errors
    /// Those of [`run`](Self::run); `Graphs`: there are fewer graphs than members, or more.
    pub fn run_graphs(
        &mut self,
        graphs: &[GraphImage],
        options: &RunOptions,
    ) -> Result<GroupReport, GroupError> {
        let (given, members) = (graphs.len(), self.members.len());
        if given != members {
            return Err(GroupError::Graphs { given, members });
        }
        self.begin()?;
        self.agree(pto_graph::symbol("graphs"))?;
        let graphs = graphs.iter().map(Work::HostGraph);
        let results = run_all(&mut self.members, graphs, options);
        self.report(results)
    }

    /// What it consists of.
    pub(super) fn into_parts(mut self) -> GroupParts {
        let members = std::mem::take(&mut self.members);
        let (options, progress) = (self.options.clone(), self.progress.take());
        GroupParts { members, options, runs: self.runs, progress }
    }

    /// What [`into_parts`](Self::into_parts) gave.
    pub(super) fn of_parts(parts: GroupParts) -> Self {
        let GroupParts { members, options, runs, progress } = parts;
        Self { members, options, runs, progress }
    }

    /// Whether a thread moves its transfers, and not the machine in virtual time.
    pub(super) const fn has_thread(&self) -> bool {
        self.progress.is_some()
    }

    /// The communicator of a member, with which transfers are made.
    ///
    /// # Errors
    /// `Size`: the rank is none of a member of this process.
    pub fn communicator(&self, rank: u32) -> Result<Communicator, GroupError> {
        let member = self.members.iter().find(|member| member.rank() == rank);
        let member = member.ok_or(GroupError::Size { size: rank, most: self.size() })?;
        Ok(member.membership().communicator(self.options.network))
    }

    /// The network in virtual time.
    pub(super) fn net(&self) -> Result<&VirtualNet, GroupError> {
        let net = self.members.first().and_then(|member| member.membership().net());
        net.ok_or(GroupError::NotVirtual)
    }

    /// The next run begins on all members.
    pub(super) fn begin(&mut self) -> Result<(), GroupError> {
        self.runs += 1;
        for member in &self.members {
            member.membership().transport().begin(self.runs)?;
        }
        Ok(())
    }

    fn own_words(&self, work: &GroupWork<'_>) -> Vec<Vec<u64>> {
        self.members.iter().map(|member| (work.args)(member.rank())).collect()
    }

    /// All ranks are about to do what has this stamp: a hash, so that one call passes for another one in a chance of 2^-64. Then they do different things, and their transfers time out.
    pub(super) fn agree(&self, stamp: u64) -> Result<(), GroupError> {
        let Some(member) = self.members.first() else { return Ok(()) };
        let stamps = member.membership().transport().meet(stamp, self.options.meet_budget)?;
        let differs = (0..).zip(&stamps).filter(|(_, other)| **other != stamp);
        let ranks: Vec<u32> = differs.map(|(rank, _)| rank).collect();
        if ranks.is_empty() {
            Ok(())
        } else {
            Err(GroupError::Disagree { ranks, own: member.rank() })
        }
    }

    fn report(&self, results: Vec<Ran>) -> Result<GroupReport, GroupError> {
        let (mut ranks, mut failures) = (Vec::new(), Vec::new());
        for (member, result) in self.members.iter().zip(results) {
            let (transfers, transfer) = member.membership().take_outcome();
            let (rank, host) = (member.rank(), member.location().host.clone());
            match result? {
                Ok(mut run) => {
                    run.trace.iter_mut().for_each(|trace| trace.rank = Some(rank));
                    ranks.push(RankReport { rank, run, transfers });
                }
                Err(mut error) => {
                    if let Error::Fault { report, .. } = &mut error {
                        report.trace.iter_mut().for_each(|trace| trace.rank = Some(rank));
                    }
                    failures.push(RankFailure { rank, host, error, transfer });
                }
            }
        }
        if failures.is_empty() {
            let contributions = self.net().ok().and_then(VirtualNet::contributions);
            Ok(GroupReport { ranks, contributions })
        } else {
            Err(GroupError::failed(failures))
        }
    }

    /// A group of the devices of this process without some of its ranks: the others keep their order, their memory and their
    /// windows, and are numbered anew.
    ///
    /// # Errors
    /// `Size`: no rank is left; those of [`of_devices`](Self::of_devices). The group is gone then.
    pub fn without(mut self, ranks: &[u32]) -> Result<Self, GroupError> {
        drop(self.progress.take());
        let members = std::mem::take(&mut self.members).into_iter();
        let left = members.filter(|member| !ranks.contains(&member.rank()));
        let (devices, windows): (Vec<_>, Vec<_>) = left.map(RankDevice::leave).unzip();
        if devices.is_empty() {
            return Err(GroupError::Size { size: 0, most: MAX_LOCAL_RANKS });
        }
        let size = u32::try_from(devices.len()).unwrap_or(u32::MAX);
        let per_node = self.options.ranks_per_node;
        let is_even = per_node > 0 && size.is_multiple_of(per_node);
        let options = GroupOptions {
            ranks_per_node: if is_even { per_node } else { 0 },
            ..self.options.clone()
        };
        let mut smaller = Self::of_devices(devices, &options)?;
        for (member, windows) in smaller.members.iter_mut().zip(windows) {
            member.take_windows(windows)?;
        }
        Ok(smaller)
    }
}

/// What became of a member's run, or that it got no thread.
type Ran = Result<Result<RunReport, crate::error::Error>, GroupError>;

/// Runs its work on each of the members at once.
fn run_all<'w>(
    members: &mut [RankDevice],
    work: impl Iterator<Item = Work<'w>>,
    options: &RunOptions,
) -> Vec<Ran> {
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (member, work) in members.iter_mut().zip(work) {
            let transport = Arc::clone(member.membership().transport());
            let (of_missing, device) = (Arc::clone(&transport), member.device_mut());
            let part = move || {
                let result = device.run(work, options);
                if let Err(error) = &result {
                    // Also where it was not begun: the others are not to wait.
                    transport.end(Some(&error.to_string()));
                }
                result
            };
            let started = std::thread::Builder::new().spawn_scoped(scope, part);
            if let Err(error) = &started {
                of_missing.end(Some(&error.to_string()));
            }
            threads.push(started);
        }
        let joined = threads.into_iter().map(|thread| match thread {
            Ok(thread) => Ok(thread.join().unwrap_or_else(|it| std::panic::resume_unwind(it))),
            Err(error) => Err(GroupError::Thread(error)),
        });
        joined.collect()
    })
}

impl Drop for Group {
    fn drop(&mut self) {
        // The thread is joined before the devices go.
        drop(self.progress.take());
    }
}
