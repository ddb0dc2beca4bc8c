//! A device around one arena: what the host writes, the launches, and what comes back.

use std::mem::offset_of;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pto_abi::arena::{Arena, ArenaLayout, Capacities};
use pto_abi::kinds::RunFlags;
use pto_abi::launch::{Epochs, LaunchBlock};
use pto_abi::launch_args::LaunchArgs;
use pto_abi::launch_words::{
    Architecture, CorePosition, LAUNCH_MAGIC, LaunchPlan, LaunchTickets, LaunchWords,
};
use pto_abi::layout::LAYOUT_HASH;
use pto_abi::limits::MAX_FUNC_ID;
use pto_abi::runtime::{ABI_MAJOR, ABI_MINOR, Epitaph, OrchArgs, RunConfig, region};
use pto_abi::stream::StreamCapacities;
use pto_abi::sync::Ordering;
use pto_abi::{BuildMode, CoreKind, FanoutStrategy, GmAddr, RuntimeVariant, symbol};
use pto_aicore_kernels::LIBRARY;

use crate::core::{Conduct, Core, Watch};
use crate::image::{Entry, Image};
use crate::memory::{Gm, Registers};

/// Clusters of the device: 1 AIC and 2 AIV each.
pub(crate) const CLUSTERS: u16 = 4;
/// AICPU instances of a run.
pub(crate) const INSTANCES: u32 = 4;
const WORKERS: u32 = CLUSTERS as u32 * 3;
const CAPACITIES: Capacities = Capacities {
    tasks: 8192,
    arg_words: 16 * 8192,
    edges: 65_536,
    image_bytes: 2 << 20,
    log_entries: 64,
    trace: pto_abi::trace::TraceCapacities::OFF,
    stream: StreamCapacities {
        window: 4096,
        map_entries: 16_384,
        heap_rings: 4,
        heap_bytes: 4 << 20,
    },
};

/// What is to be run.
pub(crate) enum Work {
    /// A graph image.
    Graph(Vec<u8>),
    /// A builder and its words.
    Builder(&'static str, Vec<u64>),
    /// The same, of the streaming runtime.
    Stream(&'static str, Vec<u64>),
}

/// How it is to be run.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub(crate) fanout: FanoutStrategy,
    pub(crate) build_mode: BuildMode,
    pub(crate) flags: RunFlags,
    /// Instances that the driver launches, besides those that the run has.
    pub(crate) surplus: u32,
    pub(crate) task_budget: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fanout: FanoutStrategy::LOCK_FREE,
            build_mode: BuildMode::CONCURRENT,
            flags: RunFlags::empty(),
            surplus: 0,
            task_budget: Duration::from_secs(60),
        }
    }
}

/// What came back.
pub(crate) struct Outcome {
    /// What each AICPU instance returned.
    pub(crate) codes: Vec<i32>,
    pub(crate) epitaph: Epitaph,
    pub(crate) refused: u32,
    pub(crate) makespan: Duration,
    pub(crate) violations: u32,
}

/// A device.
pub(crate) struct Device {
    pub(crate) gm: Gm,
    registers: Registers,
    arena: Arena<'static>,
    layout: ArenaLayout,
    words: GmAddr,
    epochs: Epochs,
    cores: Vec<JoinHandle<()>>,
    watch: Arc<Watch>,
}

impl Device {
    pub(crate) fn new(architecture: Architecture) -> Self {
        Self::on(Gm::map(64 << 20), architecture)
    }

    /// A device with this memory.
    pub(crate) fn on(gm: Gm, architecture: Architecture) -> Self {
        let layout = ArenaLayout::plan(&CAPACITIES).expect("within the limits");
        let address = gm.alloc(layout.total_bytes);
        let arena = Arena::new(gm.window, address, layout.total_bytes).expect("in GM");
        arena.workers().iter().for_each(pto_abi::handshake::Handshake::reset);
        let words = gm.alloc(size_of::<LaunchWords>() as u64);
        let registers = Registers::map(architecture);
        let (cores, watch) = (Vec::new(), Arc::default());
        Self { gm, registers, arena, layout, words, epochs: Epochs::default(), cores, watch }
    }

    /// Where worker number `worker` is: the second cluster of the die is out of service.
    pub(crate) fn position(worker: u32) -> CorePosition {
        let clusters = u32::from(CLUSTERS);
        let (cluster, sub) = match worker.checked_sub(clusters) {
            None => (worker, 0),
            Some(vector) => (vector / 2, 1 + vector % 2),
        };
        let cluster = if cluster >= 1 { cluster + 1 } else { cluster };
        CorePosition { cluster: cluster as u16, sub: sub as u16 }
    }

    /// A new bring-up: the AICore launch.
    pub(crate) fn start_cores(&mut self, conduct: impl Fn(u32) -> Conduct) {
        self.stop_cores();
        self.epochs.bring_up += 1;
        self.watch = Arc::default();
        // A core that starts must not find the greeting of an earlier bring-up: its exit signal may still stand
        // in DATA_MAIN_BASE.
        self.arena.workers().iter().for_each(pto_abi::handshake::Handshake::reset);
        for worker in 0..WORKERS {
            let kind = if worker < u32::from(CLUSTERS) { CoreKind::AIC } else { CoreKind::AIV };
            let core = Core {
                lines: &self.arena.workers()[worker as usize],
                registers: self.registers.core(Self::position(worker)),
                worker,
                kind,
                conduct: conduct(worker),
                watch: Arc::clone(&self.watch),
                expected: None,
            };
            core.registers.cond.store(0, Ordering::Relaxed);
            self.cores.push(std::thread::spawn(move || core.serve()));
        }
    }

    /// Ends what is left of the cores.
    pub(crate) fn stop_cores(&mut self) {
        self.watch.abandon.store(1, Ordering::Relaxed);
        self.cores.drain(..).for_each(|core| core.join().expect("a core does not panic"));
    }

    /// Whether every core has left its loop by itself.
    pub(crate) fn cores_are_gone(&self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if self.cores.iter().all(JoinHandle::is_finished) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// What is in each core's FAST_PATH_ENABLE.
    pub(crate) fn fast_paths(&self) -> Vec<u32> {
        (0..WORKERS).map(|worker| self.registers.core(Self::position(worker)).fast_path()).collect()
    }

    /// Writes arena and launch words; `change` may spoil them.
    pub(crate) fn prepare(
        &mut self,
        work: &Work,
        options: &Options,
        change: impl FnOnce(&Spoil<'_>),
    ) {
        self.epochs.run += 1;
        let mut config = configuration(options);
        let (mut image, mut orch) = (&[][..], &[][..]);
        config.variant = match work {
            Work::Graph(bytes) => {
                image = bytes;
                RuntimeVariant::HOST_BUILD_GRAPH.get()
            }
            Work::Builder(name, words) => {
                (config.builder, orch) = (symbol::symbol(name), words);
                RuntimeVariant::AICPU_BUILD_GRAPH.get()
            }
            Work::Stream(name, words) => {
                (config.builder, orch) = (symbol::symbol(name), words);
                RuntimeVariant::TENSORMAP_AND_RINGBUFFER.get()
            }
        };
        let arena = &self.arena;
        let mut kernels = [0; MAX_FUNC_ID];
        for kernel in LIBRARY {
            kernels[kernel.func_id as usize] =
                (kernel.entry as *const ()).expose_provenance() as u64;
        }
        let block = LaunchBlock {
            config,
            orch: OrchArgs::of(LaunchArgs::of(orch)).expect("examples have few words"),
            capacities: &CAPACITIES,
            image_bytes: image.len() as u64,
            kernels: &kernels,
            cores: [u32::from(CLUSTERS), 2 * u32::from(CLUSTERS)],
            epochs: self.epochs,
        };
        let regions = block.write(arena, &self.layout).expect("the image fits");
        arena.window().write_bytes(regions[region::GRAPH].offset, image).expect("the image fits");
        self.write_words();
        change(&Spoil { arena, words: self.words_window() });
    }

    fn words_window(&self) -> pto_abi::GmWindow<'static> {
        let bytes = size_of::<LaunchWords>() as u64;
        let offset = self.gm.window.offset_of(self.words, bytes).expect("in GM");
        self.gm.window.part(offset, bytes).expect("in GM")
    }

    fn write_words(&self) {
        let window = self.words_window();
        let plan = LaunchPlan {
            magic: LAUNCH_MAGIC,
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            words_bytes: size_of::<LaunchWords>() as u32,
            layout_hash: LAYOUT_HASH,
            arena_address: self.arena.window().address(),
            arena_bytes: self.layout.total_bytes,
            gm_address: self.gm.window.address(),
            gm_bytes: self.gm.window.bytes(),
            registers_address: self.registers.start.address().0,
            registers_bytes: self.registers.start.bytes(),
            architecture: self.registers.architecture.get(),
            core_count: WORKERS,
            fresh_arena: u32::from(self.epochs.run == 1),
            reserved_word: 0,
            reserved: [0; 5],
        };
        window.write(0, &plan).expect("in the launch words");
        for worker in 0..WORKERS {
            let at = offset_of!(LaunchWords, cores) as u64 + 4 * u64::from(worker);
            window.write(at, &Self::position(worker)).expect("in the launch words");
        }
        let tickets = offset_of!(LaunchWords, tickets) as u64;
        window.write(tickets, &[0_u64; 8]).expect("in the launch words");
    }

    /// The AICPU launch: every instance enters the same function with the same pointer.
    pub(crate) fn launch(&self, image: &Image, options: &Options) -> Outcome {
        let start = Instant::now();
        let instances = INSTANCES + options.surplus;
        // The entry that tells faults apart; the driver's is `image.server`.
        let (run_launch, words) = (image.run_launch, self.words.0 as usize);
        let codes = std::thread::scope(|scope| {
            let enter = |_| scope.spawn(move || call(run_launch, words));
            let threads: Vec<_> = (0..instances).map(enter).collect();
            threads.into_iter().map(|thread| thread.join().expect("it returns")).collect()
        });
        let tickets: &LaunchTickets =
            self.words_window().live(offset_of!(LaunchWords, tickets) as u64).expect("there");
        Outcome {
            codes,
            epitaph: self.arena.epitaph(),
            refused: tickets.refused.load(Ordering::Relaxed),
            makespan: start.elapsed(),
            violations: self.watch.violations.load(Ordering::Relaxed),
        }
    }

    /// Bring-up, one run, and the way down.
    pub(crate) fn run(&mut self, image: &Image, work: &Work, options: &Options) -> Outcome {
        self.start_cores(|_| Conduct::Good);
        self.prepare(work, options, |_| ());
        self.launch(image, options)
    }

    /// The text of an instance's log.
    pub(crate) fn log(&self, instance: usize) -> String {
        let ring = self.arena.log_ring(self.layout.regions[region::LOGS], instance).expect("there");
        let mut text = String::new();
        for entry in (0..ring.written()).filter_map(|number| ring.read(number)) {
            text.push_str(&String::from_utf8_lossy(entry.bytes()));
            text.push_str(if entry.continues { "" } else { "\n" });
        }
        text
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop_cores();
    }
}

/// What a scenario may change before a launch.
pub(crate) struct Spoil<'a> {
    pub(crate) arena: &'a Arena<'static>,
    pub(crate) words: pto_abi::GmWindow<'static>,
}

impl Spoil<'_> {
    /// Changes the plan.
    pub(crate) fn plan(&self, change: impl FnOnce(&mut LaunchPlan)) {
        let mut plan: LaunchPlan = self.words.read(0).expect("there");
        change(&mut plan);
        self.words.write(0, &plan).expect("there");
    }

    /// Changes a worker's position.
    pub(crate) fn position(&self, worker: u64, position: CorePosition) {
        let at = offset_of!(LaunchWords, cores) as u64 + 4 * worker;
        self.words.write(at, &position).expect("there");
    }
}

pub(crate) fn call(entry: Entry, args: usize) -> i32 {
    // SAFETY: the entries of an image take a pointer to arguments that outlive the call, with launch words in GM.
    unsafe { entry(std::ptr::with_exposed_provenance_mut(args)) }
}

fn configuration(options: &Options) -> RunConfig {
    RunConfig {
        variant: 0,
        build_mode: options.build_mode.get(),
        fanout: options.fanout.get(),
        flags: options.flags.bits(),
        aicpu_instances: INSTANCES,
        // Of the cores.
        worker_count: 0,
        builder: 0,
        task_budget_ns: options.task_budget.as_nanos() as u64,
        stall_budget_ns: 10_000_000_000,
        bring_up_budget_ns: 2_000_000_000,
        run_budget_ns: 0,
    }
}
