//! A device in a few lines: GM in ordinary memory, one arena, the tables of one random graph.

use std::sync::Arc;

use pto_abi::arena::{Arena, ArenaLayout, Capacities};
use pto_abi::gm::GmWindow;
use pto_abi::handshake::Handshake;
use pto_abi::kinds::RunFlags;
use pto_abi::launch::{Epochs, LaunchBlock};
use pto_abi::limits::MAX_FUNC_ID;
use pto_abi::runtime::{Epitaph, RunConfig, region};
use pto_abi::symbol::symbol;
use pto_abi::trace::TraceCapacities;
use pto_abi::{Fault, GmAddr, RuntimeVariant};
use pto_aicore_kernels::LIBRARY;
#[cfg(test)]
use pto_aicpu_fw::{FanoutPolicy, Launch};

use super::super::chooser::Chooser;
#[cfg(test)]
use super::super::environment::Environment;
use super::super::host::run_once;
#[cfg(test)]
use super::super::host::run_with;
use super::super::options::VirtualOptions;
use super::super::report::VirtualReport;
use super::super::state::{Builder, live_ranges};
use super::builder::BUILDER;
use super::derived::HEAP_BYTES;
use super::graph::{EdgesFrom, RandomGraph, STRIDE};
use super::image::{NODE_ARGS, image, image_bytes};
use super::program::{GraphTables, Program};
use super::setup::{KeepCores, Setup};
use super::shaped;
use crate::builders::AnyBuilders;

/// Entries of a tensor map, at least.
const FEWEST_ENTRIES: u32 = 256;

/// Argument words and edges that a small ring has for each task of its window: more than a node of a random graph has, with what a ring loses at its end.
const WORDS_A_SLOT: u32 = 32;
/// See [`WORDS_A_SLOT`].
const EDGES_A_SLOT: u32 = 32;

/// Events of a part in the ring of one agent, at most.
const EVENTS_A_PART: u32 = 16;

/// A line of memory.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct CacheLine([u8; 64]);

/// What came of one run.
pub(super) struct SoakRun {
    pub(super) fault: Option<Fault>,
    pub(super) report: VirtualReport,
    pub(super) chooser: Chooser,
    pub(super) epitaph: Epitaph,
}

/// How a device was at some moment between two runs.
pub(super) struct Snapshot {
    memory: Vec<(u64, Vec<u8>)>,
    epochs: Epochs,
}

/// The device.
pub(super) struct SoakDevice {
    // Owns the memory of `arena`; a raw slice, because windows reach it.
    memory: *mut [CacheLine],
    arena: Arena<'static>,
    layout: ArenaLayout,
    capacities: Capacities,
    kernels: Box<[u64; MAX_FUNC_ID]>,
    program: Arc<Program>,
    builders: Arc<AnyBuilders>,
    setup: Setup,
    epochs: Epochs,
}

impl Drop for SoakDevice {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` in `new`, and freed only here; runs have ended when `run` returns, and
        // the arena is not shared.
        drop(unsafe { Box::from_raw(self.memory) });
    }
}

impl SoakDevice {
    /// A device for one graph; `None`: the graph is too large for an arena.
    pub(super) fn new(setup: Setup, graph: &Arc<RandomGraph>) -> Option<Self> {
        Self::with_rings(setup, graph, TraceCapacities::OFF)
    }

    /// The same, whose runs are traced as a whole. That changes nothing in them.
    pub(super) fn traced(setup: Setup, graph: &Arc<RandomGraph>) -> Option<Self> {
        let parts: u32 = graph.first_cells().last().copied()?;
        let edges = u32::try_from(graph.edge_count()).ok()?;
        let rings = TraceCapacities {
            instances: setup.aicpu,
            instance_events: parts.saturating_mul(EVENTS_A_PART).saturating_add(2 * edges),
            cores: setup.aic + setup.aiv,
            core_events: parts.saturating_mul(EVENTS_A_PART),
        };
        Self::with_rings(setup, graph, rings)
    }

    fn with_rings(setup: Setup, graph: &Arc<RandomGraph>, trace: TraceCapacities) -> Option<Self> {
        let tasks = u32::try_from(graph.nodes.len()).ok()?;
        let edges = graph.edge_count() as u64;
        let streams = setup.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER;
        // With tensors: the words of a part, itself, its producers, its table, and the word after them.
        let most = u64::from(NODE_ARGS) + 4;
        let image_bytes = image_bytes(graph);
        let held = setup.window.unwrap_or(tasks);
        let (arg_words, edges_held) = match setup.window {
            Some(window) => (u64::from(WORDS_A_SLOT * window), u64::from(EDGES_A_SLOT * window)),
            None if streams => (most * u64::from(tasks) + edges, edges),
            None => (u64::from(NODE_ARGS) * u64::from(tasks), edges),
        };
        let capacities = Capacities {
            tasks: held,
            arg_words,
            edges: edges_held,
            image_bytes,
            log_entries: 4,
            trace,
            ..Capacities::default()
        };
        let mut capacities = if streams { capacities.streamed_whole() } else { capacities };
        if streams {
            // What a search compares is small by that.
            capacities.stream.heap_bytes = match graph.edges {
                EdgesFrom::TensorsAndValues => HEAP_BYTES,
                EdgesFrom::Program | EdgesFrom::Tensors => 0,
            };
            // What a node writes and reads, its table among it, and what the program does to that.
            let accesses = 4 * tasks + u32::try_from(edges).ok()?;
            capacities.stream.map_entries = (2 * accesses).next_power_of_two().max(FEWEST_ENTRIES);
        }
        let layout = ArenaLayout::plan(&capacities).ok()?;
        let first_cells = graph.first_cells();
        let nodes = u64::from(first_cells.last().copied()? * STRIDE);
        let reads: usize = graph.read_cells().iter().map(Vec::len).sum();
        let values = layout.total_bytes;
        let counters = values + 8 * nodes;
        let producers = counters + 4 * nodes;
        let total = producers + (4 * reads as u64).next_multiple_of(64);
        let lines = vec![CacheLine([0; 64]); usize::try_from(total / 64).ok()? + 1];
        let memory = Box::into_raw(lines.into_boxed_slice());
        let start = memory.cast::<u8>();
        let address = GmAddr(start.expose_provenance() as u64);
        // SAFETY: the memory is aligned, it is freed by `drop` only, and everything reaches it through windows.
        let gm = unsafe { GmWindow::from_raw(start, total, address) };
        let Some(arena) = Arena::new(gm, address, layout.total_bytes) else {
            // SAFETY: made above, and not shared.
            drop(unsafe { Box::from_raw(memory) });
            return None;
        };
        let at = |offset| address.offset(offset);
        let tables =
            GraphTables { values: at(values), counters: at(counters), producers: at(producers) };
        let program = Arc::new(Program::of(graph, tables));
        let (kernels, epochs) = (kernel_table(), Epochs { run: 0, bring_up: 1 });
        let builders = Arc::new(AnyBuilders::sharing(Arc::clone(&program)));
        let soak_device =
            Self { memory, arena, layout, capacities, kernels, program, builders, setup, epochs };
        soak_device.arena.workers().iter().for_each(Handshake::reset);
        soak_device.write_launch();
        soak_device.write_producers();
        let image = image(&soak_device.program).ok()?;
        arena.window().write_bytes(layout.regions[region::GRAPH].offset, &image)?;
        Some(soak_device)
    }

    /// The memory that a run leaves to the next one, and the numbers of that one.
    pub(super) fn snapshot(&self) -> Snapshot {
        let workers = (self.setup.aic + self.setup.aiv) as usize;
        let read = |(offset, count): (u64, usize)| {
            let mut bytes = vec![0; count];
            self.arena.gm().read_bytes(offset, &mut bytes).unwrap_or_default();
            (offset, bytes)
        };
        let ranges = live_ranges(&self.arena, workers, Builder::UnderWay);
        let memory = ranges.into_iter().map(read).collect();
        Snapshot { memory, epochs: self.epochs }
    }

    /// Goes back to how everything was then. Only after a run without a fault: cores must be in service.
    pub(super) fn rewind(&mut self, to: &Snapshot) {
        for (offset, bytes) in &to.memory {
            self.arena.gm().write_bytes(*offset, bytes).unwrap_or_default();
        }
        self.epochs = to.epochs;
    }

    fn write_producers(&self) {
        let producers = self.program.graph.read_cells().into_iter().flatten();
        for (at, producer) in (0..).zip(producers) {
            self.write(self.program.tables.producers.offset(4 * at), &(producer * STRIDE));
        }
    }

    fn write<T: bytemuck::Pod>(&self, address: GmAddr, value: &T) {
        let gm = self.arena.gm();
        let offset = gm.offset_of(address, size_of::<T>() as u64);
        // Every address is computed from the layout, so that it lies in GM.
        offset.and_then(|offset| gm.write(offset, value)).unwrap_or_default();
    }

    fn read<T: bytemuck::Pod>(&self, address: GmAddr) -> Option<T> {
        let gm = self.arena.gm();
        gm.read(gm.offset_of(address, size_of::<T>() as u64)?)
    }

    /// One run; after a fault the cores are brought up anew.
    pub(super) fn run(&mut self, options: VirtualOptions, chooser: Chooser) -> SoakRun {
        self.prepare();
        let (fault, report, chooser) = run_once(self.arena, &self.builders, options, chooser);
        self.landed(fault, report, chooser)
    }

    /// One run with a fanout policy that may be wrong.
    #[cfg(test)]
    pub(super) fn run_with<F: FanoutPolicy>(&mut self, options: VirtualOptions) -> SoakRun {
        let launch = self.prepared();
        let chooser = Chooser::seeded(options.seed);
        let beats = Arc::default();
        let (report, chooser) = run_with::<F, _>(
            &launch,
            &self.builders,
            options,
            (chooser, Environment::default()),
            &beats,
        );
        self.landed(self.arena.fault().first(), report, chooser)
    }

    /// The launch of a run.
    #[cfg(test)]
    pub(super) fn prepared(&mut self) -> Launch<'static> {
        self.prepare();
        Launch::accept(self.arena).expect("the soak device prepares it")
    }

    /// The arena of its runs.
    pub(super) const fn arena(&self) -> &Arena<'static> {
        &self.arena
    }

    fn prepare(&mut self) {
        self.epochs.run += 1;
        for cell in 0..self.program.first_cells.last().copied().unwrap_or(0) {
            let at = u64::from(cell * STRIDE);
            self.write(self.program.tables.values.offset(8 * at), &0_u64);
            self.write(self.program.tables.counters.offset(4 * at), &0_u32);
        }
        self.write_launch();
    }

    fn write_launch(&self) {
        let block = LaunchBlock {
            config: self.config(),
            orch: bytemuck::Zeroable::zeroed(),
            capacities: &self.capacities,
            image_bytes: self.capacities.image_bytes,
            kernels: &self.kernels,
            cores: [self.setup.aic, self.setup.aiv],
            epochs: self.epochs,
        };
        let written = block.write(&self.arena, &self.layout);
        debug_assert!(written.is_some(), "the layout was planned for these capacities");
    }

    fn landed(&mut self, fault: Option<Fault>, report: VirtualReport, chooser: Chooser) -> SoakRun {
        let is_new = fault.is_some() || self.setup.keeps_cores == KeepCores::Leave;
        self.epochs.bring_up += u32::from(is_new);
        SoakRun { fault, report, chooser, epitaph: self.arena.epitaph() }
    }

    /// The first node whose value or count is not what it must be.
    pub(super) fn wrong_node(&self) -> Option<u32> {
        let tables = &self.program.tables;
        let is_right = |cell: u32, (value, count): (u64, u32)| {
            let at = u64::from(cell * STRIDE);
            self.read(tables.values.offset(8 * at)) == Some(value)
                && self.read(tables.counters.offset(4 * at)) == Some(count)
        };
        let values = (0..).zip(self.program.graph.values());
        let (cell, _) = values.into_iter().find(|(cell, value)| !is_right(*cell, *value))?;
        let first = &self.program.first_cells;
        u32::try_from(first.partition_point(|first| *first <= cell)).ok()?.checked_sub(1)
    }

    fn config(&self) -> RunConfig {
        let setup = &self.setup;
        RunConfig {
            variant: setup.variant.get(),
            build_mode: setup.build_mode.get(),
            fanout: setup.fanout.get(),
            flags: match setup.keeps_cores {
                KeepCores::Leave => 0,
                KeepCores::Stay => RunFlags::KEEP_CORES.bits(),
            },
            aicpu_instances: setup.aicpu,
            // Of the cores.
            worker_count: 0,
            builder: symbol(BUILDER),
            task_budget_ns: setup.task_budget_ns,
            stall_budget_ns: setup.stall_budget_ns,
            bring_up_budget_ns: setup.bring_up_budget_ns,
            run_budget_ns: 0,
        }
    }
}

/// The library's kernels, and those of tasks with shapes.
fn kernel_table() -> Box<[u64; MAX_FUNC_ID]> {
    let mut kernels = Box::new([0; MAX_FUNC_ID]);
    for kernel in LIBRARY {
        if let Some(entry) = kernels.get_mut(kernel.func_id as usize) {
            *entry = kernel.entry as usize as u64;
        }
    }
    for (func_id, entry) in shaped::KERNELS {
        kernels[func_id.index()] = entry as usize as u64;
    }
    kernels
}

#[cfg(test)]
mod tests {
    use super::super::scenario::{Scenario, Troubles};
    use super::{Chooser, SoakDevice};

    /// A run costs what happens in it. An instance that waits takes a turn and an alarm for each nap, however long the nap lasts.
    #[test]
    fn a_nap_takes_two_turns() {
        for seed in 0..100 {
            let Scenario { graph, setup, options, .. } = Scenario::draw(seed, 40, Troubles::None);
            let mut soak_device = SoakDevice::new(setup, &graph).expect("the graph fits");
            let report = soak_device.run(options, Chooser::seeded(options.seed)).report;
            let steps: u64 = report.instances.iter().map(|instance| instance.steps).sum();
            let parts: u64 = report.kinds.iter().map(|kind| kind.parts).sum();
            let most = 3 * steps + 4 * parts + 100;
            assert!(report.turns <= most, "seed {seed}: {} turns, {steps} steps", report.turns);
        }
    }
}
