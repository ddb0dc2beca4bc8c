//! Which kernel ran when and where, and what the schedulers and the builder did meanwhile.
//!
//! All of it is the engine's timeline, in the clock of the run: virtual nanoseconds in virtual time. A run that failed has no timeline
//! here. Its kernels are those whose calls were kept ([`spans`](crate::spans)), in nanoseconds of this machine, and nothing is known of its
//! schedulers. How long pipes were busy comes from the instructions that the kernels reported, in either case.
//!
//! The timeline says when something was over, and seldom when it began. A phase of a scheduler therefore begins when its work was there, and
//! not before the phase in front of it has ended.

use std::collections::HashMap;

use pto_host::abi::CoreKind;
use pto_host::timeline::{CoreRun, Moments, Task, Trace};

use crate::counters::PipeCycles;
use crate::entry::TaskEntry;
use crate::spans::KernelSpan;

/// A call of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelCall {
    /// The task's id, as the field counts.
    pub task: u64,
    /// Which of the task's kernels: AIC, AIV 0, AIV 1.
    pub slot: u8,
    /// The kernel's func id; negative: not known.
    pub func_id: i32,
    /// The kernel's index in [`Swimlane::cores`].
    pub core: usize,
    /// When the kernel began, in nanoseconds.
    pub begin: u64,
    /// When it returned.
    pub end: u64,
    /// Its scheduler, the doorbell, and when the scheduler saw that the kernel had returned.
    pub seen: Option<Seen>,
    /// The number of its block.
    pub block: u32,
    /// How long the core's pipes were busy; `None`: the kernel reported no instruction.
    pub pipes: Option<PipeCycles>,
}

/// What a scheduler did for a call of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which AICPU instance it is.
    pub instance: usize,
    /// The doorbell.
    pub dispatched: u64,
    /// It saw the end of the kernel.
    pub finished: u64,
}

/// What a scheduler was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It saw that a kernel had returned, and released the tasks that wait for it.
    Complete,
    /// The second half of `Complete`: tasks that wait.
    Resolve,
    /// It gave kernels to cores.
    Dispatch,
    /// It gave all blocks of a task to cores that start at once.
    Drain,
    /// It completed a task without a kernel.
    Dummy,
    /// It completed a task whose predicate is false.
    Skip,
}

/// A phase of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What it did.
    pub work: Work,
    /// Begin of the phase, in nanoseconds.
    pub begin: u64,
    /// Until when.
    pub end: u64,
    /// How many tasks or kernels it was about.
    pub count: usize,
    /// The number of the round among the rounds of this scheduler that did something.
    pub round: usize,
    /// The task that it is about, where it is one.
    pub task: Option<u64>,
}

/// A submission, from the moment in which the engine has the task until schedulers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmissionSpan {
    /// The task's id, as the field counts.
    pub task: u64,
    /// In nanoseconds.
    pub begin: u64,
    /// As `begin`.
    pub end: u64,
}

/// See the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swimlane {
    /// 0 AIC, 1 AIV, for each core.
    pub cores: Vec<u8>,
    /// In the order of their beginnings.
    pub calls: Vec<KernelCall>,
    /// The phases of each AICPU instance; empty: there is no timeline.
    pub schedulers: Vec<Vec<Phase>>,
    /// Submissions in their order.
    pub submissions: Vec<SubmissionSpan>,
}

impl Swimlane {
    /// Makes a swimlane of the kernel calls in `spans`.
    pub(crate) fn of_spans(spans: &[KernelSpan]) -> Self {
        let mut cores: Vec<(u8, u32)> =
            spans.iter().map(|span| (span.slot.min(1), span.thread)).collect();
        cores.sort_unstable();
        cores.dedup();
        let call = |span: &KernelSpan| KernelCall {
            task: span.task,
            slot: span.slot,
            func_id: span.func_id,
            core: cores.binary_search(&(span.slot.min(1), span.thread)).unwrap_or(0),
            begin: span.begin,
            end: span.end,
            seen: None,
            block: span.block,
            pipes: span.pipes,
        };
        let mut calls: Vec<KernelCall> = spans.iter().map(call).collect();
        calls.sort_by_key(|call| call.begin);
        let cores = cores.into_iter().map(|(kind, _)| kind).collect();
        Self { cores, calls, ..Self::default() }
    }

    /// Of a timeline, and of what the kernels reported; `entry` knows the tasks as the program submitted them, by the engine's number.
    pub(crate) fn of_trace<'d>(
        trace: &Trace,
        spans: &[KernelSpan],
        entry: &impl Fn(u32) -> Option<&'d TaskEntry>,
    ) -> Self {
        let cores = trace.cores.iter().map(|kind| u8::from(*kind != CoreKind::AIC)).collect();
        let mut calls: Vec<KernelCall> = trace
            .runs()
            .filter_map(|run| call_of(&run, trace.cores.len(), entry(run.task)?))
            .collect();
        let reported = spans.iter().map(|span| ((span.task, span.core, span.block), span.pipes));
        let reported: HashMap<(u64, u8, u32), Option<PipeCycles>> = reported.collect();
        for call in &mut calls {
            call.pipes = reported.get(&(call.task, call.slot, call.block)).copied().flatten();
        }
        calls.sort_by_key(|call| (call.begin, call.core));
        let submissions = (0..)
            .zip(&trace.tasks)
            .filter_map(|(number, task)| {
                let (begin, end) = (task.at.added?, task.at.published?);
                Some(SubmissionSpan { task: entry(number)?.id, begin, end: end.max(begin) })
            })
            .collect();
        Self { cores, calls, schedulers: phases(trace, entry), submissions }
    }

    /// The scheduler of each core: that of the last kernel that it ran.
    #[must_use]
    pub fn core_schedulers(&self) -> Vec<Option<usize>> {
        let mut found = vec![None; self.cores.len()];
        for call in &self.calls {
            if let Some(core) = found.get_mut(call.core) {
                *core = call.seen.map(|seen| seen.instance).or(*core);
            }
        }
        found
    }
}

/// The scheduler of a run.
fn instance_of(task: &Task) -> Option<usize> {
    usize::try_from(task.scheduler?).ok()
}

fn call_of(run: &CoreRun<'_>, cores: usize, entry: &TaskEntry) -> Option<KernelCall> {
    let (begin, end) = run.run.span()?;
    let core = usize::try_from(run.run.core?).ok().filter(|core| *core < cores)?;
    let lane = run.part.map_or(0, |part| part.lane);
    let slot = if run.run.kind == CoreKind::AIC { 0 } else { 1 + lane.min(1) };
    let named = |slot: u32| entry.kernels.get(slot as usize).copied().filter(|id| *id >= 0);
    let Moments { dispatched, completed, .. } = run.run.at;
    let seen = instance_of(run.run).zip(dispatched).zip(completed);
    Some(KernelCall {
        task: entry.id,
        slot: u8::try_from(slot).unwrap_or(u8::MAX),
        // A single vector kernel runs on either core of a cluster.
        func_id: named(slot).or_else(|| named(1).filter(|_| slot == 2)).unwrap_or(-1),
        core,
        begin,
        end,
        seen: seen.map(|((instance, dispatched), finished)| Seen {
            instance,
            dispatched,
            finished,
        }),
        block: run.part.map_or(0, |part| part.block),
        pipes: None,
    })
}

/// What a scheduler has done at a moment: the order of the cases is the order at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Deed {
    Completed { task: u32 },
    Skipped { task: u32 },
    Dispatched { task: u32, ready: u64 },
}

/// The phases of every instance.
fn phases<'d>(trace: &Trace, entry: &impl Fn(u32) -> Option<&'d TaskEntry>) -> Vec<Vec<Phase>> {
    let mut deeds: Vec<Vec<(u64, Deed)>> = vec![Vec::new(); trace.instances as usize];
    let mut add = |task: &Task, at: Option<u64>, deed: Deed| {
        let instance = instance_of(task).and_then(|instance| deeds.get_mut(instance));
        if let (Some(list), Some(at)) = (instance, at) {
            list.push((at, deed));
        }
    };
    for CoreRun { task, run, .. } in trace.runs() {
        let whole = trace.task(task).unwrap_or(run);
        let ready = whole.at.ready.or(whole.at.published).unwrap_or(0);
        add(run, run.at.dispatched, Deed::Dispatched { task, ready });
        add(run, run.at.completed, Deed::Completed { task });
    }
    for (number, task) in (0..).zip(&trace.tasks) {
        add(task, task.at.skipped, Deed::Skipped { task: number });
    }
    let consumers = trace.consumers();
    let released = |task: u32, from: u64, until: u64| {
        let ready = consumers.of(task).iter().filter_map(|next| trace.task(*next)?.at.ready);
        ready.filter(|at| (from..=until).contains(at)).max().unwrap_or(from)
    };
    deeds
        .into_iter()
        .map(|mut list| {
            list.sort_unstable();
            let mut builder = PhaseBuilder { entry, phases: Vec::new(), round: 0, last: 0 };
            let mut rest = list.as_slice();
            while let Some(&(at, deed)) = rest.first() {
                let same = rest.iter().take_while(|(other, next)| {
                    *other == at && std::mem::discriminant(next) == std::mem::discriminant(&deed)
                });
                let (now, later) = rest.split_at(same.count().max(1));
                let until = later.first().map_or(u64::MAX, |(at, _)| *at);
                rest = later;
                builder.add(at, now, |task| (released(task, at, until), consumers.of(task).len()));
            }
            builder.phases
        })
        .collect()
}

/// The phases of one scheduler, while they are made.
struct PhaseBuilder<'e, F> {
    entry: &'e F,
    phases: Vec<Phase>,
    round: usize,
    /// The end of the last phase.
    last: u64,
}

impl<'d, F: Fn(u32) -> Option<&'d TaskEntry>> PhaseBuilder<'_, F> {
    fn push(&mut self, work: Work, (begin, end): (u64, u64), count: usize, task: Option<u64>) {
        self.phases.push(Phase { work, begin, end, count, round: self.round, task });
        self.last = self.last.max(end);
    }

    /// Deeds of one kind at one moment. `release` gives the time at which the last waiting task was released, and the number of waiting tasks.
    fn add(&mut self, at: u64, deeds: &[(u64, Deed)], release: impl Fn(u32) -> (u64, usize)) {
        self.round += 1;
        let mut ready = 0;
        let (mut plain, mut at_once) = (0, 0);
        for &(_, deed) in deeds {
            match deed {
                Deed::Completed { task } => {
                    let (until, waiting) = release(task);
                    self.push(Work::Complete, (at, until), 1, None);
                    self.push(Work::Resolve, (at, until), waiting, None);
                }
                Deed::Skipped { task } => {
                    let Some(entry) = (self.entry)(task) else { continue };
                    let has_kernel = entry.kernels.iter().any(|kernel| *kernel >= 0);
                    let work = if has_kernel { Work::Skip } else { Work::Dummy };
                    self.push(work, (at, release(task).0), 1, Some(entry.id));
                }
                Deed::Dispatched { task, ready: since } => {
                    ready = ready.max(since);
                    let starts_at_once = (self.entry)(task).is_some_and(|task| task.starts_at_once);
                    *(if starts_at_once { &mut at_once } else { &mut plain }) += 1;
                }
            }
        }
        let begin = self.last.max(ready).min(at);
        for (work, count) in [(Work::Dispatch, plain), (Work::Drain, at_once)] {
            if count > 0 {
                self.push(work, (begin, at), count, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Swimlane, Work};
    use crate::entry::TaskEntry;
    use pto_host::abi::CoreKind;
    use pto_host::timeline::{Edge, Moments, Task, Trace};

    fn ran(scheduler: u32, [ready, dispatched, started, finished, completed]: [u64; 5]) -> Task {
        let at = Moments {
            added: Some(ready),
            published: Some(ready),
            ready: Some(ready),
            dispatched: Some(dispatched),
            started: Some(started),
            finished: Some(finished),
            completed: Some(completed),
            skipped: None,
        };
        Task { func_id: 0, kind: CoreKind::AIV, core: Some(1), scheduler: Some(scheduler), at }
    }

    #[test]
    fn phases_begin_when_their_work_is_there() {
        let tasks = [7, 8].map(|id| TaskEntry {
            id,
            is_manual: false,
            kernels: [-1, 0, -1],
            blocks: 1,
            starts_at_once: false,
            tensors: Vec::new(),
            location: String::new(),
        });
        let trace = Trace {
            cores: vec![CoreKind::AIC, CoreKind::AIV],
            instances: 2,
            tasks: vec![ran(1, [10, 30, 40, 90, 100]), ran(1, [104, 120, 130, 150, 160])],
            edges: vec![Edge { producer: 0, consumer: 1 }],
            ..Trace::default()
        };
        let lane = Swimlane::of_trace(&trace, &[], &|number| tasks.get(number as usize));
        assert!(lane.schedulers[0].is_empty(), "the builder");
        let phases: Vec<_> = lane.schedulers[1]
            .iter()
            .map(|phase| (phase.work, phase.begin, phase.end, phase.count))
            .collect();
        let expected = [
            (Work::Dispatch, 10, 30, 1),
            (Work::Complete, 100, 104, 1),
            (Work::Resolve, 100, 104, 1),
            (Work::Dispatch, 104, 120, 1),
            (Work::Complete, 160, 160, 1),
            (Work::Resolve, 160, 160, 0),
        ];
        assert_eq!(phases, expected);
        assert_eq!(lane.core_schedulers(), [None, Some(1)]);
        assert_eq!((lane.calls[1].func_id, lane.calls[1].slot, lane.submissions.len()), (0, 1, 2));
    }
}
