//! Replay: the tasks of a recording become tasks of the run, without a look at what they do to each other.
//!
//! ```text
//! bindings checked -> room for all of it -> every task written: line, words, consumers within the recording, and for each
//!                                           touch a look at the tensor map, a note in it -> the starters published
//! ```
//! No task of the recording can run before the last one is written: all that wait for nothing within the recording, or may
//! wait for something outside of it, are published at the end. The others need no publish: they are released by their
//! producers.

use pto_abi::Fault;
use pto_abi::kinds::TaskState;
use pto_abi::stream::RingKind;
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::task::{INLINE_CONSUMERS, SHAPED, Task, chunks_for};
use pto_abi::trace::TraceKind;
use pto_graph::{DependencyMode, EdgeOutcome};

use super::super::map::{Hide, TensorAccess};
use super::super::recording::bindings::Bound;
use super::super::recording::buffer::{
    BASES, GROUP, HEAP, LITERAL, RecordingBuffer, SCALARS, TENSORS, TaskHead, Totals,
};
use super::{Tasks, raised, write_block_shape};
use crate::builder::publisher::count_some;
use crate::builder::task_line::TaskLine;
use crate::config::Config;
use crate::machine::Machine;

/// A replay under way.
pub(in crate::stream) struct Replay<'r, 'a> {
    of: Bound<'r, 'a>,
    /// What the values on the buffer are added to.
    bases: [u64; BASES],
    mode: DependencyMode,
    /// Number of its first task.
    first: u64,
    /// Words of its arguments: where the first one is, and its position.
    offset: u32,
    position: u64,
}

impl<C: Config> Tasks<'_, C> {
    /// Adds the tasks of a recording, whose bindings have been checked, and publishes them.
    pub(in crate::stream) fn replay(&mut self, of: Bound<'_, '_>) -> Result<(), Fault> {
        let totals = of.totals;
        self.make_room_for(totals)?;
        let mode = self.scopes.mode();
        let mut bases = [0; BASES];
        // A scope for the tensors of the recording's own.
        let scope = if totals.heap_bytes == 0 {
            None
        } else {
            let scope = self.open_scope(DependencyMode::DERIVED)?;
            bases[usize::from(HEAP)] = self.take_heap(totals.heap_bytes)?.0;
            Some(scope)
        };
        let tensors = of.bindings.tensors.iter().map(|view| view.address().0);
        let bound = bases.iter_mut().skip(TENSORS.into());
        bound.zip(tensors).for_each(|(base, tensor)| *base = tensor);
        let bound = bases.iter_mut().skip(SCALARS.into());
        bound.zip(of.bindings.scalars).for_each(|(base, scalar)| *base = *scalar);
        let first = self.storage.window().next();
        let (offset, position) = self.storage.take_words(totals.arg_words.into());
        let replay = Replay { of, bases, mode, first, offset, position };
        replay.write_tasks(self)?;
        self.publisher.line().added.store(self.storage.window().added(), Ordering::Relaxed);
        replay.start(self)?;
        scope.map_or(Ok(()), |scope| self.close_scope(scope))
    }

    fn make_room_for(&mut self, totals: &Totals) -> Result<(), Fault> {
        self.storage.advance();
        let wanted = [
            (RingKind::WINDOW, totals.tasks.into()),
            (RingKind::ARGS, totals.arg_words.into()),
            // At most.
            (RingKind::EDGES, chunks_for(totals.edges.into())),
            (RingKind::MAP, u64::from(totals.touches) * TensorAccess::MAX_ENTRIES),
        ];
        for (ring, count) in wanted {
            self.storage.takes(ring, count);
            self.make_room_in(ring, count)?;
        }
        Ok(())
    }
}

impl Replay<'_, '_> {
    /// Writes every task into the next slot.
    #[inline(never)]
    fn write_tasks<C: Config>(&self, tasks: &mut Tasks<'_, C>) -> Result<(), Fault> {
        let totals = self.of.totals;
        let buffer = self.of.buffer;
        let list = buffer.part(totals.consumers());
        let mut consumers = list;
        let mut at = RecordingBuffer::binding(self.of.start, totals.tensors as usize);
        let (mut offset, mut position) = (self.offset, self.position);
        let (_, ring) = tasks.storage.payloads();
        for _ in 0..totals.tasks {
            let number = tasks.storage.window().next();
            let Some((note, task, id)) = tasks.storage.window().open() else {
                return Err(tasks.blame.leave(tasks.storage.window().no_slot()));
            };
            tasks.storage.note_rings(note, position);
            let head = buffer.head(at);
            TaskLine {
                func_id: head.func_id,
                kind: head.kind,
                args: head.args,
                kernel: head.kernel,
                payload: if offset >= ring { offset - ring } else { offset },
                producers: head.producers,
                consumers: head.consumers,
                is_published: !head.starts,
            }
            .write(task, id);
            if head.is_shaped() {
                self.write_block_shape(at + TaskHead::WORDS, id.slot, tasks);
            }
            offset += u32::from(head.args) + 1;
            position += u64::from(head.args) + 1;
            tasks.storage.add_task();
            tasks.events.machine().added(id.slot);
            if tasks.events.machine().traces() {
                self.report_task(&head, at, id.slot, tasks);
            }
            let taken;
            let count = head.consumers as usize;
            (taken, consumers) = consumers.split_at_checked(count).unwrap_or((&[], &[]));
            self.write_consumers(task, taken, tasks);
            at = head.touches_at(at);
            for _ in 0..head.touches {
                at = self.touch(at, number, tasks)?;
            }
        }
        let payloads = tasks.storage.payloads();
        if offset > ring {
            self.write_words_around(payloads, tasks);
        } else {
            self.write_words(payloads.0);
        }
        self.report_edges(list, tasks);
        Ok(())
    }

    /// Reports to the host that a task was added.
    fn report_task<C: Config>(
        &self,
        head: &TaskHead,
        at: usize,
        slot: u32,
        tasks: &mut Tasks<'_, C>,
    ) {
        tasks.events.added(slot, head.func_id, head.kind & !SHAPED);
        if head.is_shaped() {
            let (shape, _) = self.of.buffer.block_shape(at + TaskHead::WORDS);
            tasks.events.lanes(slot, shape.lanes());
        }
    }

    /// The argument words of all tasks.
    fn write_words(&self, payloads: &[AtomicU64]) {
        let (totals, offset) = (self.of.totals, self.offset as usize);
        let words = offset..offset + totals.arg_words as usize;
        let words = payloads.get(words).unwrap_or(&[]);
        let recorded = self.of.buffer.part(totals.words());
        let write = |(word, value): (&AtomicU64, &AtomicU64), base: u8| {
            let base = self.bases[usize::from(base)];
            word.store(value.load(Ordering::Relaxed).wrapping_add(base), Ordering::Relaxed);
        };
        let mut groups = recorded.as_chunks::<GROUP>().0.iter().rev();
        let (full, rest) = words.as_chunks::<8>();
        for (words, [bases, values @ ..]) in full.iter().zip(&mut groups) {
            let bases = bases.load(Ordering::Relaxed).to_le_bytes();
            words.iter().zip(values).zip(bases).for_each(|(both, base)| write(both, base));
        }
        if let Some([bases, values @ ..]) = groups.next() {
            let bases = bases.load(Ordering::Relaxed).to_le_bytes();
            rest.iter().zip(values).zip(bases).for_each(|(both, base)| write(both, base));
        }
    }

    /// As `write_words`, where the ring ends among them: what begins past its end is at its start.
    #[cold]
    fn write_words_around<C: Config>(
        &self,
        (payloads, ring): (&[AtomicU64], u32),
        tasks: &Tasks<'_, C>,
    ) {
        let (totals, start) = (self.of.totals, self.offset);
        let mut end = start;
        let window = tasks.storage.window();
        for task in (self.first..window.next()).filter_map(|number| window.task(number)) {
            if end >= ring {
                break;
            }
            end += u32::from(task.arg_count.load(Ordering::Relaxed)) + 1;
        }
        let others = end.saturating_sub(ring) as usize;
        let words = payloads.get(start as usize..end as usize).unwrap_or(&[]);
        let others = payloads.get(others..).unwrap_or(&[]);
        let recorded = self.of.buffer.part(totals.words());
        let groups = recorded.as_chunks::<GROUP>().0.iter().rev();
        let values = groups.flat_map(|[bases, values @ ..]| {
            values.iter().zip(bases.load(Ordering::Relaxed).to_le_bytes())
        });
        let values = values.take(totals.arg_words as usize);
        for (word, (value, base)) in words.iter().chain(others).zip(values) {
            let base = self.bases[usize::from(base)];
            word.store(value.load(Ordering::Relaxed).wrapping_add(base), Ordering::Relaxed);
        }
    }

    /// Writes the consumers of a task that is not published: no scheduler looks at it, nor at them.
    #[inline]
    fn write_consumers<C: Config>(
        &self,
        task: &Task,
        consumers: &[AtomicU64],
        tasks: &mut Tasks<'_, C>,
    ) {
        let mut left = consumers.iter();
        for entry in &task.consumers {
            let Some(consumer) = left.next() else { return };
            entry.store(self.slot_of(consumer, tasks), Ordering::Relaxed);
        }
        for (count, consumer) in (0..).zip(consumers).skip(INLINE_CONSUMERS) {
            let slot = self.slot_of(consumer, tasks);
            tasks.storage.put_consumer(tasks.state.chunks, task, count, slot);
        }
    }

    /// The slot of a task of the recording.
    #[inline]
    fn slot_of<C: Config>(&self, task: &AtomicU64, tasks: &Tasks<'_, C>) -> u32 {
        tasks.storage.window().slot_of(self.first + task.load(Ordering::Relaxed))
    }

    /// Reports the edges within the recording to the host, after all of its tasks.
    fn report_edges<C: Config>(&self, mut consumers: &[AtomicU64], tasks: &mut Tasks<'_, C>) {
        if !tasks.events.machine().traces() && !C::Machine::NOTES_EDGES {
            return;
        }
        for number in self.first..tasks.storage.window().next() {
            let from = tasks.storage.window().slot_of(number);
            let task = tasks.storage.window().task(number);
            let count = task.map_or(0, |task| task.fanout.load(Ordering::Relaxed));
            let taken;
            (taken, consumers) = consumers.split_at_checked(count as usize).unwrap_or((&[], &[]));
            for consumer in taken {
                let to = self.slot_of(consumer, tasks);
                tasks.events.trace(TraceKind::EDGE, to, from);
                tasks.events.machine().derived(from, to, EdgeOutcome::Added);
            }
        }
    }

    /// The block shape of the task in `slot`, from the words at `at`.
    #[cold]
    fn write_block_shape<C: Config>(&self, at: usize, slot: u32, tasks: &Tasks<'_, C>) {
        let (mut shape, base) = self.of.buffer.block_shape(at);
        let from = self.bases.get(usize::from(base)).copied().unwrap_or(0);
        shape.address = shape.address.wrapping_add(from);
        write_block_shape(&tasks.state, slot, &shape);
    }

    /// The edges that a touch makes from tasks outside of the recording, and what later tasks see of it.
    #[inline(never)]
    fn touch<C: Config>(
        &self,
        at: usize,
        number: u64,
        tasks: &mut Tasks<'_, C>,
    ) -> Result<usize, Fault> {
        let (touch, next) = self.of.buffer.touch_head(at);
        if self.mode == DependencyMode::MANUAL || !touch.looks && !touch.is_noted {
            return Ok(next);
        }
        let (mut base, mut offset) = (touch.base, 0);
        if touch.binding != LITERAL {
            let index = usize::from(touch.binding - TENSORS);
            let Some(view) = self.of.bindings.tensors.get(index) else { return Ok(next) };
            (base, offset) = (view.base().0, view.offset_bytes());
        }
        let map = tasks.storage.map();
        let region;
        let access = if touch.is_run {
            let [low, high] = [touch.low, touch.high].map(|end| end.wrapping_add(offset));
            TensorAccess::run(base, touch.kind, low, high)
        } else {
            region = self.of.buffer.touch(at).0.region.moved(offset);
            TensorAccess::new(base, touch.kind, &region)
        };
        let first = self.first;
        let is_derived = touch.is_derived && self.mode == DependencyMode::DERIVED;
        if is_derived && touch.looks && touch.is_noted {
            let found = |producer: u64| match producer < first {
                true => tasks.derived_edge(producer, number).map_err(Some),
                false => Ok(()),
            };
            let derived = map.derive(&access, number, None, found);
            return match derived {
                Ok(()) => Ok(next),
                Err(fault) => Err(fault.unwrap_or_else(|| tasks.undecided(number, 0))),
            };
        }
        let Some(position) = map.locate(&access) else { return Ok(next) };
        if touch.looks && self.mode == DependencyMode::DERIVED {
            let found = |producer: u64| match producer < first {
                true => tasks.derived_edge(producer, number).map_err(Some),
                false => Ok(()),
            };
            if let Err(fault) = map.look(&position, &access, (number, Hide::Covered), None, found) {
                return Err(fault.unwrap_or_else(|| tasks.undecided(number, 0)));
            }
        }
        if touch.is_noted {
            let hide = if is_derived { Hide::Covered } else { Hide::Nothing };
            map.note(&position, &access, (number, hide));
        }
        Ok(next)
    }

    /// Publishes all of it.
    fn start<C: Config>(&self, tasks: &mut Tasks<'_, C>) -> Result<(), Fault> {
        let totals = self.of.totals;
        tasks.publisher.count_all::<C::Sharing>(totals.tasks.into());
        count_some(&tasks.publisher.line().edges, totals.edges.into());
        tasks.events.look_at_clock();
        for number in self.first..tasks.storage.window().next() {
            let slot = tasks.storage.window().slot_of(number);
            tasks.events.trace(TraceKind::PUBLISHED, slot, 0);
            tasks.events.machine().replayed(slot);
        }
        if tasks.state.fault.is_raised() {
            return Err(raised(&tasks.state));
        }
        let (list, count) = totals.starters;
        for at in (list as usize..).take(count as usize) {
            let slot = tasks.storage.window().slot_of(self.first + self.of.buffer.get(at));
            let Some(task) = tasks.storage.window().task_in(slot) else { continue };
            task.state.store(TaskState::PUBLISHED.get(), Ordering::Relaxed);
            tasks.release(slot, task);
            tasks.report_state(at as u64);
            tasks.events.machine().published();
        }
        Ok(())
    }
}
