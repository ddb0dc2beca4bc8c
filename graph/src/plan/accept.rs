//! The check of a plan. What holding a [`Plan`] proves:
//!
//! - Every part ends within the words, and where the plan says that it does; nothing is left over.
//! - Every code is known. Every tensor, kernel, symbol, array, variable and slot that is named is there; a variable is in scope.
//! - Nodes and expressions are nested at most as deep as [`limits`] says, and expressions are typed.
//! - A task has an argument for each parameter of its kernel. The dimensions of a view that stay are the sides of its tile, and
//!   its tensor has the kernel's element type.
//!
//! Sizes are not known yet: whether an index is in its tensor is seen when it is reached.
//!
//! Why it is so: `docs/decisions/plans.md`.

use pto_abi::fault::Fault;
use pto_abi::ids::{FuncId, GmAddr};
use pto_abi::kinds::CoreKind;

use super::cursor::Cursor;
use super::expression::{self, Kind, Names};
use super::layout::{
    HEADER_WORDS, KERNEL_WORDS, MAGIC, NO_DIMENSION, PARAM_WORDS, TENSOR_WORDS, VERSION, axis,
    header, index, limits, node, param,
};
use super::schedule::Schedule;
use super::stop::Stop;
use crate::element::ElementType;
use crate::group::{ExchangeKind, Reduction};
use crate::tensor::TensorView;

/// A plan that was checked.
#[derive(Clone, Debug)]
pub struct Plan<'p> {
    words: &'p [u32],
    root: usize,
    symbols: u32,
    arrays: u32,
    tensors: u32,
    pub(super) schedule: Option<Schedule>,
    /// The position of each kernel.
    kernels: heapless::Vec<usize, { limits::KERNELS }>,
}

/// A kernel of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelEntry {
    pub(super) func: FuncId,
    pub(super) kind: CoreKind,
    /// The first byte of its code.
    pub(super) code: u32,
    pub(super) bytes: u32,
    pub(super) params: u32,
    /// The index of the first word of the parameters.
    pub(super) params_at: usize,
}

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParamEntry {
    /// One of [`param`]'s.
    pub(super) role: u32,
    pub(super) element: u8,
    pub(super) is_loose: bool,
    /// Rows and columns.
    pub(super) tile: [u16; 2],
    pub(super) reach: [u16; 2],
}

impl ParamEntry {
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Self {
        let [role, element, flags, _] = cursor.word().to_le_bytes();
        let is_loose = u32::from(flags) & param::LOOSE != 0;
        let (tile, reach) = (pair(cursor.word()), pair(cursor.word()));
        Self { role: role.into(), element, is_loose, tile, reach }
    }

    pub(super) const fn is_tensor(&self) -> bool {
        self.role != param::SCALAR
    }
}

const fn pair(word: u32) -> [u16; 2] {
    let [a, b, c, d] = word.to_le_bytes();
    [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])]
}

impl<'p> Plan<'p> {
    /// Checks everything about a plan that does not depend on what is bound.
    ///
    /// # Errors
    /// `PLAN_HEADER`, `PLAN_LIMIT`, `PLAN_LENGTH`, `PLAN_CODE`, `PLAN_DEPTH`, `PLAN_TYPE` and `PLAN_NAME`, with the word at which
    /// the check stopped.
    pub fn accept(words: &'p [u32]) -> Result<Self, Stop> {
        Self::accept_with(words, |_| ())
    }

    /// As [`accept`](Self::accept), and calls `seen` for each tensor that is an argument of a task.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn accept_with(words: &'p [u32], seen: impl FnMut(TensorUse)) -> Result<Self, Stop> {
        let field = |at: usize| words.get(at).copied().unwrap_or(0);
        let expected = [
            (header::MAGIC, MAGIC.into()),
            (header::VERSION, VERSION.into()),
            (header::WORDS, words.len() as u64),
        ];
        for (at, expected) in expected {
            let found = u64::from(field(at));
            if found != expected || words.len() < HEADER_WORDS {
                return Err(Stop::new(Fault::PLAN_HEADER, at).detail(found, expected));
            }
        }
        let counts = [
            (header::WORDS, limits::WORDS),
            (header::TENSORS, limits::TENSORS),
            (header::KERNELS, limits::KERNELS),
            (header::SYMBOLS, limits::SYMBOLS),
            (header::ARRAYS, limits::ARRAYS),
        ];
        for (at, limit) in counts {
            if field(at) as usize > limit {
                return Err(Stop::new(Fault::PLAN_LIMIT, at).detail(field(at).into(), limit as u64));
            }
        }
        let (tensors, symbols, arrays) =
            (field(header::TENSORS), field(header::SYMBOLS), field(header::ARRAYS));
        let root = field(header::ROOT) as usize;
        let (schedule, kernels) = (None, heapless::Vec::new());
        let mut plan = Self { words, root, symbols, arrays, tensors, schedule, kernels };
        let mut cursor = Cursor::new(words, HEADER_WORDS);
        for _ in 0..tensors {
            check_tensor(&mut cursor)?;
        }
        for _ in 0..field(header::KERNELS) {
            // There is room for as many as the limit says.
            let _ = plan.kernels.push(cursor.at());
            check_kernel(&mut cursor)?;
        }
        if cursor.at() != root {
            return Err(
                Stop::new(Fault::PLAN_LENGTH, header::ROOT).detail(root as u64, cursor.at() as u64)
            );
        }
        plan.schedule = Schedule::accept(&mut cursor)?;
        plan.root = cursor.at();
        let mut checker = Checker { plan: &plan, vars: 0, process: None, seen };
        match cursor.clone().code() {
            (node::PIPELINE, _) => checker.pipeline(&mut cursor)?,
            _ => checker.node(&mut cursor, 0)?,
        }
        if cursor.at() != words.len() {
            return Err(Stop::new(Fault::PLAN_LENGTH, cursor.at())
                .detail(cursor.at() as u64, words.len() as u64));
        }
        Ok(plan)
    }

    /// Words of the plan.
    #[must_use]
    pub const fn words(&self) -> &'p [u32] {
        self.words
    }

    /// Symbols, arrays and tensors that have to be bound, and kernels.
    #[must_use]
    pub fn counts(&self) -> [u32; 4] {
        let kernels = u32::try_from(self.kernels.len()).unwrap_or(u32::MAX);
        [self.symbols, self.arrays, self.tensors, kernels]
    }

    /// At the root node.
    pub(super) const fn root(&self) -> Cursor<'p> {
        Cursor::new(self.words, self.root)
    }

    /// A cursor from a word on.
    pub(super) const fn from(&self, at: usize) -> Cursor<'p> {
        Cursor::new(self.words, at)
    }

    /// A tensor as it is at an address; `None`: the plan has none of this number.
    pub(super) fn tensor(&self, number: u32, base: GmAddr) -> Option<TensorView<'static>> {
        let at = HEADER_WORDS + number as usize * TENSOR_WORDS;
        (number < self.tensors).then(|| read_tensor(&mut self.from(at), base))?
    }

    /// A kernel; `None`: the plan has none of this number.
    #[inline]
    pub(super) fn kernel(&self, number: u32) -> Option<KernelEntry> {
        let at = *self.kernels.get(number as usize)?;
        read_kernel(&mut self.from(at))
    }
}

/// `None`: its element type is not known.
fn read_tensor(cursor: &mut Cursor<'_>, base: GmAddr) -> Option<TensorView<'static>> {
    let [element, rank, ..] = cursor.word().to_le_bytes();
    let mut shape = [0; limits::RANK];
    shape.iter_mut().for_each(|extent| *extent = cursor.word());
    let element = ElementType::try_from(element).ok()?;
    Some(TensorView::dense(base, element, shape.get(..usize::from(rank))?))
}

fn check_tensor(cursor: &mut Cursor<'_>) -> Result<(), Stop> {
    let at = cursor.at();
    if !cursor.has(TENSOR_WORDS) {
        return Err(Stop::new(Fault::PLAN_LENGTH, at));
    }
    let tensor = read_tensor(cursor, GmAddr::NULL).filter(|tensor| tensor.defect().is_none());
    tensor.map(drop).ok_or(Stop::new(Fault::PLAN_TYPE, at))
}

/// `None`: its cores are of no kind that there is.
#[inline]
fn read_kernel(cursor: &mut Cursor<'_>) -> Option<KernelEntry> {
    let [f0, f1, kind, params] = cursor.word().to_le_bytes();
    let (code, bytes) = (cursor.word(), cursor.word());
    let kind = CoreKind::try_from(kind).ok()?;
    let (func, params_at) = (FuncId(u16::from_le_bytes([f0, f1])), cursor.at());
    Some(KernelEntry { func, kind, code, bytes, params: params.into(), params_at })
}

fn check_kernel(cursor: &mut Cursor<'_>) -> Result<(), Stop> {
    let at = cursor.at();
    if !cursor.has(KERNEL_WORDS) {
        return Err(Stop::new(Fault::PLAN_LENGTH, at));
    }
    let wrong = Stop::new(Fault::PLAN_TYPE, at);
    let kernel = read_kernel(cursor).ok_or(wrong)?;
    if kernel.params as usize > limits::PARAMS {
        return Err(
            Stop::new(Fault::PLAN_LIMIT, at).detail(kernel.params.into(), limits::PARAMS as u64)
        );
    }
    for _ in 0..kernel.params {
        let at = cursor.at();
        if !cursor.has(PARAM_WORDS) {
            return Err(Stop::new(Fault::PLAN_LENGTH, at));
        }
        let param = ParamEntry::read(cursor);
        let is_tile = !param.is_tensor() || !param.tile.contains(&0);
        if param.role > param::SCALAR || ElementType::try_from(param.element).is_err() || !is_tile {
            return Err(Stop::new(Fault::PLAN_TYPE, at));
        }
    }
    Ok(())
}

/// A tensor that is an argument of a task, by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TensorUse {
    /// The kernel of the task.
    pub kernel: u32,
    /// The parameter of the kernel.
    pub param: u32,
    /// The tensor.
    pub tensor: u32,
}

/// Goes through the nodes.
struct Checker<'c, 'p, F> {
    plan: &'c Plan<'p>,
    /// Loop variables in scope.
    vars: u32,
    /// What the process that is checked may do; `None`: it is no pipeline.
    process: Option<Process>,
    seen: F,
}

/// Channels of a pipeline, and those that a process sends to, a bit for each.
#[derive(Clone, Copy)]
struct Process {
    channels: u32,
    sends: u32,
}

impl<F: FnMut(TensorUse)> Checker<'_, '_, F> {
    const fn names(&self) -> Names {
        Names { vars: self.vars, symbols: self.plan.symbols }
    }

    fn node(&mut self, cursor: &mut Cursor<'_>, depth: u32) -> Result<(), Stop> {
        let at = cursor.at();
        let is_process = self.process.is_some();
        let most = if is_process { limits::PROCESS_DEPTH } else { limits::NODE_DEPTH };
        if depth >= most {
            return Err(Stop::new(Fault::PLAN_DEPTH, at).detail(depth.into(), most.into()));
        }
        let (code, operand) = cursor.code();
        match code {
            node::EMPTY => Ok(()),
            node::BLOCK => (0..operand).try_for_each(|_| self.node(cursor, depth + 1)),
            node::LOOP => self.around(cursor, (at, operand), depth),
            node::COND => {
                let second = cursor.word();
                self.expression(cursor, Some(Kind::Truth))?;
                self.measured(cursor, operand, depth + 1)?;
                self.measured(cursor, second, depth + 1)
            }
            node::TASK => self.task(cursor, (at, operand)),
            node::SLOT_SET => {
                named(operand, limits::SLOTS, at)?;
                self.expression(cursor, None)
            }
            node::SLOT_LOAD => {
                let found = self.plan.tensor(operand >> 8, GmAddr::NULL);
                let tensor = found.ok_or(Stop::new(Fault::PLAN_NAME, at))?;
                tensor.shape().iter().try_for_each(|_| self.expression(cursor, Some(Kind::Number)))
            }
            node::SEND => self.send(cursor, (at, operand)),
            node::CONSUME => self.consume(cursor, (at, operand), depth),
            node::EXCHANGE if !is_process => self.exchange(cursor, (at, operand)),
            _ => Err(Stop::new(Fault::PLAN_CODE, at).detail(code.into(), node::EXCHANGE.into())),
        }
    }

    fn exchange(
        &mut self,
        cursor: &mut Cursor<'_>,
        (at, operand): (usize, u32),
    ) -> Result<(), Stop> {
        named(operand >> 8, self.plan.tensors, at)?;
        let [kind, ..] = operand.to_le_bytes();
        let is_known = ExchangeKind::try_from(kind).is_ok();
        let reduction = u8::try_from(cursor.word()).map(Reduction::try_from);
        if !is_known || !matches!(reduction, Ok(Ok(_))) {
            return Err(Stop::new(Fault::PLAN_CODE, at).detail(kind.into(), 0));
        }
        self.expression(cursor, Some(Kind::Number))?;
        self.expression(cursor, Some(Kind::Number))
    }

    /// The processes, which are the whole tree.
    fn pipeline(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let at = cursor.at();
        let (_, operand) = cursor.code();
        let (processes, channels) = (operand & 0xFF, operand >> 8);
        let mut counts = [(processes, limits::PROCESSES), (channels, limits::CHANNELS), (0, 0)];
        // A schedule may not order single tasks here, because the process orders them.
        if self.plan.schedule.is_some() {
            return Err(Stop::new(Fault::PLAN_CODE, at));
        }
        if channels as usize <= limits::CHANNELS {
            let slots = (0..channels).map(|_| slots_of(cursor.word(), processes));
            counts[2] = (slots.fold(0, u32::saturating_add), limits::TOKENS);
        }
        for (count, limit) in counts {
            if count as usize > limit {
                return Err(Stop::new(Fault::PLAN_LIMIT, at).detail(count.into(), limit as u64));
            }
        }
        for _ in &self.plan.kernels {
            cursor.wide();
        }
        for _ in 0..processes {
            let (body, sends) = (cursor.word(), cursor.word());
            self.process = Some(Process { channels, sends });
            // The body is the first node of its process.
            self.measured(cursor, body, 0)?;
        }
        Ok(())
    }

    /// A channel of the process that is checked.
    fn channel(&self, number: u32, at: usize) -> Result<Process, Stop> {
        let process = self.process.ok_or(Stop::new(Fault::PLAN_CODE, at))?;
        named(number, process.channels, at)?;
        Ok(process)
    }

    fn send(&mut self, cursor: &mut Cursor<'_>, (at, channel): (usize, u32)) -> Result<(), Stop> {
        // A channel is closed when all that send to it have ended.
        if self.channel(channel, at)?.sends >> channel & 1 == 0 {
            return Err(Stop::new(Fault::PLAN_NAME, at).detail(channel.into(), 0));
        }
        self.expression(cursor, Some(Kind::Number))?;
        let at = cursor.at();
        match cursor.code() {
            (node::TASK, number) => self.task(cursor, (at, number)),
            (code, _) => {
                Err(Stop::new(Fault::PLAN_CODE, at).detail(code.into(), node::TASK.into()))
            }
        }
    }

    fn consume(
        &mut self,
        cursor: &mut Cursor<'_>,
        (at, operand): (usize, u32),
        depth: u32,
    ) -> Result<(), Stop> {
        let (var, body) = (operand & 0xFF, cursor.word());
        self.channel(operand >> 8, at)?;
        self.check_scope((var, 1), at)?;
        self.scope(cursor, 1, (body, depth + 1))
    }

    /// Whether so many variables may come into scope, `first` being the first of them.
    fn check_scope(&self, (first, count): (u32, u32), at: usize) -> Result<(), Stop> {
        if first != self.vars {
            return Err(Stop::new(Fault::PLAN_NAME, at).detail(first.into(), self.vars.into()));
        }
        let end = first + count;
        if end as usize > limits::VARS {
            return Err(Stop::new(Fault::PLAN_LIMIT, at).detail(end.into(), limits::VARS as u64));
        }
        Ok(())
    }

    /// Checks a node that has this many variables in scope in addition to the present ones.
    fn scope(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: u32,
        (words, depth): (u32, u32),
    ) -> Result<(), Stop> {
        self.vars += count;
        self.measured(cursor, words, depth)?;
        self.vars -= count;
        Ok(())
    }

    /// A node whose words are counted in front of it, at this depth.
    fn measured(&mut self, cursor: &mut Cursor<'_>, words: u32, depth: u32) -> Result<(), Stop> {
        let start = cursor.at();
        self.node(cursor, depth)?;
        let found = cursor.at() - start;
        if found == words as usize {
            return Ok(());
        }
        Err(Stop::new(Fault::PLAN_LENGTH, start).detail(found as u64, words.into()))
    }

    fn expression(&self, cursor: &mut Cursor<'_>, needed: Option<Kind>) -> Result<(), Stop> {
        let at = cursor.at();
        let found = expression::check(cursor, self.names(), 0)?;
        if needed.is_none_or(|needed| needed == found) {
            return Ok(());
        }
        Err(Stop::new(Fault::PLAN_TYPE, at))
    }

    fn around(
        &mut self,
        cursor: &mut Cursor<'_>,
        (at, operand): (usize, u32),
        depth: u32,
    ) -> Result<(), Stop> {
        let [first, count, kind, _] = operand.to_le_bytes().map(u32::from);
        let body = cursor.word();
        let kind = kind & !axis::IN_ORDER;
        let has_places = matches!(kind, axis::RAGGED | axis::SPARSE);
        if !(count == 1 || count == 3 && has_places) {
            return Err(Stop::new(Fault::PLAN_NAME, at).detail(first.into(), self.vars.into()));
        }
        self.check_scope((first, count), at)?;
        let (symbols, arrays) = (self.plan.symbols, self.plan.arrays);
        match kind {
            axis::DENSE => {
                cursor.wide();
            }
            axis::DYNAMIC => named(cursor.word(), symbols, at)?,
            axis::RAGGED | axis::SPARSE => {
                named(cursor.word(), symbols, at)?;
                named(cursor.word(), arrays, at)?;
                if kind == axis::SPARSE {
                    named(cursor.word(), arrays, at)?;
                }
            }
            _ => {
                return Err(
                    Stop::new(Fault::PLAN_CODE, at).detail(kind.into(), axis::SPARSE.into())
                );
            }
        }
        self.scope(cursor, count, (body, depth + 1))
    }

    fn task(&mut self, cursor: &mut Cursor<'_>, (at, number): (usize, u32)) -> Result<(), Stop> {
        let kernel = self.plan.kernel(number).ok_or(Stop::new(Fault::PLAN_NAME, at))?;
        cursor.wide();
        let mut params = self.plan.from(kernel.params_at);
        for param in 0..kernel.params {
            let entry = ParamEntry::read(&mut params);
            if entry.is_tensor() {
                let tensor = self.view(cursor, &entry)?;
                (self.seen)(TensorUse { kernel: number, param, tensor });
            } else {
                self.expression(cursor, None)?;
            }
        }
        let expressions = self.plan.schedule.map_or(0, Schedule::expressions);
        (0..expressions).try_for_each(|_| self.expression(cursor, Some(Kind::Number)))
    }

    /// A view; its tensor.
    fn view(&self, cursor: &mut Cursor<'_>, param: &ParamEntry) -> Result<u32, Stop> {
        let at = cursor.at();
        let [number, count, row, col] = cursor.word().to_le_bytes().map(u32::from);
        let tensor =
            self.plan.tensor(number, GmAddr::NULL).ok_or(Stop::new(Fault::PLAN_NAME, at))?;
        let wrong = Stop::new(Fault::PLAN_TYPE, at);
        let rank = u32::try_from(tensor.shape().len()).unwrap_or(0);
        if tensor.element().get() != param.element
            || count > rank
            || (row == col && row != NO_DIMENSION)
        {
            return Err(wrong);
        }
        let is_side = |dim: u32| dim == row || dim == col;
        for dim in 0..rank {
            let kind = if dim < count { cursor.word() } else { index::RANGE };
            // The dimensions that stay are the sides, and no other one is.
            if (kind == index::RANGE) != is_side(dim) || kind > index::RANGE {
                return Err(wrong);
            }
            if dim < count {
                self.expression(cursor, Some(Kind::Number))?;
                if kind == index::RANGE {
                    self.expression(cursor, Some(Kind::Number))?;
                }
            }
        }
        let is_there = |dim: u32| dim == NO_DIMENSION || dim < rank;
        if is_there(row) && is_there(col) { Ok(number) } else { Err(wrong) }
    }
}

/// Slots for tokens of a channel.
pub(super) fn slots_of(depth: u32, processes: u32) -> u32 {
    if depth == 0 { processes } else { depth }
}

fn named(number: u32, limit: u32, at: usize) -> Result<(), Stop> {
    if number < limit {
        return Ok(());
    }
    Err(Stop::new(Fault::PLAN_NAME, at).detail(number.into(), limit.into()))
}
