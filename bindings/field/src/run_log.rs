//! What a run did, kept for the files that engineers of the field read: tasks, the edges of the field's rule, scopes, spans of
//! kernels, arguments. [`formats`](crate::formats) writes the files.
//!
//! Tasks and tensors without a task are counted as the field's rings count them: an id is the ring of the scope and a number in
//! this ring. Invariants: `ids` maps each id of ours to its index in `tasks`; the scope of the program is the first one in `open`.

use std::collections::{BTreeSet, HashMap};

use pto_host::timeline::Trace;

use crate::dump::Dumped;
use crate::entry::TaskEntry;
use crate::options::{Keeps, Rings};
use crate::rule::{BufferRegion, Writers};
use crate::spans::KernelSpan;
use crate::swimlane::Swimlane;
use crate::wire::{ChipTensor, NO_TASK, SourceLocation, TaskArgument, tag};

/// Rings of the field: scopes that are deeper share the last one.
const RINGS: usize = 4;
/// Runtime outputs of the field begin at multiples of this.
const HEAP_ALIGN: u64 = 1024;

/// Why a task waits for another one under the field's rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeCause {
    /// The program says so.
    Named,
    /// It made the tensor.
    Creator,
    /// It writes a region that overlaps; `is_covered`: it writes all that is read.
    Overlap {
        /// See above.
        is_covered: bool,
        /// Elements of the buffer before the written region.
        start: u64,
        /// Its extents.
        shape: Vec<u32>,
        /// Its distances in elements.
        strides: Vec<u32>,
    },
}

/// An edge under the field's rule.
#[derive(Clone, Debug)]
pub struct EdgeEntry {
    /// The producer's index in [`RunLog::tasks`].
    pub producer: usize,
    /// As `producer`.
    pub consumer: usize,
    /// The consumer's argument; -1: none.
    pub argument: i32,
    /// Why.
    pub cause: EdgeCause,
}

/// What a ring holds when a scope begins or ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCount {
    /// Tasks.
    pub tasks: u64,
    /// Bytes.
    pub heap: u64,
    /// Edges.
    pub edges: u64,
}

impl RingCount {
    fn add(&mut self, other: Self) {
        self.tasks += other.tasks;
        self.heap += other.heap;
        self.edges += other.edges;
    }
}

/// A scope begins or ends.
#[derive(Clone, Debug)]
pub struct ScopeEntry {
    /// Where the program opens it.
    pub site: String,
    /// Whether it ends.
    pub is_end: bool,
    /// How many are open around it.
    pub depth: usize,
    /// The scope's ring.
    pub ring: usize,
    /// What ended scopes have given back, since the run began.
    pub released: RingCount,
    /// What was taken, since the run began.
    pub taken: RingCount,
    /// Registered writers.
    pub writers: usize,
}

/// A scope that is open, and what its tasks have taken.
struct Open {
    site: String,
    taken: RingCount,
}

/// See the file.
pub struct RunLog {
    keeps: Keeps,
    rings: Rings,
    tasks: Vec<TaskEntry>,
    edges: Vec<EdgeEntry>,
    scopes: Vec<ScopeEntry>,
    swimlane: Swimlane,
    rough: [Vec<String>; 2],
    dumped: Dumped,
    ids: HashMap<u64, usize>,
    open: Vec<Open>,
    taken: [RingCount; RINGS],
    released: [RingCount; RINGS],
    writers: Writers,
}

impl RunLog {
    pub(crate) fn new(keeps: Keeps, rings: Rings) -> Self {
        let mut run_log = Self {
            keeps,
            rings,
            tasks: Vec::new(),
            edges: Vec::new(),
            scopes: Vec::new(),
            swimlane: Swimlane::default(),
            rough: Default::default(),
            dumped: Dumped::default(),
            ids: HashMap::new(),
            open: Vec::new(),
            taken: [RingCount::default(); RINGS],
            released: [RingCount::default(); RINGS],
            writers: Writers::default(),
        };
        run_log.begin_scope("the program".to_owned());
        run_log
    }

    /// What is kept.
    #[must_use]
    pub fn keeps(&self) -> Keeps {
        self.keeps
    }

    /// Sizes of the rings that the run had.
    #[must_use]
    pub fn rings(&self) -> Rings {
        self.rings
    }

    /// Tasks in the order of their submission.
    #[must_use]
    pub fn tasks(&self) -> &[TaskEntry] {
        &self.tasks
    }

    /// Edges in the order of their consumers.
    #[must_use]
    pub fn edges(&self) -> &[EdgeEntry] {
        &self.edges
    }

    /// Begins and ends of scopes in their order.
    #[must_use]
    pub fn scopes(&self) -> &[ScopeEntry] {
        &self.scopes
    }

    /// Which kernel ran when and where, and what the schedulers did.
    #[must_use]
    pub fn swimlane(&self) -> &Swimlane {
        &self.swimlane
    }

    /// Instructions that the cost model does not know: those that count as similar ones, and those that count nowhere.
    pub(crate) fn rough(&self) -> &[Vec<String>; 2] {
        &self.rough
    }

    /// What [`rough`](Self::rough) is.
    pub(crate) fn set_rough(&mut self, rough: [Vec<String>; 2]) {
        self.rough = rough;
    }

    /// Arguments.
    #[must_use]
    pub fn dumped(&self) -> &Dumped {
        &self.dumped
    }

    /// The entry of a task by our id.
    pub(crate) fn task(&self, own: u64) -> Option<&TaskEntry> {
        self.tasks.get(*self.ids.get(&own)?)
    }

    /// What is to be said of arguments without memory, each a task of ours and its argument; `consequence`: what is missing therefore.
    pub(crate) fn no_memory(
        &self,
        arguments: &BTreeSet<(u64, usize)>,
        consequence: &str,
    ) -> impl Iterator<Item = String> {
        arguments.iter().filter_map(move |(own, argument)| {
            let location = &self.task(*own)?.location;
            Some(format!(
                "{location}: argument {argument} of this task is no memory that this process can read, so that {consequence}: give the task a tensor that is there"
            ))
        })
    }

    /// Our id of each task, and its index in `tasks`.
    pub(crate) fn task_indices(&self) -> impl Iterator<Item = (u64, usize)> {
        self.ids.iter().map(|(own, at)| (*own, *at))
    }

    /// The index in `tasks` of the task of each number of the engine.
    fn numbers(&self) -> HashMap<u32, usize> {
        let numbered = self.task_indices().filter_map(|(own, at)| {
            let number = crate::scopes::number_of(own)?;
            Some((u32::try_from(number).ok()?, at))
        });
        numbered.collect()
    }

    pub(crate) fn begin_scope(&mut self, site: String) {
        self.open.push(Open { site, taken: RingCount::default() });
        self.sample(false);
    }

    pub(crate) fn end_scope(&mut self) {
        let ring = self.ring();
        if let Some(scope) = self.open.last() {
            self.released[ring].add(scope.taken);
        }
        self.sample(true);
        self.open.pop();
    }

    fn ring(&self) -> usize {
        (self.open.len() - 1).min(RINGS - 1)
    }

    fn sample(&mut self, is_end: bool) {
        let ring = self.ring();
        // At its end a scope still has what it took: it is given back after this sample.
        let scope = self.open.last();
        let mut released = self.released[ring];
        if let Some(scope) = scope.filter(|_| is_end) {
            released.tasks -= scope.taken.tasks;
            released.heap -= scope.taken.heap;
            released.edges -= scope.taken.edges;
        }
        self.scopes.push(ScopeEntry {
            site: scope.map_or_else(String::new, |scope| scope.site.clone()),
            is_end,
            depth: self.open.len() - 1,
            ring,
            released,
            taken: self.taken[ring],
            writers: self.writers.count(),
        });
    }

    /// A submission with our id `own`: its arguments, which are these tensors, and the tasks that it names.
    pub(crate) fn submitted(&mut self, own: u64, new: NewTask<'_>) {
        let ring = self.ring();
        let consumer = self.tasks.len();
        let before = self.edges.len();
        let mut writes = Vec::new();
        for id in new.named {
            self.edge(*id, consumer, -1, EdgeCause::Named);
        }
        for (at, (argument, tensor)) in new.arguments.iter().zip(new.tensors).enumerate() {
            if !new.is_manual && argument.tag != tag::OUTPUT {
                self.derive(argument.tag, tensor, (consumer, at), &mut writes);
            }
        }
        for (buffer, region) in writes {
            self.writers.register(buffer, region, consumer as u64);
        }
        let made = new.tensors.iter().filter(|tensor| tensor.owner == own);
        let heap = made.map(|tensor| tensor.bytes.next_multiple_of(HEAP_ALIGN)).sum();
        self.ids.insert(own, consumer);
        self.tasks.push(TaskEntry {
            id: (ring as u64) << 32 | self.taken[ring].tasks,
            is_manual: new.is_manual,
            kernels: new.kernels,
            blocks: new.blocks,
            starts_at_once: new.starts_at_once,
            tensors: new
                .arguments
                .iter()
                .map(|one| one.tag)
                .zip(new.tensors.iter().copied())
                .collect(),
            location: new.location.describe(),
        });
        let taken = RingCount { tasks: 1, heap, edges: (self.edges.len() - before) as u64 };
        self.taken[ring].add(taken);
        if let Some(scope) = self.open.last_mut() {
            scope.taken.add(taken);
        }
    }

    /// The edges that a tensor makes, and the writer that the task becomes.
    fn derive(
        &mut self,
        tag: u64,
        tensor: &ChipTensor,
        (consumer, at): (usize, usize),
        writes: &mut Vec<(u64, BufferRegion)>,
    ) {
        let argument = i32::try_from(at).unwrap_or(i32::MAX);
        self.edge(tensor.owner, consumer, argument, EdgeCause::Creator);
        if tensor.manual_dep != 0 || tag == tag::NO_DEP || tensor.is_empty() {
            return;
        }
        let region = BufferRegion::of(tensor);
        if tag != tag::OUTPUT_EXISTING {
            let (edges, takes_over) = (&mut self.edges, tag == tag::INOUT);
            self.writers.look(tensor.address, &region, takes_over, 0, |number, written| {
                let cause = EdgeCause::Overlap {
                    is_covered: written.covers(&region),
                    start: written.start(),
                    shape: written.shape().to_vec(),
                    strides: written.strides().to_vec(),
                };
                let producer = usize::try_from(number).unwrap_or(usize::MAX);
                edges.push(EdgeEntry { producer, consumer, argument, cause });
            });
        }
        if tag != tag::INPUT {
            writes.push((tensor.address, region));
        }
    }

    fn edge(&mut self, own: u64, consumer: usize, argument: i32, cause: EdgeCause) {
        if own == NO_TASK {
            return;
        }
        if let Some(&producer) = self.ids.get(&own) {
            self.edges.push(EdgeEntry { producer, consumer, argument, cause });
        }
    }

    /// The run is over: what the cores have kept comes in, and the scopes that are open end. `trace`: the engine's timeline, of a run
    /// that ended well.
    pub(crate) fn finish(&mut self, spans: &[KernelSpan], dumped: Dumped, trace: Option<&Trace>) {
        while !self.open.is_empty() {
            self.end_scope();
        }
        self.swimlane = match trace.filter(|_| self.keeps.spans) {
            Some(trace) => {
                let numbers = self.numbers();
                let entry = |number| self.tasks.get(*numbers.get(&number)?);
                Swimlane::of_trace(trace, spans, &entry)
            }
            None => Swimlane::of_spans(spans),
        };
        self.dumped = dumped;
    }
}

/// What a submission brings.
pub(crate) struct NewTask<'a> {
    pub(crate) is_manual: bool,
    pub(crate) kernels: [i32; 3],
    pub(crate) blocks: i32,
    pub(crate) starts_at_once: bool,
    pub(crate) arguments: &'a [TaskArgument],
    pub(crate) tensors: &'a [ChipTensor],
    pub(crate) named: &'a [u64],
    pub(crate) location: &'a SourceLocation,
}

#[cfg(test)]
mod tests {
    use super::{EdgeCause, NewTask, RunLog};
    use crate::options::{Keeps, Rings};
    use crate::wire::{ChipTensor, SourceLocation, TaskArgument, tag};

    const NOWHERE: SourceLocation = SourceLocation { file: std::ptr::null(), line: 0, reserved: 0 };

    fn submit(run_log: &mut RunLog, own: u64, tensors: &[(u64, ChipTensor)], named: &[u64]) {
        let arguments: Vec<_> = tensors
            .iter()
            .map(|(tag, _)| TaskArgument { what: std::ptr::null(), tag: *tag })
            .collect();
        let tensors: Vec<_> = tensors.iter().map(|(_, tensor)| *tensor).collect();
        run_log.submitted(
            own,
            NewTask {
                is_manual: false,
                kernels: [-1, 0, -1],
                blocks: 1,
                starts_at_once: false,
                arguments: &arguments,
                tensors: &tensors,
                named,
                location: &NOWHERE,
            },
        );
    }

    #[test]
    fn edges_have_their_causes_and_ids_their_rings() {
        let mut run_log = RunLog::new(Keeps { graph: true, ..Keeps::default() }, Rings::default());
        let mut made = ChipTensor::dense(0x1000, 0, &[300]);
        made.owner = 70;
        let outside = ChipTensor::dense(0x8000, 0, &[8]);
        submit(&mut run_log, 70, &[(tag::OUTPUT, made)], &[]);
        run_log.begin_scope("a.cpp:3".to_owned());
        submit(&mut run_log, 71, &[(tag::INPUT, made), (tag::INOUT, outside)], &[]);
        let mut half = outside;
        half.shapes[0] = 4;
        submit(&mut run_log, 72, &[(tag::INPUT, half)], &[70]);
        run_log.finish(&[], crate::dump::Dumped::default(), None);
        let ids: Vec<u64> = run_log.tasks().iter().map(|task| task.id).collect();
        assert_eq!(ids, [0, 1 << 32, 1 << 32 | 1]);
        let edges: Vec<_> = run_log
            .edges()
            .iter()
            .map(|edge| (edge.producer, edge.consumer, edge.argument))
            .collect();
        assert_eq!(edges, [(0, 1, 0), (0, 2, -1), (1, 2, 0)]);
        let covered =
            EdgeCause::Overlap { is_covered: true, start: 0, shape: vec![8], strides: vec![1] };
        assert_eq!(run_log.edges()[2].cause, covered);
        let scopes: Vec<_> =
            run_log.scopes().iter().map(|scope| (scope.depth, scope.is_end)).collect();
        assert_eq!(scopes, [(0, false), (1, false), (1, true), (0, true)]);
        assert_eq!((run_log.scopes()[2].taken.tasks, run_log.scopes()[2].released.tasks), (2, 0));
        assert_eq!(run_log.scopes()[3].taken.heap, 2048, "1,200 bytes are two pieces of 1,024");
    }
}
