//! The record of what streams and threads do, for `aclprof*` and for `PTO_ACL_TRACE`.
//!
//! ```text
//! a command of a stream:  begin -> event before it   the command   event after it -> end
//! ```
//! The two events have the times of the stream, which are those of virtual time there. A command that waits for an event or a notify
//! has an edge from the command that recorded it. A command that records is over before it does so: its second event comes before
//! the record, because a stream that waits for it may go on before this one comes to a later event. `timeline.rs` makes a timeline of all that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pto_host::session::{Event as Point, Stream};

use super::open::Open;
use super::settings::settings;
use crate::common::refusal::Answer;
use crate::common::spans::{self, ThreadSpan};
use crate::common::thread;
use crate::common::watch::{self, Watcher};

/// The kinds of things that are recorded, as bits.
pub(crate) const CALLS: u32 = 1;
pub(crate) const COMMANDS: u32 = 2;
pub(crate) const RANGES: u32 = 4;
/// Commands and ranges that are kept, at most.
const MOST: usize = 1 << 20;
/// Commands between two looks at what is over.
const LOOK_EVERY: usize = 1024;

static RECORDED: AtomicU32 = AtomicU32::new(0);

/// Where a command is submitted: the device, the stream of the session, and what timelines call it.
#[derive(Clone, Copy)]
pub(crate) struct StreamRef<'a> {
    pub(crate) open: &'a Open,
    pub(crate) stream: &'a Stream,
    pub(crate) title: &'a str,
}

/// A command that is being submitted: its number, and the one that the thread was submitting before it.
pub(crate) struct Begun {
    number: u32,
    outer: Option<u32>,
}

/// A command of a stream.
pub(crate) struct Step {
    pub(crate) label: String,
    /// The index of its stream in `Record::rows`.
    pub(crate) row: usize,
    pub(crate) submitted_ns: u64,
    /// When its turn came, and when it was over.
    pub(crate) times: Option<(u64, u64)>,
    points: Option<(Point, Option<Point>)>,
}

/// The record.
#[derive(Default)]
pub(crate) struct Record {
    /// The streams: device, title, and how much later the clock of the device started than that of the host.
    pub(crate) rows: Vec<(i32, String, u64)>,
    pub(crate) steps: Vec<Step>,
    /// The number of a command, and of one that waits for it.
    pub(crate) edges: Vec<(u32, u32)>,
    /// Ranges and marks of the program.
    pub(crate) ranges: Vec<ThreadSpan>,
    /// Commands and ranges that had no room.
    pub(crate) lost: u64,
    signals: BTreeMap<usize, u32>,
    /// The devices that are recorded; `None`: all.
    devices: Option<BTreeSet<i32>>,
    /// Commands before this one have their times.
    known: usize,
}

static RECORD: Mutex<Option<Record>> = Mutex::new(None);

fn record() -> MutexGuard<'static, Option<Record>> {
    RECORD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether commands are recorded.
#[inline]
pub(crate) fn is_on() -> bool {
    has(COMMANDS)
}

/// Whether this is recorded.
#[inline]
pub(crate) fn has(what: u32) -> bool {
    // Relaxed: a command that is submitted at the moment of the change may be recorded or not.
    RECORDED.load(Ordering::Relaxed) & what != 0
}

/// From now on this is recorded, of these devices in addition to those that are recorded already; `None`: of all.
pub(crate) fn start(what: u32, devices: Option<&[i32]>) {
    let mut record = record();
    let is_new = record.is_none();
    let record = record.get_or_insert_with(Record::default);
    record.devices = match (devices, record.devices.take()) {
        (Some(devices), None) if is_new => Some(devices.iter().copied().collect()),
        (Some(devices), Some(known)) => Some(known.into_iter().chain(devices.to_vec()).collect()),
        _ => None,
    };
    // Relaxed: as for `has`.
    RECORDED.fetch_or(what, Ordering::Relaxed);
    if what & CALLS != 0 {
        watch::add(Watcher::Times);
    }
}

/// From now on only this is recorded.
pub(crate) fn keep_recording(what: u32) {
    // Relaxed: as for `has`.
    RECORDED.store(what, Ordering::Relaxed);
    if what & CALLS == 0 {
        watch::remove(Watcher::Times);
    }
}

/// Ends the record, and gives it with the times that are known now.
pub(crate) fn take() -> Record {
    keep_recording(0);
    let mut record = record().take().unwrap_or_default();
    record.look();
    record
}

/// The time for marks of the host: that of the host, or in virtual time of the device that is furthest.
pub(crate) fn moment_ns(opened: impl Iterator<Item = std::sync::Arc<Open>>) -> u64 {
    if settings().seed.is_none() {
        return spans::now_ns();
    }
    let times = opened.map(|open| u64::try_from(open.session.now().as_nanos()).unwrap_or(0));
    times.max().unwrap_or(0)
}

/// A command is about to be submitted; `None`: it is not recorded.
pub(crate) fn begin(stream_ref: StreamRef<'_>, label: &str) -> Answer<Option<Begun>> {
    if !is_on() {
        return Ok(None);
    }
    let mut record = record();
    let Some(record) = record.as_mut().filter(|record| record.wants(stream_ref.open.index)) else {
        return Ok(None);
    };
    if record.steps.len() >= MOST {
        record.lost += 1;
        return Ok(None);
    }
    let before = stream_ref.open.session.event()?;
    stream_ref.stream.record(&before)?;
    let number = u32::try_from(record.steps.len()).unwrap_or(u32::MAX);
    let row = record.row(&stream_ref);
    let submitted_ns = if settings().seed.is_none() { spans::now_ns() } else { 0 };
    record.steps.push(Step {
        label: label.to_owned(),
        row,
        submitted_ns,
        times: None,
        points: Some((before, None)),
    });
    if record.steps.len().is_multiple_of(LOOK_EVERY) {
        record.look();
    }
    let outer = thread::with(|thread| thread.command.replace(number));
    Ok(Some(Begun { number, outer }))
}

/// The command was submitted.
pub(crate) fn end(stream_ref: StreamRef<'_>, begun: Begun) -> Answer {
    thread::with(|thread| thread.command = begun.outer);
    record().as_mut().map_or(Ok(()), |record| record.end(begun.number, stream_ref))
}

/// The command that this thread submits is about to record an event, or to raise a notify.
pub(crate) fn records(stream_ref: StreamRef<'_>, signal: usize) -> Answer {
    with_command(Ok(()), |record, command| {
        record.signals.insert(signal, command);
        record.end(command, stream_ref)
    })
}

/// The command that this thread submits waits for the last record.
pub(crate) fn waits(signal: usize) {
    with_command((), |record, command| {
        let from = record.signals.get(&signal).copied();
        record.edges.extend(from.map(|from| (from, command)));
    });
}

/// What `act` says of the command that this thread submits; `otherwise` where none is recorded.
fn with_command<T>(otherwise: T, act: impl FnOnce(&mut Record, u32) -> T) -> T {
    if !is_on() {
        return otherwise;
    }
    let command = thread::with(|thread| thread.command);
    match (record().as_mut(), command) {
        (Some(record), Some(command)) => act(record, command),
        _ => otherwise,
    }
}

/// The program ends a range, or sets a mark.
pub(crate) fn range(span: ThreadSpan) {
    if let Some(record) = record().as_mut().filter(|_| has(RANGES)) {
        if record.ranges.len() < MOST {
            record.ranges.push(span);
        } else {
            record.lost += 1;
        }
    }
}

impl Record {
    fn wants(&self, device: i32) -> bool {
        self.devices.as_ref().is_none_or(|devices| devices.contains(&device))
    }

    fn row(&mut self, stream_ref: &StreamRef<'_>) -> usize {
        let is_it = |(device, title, _): &(i32, String, u64)| {
            *device == stream_ref.open.index && title == stream_ref.title
        };
        if let Some(row) = self.rows.iter().position(is_it) {
            return row;
        }
        let lag_ns = if settings().seed.is_none() { stream_ref.open.opened_ns } else { 0 };
        self.rows.push((stream_ref.open.index, stream_ref.title.to_owned(), lag_ns));
        self.rows.len() - 1
    }

    /// A command is over where its stream is now, unless it was before.
    fn end(&mut self, command: u32, stream_ref: StreamRef<'_>) -> Answer {
        let points = self.steps.get_mut(command as usize).and_then(|step| step.points.as_mut());
        if let Some((_, last @ None)) = points {
            let after = stream_ref.open.session.event()?;
            stream_ref.stream.record(&after)?;
            *last = Some(after);
        }
        Ok(())
    }

    /// Takes over the times of the commands that are over.
    fn look(&mut self) {
        let mut all_known = true;
        for number in self.known..self.steps.len() {
            let step = &mut self.steps[number];
            let lag_ns = self.rows.get(step.row).map_or(0, |row| row.2);
            all_known &= step.look(lag_ns);
            if all_known {
                self.known = number + 1;
            }
        }
    }
}

impl Step {
    /// Takes over its times; whether nothing more will be known of it.
    fn look(&mut self, lag_ns: u64) -> bool {
        let Some((before, Some(after))) = &self.points else { return self.points.is_none() };
        if !after.is_complete() {
            return false;
        }
        let time_ns = |point: &Point| u64::try_from(point.time()?.as_nanos()).ok();
        let times = time_ns(before).zip(time_ns(after));
        self.times = times.map(|(start, end)| (start + lag_ns, end.max(start) + lag_ns));
        self.points = None;
        true
    }
}
