//! Checks the arena of a launch once, before anything runs, because the firmware does not trust the host.

use core::ops::Range;

use pto_abi::arena::Arena;
use pto_abi::gm::GmWindow;
use pto_abi::image::{FieldMismatch, expect_at_most, expect_equal};
use pto_abi::kinds::RunFlags;
use pto_abi::launch_args::LaunchArgs;
use pto_abi::layout::LAYOUT_HASH;
use pto_abi::limits::{MAX_AICPU_INSTANCES, MAX_ORCH_ARGS, MAX_TASKS, MIN_AICPU_BUILD_INSTANCES};
use pto_abi::runtime::{
    ABI_MAJOR, ABI_MINOR, OrchArgs, RUNTIME_MAGIC, Region, RunConfig, Runtime, RuntimeHeader,
    region,
};
use pto_abi::session::board::RESIDENT_SYMBOL;
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::trace::{TraceOwner, WhenFull};
use pto_abi::{BuildMode, CoreKind, FanoutStrategy, Fault, FuncId, GmAddr, RuntimeVariant};

use crate::blame::Blame;
use crate::block_shapes::{self, BlockShapeMemory};
use crate::builder::DeviceMemory;
use crate::divide::WorkerTable;
use crate::ready_queue::ReadyQueue;
use crate::state::SharedState;
use crate::stream::StreamMemory;
use crate::trace::TraceWriter;
use crate::watchdog::Budgets;

/// A launch that has been checked. Holding it proves: header and configuration are those of this firmware,
/// every region lies in the arena and is large enough for what it claims, the worker table is consistent, and
/// every scheduler has a core. It proves nothing of the graph image, which its loader checks.
#[derive(Clone)]
pub struct Launch<'a> {
    /// What the instances share.
    pub state: SharedState<'a>,
    /// The arena that it was read from.
    pub arena: Arena<'a>,
    /// The workers.
    pub workers: WorkerTable,
    /// Who adds tasks.
    pub variant: RuntimeVariant,
    /// Whether schedulers wait for the builder, or for the loader, for which they always wait.
    pub build_mode: BuildMode,
    /// How edges are added while their producer may complete.
    pub fanout: FanoutStrategy,
    /// Switches.
    pub flags: RunFlags,
    /// AICPU instances.
    pub aicpu_instances: u32,
    /// Symbol of the builder.
    pub builder: u64,
    /// Generation of this run's ids.
    pub run_epoch: u32,
    /// Which bring-up the cores answer.
    pub bring_up_epoch: u32,
    /// How long a core may take to answer, or to stop beyond its task.
    pub bring_up_budget_ns: u64,
    /// How long tasks, stalls and the run may take.
    pub budgets: Budgets,
    orch: OrchArgs,
    regions: [Region; region::COUNT],
}

impl<'a> Launch<'a> {
    /// Checks the arena.
    ///
    /// # Errors
    /// The fault that names the first wrong field, with what was found and what was expected.
    pub fn accept(arena: Arena<'a>) -> Result<Self, Blame> {
        // Read once: what is checked is what is used.
        let header = arena.header();
        check_header(&arena, &header).map_err(blame)?;
        let config = arena.config();
        let orch: OrchArgs = arena.orch_args();
        let words = u64::from(orch.orch_argc) + u64::from(orch.group_argc);
        expect_at_most(Fault::RUNTIME_ORCH_ARGC, words, MAX_ORCH_ARGS as u64).map_err(blame)?;
        if let Some(word) = orch.reserved.into_iter().find(|word| *word != 0) {
            return Err(Blame::of(Fault::RUNTIME_ORCH_RESERVED).detail(word.into(), 0));
        }
        let (variant, build_mode, fanout, flags) = check_choices(&config).map_err(blame)?;
        check_counts(&config, variant).map_err(blame)?;
        let count = config.worker_count as usize;
        let workers = WorkerTable::check((0..count).map(|worker| arena.worker_entry(worker)))?;
        let regions = arena.regions();
        let schedulers = u32::from(variant.has_builder())..config.aicpu_instances;
        let launch = Self {
            state: shared_state(&arena, &regions, schedulers)
                .map_err(Blame::of)
                .and_then(|state| check_apart(&regions).map(|()| state))?,
            arena,
            workers,
            variant,
            // Schedulers wait until an image is loaded.
            build_mode: if variant.has_builder() { build_mode } else { BuildMode::SEQUENTIAL },
            fanout,
            flags,
            aicpu_instances: config.aicpu_instances,
            builder: config.builder,
            run_epoch: header.run_epoch,
            bring_up_epoch: header.bring_up_epoch,
            bring_up_budget_ns: config.bring_up_budget_ns,
            budgets: Budgets {
                task_ns: config.task_budget_ns,
                stall_ns: config.stall_budget_ns,
                run_ns: config.run_budget_ns,
                of_launches: config.builder == RESIDENT_SYMBOL,
            },
            orch,
            regions,
        };
        launch.check_division()?;
        launch.check_trace()?;
        Ok(launch)
    }

    /// With the memory of shaped tasks, if the run has one: a streaming run, or one with transfers. Apart, for firmwares without the streaming runtime.
    #[must_use]
    pub fn with_block_shapes(mut self) -> Self {
        let stream = self.regions[region::STREAM];
        if stream.bytes > 0 {
            self.state.shapes = BlockShapeMemory::of(&self.arena, stream, &self.workers);
        }
        self
    }

    /// What the host passed to the builder, as it was checked.
    #[must_use]
    pub fn args(&self) -> LaunchArgs<'_> {
        self.orch.args().unwrap_or_default()
    }

    /// The first instance that schedules.
    #[must_use]
    pub fn first_scheduler(&self) -> u32 {
        u32::from(self.variant.has_builder())
    }

    /// The workers that `instance` manages.
    pub fn share(&self, instance: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.first_scheduler();
        let schedulers = self.aicpu_instances - first;
        // The builder's share is empty: scheduler number `schedulers` does not exist.
        self.workers.share(instance.checked_sub(first).unwrap_or(schedulers), schedulers)
    }

    /// Which core kinds the device has.
    #[must_use]
    pub fn has_kind(&self) -> [bool; CoreKind::COUNT] {
        core::array::from_fn(|kind| self.workers.count(CoreKind::ALL[kind]) > 0)
    }

    /// The window of the graph image.
    ///
    /// # Errors
    /// `RUNTIME_REGION_GRAPH`.
    pub fn image(&self) -> Result<GmWindow<'a>, Fault> {
        self.arena.region_window(self.regions[region::GRAPH], Fault::RUNTIME_REGION_GRAPH)
    }

    /// Where the log rings are.
    #[must_use]
    pub const fn log_region(&self) -> Region {
        self.regions[region::LOGS]
    }

    /// The memory of the streaming builder, with an empty tensor map.
    ///
    /// # Errors
    /// See [`StreamMemory::accept`].
    pub fn stream(&self) -> Result<StreamMemory<'a>, Blame> {
        StreamMemory::accept(&self.arena, self.regions[region::STREAM], &self.state)
    }

    /// Where the trace rings are; no bytes: the run is not traced.
    #[must_use]
    pub const fn trace_region(&self) -> Region {
        self.regions[region::TRACE]
    }

    /// Whether events are recorded.
    #[must_use]
    pub const fn is_traced(&self) -> bool {
        self.regions[region::TRACE].bytes > 0
    }

    /// Whether the writer of a full trace ring waits for the host.
    #[must_use]
    pub fn trace_waits(&self) -> bool {
        self.is_traced() && WhenFull::of(self.flags) == WhenFull::Wait
    }

    /// The trace ring of an instance or of a worker; `None`: the run is not traced.
    #[must_use]
    pub fn trace_writer(&self, owner: TraceOwner) -> Option<TraceWriter<'a>> {
        let lane =
            self.arena.trace_lane(self.regions[region::TRACE], owner, WhenFull::of(self.flags))?;
        Some(TraceWriter::new(lane, self.arena, owner))
    }

    /// A run that is traced has a ring for everybody.
    fn check_trace(&self) -> Result<(), Blame> {
        let workers = u32::try_from(self.workers.len()).unwrap_or(u32::MAX);
        let instances = (0..self.aicpu_instances).map(TraceOwner::Instance);
        let mut owners = instances.chain((0..workers).map(TraceOwner::Core));
        if self.is_traced() && !owners.all(|owner| self.trace_writer(owner).is_some()) {
            return Err(Blame::of(Fault::RUNTIME_REGION_TRACE));
        }
        Ok(())
    }

    fn check_division(&self) -> Result<(), Blame> {
        let schedulers = self.aicpu_instances - self.first_scheduler();
        let clusters = self.workers.cluster_count();
        if clusters < schedulers {
            let blame = Blame::of(Fault::SCHEDULE_NO_CORES);
            return Err(blame.detail(clusters.into(), schedulers.into()));
        }
        Ok(())
    }
}

/// A builder's view of the device.
#[derive(Clone, Copy)]
pub(crate) struct ArenaMemory<'a> {
    arena: Arena<'a>,
    kernels: &'a [AtomicU64],
}

impl<'a> ArenaMemory<'a> {
    pub(crate) fn of(arena: Arena<'a>) -> Self {
        Self { arena, kernels: arena.kernel_addrs() }
    }
}

impl DeviceMemory for ArenaMemory<'_> {
    #[inline]
    fn kernel_addr(&self, func_id: FuncId) -> GmAddr {
        let entry = self.kernels.get(func_id.index());
        entry.map_or(GmAddr::NULL, |entry| GmAddr(entry.load(Ordering::Relaxed)))
    }

    fn read_u32(&self, address: GmAddr) -> Option<u32> {
        let gm = self.arena.gm();
        gm.read(gm.offset_of(address, 4)?)
    }

    fn has_element(&self, address: GmAddr, bytes: u64) -> bool {
        block_shapes::has_element(&self.arena.gm(), address, bytes)
    }

    fn read_element(&self, address: GmAddr, bytes: u64) -> Option<u64> {
        block_shapes::read_element(&self.arena.gm(), address, bytes)
    }

    fn write_element(&self, address: GmAddr, bytes: u64, value: u64) -> Option<()> {
        let gm = self.arena.gm();
        let at = gm.offset_of(address, bytes)?;
        let [a, b, c, d, ..] = value.to_le_bytes();
        match bytes {
            1 => gm.write(at, &a),
            2 => gm.write(at, &u16::from_le_bytes([a, b])),
            4 => gm.write(at, &u32::from_le_bytes([a, b, c, d])),
            _ => gm.write(at, &value),
        }
    }
}

fn blame(refusal: FieldMismatch) -> Blame {
    Blame::of(refusal.fault).detail(refusal.found, refusal.expected)
}

fn check_header(arena: &Arena<'_>, header: &RuntimeHeader) -> Result<(), FieldMismatch> {
    let (gm, window) = (arena.gm(), arena.window());
    expect_equal(Fault::RUNTIME_MAGIC, header.magic, RUNTIME_MAGIC)?;
    expect_equal(Fault::RUNTIME_ABI_MAJOR, header.abi_major.into(), ABI_MAJOR.into())?;
    expect_at_most(Fault::RUNTIME_ABI_MINOR, header.abi_minor.into(), ABI_MINOR.into())?;
    let runtime_bytes = size_of::<Runtime>() as u64;
    expect_equal(Fault::RUNTIME_HEADER_BYTES, header.header_bytes.into(), runtime_bytes)?;
    expect_equal(Fault::RUNTIME_LAYOUT_HASH, header.layout_hash, LAYOUT_HASH)?;
    expect_equal(Fault::RUNTIME_TOTAL_BYTES, header.total_bytes, window.bytes())?;
    expect_equal(Fault::RUNTIME_ARENA_ADDRESS, header.arena_address.0, window.address().0)?;
    expect_equal(Fault::RUNTIME_GM_WINDOW, header.gm_address.0, gm.address().0)?;
    expect_equal(Fault::RUNTIME_GM_WINDOW, header.gm_bytes, gm.bytes())?;
    expect_not_zero(Fault::RUNTIME_RUN_EPOCH, header.run_epoch.into())?;
    expect_not_zero(Fault::RUNTIME_BRING_UP_EPOCH, header.bring_up_epoch.into())
}

const fn expect_not_zero(fault: Fault, found: u64) -> Result<(), FieldMismatch> {
    if found == 0 { Err(FieldMismatch { fault, found, expected: 1 }) } else { Ok(()) }
}

type Choices = (RuntimeVariant, BuildMode, FanoutStrategy, RunFlags);

fn check_choices(config: &RunConfig) -> Result<Choices, FieldMismatch> {
    let refuse = |fault, found: u32| FieldMismatch { fault, found: found.into(), expected: 0 };
    let variant = RuntimeVariant::try_from(config.variant)
        .map_err(|_| refuse(Fault::RUNTIME_VARIANT, config.variant))?;
    let build_mode = BuildMode::try_from(config.build_mode)
        .map_err(|_| refuse(Fault::RUNTIME_BUILD_MODE, config.build_mode))?;
    let fanout = FanoutStrategy::try_from(config.fanout)
        .map_err(|_| refuse(Fault::RUNTIME_FANOUT, config.fanout))?;
    let flags =
        RunFlags::from_bits(config.flags).ok_or(refuse(Fault::RUNTIME_FLAGS, config.flags))?;
    if flags.contains(RunFlags::RUN_AGAIN) && variant.has_builder() {
        return Err(refuse(Fault::RUNTIME_FLAGS, config.flags));
    }
    Ok((variant, build_mode, fanout, flags))
}

fn check_counts(config: &RunConfig, variant: RuntimeVariant) -> Result<(), FieldMismatch> {
    let fewest = if variant.has_builder() { MIN_AICPU_BUILD_INSTANCES } else { 1 };
    if config.aicpu_instances < fewest {
        let found = config.aicpu_instances.into();
        let expected = fewest.into();
        return Err(FieldMismatch { fault: Fault::RUNTIME_AICPU_INSTANCES, found, expected });
    }
    let instances = config.aicpu_instances.into();
    expect_at_most(Fault::RUNTIME_AICPU_INSTANCES, instances, MAX_AICPU_INSTANCES as u64)?;
    let workers = pto_abi::limits::MAX_WORKERS as u64;
    expect_not_zero(Fault::RUNTIME_WORKER_COUNT, config.worker_count.into())?;
    expect_at_most(Fault::RUNTIME_WORKER_COUNT, config.worker_count.into(), workers)?;
    for budget in [config.task_budget_ns, config.stall_budget_ns, config.bring_up_budget_ns] {
        expect_not_zero(Fault::RUNTIME_BUDGETS, budget)?;
    }
    Ok(())
}

/// Who writes one region writes no other: the fault names the two.
fn check_apart(regions: &[Region; region::COUNT]) -> Result<(), Blame> {
    let end = |region: &Region| region.offset.saturating_add(region.bytes);
    for (index, one) in (0..).zip(regions) {
        for (other_index, other) in (0..index).zip(regions) {
            let overlap = one.bytes > 0
                && other.bytes > 0
                && one.offset < end(other)
                && other.offset < end(one);
            if overlap {
                return Err(Blame::of(Fault::RUNTIME_REGIONS_OVERLAP).detail(other_index, index));
            }
        }
    }
    Ok(())
}

fn shared_state<'a>(
    arena: &Arena<'a>,
    regions: &[Region; region::COUNT],
    schedulers: Range<u32>,
) -> Result<SharedState<'a>, Fault> {
    for (index, fault) in REGION_FAULTS.into_iter().enumerate() {
        arena.region_window(regions[index], fault)?;
    }
    let stream = regions[region::STREAM];
    if stream.bytes > 0 && arena.stream_header(stream).is_none() {
        return Err(Fault::RUNTIME_REGION_STREAM);
    }
    let tasks = arena.tasks(regions[region::TASKS])?;
    if tasks.len() > MAX_TASKS as usize {
        return Err(Fault::RUNTIME_REGION_TASKS);
    }
    let payloads = regions[region::PAYLOADS];
    let queue = |kind| {
        let (ends, slots) = arena.ready_queue(regions[region::READY], kind)?;
        ReadyQueue::new(ends, slots).filter(|queue| queue.capacity() >= tasks.len() as u64)
    };
    let unusable = Fault::RUNTIME_REGION_READY;
    let has_ring = |instance| arena.log_ring(regions[region::LOGS], instance).is_some();
    if !(0..MAX_AICPU_INSTANCES).all(has_ring) {
        return Err(Fault::RUNTIME_REGION_LOGS);
    }
    Ok(SharedState {
        tasks,
        payloads: arena.payloads(payloads)?,
        payloads_address: arena.window().address().offset(payloads.offset),
        chunks: arena.chunks(regions[region::EDGES])?,
        ready: [queue(CoreKind::AIC).ok_or(unusable)?, queue(CoreKind::AIV).ok_or(unusable)?],
        progress: arena.progress(),
        fault: arena.fault(),
        instances: arena.instances(),
        schedulers: arena
            .instances()
            .get(schedulers.start as usize..schedulers.end as usize)
            .unwrap_or_default(),
        shapes: None,
    })
}

const REGION_FAULTS: [Fault; region::COUNT] = [
    Fault::RUNTIME_REGION_TASKS,
    Fault::RUNTIME_REGION_PAYLOADS,
    Fault::RUNTIME_REGION_EDGES,
    Fault::RUNTIME_REGION_READY,
    Fault::RUNTIME_REGION_LOGS,
    Fault::RUNTIME_REGION_GRAPH,
    Fault::RUNTIME_REGION_TRACE,
    Fault::RUNTIME_REGION_STREAM,
];
