//! From the events of the rings to a [`Trace`].
//!
//! A part of a task is known by the doorbell that it was given with. A core has one part of a task at a time, so that its own
//! events, and the scheduler's look at its end, belong to the last part that it was given before. Where slots were used
//! again, an event is of the task that had the slot in the event's lap ([`Laps`]).

use std::collections::{BTreeMap, HashMap};

use pto_abi::block::BlockContext;
use pto_abi::chain;
use pto_abi::stream::MAX_LANES;
use pto_abi::trace::{TraceKind, TraceOwner, TracePoint, lap_of};
use pto_abi::{CoreKind, TaskId};

use crate::timeline::laps::Laps;
use crate::timeline::model::{BlockPart, Edge, EndFault, Moments, RingCounts, Task, Trace};

/// The kernels of a task with parts: of the cube core, of the first and of the second vector core.
pub type LaneKernels = [Option<u16>; MAX_LANES];

/// Takes the events of all rings, one ring after the other; those of instances before those of cores.
#[derive(Debug)]
pub struct Collector {
    trace: Trace,
    /// `None`: a task is its slot.
    laps: Option<Laps>,
    shapes: HashMap<u32, LaneKernels>,
    /// The part that the next doorbell of this ring is for.
    next_part: Option<(u32, u32)>,
    /// The indices of the kernels of chains in the parts, by task and number.
    chains: BTreeMap<(u32, u32), usize>,
    /// The parts that each core was given of each task, in their order.
    given: HashMap<(u32, u32), Vec<usize>>,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Collector {
    /// A collector of a run on these cores.
    #[must_use]
    pub fn new(cores: Vec<CoreKind>, instances: u32) -> Self {
        let trace = Trace { cores, instances, ..Trace::default() };
        let (shapes, given, chains) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Self {
            trace,
            laps: None,
            shapes,
            next_part: None,
            chains,
            given,
            first_ns: None,
            last_ns: 0,
        }
    }

    /// Reserves room for this many further tasks.
    pub fn expect(&mut self, tasks: usize) {
        self.trace.tasks.reserve(tasks);
    }

    /// The next task, in the order of slots.
    pub fn task(&mut self, func_id: u16, kind: CoreKind) {
        let at = Moments::default();
        self.trace.tasks.push(Task { func_id, kind, core: None, scheduler: None, at });
    }

    /// The newest task has these kernels; without it, those that its events say.
    pub fn shape(&mut self, kernels: LaneKernels) {
        if let Some(slot) = self.trace.tasks.len().checked_sub(1) {
            self.shapes.insert(u32::try_from(slot).unwrap_or(u32::MAX), kernels);
        }
    }

    /// In a run that used slots again: the next task, if this event says that there is one; tasks are in the order in which they
    /// were added. For all events, before [`event`](Self::event) gets the first.
    pub fn reused(&mut self, event: &TracePoint, lap: u8) {
        let laps = self.laps.get_or_insert_default();
        if event.kind == TraceKind::ADDED {
            laps.add(event.task, lap, event.time_ns);
            let [func_low, func_high, kind, _] = event.extra.to_le_bytes();
            let kind = CoreKind::ALL[usize::from(kind & 1)];
            self.task(u16::from_le_bytes([func_low, func_high]), kind);
        }
    }

    /// How many tasks there are.
    #[must_use]
    pub const fn tasks(&self) -> usize {
        self.trace.tasks.len()
    }

    /// The event with the numbers of its tasks instead of their slots; `None`: it is of a task that is not known.
    fn numbered(&self, event: TracePoint, lap: u8) -> Option<TracePoint> {
        let Some(laps) = &self.laps else { return Some(event) };
        let task = laps.find(event.task, lap, event.time_ns)?;
        let extra = match event.kind {
            TraceKind::EDGE | TraceKind::EDGE_SATISFIED => laps.before(event.extra, task)?,
            _ => event.extra,
        };
        Some(TracePoint { task, extra, ..event })
    }

    /// An event of `owner`, of a slot in this lap. Events of tasks that [`task`](Self::task) was not called for are left out.
    pub fn event(&mut self, owner: TraceOwner, event: TracePoint, lap: u8) {
        let Some(event) = self.numbered(event, lap) else { return };
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
            TraceKind::PART => self.next_part = Some((event.task, event.extra)),
            TraceKind::LANE => {
                let [func_low, func_high, lane, _] = event.extra.to_le_bytes();
                let kernels = self.shapes.entry(event.task).or_default();
                if let Some(kernel) = kernels.get_mut(usize::from(lane)) {
                    *kernel = Some(u16::from_le_bytes([func_low, func_high]));
                }
            }
            TraceKind::DISPATCHED => {
                let part = self.next_part.take().filter(|(task, _)| *task == event.task);
                if let TraceOwner::Instance(instance) = owner {
                    task.scheduler = task.scheduler.or(Some(instance));
                }
                task.at.dispatched = earlier(task.at.dispatched, event.time_ns);
                task.core = Some(event.extra);
                if let Some((_, word)) = part {
                    self.dispatched_part(owner, &event, word);
                }
            }
            TraceKind::STARTED | TraceKind::FINISHED => {
                let TraceOwner::Core(core) = owner else { return };
                if event.kind == TraceKind::STARTED {
                    task.at.started = earlier(task.at.started, event.time_ns);
                    task.core = task.at.finished.map_or(Some(core), |_| task.core);
                } else if task.at.finished.is_none_or(|before| before <= event.time_ns) {
                    (task.at.finished, task.core) = (at, Some(core));
                }
                if let Some((number, func_id)) = chain::of_event(event.extra) {
                    self.chain_kernel(core, &event, number, func_id);
                } else if let Some(part) = self.part_at(core, &event) {
                    match event.kind {
                        TraceKind::STARTED => part.run.at.started = at,
                        _ => part.run.at.finished = at,
                    }
                }
            }
            TraceKind::COLLECTED => {
                if let Some(part) = self.part_at(event.extra, &event) {
                    part.run.at.completed = at;
                }
            }
            TraceKind::SKIPPED => {
                if let TraceOwner::Instance(instance) = owner {
                    task.scheduler = Some(instance);
                }
                (task.at.skipped, task.at.completed) = (at, at);
            }
            _ => task.at.completed = at,
        }
    }

    /// A core is given a part: the one that `word` says.
    fn dispatched_part(&mut self, owner: TraceOwner, event: &TracePoint, word: u32) {
        let Some(task) = self.trace.task(event.task) else { return };
        let BlockContext { block, lane, .. } = BlockContext::of(word.into());
        let core = event.extra;
        let kind = self.trace.cores.get(core as usize).copied().unwrap_or(task.kind);
        let lane_index = if kind == CoreKind::AIC { 0 } else { 1 + lane as usize };
        let kernels = self.shapes.get(&event.task);
        let func_id = kernels.and_then(|kernels| kernels.get(lane_index).copied().flatten());
        let scheduler = match owner {
            TraceOwner::Instance(instance) => Some(instance),
            TraceOwner::Core(_) => None,
        };
        let at = Moments { dispatched: Some(event.time_ns), ..Moments::default() };
        let func_id = func_id.unwrap_or(task.func_id);
        let run = Task { func_id, kind, core: Some(core), scheduler, at };
        self.given.entry((core, event.task)).or_default().push(self.trace.parts.len());
        self.trace.parts.push(BlockPart { task: event.task, block, lane, run });
    }

    /// A core has begun or ended a kernel of a chain, which is a part of its task: its number and its func id.
    fn chain_kernel(&mut self, core: u32, event: &TracePoint, number: u32, func_id: u16) {
        let at = Some(event.time_ns);
        let key = (event.task, number);
        if event.kind == TraceKind::STARTED {
            let kind = self.trace.cores.get(core as usize).copied().unwrap_or(CoreKind::AIC);
            let at = Moments { started: at, ..Moments::default() };
            let run = Task { func_id, kind, core: Some(core), scheduler: None, at };
            self.chains.insert(key, self.trace.parts.len());
            self.trace.parts.push(BlockPart { task: event.task, block: number, lane: 0, run });
        } else if let Some(part) =
            self.chains.get(&key).and_then(|at| self.trace.parts.get_mut(*at))
        {
            (part.run.at.finished, part.run.at.completed) = (at, at);
        }
    }

    /// Copies the moments of a chain as a whole to its kernels. The first one waits for the chain's doorbell; for the
    /// others the end of the kernel before them is both: the core has them already. The scheduler sees the end of the last one.
    fn complete_chains(&mut self) {
        // The task and the end of the kernel before.
        let (mut kernels, mut before) = (self.chains.iter().peekable(), None);
        while let Some((&(of, number), &part)) = kernels.next() {
            let is_last = kernels.peek().is_none_or(|((next, _), _)| *next != of);
            let (Some(task), Some(part)) =
                (self.trace.tasks.get(of as usize), self.trace.parts.get_mut(part))
            else {
                continue;
            };
            part.run.scheduler = task.scheduler;
            if number == 0 {
                part.run.at.dispatched = task.at.dispatched;
            } else {
                let ended = before.filter(|(task, _)| *task == of).and_then(|(_, ended)| ended);
                part.run.at.dispatched = ended.or(part.run.at.started);
                part.run.at.ready = part.run.at.dispatched;
            }
            before = Some((of, part.run.at.finished));
            if is_last && part.run.at.finished.is_some() {
                part.run.at.completed = task.at.completed;
            }
        }
    }

    /// The part of a task that a core had at the time of an event.
    fn part_at(&mut self, core: u32, event: &TracePoint) -> Option<&mut BlockPart> {
        let given = self.given.get(&(core, event.task))?;
        let parts = &mut self.trace.parts;
        let is_before = |at: &usize| parts[*at].run.at.dispatched <= Some(event.time_ns);
        // Before the first one: clocks differ by less than a look at one takes.
        let number = given.partition_point(is_before).max(1) - 1;
        parts.get_mut(*given.get(number)?)
    }

    /// The ring of `owner` has been read.
    pub fn lane(&mut self, owner: TraceOwner, read: u64, dropped: u64) {
        self.trace.lanes.push(RingCounts { owner, read, dropped });
        self.next_part = None;
    }

    /// The number of the task that had a slot in this generation, at about this time.
    #[must_use]
    pub fn number_of(&self, id: TaskId, time_ns: u64) -> Option<u32> {
        match &self.laps {
            None => Some(id.slot).filter(|slot| (*slot as usize) < self.trace.tasks.len()),
            Some(laps) => laps.find(id.slot, lap_of(id.generation), time_ns),
        }
    }

    /// The run ended with this fault, at this time if that is known.
    pub fn fault(&mut self, fault: EndFault, time_ns: Option<u64>) {
        self.trace.fault = Some(fault);
        self.last_ns = self.last_ns.max(time_ns.unwrap_or(0));
    }

    /// The timeline. `kernels` knows at least the func ids of its tasks; others are left out.
    #[must_use]
    pub fn finish(
        mut self,
        kernels: &BTreeMap<u16, String>,
        run: BTreeMap<String, String>,
    ) -> Trace {
        self.complete_chains();
        let mut trace = self.trace;
        let origin = self.first_ns.unwrap_or(0);
        trace.began_ns = origin;
        trace.end_ns = self.last_ns.saturating_sub(origin);
        for task in &mut trace.tasks {
            task.at.shift(origin);
            if let Some(name) = kernels.get(&task.func_id) {
                trace.kernels.entry(task.func_id).or_insert_with(|| name.clone());
            }
        }
        for part in &mut trace.parts {
            part.run.at.shift(origin);
            if let Some(task) = trace.tasks.get(part.task as usize) {
                let Moments { added, published, ready, .. } = task.at;
                let ready = part.run.at.ready.or(ready);
                part.run.at = Moments { added, published, ready, ..part.run.at };
            }
            if let Some(name) = kernels.get(&part.run.func_id) {
                trace.kernels.entry(part.run.func_id).or_insert_with(|| name.clone());
            }
        }
        trace.parts.sort_by_key(|part| (part.task, part.block, part.run.kind, part.lane));
        trace.run = run;
        trace
    }
}

fn earlier(known: Option<u64>, at: u64) -> Option<u64> {
    Some(known.map_or(at, |known| known.min(at)))
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
            &mut self.skipped,
        ];
        for moment in all.into_iter().flatten() {
            *moment -= origin;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Collector;
    use crate::timeline::model::Edge;
    use pto_abi::CoreKind;
    use pto_abi::trace::{TraceKind, TraceOwner, TracePoint};
    use std::collections::BTreeMap;

    #[test]
    fn parts_are_known_by_their_doorbells() {
        let cores = vec![CoreKind::AIC, CoreKind::AIV, CoreKind::AIV];
        let mut collector = Collector::new(cores, 2);
        collector.task(3, CoreKind::AIC);
        let mut event = |owner, time_ns, kind, extra| {
            collector.event(owner, TracePoint { time_ns, kind, task: 0, extra }, 0);
        };
        for (lane, func_id) in [(0, 3), (1, 4), (2, 5)] {
            event(TraceOwner::Instance(0), 10, TraceKind::LANE, func_id | lane << 16);
        }
        let scheduler = TraceOwner::Instance(1);
        event(scheduler, 10, TraceKind::READY, 0);
        // Two blocks, one after the other: number of the block, of the core among its kind, core, time.
        let first = [(0, 0, 0, 20), (0, 0, 1, 20), (0, 1, 2, 21)];
        let second = [(1, 0, 0, 50), (1, 0, 1, 50), (1, 1, 2, 51)];
        for (block, lane, core, at) in first.into_iter().chain(second) {
            event(scheduler, at, TraceKind::PART, block | lane << 24);
            event(scheduler, at, TraceKind::DISPATCHED, core);
            event(scheduler, at + 19, TraceKind::COLLECTED, core);
        }
        event(scheduler, 90, TraceKind::COMPLETED, 2);
        for core in 0..3 {
            for start in [22, 52] {
                let end = start + 10 + u64::from(core);
                event(TraceOwner::Core(core), start, TraceKind::STARTED, 0);
                event(TraceOwner::Core(core), end, TraceKind::FINISHED, 0);
            }
        }
        let kernels = [(3, "mm"), (4, "left"), (5, "right")];
        let kernels = kernels.map(|(id, name)| (id, name.to_owned()));
        let trace = collector.finish(&BTreeMap::from(kernels), BTreeMap::new());
        let mut parts = trace.parts.iter();
        for (block, start) in [(0, 12), (1, 42)] {
            for (core, name) in [(0, "mm"), (1, "left"), (2, "right")] {
                let part = parts.next().unwrap();
                let (run, at) = (part.run, part.run.at);
                assert_eq!((part.block, trace.kernel(run.func_id)), (block, name.to_owned()));
                assert_eq!((run.core, run.scheduler, at.ready), (Some(core), Some(1), Some(0)));
                assert_eq!(run.span(), Some((start, start + 10 + u64::from(core))));
                assert_eq!(at.completed.unwrap() - at.dispatched.unwrap(), 19);
            }
        }
        let task = trace.task(0).unwrap();
        let whole = (task.core, task.span(), task.at.completed);
        assert_eq!(whole, (Some(2), Some((12, 54)), Some(80)));
        assert_eq!((trace.runs().count(), trace.kernel_times()), (6, vec![12]));
    }

    #[test]
    fn events_become_moments_since_the_first_one() {
        let mut collector = Collector::new(vec![CoreKind::AIC, CoreKind::AIV], 2);
        collector.task(3, CoreKind::AIC);
        collector.task(4, CoreKind::AIV);
        let mut event = |owner, time_ns, kind, task, extra| {
            collector.event(owner, TracePoint { time_ns, kind, task, extra }, 0);
        };
        let (builder, scheduler) = (TraceOwner::Instance(0), TraceOwner::Instance(1));
        event(TraceOwner::Core(1), 170, TraceKind::STARTED, 1, 0);
        event(TraceOwner::Core(1), 190, TraceKind::FINISHED, 1, 0);
        event(scheduler, 150, TraceKind::READY, 1, 0);
        event(scheduler, 160, TraceKind::DISPATCHED, 1, 1);
        event(scheduler, 200, TraceKind::COMPLETED, 1, 1);
        event(builder, 100, TraceKind::ADDED, 0, 3);
        event(builder, 110, TraceKind::EDGE, 1, 0);
        event(builder, 110, TraceKind::EDGE_SATISFIED, 1, 99);
        event(builder, 120, TraceKind::PUBLISHED, 1, 0);
        event(builder, 120, TraceKind::PUBLISHED, 77, 0);
        collector.lane(builder, 4, 9);
        let kernels = BTreeMap::from([(4, "add".to_owned()), (9, "mul".to_owned())]);
        let trace = collector.finish(&kernels, BTreeMap::new());
        assert_eq!(trace.end_ns, 100);
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
