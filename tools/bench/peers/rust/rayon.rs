//! rayon: a scope, and a spawn for each task that becomes ready.

use rayon::{Scope, ThreadPool, ThreadPoolBuilder};

use crate::dataflow::Dataflow;
use crate::protocol::{Graph, Kernel, Peer};

/// What becomes of the first task that another one makes ready.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstReady {
    /// It is spawned like the others.
    Spawned,
    /// It is called in a loop, without the library: continuation bypass by hand.
    Called,
}

pub(crate) struct Rayon {
    pool: ThreadPool,
    next: FirstReady,
    flow: Dataflow,
}

impl Rayon {
    pub(crate) fn new(threads: usize, next: FirstReady) -> Self {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        Self { pool: pool.expect("threads can be started"), next, flow: Dataflow::default() }
    }
}

impl Peer for Rayon {
    fn build(&mut self, graph: &Graph) {
        self.flow.build(graph);
    }

    fn run(&mut self, kernel: Kernel<'_>) {
        let (flow, next) = (&self.flow, self.next);
        self.pool.scope(|scope| {
            for &root in &flow.roots {
                scope.spawn(move |scope| run(scope, flow, kernel, next, root));
            }
        });
    }
}

fn run<'s>(
    scope: &Scope<'s>,
    flow: &'s Dataflow,
    kernel: Kernel<'s>,
    next: FirstReady,
    first: u32,
) {
    let mut task = Some(first);
    while let Some(current) = task.take() {
        kernel.run(current);
        flow.complete(current, |consumer| {
            if next == FirstReady::Called && task.is_none() {
                task = Some(consumer);
            } else {
                scope.spawn(move |scope| run(scope, flow, kernel, next, consumer));
            }
        });
    }
}
