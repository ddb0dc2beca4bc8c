//! Two chains of tasks: the longest one by kernel time, which bounds every schedule, and the one that the last
//! task of this run really waited for.

use serde::Serialize;

use crate::timeline::model::{Neighbours, Task, Trace};

/// The chain of kernels with the most time, first task first, and its time.
pub(crate) fn longest(trace: &Trace, order: &[u32], producers: &Neighbours) -> (Vec<u32>, u64) {
    let times = trace.kernel_times();
    let mut end = vec![0_u64; trace.tasks.len()];
    let mut before: Vec<Option<u32>> = vec![None; trace.tasks.len()];
    for &slot in order {
        let latest =
            producers.of(slot).iter().copied().max_by_key(|producer| end[*producer as usize]);
        let start = latest.map_or(0, |producer| end[producer as usize]);
        before[slot as usize] = latest;
        end[slot as usize] = start + times[slot as usize];
    }
    let last = order.iter().copied().max_by_key(|slot| end[*slot as usize]);
    let mut path: Vec<u32> = std::iter::successors(last, |slot| before[*slot as usize]).collect();
    path.reverse();
    (path, last.map_or(0, |slot| end[slot as usize]))
}

/// The chain that ends with the task that finished last, link by link, and what its time consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// First task first.
    pub links: Vec<Link>,
    /// Until the first task was published, or later where a task was published after its producers finished.
    pub building_ns: u64,
    /// From a producer's end to the consumer's being ready: the scheduler had to see it.
    pub collecting_ns: u64,
    /// From ready to the doorbell: no core, or no scheduler, was free.
    pub dispatching_ns: u64,
    /// From the doorbell to the start.
    pub starting_ns: u64,
    /// In kernels.
    pub running_ns: u64,
}

/// One task of the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The task.
    pub task: u32,
    /// Waiting to be published.
    pub building_ns: u64,
    /// Waiting for the scheduler to see that the producer has finished.
    pub collecting_ns: u64,
    /// Ready, not dispatched.
    pub dispatching_ns: u64,
    /// Dispatched, not started.
    pub starting_ns: u64,
    /// In the kernel.
    pub running_ns: u64,
}

/// Walks back from the task that finished last, each time to the producer that finished last.
pub(crate) fn realised(trace: &Trace, producers: &Neighbours) -> Chain {
    let finish = |slot: u32| span_of(&trace.tasks[slot as usize]).map(|(_, end)| end);
    let timed = |slots: &mut dyn Iterator<Item = u32>| {
        slots.filter_map(|slot| Some((finish(slot)?, slot))).max().map(|(_, slot)| slot)
    };
    let all = u32::try_from(trace.tasks.len()).unwrap_or(u32::MAX);
    let (mut chain, (began, _)) = (Chain::default(), trace.graph());
    let mut next = timed(&mut (0..all));
    while let Some(slot) = next {
        let producer = timed(&mut producers.of(slot).iter().copied());
        let since = producer.and_then(finish).unwrap_or(began);
        let Some(link) = link(slot, &trace.tasks[slot as usize], since) else { break };
        // Published after its producers had finished: the builder is what it waited for.
        next = if link.building_ns > 0 { None } else { producer };
        chain.add(link);
    }
    chain.links.reverse();
    if let Some(first) = chain.links.first_mut() {
        // What comes before the first task of the chain, since the graph began, is the builder's time.
        let task = &trace.tasks[first.task as usize];
        let until = task.at.published.unwrap_or(0).saturating_sub(began);
        chain.building_ns += until.saturating_sub(first.building_ns);
        first.building_ns = until;
    }
    chain
}

impl Chain {
    fn add(&mut self, link: Link) {
        self.building_ns += link.building_ns;
        self.collecting_ns += link.collecting_ns;
        self.dispatching_ns += link.dispatching_ns;
        self.starting_ns += link.starting_ns;
        self.running_ns += link.running_ns;
        self.links.push(link);
    }
}

/// When a task ran; one that was skipped took no time.
fn span_of(task: &Task) -> Option<(u64, u64)> {
    task.span().or(task.at.skipped.map(|at| (at, at)))
}

/// The time of a task from `since`, when its last producer finished, to its own end.
fn link(slot: u32, task: &Task, since: u64) -> Option<Link> {
    let (started, finished) = span_of(task)?;
    let dispatched = task.at.dispatched.unwrap_or(started).min(started);
    let ready = task.at.ready.unwrap_or(dispatched).min(dispatched);
    let published = task.at.published.unwrap_or(0).min(ready);
    Some(Link {
        task: slot,
        building_ns: published.saturating_sub(since),
        collecting_ns: ready.saturating_sub(published.max(since)),
        dispatching_ns: dispatched - ready,
        starting_ns: started - dispatched,
        running_ns: finished - started,
    })
}
