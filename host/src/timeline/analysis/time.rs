//! Every instant of every core. A sweep over the moments of all tasks; between two moments nothing changes.
//!
//! At an instant, of the cores of one kind, `running` run a kernel; `staged` have been given a task that has
//! not started; `unseen` have finished, and their scheduler has not seen it; `idle` have nothing. With `ready`
//! tasks of that kind waiting for a doorbell, `min(ready, idle + unseen)` cores are idle while work is ready:
//! that is scheduler overhead. Each part of a task counts as a task. What is left of `unseen` is polling, what is left of `idle` has no ready work.

use pto_abi::CoreKind;
use serde::Serialize;

use super::kind::kind_name;
use crate::timeline::model::{Task, Trace};

/// Where the time of the cores of one kind went. Core times are summed over the cores; they add up to
/// cores x the time of the graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindTime {
    /// Which cores.
    #[serde(serialize_with = "kind_name")]
    pub kind: CoreKind,
    /// How many.
    pub cores: usize,
    /// Core time in kernels.
    pub busy_ns: u64,
    /// Core time with a task that was dispatched and had not started.
    pub staged_ns: u64,
    /// Idle core time while a task was ready and not dispatched.
    pub overhead_ns: u64,
    /// Core time after a task had finished, unseen by its scheduler, without ready work.
    pub polling_ns: u64,
    /// Core time without ready work, and why there was none.
    pub no_work: NoWork,
    /// Time of the run in which an idle core and a ready task existed at once.
    pub overhead_span_ns: u64,
}

/// Core time without ready work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NoWork {
    /// Tasks were published, and waited for producers.
    pub producers_ns: u64,
    /// No task waited; the builder had some to publish.
    pub builder_ns: u64,
    /// Every task of this kind had been dispatched.
    pub nothing_left_ns: u64,
}

impl NoWork {
    /// All of it.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.producers_ns + self.builder_ns + self.nothing_left_ns
    }
}

/// The sweep's result.
pub(crate) struct Times {
    pub(crate) kinds: Vec<KindTime>,
    pub(crate) overhead_ns: u64,
    idle_before: [Vec<(u64, u64)>; CoreKind::COUNT],
    began: u64,
}

impl Times {
    /// Sweeps over the moments of every task.
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut moments = moments(trace);
        moments.sort_unstable_by_key(|moment| moment.at);
        let mut sweep = Sweep::new(trace);
        for moment in &moments {
            sweep.pass_to(moment.at);
            sweep.apply(moment);
        }
        sweep.pass_to(trace.graph().1);
        let kinds = CoreKind::ALL.iter().map(|kind| &sweep.kinds[kind.index()]);
        let of_kind = kinds.filter(|state| state.time.cores > 0).map(|state| state.time.clone());
        Self {
            kinds: of_kind.collect(),
            overhead_ns: sweep.overhead_ns,
            began: trace.graph().0,
            idle_before: sweep.kinds.map(|state| state.idle_before),
        }
    }

    /// For how long between two instants a core of `kind` was idle.
    pub(crate) fn idle_between(&self, kind: CoreKind, from: u64, to: u64) -> u64 {
        self.idle_before(kind, to) - self.idle_before(kind, from)
    }

    fn idle_before(&self, kind: CoreKind, at: u64) -> u64 {
        let steps = &self.idle_before[kind.index()];
        let next = steps.partition_point(|(end, _)| *end < at);
        let (start, sum) = match next.checked_sub(1) {
            Some(last) => steps[last],
            None => (self.began, 0),
        };
        match steps.get(next) {
            // A step is idle as a whole, or not at all.
            Some((_, end_sum)) if *end_sum > sum => sum + (at - start),
            _ => sum,
        }
    }
}

#[derive(Clone, Copy)]
struct Moment {
    at: u64,
    what: MomentKind,
    kind: CoreKind,
    core: u32,
}

#[derive(Clone, Copy)]
enum MomentKind {
    Published,
    Ready,
    Dispatched,
    Started,
    Finished,
    Completed,
}

/// The moments of all tasks that have a core, each task's in their order: clocks of several agents may differ
/// by less than a look at one takes.
fn moments(trace: &Trace) -> Vec<Moment> {
    let mut moments = Vec::with_capacity(6 * trace.tasks.len());
    let (began, ended) = trace.graph();
    for task in trace.runs().map(|run| run.run) {
        let mut add = |at: u64, what, core| {
            moments.push(Moment { at: at.clamp(began, ended), what, kind: task.kind, core });
        };
        let Some(times) = InOrder::of(task, ended) else {
            // Never dispatched: it may have waited to the end.
            task.at.published.into_iter().for_each(|at| add(at, MomentKind::Published, u32::MAX));
            task.at.ready.into_iter().for_each(|at| add(at, MomentKind::Ready, u32::MAX));
            continue;
        };
        let core = task.core.unwrap_or(u32::MAX);
        add(times.published, MomentKind::Published, core);
        add(times.ready, MomentKind::Ready, core);
        add(times.dispatched, MomentKind::Dispatched, core);
        add(times.started, MomentKind::Started, core);
        add(times.finished, MomentKind::Finished, core);
        add(times.completed, MomentKind::Completed, core);
    }
    moments
}

struct InOrder {
    published: u64,
    ready: u64,
    dispatched: u64,
    started: u64,
    finished: u64,
    completed: u64,
}

impl InOrder {
    /// What is not known took no time; what has not happened happens at the end.
    fn of(task: &Task, end: u64) -> Option<Self> {
        let at = &task.at;
        let dispatched = at.dispatched.or(at.started).or(at.finished)?;
        let ready = at.ready.unwrap_or(dispatched).min(dispatched);
        let published = at.published.unwrap_or(ready).min(ready);
        let started = match (at.started, at.finished) {
            (Some(started), _) | (None, Some(started)) => started.max(dispatched),
            (None, None) => end.max(dispatched),
        };
        let finished = at.finished.unwrap_or(end).max(started);
        let completed = at.completed.unwrap_or(finished).max(finished);
        Some(Self { published, ready, dispatched, started, finished, completed })
    }
}

#[derive(Clone, Copy, Default)]
struct Core {
    running: i32,
    staged: i32,
    unseen: i32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Running,
    Staged,
    Unseen,
    Idle,
}

impl Core {
    fn class(&self) -> Class {
        match self {
            Self { running: 1.., .. } => Class::Running,
            Self { staged: 1.., .. } => Class::Staged,
            Self { unseen: 1.., .. } => Class::Unseen,
            _ => Class::Idle,
        }
    }
}

struct KindState {
    time: KindTime,
    // Cores in each class.
    classes: [u64; 4],
    unpublished: i64,
    waiting: i64,
    ready: i64,
    idle_before: Vec<(u64, u64)>,
}

struct Sweep {
    now: u64,
    cores: Vec<Core>,
    kinds: [KindState; CoreKind::COUNT],
    overhead_ns: u64,
}

impl Sweep {
    fn new(trace: &Trace) -> Self {
        let state = |kind: CoreKind| {
            let cores = trace.core_count(kind);
            let tasks = trace.runs().filter(|run| run.run.kind == kind).count();
            KindState {
                time: KindTime {
                    kind,
                    cores,
                    busy_ns: 0,
                    staged_ns: 0,
                    overhead_ns: 0,
                    polling_ns: 0,
                    no_work: NoWork::default(),
                    overhead_span_ns: 0,
                },
                classes: [0, 0, 0, cores as u64],
                unpublished: i64::try_from(tasks).unwrap_or(i64::MAX),
                waiting: 0,
                ready: 0,
                idle_before: Vec::new(),
            }
        };
        Self {
            now: trace.graph().0,
            cores: vec![Core::default(); trace.cores.len()],
            kinds: [state(CoreKind::AIC), state(CoreKind::AIV)],
            overhead_ns: 0,
        }
    }

    fn pass_to(&mut self, at: u64) {
        let span = at.saturating_sub(self.now);
        if span == 0 {
            return;
        }
        self.now = at;
        let mut overhead = false;
        for state in &mut self.kinds {
            overhead |= state.pass(span, at);
        }
        if overhead {
            self.overhead_ns += span;
        }
    }

    fn apply(&mut self, moment: &Moment) {
        let state = &mut self.kinds[moment.kind.index()];
        match moment.what {
            MomentKind::Published => {
                state.unpublished -= 1;
                state.waiting += 1;
            }
            MomentKind::Ready => {
                state.waiting -= 1;
                state.ready += 1;
            }
            MomentKind::Dispatched => state.ready -= 1,
            _ => {}
        }
        let Some(core) = self.cores.get_mut(moment.core as usize) else { return };
        let before = core.class();
        match moment.what {
            MomentKind::Dispatched => core.staged += 1,
            MomentKind::Started => {
                core.staged -= 1;
                core.running += 1;
            }
            MomentKind::Finished => {
                core.running -= 1;
                core.unseen += 1;
            }
            MomentKind::Completed => core.unseen -= 1,
            MomentKind::Published | MomentKind::Ready => {}
        }
        state.classes[before as usize] -= 1;
        state.classes[core.class() as usize] += 1;
    }
}

impl KindState {
    /// Lets time pass; whether it was overhead.
    fn pass(&mut self, span: u64, end: u64) -> bool {
        let [running, staged, unseen, idle] = self.classes;
        let time = &mut self.time;
        time.busy_ns += running * span;
        time.staged_ns += staged * span;
        let ready = u64::try_from(self.ready).unwrap_or(0);
        let idle_with_work = ready.min(idle + unseen);
        time.overhead_ns += idle_with_work * span;
        let without_work = idle.saturating_sub(ready);
        let polling = idle + unseen - idle_with_work - without_work;
        time.polling_ns += polling * span;
        let no_work = &mut time.no_work;
        let reason = match (self.waiting > 0, self.unpublished > 0) {
            (true, _) => &mut no_work.producers_ns,
            (false, true) => &mut no_work.builder_ns,
            (false, false) => &mut no_work.nothing_left_ns,
        };
        *reason += without_work * span;
        let sum = self.idle_before.last().map_or(0, |last| last.1);
        let is_idle = if idle + unseen > 0 { span } else { 0 };
        self.idle_before.push((end, sum + is_idle));
        if idle_with_work > 0 {
            time.overhead_span_ns += span;
        }
        idle_with_work > 0
    }
}
