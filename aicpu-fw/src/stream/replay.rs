//! Replay: the tasks of a record become tasks of the run, without a look at what they do to each other.
//!
//! ```text
//! bindings checked -> room for all of it -> every task written: line, words, consumers within the record, and for each touch
//!                                           a look at the tensor map, a note in it -> the starters published
//! ```
//! No task of the record can run before the last one is written: all that wait for nothing within the record, or may wait for
//! something outside of it, are published at the end. The others need no publish: they are released by their producers.

use pto_abi::kinds::TaskState;
use pto_abi::stream::RingKind;
use pto_abi::sync::{AtomicU64, Ordering, Sharing};
use pto_abi::task::{INLINE_CONSUMERS, SHAPED, Task};
use pto_abi::trace::TraceKind;
use pto_abi::{Fault, GmAddr};
use pto_graph::{Bindings, DependencyMode, EdgeOutcome, Recording};

use super::builder::{Stream, TaskLine};
use super::map::{Access, Hide, low_half};
use super::overlap::overlap;
use super::region::Region;
use super::scopes::view_fault;
use super::tape::{BASES, GROUP, HEAP, LITERAL, SCALARS, TENSORS, Tape, TaskHead, Totals};
use crate::blame::Blame;
use crate::builder::{BuilderHost, DeviceMemory, count_some, release_published};
use crate::fanout::FanoutPolicy;

/// A replay under way.
struct Playing<'b> {
    bindings: &'b Bindings<'b>,
    bases: [u64; BASES],
    mode: DependencyMode,
    /// Number of its first task.
    first: u64,
    /// Words of its arguments: where the first one is, and its position.
    place: u32,
    position: u64,
}

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
    pub(super) fn play(
        &mut self,
        record: &Recording,
        bindings: &Bindings<'_>,
    ) -> Result<(), Fault> {
        if self.draft.is_some() {
            return Err(self.blame.leave(Blame::of(Fault::STREAM_RECORDING_OPEN)));
        }
        let start = record.at as usize;
        let is_known = record.run == self.run() && start < self.taped;
        let Some(totals) = self.tape.totals(start).filter(|_| is_known) else {
            let blame = Blame::of(Fault::STREAM_RECORDING_UNKNOWN);
            return Err(self.blame.leave(blame.detail(record.at.into(), self.taped as u64)));
        };
        self.check_bindings(start, &totals, bindings)?;
        if totals.tasks == 0 {
            return Ok(());
        }
        self.make_room_for(&totals)?;
        let mode = self.mode();
        let scope = self.open_heap(&totals)?;
        // Places are words of a task's line.
        let (first, place) = (self.next, low_half(self.words.take(totals.arg_words.into())));
        let position = self.words.head() - u64::from(totals.arg_words);
        let bases = [0; BASES];
        let mut playing = Playing { bindings, bases, mode, first, place, position };
        playing.bases[usize::from(HEAP)] = scope.map_or(0, |(_, heap)| heap.0);
        let tensors = bindings.tensors.iter().map(|view| view.address().0);
        let places = playing.bases.iter_mut().skip(TENSORS.into());
        places.zip(tensors).for_each(|(base, tensor)| *base = tensor);
        let places = playing.bases.iter_mut().skip(SCALARS.into());
        places.zip(bindings.scalars).for_each(|(base, scalar)| *base = *scalar);
        self.write_tasks(start, &totals, &playing)?;
        self.line.added.store(self.added(), Ordering::Relaxed);
        self.start(first, &totals)?;
        scope.map_or(Ok(()), |(scope, _)| self.close(scope))
    }

    /// Each binding looks like what was recorded in its place, and none is written that another one overlaps.
    fn check_bindings(
        &mut self,
        start: usize,
        totals: &Totals,
        bindings: &Bindings<'_>,
    ) -> Result<(), Fault> {
        let misfit = Blame::of(Fault::STREAM_REPLAY_MISFIT);
        let counts = [
            (bindings.tensors.len(), totals.tensors as usize),
            (bindings.scalars.len(), totals.scalars as usize),
        ];
        for (found, wanted) in counts {
            if found != wanted {
                return Err(self.blame.leave(misfit.detail(found as u64, wanted as u64)));
            }
        }
        for (index, view) in (0_u32..).zip(bindings.tensors) {
            if let Some(defect) = view.defect() {
                return Err(self.blame.leave(Blame::of(view_fault(defect)).argument(index)));
            }
            if !self.is_alive(view.heap()) {
                let blame = Blame::of(Fault::STREAM_STALE_TENSOR).argument(index);
                return Err(self.blame.leave(blame.detail(view.heap().serial, 0)));
            }
            let at = Tape::binding(start, index as usize);
            if !self.tape.fits(at, view) {
                return Err(self.blame.leave(misfit.argument(index)));
            }
            for (other, earlier) in (0..index).zip(bindings.tensors) {
                let are_written = self.tape.is_written(at)
                    || self.tape.is_written(Tape::binding(start, other as usize));
                if view.base() == earlier.base()
                    && are_written
                    && overlap(&Region::of(view), &Region::of(earlier)) != Ok(false)
                {
                    let blame = Blame::of(Fault::STREAM_REPLAY_ALIAS).argument(index);
                    return Err(self.blame.leave(blame.detail(other.into(), 0)));
                }
            }
        }
        self.check_predicates(totals, bindings)
    }

    /// The schedulers can read each element of a bound tensor that a predicate is on. It is not read here: a kernel may be
    /// writing it.
    fn check_predicates(&mut self, totals: &Totals, bindings: &Bindings<'_>) -> Result<(), Fault> {
        let list = totals.starters.0 as usize + totals.starters.1 as usize;
        for at in (list..).take(totals.predicates as usize) {
            let at = usize::try_from(self.tape.get(at)).unwrap_or(usize::MAX);
            let (line, base) = self.tape.shape(at);
            let index = base.wrapping_sub(TENSORS);
            let Some(view) = bindings.tensors.get(usize::from(index)) else { continue };
            let address = view.address().offset(line.address);
            if !self.memory.has_element(address, line.element_bytes()) {
                let blame = Blame::of(Fault::STREAM_PREDICATE).argument(index.into());
                return Err(self.blame.leave(blame.detail(address.0, 0)));
            }
        }
        Ok(())
    }

    fn make_room_for(&mut self, totals: &Totals) -> Result<(), Fault> {
        self.advance();
        let wanted = [
            (RingKind::WINDOW, totals.tasks.into()),
            (RingKind::ARGS, totals.arg_words.into()),
            (RingKind::EDGES, Self::chunks_of(totals)),
            (RingKind::MAP, u64::from(totals.touches) * Access::MAX_ENTRIES),
        ];
        for (ring, count) in wanted {
            self.takes(ring, count);
            if !self.has_room(ring, count) {
                self.wait_for_room(ring, count)?;
            }
        }
        Ok(())
    }

    /// A scope for the tensors of the record's own, and where they are.
    fn open_heap(
        &mut self,
        totals: &Totals,
    ) -> Result<Option<(pto_graph::ScopeId, GmAddr)>, Fault> {
        if totals.heap_bytes == 0 {
            return Ok(None);
        }
        let scope = self.open(DependencyMode::DERIVED)?;
        let place = self.take_heap(scope.depth as usize, scope.serial, totals.heap_bytes)?;
        let heap = self.heap.offset(u64::from(scope.depth) * self.heap_bytes + place);
        Ok(Some((scope, heap)))
    }

    /// Writes every task into the next slot.
    #[inline(never)]
    fn write_tasks(
        &mut self,
        start: usize,
        totals: &Totals,
        playing: &Playing<'_>,
    ) -> Result<(), Fault> {
        let list = self.tape.words.get(totals.consumers()).unwrap_or(&[]);
        let mut consumers = list;
        let mut at = Tape::binding(start, totals.tensors as usize);
        let (mut place, mut position) = (playing.place, playing.position);
        let ring = low_half(self.words.capacity());
        for _ in 0..totals.tasks {
            let number = self.next;
            let id = self.id_of(number);
            let (Some(record), Some(task)) = (self.record(number), self.state.task(id.slot)) else {
                return Err(self.refuse_task(Fault::STREAM_WINDOW_SIZE, id, number, 0));
            };
            self.note_rings(record, position);
            let head = self.tape.head(at);
            TaskLine {
                func_id: head.func_id,
                kind: head.kind,
                args: head.args,
                kernel: head.kernel,
                payload: if place >= ring { place - ring } else { place },
                producers: head.producers,
                consumers: head.consumers,
                is_published: !head.starts,
            }
            .write(task, id);
            if head.is_shaped() {
                self.write_taped_shape(at + TaskHead::WORDS, id.slot, playing);
            }
            place += u32::from(head.args) + 1;
            position += u64::from(head.args) + 1;
            self.next = number + 1;
            self.host.added(id.slot);
            if H::TRACES {
                self.traced_ns = self.host.now_ns();
                let kind = u32::from(head.kind & !SHAPED);
                self.trace(TraceKind::ADDED, id.slot, u32::from(head.func_id) | kind << 16);
                if head.is_shaped() {
                    let (line, _) = self.tape.shape(at + TaskHead::WORDS);
                    self.trace_lanes(id.slot, &line);
                }
            }
            let taken;
            let count = head.consumers as usize;
            (taken, consumers) = consumers.split_at_checked(count).unwrap_or((&[], &[]));
            self.write_consumers(task, taken, playing.first);
            at = head.touches_at(at);
            for _ in 0..head.touches {
                at = self.touch(at, number, playing)?;
            }
        }
        if place > ring {
            self.write_words_around(totals, playing);
        } else {
            self.write_words(totals, playing);
        }
        self.tell_edges(playing.first, list);
        Ok(())
    }

    /// The argument words of all tasks.
    fn write_words(&self, totals: &Totals, playing: &Playing<'_>) {
        let place = playing.place as usize;
        let words = place..place + totals.arg_words as usize;
        let words = self.state.payloads.get(words).unwrap_or(&[]);
        let taped = self.tape.words.get(totals.words()).unwrap_or(&[]);
        let write = |(word, value): (&AtomicU64, &AtomicU64), base: u8| {
            let base = playing.bases[usize::from(base)];
            word.store(value.load(Ordering::Relaxed).wrapping_add(base), Ordering::Relaxed);
        };
        let mut groups = taped.as_chunks::<GROUP>().0.iter().rev();
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

    /// As `write_words`, where the ring ends among them: what begins behind its end stands at its start.
    #[cold]
    fn write_words_around(&self, totals: &Totals, playing: &Playing<'_>) {
        let (start, ring) = (playing.place, low_half(self.words.capacity()));
        let mut end = start;
        for task in (playing.first..self.next).filter_map(|n| self.state.task(self.slot_of(n))) {
            if end >= ring {
                break;
            }
            end += u32::from(task.arg_count.load(Ordering::Relaxed)) + 1;
        }
        let others = end.saturating_sub(ring) as usize;
        let words = self.state.payloads.get(start as usize..end as usize).unwrap_or(&[]);
        let others = self.state.payloads.get(others..).unwrap_or(&[]);
        let taped = self.tape.words.get(totals.words()).unwrap_or(&[]);
        let groups = taped.as_chunks::<GROUP>().0.iter().rev();
        let values = groups.flat_map(|[bases, values @ ..]| {
            values.iter().zip(bases.load(Ordering::Relaxed).to_le_bytes())
        });
        let values = values.take(totals.arg_words as usize);
        for (word, (value, base)) in words.iter().chain(others).zip(values) {
            let base = playing.bases[usize::from(base)];
            word.store(value.load(Ordering::Relaxed).wrapping_add(base), Ordering::Relaxed);
        }
    }

    /// The consumers of a task that is not published: nobody looks at it, nor at them.
    #[inline]
    fn write_consumers(&mut self, task: &Task, consumers: &[AtomicU64], first: u64) {
        let mut left = consumers.iter();
        for place in &task.consumers {
            let Some(consumer) = left.next() else { return };
            let slot = self.slot_of(first + consumer.load(Ordering::Relaxed));
            place.store(slot, Ordering::Relaxed);
        }
        for (count, consumer) in (0..).zip(consumers).skip(INLINE_CONSUMERS) {
            let slot = self.slot_of(first + consumer.load(Ordering::Relaxed));
            self.put(task, count, slot);
        }
    }

    /// The edges within the record, for those who listen: behind all of its tasks.
    fn tell_edges(&mut self, first: u64, mut consumers: &[AtomicU64]) {
        if !H::TRACES && !H::NOTES_EDGES {
            return;
        }
        for number in first..self.next {
            let from = self.slot_of(number);
            let count = self.state.task(from).map_or(0, |task| task.fanout.load(Ordering::Relaxed));
            let taken;
            (taken, consumers) = consumers.split_at_checked(count as usize).unwrap_or((&[], &[]));
            for consumer in taken {
                let to = self.slot_of(first + consumer.load(Ordering::Relaxed));
                self.trace(TraceKind::EDGE, to, from);
                self.host.derived(from, to, EdgeOutcome::Added);
            }
        }
    }

    /// The record of the task in `slot`, from the words at `at`.
    #[cold]
    fn write_taped_shape(&self, at: usize, slot: u32, playing: &Playing<'_>) {
        let (mut line, base) = self.tape.shape(at);
        let from = playing.bases.get(usize::from(base)).copied().unwrap_or(0);
        line.address = line.address.wrapping_add(from);
        self.write_shape(slot, &line);
    }

    /// The edges that a touch makes from tasks outside of the record, and what later tasks see of it.
    #[inline(never)]
    fn touch(&mut self, at: usize, number: u64, playing: &Playing<'_>) -> Result<usize, Fault> {
        let (touch, next) = self.tape.touch_head(at);
        if playing.mode == DependencyMode::MANUAL || !touch.looks && !touch.is_noted {
            return Ok(next);
        }
        let (mut base, mut offset) = (touch.base, 0);
        if touch.binding != LITERAL {
            let index = usize::from(touch.binding - TENSORS);
            let Some(view) = playing.bindings.tensors.get(index) else { return Ok(next) };
            (base, offset) = (view.base().0, view.offset_bytes());
        }
        let map = self.map;
        let region;
        let access = if touch.is_run {
            let [low, high] = [touch.low, touch.high].map(|end| end.wrapping_add(offset));
            Access::run(base, touch.kind, low, high)
        } else {
            region = self.tape.touch(at).0.region.moved(offset);
            Access::new(base, touch.kind, &region)
        };
        let first = playing.first;
        let is_derived = touch.is_derived && playing.mode == DependencyMode::DERIVED;
        if is_derived && touch.looks && touch.is_noted {
            let found = |producer: u64| match producer < first {
                true => self.derived_edge(producer, number).map_err(Some),
                false => Ok(()),
            };
            let derived = map.derive(&access, number, None, found);
            return match derived {
                Ok(()) => Ok(next),
                Err(fault) => Err(fault.unwrap_or_else(|| self.undecided(number, 0))),
            };
        }
        let Some(place) = map.place(&access) else { return Ok(next) };
        if touch.looks && playing.mode == DependencyMode::DERIVED {
            let found = |producer: u64| match producer < first {
                true => self.derived_edge(producer, number).map_err(Some),
                false => Ok(()),
            };
            if let Err(fault) = map.look(&place, &access, (number, Hide::Covered), None, found) {
                return Err(fault.unwrap_or_else(|| self.undecided(number, 0)));
            }
        }
        if touch.is_noted {
            let hide = if is_derived { Hide::Covered } else { Hide::Nothing };
            map.note(&place, &access, (number, hide));
        }
        Ok(next)
    }

    /// Publishes all of it.
    fn start(&mut self, first: u64, totals: &Totals) -> Result<(), Fault> {
        let tasks = u64::from(totals.tasks);
        // Relaxed: ordered before every decrement of these tasks by the pushes and releases below.
        S::fetch_add(&self.state.progress.outstanding, tasks, Ordering::Relaxed);
        count_some(&self.line.published, tasks);
        count_some(&self.line.edges, totals.edges.into());
        if H::TRACES {
            self.traced_ns = self.host.now_ns();
        }
        for number in first..self.next {
            let slot = self.slot_of(number);
            self.trace(TraceKind::PUBLISHED, slot, 0);
            self.host.replayed(slot);
        }
        if self.state.fault.is_raised() {
            return Err(self.raised());
        }
        let (list, count) = totals.starters;
        for at in (list as usize..).take(count as usize) {
            let slot = self.slot_of(first + self.tape.get(at));
            let Some(task) = self.state.task(slot) else { continue };
            task.state.store(TaskState::PUBLISHED.get(), Ordering::Relaxed);
            if release_published::<S>(task, task.edges_in.load(Ordering::Relaxed)) {
                self.is_ready(slot, task);
            }
            self.tell_state(at as u64);
            self.host.published();
        }
        Ok(())
    }
}
