//! The tree as words.

use pto_graph::plan::layout::{
    NO_DIMENSION, RANK_SHIFT, axis, expression, form, index, node, schedule,
};

use crate::tree::{
    Axis, Dispatch, Expr, Index, Loop, Process, ScalarType, Schedule, Task, TaskArgument,
    TensorExchange, TensorSlice, TreeNode, Workload, sends,
};
use pto_aicore_kernels::tile::element::bits_of;
use pto_aicore_kernels::tile::{Param, ParamKind, TileType};

use super::expression::{constant, wide, word, write};
use super::names::{SymbolTable, SymbolUse, ZERO, number};
use super::source_map::SourceMap;

/// Writes the nodes of a workload.
pub(super) struct PlanWriter<'w> {
    pub(super) workload: &'w Workload,
    pub(super) words: Vec<u32>,
    pub(super) names: SymbolTable,
    pub(super) places: SourceMap,
    /// The process that is written.
    pub(super) process: String,
}

impl PlanWriter<'_> {
    fn begin(&mut self) {
        self.places.begin(self.words.len(), &self.names.vars);
    }

    fn expr(&mut self, expr: &Expr) -> ScalarType {
        write(expr, &mut self.names, &mut self.words)
    }

    /// A word that says how many words follow after another word.
    fn measure(&mut self, at: usize, start: usize, shift: u32) {
        let length = number(self.words.len() - start);
        if let Some(word) = self.words.get_mut(at) {
            *word |= length << shift;
        }
    }

    /// Appends a node.
    pub(super) fn node(&mut self, node: &TreeNode) {
        self.begin();
        match node {
            TreeNode::Empty => self.words.push(word(node::EMPTY, 0)),
            TreeNode::Pipeline(processes) => self.pipeline(processes),
            TreeNode::Send { channel, task } => self.send(*channel, task),
            TreeNode::Exchange(exchange) => self.exchange(exchange),
            TreeNode::Consume { channel, var, body } => self.consume(*channel, var, body),
            TreeNode::ParallelFor(around, body) | TreeNode::Select(around, body) => {
                self.around(around, body, 0);
            }
            TreeNode::ForEach(around, body) => self.around(around, body, axis::IN_ORDER),
            TreeNode::Cond { predicate, then, otherwise } => {
                self.branch(predicate, then, otherwise)
            }
            TreeNode::Task(task) => self.task(task),
            TreeNode::Combine(nodes) | TreeNode::Sequential(nodes) => {
                self.words.push(word(node::BLOCK, number(nodes.len())));
                nodes.iter().for_each(|node| self.node(node));
            }
            TreeNode::SlotSet { slot, value } => {
                self.words.push(word(node::SLOT_SET, (*slot).into()));
                self.expr(value);
            }
            TreeNode::SlotLoad { slot, view, row, col } => self.load(*slot, view, [row, col]),
        }
    }

    fn exchange(&mut self, exchange: &TensorExchange) {
        let TensorExchange { kind, tensor, reduction, peer, tag } = exchange;
        let name = &self.workload.tensors[*tensor].name;
        self.places.enter(format!("exchange {kind} {name}"));
        self.begin();
        let operand = u32::from(kind.get()) | number(*tensor) << 8;
        self.words.extend([word(node::EXCHANGE, operand), reduction.get().into()]);
        self.expr(peer);
        self.expr(tag);
        self.places.leave();
    }

    fn branch(&mut self, predicate: &Expr, then: &TreeNode, otherwise: &TreeNode) {
        let at = self.words.len();
        self.words.extend([word(node::COND, 0), 0]);
        self.expr(predicate);
        let start = self.words.len();
        self.node(then);
        self.measure(at, start, 8);
        let start = self.words.len();
        self.node(otherwise);
        self.measure(at + 1, start, 0);
    }

    /// Appends a loop; `order`: whether its iterations are in order, as a flag of its axis.
    fn around(&mut self, around: &Loop, body: &TreeNode, order: u32) {
        let (at, depth) = (self.words.len(), self.names.vars.len());
        self.places.enter(format!("loop {}{}", around.var, axis_text(&around.axis)));
        self.begin();
        let (kind, words) = self.axis(&around.axis);
        let kind = kind | order;
        let count = if around.places.is_some() { 3 } else { 1 };
        self.words.extend([word(node::LOOP, number(depth) | count << 8 | kind << 16), 0]);
        self.words.extend(words);
        self.names.vars.push(around.var.clone());
        self.names.vars.extend(around.places.iter().flatten().cloned());
        let start = self.words.len();
        self.node(body);
        self.measure(at + 1, start, 0);
        self.names.vars.truncate(depth);
        self.places.leave();
    }

    /// Appends the processes: the whole tree.
    fn pipeline(&mut self, processes: &[Process]) {
        let channels = &self.workload.channels;
        self.words
            .push(word(node::PIPELINE, number(processes.len()) | number(channels.len()) << 8));
        self.words.extend(channels.iter().map(|channel| count(channel.depth)));
        for kernel in &self.workload.kernels {
            self.words.extend(wide(kernel.code().whole_cycles()));
        }
        for process in processes {
            self.places.enter(format!("process {}", process.name));
            self.process = process.called();
            let at = self.words.len();
            let rank = u32::from(process.rank) << RANK_SHIFT;
            self.words.extend([0, sent_by(&process.body, channels.len()) | rank]);
            self.node(&process.body);
            self.measure(at, at + 2, 0);
            self.places.leave();
        }
    }

    /// The first word of a node at which the process may wait, which says for whom.
    fn waits(&mut self, waits: String, first: u32) {
        let around = self.places.set_aside(waits);
        self.begin();
        self.words.push(first);
        self.places.put_back(around);
        self.begin();
    }

    fn send(&mut self, channel: usize, task: &Task) {
        let takers = self.processes_that(|process| process.consumes.contains(&channel));
        let name = &self.workload.channels[channel].name;
        let waits = format!("{} waits until {takers} takes a token of {name}", self.process);
        self.waits(waits, word(node::SEND, number(channel)));
        self.expr(task.axes.first().unwrap_or(&ZERO));
        self.task(task);
    }

    fn consume(&mut self, channel: usize, var: &str, body: &TreeNode) {
        let senders = self.processes_that(|process| sends(&process.body, channel));
        let name = &self.workload.channels[channel].name;
        let waits = format!("{} waits for a token of {name} from {senders}", self.process);
        self.places.enter(format!("consume {name}"));
        let (at, depth) = (self.words.len() + 1, self.names.vars.len());
        self.waits(waits, word(node::CONSUME, number(depth) | number(channel) << 8));
        self.words.push(0);
        self.names.vars.push(var.to_owned());
        self.node(body);
        self.measure(at, at + 1, 0);
        self.names.vars.truncate(depth);
        self.places.leave();
    }

    /// The names of processes.
    fn processes_that(&self, does: impl Fn(&Process) -> bool) -> String {
        let TreeNode::Pipeline(processes) = &self.workload.root else { return String::new() };
        let found = processes.iter().filter(|process| does(process));
        found.map(Process::called).collect::<Vec<_>>().join(" and ")
    }

    /// The code of an axis, and its words.
    fn axis(&mut self, axis: &Axis) -> (u32, Vec<u32>) {
        let names = &mut self.names;
        match axis {
            Axis::Dense(size) => (axis::DENSE, wide(*size).to_vec()),
            Axis::DenseDyn { name, default } => {
                (axis::DYNAMIC, vec![names.symbol(name, SymbolUse::Size(*default))])
            }
            Axis::Ragged { outer, lengths } => {
                (axis::RAGGED, vec![names.symbol(outer, SymbolUse::Number), names.array(lengths)])
            }
            Axis::Sparse { outer, indptr, indices } => {
                let rows = names.symbol(outer, SymbolUse::Number);
                (axis::SPARSE, vec![rows, names.array(indptr), names.array(indices)])
            }
        }
    }

    fn task(&mut self, task: &Task) {
        let kernel = &self.workload.kernels[task.kernel];
        self.places.enter(format!("kernel {}", kernel.name()));
        self.begin();
        self.words.push(word(node::TASK, number(task.kernel)));
        let at = self.words.len();
        self.words.extend([0, 0]);
        let mut forms = 0;
        for (position, (param, argument)) in kernel.params().iter().zip(&task.arguments).enumerate()
        {
            self.places.enter(format!("argument {}", param.name));
            self.begin();
            forms |= self.argument(param, argument) << (2 * position);
            self.places.leave();
        }
        self.words[at..at + 2].copy_from_slice(&wide(forms));
        self.schedule_of(task);
        self.places.leave();
    }

    /// Appends the schedule, where it asks for anything.
    pub(super) fn schedule(&mut self) {
        let schedule = &self.workload.schedule;
        let Some([flags, lanes]) = lanes(self.workload) else { return };
        let held = [schedule.batch, schedule.start].map(count);
        self.words.extend([word(node::SCHEDULE, flags), lanes, held[0], held[1]]);
    }

    /// Appends what the schedule asks of a task.
    fn schedule_of(&mut self, task: &Task) {
        let schedule = &self.workload.schedule;
        let Some([flags, _]) = lanes(self.workload) else { return };
        self.places.enter("its schedule".to_owned());
        self.begin();
        self.names.params.clone_from(&task.axes);
        let key = schedule.dispatch.key().filter(|_| flags & schedule::KEY != 0);
        for expr in key.into_iter().chain(&schedule.priority) {
            self.expr(expr);
        }
        self.names.params.clear();
        self.places.leave();
    }

    /// Appends an argument; returns what its word is, if it is a scalar.
    fn argument(&mut self, param: &Param, argument: &TaskArgument) -> u64 {
        match (param.kind, argument) {
            (ParamKind::Tensor { tile, .. }, TaskArgument::View(view)) => {
                self.view(view, tile);
                form::BITS
            }
            (_, TaskArgument::Expr(expr)) => match self.expr(expr) {
                ScalarType::I64 => form::SIGNED,
                ScalarType::Bool | ScalarType::U64 => form::UNSIGNED,
            },
            (_, TaskArgument::Symbol(name)) => {
                let float = self.names.symbol(name, SymbolUse::Float);
                self.words.push(word(expression::SYMBOL, float));
                form::F32
            }
            (ParamKind::Scalar(dtype), TaskArgument::Number(value)) => {
                constant(bits_of(dtype, *value), &mut self.words);
                form::BITS
            }
            // The workload was checked; the reader refuses the code.
            _ => {
                self.words.push(0);
                form::BITS
            }
        }
    }

    fn view(&mut self, view: &TensorSlice, tile: TileType) {
        let rank = self.workload.tensors[view.tensor].shape.len();
        let free: Vec<u32> = view.free(rank).map(number).collect();
        let [row, col] = match *free.as_slice() {
            [] => [NO_DIMENSION; 2],
            [only] if tile.rows != 1 => [only, NO_DIMENSION],
            [only] => [NO_DIMENSION, only],
            [row, col, ..] => [row, col],
        };
        self.words
            .push(number(view.tensor) | number(view.indices.len()) << 8 | row << 16 | col << 24);
        for found in &view.indices {
            match found {
                Index::At(at) => {
                    self.words.push(index::AT);
                    self.expr(at);
                }
                Index::Range { start, length } => {
                    self.words.push(index::RANGE);
                    self.expr(start);
                    self.expr(length);
                }
            }
        }
    }

    fn load(&mut self, slot: u16, view: &TensorSlice, at: [&Expr; 2]) {
        self.places.enter(format!("slot {slot}"));
        self.begin();
        let rank = self.workload.tensors[view.tensor].shape.len();
        self.words.push(word(node::SLOT_LOAD, u32::from(slot) | number(view.tensor) << 8));
        let free: Vec<usize> = view.free(rank).collect();
        let mut sides = at.into_iter().skip(2 - free.len().min(2));
        for dimension in 0..rank {
            match view.indices.get(dimension) {
                Some(index @ Index::At(_)) => self.expr(&index.element_at(ZERO)),
                Some(index) => self.expr(&index.element_at(sides.next().unwrap_or(&ZERO).clone())),
                None => self.expr(sides.next().unwrap_or(&ZERO)),
            };
        }
        self.places.leave();
    }
}

/// The flags of a workload's schedule and its lanes; `None`: it asks for nothing that a device has to do. The processes of a pipeline are its
/// workers, on this clock as on the other: no dispatch decides where their tasks go.
pub(super) fn lanes(workload: &Workload) -> Option<[u32; 2]> {
    let of: &Schedule = &workload.schedule;
    let has_one = of.workers <= 1 || matches!(workload.root, TreeNode::Pipeline(_));
    let is_free = of.dispatch == Dispatch::WorkSteal || has_one && !of.dispatch.is_in_order();
    let lanes = if is_free { 0 } else { of.workers };
    let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
    let flags = flag(lanes > 0 && of.dispatch.key().is_some(), schedule::KEY)
        | flag(of.priority.is_some(), schedule::PRIORITY)
        | flag(of.dispatch.is_in_order(), schedule::IN_ORDER);
    let is_asked = lanes > 0 || flags != 0 || of.batch > 0 || of.start > 0;
    is_asked.then_some([flags, count(lanes)])
}

/// The channels that a node sends to, a bit for each.
fn sent_by(node: &TreeNode, channels: usize) -> u32 {
    let sent = (0..channels.min(RANK_SHIFT as usize)).filter(|channel| sends(node, *channel));
    sent.fold(0, |bits, channel| bits | 1 << channel)
}

/// A count as a word. What is too large for it, the reader of plans refuses.
fn count(of: u64) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// What an axis reads, where it reads anything.
fn axis_text(axis: &Axis) -> String {
    match axis {
        Axis::Dense(_) => String::new(),
        Axis::DenseDyn { name, .. } => format!(" in dyn {name}"),
        Axis::Ragged { outer, lengths } => format!(" in ragged({outer}, {lengths})"),
        Axis::Sparse { outer, indptr, indices } => {
            format!(" in sparse({outer}, {indptr}, {indices})")
        }
    }
}
