//! Trace rings: how large they are, and what they hold after a run.

use std::collections::BTreeMap;

use pto_abi::CoreKind;
use pto_abi::arena::{Arena, Capacities};
use pto_abi::runtime::region;
use pto_abi::sync::Ordering;
use pto_abi::trace::{MAX_RING_EVENTS, TraceCapacities, TraceHeader, TraceOwner, WhenFull};
use pto_timeline::{Collector, Trace};

use crate::RunOptions;

/// How a run is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// Events that the ring of an AICPU instance holds; `None`: as many as the run's capacities can cause.
    pub instance_events: Option<u32>,
    /// Events that the ring of a core holds; `None`: eight times its share of the tasks, at least 4,096 or as
    /// many as the run's capacities can cause.
    pub core_events: Option<u32>,
    /// What a full ring does.
    pub when_full: WhenFull,
}

/// Events of a task in the ring of one instance, at most: added, published, ready, dispatched, completed.
const INSTANCE_EVENTS_A_TASK: u64 = 5;
/// Events of a task in the ring of its core.
const CORE_EVENTS_A_TASK: u64 = 2;
/// Unless the tasks are spread worse than this, no core's ring runs over.
const UNEVEN: u64 = 8;
const FEW_CORE_EVENTS: u64 = 4096;

/// The rings of a run with these capacities on so many cores.
pub(crate) fn rings(
    options: &RunOptions,
    capacities: &Capacities,
    cores: usize,
) -> TraceCapacities {
    let Some(trace) = options.trace else { return TraceCapacities::OFF };
    let tasks = u64::from(capacities.tasks);
    let most = CORE_EVENTS_A_TASK * tasks;
    let share = UNEVEN * most / (cores as u64).max(1);
    let fits = |events: u64| u32::try_from(events).unwrap_or(u32::MAX).min(MAX_RING_EVENTS);
    TraceCapacities {
        instances: options.aicpu_instances,
        instance_events: trace
            .instance_events
            .unwrap_or(fits(INSTANCE_EVENTS_A_TASK * tasks + capacities.edges)),
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        core_events: trace.core_events.unwrap_or(fits(share.max(FEW_CORE_EVENTS).min(most))),
    }
}

/// What drains the rings needs beside them.
pub(crate) struct Known<'a> {
    pub(crate) cores: Vec<CoreKind>,
    pub(crate) kernels: &'a BTreeMap<u16, String>,
    pub(crate) run: BTreeMap<String, String>,
}

/// Reads the rings of a run that has ended; `None`: it was not traced.
pub(crate) fn drain(arena: &Arena<'_>, known: Known<'_>) -> Option<Trace> {
    let header = arena.trace_header(arena.regions()[region::TRACE])?;
    let mut collector = Collector::new(known.cores, header.instances);
    add_tasks(arena, &mut collector);
    for owner in owners(&header) {
        let at = arena.regions()[region::TRACE];
        // How full rings were treated is done with.
        let Some(lane) = arena.trace_lane(at, owner, WhenFull::default()) else { continue };
        let mut recorded = 0;
        let dropped = lane.read_all(|event| {
            recorded += 1;
            collector.event(owner, event);
        });
        collector.lane(owner, recorded, dropped);
    }
    Some(collector.finish(known.kernels, known.run))
}

fn owners(header: &TraceHeader) -> impl Iterator<Item = TraceOwner> {
    let instances = (0..header.instances).map(TraceOwner::Instance);
    instances.chain((0..header.cores).map(TraceOwner::Core))
}

/// Func id and kind stand in the tasks' own lines.
fn add_tasks(arena: &Arena<'_>, collector: &mut Collector) {
    let Ok(tasks) = arena.tasks(arena.regions()[region::TASKS]) else { return };
    let added: u64 = arena.instances().iter().map(|line| line.added.load(Ordering::Relaxed)).sum();
    let added = usize::try_from(added).unwrap_or(usize::MAX);
    for task in tasks.iter().take(added) {
        let kind = CoreKind::ALL[usize::from(task.kind.load(Ordering::Relaxed) & 1)];
        collector.task(task.func_id.load(Ordering::Relaxed), kind);
    }
}

#[cfg(test)]
mod tests {
    use super::{TraceOptions, rings};
    use crate::{Capacities, RunOptions};
    use pto_abi::trace::TraceCapacities;

    #[test]
    fn rings_hold_what_a_run_can_cause() {
        let capacities = Capacities { tasks: 100_000, edges: 250_000, ..Capacities::default() };
        let with = |trace| RunOptions { trace, ..RunOptions::default() };
        assert_eq!(rings(&with(None), &capacities, 72), TraceCapacities::OFF);
        let fitted = rings(&with(Some(TraceOptions::default())), &capacities, 72);
        assert_eq!((fitted.instances, fitted.instance_events), (4, 750_000));
        assert_eq!((fitted.cores, fitted.core_events), (72, 22_222));
        let few = Capacities { tasks: 9, edges: 0, ..capacities };
        assert_eq!(rings(&with(Some(TraceOptions::default())), &few, 72).core_events, 18);
        let asked = TraceOptions { instance_events: Some(64), ..TraceOptions::default() };
        assert_eq!(rings(&with(Some(asked)), &capacities, 72).instance_events, 64);
    }
}
