//! A machine with kernels in its GM, and runs of arenas on it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pto_abi::arena::{Arena, ArenaLayout, Capacities};
use pto_abi::kinds::RunFlags;
use pto_abi::launch::{Epochs, LaunchBlock};
use pto_abi::launch_args::LaunchArgs;
use pto_abi::limits::MAX_FUNC_ID;
use pto_abi::runtime::{Epitaph, OrchArgs, RunConfig, region};
use pto_abi::stream::StreamCapacities;
use pto_abi::symbol::symbol;
use pto_abi::sync::Ordering;
use pto_abi::{BuildMode, FanoutStrategy, Fault, GmAddr, RuntimeVariant};

use crate::built::{Images, KernelBlob};
use crate::graphs::{Graph, Pattern};
use pto_host::qemu::{QemuError, QemuMachine, QemuOptions};

/// How a graph is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    /// Who adds tasks.
    pub(crate) variant: RuntimeVariant,
    /// Whether schedulers wait for the builder.
    pub(crate) mode: BuildMode,
    /// How edges are added.
    pub(crate) fanout: FanoutStrategy,
    /// AICPU instances.
    pub(crate) instances: u32,
    /// Workers: AIC, AIV.
    pub(crate) workers: [u32; 2],
    /// The func id of every task, which says the core kind, too.
    pub(crate) func_id: u16,
    /// Whether tasks get the tables of `dag_node`, or no arguments.
    pub(crate) tables: Tables,
    /// How long a task may run.
    pub(crate) task_budget: Duration,
    /// Whether cores stay in service.
    pub(crate) cores: Cores,
}

/// What tasks are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    /// The tables of `dag_node`, whose results are checked.
    Dag,
    /// Nothing.
    None,
    /// Tables that are not mapped: the first task ends in an exception.
    Unmapped,
}

/// What becomes of the cores after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// They stay in service.
    Keep,
    /// They leave their loops.
    Stop,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            variant: RuntimeVariant::AICPU_BUILD_GRAPH,
            mode: BuildMode::CONCURRENT,
            fanout: FanoutStrategy::LOCK_FREE,
            instances: 2,
            workers: [0, 3],
            func_id: pto_aicore_kernels::func::DAG_NODE_AIV.0,
            tables: Tables::Dag,
            task_budget: Duration::from_secs(5),
            cores: Cores::Stop,
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The fault.
    pub(crate) fault: Option<Fault>,
    /// Its epitaph.
    pub(crate) epitaph: Epitaph,
    /// Tasks completed.
    pub(crate) completed: u64,
    /// Time in kernels since the bring-up, of all workers.
    pub(crate) busy_ns: u64,
    /// From launch to end, as the host saw it.
    pub(crate) time: Duration,
    /// What was logged, by instance.
    pub(crate) logs: Vec<String>,
    /// What is wrong with the results; empty: nothing.
    pub(crate) wrong: Vec<String>,
}

/// A machine with kernels.
pub(crate) struct Session {
    /// The machine.
    pub(crate) machine: QemuMachine,
    kernels: [u64; MAX_FUNC_ID],
    free: u64,
    epoch: u32,
    kept: Option<KeptArena>,
}

/// An arena that serves several runs, with its cores in service.
struct KeptArena {
    address: GmAddr,
    layout: ArenaLayout,
    bring_up_epoch: u32,
    workers: [u32; 2],
}

const SEED: u64 = 0x5EED;
/// An address at which the machine has nothing.
pub(crate) const UNMAPPED: u64 = 0x3000;

impl Session {
    /// Boots the default image on `vcpus` vCPUs and copies the kernels into GM.
    ///
    /// # Errors
    /// Those of [`QemuMachine::boot`].
    ///
    /// # Panics
    /// When the kernels are not there.
    pub(crate) fn boot(options: &QemuOptions) -> Result<Self, QemuError> {
        let machine = QemuMachine::boot(options)?;
        let kernels = [0; MAX_FUNC_ID];
        let mut session = Self { machine, kernels, free: 0, epoch: 0, kept: None };
        session.copy_kernels();
        Ok(session)
    }

    /// Copies the library's kernels to an address of their own, and uses them from now on.
    ///
    /// # Panics
    /// When GM is full.
    pub(crate) fn copy_kernels(&mut self) {
        let elf = std::fs::read(&Images::get().kernels).expect("cargo has built the blob");
        let blob = KernelBlob::read(&elf).expect("the blob is one");
        let at = self.add_code(&blob.bytes);
        for kernel in &blob.kernels {
            self.kernels[kernel.func_id as usize] = at + kernel.offset;
        }
    }

    /// Boots the default image on `vcpus` vCPUs.
    ///
    /// # Panics
    /// When it does not boot.
    #[must_use]
    pub(crate) fn start(vcpus: u32) -> Self {
        Self::start_image(Images::get().firmware.clone(), vcpus)
    }

    /// Boots an image on `vcpus` vCPUs.
    ///
    /// # Panics
    /// When it does not boot.
    #[must_use]
    pub(crate) fn start_image(image: PathBuf, vcpus: u32) -> Self {
        let options = QemuOptions::new(image, vcpus);
        Self::boot(&options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Makes `address` the kernel of `func_id`.
    pub(crate) fn set_kernel(&mut self, func_id: u16, address: u64) {
        self.kernels[usize::from(func_id)] = address;
    }

    /// Copies code to a page of GM of its own, for good; returns its address. Memory that has held code is
    /// never given other code: QEMU does not see writes of the host to what it has translated.
    ///
    /// # Panics
    /// When GM is full.
    pub(crate) fn add_code(&mut self, bytes: &[u8]) -> u64 {
        self.free = self.free.next_multiple_of(4096);
        let at = self.take(bytes.len() as u64);
        self.free = self.free.next_multiple_of(4096);
        let gm = self.machine.gm();
        gm.write_bytes(at.0 - gm.address().0, bytes).expect("taken");
        at.0
    }

    /// Takes a part of GM, for good.
    ///
    /// # Panics
    /// When GM is full.
    pub(crate) fn take(&mut self, bytes: u64) -> GmAddr {
        let at = self.free;
        self.free = (at + bytes).next_multiple_of(64);
        let gm = self.machine.gm();
        assert!(self.free <= gm.bytes(), "GM is full");
        gm.address().offset(at)
    }

    /// Builds and runs a graph, and checks its results.
    ///
    /// # Errors
    /// Those of [`QemuMachine::wait`].
    pub(crate) fn run(&mut self, pattern: Pattern, setup: &Setup) -> Result<Ended, QemuError> {
        self.run_named(pattern.builder(), pattern, setup)
    }

    /// As [`Session::run`], with a builder that need not be the pattern's.
    ///
    /// # Errors
    /// Those of [`QemuMachine::wait`].
    ///
    /// # Panics
    /// When the pattern cannot be built here, or GM is full.
    pub(crate) fn run_named(
        &mut self,
        builder: &str,
        pattern: Pattern,
        setup: &Setup,
    ) -> Result<Ended, QemuError> {
        let words = self.words(pattern, setup);
        let graph = pattern.build(&words).expect("the graph can be built");
        self.write_tables(&words, &graph);
        let image = match setup.variant {
            RuntimeVariant::HOST_BUILD_GRAPH => graph.image(),
            _ => Vec::new(),
        };
        let arena = self.write_arena(builder, &words, &graph, &image, setup);
        let (address, bytes) = (arena.window().address(), arena.window().bytes());
        let start = Instant::now();
        let order = self.machine.launch(address, bytes);
        let arena = self.arena(address, bytes);
        self.machine.wait(&order, &arena, Duration::from_secs(60))?;
        let time = start.elapsed();
        let mut ended = read_end(&arena, time);
        if ended.fault.is_none() && setup.tables == Tables::Dag {
            ended.wrong = self.check(&words, &graph);
        }
        if ended.fault.is_some() || setup.cores == Cores::Stop {
            self.kept = None;
        }
        Ok(ended)
    }

    /// The orchestration words, with tables taken from GM.
    fn words(&mut self, pattern: Pattern, setup: &Setup) -> [u64; 8] {
        let kind = pto_aicore_kernels::LIBRARY[usize::from(setup.func_id)].kind;
        let [first, second] = pattern.words();
        let mut words = [setup.func_id.into(), kind.get().into(), SEED, 0, 0, 0, first, second];
        if setup.tables == Tables::Dag {
            let graph = pattern.build(&words).expect("the graph can be built");
            let tasks = graph.tasks() as u64;
            words[3] = self.take(8 * tasks).0;
            words[4] = self.take(4 * tasks).0;
            words[5] = self.take(4 * graph.producers().len() as u64).0;
        }
        if setup.tables == Tables::Unmapped {
            [words[3], words[4], words[5]] = [UNMAPPED; 3];
        }
        words
    }

    fn write_tables(&self, words: &[u64; 8], graph: &Graph) {
        let gm = self.machine.gm();
        if words[3] < gm.address().0 {
            return;
        }
        let at = |address: u64| address - gm.address().0;
        let zeros = vec![0; 8 * graph.tasks()];
        gm.write_bytes(at(words[3]), &zeros).expect("taken");
        gm.write_bytes(at(words[4]), &zeros[..4 * graph.tasks()]).expect("taken");
        gm.write_bytes(at(words[5]), bytemuck::cast_slice(graph.producers())).expect("taken");
    }

    fn check(&self, words: &[u64; 8], graph: &Graph) -> Vec<String> {
        let gm = self.machine.gm();
        let at = |address: u64, index: usize, size: usize| {
            address - gm.address().0 + (index * size) as u64
        };
        let mut wrong = Vec::new();
        for (index, expected) in graph.values(words[2]).into_iter().enumerate() {
            let value: u64 = gm.read(at(words[3], index, 8)).unwrap_or(0);
            let count: u32 = gm.read(at(words[4], index, 4)).unwrap_or(0);
            if (value, count) != (expected, 1) {
                wrong.push(format!(
                    "task {index}: value {value:#x}, not {expected:#x}, count {count}"
                ));
            }
        }
        wrong
    }

    fn arena(&self, address: GmAddr, bytes: u64) -> Arena<'_> {
        Arena::new(self.machine.gm(), address, bytes).expect("GM holds the arena")
    }

    fn write_arena(
        &mut self,
        builder: &str,
        words: &[u64; 8],
        graph: &Graph,
        image: &[u8],
        setup: &Setup,
    ) -> Arena<'_> {
        let capacities = capacities(graph, image);
        let (address, layout, bring_up) = self.lay_out(&capacities, setup);
        self.epoch += 1;
        let arena = self.arena(address, layout.total_bytes);
        let block = LaunchBlock {
            config: config(builder, setup),
            orch: OrchArgs::of(LaunchArgs::of(words)).expect("eight words"),
            capacities: &of_run(&capacities, setup),
            image_bytes: image.len() as u64,
            kernels: &self.kernels,
            cores: setup.workers,
            epochs: Epochs { run: self.epoch, bring_up },
        };
        let regions = block.write(&arena, &layout).expect("planned for");
        arena.window().write_bytes(regions[region::GRAPH].offset, image).expect("planned for");
        arena
    }

    /// The arena of a run: a new one, or the one that is kept.
    fn lay_out(&mut self, capacities: &Capacities, setup: &Setup) -> (GmAddr, ArenaLayout, u32) {
        let layout = ArenaLayout::plan(capacities).expect("within the limits");
        let fits = |kept: &&KeptArena| kept.layout == layout && kept.workers == setup.workers;
        if let Some(kept) = self.kept.as_ref().filter(fits) {
            return (kept.address, layout, kept.bring_up_epoch);
        }
        let address = self.take(layout.total_bytes);
        let bring_up_epoch = self.epoch + 1;
        let arena = self.arena(address, layout.total_bytes);
        arena.workers().iter().for_each(pto_abi::handshake::Handshake::reset);
        self.kept = Some(KeptArena { address, layout, bring_up_epoch, workers: setup.workers });
        (address, layout, bring_up_epoch)
    }
}

fn capacities(graph: &Graph, image: &[u8]) -> Capacities {
    let capacities = Capacities {
        tasks: u32::try_from(graph.tasks()).expect("test graphs are small").max(1024),
        arg_words: 16 * graph.tasks().max(1024) as u64,
        edges: graph.producers().len().max(4096) as u64,
        image_bytes: (image.len() as u64).max(1 << 17),
        log_entries: 64,
        ..Capacities::default()
    };
    let mut capacities = capacities.streamed_whole();
    capacities.stream.heap_bytes = 1 << 12;
    capacities
}

/// What a run uses of the arena: as the host does, it leaves the memory of streaming runs to those.
fn of_run(capacities: &Capacities, setup: &Setup) -> Capacities {
    let mut of_run = *capacities;
    if setup.variant != RuntimeVariant::TENSORMAP_AND_RINGBUFFER {
        of_run.stream = StreamCapacities::OFF;
    }
    of_run
}

fn config(builder: &str, setup: &Setup) -> RunConfig {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).expect("below 584 years");
    let mut flags = RunFlags::KERNEL_TIMES;
    flags.set(RunFlags::KEEP_CORES, setup.cores == Cores::Keep);
    RunConfig {
        variant: setup.variant.get(),
        build_mode: setup.mode.get(),
        fanout: setup.fanout.get(),
        flags: flags.bits(),
        aicpu_instances: setup.instances,
        // Of the cores.
        worker_count: 0,
        builder: if setup.variant == RuntimeVariant::HOST_BUILD_GRAPH {
            0
        } else {
            symbol(builder)
        },
        task_budget_ns: ns(setup.task_budget),
        stall_budget_ns: ns(Duration::from_secs(5)),
        bring_up_budget_ns: ns(Duration::from_secs(2)),
        run_budget_ns: 0,
    }
}

fn read_end(arena: &Arena<'_>, time: Duration) -> Ended {
    let fault = arena.fault().first();
    let workers = arena.workers().iter().take(arena.config().worker_count as usize);
    let busy_ns = workers.map(|lines| lines.worker.busy_ns.load(Ordering::Relaxed)).sum();
    let completed =
        arena.instances().iter().map(|line| line.completed.load(Ordering::Relaxed)).sum();
    let logs = (0..arena.config().aicpu_instances as usize).map(|instance| {
        let Some(ring) = arena.log_ring(arena.regions()[region::LOGS], instance) else {
            return String::new();
        };
        let entries = (0..ring.written()).filter_map(|number| ring.read(number));
        let text = entries.map(|entry| {
            let end = if entry.continues { "" } else { "\n" };
            String::from_utf8_lossy(entry.bytes()).into_owned() + end
        });
        text.collect()
    });
    Ended {
        fault,
        epitaph: arena.epitaph(),
        completed,
        busy_ns,
        time,
        logs: logs.collect(),
        wrong: Vec::new(),
    }
}
