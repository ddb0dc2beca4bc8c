//! The textual form of a workload, read.

use crate::kernel::parse::{dtype, kernel};
use crate::lexer::ParseError;
use crate::lexer::{Lexer, Token};
use pto_aicore_kernels::tile::ParamKind;

use super::axis::Axis;
use super::expr::Expr;
use super::node::{
    Channel, ExchangeKind, Loop, Process, Reduction, Task, TaskArgument, TensorExchange, TreeNode,
    peer_word,
};
use super::parse_expr::expression;
use super::schedule::{Dispatch, Schedule, TaskWindow, WindowMode};
use super::view::{Index, Tensor, TensorSlice};
use super::workload::Workload;

/// How deep nodes may are in one another.
const DEPTH: usize = 200;

impl Workload {
    /// Reads the textual form.
    ///
    /// # Errors
    /// Where the text is not a workload.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        workload(text)
    }
}

/// A workload.
fn workload(text: &str) -> Result<Workload, ParseError> {
    // Some editors write a byte order mark before the text.
    let mut lexer = Lexer::new(text.trim_start_matches('\u{FEFF}'))?;
    lexer.keyword("workload")?;
    let mut found = Workload::new(&lexer.name()?, TreeNode::Empty);
    lexer.mark("{")?;
    found.schedule = schedule(&mut lexer)?;
    while lexer.takes_name("tensor") {
        let tensor = tensor(&mut lexer)?;
        found.tensors.push(tensor);
    }
    while lexer.takes_name("channel") {
        let name = lexer.name()?;
        lexer.keyword("depth")?;
        let depth = lexer.unsigned()?;
        found.channels.push(Channel { name, depth });
    }
    while matches!(lexer.peek(), Token::Name(name) if name == "kernel") {
        found.kernels.push(kernel(&mut lexer)?);
    }
    lexer.keyword("do")?;
    let mut parser = Parser { lexer, workload: found };
    let root = parser.node(DEPTH)?;
    parser.lexer.mark("}")?;
    match parser.lexer.peek() {
        Token::End => Ok(Workload { root, ..parser.workload }),
        other => Err(parser.lexer.error(format!("expected the end of the text, found {other}"))),
    }
}

fn schedule(lexer: &mut Lexer) -> Result<Schedule, ParseError> {
    if !lexer.takes_name("schedule") {
        return Ok(Schedule::default());
    }
    let name = lexer.name()?;
    let key = if lexer.takes("(") { Some(closed(lexer)?) } else { None };
    let dispatch = match (name.as_str(), key) {
        ("round_robin", None) => Dispatch::RoundRobin,
        ("work_steal", None) => Dispatch::WorkSteal,
        ("affinity", Some(key)) => Dispatch::Affinity(key),
        ("hash", Some(key)) => Dispatch::Hash(key),
        ("by", Some(key)) => Dispatch::By(key),
        ("stream", Some(key)) => Dispatch::Stream(key),
        ("streams", None) => Dispatch::Streams,
        _ => return Err(lexer.error_before(format!("`{name}` is no dispatch with this key"))),
    };
    lexer.keyword("workers")?;
    let workers = lexer.unsigned()?;
    lexer.keyword("window")?;
    let tasks = lexer.unsigned()?;
    let mode = WindowMode::ALL.into_iter().find(|mode| lexer.takes_name(mode.name()));
    let mode = mode.ok_or_else(|| lexer.error("expected `stall`, `abort` or `benchmark`"))?;
    let mut found = Schedule { dispatch, workers, ..Schedule::default() };
    found.window = TaskWindow { tasks, mode };
    if lexer.takes_name("priority") {
        lexer.mark("(")?;
        found.priority = Some(closed(lexer)?);
    }
    for (word, tasks) in [("batch", &mut found.batch), ("start", &mut found.start)] {
        if lexer.takes_name(word) {
            *tasks = lexer.unsigned()?;
        }
    }
    Ok(found)
}

/// An expression whose opening parenthesis was read.
fn closed(lexer: &mut Lexer) -> Result<Expr, ParseError> {
    let found = expression(lexer)?;
    lexer.mark(")")?;
    Ok(found)
}

fn tensor(lexer: &mut Lexer) -> Result<Tensor, ParseError> {
    let name = lexer.name()?;
    lexer.mark(":")?;
    let dtype = dtype(lexer)?;
    lexer.mark("[")?;
    let mut shape = Vec::new();
    while !lexer.takes("]") {
        if !shape.is_empty() {
            lexer.mark(",")?;
        }
        shape.push(lexer.unsigned()?);
    }
    Ok(Tensor { name, dtype, shape })
}

struct Parser {
    lexer: Lexer,
    /// The names that nodes refer to.
    workload: Workload,
}

impl Parser {
    fn block(&mut self, depth: usize) -> Result<Box<TreeNode>, ParseError> {
        self.lexer.mark("{")?;
        let node = self.node(depth)?;
        self.lexer.mark("}")?;
        Ok(Box::new(node))
    }

    fn blocks(&mut self, depth: usize) -> Result<Vec<TreeNode>, ParseError> {
        self.lexer.mark("{")?;
        let mut nodes = Vec::new();
        while !self.lexer.takes("}") {
            nodes.push(self.node(depth)?);
        }
        Ok(nodes)
    }

    fn node(&mut self, depth: usize) -> Result<TreeNode, ParseError> {
        let Some(depth) = depth.checked_sub(1) else {
            let message = format!("nodes stand in one another more than {DEPTH} deep");
            return Err(self.lexer.error(message));
        };
        // A task begins with the name of its kernel, which may be any name.
        if matches!(self.lexer.ahead(1), Token::Mark("[")) {
            return self.task().map(TreeNode::Task);
        }
        let keyword = self.lexer.name()?;
        match keyword.as_str() {
            "empty" => Ok(TreeNode::Empty),
            "parallel" => Ok(TreeNode::ParallelFor(self.around()?, self.block(depth)?)),
            "each" => Ok(TreeNode::ForEach(self.around()?, self.block(depth)?)),
            "select" => Ok(TreeNode::Select(self.around()?, self.block(depth)?)),
            "if" => {
                let predicate = expression(&mut self.lexer)?;
                let then = self.block(depth)?;
                self.lexer.keyword("else")?;
                Ok(TreeNode::Cond { predicate, then, otherwise: self.block(depth)? })
            }
            "combine" => Ok(TreeNode::Combine(self.blocks(depth)?)),
            "sequential" => Ok(TreeNode::Sequential(self.blocks(depth)?)),
            "slot" => self.slot(),
            "pipeline" => self.pipeline(depth),
            "exchange" => self.exchange(),
            "send" => {
                let channel = self.channel()?;
                Ok(TreeNode::Send { channel, task: self.task()? })
            }
            "consume" => {
                let channel = self.channel()?;
                self.lexer.keyword("as")?;
                let var = self.lexer.name()?;
                Ok(TreeNode::Consume { channel, var, body: self.block(depth)? })
            }
            other => Err(self.lexer.error_before(format!("`{other}` begins no node"))),
        }
    }

    fn around(&mut self) -> Result<Loop, ParseError> {
        let lexer = &mut self.lexer;
        let var = lexer.name()?;
        let places = if lexer.takes("(") {
            let first = lexer.name()?;
            lexer.mark(",")?;
            let second = lexer.name()?;
            lexer.mark(")")?;
            Some([first, second])
        } else {
            None
        };
        lexer.keyword("in")?;
        Ok(Loop { var, places, axis: self.axis()? })
    }

    fn axis(&mut self) -> Result<Axis, ParseError> {
        let lexer = &mut self.lexer;
        let kind = lexer.name()?;
        match kind.as_str() {
            "dense" => Ok(Axis::Dense(lexer.unsigned()?)),
            "dyn" => {
                let name = lexer.name()?;
                let default =
                    if lexer.takes_name("default") { Some(lexer.unsigned()?) } else { None };
                Ok(Axis::DenseDyn { name, default })
            }
            "ragged" => {
                let [outer, lengths] = self.symbols()?;
                Ok(Axis::Ragged { outer, lengths })
            }
            "sparse" => {
                let [outer, indptr, indices] = self.symbols()?;
                Ok(Axis::Sparse { outer, indptr, indices })
            }
            other => Err(lexer.error_before(format!("`{other}` is no axis"))),
        }
    }

    /// Parses `N` names in parentheses.
    fn symbols<const N: usize>(&mut self) -> Result<[String; N], ParseError> {
        self.lexer.mark("(")?;
        let mut names = [const { String::new() }; N];
        for (number, name) in names.iter_mut().enumerate() {
            if number > 0 {
                self.lexer.mark(",")?;
            }
            *name = self.lexer.name()?;
        }
        self.lexer.mark(")")?;
        Ok(names)
    }

    fn slot(&mut self) -> Result<TreeNode, ParseError> {
        let slot = self.lexer.unsigned()?;
        if !self.lexer.takes_name("from") {
            self.lexer.mark("=")?;
            return Ok(TreeNode::SlotSet { slot, value: expression(&mut self.lexer)? });
        }
        let view = self.view()?;
        self.lexer.keyword("at")?;
        self.lexer.mark("(")?;
        let row = expression(&mut self.lexer)?;
        self.lexer.mark(",")?;
        let col = expression(&mut self.lexer)?;
        self.lexer.mark(")")?;
        Ok(TreeNode::SlotLoad { slot, view, row, col })
    }

    fn exchange(&mut self) -> Result<TreeNode, ParseError> {
        let name = self.lexer.name()?;
        let kind = ExchangeKind::ALL.iter().find(|kind| kind.name() == name);
        let kind = *kind.ok_or_else(|| {
            let names: Vec<_> = ExchangeKind::ALL.iter().map(|kind| kind.name()).collect();
            self.lexer.error_before(format!("`{name}` is no exchange: {}", names.join(", ")))
        })?;
        let tensor = self.view()?.tensor;
        let mut exchange = TensorExchange::of_all(kind, tensor, Reduction::SUM);
        if kind.reduces() {
            let name = self.lexer.name()?;
            let found = Reduction::ALL.iter().find(|reduction| reduction.name() == name);
            let none = || self.lexer.error_before(format!("`{name}` is no reduction"));
            exchange.reduction = *found.ok_or_else(none)?;
        }
        if kind.has_peer() {
            self.lexer.keyword(peer_word(kind))?;
            exchange.peer = expression(&mut self.lexer)?;
        }
        if kind.has_tag() {
            self.lexer.keyword("tag")?;
            exchange.tag = expression(&mut self.lexer)?;
        }
        Ok(TreeNode::Exchange(exchange))
    }

    fn pipeline(&mut self, depth: usize) -> Result<TreeNode, ParseError> {
        self.lexer.mark("{")?;
        let mut processes = Vec::new();
        while self.lexer.takes_name("process") {
            let name = self.lexer.name()?;
            let rank = if self.lexer.takes_name("on") { self.lexer.unsigned()? } else { 0 };
            let consumes = self.channels("consumes")?;
            let produces = self.channels("produces")?;
            let body = *self.block(depth)?;
            processes.push(Process { name, rank, consumes, produces, body });
        }
        self.lexer.mark("}")?;
        Ok(TreeNode::Pipeline(processes))
    }

    fn channels(&mut self, keyword: &str) -> Result<Vec<usize>, ParseError> {
        let mut channels = Vec::new();
        if !self.lexer.takes_name(keyword) {
            return Ok(channels);
        }
        channels.push(self.channel()?);
        while self.lexer.takes(",") {
            channels.push(self.channel()?);
        }
        Ok(channels)
    }

    fn channel(&mut self) -> Result<usize, ParseError> {
        let name = self.lexer.name()?;
        let found = self.workload.channels.iter().position(|channel| channel.name == name);
        found.ok_or_else(|| self.lexer.error_before(format!("there is no channel `{name}`")))
    }

    fn task(&mut self) -> Result<Task, ParseError> {
        let name = self.lexer.name()?;
        let kernel = self.workload.kernels.iter().position(|kernel| kernel.name() == name);
        let kernel = kernel
            .ok_or_else(|| self.lexer.error_before(format!("there is no kernel `{name}`")))?;
        self.lexer.mark("[")?;
        let mut axes = Vec::new();
        while !self.lexer.takes("]") {
            if !axes.is_empty() {
                self.lexer.mark(",")?;
            }
            axes.push(expression(&mut self.lexer)?);
        }
        self.lexer.mark("(")?;
        let mut arguments = Vec::new();
        for (number, param) in self.workload.kernels[kernel].params().to_vec().iter().enumerate() {
            if number > 0 {
                self.lexer.mark(",")?;
            }
            self.lexer.keyword(param.name.as_str())?;
            self.lexer.mark("=")?;
            arguments.push(self.argument(param.kind)?);
        }
        self.lexer.mark(")")?;
        Ok(Task { kernel, axes, arguments })
    }

    fn argument(&mut self, kind: ParamKind) -> Result<TaskArgument, ParseError> {
        if matches!(kind, ParamKind::Tensor { .. }) {
            return self.view().map(TaskArgument::View);
        }
        let is_number = matches!(self.lexer.ahead(1), Token::Mark("("));
        if !(is_number && self.lexer.takes_name("number")) {
            return expression(&mut self.lexer).map(TaskArgument::Expr);
        }
        self.lexer.mark("(")?;
        let found = self.number()?;
        self.lexer.mark(")")?;
        Ok(found)
    }

    fn number(&mut self) -> Result<TaskArgument, ParseError> {
        if self.lexer.takes_name("symbol") {
            return self.lexer.name().map(TaskArgument::Symbol);
        }
        if self.lexer.takes_name("bits") {
            return Ok(TaskArgument::Number(f64::from_bits(self.lexer.unsigned()?)));
        }
        let text = self.lexer.signed_text()?;
        let number = text.parse();
        number
            .map(TaskArgument::Number)
            .map_err(|_| self.lexer.error_before("the number is not valid"))
    }

    fn view(&mut self) -> Result<TensorSlice, ParseError> {
        let name = self.lexer.name()?;
        let tensor = self.workload.tensors.iter().position(|tensor| tensor.name == name);
        let tensor = tensor
            .ok_or_else(|| self.lexer.error_before(format!("there is no tensor `{name}`")))?;
        let mut indices = Vec::new();
        if self.lexer.takes("[") {
            while !self.lexer.takes("]") {
                if !indices.is_empty() {
                    self.lexer.mark(",")?;
                }
                indices.push(self.index()?);
            }
        }
        Ok(TensorSlice { tensor, indices })
    }

    fn index(&mut self) -> Result<Index, ParseError> {
        let start = expression(&mut self.lexer)?;
        if self.lexer.takes_name("for") {
            return Ok(Index::Range { start, length: expression(&mut self.lexer)? });
        }
        Ok(Index::At(start))
    }
}
