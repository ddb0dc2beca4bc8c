//! A device: its memory, its kernels, its runs.
//!
//! ```text
//! run: Launch::plan -> provide (arena kept or grown) -> write -> Backend::run -> settle
//!                                                                  |-- RunReport
//!                                                                  '-- FaultReport, and the next run
//!                                                                      starts from a new arena
//! ```

mod kernels;
mod resident_graph;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::timeline::Trace;
use bytemuck::Pod;
use pto_abi::arena::Arena;
use pto_abi::launch::{Epochs, worker_table};
use pto_abi::runtime::{Epitaph, WorkerEntry};
use pto_abi::{CoreKind, GmAddr};
use pto_aicore_kernels::cost::OnChip;

use self::resident_graph::{ResidentGraph, is_resident_after};
use crate::allocator::Owner;
use crate::arena::{RuntimeArena, larger};
use crate::backend::{Backend, OnChipMark, RingDoorbell, RunOutcome, StartTimes};
use crate::buffer::DeviceBuffer;
#[cfg(feature = "sim")]
use crate::builder_calls::CheckedSet;
use crate::builder_calls::{BuilderCheck, CallRefusal};
use crate::call_check::check_graph;
use crate::copy_costs::CopyCosts;
use crate::error::Error;
use crate::fault_report::{Context, FaultReport, describe_chain};
use crate::fw::Tracing;
use crate::kernels::{KernelDescription, KernelTable};
use crate::launch::{DeviceTables, Launch};
use crate::lists::Spare;
use crate::memory::{Memory, RunHold};
#[cfg(any(feature = "sim", test))]
use crate::options::DeviceOptions;
use crate::options::{RunOptions, Work};
use crate::progress::{self, RunProgress};
use crate::report::RunReport;
use crate::report::{CoreTotals, InstanceTotals};
use crate::stream_report::StreamReport;
use crate::trace;
use pto_abi::arena::Capacities;

/// A device that stays open between runs.
pub struct Device {
    memory: Arc<Memory>,
    cores: [u32; CoreKind::COUNT],
    workers: Vec<WorkerEntry>,
    kernels: KernelTable,
    arena: Option<RuntimeArena>,
    /// The graph whose tasks are in the arena, if the last run was one of a graph.
    resident: Option<ResidentGraph>,
    /// Memory for graphs.
    spare: Spare,
    /// The cores are brought up on each arena.
    epochs: Epochs,
    backend: Box<dyn Backend>,
    /// Whether something moves the transfers of its runs.
    has_transfers: bool,
    /// The words of the group that it is a rank of, which each launch passes to its program; empty: it is in none.
    group_words: Vec<u64>,
    /// What the tasks of its builder programs are checked with.
    check: Arc<BuilderCheck>,
}

/// A run that has ended, however.
struct FinishedRun {
    outcome: RunOutcome,
    /// What was read of its trace rings meanwhile.
    read: Vec<trace::Ring>,
    /// What the cores had done before it.
    before: CoreTotals,
}

/// A device, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDescription {
    /// The device's name.
    pub name: String,
    /// Cores, by [`CoreKind::index`].
    pub cores: [u32; CoreKind::COUNT],
    /// Size of GM.
    pub gm_bytes: u64,
    /// Bytes of GM that are free.
    pub gm_free_bytes: u64,
    /// Builder programs in its firmware.
    pub builders: Vec<String>,
    /// Registered kernels, by func id.
    pub kernels: Vec<KernelDescription>,
}

/// The number after `epoch`, without zero.
fn after(epoch: u32) -> u32 {
    epoch.checked_add(1).unwrap_or(1)
}

impl Device {
    /// Opens the simulator `a2a3sim` with `builders` linked into its firmware. Each task that one of them adds is checked before it is added: whether its
    /// kernel, if it is one of the library, takes the arguments. A run with a task that is refused ends with [`Error::Call`].
    ///
    /// # Errors
    /// `Workers`: no core, or too many. `PoolThreads`: too many OS threads. `InjectionCore`: a fault
    /// for a core that is not there. `MapGm`: the memory cannot be had.
    #[cfg(feature = "sim")]
    pub fn open_sim<B: pto_graph::BuilderSet>(
        options: DeviceOptions,
        builders: B,
    ) -> Result<Self, Error> {
        let check = Self::sim_check(&options)?;
        let programs = CheckedSet { programs: builders, check: Arc::clone(&check) };
        Self::open_sim_any(options, pto_sim_shim::AnyBuilders::of(programs), check)
    }

    /// What calls are checked with on a simulator with these options, whose memory is mapped.
    #[cfg(feature = "sim")]
    fn sim_check(options: &DeviceOptions) -> Result<Arc<BuilderCheck>, Error> {
        let DeviceOptions { aic, aiv, gm_bytes, hosting } = options;
        Self::check_workers(*aic, *aiv)?;
        Self::check_hosting(hosting, aic + aiv)?;
        Ok(Arc::new(BuilderCheck::of(Arc::new(Memory::map(*gm_bytes)?))))
    }

    /// Has no parameters, so that a device of the simulator is compiled here and in no other crate.
    #[cfg(feature = "sim")]
    fn open_sim_any(
        options: DeviceOptions,
        builders: pto_sim_shim::AnyBuilders,
        check: Arc<BuilderCheck>,
    ) -> Result<Self, Error> {
        Self::open_sim_with(options, builders, check)
    }

    /// As [`open_sim`](Self::open_sim), with a firmware that is compiled around `builders`, as that of an image is: no call of a builder
    /// goes through a table, and no call of a kernel is checked. It is for measurements of such calls. Each set of builders adds most of a minute to the
    /// time of compiling.
    ///
    /// # Safety
    /// Each task that one of `builders` adds gives its kernel the words that the kernel takes: where it reads or writes memory, the address of memory of this
    /// device that is allocated and large enough.
    ///
    /// # Errors
    /// Those of `open_sim`.
    #[cfg(feature = "sim")]
    pub unsafe fn open_sim_compiled_in<B: pto_graph::BuilderSet>(
        options: DeviceOptions,
        builders: B,
    ) -> Result<Self, Error> {
        let check = Self::sim_check(&options)?;
        Self::open_sim_with(options, crate::backend::CompiledIn::of(builders), check)
    }

    #[cfg(feature = "sim")]
    fn open_sim_with<B: crate::backend::SimulatedSet>(
        options: DeviceOptions,
        builders: B,
        check: Arc<BuilderCheck>,
    ) -> Result<Self, Error> {
        let DeviceOptions { aic, aiv, hosting, .. } = options;
        let memory = Arc::clone(&check.memory);
        let simulator = crate::backend::Simulator::new(hosting, memory, builders);
        Self::open_checked((aic, aiv), Box::new(simulator), check)
    }

    /// Opens the device `qemu`: boots `image` on an emulated machine whose cores run the kernels of `blob`.
    ///
    /// # Errors
    /// `Image`: one of them cannot be used here. `QemuCores`, `QemuGm`: there is no such machine. `Qemu`: QEMU is
    /// missing, or the image does not boot.
    #[cfg(feature = "qemu")]
    pub fn open_qemu(
        options: &crate::backend::QemuDeviceOptions,
        image: &crate::fw::Image,
        blob: &crate::fw::Image,
    ) -> Result<Self, Error> {
        let (aic, aiv) = (options.aic, options.aiv);
        let (machine, memory) = crate::backend::Qemu::open(options, image, blob)?;
        Self::open_with(aic, aiv, memory, Box::new(machine))
    }

    /// Opens the device `a2a3` through CANN, and brings the firmware of `image` and the kernels of `blob` to it.
    ///
    /// # Errors
    /// `Image`: one of them cannot be used there. `A2a3`: a library or a function of CANN is missing, or a call failed; the
    /// error names the step.
    #[cfg(feature = "a2a3")]
    pub fn open_a2a3(
        options: &crate::backend::A2a3Options,
        image: &crate::fw::Image,
        blob: &crate::fw::Image,
    ) -> Result<Self, Error> {
        let (machine, [aic, aiv]) = crate::backend::A2a3::open(options, image, blob)?;
        Self::open_with(aic, aiv, machine.memory(), Box::new(machine))
    }

    /// What a hosting mode is asked for must exist on a device of this many cores.
    #[cfg(feature = "sim")]
    fn check_hosting(hosting: &pto_sim_shim::Hosting, cores: u32) -> Result<(), Error> {
        match *hosting {
            pto_sim_shim::Hosting::Pool { os_threads }
                if os_threads.get() > pto_sim_shim::MAX_OS_THREADS =>
            {
                Err(Error::PoolThreads { os_threads: os_threads.get() })
            }
            pto_sim_shim::Hosting::Virtual(pto_sim_shim::virtual_time::VirtualOptions {
                injection: Some(injection),
                ..
            }) if !injection.trouble.is_builders() && injection.worker >= cores => {
                Err(Error::InjectionCore { injection, cores })
            }
            _ => Ok(()),
        }
    }

    fn check_workers(aic: u32, aiv: u32) -> Result<(), Error> {
        let count = aic.checked_add(aiv).and_then(|count| usize::try_from(count).ok());
        match count {
            Some(1..=pto_abi::limits::MAX_WORKERS) => Ok(()),
            _ => Err(Error::Workers { aic, aiv }),
        }
    }

    pub(crate) fn open_with(
        aic: u32,
        aiv: u32,
        memory: Arc<Memory>,
        backend: Box<dyn Backend>,
    ) -> Result<Self, Error> {
        Self::open_checked((aic, aiv), backend, Arc::new(BuilderCheck::of(memory)))
    }

    fn open_checked(
        (aic, aiv): (u32, u32),
        backend: Box<dyn Backend>,
        check: Arc<BuilderCheck>,
    ) -> Result<Self, Error> {
        Self::check_workers(aic, aiv)?;
        Ok(Self {
            backend,
            memory: Arc::clone(&check.memory),
            cores: [aic, aiv],
            workers: worker_table([aic, aiv]).collect(),
            kernels: KernelTable::new(check.kernels()),
            arena: None,
            resident: None,
            spare: Spare::default(),
            epochs: Epochs::default(),
            has_transfers: false,
            group_words: Vec::new(),
            check,
        })
    }

    #[cfg(test)]
    pub(crate) fn open_fake(
        options: DeviceOptions,
        backend: impl Backend + 'static,
    ) -> Result<Self, Error> {
        let memory = Arc::new(Memory::map(options.gm_bytes)?);
        Self::open_with(options.aic, options.aiv, memory, Box::new(backend))
    }

    /// How long the device took to start; `None`: there is nothing to start, as on the simulator.
    #[must_use]
    pub fn start_times(&self) -> Option<StartTimes> {
        self.backend.start_times()
    }

    /// The device's name, such as `a2a3sim`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// How many cores of `kind` it has.
    #[must_use]
    pub fn cores(&self, kind: CoreKind) -> u32 {
        self.cores[kind.index()]
    }

    /// How many clusters its cores form; each scheduler of a run needs one.
    #[must_use]
    pub fn clusters(&self) -> u32 {
        self.workers.iter().map(|worker| worker.cluster + 1).max().unwrap_or(0)
    }

    /// Whether its firmware expands plans and lists of tasks. From program files, such a device runs tasks of several cores, blocks, predicates
    /// and priorities.
    #[must_use]
    pub fn expands_plans(&self) -> bool {
        self.shares_launches_with_builders()
            || self.builders().iter().any(|name| name == pto_graph::plan::BUILDER)
    }

    /// Whether other builders share a launch with plans.
    pub(crate) fn shares_launches_with_builders(&self) -> bool {
        self.backend.shares_launches_with_builders()
    }

    /// Whether its cores run at once. Where they do not, a kernel that waits for another one waits for ever.
    #[must_use]
    pub fn runs_cores_at_once(&self) -> bool {
        self.backend.runs_cores_at_once()
    }

    /// Whether the times of its runs are virtual.
    #[must_use]
    pub fn has_virtual_clock(&self) -> bool {
        self.backend.has_virtual_clock()
    }

    /// What transfers between cores and the fast region cost in virtual time; `None`: they take the time of this machine.
    pub(crate) fn on_chip_costs(&self) -> Option<OnChip> {
        self.backend.on_chip_costs()
    }

    /// Lets the device know that these addresses are a fast region; `None`: it has no need to know.
    pub(crate) fn mark_on_chip(&self, addresses: Range<u64>) -> Option<OnChipMark> {
        self.backend.mark_on_chip(addresses)
    }

    /// What copies of a session cost in virtual time.
    pub(crate) fn copy_costs(&self) -> Option<CopyCosts> {
        self.backend.copy_costs()
    }

    /// How long a core is expected to take for a kernel with these words, in nanoseconds: in virtual time what its run will charge, with
    /// the mean of times that are drawn; elsewhere what the cost model of the library says, and 0 for a kernel that is not of the library.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn expected_kernel_ns(&self, func_id: pto_abi::FuncId, words: &[u64]) -> u64 {
        self.kernel_costs().expected(func_id.0, words)
    }

    /// What its kernels are expected to cost.
    #[cfg(feature = "sim")]
    pub(crate) fn kernel_costs(&self) -> pto_sim_shim::virtual_time::KernelCosts {
        self.backend.kernel_costs()
    }

    /// Wakes its resident firmware while that sleeps.
    pub(crate) fn doorbell(&self) -> Option<RingDoorbell> {
        self.backend.doorbell()
    }

    /// How long a launch may take on it by default.
    pub(crate) fn launch_limit(&self) -> Option<Duration> {
        self.backend.launch_limit()
    }

    /// Whether a task of a builder program was refused, for those that make its calls.
    #[must_use]
    pub fn call_refusal(&self) -> CallRefusal {
        CallRefusal(Arc::clone(&self.check))
    }

    /// The names of the builder programs in its firmware.
    #[must_use]
    pub fn builders(&self) -> Vec<String> {
        self.backend.builders()
    }

    /// The process that the device runs in; `None`: it has none of its own, or that has ended.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.backend.process_id()
    }

    /// What it is and holds, for people.
    #[must_use]
    pub fn describe(&self) -> DeviceDescription {
        DeviceDescription {
            name: self.name().to_owned(),
            cores: self.cores,
            gm_bytes: self.memory.gm().bytes(),
            gm_free_bytes: self.memory.free_bytes().0,
            builders: self.builders(),
            kernels: self.kernels.describe(),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe().fmt(f)
    }
}

/// Memory.
impl Device {
    /// Where GM begins; it is as large as [`describe`](Self::describe) says. On the simulator device addresses are
    /// those of this process.
    #[must_use]
    pub fn gm_address(&self) -> GmAddr {
        self.memory.gm().address()
    }

    /// Allocates GM, aligned to 64 bytes; its bytes are not initialised to anything in particular.
    ///
    /// # Errors
    /// `ZeroSize`, `OutOfMemory`.
    pub fn alloc(&self, bytes: u64) -> Result<GmAddr, Error> {
        self.memory.alloc(bytes, Owner::User)
    }

    /// Frees what [`Device::alloc`] returned. It is invalid at once; during a run, it can be allocated again only when
    /// that run has ended.
    ///
    /// # Errors
    /// `DoubleFree`, `ForeignPointer`.
    pub fn free(&self, address: GmAddr) -> Result<(), Error> {
        self.memory.free(address, Owner::User)
    }

    /// The live allocation that `address` lies in: where it begins, and its bytes.
    #[must_use]
    pub fn allocation(&self, address: GmAddr) -> Option<(GmAddr, u64)> {
        self.memory.allocation(address)
    }

    /// Copies `from` to `to`; the range lies in one live allocation.
    ///
    /// # Errors
    /// `CopyOutOfRange`; nothing was copied.
    pub fn copy_to_device(&self, to: GmAddr, from: &[u8]) -> Result<(), Error> {
        self.memory.copy_in(to, from)
    }

    /// Fills `to` from `from`; the range lies in one live allocation.
    ///
    /// # Errors
    /// `CopyOutOfRange`; nothing was copied.
    pub fn copy_from_device(&self, from: GmAddr, to: &mut [u8]) -> Result<(), Error> {
        self.memory.copy_out(from, to)
    }

    /// A buffer with a copy of `values`.
    ///
    /// # Errors
    /// `ZeroSize` when there are none, `SizeOverflow`, `OutOfMemory`.
    pub fn upload<T: Pod>(&self, values: &[T]) -> Result<DeviceBuffer<T>, Error> {
        DeviceBuffer::upload(&self.memory, values)
    }

    /// A buffer of `len` zeros.
    ///
    /// # Errors
    /// `ZeroSize` when `len` is zero, `SizeOverflow`, `OutOfMemory`.
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<DeviceBuffer<T>, Error> {
        DeviceBuffer::zeroed(&self.memory, len)
    }

    pub(crate) fn spare(&self) -> &Spare {
        &self.spare
    }

    /// Whether something moves the transfers of its runs.
    pub(crate) const fn has_transfers(&self) -> bool {
        self.has_transfers
    }

    /// Its launches pass these words of a group to their programs; empty: it is in no group.
    pub(crate) fn set_group(&mut self, words: Vec<u64>) {
        self.group_words = words;
    }

    /// The words of its group.
    pub(crate) fn group_words(&self) -> &[u64] {
        &self.group_words
    }

    pub(crate) fn shared_memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Has the transfers of all further runs moved by `engine`.
    #[cfg(feature = "sim")]
    pub(crate) fn attach_transfers(
        &mut self,
        engine: Arc<dyn pto_sim_shim::group::TransferEngine>,
    ) -> Result<(), Error> {
        if self.backend.attach(engine) {
            self.has_transfers = true;
            return Ok(());
        }
        Err(Error::NoTransfers { device: self.name().to_owned() })
    }

    /// Makes the device a rank of a group in virtual time.
    #[cfg(feature = "sim")]
    pub(crate) fn join_network(
        &mut self,
        seat: pto_sim_shim::virtual_time::group::NetEndpoint,
    ) -> Result<(), Error> {
        if self.backend.join_network(seat) {
            self.has_transfers = true;
            return Ok(());
        }
        Err(Error::NoTransfers { device: self.name().to_owned() })
    }

    /// A word anywhere in GM, as a builder reads it; `None`: not in GM, or misaligned.
    pub(crate) fn read_u32(&self, address: GmAddr) -> Option<u32> {
        self.memory.read_u32(address)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // The device's memory may have other owners: cores leave the arena before its bytes are free.
        if let Some(arena) = self.arena.take() {
            self.give_up(arena);
        }
    }
}

/// Runs.
impl Device {
    /// Runs `work` to the end. If the last run was of the same graph of the host, the graph is neither sent nor loaded again: its tasks are
    /// still on the device, unless kernels were registered since, or the run is traced.
    ///
    /// # Errors
    /// `Fault`: the run ended with a fault; the device can be used again. `Call`: a task of a graph gives its kernel what that does not
    /// take. `OrchArgs`, `Budget`, `Capacity`, `ArenaMemory`: the run was not started.
    pub fn run(&mut self, work: Work<'_>, options: &RunOptions) -> Result<RunReport, Error> {
        self.run_on(work, options, |backend, arena| Ok(backend.run(arena)))
    }

    /// As [`Device::run`]; while the run lasts, `watch` is called now and then with its progress.
    ///
    /// # Errors
    /// Those of [`Device::run`].
    pub fn run_watched(
        &mut self,
        work: Work<'_>,
        options: &RunOptions,
        watch: impl FnMut(RunProgress) + Send,
    ) -> Result<RunReport, Error> {
        self.run_on(work, options, |backend, arena| {
            let watched = progress::watched(&arena, watch, || backend.run(arena));
            watched.map_err(|source| Error::Watcher { source })
        })
    }

    pub(crate) fn run_on(
        &mut self,
        work: Work<'_>,
        options: &RunOptions,
        run_arena: impl FnOnce(&mut dyn Backend, Arena<'static>) -> Result<RunOutcome, Error>,
    ) -> Result<RunReport, Error> {
        if options.trace.is_some() && self.backend.tracing() == Tracing::Off {
            return Err(Error::TracesNothing { device: self.name().to_owned() });
        }
        let options = &*options.fitted(work.variant(), self.clusters());
        let mut launch = Launch::plan(work, options, self.workers.len())?;
        // From here on, memory that other threads free is not allocated again.
        let hold = self.memory.begin_run();
        if let Work::HostGraph(image) = work {
            check_graph(image, &self.kernels, &self.memory)?;
        }
        let mut arena = self.provide(&launch.capacities)?;
        let (wanted, resident) = (ResidentGraph::of(work, &self.kernels), self.resident.take());
        // A transfer consumes its input, so a graph with transfers cannot be relaunched.
        let is_relaunchable = !matches!(work, Work::HostGraph(graph) if graph.has_transfers());
        if is_relaunchable && wanted.is_some() && wanted == resident && options.trace.is_none() {
            launch.again();
        }
        let FinishedRun { outcome, read, before } =
            match self.launch(&launch, &arena, options, run_arena) {
                Ok(finished) => finished,
                Err(error) => {
                    // Nothing has run, and cores may poll this arena: it stays in use.
                    self.arena = Some(arena);
                    return Err(error);
                }
            };
        let makespan_ns = u64::try_from(outcome.makespan.as_nanos()).ok();
        let whole = |trace: Box<Trace>| Box::new(Trace { makespan_ns, ..*trace });
        let result = match outcome.fault {
            None => {
                self.resident = wanted.filter(|_| is_resident_after(&arena, self.epochs.run));
                let mut report = self.report(work, &mut arena, outcome, &before);
                report.trace = self.timeline(work, options, &arena, read, None).map(whole);
                #[cfg(feature = "sim")]
                {
                    report.virtual_report = self.backend.take_virtual_report();
                    report.know_critical_path();
                }
                Ok(report)
            }
            Some(fault) => {
                let mut report = self.fault_report(work, fault, &mut arena, outcome);
                let ended = Some((fault, report.epitaph.as_ref()));
                report.trace = self.timeline(work, options, &arena, read, ended).map(whole);
                #[cfg(feature = "sim")]
                {
                    report.virtual_report = self.backend.take_virtual_report();
                }
                match self.check.refused().take() {
                    Some(what) if fault == pto_abi::Fault::BUILD_FAILED => {
                        Err(Error::Call { what })
                    }
                    _ => Err(Error::Fault { fault, report: Box::new(report) }),
                }
            }
        };
        self.settle(arena, outcome, hold);
        result
    }

    /// Writes the launch into the arena, and runs it.
    fn launch(
        &mut self,
        launch: &Launch<'_>,
        arena: &RuntimeArena,
        options: &RunOptions,
        run_arena: impl FnOnce(&mut dyn Backend, Arena<'static>) -> Result<RunOutcome, Error>,
    ) -> Result<FinishedRun, Error> {
        self.epochs.run = after(self.epochs.run);
        let tables = DeviceTables {
            cores: self.cores,
            kernels: self.kernels.addresses(),
            epochs: self.epochs,
            group: &self.group_words,
        };
        launch.write(arena, &tables)?;
        let before = CoreTotals::read(&arena.view(), self.cores);
        let run = || run_arena(&mut *self.backend, arena.view());
        let (outcome, read) = trace::read_while(&arena.view(), options.trace, run)
            .map_err(|source| Error::TraceReader { source })?;
        Ok(FinishedRun { outcome: outcome?, read, before })
    }

    /// The arena of the last run if it holds `needed`, otherwise a new one that holds both.
    fn provide(&mut self, needed: &Capacities) -> Result<RuntimeArena, Error> {
        let grown = match self.arena.take() {
            Some(arena) if arena.holds(needed) => return Ok(arena),
            // The old arena holds nothing that a run needs: it goes before the new one is taken.
            Some(arena) => {
                let grown = larger(arena.capacities(), needed);
                self.give_up(arena);
                grown
            }
            None => *needed,
        };
        self.epochs.bring_up = after(self.epochs.bring_up);
        self.resident = None;
        match RuntimeArena::new(&self.memory, &grown) {
            Err(Error::ArenaMemory { .. }) if grown != *needed => {
                RuntimeArena::new(&self.memory, needed)
            }
            made => made,
        }
    }

    /// Frees an arena, when no core is in service on it any more.
    fn give_up(&mut self, arena: RuntimeArena) {
        if !self.backend.release() {
            let hold = self.memory.begin_run();
            self.lose(arena, hold);
        }
    }

    /// Leaves an arena, and the memory of users, to the agents that did not come back.
    fn lose(&mut self, arena: RuntimeArena, hold: RunHold) {
        arena.lose();
        if !self.backend.renew() {
            hold.lose();
        }
    }

    /// Puts the device in order for the next run. After a fault that starts from a new arena: whatever state
    /// the fault left in queues, locks and handshake lines is gone with the old one. The memory of users is let go of last.
    fn settle(&mut self, arena: RuntimeArena, outcome: RunOutcome, hold: RunHold) {
        match outcome {
            RunOutcome { arena_lost: true, .. } => self.lose(arena, hold),
            RunOutcome { fault: Some(_), .. } => self.give_up(arena),
            RunOutcome { fault: None, .. } => self.arena = Some(arena),
        }
    }

    fn report(
        &self,
        work: Work<'_>,
        arena: &mut RuntimeArena,
        outcome: RunOutcome,
        before: &CoreTotals,
    ) -> RunReport {
        let view = arena.view();
        let totals = InstanceTotals::read(&view);
        let (parts_run, busy) = CoreTotals::read(&view, self.cores).since(before);
        let logs = arena.logs.drain(&view);
        RunReport {
            variant: work.variant(),
            tasks: totals.completed,
            kernels: totals.completed + totals.chained,
            edges: totals.edges + totals.edges_satisfied,
            edges_satisfied: totals.edges_satisfied,
            makespan: outcome.makespan,
            cores: self.cores,
            busy,
            parts_run,
            logs: logs.messages,
            logs_dropped: logs.dropped,
            trace: None,
            stream: match work {
                Work::Stream { .. } => StreamReport::read(&view),
                _ => None,
            },
            #[cfg(feature = "sim")]
            virtual_report: None,
        }
    }

    fn timeline(
        &self,
        work: Work<'_>,
        options: &RunOptions,
        arena: &RuntimeArena,
        read: Vec<trace::Ring>,
        fault: Option<(pto_abi::Fault, Option<&Epitaph>)>,
    ) -> Option<Box<Trace>> {
        options.trace?;
        let (variant, builder) = (work.variant(), work.builder().unwrap_or("loader"));
        let facts = [
            ("device", self.name()),
            ("runtime", variant.name()),
            ("builder", builder),
            ("build mode", options.build_mode.name()),
            ("fanout", options.fanout.name()),
        ];
        let kinds = CoreKind::ALL.iter().map(|kind| (*kind, self.cores(*kind) as usize));
        let kernels = self.kernels.describe().into_iter();
        let known = trace::TraceContext {
            cores: kinds.flat_map(|(kind, count)| std::iter::repeat_n(kind, count)).collect(),
            kernels: &kernels.map(|kernel| (kernel.func_id.0, kernel.name)).collect(),
            run: facts.map(|(name, fact)| (name.to_owned(), fact.to_owned())).into(),
            fault,
        };
        let trace = trace::timeline(&arena.view(), read, known);
        // The timeline of a device alone begins with its first event. Those of a group have one clock.
        let began = |trace: &Trace| if self.has_transfers { trace.began_ns } else { 0 };
        trace.map(|trace| Box::new(Trace { began_ns: began(&trace), ..trace }))
    }

    fn fault_report(
        &self,
        work: Work<'_>,
        fault: pto_abi::Fault,
        arena: &mut RuntimeArena,
        outcome: RunOutcome,
    ) -> FaultReport {
        let view = arena.view();
        let epitaph = view.fault().epitaph_is_sealed().then(|| view.epitaph());
        let logs = arena.logs.drain(&view);
        let context = Context {
            workers: &self.workers,
            kernel_name: &|func_id| self.kernels.name(func_id).map(ToOwned::to_owned),
            builders: self.builders(),
            builder: work.builder(),
        };
        let chain = epitaph.as_ref().and_then(|it| describe_chain(&view, it, context.kernel_name));
        let mut report = FaultReport::new(fault, epitaph, outcome.arena_lost, &context, logs);
        report.sentences.extend(chain);
        report.sentences.extend_from_slice(self.backend.post_mortem());
        report
    }
}
