//! What bounds a run, in one line, and what to change.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::timeline::analysis::{Analysis, Bounds, Chain};
use crate::timeline::model::Trace;

/// What most of the time of a run is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// The builder makes tasks more slowly than they run.
    Builder,
    /// The schedulers see ends, and dispatch, more slowly than cores run.
    Schedulers,
    /// There are too few cores for the work.
    Cores,
    /// Kernels that wait for one another.
    CriticalPath,
    /// What a core needs between a doorbell and the start of a kernel.
    StartUp,
}

impl Bottleneck {
    /// The bottleneck's name in a sentence.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Builder => "builder",
            Self::Schedulers => "schedulers",
            Self::Cores => "cores",
            Self::CriticalPath => "critical path",
            Self::StartUp => "start-up of a core",
        }
    }

    /// What to change.
    #[must_use]
    pub const fn change(self) -> &'static str {
        match self {
            Self::Builder => {
                "put short kernels in chains, and state edges instead of deriving them"
            }
            Self::Schedulers => "put short kernels in chains, or add AICPU instances (--aicpu)",
            Self::Cores => "make the kernels that take most time faster, or use more cores",
            Self::CriticalPath => {
                "make its kernels faster, or cut them in parts that run side by side"
            }
            Self::StartUp => "put kernels that follow one another in a chain, which starts once",
        }
    }

    /// What the chain that the last task waited for spent most of its time on, and how much; `None`: it took no time.
    #[must_use]
    pub fn of(chain: &Chain, bounds: &Bounds) -> Option<(Self, u64)> {
        let work = bounds.work.iter().map(|work| work.bound_ns).max().unwrap_or(0);
        let kernels = if work > bounds.critical_path_ns { Self::Cores } else { Self::CriticalPath };
        let start_ns = start_ns(chain);
        let parts = [
            (Self::Builder, chain.building_ns),
            (Self::Schedulers, chain.collecting_ns + chain.dispatching_ns),
            (Self::StartUp, start_ns),
            // What is dispatched to a busy core waits for that core.
            (kernels, chain.running_ns + chain.starting_ns - start_ns),
        ];
        parts.into_iter().filter(|(_, ns)| *ns > 0).max_by_key(|(_, ns)| *ns)
    }
}

/// What bounds a run, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit's name in a sentence.
    pub name: String,
    /// The time that it takes.
    pub ns: u64,
    /// What to change.
    pub change: &'static str,
}

impl Limit {
    /// What bounds a run on cores, or a program whose streams are the rows; `None`: nothing took time.
    #[must_use]
    pub fn of(trace: &Trace, analysis: &Analysis) -> Option<Self> {
        if trace.names.is_some() {
            return Self::of_program(trace);
        }
        let (bound, ns) = Bottleneck::of(&analysis.chain, &analysis.bounds)?;
        Some(Self { name: format!("the {}", bound.name()), ns, change: bound.change() })
    }

    /// The commands of one name in whose time no others of that time are longer; or the host, where no command is at work for longer than that.
    fn of_program(trace: &Trace) -> Option<Self> {
        // A stream that waits is not at work.
        let is_work = |name: &str| !name.ends_with(" wait");
        let of_streams = trace.tasks.iter().filter(|task| trace.kind_name(task.kind) == STREAMS);
        let mut spans: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
        for task in of_streams {
            let name = trace.kernel(task.func_id);
            if let Some(span) = task.span().filter(|_| is_work(&name)) {
                spans.entry(name).or_default().push(span);
            }
        }
        let busy_ns = covered(spans.values().flatten().copied().collect());
        let idle_ns = trace.end_ns.saturating_sub(busy_ns);
        let times = spans.into_iter().map(|(name, spans)| (covered(spans), name));
        let (ns, name) = times.max().filter(|(ns, _)| *ns > 0)?;
        Some(if idle_ns > ns {
            let change =
                "no command of a stream is at work meanwhile: submit earlier, and wait for less";
            Self { name: "the host".to_owned(), ns: idle_ns, change }
        } else {
            let change =
                "make these commands faster, or let commands of other streams run meanwhile";
            Self { name, ns, change }
        })
    }
}

/// What a timeline calls rows of streams.
const STREAMS: &str = "stream";

/// The time that is in at least one of these spans.
fn covered(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let mut until = 0;
    let add = |sum: u64, (start, end): (u64, u64)| {
        let start = start.max(until);
        until = until.max(end);
        sum + end.saturating_sub(start)
    };
    spans.into_iter().fold(0, add)
}

/// What cores needed to start the tasks of a chain: each of them what the quickest one did.
fn start_ns(chain: &Chain) -> u64 {
    let started = chain.links.iter().map(|link| link.starting_ns).filter(|ns| *ns > 0);
    let count = started.clone().count() as u64;
    started.min().map_or(0, |quickest| quickest * count)
}

#[cfg(test)]
mod tests {
    use pto_abi::CoreKind;

    use super::Bottleneck;
    use crate::timeline::analysis::{Bounds, Chain, Link, WorkBound};

    /// A run whose last task waited for these links, each `[building, collecting, dispatching, starting, running]`.
    fn bound(links: &[[u64; 5]], (path_ns, bound_ns): (u64, u64)) -> Option<(Bottleneck, u64)> {
        let link = |ns: &[u64; 5]| Link {
            task: 0,
            building_ns: ns[0],
            collecting_ns: ns[1],
            dispatching_ns: ns[2],
            starting_ns: ns[3],
            running_ns: ns[4],
        };
        let sum = |part: usize| links.iter().map(|ns| ns[part]).sum();
        let chain = Chain {
            links: links.iter().map(link).collect(),
            building_ns: sum(0),
            collecting_ns: sum(1),
            dispatching_ns: sum(2),
            starting_ns: sum(3),
            running_ns: sum(4),
        };
        let work = vec![WorkBound { kind: CoreKind::AIC, cores: 1, work_ns: bound_ns, bound_ns }];
        let bounds = Bounds {
            critical_path_ns: path_ns,
            traced_path_ns: path_ns,
            work,
            largest_ns: path_ns.max(bound_ns),
        };
        Bottleneck::of(&chain, &bounds)
    }

    #[test]
    fn the_largest_part_of_the_last_chain_bounds_a_run() {
        let at = (100, 50);
        assert_eq!(bound(&[[900, 10, 10, 7, 100]], at), Some((Bottleneck::Builder, 900)));
        assert_eq!(bound(&[[1, 200, 60, 7, 100]], at), Some((Bottleneck::Schedulers, 260)));
        assert_eq!(bound(&[[1, 2, 3, 7, 100]], at), Some((Bottleneck::CriticalPath, 100)));
        assert_eq!(bound(&[[1, 2, 3, 7, 100]], (50, 100)), Some((Bottleneck::Cores, 100)));
        assert_eq!(bound(&[[1, 2, 3, 70, 10]; 2], at), Some((Bottleneck::StartUp, 140)));
        assert_eq!(bound(&[], at), None);
    }

    /// One of two tasks was dispatched to a core that was busy.
    #[test]
    fn waiting_for_another_task_is_no_start_up() {
        let links = [[0, 20, 0, 70, 100], [0, 20, 0, 700, 100]];
        assert_eq!(bound(&links, (50, 100)), Some((Bottleneck::Cores, 830)));
    }
}
