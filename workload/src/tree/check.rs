//! What is checked when a workload is built.

use std::collections::BTreeSet;

use pto_abi::numbers::Counted;
use pto_aicore_kernels::tile::{Name, Param, ParamKind, TileType};

use super::axis::Axis;
use super::exact;
use super::expr::{Expr, SLOTS, ScalarType};
use super::node::{Loop, Process, Task, TaskArgument, TensorExchange, TreeNode, sends, takes};
use super::ranks;
use super::typing::{Scope, type_of};
use super::view::{Index, TensorSlice};
use super::workload::Workload;

/// Workers of a schedule, at most: the clock keeps the time of each.
const MOST_WORKERS: u64 = 1 << 16;

/// What is wrong with a workload, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Workload {workload}{path}: {message}")]
pub struct WorkloadError {
    /// The workload.
    pub workload: String,
    /// The loops around it, the kernel and the argument: each after a comma.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
}

/// A warning about something that is allowed, but may not be intended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// As in [`WorkloadError::path`].
    pub path: String,
    /// What is unusual.
    pub message: String,
}

/// A workload that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    workload: Workload,
    warnings: Vec<Warning>,
}

impl Checked {
    /// The workload.
    #[must_use]
    pub const fn workload(&self) -> &Workload {
        &self.workload
    }

    /// What is allowed, and may not be meant.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

impl Workload {
    /// Checks everything that can be checked before the sizes are known.
    ///
    /// # Errors
    /// What is wrong first.
    pub fn check(self) -> Result<Checked, WorkloadError> {
        check(self)
    }
}

/// Checks a workload.
fn check(workload: Workload) -> Result<Checked, WorkloadError> {
    let mut checker = Checker {
        workload: &workload,
        path: Vec::new(),
        loops: Vec::new(),
        process: None,
        warnings: Vec::new(),
    };
    checker.names()?;
    checker.schedule()?;
    if let TreeNode::Pipeline(processes) = &workload.root {
        checker.pipeline(processes)?;
    } else {
        checker.node(&workload.root)?;
        if !workload.channels.is_empty() {
            return Err(checker.error("It has channels and no pipeline."));
        }
    }
    let warnings = checker.warnings;
    Ok(Checked { workload, warnings })
}

struct Checker<'a> {
    workload: &'a Workload,
    /// What is around: loops, kernel, argument.
    path: Vec<String>,
    /// The loop variables in scope, with the axes of those that have one.
    loops: Vec<(&'a str, &'a Axis)>,
    process: Option<&'a Process>,
    warnings: Vec<Warning>,
}

/// An axis about which nothing is known: that of a token, or of an index in a row.
const UNKNOWN: &Axis = &Axis::DenseDyn { name: String::new(), default: None };

type Outcome = Result<(), WorkloadError>;

impl<'a> Checker<'a> {
    fn path(&self) -> String {
        self.path.iter().map(|part| format!(", {part}")).collect()
    }

    fn error(&self, message: impl Into<String>) -> WorkloadError {
        let workload = self.workload.name.clone();
        WorkloadError { workload, path: self.path(), message: message.into() }
    }

    fn at(&mut self, part: String, check: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        self.path.push(part);
        check(self)?;
        self.path.pop();
        Ok(())
    }

    fn names(&self) -> Outcome {
        let Workload { tensors, kernels, channels, .. } = self.workload;
        self.distinct("kernels", kernels.iter().map(|kernel| kernel.name()))?;
        self.distinct("tensors", tensors.iter().map(|tensor| tensor.name.as_str()))?;
        self.distinct("channels", channels.iter().map(|channel| channel.name.as_str()))?;
        self.name("a workload", &self.workload.name)
    }

    fn name(&self, what: &str, name: &str) -> Outcome {
        match Name::new(name) {
            Some(_) => Ok(()),
            None => Err(self.error(format!(
                "{name:?} is no name for {what}. Use up to 47 letters, digits and underscores, and no digit first."
            ))),
        }
    }

    fn distinct<'n>(&self, what: &str, names: impl Iterator<Item = &'n str>) -> Outcome {
        let mut seen = BTreeSet::new();
        for name in names {
            self.name(&format!("one of the {what}"), name)?;
            if !seen.insert(name) {
                return Err(
                    self.error(format!("Two of its {what} have the name {name}. Rename one."))
                );
            }
        }
        Ok(())
    }

    fn schedule(&mut self) -> Outcome {
        let schedule = &self.workload.schedule;
        if schedule.workers == 0 {
            return Err(self.error("The schedule has no worker. It needs at least 1."));
        }
        if schedule.workers > MOST_WORKERS {
            let what = format!(
                "The schedule has {} workers. The limit is {MOST_WORKERS}.",
                schedule.workers
            );
            return Err(self.error(what));
        }
        // The key is typed where tasks are: its variables are theirs.
        Ok(())
    }

    fn expr(&self, expr: &Expr, params: Option<usize>) -> Result<ScalarType, WorkloadError> {
        let vars = self.loops.iter().map(|(var, _)| (*var).to_owned()).collect();
        type_of(expr, &Scope { vars, params }).map_err(|message| self.error(message))
    }

    fn integer(&self, expr: &Expr, what: &str) -> Outcome {
        match self.expr(expr, None)? {
            ScalarType::Bool => {
                Err(self.error(format!("The {what} is bool and must be an integer.")))
            }
            _ => Ok(()),
        }
    }

    fn node(&mut self, node: &'a TreeNode) -> Outcome {
        match node {
            TreeNode::Empty => Ok(()),
            TreeNode::ParallelFor(around, body) | TreeNode::ForEach(around, body) => {
                self.around(around, body)
            }
            TreeNode::Select(around, body) => match around.axis {
                Axis::Sparse { .. } => self.around(around, body),
                _ => Err(self.error("A selection goes over a sparse axis. Use a parallel loop.")),
            },
            TreeNode::Cond { predicate, then, otherwise } => {
                if self.expr(predicate, None)? != ScalarType::Bool {
                    return Err(self.error("A predicate must be bool. Compare it with a number."));
                }
                self.node(then)?;
                self.node(otherwise)
            }
            TreeNode::Task(task) => self.task(task),
            TreeNode::Combine(nodes) | TreeNode::Sequential(nodes) => {
                nodes.iter().try_for_each(|node| self.node(node))
            }
            TreeNode::SlotSet { slot, value } => {
                self.slot(*slot)?;
                self.expr(value, None).map(drop)
            }
            TreeNode::SlotLoad { slot, view, row, col } => {
                self.slot(*slot)?;
                self.integer(row, "row")?;
                self.integer(col, "column")?;
                self.view(view).map(drop)
            }
            TreeNode::Pipeline(_) => {
                Err(self.error("A pipeline is inside another node. It must be the whole workload."))
            }
            TreeNode::Exchange(exchange) => self.exchange(exchange),
            TreeNode::Send { channel, task } => self.send(*channel, task),
            TreeNode::Consume { channel, var, body } => self.consume(*channel, var, body),
        }
    }

    fn exchange(&mut self, exchange: &'a TensorExchange) -> Outcome {
        let TensorExchange { kind, tensor, peer, tag, .. } = exchange;
        if self.process.is_some() {
            let message = "A process of a pipeline exchanges a tensor with other ranks. Do it before the pipeline or after it, in a workload of its own.";
            return Err(self.error(message));
        }
        if *tensor >= self.workload.tensors.len() {
            return Err(self.error(format!("There is no tensor with number {tensor}.")));
        }
        self.at(format!("exchange {kind}"), |checker| {
            checker.integer(peer, "rank")?;
            checker.integer(tag, "tag")
        })
    }

    fn slot(&self, slot: u16) -> Outcome {
        if usize::from(slot) < SLOTS {
            return Ok(());
        }
        Err(self.error(format!("There is no slot {slot}. The last one is {}.", SLOTS - 1)))
    }

    /// Adds a variable, which must not hide another.
    fn bind(&mut self, var: &'a str, axis: &'a Axis) -> Outcome {
        self.name("a loop variable", var)?;
        if self.loops.iter().any(|(other, _)| *other == var) {
            let message = format!(
                "The loop variable {var} hides that of a loop around it. Give one of them another name."
            );
            return Err(self.error(message));
        }
        self.loops.push((var, axis));
        Ok(())
    }

    fn around(&mut self, around: &'a Loop, body: &'a TreeNode) -> Outcome {
        let depth = self.loops.len();
        self.at(format!("loop {}", around.var), |checker| {
            checker.axis(&around.axis)?;
            checker.bind(&around.var, &around.axis)?;
            let has_places = matches!(around.axis, Axis::Ragged { .. } | Axis::Sparse { .. });
            if around.places.is_some() && !has_places {
                return Err(
                    checker.error("Only ragged and sparse axes give more variables than one.")
                );
            }
            for path in around.places.iter().flatten() {
                checker.bind(path, UNKNOWN)?;
            }
            checker.node(body)
        })?;
        self.loops.truncate(depth);
        Ok(())
    }

    fn axis(&self, axis: &Axis) -> Outcome {
        let names: &[&String] = match axis {
            Axis::Dense(_) => &[],
            Axis::DenseDyn { name, .. } => &[name],
            Axis::Ragged { outer, lengths } => &[outer, lengths],
            Axis::Sparse { outer, indptr, indices } => &[outer, indptr, indices],
        };
        names.iter().try_for_each(|name| self.name("a symbol", name))
    }

    fn task(&mut self, task: &'a Task) -> Outcome {
        let Some(kernel) = self.workload.kernels.get(task.kernel) else {
            return Err(self.error(format!("There is no kernel with number {}.", task.kernel)));
        };
        self.at(format!("kernel {}", kernel.name()), |checker| {
            for axis in &task.axes {
                checker.integer(axis, "axis")?;
            }
            let (params, arguments) = (kernel.params(), &task.arguments);
            if params.len() != arguments.len() {
                return Err(checker.error(format!(
                    "The kernel has {}, and the task gives {}.",
                    Counted(params.len() as u64, "parameter"),
                    Counted(arguments.len() as u64, "argument")
                )));
            }
            for (param, argument) in params.iter().zip(arguments) {
                checker.at(format!("argument {}", param.name), |checker| {
                    checker.argument(param, argument)
                })?;
            }
            checker.key(task, params)
        })
    }

    /// What the schedule asks of a task: the key that chooses its worker, and its priority.
    fn key(&mut self, task: &Task, params: &[Param]) -> Outcome {
        let tensors = params.iter().filter(|param| param.tensor().is_some()).count();
        let count = task.axes.len() + tensors + params.len();
        let schedule = &self.workload.schedule;
        let key = schedule.dispatch.key().map(|key| ("key of the dispatch", "key", key));
        let priority = schedule.priority.as_ref().map(|of| ("priority", "priority", of));
        for (path, what, expr) in key.into_iter().chain(priority) {
            self.at(path.to_owned(), |checker| match checker.expr(expr, Some(count))? {
                ScalarType::Bool => {
                    Err(checker.error(format!("The {what} is bool and must be an integer.")))
                }
                _ => Ok(()),
            })?;
        }
        Ok(())
    }

    fn argument(&mut self, param: &Param, argument: &'a TaskArgument) -> Outcome {
        match (param.kind, argument) {
            (ParamKind::Tensor { tile, .. }, TaskArgument::View(view)) => self.tile(tile, view),
            (ParamKind::Scalar(_), TaskArgument::Expr(expr)) => self.expr(expr, None).map(drop),
            (ParamKind::Scalar(_), TaskArgument::Number(_)) => Ok(()),
            (ParamKind::Scalar(_), TaskArgument::Symbol(name)) => self.name("a symbol", name),
            (ParamKind::Tensor { tile, .. }, _) => {
                Err(self.error(format!("The kernel needs a tile {tile} here, and gets a scalar.")))
            }
            (ParamKind::Scalar(dtype), TaskArgument::View(_)) => {
                Err(self
                    .error(format!("The kernel needs a scalar {dtype} here, and gets a tensor.")))
            }
        }
    }

    fn tile(&mut self, tile: TileType, view: &'a TensorSlice) -> Outcome {
        let extents = self.view(view)?;
        let tensor = &self.workload.tensors[view.tensor];
        if tensor.dtype != tile.dtype {
            return Err(self.error(format!(
                "The kernel needs {tile}, and the tensor {} is of type {}.",
                tensor.name, tensor.dtype
            )));
        }
        let shape = match extents.as_slice() {
            [] => [1, 1],
            [cols] if tile.rows == 1 => [1, *cols],
            [rows] if tile.cols == 1 => [*rows, 1],
            [rows, cols] => [*rows, *cols],
            open => {
                let remedy = match open.len() {
                    0..=2 => "Give the tile one row or one column.",
                    _ => "Index the leading ones.",
                };
                let open = Counted(open.len() as u64, "dimension");
                return Err(self.error(format!(
                    "The view of {} has {open} without an index, and {tile} takes two. {remedy}",
                    tensor.name
                )));
            }
        };
        if shape != [u64::from(tile.rows), u64::from(tile.cols)] && !has_range(view) {
            let message = format!(
                "The tile {tile} is not the view of {}, which has {} x {} elements.",
                tensor.name, shape[0], shape[1]
            );
            self.warnings.push(Warning { path: self.path(), message });
        }
        Ok(())
    }

    /// Checks a view; returns the extents of the dimensions that stay.
    fn view(&self, view: &TensorSlice) -> Result<Vec<u64>, WorkloadError> {
        let Some(tensor) = self.workload.tensors.get(view.tensor) else {
            return Err(self.error(format!("There is no tensor with number {}.", view.tensor)));
        };
        let rank = tensor.shape.len();
        if view.indices.len() > rank {
            return Err(self.error(format!(
                "The view of {} has {} indices, and the tensor {}.",
                tensor.name,
                view.indices.len(),
                Counted(rank as u64, "dimension")
            )));
        }
        for (dimension, index) in view.indices.iter().enumerate() {
            match index {
                Index::At(path) => {
                    self.integer(path, "index")?;
                    self.in_tensor(path, &Expr::Int(1), view.tensor, dimension)?;
                }
                Index::Range { start, length } => {
                    self.integer(start, "start of a range")?;
                    self.integer(length, "length of a range")?;
                    self.in_tensor(start, length, view.tensor, dimension)?;
                }
            }
        }
        Ok(view.free(rank).map(|dimension| tensor.shape[dimension]).collect())
    }

    /// Whether a range of this many indices begins inside its dimension, where both values are known.
    fn in_tensor(&self, start: &Expr, length: &Expr, tensor: usize, dimension: usize) -> Outcome {
        let Some((low, high)) = exact::bounds(start, &self.loops) else { return Ok(()) };
        let tensor = &self.workload.tensors[tensor];
        let extent = tensor.shape[dimension];
        let has_places = exact::bounds(length, &self.loops).is_some_and(|(fewest, _)| fewest > 0);
        // An empty range may begin at the end. Of lengths that are not known, the run sees it.
        let is_inside = low >= 0 && (high < i128::from(extent) || !has_places);
        if is_inside {
            return Ok(());
        }
        let wrong = if low < 0 { low } else { high };
        Err(self.error(format!(
            "The index of dimension {dimension} of {} becomes {wrong}, and the dimension has {extent} places.",
            tensor.name
        )))
    }

    fn send(&mut self, channel: usize, task: &'a Task) -> Outcome {
        let name = self.channel(channel, "sends", |process| &process.produces)?;
        if task.axes.is_empty() {
            return Err(self.error(format!(
                "The task that is sent to {name} has no axis, and its first axis is the token."
            )));
        }
        self.task(task)
    }

    fn consume(&mut self, channel: usize, var: &'a str, body: &'a TreeNode) -> Outcome {
        let name = self.channel(channel, "consumes", |process| &process.consumes)?;
        let depth = self.loops.len();
        self.at(format!("tokens of {name}"), |checker| {
            checker.bind(var, UNKNOWN)?;
            checker.node(body)
        })?;
        self.loops.truncate(depth);
        Ok(())
    }

    /// A channel that the process has declared.
    fn channel(
        &self,
        channel: usize,
        does: &str,
        declared: impl Fn(&Process) -> &Vec<usize>,
    ) -> Result<&'a str, WorkloadError> {
        let Some(found) = self.workload.channels.get(channel) else {
            return Err(self.error(format!("There is no channel with number {channel}.")));
        };
        match self.process {
            None => Err(self.error(format!("Only a process of a pipeline {does}."))),
            Some(process) if declared(process).contains(&channel) => Ok(&found.name),
            Some(process) => Err(self.error(format!(
                "The process {} {does} from or to {}, and does not declare it.",
                process.name, found.name
            ))),
        }
    }

    fn pipeline(&mut self, processes: &'a [Process]) -> Outcome {
        self.distinct("processes", processes.iter().map(|process| process.name.as_str()))?;
        for process in processes {
            self.process = Some(process);
            self.at(format!("process {}", process.name), |checker| checker.node(&process.body))?;
            self.process = None;
        }
        for (number, channel) in self.workload.channels.iter().enumerate() {
            let sends = processes.iter().any(|process| sends(&process.body, number));
            let takes = processes.iter().any(|process| takes(&process.body, number));
            let name = &channel.name;
            if !sends {
                return Err(self.error(format!("No process sends to the channel {name}.")));
            }
            if !takes {
                return Err(self.error(format!("No process consumes the channel {name}.")));
            }
        }
        ranks::check(self.workload, processes).map_err(|message| self.error(message))
    }
}

fn has_range(view: &TensorSlice) -> bool {
    view.indices.iter().any(|index| matches!(index, Index::Range { .. }))
}
