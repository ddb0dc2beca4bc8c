//! crossbeam-deque: a deque for each thread, stealing, and the first task that another one makes ready next on the
//! same thread (continuation bypass).

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};

use crossbeam_deque::{Injector, Stealer, Worker};

use crate::dataflow::Dataflow;
use crate::protocol::{Graph, Kernel, Peer};

/// The threads are rayon's; nothing else of it is used.
pub(crate) struct Crossbeam {
    pool: rayon::ThreadPool,
    threads: usize,
    flow: Dataflow,
}

impl Crossbeam {
    pub(crate) fn new(threads: usize) -> Self {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        Self { pool: pool.expect("threads can be started"), threads, flow: Dataflow::default() }
    }
}

impl Peer for Crossbeam {
    fn build(&mut self, graph: &Graph) {
        self.flow.build(graph);
    }

    fn run(&mut self, kernel: Kernel<'_>) {
        let workers: Vec<Worker<u32>> = (0..self.threads).map(|_| Worker::new_lifo()).collect();
        let stealers: Vec<Stealer<u32>> = workers.iter().map(Worker::stealer).collect();
        let injector = Injector::new();
        for &root in &self.flow.roots {
            injector.push(root);
        }
        let run =
            CrossbeamRun { flow: &self.flow, kernel, injector, stealers, done: AtomicU32::new(0) };
        let run = &run;
        self.pool.in_place_scope(|scope| {
            for (me, worker) in workers.into_iter().enumerate() {
                scope.spawn(move |_| run.work(me, &worker));
            }
        });
    }
}

struct CrossbeamRun<'a> {
    flow: &'a Dataflow,
    kernel: Kernel<'a>,
    injector: Injector<u32>,
    stealers: Vec<Stealer<u32>>,
    done: AtomicU32,
}

impl CrossbeamRun<'_> {
    fn work(&self, me: usize, worker: &Worker<u32>) {
        let mut mine = 0;
        loop {
            let mut task = worker.pop().or_else(|| self.steal(me, worker));
            if task.is_none() {
                self.done.fetch_add(std::mem::take(&mut mine), Ordering::Relaxed);
                if self.done.load(Ordering::Relaxed) == self.flow.tasks() {
                    return;
                }
                spin_loop();
            }
            while let Some(current) = task.take() {
                self.kernel.run(current);
                mine += 1;
                self.flow.complete(current, |consumer| match task {
                    None => task = Some(consumer),
                    Some(_) => worker.push(consumer),
                });
            }
        }
    }

    fn steal(&self, me: usize, worker: &Worker<u32>) -> Option<u32> {
        let others = self.stealers.iter().enumerate().filter(|(index, _)| *index != me);
        let mut tries = others.map(|(_, other)| other.steal_batch_and_pop(worker));
        tries
            .find_map(crossbeam_deque::Steal::success)
            .or_else(|| self.injector.steal_batch_and_pop(worker).success())
    }
}
