//! Trace rings: how large they are, what they hold after a run, and who reads those whose writers wait.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::timeline::{Collector, EndFault, Trace};
use pto_abi::arena::{Arena, Capacities};
use pto_abi::runtime::{Epitaph, NOBODY, region};
use pto_abi::stream::BlockLine;
use pto_abi::sync::Ordering;
use pto_abi::task::{SHAPED, Task};
use pto_abi::trace::{
    MAX_RING_EVENTS, TraceCapacities, TraceHeader, TraceLane, TraceOwner, TracePoint, WhenFull,
};
use pto_abi::{CoreKind, Fault, TaskId};

use crate::options::RunOptions;
use crate::trace_options::TraceOptions;

/// Events of a task in the ring of one instance, at most: added, published, ready, dispatched, completed.
const INSTANCE_EVENTS_A_TASK: u64 = 5;
/// Events of a task in the ring of its core.
const CORE_EVENTS_A_TASK: u64 = 2;
/// Unless the tasks are spread worse than this, no core's ring runs over.
const UNEVEN: u64 = 8;
const FEW_CORE_EVENTS: u64 = 4096;
/// Events of a ring that the host reads while the run lasts.
const WAITING_EVENTS: u32 = 16_384;
/// How long the reader sleeps when it has found nothing: a ring fills in about a millisecond at most.
const READ_EVERY: Duration = Duration::from_micros(200);

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
    let waits = trace.when_full == WhenFull::Wait;
    let fits = |events: u64| match u32::try_from(events).unwrap_or(u32::MAX).min(MAX_RING_EVENTS) {
        events if waits => events.min(WAITING_EVENTS),
        events => events,
    };
    TraceCapacities {
        instances: options.aicpu_instances,
        instance_events: trace
            .instance_events
            .unwrap_or(fits(INSTANCE_EVENTS_A_TASK * tasks + capacities.edges)),
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        core_events: trace.core_events.unwrap_or(fits(share.max(FEW_CORE_EVENTS).min(most))),
    }
}

/// One ring, and what was read of it while it was written.
pub(crate) struct Ring {
    lane: TraceLane<'static>,
    owner: TraceOwner,
    events: Vec<(TracePoint, u8)>,
    /// The number of entries that were read and were not events.
    wrong: u64,
}

/// The rings of an arena; none, if the run is not recorded.
fn lanes(arena: &Arena<'static>, when_full: WhenFull) -> Vec<Ring> {
    let at = arena.regions()[region::TRACE];
    let Some(header) = arena.trace_header(at) else { return Vec::new() };
    let ring = |owner| {
        let lane = arena.trace_lane(at, owner, when_full)?;
        Some(Ring { lane, owner, events: Vec::new(), wrong: 0 })
    };
    owners(&header).filter_map(ring).collect()
}

/// Calls `run`; where the writers of full rings wait, a thread reads them meanwhile. Returns what it has read; after a run
/// whose rings drop events, that is for [`timeline`] to do.
///
/// # Errors
/// The thread cannot be started; `run` was not called.
pub(crate) fn read_while<R>(
    arena: &Arena<'static>,
    trace: Option<TraceOptions>,
    run: impl FnOnce() -> R,
) -> io::Result<(R, Vec<Ring>)> {
    let when_full = trace.map(|trace| trace.when_full);
    let Some(when_full) = when_full.filter(|when_full| *when_full == WhenFull::Wait) else {
        return Ok((run(), Vec::new()));
    };
    let rings = lanes(arena, when_full);
    let (running, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("pto-trace".to_owned());
        let reader = named.spawn_scoped(scope, move || read_until(&ended, rings))?;
        let result = run();
        drop(running);
        match reader.join() {
            Ok(rings) => Ok((result, rings)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Reads until the run has ended. Events after the last look are still in the rings.
fn read_until(ended: &Receiver<()>, mut rings: Vec<Ring>) -> Vec<Ring> {
    let mut pause = Duration::ZERO;
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let read: u64 = rings.iter_mut().map(Ring::read).sum();
        pause = if read > 0 { Duration::ZERO } else { READ_EVERY };
    }
    rings
}

impl Ring {
    fn read(&mut self) -> u64 {
        let Self { lane, events, .. } = self;
        let (read, wrong) = lane.read_new(|event, lap| events.push((event, lap)));
        self.wrong += wrong;
        read
    }

    /// Hands every event to `each`, the oldest first: those that were read while the ring was written, and those that are still in it, without a
    /// copy. Returns how many there were, and how many are missing.
    fn each(&self, mut each: impl FnMut(TracePoint, u8)) -> (u64, u64) {
        self.events.iter().for_each(|(event, lap)| each(*event, *lap));
        let mut read = self.events.len() as u64;
        let missing = self.lane.read_all(|event, lap| {
            read += 1;
            each(event, lap);
        });
        (read, self.wrong + missing)
    }
}

/// What the drain of the rings needs in addition to them.
pub(crate) struct TraceContext<'a> {
    pub(crate) cores: Vec<CoreKind>,
    pub(crate) kernels: &'a BTreeMap<u16, String>,
    pub(crate) run: BTreeMap<String, String>,
    /// What ended the run, if it did not end well.
    pub(crate) fault: Option<(Fault, Option<&'a Epitaph>)>,
}

/// The timeline of a run that has ended, of whose rings `read` was read while it lasted; `None`: it was not traced.
pub(crate) fn timeline(
    arena: &Arena<'static>,
    read: Vec<Ring>,
    known: TraceContext<'_>,
) -> Option<Trace> {
    let header = arena.trace_header(arena.regions()[region::TRACE])?;
    let TraceContext { cores, kernels, mut run, fault } = known;
    let mut rings = read;
    if rings.is_empty() {
        // They were not read during the run. The treatment of full rings no longer matters.
        rings = lanes(arena, WhenFull::default());
    }
    let mut collector = Collector::new(cores, header.instances);
    let tasks = arena.tasks(arena.regions()[region::TASKS]).unwrap_or(&[]);
    let added: u64 = arena.instances().iter().map(|line| line.added.load(Ordering::Relaxed)).sum();
    if added <= tasks.len() as u64 {
        let lines = arena.block_lines(arena.regions()[region::STREAM]).unwrap_or(&[]);
        let tasks = tasks.iter().take(usize::try_from(added).unwrap_or(0));
        collector.expect(tasks.len());
        add_tasks(tasks, lines.iter(), &mut collector);
    } else {
        // Slots were used again: only the rings know the tasks.
        for ring in &rings {
            ring.each(|event, lap| collector.reused(&event, lap));
        }
        let known = collector.tasks();
        if (known as u64) < added {
            run.insert("recorded".to_owned(), format!("{known} of {added} tasks"));
        }
    }
    for ring in rings {
        let (read, missing) = ring.each(|event, lap| collector.event(ring.owner, event, lap));
        collector.lane(ring.owner, read, missing);
    }
    if let Some((fault, epitaph)) = fault {
        let time_ns = epitaph.map(|epitaph| epitaph.time_ns);
        collector.fault(end_of(fault, epitaph, &collector), time_ns);
    }
    Some(collector.finish(kernels, run))
}

/// The fault, with what its epitaph names.
fn end_of(fault: Fault, epitaph: Option<&Epitaph>, collector: &Collector) -> EndFault {
    let named = |number: u32| (number != NOBODY).then_some(number);
    let task = epitaph.filter(|epitaph| epitaph.task != TaskId::NONE);
    let entry = fault.entry();
    EndFault {
        code: fault.code(),
        name: fault.name().to_owned(),
        sentence: entry.map_or("", |entry| entry.sentence).to_owned(),
        remedy: entry.map_or("", |entry| entry.remedy).to_owned(),
        core: epitaph.and_then(|epitaph| named(epitaph.core)),
        task: task.and_then(|epitaph| collector.number_of(epitaph.task, epitaph.time_ns)),
        instance: epitaph.and_then(|epitaph| named(epitaph.instance)),
    }
}

fn owners(header: &TraceHeader) -> impl Iterator<Item = TraceOwner> {
    let instances = (0..header.instances).map(TraceOwner::Instance);
    instances.chain((0..header.cores).map(TraceOwner::Core))
}

/// Func id and kind are in the tasks' own lines, kernels of parts in their block lines.
fn add_tasks<'t>(
    tasks: impl Iterator<Item = &'t Task>,
    mut lines: impl Iterator<Item = &'t BlockLine>,
    collector: &mut Collector,
) {
    for task in tasks {
        let kind = task.kind.load(Ordering::Relaxed);
        let core_kind = CoreKind::ALL[usize::from(kind & 1)];
        collector.task(task.func_id.load(Ordering::Relaxed), core_kind);
        if let Some(line) = lines.next().filter(|_| kind & SHAPED != 0) {
            let lanes = line.flags.load(Ordering::Relaxed);
            let func_ids = line.func_ids.each_ref().map(|id| id.load(Ordering::Relaxed));
            collector.shape(core::array::from_fn(|lane| {
                let func_id = u16::try_from(func_ids[lane]).ok()?;
                (lanes >> lane & 1 == 1).then_some(func_id)
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rings;
    use crate::Capacities;
    use crate::options::RunOptions;
    use crate::trace_options::TraceOptions;
    use pto_abi::trace::{TraceCapacities, WhenFull};

    #[test]
    fn rings_hold_what_a_run_can_cause() {
        let capacities = Capacities { tasks: 100_000, edges: 250_000, ..Capacities::default() };
        let with = |trace| RunOptions { aicpu_instances: 4, trace, ..RunOptions::default() };
        assert_eq!(rings(&with(None), &capacities, 72), TraceCapacities::OFF);
        let fitted = rings(&with(Some(TraceOptions::default())), &capacities, 72);
        assert_eq!((fitted.instances, fitted.instance_events), (4, 750_000));
        assert_eq!((fitted.cores, fitted.core_events), (72, 22_222));
        let few = Capacities { tasks: 9, edges: 0, ..capacities };
        assert_eq!(rings(&with(Some(TraceOptions::default())), &few, 72).core_events, 18);
        let asked = TraceOptions { instance_events: Some(64), ..TraceOptions::default() };
        assert_eq!(rings(&with(Some(asked)), &capacities, 72).instance_events, 64);
        let waits = TraceOptions { when_full: WhenFull::Wait, ..TraceOptions::default() };
        let waiting = rings(&with(Some(waits)), &capacities, 72);
        assert_eq!((waiting.instance_events, waiting.core_events), (16_384, 16_384));
        assert_eq!(rings(&with(Some(waits)), &few, 72).core_events, 18);
    }
}
