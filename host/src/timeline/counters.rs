//! Counters over the time of a run, for viewers: ready tasks, busy cores, tasks that the builder is ahead. `view/timeline/counters.js` draws the same
//! on the page, and a test of the page compares them.

use std::collections::BTreeMap;

use crate::timeline::model::Trace;

/// A number that changes in steps.
pub(crate) struct Counter {
    /// What it is called.
    pub(crate) name: &'static str,
    /// What it counts.
    pub(crate) unit: &'static str,
    /// A time, and the value from then on. The last value is that of the end.
    pub(crate) steps: Vec<(u64, i64)>,
}

/// The counters of a run.
pub(crate) fn counters(trace: &Trace) -> [Counter; 3] {
    let (mut ready, mut busy, mut ahead) = (Steps::default(), Steps::default(), Steps::default());
    for task in &trace.tasks {
        let at = &task.at;
        ready.between(at.ready, at.dispatched.or(at.skipped));
        ahead.between(at.added, at.started.or(at.skipped));
    }
    for run in trace.runs().map(|run| run.run).filter(|run| run.core.is_some()) {
        busy.between(run.at.started, run.at.finished.or(Some(trace.end_ns)));
    }
    [
        Counter { name: "ready", unit: "tasks", steps: ready.values() },
        Counter { name: "busy", unit: "cores", steps: busy.values() },
        Counter { name: "ahead", unit: "tasks", steps: ahead.values() },
    ]
}

/// By how much a number rises or falls at each time.
#[derive(Default)]
struct Steps(BTreeMap<u64, i64>);

impl Steps {
    /// One more from a time on, to another one or to the end of the run.
    fn between(&mut self, from: Option<u64>, to: Option<u64>) {
        let Some(from) = from else { return };
        *self.0.entry(from).or_default() += 1;
        if let Some(to) = to {
            *self.0.entry(to.max(from)).or_default() -= 1;
        }
    }

    fn values(self) -> Vec<(u64, i64)> {
        let mut value = 0;
        let step = |(at, change): (u64, i64)| {
            value += change;
            (change != 0).then_some((at, value))
        };
        self.0.into_iter().filter_map(step).collect()
    }
}
