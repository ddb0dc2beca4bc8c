//! A program taken apart: its nodes in the order in which they are submitted, the edges that it states, and what each node
//! does to which bytes.
//!
//! Nodes are tasks, tasks of replays, and the elements that the program itself gets and sets: it waits for these, so that
//! everything submitted later comes after them. Their numbers are those that the builder gives them.

use std::collections::{BTreeMap, HashMap};

use pto_abi::GmAddr;
use pto_aicpu_fw::stream::region::Region;

use crate::finding::{Finding, Kind};
use crate::memory_map::Addresses;
use crate::program::{Action, Argument, Program, Publish, Task, Use, View};
use crate::submit::tensor_view;

/// One node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) what: What,
    /// The line of the file that says it; 0: none.
    pub(crate) line: usize,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A task, by its index.
    Task(usize),
    /// A task of a record, by its index, in a replay with this number.
    Replayed(usize, u32),
    /// The program gets an element.
    Get,
    /// The program sets an element.
    Set,
}

/// What one node does to the bytes of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) node: u32,
    /// The argument, those of all kernels of a chain counted; as many as the task has: its predicate.
    pub(crate) argument: u32,
    /// The tensor, by its index.
    pub(crate) tensor: usize,
    /// Where the tensor begins in its block.
    pub(crate) origin: u64,
    pub(crate) writes: bool,
}

/// All accesses to the same bytes.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) block: u32,
    pub(crate) region: Region,
    pub(crate) accesses: Vec<Access>,
}

type Key = (u32, u64, u64, u64, Vec<(u64, u32)>);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) nodes: Vec<Node>,
    /// Producers and consumers.
    pub(crate) edges: Vec<(u32, u32)>,
    pub(crate) classes: Vec<Class>,
    /// What is wrong with the edges that the program states.
    pub(crate) findings: Vec<Finding>,
    /// Tasks that declare no tensor although they have arguments: addresses may hide in these.
    pub(crate) undeclared: u64,
    /// Of each tensor whether it was allocated, at least once.
    pub(crate) is_allocated: Vec<bool>,
    /// Edges that are steps of their own.
    pub(crate) single_edges: usize,
}

impl Layout {
    /// What a node is called.
    pub(crate) fn name(&self, program: &Program, node: u32) -> String {
        let Some(node) = self.nodes.get(node as usize) else { return format!("node {node}") };
        match node.what {
            What::Task(task) => program.tasks[task].to_string(),
            What::Replayed(task, replay) => {
                format!("{} of replay {replay}", program.tasks[task])
            }
            What::Get | What::Set if node.line > 0 => format!("the program (line {})", node.line),
            What::Get | What::Set => "the program".to_owned(),
        }
    }

    /// The task that a node is, by its index.
    pub(crate) fn task(&self, node: u32) -> Option<usize> {
        match self.nodes.get(node as usize)?.what {
            What::Task(task) | What::Replayed(task, _) => Some(task),
            What::Get | What::Set => None,
        }
    }
}

/// Where the tensors of a replay, or of the program, are.
#[derive(Clone, Copy)]
struct Spot {
    block: u32,
    /// Bytes from the block's first one to what views count from.
    start: u64,
    /// And to where the tensor begins that people know.
    origin: u64,
    /// The tensor that people know, by its index.
    tensor: usize,
}

struct Walk<'p> {
    program: &'p Program,
    layout: Layout,
    spots: Vec<Option<Spot>>,
    blocks: u32,
    classes: HashMap<Key, usize>,
    /// Nodes of tasks outside of recordings, by id.
    ids: HashMap<u32, u32>,
    /// Tasks and allocations of each record.
    recordings: HashMap<u32, Body>,
    open: Option<(u32, Body)>,
    replays: u32,
    /// The last node at which the program waited.
    waited: Option<u32>,
    /// Tasks of a graph that a later line is to publish, with their own line.
    unpublished: BTreeMap<u32, usize>,
    /// Edges to be looked up when all tasks are known: both ids, and the line.
    stated: Vec<(u32, u32, usize)>,
}

#[derive(Clone, Default)]
struct Body {
    tensors: Vec<usize>,
    tasks: Vec<usize>,
    allocated: Vec<usize>,
}

/// Takes a program apart.
pub(crate) fn take_apart(program: &Program, addresses: &Addresses) -> Layout {
    let spot = |(index, (block, start)): (usize, &(u32, u64))| {
        (*block != u32::MAX).then_some(Spot {
            block: *block,
            start: *start,
            origin: *start,
            tensor: index,
        })
    };
    let mut walk = Walk {
        program,
        layout: Layout { is_allocated: vec![false; program.tensors.len()], ..Layout::default() },
        spots: addresses.blocks.iter().enumerate().map(spot).collect(),
        blocks: addresses.count,
        classes: HashMap::new(),
        ids: HashMap::new(),
        recordings: HashMap::new(),
        open: None,
        replays: 0,
        waited: None,
        unpublished: BTreeMap::new(),
        stated: Vec::new(),
    };
    for step in &program.steps {
        walk.step(&step.action, step.line);
    }
    walk.look_up();
    walk.report_unpublished();
    walk.layout
}

impl<'p> Walk<'p> {
    fn step(&mut self, action: &'p Action, line: usize) {
        match action {
            Action::Allocate(index) => match &mut self.open {
                Some((_, body)) => body.allocated.push(*index),
                None => self.allocate(*index),
            },
            Action::Add(index) => match &mut self.open {
                Some((_, body)) => body.tasks.push(*index),
                None => self.add(*index, line),
            },
            Action::Edge { producer, consumer } => {
                self.layout.single_edges += 1;
                self.stated.push((*producer, *consumer, line));
            }
            Action::Get(view) => self.touch(What::Get, view, line),
            Action::Set(view, _) => self.touch(What::Set, view, line),
            Action::BeginRecording { record, tensors } => {
                let tensors = tensors.iter().map(|(index, _)| *index).collect();
                self.open = Some((*record, Body { tensors, ..Body::default() }));
            }
            Action::EndRecording => {
                if let Some((id, body)) = self.open.take() {
                    self.check_recording(&body, line);
                    self.recordings.insert(id, body);
                }
            }
            Action::Replay { record, tensors, .. } => self.replay(*record, tensors, line),
            Action::Publish(id) => self.publish(*id, line),
            Action::OpenScope(_) | Action::CloseScope => {}
        }
    }

    /// The builder that derives edges says the same of a program of the streaming runtime.
    fn publish(&mut self, id: u32, line: usize) {
        if !self.program.streams() && self.unpublished.remove(&id).is_none() {
            let finding = Finding::new(Kind::Refused, published_twice(id)).line(line).tasks([id]);
            self.layout.findings.push(finding);
        }
    }

    fn report_unpublished(&mut self) {
        for (id, line) in std::mem::take(&mut self.unpublished) {
            let finding = Finding::new(Kind::Refused, never_published(id)).line(line).tasks([id]);
            self.layout.findings.push(finding);
        }
    }

    fn allocate(&mut self, index: usize) {
        self.spots[index] = Some(Spot { block: self.blocks, start: 0, origin: 0, tensor: index });
        self.blocks += 1;
        self.layout.is_allocated[index] = true;
    }

    fn node(&mut self, what: What, line: usize) -> u32 {
        let node = u32::try_from(self.layout.nodes.len()).unwrap_or(u32::MAX);
        self.layout.nodes.push(Node { what, line });
        self.layout.edges.extend(self.waited.map(|waited| (waited, node)));
        node
    }

    fn add(&mut self, index: usize, line: usize) {
        let task = &self.program.tasks[index];
        let node = self.node(What::Task(index), line);
        self.ids.insert(task.id, node);
        if task.publish == Publish::Later && !self.program.streams() {
            self.unpublished.insert(task.id, line);
        }
        self.stated.extend(task.after.iter().map(|after| (*after, task.id, line)));
        self.accesses(node, task);
    }

    fn accesses(&mut self, node: u32, task: &Task) {
        let mut argument = 0;
        for kernel in task.kernels() {
            self.accesses_of(node, argument, &kernel.args);
            argument += u32::try_from(kernel.args.len()).unwrap_or(u32::MAX);
        }
        if let Some(when) = &task.block_shape.when {
            self.access(node, argument, &when.element, false);
        }
    }

    /// What one kernel does, whose arguments are counted from `first` on.
    fn accesses_of(&mut self, node: u32, first: u32, args: &[Argument]) {
        let declares = args.iter().any(|arg| arg.view().is_some());
        self.layout.undeclared += u64::from(!args.is_empty() && !declares);
        for (argument, arg) in (first..).zip(args) {
            let (view, writes) = match arg {
                Argument::In(view) | Argument::NoDep(view, Use::Unknown | Use::Read) => {
                    (view, false)
                }
                Argument::Out(view) | Argument::InOut(view) | Argument::NoDep(view, Use::Write) => {
                    (view, true)
                }
                Argument::NoDep(_, Use::None) | Argument::Scalar(_) | Argument::BoundScalar(_) => {
                    continue;
                }
            };
            self.access(node, argument, view, writes);
        }
    }

    fn access(&mut self, node: u32, argument: u32, view: &View, writes: bool) {
        let Some(spot) = self.spots[view.tensor] else { return };
        let bytes = self.program.tensors[view.tensor].bytes;
        let region = Region::of(&tensor_view(view, GmAddr::NULL, bytes)).moved(spot.start);
        let dims = region.dims().iter().map(|dim| (dim.stride, dim.count)).collect();
        let key = (spot.block, region.low, region.high, region.run, dims);
        let classes = &mut self.layout.classes;
        let class = *self.classes.entry(key).or_insert_with(|| {
            classes.push(Class { block: spot.block, region, accesses: Vec::new() });
            classes.len() - 1
        });
        let Spot { tensor, origin, .. } = spot;
        let access = Access { node, argument, tensor, origin, writes };
        classes[class].accesses.push(access);
    }

    fn touch(&mut self, what: What, view: &View, line: usize) {
        let node = self.node(what, line);
        self.access(node, 0, view, what == What::Set);
        self.waited = Some(node);
    }

    /// The tasks of a record name only earlier ones of it.
    fn check_recording(&mut self, body: &Body, line: usize) {
        let tasks: Vec<&Task> = body.tasks.iter().map(|task| &self.program.tasks[*task]).collect();
        for (at, task) in tasks.iter().enumerate() {
            for after in &task.after {
                if !tasks[..at].iter().any(|earlier| earlier.id == *after) {
                    let message = format!(
                        "{task} of a record waits for task {after}, which is not an earlier one of that record; \
                         name tasks of the record that are added before it"
                    );
                    self.layout.findings.push(Finding::new(Kind::UnknownTask, message).line(line));
                }
            }
        }
    }

    fn replay(&mut self, record: u32, tensors: &'p [View], line: usize) {
        let Some(body) = self.recordings.get(&record).cloned() else { return };
        self.replays += 1;
        for index in &body.allocated {
            self.allocate(*index);
        }
        for (bound, view) in body.tensors.iter().zip(tensors) {
            let at = view.offset.saturating_mul(view.element.bytes());
            self.spots[*bound] = self.spots[view.tensor]
                .map(|spot| Spot { start: spot.start.saturating_add(at), ..spot });
        }
        for index in &body.tasks {
            let node = self.node(What::Replayed(*index, self.replays), line);
            self.accesses(node, &self.program.tasks[*index]);
        }
    }

    /// Turns the edges that the program states into those between nodes.
    fn look_up(&mut self) {
        for (producer, consumer, line) in std::mem::take(&mut self.stated) {
            let (from, to) = (self.ids.get(&producer), self.ids.get(&consumer));
            let (Some(&from), Some(&to)) = (from, to) else {
                let missing = if from.is_none() { producer } else { consumer };
                let message = edge_of_unknown((producer, consumer), missing);
                self.layout.findings.push(Finding::new(Kind::UnknownTask, message).line(line));
                continue;
            };
            if from == to {
                let message = format!(
                    "task {producer} waits for itself, so that it never starts; take the edge out"
                );
                let finding = Finding::new(Kind::SelfEdge, message).line(line).tasks([producer]);
                self.layout.findings.push(finding);
                continue;
            }
            self.layout.edges.push((from, to));
        }
    }
}

/// A line publishes a task that is published.
pub(crate) fn published_twice(task: u32) -> String {
    format!("task {task} is published already; take the line out")
}

/// No line publishes a task that is to be published later.
pub(crate) fn never_published(task: u32) -> String {
    format!("task {task} is never published; add {{\"publish\": {task}}}")
}

/// The edge leads from or to a task that is not in the program.
pub(crate) fn edge_of_unknown((producer, consumer): (u32, u32), missing: u32) -> String {
    format!(
        "the edge {producer} -> {consumer} names task {missing}, which the program does not add outside of recordings; \
         add it, or take the edge out"
    )
}
