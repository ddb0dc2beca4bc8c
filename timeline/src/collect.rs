//! From the events of the rings to a [`Trace`].

use std::collections::BTreeMap;

use pto_abi::CoreKind;
use pto_abi::trace::{TraceKind, TraceOwner, TraceRecord};

use crate::model::{Edge, Lane, Moments, Task, Trace};

/// Takes the events of all rings, one ring after the other.
#[derive(Debug)]
pub struct Collector {
    trace: Trace,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Collector {
    /// A collector of a run on these cores.
    #[must_use]
    pub fn new(cores: Vec<CoreKind>, instances: u32) -> Self {
        let trace = Trace { cores, instances, ..Trace::default() };
        Self { trace, first_ns: None, last_ns: 0 }
    }

    /// The next task, in the order of slots.
    pub fn task(&mut self, func_id: u16, kind: CoreKind) {
        let at = Moments::default();
        self.trace.tasks.push(Task { func_id, kind, core: None, scheduler: None, at });
    }

    /// An event of `owner`. Events of tasks that [`task`](Self::task) was not told of are left out.
    pub fn event(&mut self, owner: TraceOwner, event: TraceRecord) {
        let count = self.trace.tasks.len() as u64;
        let Some(task) = self.trace.tasks.get_mut(event.task as usize) else { return };
        self.first_ns = Some(self.first_ns.map_or(event.time_ns, |first| first.min(event.time_ns)));
        self.last_ns = self.last_ns.max(event.time_ns);
        let at = Some(event.time_ns);
        match event.kind {
            TraceKind::ADDED => task.at.added = at,
            TraceKind::EDGE | TraceKind::EDGE_SATISFIED => {
                if u64::from(event.extra) < count {
                    self.trace.edges.push(Edge { producer: event.extra, consumer: event.task });
                }
            }
            TraceKind::PUBLISHED => task.at.published = at,
            TraceKind::READY => task.at.ready = at,
            TraceKind::DISPATCHED => {
                (task.at.dispatched, task.core) = (at, Some(event.extra));
                if let TraceOwner::Instance(instance) = owner {
                    task.scheduler = Some(instance);
                }
            }
            TraceKind::STARTED | TraceKind::FINISHED => {
                if let TraceOwner::Core(core) = owner {
                    task.core = Some(core);
                }
                if event.kind == TraceKind::STARTED {
                    task.at.started = at;
                } else {
                    task.at.finished = at;
                }
            }
            _ => task.at.completed = at,
        }
    }

    /// The ring of `owner` has been read.
    pub fn lane(&mut self, owner: TraceOwner, recorded: u64, dropped: u64) {
        self.trace.lanes.push(Lane { owner, recorded, dropped });
    }

    /// The timeline. `kernels` knows at least the func ids of its tasks; others are left out.
    #[must_use]
    pub fn finish(self, kernels: &BTreeMap<u16, String>, run: BTreeMap<String, String>) -> Trace {
        let mut trace = self.trace;
        let origin = self.first_ns.unwrap_or(0);
        trace.makespan_ns = self.last_ns.saturating_sub(origin);
        for task in &mut trace.tasks {
            task.at.shift(origin);
            if let Some(name) = kernels.get(&task.func_id) {
                trace.kernels.entry(task.func_id).or_insert_with(|| name.clone());
            }
        }
        trace.run = run;
        trace
    }
}

impl Moments {
    fn shift(&mut self, origin: u64) {
        let all = [
            &mut self.added,
            &mut self.published,
            &mut self.ready,
            &mut self.dispatched,
            &mut self.started,
            &mut self.finished,
            &mut self.completed,
        ];
        for moment in all.into_iter().flatten() {
            *moment -= origin;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Collector;
    use crate::model::Edge;
    use pto_abi::CoreKind;
    use pto_abi::trace::{TraceKind, TraceOwner, TraceRecord};
    use std::collections::BTreeMap;

    #[test]
    fn events_become_moments_since_the_first_one() {
        let mut collector = Collector::new(vec![CoreKind::AIC, CoreKind::AIV], 2);
        collector.task(3, CoreKind::AIC);
        collector.task(4, CoreKind::AIV);
        let mut tell = |owner, time_ns, kind, task, extra| {
            collector.event(owner, TraceRecord { time_ns, kind, task, extra });
        };
        let (builder, scheduler) = (TraceOwner::Instance(0), TraceOwner::Instance(1));
        tell(TraceOwner::Core(1), 170, TraceKind::STARTED, 1, 0);
        tell(TraceOwner::Core(1), 190, TraceKind::FINISHED, 1, 0);
        tell(scheduler, 150, TraceKind::READY, 1, 0);
        tell(scheduler, 160, TraceKind::DISPATCHED, 1, 1);
        tell(scheduler, 200, TraceKind::COMPLETED, 1, 1);
        tell(builder, 100, TraceKind::ADDED, 0, 3);
        tell(builder, 110, TraceKind::EDGE, 1, 0);
        tell(builder, 110, TraceKind::EDGE_SATISFIED, 1, 99);
        tell(builder, 120, TraceKind::PUBLISHED, 1, 0);
        tell(builder, 120, TraceKind::PUBLISHED, 77, 0);
        collector.lane(builder, 4, 9);
        let kernels = BTreeMap::from([(4, "add".to_owned()), (9, "mul".to_owned())]);
        let trace = collector.finish(&kernels, BTreeMap::new());
        assert_eq!(trace.makespan_ns, 100);
        let task = trace.task(1).unwrap();
        assert_eq!((task.core, task.scheduler, task.span()), (Some(1), Some(1), Some((70, 90))));
        assert_eq!((task.at.ready, task.at.dispatched), (Some(50), Some(60)));
        assert_eq!((task.at.published, task.at.completed), (Some(20), Some(100)));
        assert_eq!(trace.edges, [Edge { producer: 0, consumer: 1 }]);
        assert_eq!((trace.kernel(4), trace.kernel(3)), ("add".into(), "func 3".into()));
        assert_eq!((trace.kernels.len(), trace.dropped()), (1, 9));
        assert_eq!((trace.core_name(1), trace.core_name(7)), ("aiv 0".into(), "core 7".into()));
    }
}
