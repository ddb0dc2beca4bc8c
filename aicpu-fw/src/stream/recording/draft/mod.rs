//! A recording that is being made: tasks are written into the buffer, with their edges, instead of being added.
//!
//! The edges come from the tensor map, as in a submission: the tasks of a recording are numbered as if they were added now,
//! and their tensors have addresses of their own, so that no other access conflicts with them, then or later.
//!
//! Invariants: what is written so far is from `start` up to `next`; `totals` say how much that is. Where tasks would meet the
//! argument words, nothing is overwritten, and the recording is refused. A draft that is `broken` is never kept.

mod lists;

use pto_abi::task::SHAPED;
use pto_abi::{Fault, GmAddr, TaskId};
use pto_graph::{
    Arg, DependencyMode, HeapTag, MAX_BOUND, RECORDED_DEPTH, ScopeId, TensorTask, TensorView,
};

use super::super::accesses::{accesses_of, view_fault};
use super::super::block_spec::BlockSpec;
use super::super::map::{AccessKind, Hide, TensorAccess, TensorMap};
use super::super::region::Region;
use super::super::window::SlotWindow;
use super::addresses::{base_of, offset_from_base, on_heap, seen_base};
use super::buffer::{HEAP, LITERAL, RecordingBuffer, SCALARS, TENSORS, TaskHead, Totals, Touch};
use super::recordings::Recordings;
use crate::blame::Blame;
use crate::builder::BLOCK_0_OF_1;

/// See the file.
pub(in crate::stream) struct Draft<'a> {
    buffer: RecordingBuffer<'a>,
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

/// A task to be written down, accepted; and what it is written down with.
pub(in crate::stream) struct Drafted<'d, 'a> {
    pub(in crate::stream) task: &'d TensorTask<'d>,
    pub(in crate::stream) kernel: GmAddr,
    /// What it is beyond one kernel on one core.
    pub(in crate::stream) block_shape: Option<BlockSpec>,
    pub(in crate::stream) mode: DependencyMode,
    pub(in crate::stream) window: &'d SlotWindow<'a>,
    pub(in crate::stream) map: &'a TensorMap<'a>,
}

impl<'a> Draft<'a> {
    /// Tensors of these shapes can be bound.
    pub(in crate::stream) fn check_shapes(shapes: &[TensorView<'_>]) -> Result<(), Blame> {
        if shapes.len() > MAX_BOUND {
            return Err(full(shapes.len(), MAX_BOUND));
        }
        match (0_u32..).zip(shapes).find_map(|(index, shape)| Some((index, shape.defect()?))) {
            Some((index, defect)) => Err(Blame::of(view_fault(defect)).argument(index)),
            None => Ok(()),
        }
    }

    /// Begins one with bindings of these shapes, within `scope`.
    pub(in crate::stream) fn begin(
        recordings: &mut Recordings<'a>,
        shapes: &[TensorView<'_>],
        scope: ScopeId,
    ) -> Self {
        let buffer = recordings.buffer();
        let (start, serial) = recordings.begin();
        for (index, shape) in (0..).zip(shapes) {
            buffer.put_binding(RecordingBuffer::binding(start, index), shape);
        }
        let tensors = u32::try_from(shapes.len()).unwrap_or(0);
        let words_end = u32::try_from(buffer.end()).unwrap_or(u32::MAX);
        let totals = Totals { tensors, words_end, ..Totals::default() };
        let next = RecordingBuffer::binding(start, shapes.len());
        Self { buffer, start, next, serial, totals, scope, broken: None, last: [0; 1 + MAX_BOUND] }
    }

    /// The number of the recording in its run.
    pub(in crate::stream) const fn serial(&self) -> u32 {
        self.serial
    }

    /// The scope that was opened for it.
    pub(in crate::stream) const fn scope(&self) -> ScopeId {
        self.scope
    }

    /// Whether this scope is around the recording, or its own.
    pub(in crate::stream) const fn is_in(&self, scope: ScopeId) -> bool {
        scope.depth <= self.scope.depth
    }

    /// Whether a tensor of a heap belongs to the recording.
    pub(in crate::stream) const fn holds(&self, heap: HeapTag) -> bool {
        heap.depth > self.scope.depth
    }

    /// Whether a tensor is one that the recording has bound.
    pub(in crate::stream) fn has_bound(&self, heap: HeapTag) -> bool {
        heap.depth == RECORDED_DEPTH && heap.serial == u64::from(self.serial)
    }

    /// A tensor on the heap that each replay has.
    pub(in crate::stream) const fn take_heap(&mut self, bytes: u64) -> GmAddr {
        let offset = self.totals.heap_bytes;
        self.totals.heap_bytes = offset.saturating_add(bytes);
        on_heap(self.serial, offset)
    }

    /// Writes a task down; its id.
    ///
    /// # Errors
    /// Why it cannot be written down; the draft is of no use then.
    #[inline(never)]
    pub(in crate::stream) fn add(&mut self, drafted: &Drafted<'_, 'a>) -> Result<TaskId, Blame> {
        let result = self.write_task(drafted);
        let id = self.id_of(self.totals.tasks, drafted.window);
        self.totals.tasks += 1;
        let (wanted, held) = (self.wanted(), self.bound());
        let is_full = wanted > held || u64::from(id.slot) >= drafted.window.slots();
        let result = result.and_then(|()| if is_full { Err(full(wanted, held)) } else { Ok(id) });
        self.broken = self.broken.or(result.err().map(|blame| blame.fault));
        result
    }

    /// Makes the lists that follow the tasks, and keeps the recording; returns where it begins, how many tasks it has, and how
    /// many words are in use.
    pub(in crate::stream) fn end(
        mut self,
        recordings: &mut Recordings<'a>,
    ) -> Result<(u32, u32, u64), Blame> {
        if let Some(fault) = self.broken {
            return Err(Blame::of(fault));
        }
        let held = self.bound();
        self.put_lists();
        if self.next > held {
            return Err(full(self.next, held));
        }
        self.buffer.put_totals(self.start, &self.totals);
        let used = recordings.keep(self.next, held);
        Ok((u32::try_from(self.start).unwrap_or(u32::MAX), self.totals.tasks, used))
    }

    /// Tasks of a recording have a generation that no task of the run has for a long time.
    const fn id_of(&self, slot: u32, window: &SlotWindow<'_>) -> TaskId {
        let generation = window.run().wrapping_add(1 << 31).wrapping_add(self.serial);
        TaskId { slot, generation }
    }

    /// Where tasks and lists may end: where its argument words begin.
    fn bound(&self) -> usize {
        self.totals.words().start
    }

    /// Where the consumers would end, with a word for each task, which it takes to make that list.
    const fn wanted(&self) -> usize {
        self.next + self.totals.edges as usize + self.totals.tasks as usize
    }

    fn write_task(&mut self, drafted: &Drafted<'_, 'a>) -> Result<(), Blame> {
        let Drafted { task, kernel, block_shape, mode, .. } = drafted;
        let at = self.next;
        self.next += TaskHead::WORDS;
        self.put_args(task)?;
        if let Some(shape) = block_shape {
            self.put_block_shape(task, *shape);
        }
        let mut head = TaskHead {
            func_id: task.func_id.0,
            kind: task.kind.get() | if block_shape.is_some() { SHAPED } else { 0 },
            args: u8::try_from(task.args.len()).unwrap_or(u8::MAX),
            producers: 0,
            consumers: 0,
            touches: 0,
            starts: false,
            kernel: kernel.0,
        };
        for after in task.after {
            let is_known =
                after.slot < self.totals.tasks && *after == self.id_of(after.slot, drafted.window);
            if !is_known {
                return Err(Blame::of(Fault::BUILD_UNKNOWN_TASK).task(*after).detail(0, 0));
            }
            self.put_producer(&mut head, after.slot);
        }
        if *mode != DependencyMode::MANUAL {
            self.put_producers(&mut head, drafted)?;
        }
        self.next += (head.producers as usize).div_ceil(2);
        if *mode != DependencyMode::MANUAL {
            self.put_touches(&mut head, task, *mode);
        }
        self.buffer.put_head(at, &head);
        self.totals.touches += head.touches;
        Ok(())
    }

    /// Writes what the words of the arguments are made of.
    fn put_args(&mut self, task: &TensorTask<'_>) -> Result<(), Blame> {
        for arg in task.args {
            let (base, value) = match arg.tensor() {
                Some(view) => offset_from_base(view),
                None => match arg {
                    Arg::Scalar(value) => (LITERAL, *value),
                    Arg::BoundScalar(number) if (*number as usize) < MAX_BOUND => {
                        self.totals.scalars = self.totals.scalars.max(number + 1);
                        (SCALARS + number.to_le_bytes()[0], 0)
                    }
                    _ => return Err(full(MAX_BOUND + 1, MAX_BOUND)),
                },
            };
            self.put_word(base, value);
        }
        self.put_word(LITERAL, BLOCK_0_OF_1);
        Ok(())
    }

    /// Appends an argument word.
    fn put_word(&mut self, base: u8, value: u64) {
        let index = self.totals.arg_words as usize % 8;
        self.totals.arg_words += 1;
        let group = self.bound();
        // Where words meet tasks, the recording is refused: those tasks are not overwritten.
        if group >= self.next {
            let bases = if index == 0 { 0 } else { self.buffer.get(group) };
            self.buffer.put(group, bases | u64::from(base) << (8 * index));
            self.buffer.put(group + 1 + index, value);
        }
    }

    /// Writes what the task is beyond one kernel on one core.
    fn put_block_shape(&mut self, task: &TensorTask<'_>, mut shape: BlockSpec) {
        let mut base = LITERAL;
        if let Some(predicate) = task.block_shape.when() {
            (base, shape.address) = offset_from_base(predicate.element());
        }
        self.buffer.put_block_shape(self.next, &shape, base);
        self.next += BlockSpec::WORDS;
    }

    /// The edges within the recording.
    fn put_producers(
        &mut self,
        head: &mut TaskHead,
        drafted: &Drafted<'_, 'a>,
    ) -> Result<(), Blame> {
        let (map, first) = (drafted.map, drafted.window.next());
        let number = first + u64::from(self.totals.tasks);
        let is_derived = drafted.mode == DependencyMode::DERIVED;
        for (index, view, kind) in accesses_of(drafted.task) {
            let region = Region::of(view);
            let access = TensorAccess::new(seen_base(self.serial, view), kind, &region);
            let Some(position) = map.locate(&access) else { continue };
            let hide = if is_derived { Hide::Covered } else { Hide::Nothing };
            if is_derived {
                let found = |producer: u64| {
                    let slot = u32::try_from(producer.wrapping_sub(first)).unwrap_or(u32::MAX);
                    self.put_producer(head, slot);
                    Ok(())
                };
                if map.look(&position, &access, (number, hide), (), found).is_err() {
                    let task = drafted.window.id_of(number);
                    let blame = Blame::of(Fault::STREAM_VIEW_IRREGULAR).task(task);
                    return Err(blame.argument(index));
                }
            }
            map.note(&position, &access, (number, hide));
        }
        Ok(())
    }

    /// Adds an edge to the newest task, unless it is there.
    fn put_producer(&mut self, head: &mut TaskHead, producer: u32) {
        let (at, count) = (self.next, head.producers as usize);
        let half = |number: usize| self.buffer.get(at + number / 2) >> (32 * (number % 2));
        if (0..count).any(|number| half(number) & 0xFFFF_FFFF == u64::from(producer)) {
            return;
        }
        let before = if count.is_multiple_of(2) { 0 } else { self.buffer.get(at + count / 2) };
        self.buffer.put(at + count / 2, before | u64::from(producer) << (32 * (count % 2)));
        self.totals.edges += 1;
        head.producers += 1;
    }

    /// What the task does to tensors that are not the recording's own.
    fn put_touches(&mut self, head: &mut TaskHead, task: &TensorTask<'_>, mode: DependencyMode) {
        let is_derived = mode == DependencyMode::DERIVED;
        for (_, view, kind) in accesses_of(task) {
            let binding = base_of(view);
            if binding == HEAP {
                continue;
            }
            let last = usize::from(binding.saturating_sub(TENSORS - 1));
            let mut touch = Touch {
                binding,
                base: view.base().0,
                region: Region::of(view),
                kind,
                is_derived,
                looks: is_derived,
                is_noted: true,
                previous: self.last.get(last).copied().unwrap_or(0),
            };
            self.compare(&mut touch);
            if let Some(last) = self.last.get_mut(last) {
                *last = u32::try_from(self.next).unwrap_or(u32::MAX);
            }
            if binding != LITERAL && kind == AccessKind::Write {
                let index = usize::from(binding - TENSORS);
                self.buffer.set_written(RecordingBuffer::binding(self.start, index));
            }
            self.next = self.buffer.put_touch(self.next, &touch);
            head.touches += 1;
        }
    }

    /// Which earlier touches of the same tensor this one hides, and whether one of them covers it.
    fn compare(&self, touch: &mut Touch) {
        let hides = touch.is_derived && touch.kind == AccessKind::Write;
        let mut at = touch.previous;
        while at != 0 {
            let (earlier, _) = self.buffer.touch(at as usize);
            let is_same_tensor = earlier.base == touch.base;
            let (one, other) = (&earlier.region, &touch.region);
            // Only a derived write has looked, or was covered by one that has.
            if is_same_tensor && earlier.kind == AccessKind::Write && earlier.looks {
                touch.looks &= !one.covers(other);
            }
            if is_same_tensor && hides && other.covers(one) {
                self.buffer.hide(at as usize);
            }
            at = earlier.previous;
        }
    }
}

/// A recording does not take so much.
#[cold]
fn full(found: usize, bound: usize) -> Blame {
    Blame::of(Fault::STREAM_RECORDING_FULL).detail(found as u64, bound as u64)
}
