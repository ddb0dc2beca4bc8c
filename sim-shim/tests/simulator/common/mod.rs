//! A device in a few lines, for the conformance tests: GM in ordinary memory, one arena, one machine.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::num::NonZeroUsize;
use std::sync::Arc;

use pto_abi::arena::{Arena, ArenaLayout, Capacities};
use pto_abi::gm::GmWindow;
use pto_abi::kinds::RunFlags;
use pto_abi::layout::LAYOUT_HASH;
use pto_abi::limits::{MAX_FUNC_ID, MAX_ORCH_ARGS};
use pto_abi::runtime::{
    ABI_MAJOR, ABI_MINOR, OrchArgs, RUNTIME_MAGIC, RunConfig, Runtime, RuntimeHeader, WorkerEntry,
    region,
};
use pto_abi::stream::StreamCapacities;
use pto_abi::symbol::symbol;
use pto_abi::{BuildMode, FanoutStrategy, GmAddr, RuntimeVariant};
use pto_aicore_kernels::LIBRARY;
use pto_graph::BuilderSet;
use pto_sim_shim::virtual_time::VirtualOptions;
use pto_sim_shim::{Hosting, Machine, Outcome};

/// Memory that stays where it is.
pub(crate) struct Memory {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: raw memory; everything reaches it through windows.
unsafe impl Send for Memory {}
// SAFETY: as above.
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
        // SAFETY: allocated with this layout, and nobody holds the Arc any more.
        unsafe { dealloc(self.start, self.layout) };
    }
}

/// What a test launches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
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

impl Default for Options {
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
    machine: Machine,
    pub(crate) arena: Arena<'static>,
    pub(crate) options: Options,
    epoch: u32,
    bring_up_epoch: u32,
}

impl Device {
    pub(crate) fn new<B: BuilderSet>(hosting: Hosting, options: Options, builders: B) -> Self {
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
        arena.set_regions(&layout.regions);
        arena.workers().iter().for_each(pto_abi::handshake::Handshake::reset);
        let memory: Arc<dyn Any + Send + Sync> = memory;
        let machine = Machine::new(hosting, memory, builders);
        let device = Self { machine, arena, options, epoch: 0, bring_up_epoch: 1 };
        device.write_tables();
        device
    }

    fn write_tables(&self) {
        let mut kernels = [0; MAX_FUNC_ID];
        for kernel in LIBRARY {
            kernels[kernel.func_id as usize] = kernel.entry as usize as u64;
        }
        self.arena.set_kernel_addrs(&kernels);
        for worker in 0..self.options.aic + self.options.aiv {
            let (kind, cluster) = match worker.checked_sub(self.options.aic) {
                None => (0, worker),
                Some(aiv) => (1, aiv / 2),
            };
            self.arena.set_worker_entry(worker as usize, &WorkerEntry { kind, cluster });
        }
    }

    pub(crate) fn header(&self) -> RuntimeHeader {
        let (gm, window) = (self.arena.gm(), self.arena.window());
        RuntimeHeader {
            magic: RUNTIME_MAGIC,
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            header_bytes: u32::try_from(size_of::<Runtime>()).unwrap(),
            layout_hash: LAYOUT_HASH,
            total_bytes: window.bytes(),
            arena_address: window.address(),
            gm_address: gm.address(),
            gm_bytes: gm.bytes(),
            run_epoch: self.epoch,
            bring_up_epoch: self.bring_up_epoch,
        }
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
    ) -> Outcome {
        self.epoch += 1;
        let mut orch_args = [0; MAX_ORCH_ARGS];
        orch_args[..orch.len()].copy_from_slice(orch);
        let orch_argc = u32::try_from(orch.len()).unwrap();
        self.arena.set_orch_args(&OrchArgs { orch_argc, reserved: [0; 15], orch_args });
        self.arena.set_header(&self.header());
        self.arena.set_config(&self.config(builder));
        if self.options.capacities.stream != StreamCapacities::OFF {
            let at = self.arena.regions()[region::STREAM];
            self.arena.set_stream_sizes(at, &self.options.capacities).unwrap();
        }
        self.arena.prepare_run();
        tamper(self);
        let outcome = self.machine.run(self.arena);
        // After a fault the cores have left their loops, or are about to.
        self.bring_up_epoch += u32::from(outcome.fault.is_some());
        outcome
    }

    pub(crate) fn run(&mut self, builder: &str, orch: &[u64]) -> Outcome {
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
