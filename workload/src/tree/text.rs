//! The textual form of a workload, printed. What is printed reads as the same workload.
//!
//! ```text
//! workload doubles {
//!   schedule round_robin workers 4 window 8192 stall
//!   tensor X : f32[4, 8, 64]
//!   tensor Y : f32[4, 8, 64]
//!   kernel double(x: in f32[8, 64], y: out f32[8, 64]) { .. }
//!   do parallel i in dense 4 {
//!     double[i](x = X[i], y = Y[i])
//!   }
//! }
//! ```

use std::fmt::{Formatter, Result, Write};

use super::axis::Axis;
use super::expr::Expr;
use super::node::{Loop, Process, Task, TaskArgument, TensorExchange, TreeNode, peer_word};
use super::schedule::Schedule;
use super::view::{Index, TensorSlice};
use super::workload::Workload;

impl std::fmt::Display for Workload {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        workload(self, f)
    }
}

/// Prints a workload.
fn workload(workload: &Workload, f: &mut Formatter<'_>) -> Result {
    writeln!(f, "workload {} {{", workload.name)?;
    schedule(&workload.schedule, f)?;
    for tensor in &workload.tensors {
        let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
        writeln!(f, "  tensor {} : {}[{}]", tensor.name, tensor.dtype, shape.join(", "))?;
    }
    for channel in &workload.channels {
        writeln!(f, "  channel {} depth {}", channel.name, channel.depth)?;
    }
    for kernel in &workload.kernels {
        for line in kernel.to_string().lines() {
            writeln!(f, "  {line}")?;
        }
    }
    let mut printer = Printer { workload, text: String::new(), depth: 1 };
    printer.text.push_str("do ");
    printer.node(&workload.root)?;
    writeln!(f, "  {}\n}}", printer.text)
}

fn schedule(schedule: &Schedule, f: &mut Formatter<'_>) -> Result {
    let Schedule { dispatch, workers, window, priority, batch, start } = schedule;
    write!(f, "  schedule {}", dispatch.name())?;
    if let Some(key) = dispatch.key() {
        write!(f, " ({})", expression(key))?;
    }
    write!(f, " workers {workers} window {} {}", window.tasks, window.mode.name())?;
    if let Some(priority) = priority {
        write!(f, " priority ({})", expression(priority))?;
    }
    for (word, tasks) in [("batch", batch), ("start", start)] {
        if *tasks > 0 {
            write!(f, " {word} {tasks}")?;
        }
    }
    writeln!(f)
}

struct Printer<'a> {
    workload: &'a Workload,
    text: String,
    depth: usize,
}

impl Printer<'_> {
    fn line(&mut self) {
        self.text.push('\n');
        self.text.push_str(&"  ".repeat(self.depth));
    }

    fn block<'n>(&mut self, nodes: impl IntoIterator<Item = &'n TreeNode>) -> Result {
        self.text.push_str(" {");
        self.depth += 1;
        for node in nodes {
            self.line();
            self.node(node)?;
        }
        self.depth -= 1;
        self.line();
        self.text.push('}');
        Ok(())
    }

    fn node(&mut self, node: &TreeNode) -> Result {
        match node {
            TreeNode::Empty => write!(self.text, "empty"),
            TreeNode::ParallelFor(around, body) => self.around("parallel", around, body),
            TreeNode::ForEach(around, body) => self.around("each", around, body),
            TreeNode::Select(around, body) => self.around("select", around, body),
            TreeNode::Cond { predicate, then, otherwise } => {
                write!(self.text, "if {}", expression(predicate))?;
                self.block([&**then])?;
                self.text.push_str(" else");
                self.block([&**otherwise])
            }
            TreeNode::Task(task) => self.task(task),
            TreeNode::Combine(nodes) => {
                self.text.push_str("combine");
                self.block(nodes)
            }
            TreeNode::Sequential(nodes) => {
                self.text.push_str("sequential");
                self.block(nodes)
            }
            TreeNode::SlotSet { slot, value } => {
                write!(self.text, "slot {slot} = {}", expression(value))
            }
            TreeNode::SlotLoad { slot, view, row, col } => {
                let (view, row, col) = (self.view(view), expression(row), expression(col));
                write!(self.text, "slot {slot} from {view} at ({row}, {col})")
            }
            TreeNode::Pipeline(processes) => self.pipeline(processes),
            TreeNode::Exchange(exchange) => self.exchange(exchange),
            TreeNode::Send { channel, task } => {
                write!(self.text, "send {} ", self.channel(*channel))?;
                self.task(task)
            }
            TreeNode::Consume { channel, var, body } => {
                write!(self.text, "consume {} as {var}", self.channel(*channel))?;
                self.block([&**body])
            }
        }
    }

    fn around(&mut self, keyword: &str, around: &Loop, body: &TreeNode) -> Result {
        write!(self.text, "{keyword} {}", around.var)?;
        if let Some([first, second]) = &around.places {
            write!(self.text, " ({first}, {second})")?;
        }
        match &around.axis {
            Axis::Dense(size) => write!(self.text, " in dense {size}")?,
            Axis::DenseDyn { name, default: None } => write!(self.text, " in dyn {name}")?,
            Axis::DenseDyn { name, default: Some(size) } => {
                write!(self.text, " in dyn {name} default {size}")?;
            }
            Axis::Ragged { outer, lengths } => {
                write!(self.text, " in ragged({outer}, {lengths})")?;
            }
            Axis::Sparse { outer, indptr, indices } => {
                write!(self.text, " in sparse({outer}, {indptr}, {indices})")?;
            }
        }
        self.block([body])
    }

    fn exchange(&mut self, exchange: &TensorExchange) -> Result {
        let TensorExchange { kind, tensor, reduction, peer, tag } = exchange;
        let view = TensorSlice { tensor: *tensor, indices: Vec::new() };
        write!(self.text, "exchange {kind} {}", self.view(&view))?;
        if kind.reduces() {
            write!(self.text, " {reduction}")?;
        }
        if kind.has_peer() {
            write!(self.text, " {} {}", peer_word(*kind), expression(peer))?;
        }
        if kind.has_tag() {
            write!(self.text, " tag {}", expression(tag))?;
        }
        Ok(())
    }

    fn pipeline(&mut self, processes: &[Process]) -> Result {
        self.text.push_str("pipeline {");
        self.depth += 1;
        for process in processes {
            self.line();
            write!(self.text, "process {}", process.name)?;
            if process.rank > 0 {
                write!(self.text, " on {}", process.rank)?;
            }
            self.channels("consumes", &process.consumes)?;
            self.channels("produces", &process.produces)?;
            self.block([&process.body])?;
        }
        self.depth -= 1;
        self.line();
        self.text.push('}');
        Ok(())
    }

    fn channel(&self, channel: usize) -> String {
        let found = self.workload.channels.get(channel);
        found.map_or_else(|| format!("_{channel}"), |channel| channel.name.clone())
    }

    fn channels(&mut self, keyword: &str, channels: &[usize]) -> Result {
        if channels.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = channels.iter().map(|channel| self.channel(*channel)).collect();
        write!(self.text, " {keyword} {}", names.join(", "))
    }

    fn task(&mut self, task: &Task) -> Result {
        let axes: Vec<String> = task.axes.iter().map(expression).collect();
        let Some(kernel) = self.workload.kernels.get(task.kernel) else {
            return write!(self.text, "_{}[{}]()", task.kernel, axes.join(", "));
        };
        let arguments = kernel.params().iter().zip(&task.arguments);
        let arguments: Vec<String> = arguments
            .map(|(param, argument)| format!("{} = {}", param.name, self.argument(argument)))
            .collect();
        write!(self.text, "{}[{}]({})", kernel.name(), axes.join(", "), arguments.join(", "))
    }

    fn argument(&self, argument: &TaskArgument) -> String {
        match argument {
            TaskArgument::View(view) => self.view(view),
            TaskArgument::Expr(expr) => expression(expr),
            TaskArgument::Number(value) if value.is_finite() => format!("number({value:?})"),
            TaskArgument::Number(value) => format!("number(bits {:#x})", value.to_bits()),
            TaskArgument::Symbol(name) => format!("number(symbol {name})"),
        }
    }

    fn view(&self, view: &TensorSlice) -> String {
        let tensor = self.workload.tensors.get(view.tensor);
        let name = tensor.map_or_else(|| format!("_{}", view.tensor), |tensor| tensor.name.clone());
        if view.indices.is_empty() {
            return name;
        }
        let indices = view.indices.iter().map(|index| match index {
            Index::At(at_index) => expression(at_index),
            Index::Range { start, length } => {
                format!("{} for {}", expression(start), expression(length))
            }
        });
        format!("{name}[{}]", indices.collect::<Vec<_>>().join(", "))
    }
}

/// Prints an expression, every operator in parentheses.
pub(super) fn expression(expr: &Expr) -> String {
    match expr {
        Expr::Bool(value) => value.to_string(),
        Expr::Int(value) => value.to_string(),
        Expr::Unsigned(value) => format!("{value}u"),
        Expr::Var(name) => name.clone(),
        Expr::Symbol(name) => format!("symbol({name})"),
        Expr::Slot(slot, of) => format!("slot_{}({slot})", of.name()),
        Expr::Param(number) => format!("param({number})"),
        Expr::Unary(op, x) => format!("{}({})", op.mark(), expression(x)),
        Expr::Binary(op, operands) => {
            format!("({} {} {})", expression(&operands.0), op.mark(), expression(&operands.1))
        }
        Expr::Choice(parts) => {
            let [a, b, c] = [&parts.0, &parts.1, &parts.2].map(expression);
            format!("({a} ? {b} : {c})")
        }
        Expr::Cast(to, x) => format!("{}({})", to.name(), expression(x)),
    }
}
