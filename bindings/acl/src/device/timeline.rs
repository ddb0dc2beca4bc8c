//! A record as a timeline that `pto view` shows: a row for each thread of the host, its ranges, and each stream.

use std::collections::BTreeMap;
use std::path::Path;

use pto_host::abi::CoreKind;
use pto_host::timeline::{Edge, Moments, RowNames, Task, Trace, file};
use pto_host::whole_file::write_whole;

use super::profile::Record;
use super::settings::settings;
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::spans::{self, CallSpans, ThreadSpan};

/// Rows of the host and rows of devices: a timeline has two kinds.
const HOST: CoreKind = CoreKind::AIC;
const DEVICE: CoreKind = CoreKind::AIV;
/// What a timeline calls commands for whose names there is no more room.
const OTHERS: &str = "others";

/// Writes a record, and the calls of the host, to a file. `asked` says what was asked for that is not recorded.
pub(crate) fn write(path: &Path, record: &Record, asked: &str) -> Answer {
    let trace = trace(record, &spans::take(), asked);
    let rows = trace.cores.len();
    require(rows <= file::MAX_ROWS, || {
        let most = file::MAX_ROWS;
        refused(path, &format!("{rows} streams and threads, and a timeline has {most} rows"))
    })?;
    write_whole(path, |to| file::write(&trace, to))
        .map_err(|error| refused(path, &error.to_string()))
}

fn refused(path: &Path, why: &str) -> Refusal {
    let text = format!("the timeline {} cannot be written: {why}", path.display());
    Refusal::new(codes::WRITE_FILE, text)
}

/// A timeline that is put together.
struct Draft {
    trace: Trace,
    rows: Vec<String>,
    funcs: BTreeMap<String, u16>,
}

fn trace(record: &Record, calls: &CallSpans, asked: &str) -> Trace {
    let names = RowNames { kinds: vec!["host".to_owned(), "stream".to_owned()], rows: Vec::new() };
    let trace = Trace { names: Some(names), ..Trace::default() };
    let mut draft = Draft { trace, rows: Vec::new(), funcs: BTreeMap::new() };
    draft.say(record, calls, asked);
    draft.commands(record);
    // In virtual time, the calls of the host have no time.
    if settings().seed.is_none() {
        draft.spans(&calls.spans, "calls");
    }
    draft.spans(&record.ranges, "ranges");
    draft.end()
}

impl Draft {
    fn say(&mut self, record: &Record, calls: &CallSpans, asked: &str) {
        let program = std::env::current_exe().unwrap_or_default();
        let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let time = settings().seed.map(|seed| format!("virtual, seed {seed}"));
        let lost = record.lost + calls.lost;
        let facts = [
            ("program", Some(program)),
            ("time", time),
            ("lost", (lost > 0).then(|| format!("{lost} commands, calls and ranges had no room"))),
            ("not recorded", (!asked.is_empty()).then(|| asked.to_owned())),
        ];
        let facts = facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?)));
        self.trace.run.extend(facts);
    }

    fn row(&mut self, name: String, kind: CoreKind) -> u32 {
        self.rows.push(name);
        self.trace.cores.push(kind);
        u32::try_from(self.rows.len() - 1).unwrap_or(u32::MAX)
    }

    /// The number of a name.
    fn func(&mut self, name: &str) -> u16 {
        if let Some(known) = self.funcs.get(name) {
            return *known;
        }
        let next = u16::try_from(self.funcs.len()).ok().filter(|next| *next < u16::MAX);
        let (name, func) = next.map_or((OTHERS, u16::MAX), |next| (name, next));
        self.funcs.insert(name.to_owned(), func);
        self.trace.kernels.insert(func, name.to_owned());
        func
    }

    fn commands(&mut self, record: &Record) {
        let titles =
            record.rows.iter().map(|(device, title, _)| format!("device {device} {title}"));
        let titles: Vec<String> = titles.collect();
        let rows: Vec<u32> = titles.into_iter().map(|title| self.row(title, DEVICE)).collect();
        for step in &record.steps {
            let func_id = self.func(&step.label);
            let core = rows.get(step.row).copied();
            let (started, finished) = step.times.unzip();
            let added = settings().seed.is_none().then_some(step.submitted_ns);
            let at = Moments { added, started, finished, ..Moments::default() };
            self.trace.tasks.push(Task { func_id, kind: DEVICE, core, scheduler: None, at });
        }
        let edges = record.edges.iter();
        self.trace.edges = edges.map(|&(producer, consumer)| Edge { producer, consumer }).collect();
    }

    /// Spans of threads: those that overlap get rows of their own.
    fn spans(&mut self, spans: &[ThreadSpan], what: &str) {
        let mut spans: Vec<&ThreadSpan> = spans.iter().collect();
        spans.sort_by_key(|span| (span.thread, span.start_ns, std::cmp::Reverse(span.end_ns)));
        // Of the current thread: the rows, and until when each is taken.
        let (mut thread, mut rows): (u32, Vec<(u32, u64)>) = (0, Vec::new());
        for span in spans {
            if span.thread != thread {
                (thread, rows) = (span.thread, Vec::new());
            }
            let free = rows.iter().position(|(_, until)| *until <= span.start_ns);
            let row = free.unwrap_or_else(|| {
                let nested =
                    if rows.is_empty() { String::new() } else { format!(" {}", rows.len() + 1) };
                let row = self.row(format!("thread {thread} {what}{nested}"), HOST);
                rows.push((row, 0));
                rows.len() - 1
            });
            rows[row].1 = span.end_ns;
            let (func_id, core) = (self.func(&span.what), Some(rows[row].0));
            let (started, finished) = (Some(span.start_ns), Some(span.end_ns));
            let at = Moments { started, finished, ..Moments::default() };
            self.trace.tasks.push(Task { func_id, kind: HOST, core, scheduler: None, at });
        }
    }

    /// The timeline, with its first moment as 0. One without anything has one empty row.
    fn end(mut self) -> Trace {
        if self.rows.is_empty() {
            self.row("nothing was recorded".to_owned(), HOST);
        }
        let tasks = &mut self.trace.tasks;
        let first = tasks.iter_mut().flat_map(moments).map(|at| *at).min().unwrap_or(0);
        tasks.iter_mut().flat_map(moments).for_each(|at| *at -= first);
        self.trace.end_ns = tasks.iter_mut().flat_map(moments).map(|at| *at).max().unwrap_or(0);
        if let Some(names) = &mut self.trace.names {
            names.rows = self.rows;
        }
        self.trace
    }
}

/// What is known of when things happened to a task.
fn moments(task: &mut Task) -> Vec<&mut u64> {
    let at = &mut task.at;
    [&mut at.added, &mut at.started, &mut at.finished].into_iter().flatten().collect()
}
