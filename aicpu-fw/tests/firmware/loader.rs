//! The loader, through an instance from launch to return: in which order tasks run, the first time and again.

use pto_abi::arena::Arena;
use pto_abi::gm::GmWindow;
use pto_abi::image::{GraphHeader, ImageParts, ImageTask};
use pto_abi::kinds::{GraphFlags, RunFlags};
use pto_abi::runtime::region;
use pto_abi::sync::Concurrent;
use pto_abi::{CoreKind, RuntimeVariant};
use pto_aicpu_fw::platform::Staged;
use pto_aicpu_fw::{FanoutPolicy, Instance, Launch, Progressed};
use pto_graph::NoBuilders;

use crate::arena::with_arena;
use crate::both_strategies;
use crate::stub::{Script, Stub};

/// The producers of each task.
const PRODUCERS: [&[u32]; 8] = [&[], &[], &[0, 1], &[0], &[2, 3], &[4], &[4], &[5, 6, 2]];

/// Cores that finish what they were given, one at each third look at any of them.
#[derive(Default)]
struct SlowCores {
    finished: Vec<u32>,
    looks: u32,
}

impl Script for SlowCores {
    fn kind(&self, worker: u32) -> u32 {
        u32::from(worker >= 3)
    }
    fn finishes(&mut self, task: u32) -> bool {
        self.looks += 1;
        // Not at the first look.
        let finishes = self.looks.is_multiple_of(3);
        self.finished.extend(finishes.then_some(task));
        finishes
    }
    fn staged(&mut self, dispatch: Staged) {
        for producer in PRODUCERS[dispatch.task as usize] {
            let is_done = self.finished.contains(producer);
            assert!(is_done, "task {} is dispatched before its producer {producer}", dispatch.task);
        }
    }
}

/// Writes the image to the window; how many bytes it has.
fn write_image(to: &GmWindow<'_>) -> u64 {
    let mut first_edge = 0;
    let tasks = PRODUCERS.map(|producers| {
        let edge_count = u32::try_from(producers.len()).unwrap();
        let kind = CoreKind::AIV.get();
        let task = ImageTask {
            kernel: 0,
            first_arg: 0,
            first_edge,
            edge_count,
            func_id: 0,
            arg_count: 0,
            kind,
        };
        first_edge += edge_count;
        task
    });
    let flags = GraphFlags::TOPOLOGICAL;
    let producers = PRODUCERS.concat();
    let image = ImageParts { flags, tasks: &tasks, producers: &producers, args: &[] };
    let header = image.header();
    image.write_to(&header, to, 0).unwrap();
    header.total_bytes
}

/// Runs the arena's graph on one instance; the tasks in the order in which they finished.
fn run<F: FanoutPolicy>(arena: Arena<'_>, epoch: u32, flags: RunFlags) -> Vec<u32> {
    let (mut header, mut config) = (arena.header(), arena.config());
    header.run_epoch = epoch;
    arena.set_header(&header);
    config.variant = RuntimeVariant::HOST_BUILD_GRAPH.get();
    config.aicpu_instances = 1;
    config.flags = (RunFlags::KEEP_CORES | flags).bits();
    arena.set_config(&config);
    arena.prepare_run();
    let cores = Stub::<Concurrent, _>::new(0, SlowCores::default());
    let mut instance = Instance::<_, F>::new(Launch::accept(arena).unwrap(), 0, cores);
    for _ in 0..1_000 {
        if let Progressed::Returned(fault) = instance.step(&NoBuilders) {
            assert_eq!(fault, None, "{:?}", arena.epitaph());
            return std::mem::take(&mut instance.platform().script.finished);
        }
    }
    panic!("the run does not end: {:?} ran", instance.platform().script.finished);
}

pub(crate) fn a_graph_is_loaded_and_runs_again<F: FanoutPolicy>() {
    with_arena(|arena| {
        let mut regions = arena.regions();
        // Without trace rings: a run that is traced does not run again. Without streams.
        regions[region::TRACE].bytes = 0;
        regions[region::STREAM].bytes = 0;
        let at = regions[region::GRAPH].offset;
        regions[region::GRAPH].bytes = write_image(&arena.window().part(at, 512).unwrap());
        arena.set_regions(&regions);
        let first = run::<F>(arena, 5, RunFlags::empty());
        assert_eq!(first.len(), PRODUCERS.len());
        // Only the header is looked at again.
        let body = at + size_of::<GraphHeader>() as u64;
        arena.window().write_bytes(body, &[0xFF; 64]).unwrap();
        for epoch in 6..9 {
            assert_eq!(run::<F>(arena, epoch, RunFlags::RUN_AGAIN), first);
        }
    });
}

both_strategies! {
    runs_again => a_graph_is_loaded_and_runs_again;
}
