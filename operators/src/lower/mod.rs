//! From a graph of operators to a program: memory, tasks, edges.
//!
//! ```text
//! nodes that are needed --fold--> constants
//!         |--alias-> Reshape and its kin take no task and no memory
//!         |--place-> inputs, outputs: tensors of the program | constants: one tensor | activations: parts of one tensor, reused
//!         |--split-> tasks, by their cost on a core of the device, and the number of cores
//!         |--edges-> a task waits for tasks whose bytes it reads, or writes
//!         +--chain-> what waits for one task, and is short, becomes a further link of that task
//! ```

mod edges;
mod memory;

use std::collections::BTreeMap;

use pto_abi::CoreKind;
use pto_abi::limits::MAX_ARGS;
use pto_workload::program::{
    BlockShape, GraphArgument, GraphTask, ModelDescription, ModelTensor, Program, ProgramBody,
    Role, TensorDescription, TensorLayout,
};

use crate::dtype::DType;
use crate::error::{Argument, OperatorError};
use crate::graph::{OperatorGraph, ValueId};
use crate::kernel::{
    CostModel, DESCRIPTIONS, Description, HEAD, LINK, STATUS, TaskCost, WorkSplit, chain_name,
    kernel_name, work,
};
use crate::operator::{Operator, Unary};
use crate::tensor::{Tensor, TensorType};
use edges::{Access, Edges, Producer};
use memory::Planner;

/// How a graph becomes a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerOptions {
    /// Into how many tasks an operator is split at most: the number of cores of each kind.
    pub cores: [usize; CoreKind::COUNT],
    /// About how long a task takes on its core at least, in ns, where an operator is split.
    pub grain_ns: u64,
    /// About how long the device takes from the end of a task to the beginning of one that waits for it, in ns; 0: no task has several operators.
    pub dispatch_ns: u64,
    /// Tasks are named after nodes, where there are not more than this many; otherwise after operators. A session has 1,024 kernels.
    pub most_names: usize,
}

impl Default for LowerOptions {
    fn default() -> Self {
        // In profile a2a3: the report of a core 0.6 us, its lines 0.2 us, a turn of a scheduler 0.3 us, the doorbell 0.1 us, the switch 0.6 us. Tasks of twice as
        // much leave two thirds of the time to kernels, where each operator waits for the one before.
        Self { cores: [24, 48], grain_ns: 4_000, dispatch_ns: 2_000, most_names: 800 }
    }
}

/// Why a node cannot become tasks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {node}: {error}")]
pub struct LowerError {
    /// The node's name; that of the graph, where it is about all of it.
    pub node: String,
    /// Why.
    pub error: OperatorError,
}

/// A graph as a program.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The program. Its inputs and outputs have the names of the graph's. A tensor without dimensions, with more than five, or without
    /// elements is a vector there, of one element at least.
    pub program: Program,
    /// The inputs, in the order of the graph.
    pub inputs: Vec<(String, TensorType)>,
    /// The outputs, in the order of the graph.
    pub outputs: Vec<(String, TensorType)>,
    /// For each task the numbers of its nodes; none: it only joins others, or copies an output.
    pub nodes: Vec<Vec<usize>>,
    /// What each task takes on a core of the device.
    pub costs: Vec<TaskCost>,
    /// Bytes of all activations.
    pub activation_bytes: u64,
    /// Bytes of memory that they share.
    pub activation_peak: u64,
}

/// More edges than this between two operators become two for each task, and a task between them: an edge takes one of three schedulers about 50 ns, and a task
/// on the way as long as 120 of them.
const MOST_EDGES: usize = 128;

/// What a task does for an operator.
struct Link {
    args: Vec<GraphArgument>,
    cost: TaskCost,
    node: Option<usize>,
    /// Whether tasks have the names of nodes.
    is_named: bool,
}

fn link_count(task: &GraphTask) -> u64 {
    match task.args.first() {
        Some(GraphArgument::Word(links)) => *links,
        _ => 0,
    }
}

const CONSTANTS: &str = "pto.constants";
const ACTIVATIONS: &str = "pto.activations";

/// What a run said in [`STATUS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing was wrong.
    Good,
    /// A node met an index that stands for no element.
    Index {
        /// The node's number.
        node: usize,
        /// The index.
        index: i64,
        /// The extent of the axis.
        extent: u64,
    },
    /// A node's kernel stopped at a fault of ours.
    Broken {
        /// The node's number.
        node: usize,
    },
}

impl Status {
    /// What the words of [`STATUS`] say.
    #[must_use]
    pub fn read(words: &[u64]) -> Self {
        match *words {
            [0, ..] | [] => Self::Good,
            [node, index, extent, ..] if extent < u64::MAX => Self::Index {
                node: usize::try_from(node - 1).unwrap_or(usize::MAX),
                index: index.cast_signed(),
                extent,
            },
            [node, ..] => Self::Broken { node: usize::try_from(node - 1).unwrap_or(usize::MAX) },
        }
    }

    /// Why the run failed, for messages; `None`: nothing was wrong. `nodes` are the program's [`node_titles`](crate::node_titles).
    #[must_use]
    pub fn reason(&self, nodes: &[String]) -> Option<String> {
        let title = |node: usize| nodes.get(node).map_or("a copy to an output", String::as_str);
        match *self {
            Self::Good => None,
            Self::Index { node, index, extent } => Some(format!(
                "{}: the index is {index}, and the axis has {extent} elements",
                title(node)
            )),
            Self::Broken { node } => Some(format!(
                "{}: its kernel stopped, which is a fault of the library: report it",
                title(node)
            )),
        }
    }
}

impl OperatorGraph {
    /// The program of the graph. Nodes whose values nobody needs are left out; those whose inputs are all constants are computed here.
    ///
    /// # Errors
    /// All that cannot become tasks: each node with its reason.
    pub fn lower(&self, options: &LowerOptions) -> Result<Lowered, Vec<LowerError>> {
        Lowering::new(self, options)?.run()
    }
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The tensor of the program.
    tensor: usize,
    /// Bytes.
    offset: u64,
}

/// Inputs and outputs of an operator, where they are.
type Tensors<'t> = (&'t [Option<(Location, &'t TensorType)>], &'t [(Location, &'t TensorType)]);

/// The tensors that every program has, in front of inputs and outputs.
const OF_DESCRIPTIONS: usize = 0;
const OF_STATUS: usize = 1;
const OF_CONSTANTS: usize = 2;
const OF_ACTIVATIONS: usize = 3;
const OWN: usize = 4;

struct Lowering<'g> {
    graph: &'g OperatorGraph,
    options: &'g LowerOptions,
    /// Constants that were computed here.
    folded: BTreeMap<ValueId, Tensor>,
    /// The value that has the memory of a value.
    roots: Vec<ValueId>,
    /// Whether a node becomes tasks.
    is_run: Vec<bool>,
    places: Vec<Option<Location>>,
    constants: Vec<u64>,
    descriptions: Vec<u64>,
    tasks: Vec<GraphTask>,
    states: Vec<TaskState>,
    edges: Edges,
    planner: Planner,
}

/// What is known of a task, beside what stands in the program.
#[derive(Debug, Default)]
struct TaskState {
    nodes: Vec<usize>,
    cost: TaskCost,
    /// Whether it has whole operators, so that another one may follow.
    is_open: bool,
    /// Whether another task waits for it.
    has_consumer: bool,
    /// When it begins if there are always enough cores, in ns.
    begins_ns: u64,
}

impl TaskState {
    const fn ends_ns(&self) -> u64 {
        self.begins_ns + self.cost.ns()
    }
}

fn refuse(node: &str, operator: &'static str, rule: String) -> LowerError {
    LowerError {
        node: node.to_owned(),
        error: OperatorError { operator, argument: Argument::Operator, rule },
    }
}

impl<'g> Lowering<'g> {
    fn new(graph: &'g OperatorGraph, options: &'g LowerOptions) -> Result<Self, Vec<LowerError>> {
        let mut lowering = Self {
            graph,
            options,
            folded: BTreeMap::new(),
            roots: (0..graph.values.len()).map(ValueId).collect(),
            is_run: vec![false; graph.nodes.len()],
            places: vec![None; graph.values.len()],
            constants: Vec::new(),
            descriptions: Vec::new(),
            tasks: Vec::new(),
            states: Vec::new(),
            edges: Edges::default(),
            planner: Planner::default(),
        };
        lowering.need();
        lowering.fold()?;
        Ok(lowering)
    }

    fn constant(&self, value: ValueId) -> Option<&Tensor> {
        self.graph.values[value.0].constant.as_ref().or_else(|| self.folded.get(&value))
    }

    fn ty(&self, value: ValueId) -> &'g TensorType {
        &self.graph.values[value.0].ty
    }

    /// Marks the nodes whose values somebody needs.
    fn need(&mut self) {
        let mut is_needed = vec![false; self.graph.values.len()];
        self.graph.outputs.iter().for_each(|(_, value)| is_needed[value.0] = true);
        for (number, node) in self.graph.nodes.iter().enumerate().rev() {
            if node.outputs.iter().any(|value| is_needed[value.0]) {
                self.is_run[number] = true;
                node.inputs.iter().flatten().for_each(|value| is_needed[value.0] = true);
            }
        }
    }

    /// Computes what consists of constants, and finds what needs no memory of its own.
    fn fold(&mut self) -> Result<(), Vec<LowerError>> {
        let mut errors = Vec::new();
        for (number, node) in self.graph.nodes.iter().enumerate() {
            if !self.is_run[number] {
                continue;
            }
            let known: Option<Vec<Option<&Tensor>>> = node
                .inputs
                .iter()
                .map(|input| input.map_or(Some(None), |value| self.constant(value).map(Some)))
                .collect();
            let is_random = matches!(
                node.operator,
                Operator::RandomUniform { .. } | Operator::RandomNormal { .. }
            );
            // The shape alone decides.
            let of_shape = matches!(
                node.operator,
                Operator::Shape { .. } | Operator::Size | Operator::EyeLike { .. }
            );
            let result = match known {
                Some(known) if !is_random => Some(node.operator.evaluate(&known)),
                _ if of_shape => {
                    let zeros: Vec<_> = node
                        .inputs
                        .iter()
                        .map(|input| input.map(|value| Tensor::zeros(self.ty(value).clone())))
                        .collect();
                    let zeros: Vec<_> = zeros.iter().map(Option::as_ref).collect();
                    Some(node.operator.evaluate(&zeros))
                }
                _ => None,
            };
            match result {
                Some(Ok(tensors)) => {
                    self.is_run[number] = false;
                    self.folded.extend(node.outputs.iter().copied().zip(tensors));
                }
                Some(Err(error)) => errors.push(LowerError { node: node.name.clone(), error }),
                None => {
                    if let (true, Some(Some(input))) =
                        (node.operator.keeps_elements(), node.inputs.first())
                    {
                        self.is_run[number] = false;
                        self.roots[node.outputs[0].0] = self.roots[input.0];
                    }
                }
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn root(&self, value: ValueId) -> ValueId {
        self.roots[value.0]
    }

    fn run(mut self) -> Result<Lowered, Vec<LowerError>> {
        let mut errors = Vec::new();
        let inputs: Vec<_> = self
            .graph
            .inputs
            .iter()
            .map(|value| (self.graph.values[value.0].name.clone(), self.ty(*value).clone()))
            .collect();
        let outputs: Vec<_> = self
            .graph
            .outputs
            .iter()
            .map(|(name, value)| (name.clone(), self.ty(*value).clone()))
            .collect();
        for (at, value) in self.graph.inputs.iter().enumerate() {
            self.places[value.0] = Some(Location { tensor: OWN + at, offset: 0 });
        }
        // A value that is an output is written there; a second output of the same value, an input or a constant is copied.
        let mut copied = Vec::new();
        for (at, (_, value)) in self.graph.outputs.iter().enumerate() {
            let (root, place) =
                (self.root(*value), Location { tensor: OWN + inputs.len() + at, offset: 0 });
            if self.places[root.0].is_some()
                || self.constant(root).is_some()
                || self.constant(*value).is_some()
            {
                copied.push((*value, place));
            } else {
                self.places[root.0] = Some(place);
            }
        }
        self.plan_activations();
        let names = self.is_run.iter().filter(|is_run| **is_run).count();
        for (number, node) in self.graph.nodes.iter().enumerate() {
            if !self.is_run[number] {
                continue;
            }
            let name = (names <= self.options.most_names).then_some((node.name.as_str(), number));
            let ins: Vec<_> = node
                .inputs
                .iter()
                .map(|input| input.map(|value| (self.place(value), self.ty(value))))
                .collect();
            let outs: Vec<_> = node
                .outputs
                .iter()
                .map_while(|value| Some((self.places[self.root(*value).0]?, self.ty(*value))))
                .collect();
            if let Err(error) = self.add_tasks(&node.operator, (&ins, &outs), (Some(number), name))
            {
                errors.push(LowerError { node: node.name.clone(), error });
            }
        }
        for (value, place) in copied {
            let ty = self.ty(value);
            let from = [Some((self.place(value), ty))];
            if let Err(error) = self.add_tasks(
                &Operator::Unary(Unary::Identity),
                (&from, &[(place, ty)]),
                (None, None),
            ) {
                errors.push(LowerError { node: self.graph.name.clone(), error });
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let (activation_bytes, activation_peak) = (self.planner.sum(), self.planner.peak());
        let (nodes, costs) = std::mem::take(&mut self.states)
            .into_iter()
            .map(|state| (state.nodes, state.cost))
            .unzip();
        let program = self
            .program(&inputs, &outputs)
            .map_err(|error| vec![refuse(&error.0, "graph", error.1)])?;
        Ok(Lowered { program, inputs, outputs, nodes, costs, activation_bytes, activation_peak })
    }

    /// Where a value is; a constant is put behind the others when it is first used.
    fn place(&mut self, value: ValueId) -> Location {
        // A constant that was computed here has memory of its own.
        let root = if self.constant(value).is_some() { value } else { self.root(value) };
        if let Some(place) = self.places[root.0] {
            return place;
        }
        let place = Location { tensor: OF_CONSTANTS, offset: 8 * self.constants.len() as u64 };
        if let Some(tensor) =
            self.graph.values[root.0].constant.as_ref().or_else(|| self.folded.get(&root))
        {
            let words = tensor.bytes().len().div_ceil(8).next_multiple_of(8).max(8);
            let first = self.constants.len();
            self.constants.resize(first + words, 0);
            bytemuck::cast_slice_mut(&mut self.constants[first..])[..tensor.bytes().len()]
                .copy_from_slice(tensor.bytes());
        }
        self.places[root.0] = Some(place);
        place
    }

    /// Gives each value that tasks make, and that is no output, a part of the activations: from the node that makes it to the last one that reads it.
    fn plan_activations(&mut self) {
        let mut last: BTreeMap<ValueId, usize> = BTreeMap::new();
        for (number, node) in
            self.graph.nodes.iter().enumerate().filter(|(number, _)| self.is_run[*number])
        {
            for value in node.inputs.iter().flatten() {
                last.insert(self.root(*value), number);
            }
        }
        let graph = self.graph;
        for (number, node) in graph.nodes.iter().enumerate() {
            if !self.is_run[number] {
                continue;
            }
            // Outputs behind the last one that somebody reads are not made.
            let is_used = |value: &ValueId| {
                last.contains_key(&self.root(*value)) || self.places[value.0].is_some()
            };
            let made = node.outputs.iter().rposition(is_used).map_or(1, |at| at + 1);
            for value in &node.outputs[..made] {
                if self.places[value.0].is_none() {
                    let offset = self.planner.take(value.0, self.ty(*value).bytes() as u64);
                    self.places[value.0] = Some(Location { tensor: OF_ACTIVATIONS, offset });
                }
            }
            let ended = node
                .inputs
                .iter()
                .flatten()
                .map(|value| self.root(*value))
                .filter(|root| last.get(root) == Some(&number));
            ended.collect::<Vec<_>>().into_iter().for_each(|root| self.planner.give_back(root.0));
            for value in &node.outputs[..made] {
                if !last.contains_key(value) {
                    self.planner.give_back(value.0);
                }
            }
        }
    }

    /// Adds the tasks of an operator.
    fn add_tasks(
        &mut self,
        operator: &Operator,
        (ins, outs): Tensors<'_>,
        (node, name): (Option<usize>, Option<(&str, usize)>),
    ) -> Result<(), OperatorError> {
        let types: Vec<_> = ins.iter().map(|input| input.map(|(_, ty)| ty)).collect();
        let out_types: Vec<_> = outs.iter().map(|(_, ty)| (*ty).clone()).collect();
        let work = work(operator, &types, &out_types);
        if work.units == 0 {
            return Ok(());
        }
        let args = LINK + ins.len() + outs.len();
        if HEAD + args > MAX_ARGS {
            let rule = format!(
                "has {} tensors, and a task takes {}; use fewer inputs",
                ins.len() + outs.len(),
                MAX_ARGS - HEAD - LINK
            );
            return Err(OperatorError {
                operator: operator.name(),
                argument: Argument::Operator,
                rule,
            });
        }
        let description = Description {
            operator: operator.clone(),
            inputs: types.iter().map(|ty| ty.cloned()).collect(),
            outputs: out_types,
        };
        let words = description.words();
        let first_word = self.descriptions.len();
        self.descriptions.extend(&words);
        let head = [
            GraphArgument::Tensor { tensor: OF_DESCRIPTIONS, offset: 8 * first_word as u64 },
            GraphArgument::Word(words.len() as u64),
        ];
        let at = |location: Location| GraphArgument::Tensor {
            tensor: location.tensor,
            offset: location.offset,
        };
        let tail: Vec<_> = ins
            .iter()
            .map(|input| input.map_or(GraphArgument::Word(0), |(location, _)| at(location)))
            .chain(outs.iter().map(|(location, _)| at(*location)))
            .collect();
        let kernel = kernel_name(operator, name);
        let model =
            CostModel { operator, inputs: &types, outputs: &description.outputs, work: &work };
        let parts = split(&model, self.options);
        self.edges.begin(parts.len());
        for units in &parts {
            let accesses = accesses(&work, *units, (ins, outs));
            let number = [units.0 as u64, units.1 as u64, node.map_or(0, |node| node as u64) + 1]
                .map(GraphArgument::Word);
            let status = GraphArgument::Tensor { tensor: OF_STATUS, offset: 0 };
            let mut link = Link {
                args: [head.as_slice(), &number, &[status], &tail].concat(),
                cost: model.task(*units),
                node,
                is_named: name.is_some(),
            };
            let found = self.edges.producers(&accesses);
            let before = match parts.len() {
                1 => self.chain_for(&model, &found, &mut link),
                _ => None,
            };
            let task = match before {
                Some(before) => self.append(before, &found, link),
                None => self.add(&kernel, work.kind, &found, link, parts.len()),
            };
            self.edges.add(task, accesses);
        }
        self.edges.end();
        Ok(())
    }

    /// Adds a task of one link, of an operator with so many tasks.
    fn add(
        &mut self,
        kernel: &str,
        kind: CoreKind,
        found: &[Producer],
        link: Link,
        parts: usize,
    ) -> usize {
        let mut producers = Vec::new();
        for producer in found {
            match *producer {
                Producer::Task(task) => producers.push(task),
                Producer::All(group) => {
                    let tasks = self.edges.tasks_of(group);
                    if tasks.len() * parts > MOST_EDGES {
                        producers.push(self.join(group));
                    } else {
                        producers.extend(tasks);
                    }
                }
            }
        }
        let words = [1, link.cost.ns()].map(GraphArgument::Word);
        let args = [words.as_slice(), &link.args].concat();
        let state = TaskState {
            nodes: link.node.into_iter().collect(),
            cost: link.cost,
            is_open: parts == 1 && self.options.dispatch_ns > 0,
            ..TaskState::default()
        };
        self.push((kernel.to_owned(), kind), args, producers, state)
    }

    /// The task that a whole operator becomes a link of.
    fn chain_for(
        &self,
        model: &CostModel<'_>,
        found: &[Producer],
        link: &mut Link,
    ) -> Option<usize> {
        if let Some(before) = self.open_before(found, link, model.work.kind) {
            return Some(before);
        }
        // On a core of the other kind it may take longer by as much as a dispatch takes.
        let (kind, cost) = model.elsewhere()?;
        let is_worth_it = cost.ns() < link.cost.ns() + self.options.dispatch_ns;
        let before = self.open_before(found, link, kind).filter(|_| is_worth_it)?;
        link.cost = cost;
        Some(before)
    }

    /// The task that a further link may follow: the last one of those that the link waits for, if the others are over when it begins.
    fn open_before(&self, found: &[Producer], link: &Link, kind: CoreKind) -> Option<usize> {
        let all = self.tasks_of(found);
        let last = *all.last()?;
        let (task, state) = (&self.tasks[last], &self.states[last]);
        let waits_ns = all[..all.len() - 1].iter().map(|task| self.states[*task].ends_ns()).max();
        let delay_ns = waits_ns.map_or(0, |ends_ns| {
            (ends_ns + self.options.dispatch_ns).saturating_sub(state.begins_ns)
        });
        // Others that wait for the task wait for the link as well.
        let holds_up_ns = if state.has_consumer { link.cost.ns() } else { 0 };
        let is_open = state.is_open
            && task.kind == kind
            && task.args.len() + link.args.len() <= MAX_ARGS
            && delay_ns + holds_up_ns < self.options.dispatch_ns;
        is_open.then_some(last)
    }

    /// The tasks that are meant, in order.
    fn tasks_of(&self, found: &[Producer]) -> Vec<usize> {
        let tasks = found.iter().flat_map(|producer| match producer {
            Producer::Task(task) => std::slice::from_ref(task),
            Producer::All(group) => self.edges.tasks_of(*group),
        });
        let mut tasks: Vec<usize> = tasks.copied().collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    }

    /// Adds a link to a task.
    fn append(&mut self, last: usize, found: &[Producer], link: Link) -> usize {
        let producers = self.tasks_of(found);
        let (task, state) = (&mut self.tasks[last], &mut self.states[last]);
        state.cost = state.cost.sum(link.cost);
        state.nodes.extend(link.node);
        let links = link_count(task) + 1;
        let head = [links, state.cost.ns()].map(GraphArgument::Word);
        task.args[..HEAD].clone_from_slice(&head);
        task.args.extend(link.args);
        task.producers.extend(producers.into_iter().filter(|producer| *producer != last));
        task.producers.sort_unstable();
        task.producers.dedup();
        let nodes = state.nodes.iter().map(|node| self.graph.nodes[*node].name.as_str());
        task.kernel = chain_name(link.is_named.then(|| nodes.collect()), last);
        last
    }

    fn push(
        &mut self,
        (kernel, kind): (String, CoreKind),
        args: Vec<GraphArgument>,
        mut producers: Vec<usize>,
        mut state: TaskState,
    ) -> usize {
        producers.sort_unstable();
        producers.dedup();
        for producer in &producers {
            let before = &mut self.states[*producer];
            before.has_consumer = true;
            let begins_ns = before.ends_ns() + self.options.dispatch_ns;
            state.begins_ns = state.begins_ns.max(begins_ns);
        }
        let block_shape = BlockShape::plain();
        self.tasks.push(GraphTask { kernel, kind, args, producers, block_shape });
        self.states.push(state);
        self.tasks.len() - 1
    }

    /// The task that waits for all tasks of a group.
    fn join(&mut self, group: usize) -> usize {
        if let Some(task) = self.edges.joined(group) {
            return task;
        }
        let producers = self.edges.tasks_of(group).to_vec();
        let kernel = ("empty_aiv".to_owned(), CoreKind::AIV);
        let task = self.push(kernel, Vec::new(), producers, TaskState::default());
        self.edges.set_joined(group, task);
        task
    }

    fn program(
        self,
        inputs: &[(String, TensorType)],
        outputs: &[(String, TensorType)],
    ) -> Result<Program, (String, String)> {
        let name = self.graph.name.clone();
        let told = |error: pto_workload::program::ProgramError| (name.clone(), error.to_string());
        let bytes_of = |words: Vec<u64>| -> Vec<u8> {
            let words = if words.is_empty() { vec![0] } else { words };
            bytemuck::cast_slice(&words).to_vec()
        };
        let (descriptions, constants) = (bytes_of(self.descriptions), bytes_of(self.constants));
        let words =
            |name: &str, role: Role, count: u64, begins_with_zeros: bool| TensorDescription {
                name: name.to_owned(),
                role,
                dtype: DType::U64.stored(),
                shape: vec![count.max(1)],
                layout: TensorLayout::device(),
                begins_with_zeros,
            };
        let mut tensors = vec![
            words(DESCRIPTIONS, Role::Input, descriptions.len() as u64 / 8, false),
            words(STATUS, Role::Output, 4, true),
            words(CONSTANTS, Role::Input, constants.len() as u64 / 8, false),
            words(ACTIVATIONS, Role::Temporary, self.planner.peak().div_ceil(8), false),
        ];
        let described = |role: Role| {
            move |(name, ty): &(String, TensorType)| TensorDescription {
                name: name.clone(),
                role,
                dtype: ty.dtype.stored(),
                shape: ty.stored_shape(),
                layout: TensorLayout::device(),
                begins_with_zeros: false,
            }
        };
        tensors.extend(inputs.iter().map(described(Role::Input)));
        tensors.extend(outputs.iter().map(described(Role::Output)));
        let program = Program::new(&name, ProgramBody::Graph(self.tasks), tensors).map_err(told)?;
        let program = program.with_constant(DESCRIPTIONS, descriptions).map_err(told)?;
        let program = program.with_constant(CONSTANTS, constants).map_err(told)?;
        let side = |side: &[(String, TensorType)]| side.iter().map(described_by_model).collect();
        let nodes = self.graph.nodes.iter().map(|node| node.name.clone()).collect();
        let (inputs, outputs) = (side(inputs), side(outputs));
        program.with_model(ModelDescription { inputs, outputs, nodes }).map_err(told)
    }
}

fn described_by_model((name, ty): &(String, TensorType)) -> ModelTensor {
    ModelTensor {
        name: name.clone(),
        shape: ty.shape.iter().map(|extent| *extent as u64).collect(),
        is_bool: ty.dtype == DType::Bool,
    }
}

/// The units of each task: (first, count).
fn split(model: &CostModel<'_>, options: &LowerOptions) -> Vec<(usize, usize)> {
    let units = model.work.units;
    let cores = options.cores.get(model.work.kind.index()).copied().unwrap_or(1);
    let wanted = model.task((0, units)).ns() / options.grain_ns.max(1);
    let parts = usize::try_from(wanted).unwrap_or(usize::MAX).clamp(1, cores.max(1)).min(units);
    let mut size = units.div_ceil(parts);
    // Many small units are elements: parts begin at cache lines.
    if size > 1024 {
        size = size.next_multiple_of(64);
    }
    (0..units).step_by(size).map(|first| (first, size.min(units - first))).collect()
}

/// The bytes that a task touches.
fn accesses(work: &WorkSplit, units: (usize, usize), (ins, outs): Tensors<'_>) -> Vec<Access> {
    let access =
        |(location, ty): (Location, &TensorType), reach: &crate::kernel::Reach, writes: bool| {
            let (from, to) = reach.of(units, ty.elements());
            let size = ty.dtype.bytes() as u64;
            Access {
                tensor: location.tensor,
                from: location.offset + from as u64 * size,
                to: location.offset + to as u64 * size,
                writes,
            }
        };
    let reads = ins
        .iter()
        .zip(&work.inputs)
        .filter_map(|(input, reach)| Some(access((*input)?, reach, false)));
    let writes = outs.iter().zip(&work.outputs).map(|(output, reach)| access(*output, reach, true));
    reads.chain(writes).filter(|access| access.from < access.to).collect()
}
