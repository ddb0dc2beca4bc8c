//! The model of a run that a timeline shows: tasks with their moments, edges, lanes.

use std::collections::BTreeMap;

use pto_abi::CoreKind;
use pto_abi::trace::TraceOwner;
use serde::{Deserialize, Serialize};

/// The timeline of one run. Times are nanoseconds since the first event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Facts about the run, for people: example, device, options.
    pub run: BTreeMap<String, String>,
    /// The core kind of each worker.
    pub cores: Vec<CoreKind>,
    /// AICPU instances.
    pub instances: u32,
    /// The kernel of each func id that a task has.
    pub kernels: BTreeMap<u16, String>,
    /// The tasks, in the order in which they were added; by slot, where no slot was used again.
    pub tasks: Vec<Task>,
    /// What the program calls its tasks, in their order; empty: it has no name. There may be fewer than there are tasks.
    pub task_names: Vec<String>,
    /// The parts of tasks that have several, by task and block. Such a task is dispatched and started when its first part is, and
    /// finished when its last part is; its core is the one of that part.
    pub parts: Vec<BlockPart>,
    /// The edges, in the order in which they were added.
    pub edges: Vec<Edge>,
    /// What was recorded, and what was not.
    pub lanes: Vec<RingCounts>,
    /// The end of the timeline: the last event, or the fault that ended the run.
    pub end_ns: u64,
    /// From the launch to the return of the last instance; `None`: the timeline is of something that was not launched as a graph.
    pub makespan_ns: Option<u64>,
    /// The longest path of kernels along all dependencies, where the machine that ran them knows it: edges from tasks that had
    /// retired are not among `edges`.
    pub critical_path_ns: Option<u64>,
    /// What ended the run, if it did not end well.
    pub fault: Option<EndFault>,
    /// How rows and kinds are called, where the rows are not cores: of a program, its threads and its streams.
    pub names: Option<RowNames>,
    /// Which rank of a group it is of.
    pub rank: Option<u32>,
    /// When the first event was: on the clock of its machine, or of a rank on that of the group. Only the file of a rank has this moment.
    pub began_ns: u64,
}

/// Names of the rows of a timeline that has other rows than cores.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RowNames {
    /// The name of the rows of each core kind, in the order of `CoreKind::ALL`.
    pub kinds: Vec<String>,
    /// Each row, in the order of `Trace::cores`.
    pub rows: Vec<String>,
}

/// The fault that ended a run, and what it concerns.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EndFault {
    /// The fault's code in the table of faults.
    pub code: u32,
    /// The fault's name.
    pub name: String,
    /// What happened.
    pub sentence: String,
    /// What to do.
    pub remedy: String,
    /// The worker concerned.
    pub core: Option<u32>,
    /// The number of the task concerned.
    pub task: Option<u32>,
    /// The AICPU instance that raised it; `None`: the machine did.
    pub instance: Option<u32>,
}

/// A task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Which kernel.
    pub func_id: u16,
    /// Which cores it runs on.
    pub kind: CoreKind,
    /// The worker that it was dispatched to.
    pub core: Option<u32>,
    /// The AICPU instance that dispatched it.
    pub scheduler: Option<u32>,
    /// When what happened to it.
    pub at: Moments,
}

/// One part of one block of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPart {
    /// The task.
    pub task: u32,
    /// The number of the block.
    pub block: u32,
    /// The number of its core among those of its kind in the block: 1 for the second vector core.
    pub lane: u32,
    /// What ran where and when. Added, published and ready are those of the task; `completed` is when the scheduler saw its end.
    pub run: Task,
}

/// What a core was given: a task, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreRun<'t> {
    /// The task.
    pub task: u32,
    /// Which part of it; `None`: it has no parts.
    pub part: Option<&'t BlockPart>,
    /// What ran where and when.
    pub run: &'t Task,
}

/// The moments of a task; `None`: it did not happen, or was not traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// When the task was added.
    pub added: Option<u64>,
    /// When the task became visible to schedulers.
    pub published: Option<u64>,
    /// When the task's last producer completed.
    pub ready: Option<u64>,
    /// When the doorbell of the task's core was rung.
    pub dispatched: Option<u64>,
    /// When the core began the task.
    pub started: Option<u64>,
    /// When the core finished the task.
    pub finished: Option<u64>,
    /// When the scheduler saw that the core had finished, and released the task's consumers.
    pub completed: Option<u64>,
    /// When the task completed without a core, because its predicate was false.
    pub skipped: Option<u64>,
}

impl Task {
    /// When it was ready, or the first known moment after that.
    fn began(&self) -> Option<u64> {
        let Moments { ready, skipped, dispatched, started, .. } = self.at;
        ready.or(skipped).or(dispatched).or(started)
    }

    /// When it was completed; if that is unknown, when its core had finished it.
    fn ended(&self) -> Option<u64> {
        self.at.completed.max(self.at.finished)
    }

    /// Whether a core had begun it, and not ended, when the run ended.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.at.started.is_some() && self.at.finished.is_none()
    }

    /// When the core worked on it.
    #[must_use]
    pub fn span(&self) -> Option<(u64, u64)> {
        let (start, end) = (self.at.started?, self.at.finished?);
        Some((start, end.max(start)))
    }

    /// Time in the kernel; zero where it is not known.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.span().map_or(0, |(start, end)| end - start)
    }
}

/// `consumer` waits for `producer`; both are numbers of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// Who comes first.
    pub producer: u32,
    /// Who waits.
    pub consumer: u32,
}

/// One agent's ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingCounts {
    /// Whose.
    pub owner: TraceOwner,
    /// Events that were read.
    pub read: u64,
    /// Events that the ring had no room for.
    pub dropped: u64,
}

impl Trace {
    /// The task in a slot.
    #[must_use]
    pub fn task(&self, slot: u32) -> Option<&Task> {
        self.tasks.get(slot as usize)
    }

    /// The time of the graph: from its first ready task to its last completion, or to the end of the timeline where something
    /// did not complete.
    #[must_use]
    pub fn graph(&self) -> (u64, u64) {
        let began = self.tasks.iter().filter_map(Task::began).min().unwrap_or(0);
        let runs_on =
            self.tasks.iter().any(|task| task.ended().is_none() && task.at.started.is_some());
        let ended = self.tasks.iter().filter_map(Task::ended).max();
        let ended = ended.filter(|_| self.fault.is_none() && !runs_on);
        (began, ended.unwrap_or(self.end_ns).max(began))
    }

    /// How long that is.
    #[must_use]
    pub fn graph_ns(&self) -> u64 {
        let (began, ended) = self.graph();
        ended - began
    }

    /// What cores were given, or would have been: each task that has no parts and was not skipped, then each part.
    pub fn runs(&self) -> impl Iterator<Item = CoreRun<'_>> {
        let mut with_parts = vec![false; self.tasks.len()];
        for part in &self.parts {
            if let Some(has_parts) = with_parts.get_mut(part.task as usize) {
                *has_parts = true;
            }
        }
        let whole = (0_u32..).zip(&self.tasks).zip(with_parts);
        let whole = whole.filter(|((_, task), has_parts)| !has_parts && task.at.skipped.is_none());
        let whole = whole.map(|((task, run), _)| CoreRun { task, part: None, run });
        whole.chain(self.parts.iter().map(|part| CoreRun {
            task: part.task,
            part: Some(part),
            run: &part.run,
        }))
    }

    /// The time in the kernel of each task; of one with parts, in the longest of them: no schedule is faster.
    #[must_use]
    pub fn kernel_times(&self) -> Vec<u64> {
        let mut times = vec![0; self.tasks.len()];
        for CoreRun { task, run, .. } in self.runs() {
            if let Some(time) = times.get_mut(task as usize) {
                *time = run.duration_ns().max(*time);
            }
        }
        times
    }

    /// Tasks that no core was given, because their predicates were false.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.tasks.iter().filter(|task| task.at.skipped.is_some()).count()
    }

    /// How a kernel is called.
    #[must_use]
    pub fn kernel(&self, func_id: u16) -> String {
        self.kernels.get(&func_id).cloned().unwrap_or_else(|| format!("func {func_id}"))
    }

    /// What the program calls a task; `None`: it has no name.
    #[must_use]
    pub fn task_name(&self, slot: u32) -> Option<&str> {
        let name = self.task_names.get(slot as usize)?;
        (!name.is_empty()).then_some(name)
    }

    /// What runs of a task, as people read it: `e0: exp` of a task with a name, and the kernel alone of one without.
    #[must_use]
    pub fn called(&self, slot: u32, func_id: u16) -> String {
        let kernel = self.kernel(func_id);
        match self.task_name(slot) {
            Some(name) => format!("{name}: {kernel}"),
            None => kernel,
        }
    }

    /// The fault, its core and its task, as people read it; `None`: the run ended well.
    #[must_use]
    pub fn fault_text(&self) -> Option<String> {
        let EndFault { name, core, task, .. } = self.fault.as_ref()?;
        let core = core.map(|core| format!(" on {}", self.core_name(core)));
        let task = task.map(|slot| match self.task(slot) {
            Some(task) => format!(", task {slot} ({})", self.called(slot, task.func_id)),
            None => format!(", task {slot}"),
        });
        Some(format!("{name}{}{}", core.unwrap_or_default(), task.unwrap_or_default()))
    }

    /// How many cores of a kind there are.
    #[must_use]
    pub fn core_count(&self, kind: CoreKind) -> usize {
        self.cores.iter().filter(|core| **core == kind).count()
    }

    /// The name of a worker: its kind, and its number among those of its kind.
    #[must_use]
    pub fn core_name(&self, worker: u32) -> String {
        let names = self.names.as_ref();
        if let Some(name) = names.and_then(|names| names.rows.get(worker as usize)) {
            return name.clone();
        }
        let Some(kind) = self.cores.get(worker as usize) else { return format!("core {worker}") };
        let before = self.cores.iter().take(worker as usize).filter(|core| *core == kind).count();
        format!("{kind} {before}")
    }

    /// How a kind of rows is called.
    #[must_use]
    pub fn kind_name(&self, kind: CoreKind) -> String {
        let named = self.names.as_ref().and_then(|names| names.kinds.get(kind.index()));
        named.map_or_else(|| kind.name().to_owned(), Clone::clone)
    }

    /// Events that no ring had room for.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.dropped).sum()
    }

    /// The producers of each task: `offsets[slot]..offsets[slot + 1]` of the list.
    #[must_use]
    pub fn producers(&self) -> Neighbours {
        Neighbours::new(
            self.tasks.len(),
            self.edges.iter().map(|edge| (edge.consumer, edge.producer)),
        )
    }

    /// The consumers of each task.
    #[must_use]
    pub fn consumers(&self) -> Neighbours {
        Neighbours::new(
            self.tasks.len(),
            self.edges.iter().map(|edge| (edge.producer, edge.consumer)),
        )
    }
}

/// For each task, some others; in one list.
#[derive(Clone, Debug)]
pub struct Neighbours {
    starts: Vec<usize>,
    slots: Vec<u32>,
}

impl Neighbours {
    /// From pairs of a task and its neighbour; both are below `tasks`.
    pub(crate) fn new(tasks: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0; tasks + 1];
        for (task, _) in pairs.clone() {
            starts[task as usize + 1] += 1;
        }
        for index in 0..tasks {
            starts[index + 1] += starts[index];
        }
        let (mut next, mut slots) = (starts.clone(), vec![0; starts[tasks]]);
        for (task, neighbour) in pairs {
            slots[next[task as usize]] = neighbour;
            next[task as usize] += 1;
        }
        Self { starts, slots }
    }

    /// The neighbours of a task.
    #[must_use]
    pub fn of(&self, slot: u32) -> &[u32] {
        &self.slots[self.starts[slot as usize]..self.starts[slot as usize + 1]]
    }
}
