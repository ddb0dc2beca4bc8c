//! Traces as files: JSON that Perfetto and Chrome show, with a section of our own that holds everything.
//!
//! `traceEvents` is for viewers; `pto` is what [`read`] reads. The schema is in `docs/reference/timeline-file.md`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use pto_abi::CoreKind;
use pto_abi::limits::{MAX_AICPU_INSTANCES, MAX_WORKERS};
use pto_abi::trace::TraceOwner;
use serde::{Deserialize, Serialize};

use crate::timeline::counters::{Counter, counters};
use crate::timeline::model::{
    BlockPart, CoreRun, Edge, EndFault, Moments, RingCounts, RowNames, Task, Trace,
};

/// The version of the section `pto` that is written, and the only one that is read.
pub const VERSION: u32 = 3;
/// The name of the schema.
pub const SCHEMA: &str = "pto-timeline";

/// Why a file is not a trace.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is not JSON, or the section has another shape.
    #[error("it is not a trace: {0}")]
    Json(#[from] serde_json::Error),
    /// The file is JSON, but not a trace.
    #[error("it has no section \"pto\", so no `pto run --trace` wrote it")]
    NoSection,
    /// The file is a trace of another release.
    #[error(
        "it has schema {schema} version {version}, and this pto reads {SCHEMA} version {VERSION}: use the pto that wrote it, or record the run again"
    )]
    Version {
        /// The file's schema.
        schema: String,
        /// The file's version.
        version: u32,
    },
    /// It contradicts itself.
    #[error("it contradicts itself: {0}")]
    Contradiction(String),
}

/// The head of a file, which decides whether the rest can be read.
#[derive(Deserialize)]
struct Envelope {
    pto: Option<FileHeader>,
}

#[derive(Deserialize)]
struct FileHeader {
    schema: String,
    version: u32,
}

#[derive(Deserialize)]
struct File {
    pto: Section,
}

#[derive(Deserialize, Serialize)]
struct Section {
    schema: String,
    version: u32,
    run: BTreeMap<String, String>,
    end_ns: u64,
    /// Absent: it was not launched as a graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    makespan_ns: Option<u64>,
    instances: u32,
    cores: Vec<String>,
    kernels: BTreeMap<u16, String>,
    lanes: Vec<LaneRow>,
    task_columns: Vec<String>,
    tasks: Vec<TaskRow>,
    /// Names of tasks, in their order; empty where one has none; absent: none has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    task_names: Vec<String>,
    part_columns: Vec<String>,
    parts: Vec<PartRow>,
    edges: Vec<u32>,
    /// Tasks whose predicates were false; they were skipped when they were completed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<u32>,
    /// The longest path along all dependencies; absent: the edges say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    critical_path_ns: Option<u64>,
    /// What ended the run; absent: it ended well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<EndFault>,
    /// How rows are called that are not cores; absent: they are cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    names: Option<RowNames>,
    /// The rank of a group, and when its first event was on the clock of all ranks; absent: it is of no rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rank: Option<RankRow>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RankRow {
    number: u32,
    began_ns: u64,
}

#[derive(Deserialize, Serialize)]
struct LaneRow {
    lane: String,
    /// Older readers know the events that were read by this name.
    #[serde(rename = "recorded")]
    read: u64,
    dropped: u64,
}

/// As [`TASK_COLUMNS`]; -1 where nothing is known.
pub(crate) type TaskRow = [i64; 11];

/// The value where nothing is known.
const UNKNOWN: i64 = -1;
/// Rows with names, at most.
pub const MAX_ROWS: usize = 4096;
/// No run takes longer: 208 days.
const MOST_NS: u64 = 1 << 54;

/// The columns of a row of `tasks`. The row's index is the task's slot; moments are in nanoseconds.
pub const TASK_COLUMNS: [&str; 11] = [
    "func_id",
    "kind",
    "core",
    "scheduler",
    "added",
    "published",
    "ready",
    "dispatched",
    "started",
    "finished",
    "completed",
];

/// The columns of [`PART_COLUMNS`]; the last one is a row of [`TASK_COLUMNS`].
pub(crate) type PartRow = (u32, u32, u32, TaskRow);

/// The columns of a row of `parts`; `run` is a list with the columns of a row of `tasks`.
pub const PART_COLUMNS: [&str; 4] = ["task", "block", "lane", "run"];

/// Reads a trace.
///
/// # Errors
/// See [`FileError`].
pub fn read(bytes: &[u8]) -> Result<Trace, FileError> {
    let envelope: Envelope = serde_json::from_slice(bytes)?;
    let FileHeader { schema, version } = envelope.pto.ok_or(FileError::NoSection)?;
    if schema != SCHEMA || version != VERSION {
        return Err(FileError::Version { schema, version });
    }
    let file: File = serde_json::from_slice(bytes)?;
    file.pto.trace().map_err(FileError::Contradiction)
}

impl Section {
    fn of(trace: &Trace) -> Self {
        let lane = |lane: &RingCounts| LaneRow {
            lane: lane_name(lane.owner),
            read: lane.read,
            dropped: lane.dropped,
        };
        Self {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            run: trace.run.clone(),
            end_ns: trace.end_ns,
            makespan_ns: trace.makespan_ns,
            critical_path_ns: trace.critical_path_ns,
            instances: trace.instances,
            cores: trace.cores.iter().map(|kind| kind.name().to_owned()).collect(),
            kernels: trace.kernels.clone(),
            lanes: trace.lanes.iter().map(lane).collect(),
            task_columns: TASK_COLUMNS.map(str::to_owned).into(),
            tasks: trace.tasks.iter().map(row).collect(),
            task_names: trace.task_names.clone(),
            part_columns: PART_COLUMNS.map(str::to_owned).into(),
            parts: trace.parts.iter().map(part_row).collect(),
            edges: trace.edges.iter().flat_map(|edge| [edge.producer, edge.consumer]).collect(),
            skipped: skipped(trace),
            fault: trace.fault.clone(),
            names: trace.names.clone(),
            rank: trace.rank.map(|number| RankRow { number, began_ns: trace.began_ns }),
        }
    }

    fn trace(self) -> Result<Trace, String> {
        if self.task_columns != TASK_COLUMNS {
            return Err(format!("task_columns are not {TASK_COLUMNS:?}"));
        }
        if self.part_columns != PART_COLUMNS {
            return Err(format!("part_columns are not {PART_COLUMNS:?}"));
        }
        self.check_sizes()?;
        let kind = |name: &String| {
            CoreKind::from_name(name).ok_or_else(|| format!("\"{name}\" is no core kind"))
        };
        let cores: Vec<CoreKind> = self.cores.iter().map(kind).collect::<Result<_, _>>()?;
        let rows = self.tasks.iter().enumerate();
        let task = |(slot, row)| self.task_of(row).map_err(|what| format!("task {slot}: {what}"));
        let mut tasks: Vec<Task> = rows.map(task).collect::<Result<_, _>>()?;
        skip(&mut tasks, &self.skipped)?;
        if self.task_names.len() > tasks.len() {
            return Err(format!("{} names of {} tasks", self.task_names.len(), tasks.len()));
        }
        let part = |&(slot, block, lane, ref row): &PartRow| {
            let run = self
                .task_of(row)
                .map_err(|what| format!("block {block} of task {slot}: {what}"))?;
            if slot as usize >= tasks.len() {
                return Err(format!("block {block} is of task {slot}, of {}", tasks.len()));
            }
            Ok(BlockPart { task: slot, block, lane, run })
        };
        let parts: Vec<BlockPart> = self.parts.iter().map(part).collect::<Result<_, _>>()?;
        let lane = |row: &LaneRow| {
            let owner =
                lane_owner(&row.lane).ok_or_else(|| format!("\"{}\" is no lane", row.lane))?;
            Ok::<_, String>(RingCounts { owner, read: row.read, dropped: row.dropped })
        };
        if let Some(fault) = &self.fault {
            self.check_fault(fault).map_err(|what| format!("fault: {what}"))?;
        }
        Ok(Trace {
            fault: self.fault,
            names: self.names,
            task_names: self.task_names,
            rank: self.rank.as_ref().map(|rank| rank.number),
            began_ns: self.rank.as_ref().map_or(0, |rank| rank.began_ns),
            run: self.run,
            instances: self.instances,
            kernels: self.kernels,
            edges: edges(&self.edges, tasks.len())?,
            lanes: self.lanes.iter().map(lane).collect::<Result<_, _>>()?,
            end_ns: self.end_ns,
            makespan_ns: self.makespan_ns,
            critical_path_ns: self.critical_path_ns,
            cores,
            tasks,
            parts,
        })
    }
}

/// The tasks that were skipped, by their numbers.
pub(crate) fn skipped(trace: &Trace) -> Vec<u32> {
    let tasks = (0_u32..).zip(&trace.tasks);
    tasks.filter(|(_, task)| task.at.skipped.is_some()).map(|(slot, _)| slot).collect()
}

/// Marks the tasks that were skipped.
fn skip(tasks: &mut [Task], skipped: &[u32]) -> Result<(), String> {
    let count = tasks.len();
    for slot in skipped {
        let task = tasks.get_mut(*slot as usize);
        let task = task.ok_or_else(|| format!("task {slot} is skipped, of {count}"))?;
        if task.at.completed.is_none() || task.span().is_some() {
            return Err(format!("task {slot} is skipped, and was not completed, or ran"));
        }
        task.at.skipped = task.at.completed;
    }
    Ok(())
}

fn edges(slots: &[u32], tasks: usize) -> Result<Vec<Edge>, String> {
    let (pairs, rest) = slots.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("an edge has a producer and no consumer".to_owned());
    }
    let edge = |&[producer, consumer]: &[u32; 2]| {
        if producer as usize >= tasks || consumer as usize >= tasks {
            return Err(format!("the edge {producer} -> {consumer} leaves the {tasks} tasks"));
        }
        Ok(Edge { producer, consumer })
    };
    pairs.iter().map(edge).collect()
}

fn lane_name(owner: TraceOwner) -> String {
    match owner {
        TraceOwner::Instance(index) => format!("aicpu {index}"),
        TraceOwner::Core(index) => format!("core {index}"),
    }
}

fn lane_owner(name: &str) -> Option<TraceOwner> {
    let (owner, index) = name.split_once(' ')?;
    match (owner, index.parse().ok()?) {
        ("aicpu", index) => Some(TraceOwner::Instance(index)),
        ("core", index) => Some(TraceOwner::Core(index)),
        _ => None,
    }
}

pub(crate) fn row(task: &Task) -> TaskRow {
    let number =
        |known: Option<u64>| known.and_then(|at| i64::try_from(at).ok()).unwrap_or(UNKNOWN);
    let at = &task.at;
    [
        task.func_id.into(),
        task.kind.get().into(),
        number(task.core.map(u64::from)),
        number(task.scheduler.map(u64::from)),
        number(at.added),
        number(at.published),
        number(at.ready),
        number(at.dispatched),
        number(at.started),
        number(at.finished),
        number(at.completed),
    ]
}

pub(crate) fn part_row(part: &BlockPart) -> PartRow {
    (part.task, part.block, part.lane, row(&part.run))
}

impl Section {
    /// What every row refers to: instances, cores, and a length of time that can be summed over them.
    fn check_sizes(&self) -> Result<(), String> {
        match &self.names {
            Some(names) => self.check_names(names)?,
            None => self.check_machine()?,
        }
        let lengths = [
            ("end_ns", self.end_ns),
            ("makespan_ns", self.makespan_ns.unwrap_or(0)),
            ("critical_path_ns", self.critical_path_ns.unwrap_or(0)),
            ("rank.began_ns", self.rank.as_ref().map_or(0, |rank| rank.began_ns)),
        ];
        if let Some((name, length)) = lengths.into_iter().find(|(_, length)| *length > MOST_NS) {
            return Err(format!("{name} is {length}; a run has at most {MOST_NS}"));
        }
        Ok(())
    }

    /// There are as many instances and cores as a device can have.
    fn check_machine(&self) -> Result<(), String> {
        let most = MAX_AICPU_INSTANCES;
        if self.instances == 0 || self.instances as usize > most {
            return Err(format!("{} AICPU instances; there are 1 to {most}", self.instances));
        }
        if self.cores.is_empty() || self.cores.len() > MAX_WORKERS {
            return Err(format!("{} cores; there are 1 to {MAX_WORKERS}", self.cores.len()));
        }
        Ok(())
    }

    /// Every row that is no core has a name, and so has every kind; nothing schedules them.
    fn check_names(&self, names: &RowNames) -> Result<(), String> {
        let rows = self.cores.len();
        if rows == 0 || rows > MAX_ROWS {
            return Err(format!("{rows} rows; there are 1 to {MAX_ROWS}"));
        }
        if names.rows.len() != rows || names.kinds.len() != CoreKind::ALL.len() {
            let (named, kinds) = (names.rows.len(), names.kinds.len());
            return Err(format!("{named} names of {rows} rows, and {kinds} names of kinds"));
        }
        if self.instances != 0 {
            return Err(format!(
                "{} AICPU instances together with rows with names",
                self.instances
            ));
        }
        Ok(())
    }

    /// The objects that a fault names exist.
    fn check_fault(&self, fault: &EndFault) -> Result<(), String> {
        let EndFault { core, task, instance, .. } = *fault;
        let instances = self.instances as usize;
        index(core.map_or(UNKNOWN, i64::from), "core", self.cores.len())?;
        index(task.map_or(UNKNOWN, i64::from), "task", self.tasks.len())?;
        index(instance.map_or(UNKNOWN, i64::from), "AICPU instance", instances)?;
        Ok(())
    }

    fn task_of(&self, row: &TaskRow) -> Result<Task, String> {
        let [func_id, kind, core, scheduler, moments @ ..] = *row;
        let func_id = u16::try_from(func_id).map_err(|_| format!("{func_id} is no func id"))?;
        let kind = u8::try_from(kind).ok().and_then(|kind| CoreKind::try_from(kind).ok());
        let mut at = [None; 7];
        for (at, moment) in at.iter_mut().zip(moments) {
            *at = self.moment(moment)?;
        }
        let [added, published, ready, dispatched, started, finished, completed] = at;
        if started.zip(finished).is_some_and(|(started, finished)| finished < started) {
            return Err("it is finished before it is started".to_owned());
        }
        let skipped = None;
        Ok(Task {
            func_id,
            kind: kind.ok_or("an unknown core kind")?,
            core: index(core, "core", self.cores.len())?,
            scheduler: index(scheduler, "AICPU instance", self.instances as usize)?,
            at: Moments {
                added,
                published,
                ready,
                dispatched,
                started,
                finished,
                completed,
                skipped,
            },
        })
    }

    /// A moment of the run; -1: it is not known.
    fn moment(&self, moment: i64) -> Result<Option<u64>, String> {
        match u64::try_from(moment) {
            Ok(at) if at <= self.end_ns => Ok(Some(at)),
            Err(_) if moment == UNKNOWN => Ok(None),
            _ => Err(format!("{moment} ns is not between 0 and end_ns, {}", self.end_ns)),
        }
    }
}

/// Checks an index below `of`; -1: it is not known.
fn index(number: i64, what: &str, of: usize) -> Result<Option<u32>, String> {
    match u32::try_from(number) {
        Ok(index) if (index as usize) < of => Ok(Some(index)),
        Err(_) if number == UNKNOWN => Ok(None),
        _ => Err(format!("{what} {number} of {of}")),
    }
}

/// Writes a trace.
///
/// # Errors
/// Those of the writer.
pub fn write(trace: &Trace, to: &mut impl Write) -> io::Result<()> {
    to.write_all(b"{\"displayTimeUnit\":\"ns\",\n\"pto\":")?;
    serde_json::to_writer(&mut *to, &Section::of(trace))?;
    to.write_all(b",\n\"traceEvents\":[\n")?;
    let mut events = Events { to, first: true };
    events.names(trace)?;
    events.tasks(trace)?;
    events.flows(trace)?;
    events.counters(trace)?;
    to.write_all(b"\n]}\n")
}

/// Process ids of the viewer's groups: the instances, then a group for each core kind, then the counters.
const AICPU_GROUP: usize = 0;
const COUNTER_GROUP: usize = 1 + CoreKind::ALL.len();

fn group_of(kind: CoreKind) -> usize {
    1 + kind.index()
}

/// Microseconds with three decimals, as viewers want them.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// What of each task starts first, and what ends last: the task itself, or a part of it.
struct Ends<'t>(Vec<Option<(&'t Task, &'t Task)>>);

impl<'t> Ends<'t> {
    fn of(trace: &'t Trace) -> Self {
        let mut ends = vec![None; trace.tasks.len()];
        for CoreRun { task, run, .. } in trace.runs() {
            let Some(known) = ends.get_mut(task as usize) else { continue };
            let (first, last) = known.unwrap_or((run, run));
            let starts_first = run.at.started.is_some_and(|at| Some(at) < first.at.started);
            let first = if starts_first { run } else { first };
            let last = if run.at.finished > last.at.finished { run } else { last };
            *known = Some((first, last));
        }
        Self(ends)
    }

    fn first(&self, slot: u32) -> Option<&'t Task> {
        self.0.get(slot as usize).copied().flatten().map(|(first, _)| first)
    }

    fn last(&self, slot: u32) -> Option<&'t Task> {
        self.0.get(slot as usize).copied().flatten().map(|(_, last)| last)
    }
}

struct Events<'w, W> {
    to: &'w mut W,
    first: bool,
}

impl<W: Write> Events<'_, W> {
    fn event(&mut self, body: std::fmt::Arguments<'_>) -> io::Result<()> {
        let separator = if std::mem::take(&mut self.first) { "" } else { ",\n" };
        write!(self.to, "{separator}{{{body}}}")
    }

    fn names(&mut self, trace: &Trace) -> io::Result<()> {
        let groups = ["AICPU".to_owned()].into_iter();
        let kinds = CoreKind::ALL.iter().map(|kind| match &trace.names {
            Some(_) => trace.kind_name(*kind),
            None => kind.name().to_uppercase(),
        });
        let counters = ["counters".to_owned()];
        for (pid, name) in groups.chain(kinds).chain(counters).enumerate() {
            let name = serde_json::Value::from(name);
            self.event(format_args!(
                r#""ph":"M","pid":{pid},"name":"process_name","args":{{"name":{name}}}"#
            ))?;
        }
        for instance in 0..trace.instances {
            self.lane(AICPU_GROUP, instance, &format!("aicpu {instance}"))?;
        }
        for (core, kind) in (0_u32..).zip(&trace.cores) {
            self.lane(group_of(*kind), core, &trace.core_name(core))?;
        }
        Ok(())
    }

    fn lane(&mut self, pid: usize, tid: u32, name: &str) -> io::Result<()> {
        let name = serde_json::Value::from(name);
        self.event(format_args!(
            r#""ph":"M","pid":{pid},"tid":{tid},"name":"thread_name","args":{{"name":{name}}}"#
        ))?;
        self.event(format_args!(
            r#""ph":"M","pid":{pid},"tid":{tid},"name":"thread_sort_index","args":{{"sort_index":{tid}}}"#
        ))
    }

    fn tasks(&mut self, trace: &Trace) -> io::Result<()> {
        let quoted = |name: &str| serde_json::Value::from(name).to_string();
        let kernels: BTreeMap<u16, String> =
            trace.kernels.iter().map(|(func, name)| (*func, quoted(name))).collect();
        for CoreRun { task: slot, part, run } in trace.runs() {
            let kernel = kernels.get(&run.func_id).map_or("\"?\"", String::as_str);
            let named = trace.task_name(slot).map(|task| {
                let names = format!(r#","name":{},"kernel":{kernel}"#, quoted(task));
                (quoted(&trace.called(slot, run.func_id)), names)
            });
            let (name, names) = named.as_ref().map_or((kernel, ""), |(name, names)| (name, names));
            let (Some((start, end)), Some(core)) = (run.span(), run.core) else { continue };
            let (pid, ts, dur) = (group_of(run.kind), Micros(start), Micros(end - start));
            let wait = start.saturating_sub(run.at.ready.unwrap_or(start));
            let block = part.map_or_else(String::new, |part| format!(r#","block":{}"#, part.block));
            self.event(format_args!(
                r#""ph":"X","pid":{pid},"tid":{core},"ts":{ts},"dur":{dur},"name":{name},"args":{{"task":{slot}{block}{names},"wait_ns":{wait}}}"#
            ))?;
        }
        for (slot, task) in (0_u32..).zip(&trace.tasks) {
            self.moment(slot, 0, "add", task.at.added)?;
            let scheduler = task.scheduler.unwrap_or(0);
            self.moment(slot, scheduler, "dispatch", task.at.dispatched)?;
            let end = if task.at.skipped.is_some() { "skip" } else { "complete" };
            self.moment(slot, scheduler, end, task.at.completed)?;
        }
        Ok(())
    }

    fn moment(&mut self, slot: u32, tid: u32, what: &str, at: Option<u64>) -> io::Result<()> {
        let Some(at) = at else { return Ok(()) };
        let ts = Micros(at);
        self.event(format_args!(
            r#""ph":"i","s":"t","pid":{AICPU_GROUP},"tid":{tid},"ts":{ts},"name":"{what} {slot}""#
        ))
    }

    /// What `pto view` draws above the lanes.
    fn counters(&mut self, trace: &Trace) -> io::Result<()> {
        for Counter { name, unit, steps } in counters(trace) {
            for (at, value) in steps {
                let ts = Micros(at);
                self.event(format_args!(
                    r#""ph":"C","pid":{COUNTER_GROUP},"ts":{ts},"name":"{name}","args":{{"{unit}":{value}}}"#
                ))?;
            }
        }
        Ok(())
    }

    /// An arrow from the end of each producer to the start of its consumer, or into a consumer that began before that end: a wait of a stream.
    fn flows(&mut self, trace: &Trace) -> io::Result<()> {
        // Of a task with parts: the one that starts first, and the one that ends last.
        let ends = Ends::of(trace);
        for (id, edge) in trace.edges.iter().enumerate() {
            let ends = ends.last(edge.producer).zip(ends.first(edge.consumer));
            let Some((producer, consumer)) = ends else { continue };
            let spans = producer.span().zip(consumer.span());
            let (Some((from, to)), Some(out), Some(into)) = (spans, producer.core, consumer.core)
            else {
                continue;
            };
            // An arrow binds to the slice around its time: the last nanosecond still is.
            let last = |(start, end): (u64, u64)| start.max(end.saturating_sub(1));
            let ends = to.0.max(from.1).min(last(to));
            // Where the consumer ended first, the arrow leaves the producer before that; viewers show none that goes back.
            let begins = last(from).min(ends);
            if begins < from.0 {
                continue;
            }
            let (pid, ts) = (group_of(producer.kind), Micros(begins));
            self.event(format_args!(
                r#""ph":"s","id":{id},"pid":{pid},"tid":{out},"ts":{ts},"name":"edge","cat":"edge""#
            ))?;
            let (pid, ts) = (group_of(consumer.kind), Micros(ends));
            self.event(format_args!(
                r#""ph":"f","bp":"e","id":{id},"pid":{pid},"tid":{into},"ts":{ts},"name":"edge","cat":"edge""#
            ))?;
        }
        Ok(())
    }
}
