//! Recording: tasks are written on the tape, with their edges, instead of being added.
//!
//! The edges come from the tensor map, as in a submission: the tasks of a record are numbered as if they were added now,
//! and their tensors have addresses that nobody else's have, so that nothing else meets them, then or later.

mod lists;

use pto_abi::stream::{RingKind, slots_for_recordings};
use pto_abi::sync::Sharing;
use pto_abi::task::{SHAPED, chunks_for};
use pto_abi::{Fault, GmAddr, TaskId};
use pto_graph::{
    Arg, DependencyMode, HeapTag, MAX_BOUND, PLACEHOLDER, Predicate, RECORDED_DEPTH, Recording,
    ScopeId, TaskSpec, TensorTask, TensorView,
};

use super::builder::Stream;
use super::map::{Access, AccessKind, Hide};
use super::region::Region;
use super::scopes::view_fault;
use super::shape_line::ShapeLine;
use super::submit::access_of;
use super::tape::{HEAP, LITERAL, SCALARS, TENSORS, Tape, TaskHead, Totals, Touch};
use crate::blame::Blame;
use crate::builder::{BLOCK_0_OF_1, BuilderHost, DeviceMemory};
use crate::fanout::FanoutPolicy;

/// In the base of a tensor of the record's heap.
const OF_HEAP: u64 = PLACEHOLDER | 1 << 61;
/// In the base under which a tensor of the host's stands in the map while a record is made.
const OF_HOST: u64 = 1 << 63;
/// Bits of an address of GM.
const ADDRESS: u64 = (1 << 48) - 1;

/// What a task does to its tensors, by argument. It reads the element of its predicate as if that stood behind its arguments.
fn accesses_of<'t>(
    task: &TensorTask<'t>,
) -> impl Iterator<Item = (u32, &'t TensorView<'t>, AccessKind)> {
    let predicate = task.block_shape.when().map(|when| (arg_count(task), when.element()));
    let predicate = predicate.map(|(at, element)| (at, element, AccessKind::Read));
    let args = (0_u32..).zip(task.args).filter_map(|(index, arg)| {
        let (view, kind) = access_of(arg)?;
        Some((index, view, kind))
    });
    args.chain(predicate)
}

/// How many arguments a task has: the number under which its predicate is named.
fn arg_count(task: &TensorTask<'_>) -> u32 {
    u32::try_from(task.args.len()).unwrap_or(u32::MAX)
}

/// The record that is being made.
pub(super) struct Draft {
    start: usize,
    next: usize,
    serial: u32,
    totals: Totals,
    scope: ScopeId,
    /// Why it is of no use: a task could not be written down as it is.
    broken: Option<Fault>,
    /// The last touch of each binding.
    last: [u32; 1 + MAX_BOUND],
}

impl Draft {
    /// Where tasks and lists may end: where its argument words begin.
    fn bound(&self) -> usize {
        self.totals.words().start
    }

    /// Where the consumers would end, with a word for each task, which it takes to make that list.
    const fn wanted(&self) -> usize {
        self.next + self.totals.edges as usize + self.totals.tasks as usize
    }

    /// Where its first task stands.
    const fn first_task(&self) -> usize {
        Tape::binding(self.start, self.totals.tensors as usize)
    }

    /// Whether this scope is around the record, or its own.
    pub(super) const fn is_in(&self, scope: ScopeId) -> bool {
        scope.depth <= self.scope.depth
    }

    /// Whether a tensor of a heap belongs to the record.
    pub(super) const fn holds(&self, heap: HeapTag) -> bool {
        heap.depth > self.scope.depth
    }
}

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
    pub(super) fn begin(&mut self, shapes: &[TensorView<'_>]) -> Result<u32, Fault> {
        if self.draft.is_some() {
            return Err(self.blame.leave(Blame::of(Fault::STREAM_RECORDING_OPEN)));
        }
        if shapes.len() > MAX_BOUND {
            return Err(self.record_full(shapes.len() as u64, MAX_BOUND as u64));
        }
        self.advance();
        let start = self.taped;
        let tensors = u32::try_from(shapes.len()).unwrap_or(0);
        for (index, shape) in (0_u32..).zip(shapes) {
            if let Some(defect) = shape.defect() {
                return Err(self.blame.leave(Blame::of(view_fault(defect)).argument(index)));
            }
            self.tape.put_binding(Tape::binding(start, index as usize), shape);
        }
        let scope = self.open(DependencyMode::DERIVED)?;
        self.record_count += 1;
        let words_end = u32::try_from(self.tape.end).unwrap_or(u32::MAX);
        let totals = Totals { tensors, words_end, ..Totals::default() };
        let next = Tape::binding(start, shapes.len());
        let last = [0; 1 + MAX_BOUND];
        let serial = self.record_count;
        self.draft = Some(Draft { start, next, serial, totals, scope, broken: None, last });
        Ok(serial)
    }

    pub(super) fn end(&mut self) -> Result<Recording, Fault> {
        let Some(mut draft) = self.draft.take() else {
            return Err(self.blame.leave(Blame::of(Fault::STREAM_NOT_RECORDING)));
        };
        self.close(draft.scope)?;
        if let Some(fault) = draft.broken {
            return Err(self.blame.leave(Blame::of(fault)));
        }
        let held = draft.bound();
        self.put_lists(&mut draft);
        if draft.next > held {
            return Err(self.record_full(draft.next as u64, held as u64));
        }
        self.tape.put_totals(draft.start, &draft.totals);
        (self.taped, self.tape.end) = (draft.next, held);
        let used = (draft.next + self.tape.words.len()).saturating_sub(held);
        let slots = slots_for_recordings(used as u64);
        self.takes(RingKind::WINDOW, slots.max(draft.totals.tasks.into()));
        let at = u32::try_from(draft.start).unwrap_or(u32::MAX);
        Ok(Recording { run: self.run(), at, tasks: draft.totals.tasks })
    }

    /// Checks the tensors of a task; how many of them it reads or writes.
    fn look_at(&mut self, task: &TensorTask<'_>) -> Result<u64, Fault> {
        let (mut accesses, mut writes) = (0, 0);
        for (index, arg) in (0_u32..).zip(task.args) {
            let Some(view) = arg.tensor() else { continue };
            if view.defect().is_some() || !self.is_alive(view.heap()) {
                return Err(self.refuse_view(view, task, index));
            }
            self.check_inner(view, task, index)?;
            let Some((_, kind)) = access_of(arg) else { continue };
            accesses += 1;
            if kind == AccessKind::Write {
                if writes > 0 {
                    self.check_outputs(view, task, index)?;
                }
                writes += 1;
            }
        }
        if let Some(predicate) = task.block_shape.when() {
            self.look_at_predicate(task, predicate)?;
            accesses += 1;
        }
        Ok(accesses)
    }

    /// As for an argument, behind the arguments. A bound element is looked at when it is bound.
    fn look_at_predicate(
        &mut self,
        task: &TensorTask<'_>,
        predicate: &Predicate<'_>,
    ) -> Result<(), Fault> {
        let (element, at) = (predicate.element(), arg_count(task));
        self.look_at_element(task, element, at)?;
        self.check_inner(element, task, at)?;
        let (address, bytes) = (element.address(), element.element().bytes());
        if Self::base_of(element) == LITERAL && !self.memory.has_element(address, bytes) {
            return Err(self.refuse_argument(Fault::STREAM_PREDICATE, task, at, address.0));
        }
        Ok(())
    }

    /// A tensor of a heap belongs to the record.
    fn check_inner(
        &mut self,
        view: &TensorView<'_>,
        task: &TensorTask<'_>,
        index: u32,
    ) -> Result<(), Fault> {
        let is_inner = self.draft.as_ref().is_some_and(|draft| draft.holds(view.heap()));
        if view.heap().depth > 0 && !is_inner {
            return Err(self.refuse_argument(Fault::STREAM_REPLAY_MISFIT, task, index, 0));
        }
        Ok(())
    }

    #[cold]
    fn record_full(&mut self, found: u64, bound: u64) -> Fault {
        self.blame.leave(Blame::of(Fault::STREAM_RECORDING_FULL).detail(found, bound))
    }

    /// Where the scope that a tensor of a record belongs to is open.
    pub(super) fn is_recorded(&self, heap: HeapTag) -> bool {
        let Some(draft) = &self.draft else { return false };
        heap.depth == RECORDED_DEPTH && heap.serial == u64::from(draft.serial)
    }

    /// A tensor on the heap that each replay has.
    pub(super) fn record_heap(&mut self, bytes: u64) -> Option<GmAddr> {
        let draft = self.draft.as_mut()?;
        let place = draft.totals.heap_bytes;
        draft.totals.heap_bytes = place.saturating_add(bytes);
        Some(GmAddr(OF_HEAP | u64::from(draft.serial & 0xFFF) << 48 | place & ADDRESS))
    }

    /// Writes a task down.
    #[cold]
    #[inline(never)]
    pub(super) fn record_task(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        let spec = TaskSpec::new(task.func_id, task.kind, &[]);
        let kernel = self.accept(&spec, task.args.len())?;
        let shape = match task.block_shape.is_plain() {
            true => None,
            false => Some(self.shape_of(task)?),
        };
        let entries = self.look_at(task)? * Access::MAX_ENTRIES;
        if entries > self.map.capacity() {
            return Err(self.too_large(RingKind::MAP, entries));
        }
        let Some(mut draft) = self.draft.take() else { return Err(Fault::STREAM_NOT_RECORDING) };
        let result = self.write_task(&mut draft, task, kernel, shape);
        let id = self.recorded_id(&draft, draft.totals.tasks);
        draft.totals.tasks += 1;
        let (wanted, held) = (draft.wanted(), draft.bound());
        let is_full = wanted > held || id.slot >= self.slots();
        let result = match result {
            Ok(()) if is_full => Err(self.record_full(wanted as u64, held as u64)),
            other => other,
        };
        draft.broken = draft.broken.or(result.err());
        self.draft = Some(draft);
        result.map(|()| id)
    }

    /// Tasks of a record have a generation that no task of the run has for a long time.
    const fn recorded_id(&self, draft: &Draft, slot: u32) -> TaskId {
        TaskId { slot, generation: self.run().wrapping_add(1 << 31).wrapping_add(draft.serial) }
    }

    fn write_task(
        &mut self,
        draft: &mut Draft,
        task: &TensorTask<'_>,
        kernel: GmAddr,
        shape: Option<ShapeLine>,
    ) -> Result<(), Fault> {
        let at = draft.next;
        draft.next += TaskHead::WORDS;
        self.record_args(draft, task)?;
        if let Some(line) = shape {
            self.record_shape(draft, task, line);
        }
        let args = u8::try_from(task.args.len()).unwrap_or(u8::MAX);
        let mut head = TaskHead {
            func_id: task.func_id.0,
            kind: task.kind.get() | if shape.is_some() { SHAPED } else { 0 },
            args,
            producers: 0,
            consumers: 0,
            touches: 0,
            starts: false,
            kernel: kernel.0,
        };
        for after in task.after {
            if after.slot >= draft.totals.tasks || *after != self.recorded_id(draft, after.slot) {
                return Err(self.refuse_task(Fault::BUILD_UNKNOWN_TASK, *after, 0, 0));
            }
            self.write_producer(draft, &mut head, after.slot);
        }
        let mode = self.mode();
        if mode != DependencyMode::MANUAL {
            self.write_producers(draft, &mut head, task, mode)?;
        }
        draft.next += (head.producers as usize).div_ceil(2);
        if mode != DependencyMode::MANUAL {
            self.write_touches(draft, &mut head, task, mode);
        }
        self.tape.put_head(at, &head);
        draft.totals.touches += head.touches;
        Ok(())
    }

    /// Writes what the words of the arguments are made of.
    fn record_args(&mut self, draft: &mut Draft, task: &TensorTask<'_>) -> Result<(), Fault> {
        for arg in task.args {
            let (base, value) = match arg.tensor() {
                Some(view) => Self::place_of(view),
                None => match arg {
                    Arg::Scalar(value) => (LITERAL, *value),
                    Arg::BoundScalar(number) if (*number as usize) < MAX_BOUND => {
                        draft.totals.scalars = draft.totals.scalars.max(number + 1);
                        (SCALARS + number.to_le_bytes()[0], 0)
                    }
                    _ => return Err(self.record_full(MAX_BOUND as u64 + 1, MAX_BOUND as u64)),
                },
            };
            self.put_word(draft, base, value);
        }
        self.put_word(draft, LITERAL, BLOCK_0_OF_1);
        Ok(())
    }

    /// Writes an argument word behind those before it.
    fn put_word(&self, draft: &mut Draft, base: u8, value: u64) {
        let place = draft.totals.arg_words as usize % 8;
        draft.totals.arg_words += 1;
        let group = draft.bound();
        // Where words meet tasks, the record is refused: what stands there is not overwritten.
        if group >= draft.next {
            let bases = if place == 0 { 0 } else { self.tape.get(group) };
            self.tape.put(group, bases | u64::from(base) << (8 * place));
            self.tape.put(group + 1 + place, value);
        }
    }

    /// Writes what the task is beyond one kernel on one core.
    fn record_shape(&mut self, draft: &mut Draft, task: &TensorTask<'_>, mut line: ShapeLine) {
        let mut base = LITERAL;
        if let Some(predicate) = task.block_shape.when() {
            (base, line.address) = Self::place_of(predicate.element());
        }
        self.tape.put_shape(draft.next, &line, base);
        draft.next += ShapeLine::WORDS;
    }

    /// What the address of a view is counted from, and where it is from there.
    fn place_of(view: &TensorView<'_>) -> (u8, u64) {
        match Self::base_of(view) {
            LITERAL => (LITERAL, view.address().0),
            HEAP => (HEAP, (view.base().0 & ADDRESS).wrapping_add(view.offset_bytes())),
            bound => (bound, view.offset_bytes()),
        }
    }

    /// What the address of a tensor is counted from.
    fn base_of(view: &TensorView<'_>) -> u8 {
        match view.base().0 {
            base if base & PLACEHOLDER != PLACEHOLDER => LITERAL,
            base if base & OF_HEAP == OF_HEAP => HEAP,
            base => TENSORS + (base >> 8).to_le_bytes()[0],
        }
    }

    /// The address under which the map gets to see a tensor.
    fn seen_base(&self, draft: &Draft, view: &TensorView<'_>) -> u64 {
        let base = view.base().0;
        match Self::base_of(view) {
            LITERAL => OF_HOST | u64::from(draft.serial & 0xFFF) << 48 | base & ADDRESS,
            _ => base,
        }
    }

    /// The edges within the record.
    fn write_producers(
        &mut self,
        draft: &mut Draft,
        head: &mut TaskHead,
        task: &TensorTask<'_>,
        mode: DependencyMode,
    ) -> Result<(), Fault> {
        let first = self.next;
        let number = first + u64::from(draft.totals.tasks);
        for (index, view, kind) in accesses_of(task) {
            let region = Region::of(view);
            let access = Access::new(self.seen_base(draft, view), kind, &region);
            let (map, this) = (self.map, &*self);
            let Some(place) = map.place(&access) else { continue };
            let hide = if mode == DependencyMode::DERIVED { Hide::Covered } else { Hide::Nothing };
            if mode == DependencyMode::DERIVED {
                let found = |producer: u64| {
                    let slot = u32::try_from(producer.wrapping_sub(first)).unwrap_or(u32::MAX);
                    this.write_producer(draft, head, slot);
                    Ok(())
                };
                if map.look(&place, &access, (number, hide), (), found).is_err() {
                    return Err(self.undecided(number, index));
                }
            }
            map.note(&place, &access, (number, hide));
        }
        Ok(())
    }

    /// Adds an edge to the newest task, unless it is there.
    fn write_producer(&self, draft: &mut Draft, head: &mut TaskHead, producer: u32) {
        let (at, count) = (draft.next, head.producers as usize);
        let half = |number: usize| self.tape.get(at + number / 2) >> (32 * (number % 2));
        if (0..count).any(|number| half(number) & 0xFFFF_FFFF == u64::from(producer)) {
            return;
        }
        let before = if count.is_multiple_of(2) { 0 } else { self.tape.get(at + count / 2) };
        self.tape.put(at + count / 2, before | u64::from(producer) << (32 * (count % 2)));
        draft.totals.edges += 1;
        head.producers += 1;
    }

    /// What the task does to tensors that are not the record's own.
    fn write_touches(
        &self,
        draft: &mut Draft,
        head: &mut TaskHead,
        task: &TensorTask<'_>,
        mode: DependencyMode,
    ) {
        for (_, view, kind) in accesses_of(task) {
            let binding = Self::base_of(view);
            if binding == HEAP {
                continue;
            }
            let last = usize::from(binding.saturating_sub(TENSORS - 1));
            let is_derived = mode == DependencyMode::DERIVED;
            let previous = draft.last.get(last).copied().unwrap_or(0);
            let (base, region) = (view.base().0, Region::of(view));
            let mut touch = Touch {
                binding,
                base,
                region,
                kind,
                is_derived,
                looks: is_derived,
                is_noted: true,
                previous,
            };
            self.compare(&mut touch, is_derived);
            if let Some(last) = draft.last.get_mut(last) {
                *last = u32::try_from(draft.next).unwrap_or(u32::MAX);
            }
            if binding != LITERAL && kind == AccessKind::Write {
                let index = usize::from(binding - TENSORS);
                self.tape.set_written(Tape::binding(draft.start, index));
            }
            draft.next = self.tape.put_touch(draft.next, &touch);
            head.touches += 1;
        }
    }

    /// Which earlier touches of the same tensor this one hides, and whether one of them covers it.
    fn compare(&self, touch: &mut Touch, is_derived: bool) {
        let hides = is_derived && touch.kind == AccessKind::Write;
        let mut at = touch.previous;
        while at != 0 {
            let (earlier, _) = self.tape.touch(at as usize);
            let is_same_tensor = earlier.base == touch.base;
            let (one, other) = (&earlier.region, &touch.region);
            // Only a derived write has looked, or was covered by one that has.
            if is_same_tensor && earlier.kind == AccessKind::Write && earlier.looks {
                touch.looks &= !one.covers(other);
            }
            if is_same_tensor && hides && other.covers(one) {
                self.tape.hide(at as usize);
            }
            at = earlier.previous;
        }
    }

    /// Chunks of edges that a replay takes at most.
    pub(super) fn chunks_of(totals: &Totals) -> u64 {
        chunks_for(totals.edges.into())
    }
}
