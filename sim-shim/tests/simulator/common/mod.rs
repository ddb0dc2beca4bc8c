//! A device in a few lines, for the conformance tests: GM in ordinary memory, one arena, one machine.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::num::NonZeroUsize;
use std::sync::Arc;

use pto_abi::arena::{Arena, ArenaLayout, Capacities};
use pto_abi::gm::GmWindow;
use pto_abi::kinds::RunFlags;
use pto_abi::launch::{Epochs, LaunchBlock};
use pto_abi::launch_args::LaunchArgs;
use pto_abi::limits::MAX_FUNC_ID;
use pto_abi::runtime::{OrchArgs, RunConfig, region};
use pto_abi::stream::StreamCapacities;
use pto_abi::symbol::symbol;
use pto_abi::{BuildMode, FanoutStrategy, GmAddr, RuntimeVariant};
use pto_aicore_kernels::LIBRARY;
use pto_graph::BuilderSet;
use pto_sim_shim::virtual_time::VirtualOptions;
use pto_sim_shim::{AnyBuilders, Hosting, LaunchOutcome, SimulatedMachine};

/// Memory that stays where it is.
pub(crate) struct Memory {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: raw memory; it is accessed through `GmWindow` alone, which threads may share.
unsafe impl Send for Memory {}
// SAFETY: raw memory; it is accessed through `GmWindow` alone, which threads may share.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(bytes: u64) -> Arc<Self> {
        let layout = Layout::from_size_align(usize::try_from(bytes).unwrap(), 4096).unwrap();
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc_zeroed(layout) };
        assert!(!start.is_null());
        Arc::new(Self { start, layout })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no Arc to it is left.
        unsafe { dealloc(self.start, self.layout) };
    }
}

/// What a test launches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchOptions {
    pub(crate) variant: RuntimeVariant,
    pub(crate) build_mode: BuildMode,
    pub(crate) fanout: FanoutStrategy,
    pub(crate) aicpu: u32,
    pub(crate) aic: u32,
    pub(crate) aiv: u32,
    pub(crate) task_budget_ms: u64,
    pub(crate) stall_budget_ms: u64,
    pub(crate) run_budget_ms: u64,
    pub(crate) bring_up_budget_ms: u64,
    pub(crate) capacities: Capacities,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        Self {
            variant: RuntimeVariant::AICPU_BUILD_GRAPH,
            build_mode: BuildMode::CONCURRENT,
            fanout: FanoutStrategy::LOCK_FREE,
            aicpu: 4,
            aic: 6,
            aiv: 12,
            task_budget_ms: 60_000,
            stall_budget_ms: 5_000,
            run_budget_ms: 0,
            bring_up_budget_ms: 10_000,
            capacities: Capacities::default(),
        }
    }
}

/// A device with one arena.
pub(crate) struct Device {
    machine: SimulatedMachine,
    pub(crate) arena: Arena<'static>,
    pub(crate) options: LaunchOptions,
    layout: ArenaLayout,
    epochs: Epochs,
}

impl Device {
    pub(crate) fn new<B: BuilderSet>(
        hosting: Hosting,
        options: LaunchOptions,
        builders: B,
    ) -> Self {
        let mut options = options;
        if options.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER
            && options.capacities.stream == StreamCapacities::OFF
        {
            options.capacities = options.capacities.streamed_whole();
            options.capacities.stream.heap_bytes = 1 << 16;
        }
        let layout = ArenaLayout::plan(&options.capacities).unwrap();
        let memory = Memory::new(layout.total_bytes);
        let address = GmAddr(memory.start.expose_provenance() as u64);
        // SAFETY: the machine and its threads hold `memory` for as long as they use the window, and the test
        // holds the machine; the memory is aligned to a page.
        let gm = unsafe { GmWindow::from_raw(memory.start, layout.total_bytes, address) };
        let arena = Arena::new(gm, address, layout.total_bytes).unwrap();
        arena.workers().iter().for_each(pto_abi::handshake::Handshake::reset);
        let memory: Arc<dyn Any + Send + Sync> = memory;
        let machine = SimulatedMachine::of_any(hosting, memory, AnyBuilders::of(builders));
        let device =
            Self { machine, arena, options, layout, epochs: Epochs { run: 0, bring_up: 1 } };
        device.write("", &[], device.layout.regions[region::GRAPH].bytes);
        device
    }

    fn write(&self, builder: &str, orch: &[u64], image_bytes: u64) {
        let mut kernels = [0; MAX_FUNC_ID];
        for kernel in LIBRARY {
            kernels[kernel.func_id as usize] = kernel.entry as usize as u64;
        }
        let block = LaunchBlock {
            config: self.config(builder),
            orch: OrchArgs::of(LaunchArgs::of(orch)).unwrap(),
            capacities: &self.options.capacities,
            image_bytes,
            kernels: &kernels,
            cores: [self.options.aic, self.options.aiv],
            epochs: self.epochs,
        };
        block.write(&self.arena, &self.layout).unwrap();
    }

    pub(crate) fn config(&self, builder: &str) -> RunConfig {
        let options = &self.options;
        RunConfig {
            variant: options.variant.get(),
            build_mode: options.build_mode.get(),
            fanout: options.fanout.get(),
            flags: RunFlags::KEEP_CORES.bits(),
            aicpu_instances: options.aicpu,
            worker_count: options.aic + options.aiv,
            builder: symbol(builder),
            task_budget_ns: options.task_budget_ms * 1_000_000,
            stall_budget_ns: options.stall_budget_ms * 1_000_000,
            bring_up_budget_ns: options.bring_up_budget_ms * 1_000_000,
            run_budget_ns: options.run_budget_ms * 1_000_000,
        }
    }

    /// Runs a builder; `tamper` may change the prepared arena.
    pub(crate) fn run_tampered(
        &mut self,
        builder: &str,
        orch: &[u64],
        tamper: impl FnOnce(&Self),
    ) -> LaunchOutcome {
        self.epochs.run += 1;
        // The image of the last run stays loaded, for a run that runs it again.
        let loaded_bytes = self.arena.regions()[region::GRAPH].bytes;
        let kept = self.layout.regions[region::GRAPH].bytes;
        self.write(builder, orch, if loaded_bytes > 0 { loaded_bytes } else { kept });
        tamper(self);
        let outcome = self.machine.run(self.arena);
        // After a fault the cores have left their loops, or are about to.
        self.epochs.bring_up += u32::from(outcome.fault.is_some());
        outcome
    }

    pub(crate) fn run(&mut self, builder: &str, orch: &[u64]) -> LaunchOutcome {
        self.run_tampered(builder, orch, |_| {})
    }

    /// Tasks that the cores report, since the arena was made.
    pub(crate) fn tasks_run(&self) -> u64 {
        let load = |word: &pto_abi::sync::AtomicU64| word.load(pto_abi::sync::Ordering::Relaxed);
        self.arena.workers().iter().map(|lines| load(&lines.worker.tasks_run)).sum()
    }
}

/// Every hosting mode that a test runs in.
pub(crate) fn hostings() -> Vec<Hosting> {
    let pool = |n| Hosting::Pool { os_threads: NonZeroUsize::new(n).unwrap() };
    let virtual_time = Hosting::Virtual(VirtualOptions::default());
    vec![pool(1), pool(2), pool(4), Hosting::Threads, virtual_time]
}
