//! The loader, through an instance from launch to return: in which order tasks run, the first time and again.

use pto_abi::arena::Arena;
use pto_abi::gm::GmWindow;
use pto_abi::image::{GraphHeader, ImageParts, ImageTask};
use pto_abi::kinds::{GraphFlags, RunFlags};
use pto_abi::runtime::region;
use pto_abi::sync::Shared;
use pto_abi::{CoreKind, Fault, RuntimeVariant};
use pto_aicpu_fw::platform::Staged;
use pto_aicpu_fw::{CoreStatus, FanoutPolicy, Instance, Launch, Platform, Progressed};
use pto_graph::NoBuilders;

use crate::arena::with_arena;
use crate::both_strategies;

/// The producers of each task.
const PRODUCERS: [&[u32]; 8] = [&[], &[], &[0, 1], &[0], &[2, 3], &[4], &[4], &[5, 6, 2]];

/// Cores that finish what they were given, one at each poll of any of them.
struct Cores {
    workers: Vec<u32>,
    running: Vec<Option<u32>>,
    finished: Vec<u32>,
    polls: u32,
}

impl Platform for Cores {
    type Sharing = Shared;

    fn attach(&mut self, worker: u32) {
        self.workers.push(worker);
        self.running.push(None);
    }
    fn greet(&mut self, _: usize, _: u32) {}
    fn answer(&mut self, core: usize, _: u32) -> Option<(u32, u32)> {
        Some((self.workers[core], u32::from(self.workers[core] >= 3)))
    }
    fn poll(&mut self, core: usize) -> CoreStatus {
        self.polls += 1;
        match self.running[core] {
            // Not at the first look.
            Some(task) if self.polls.is_multiple_of(3) => {
                self.running[core] = None;
                self.finished.push(task);
                CoreStatus::Finished
            }
            Some(_) => CoreStatus::Busy,
            None => CoreStatus::Idle,
        }
    }
    fn stage(&mut self, core: usize, dispatch: Staged) -> Result<(), Fault> {
        for producer in PRODUCERS[dispatch.task as usize] {
            let is_done = self.finished.contains(producer);
            assert!(is_done, "task {} is dispatched before its producer {producer}", dispatch.task);
        }
        self.running[core] = Some(dispatch.task);
        Ok(())
    }
    fn commit(&mut self) {}
    fn stop(&mut self, _: usize) {}
    fn stopped(&mut self, _: usize) -> bool {
        true
    }
    fn now_ns(&self) -> u64 {
        0
    }
    fn relax(&mut self) {}
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
    let cores = Cores { workers: Vec::new(), running: Vec::new(), finished: Vec::new(), polls: 0 };
    let mut instance = Instance::<_, F>::new(Launch::accept(arena).unwrap(), 0, cores);
    for _ in 0..1_000 {
        if let Progressed::Returned(fault) = instance.step(&NoBuilders, ()) {
            assert_eq!(fault, None, "{:?}", arena.epitaph());
            return std::mem::take(&mut instance.platform().finished);
        }
    }
    panic!("the run does not end: {:?} ran", instance.platform().finished);
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
