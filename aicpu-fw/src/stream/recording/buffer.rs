//! The words that hold recordings.
//!
//! ```text
//! recording: START | tasks, bindings | words, edges | heap | touches, predicates | starters | end of its argument words |
//!          binding x n | task x n | consumer x edges | starters | predicates
//! binding: element, rank, written | extents | strides
//! task:    func, kind, arguments, producers | touches, starts, consumers | kernel |
//!          its block shape, if it has one (`BlockSpec`) | producers, 2 in a word | touch x touches
//! touch:   binding, kind, rank, looks, is noted, the touch of the same tensor before | base | low | high | run |
//!          (stride, count) x rank
//! words:   base of each | value x 8
//! ```
//! Recordings follow one another from the start; their argument words do so from the end, the first group of eight last.
//! Those of all tasks of a recording follow each other as a run has them, with a word of block context after those of each task.
//! The value of a word is added to a base of the replay: nothing, where its heap begins, the address of a bound
//! tensor, a bound scalar. A *touch* is an access to a tensor that others may touch as well: it *looks* for what it meets
//! around the recording unless a write of the recording covers it from before, and it is *noted* for what comes after the
//! recording unless a write of the recording covers it later. The consumers of all tasks follow each other in one list. The
//! predicates in the list are those on bound tensors. Producers are read only while the recording is made.

use core::ops::Range;

use pto_abi::limits::MAX_RANK;
use pto_abi::sync::{AtomicU64, Ordering::Relaxed};
use pto_abi::task::SHAPED;
use pto_graph::{MAX_BOUND, TensorView};

use super::super::block_spec::BlockSpec;
use super::super::map::AccessKind;
use super::super::region::{Dim, Region};
use super::super::rings::low_half;

/// The first word of a recording, with its position in the low half.
const START: u64 = 0x5245_434F << 32;
/// Words before the bindings.
pub(in crate::stream) const HEADER: usize = 7;
/// Words of a binding.
const BINDING: usize = 1 + 2 * MAX_RANK;

/// Eight argument words, and the word with their bases.
pub(in crate::stream) const GROUP: usize = 9;

/// The base of a value that is nothing but itself.
pub(in crate::stream) const LITERAL: u8 = 0;
/// The base of tensors of the recording's own heap.
pub(in crate::stream) const HEAP: u8 = 1;
/// The base of the first bound tensor; the bound scalars follow the last possible one.
pub(in crate::stream) const TENSORS: u8 = 2;
/// See [`TENSORS`].
pub(in crate::stream) const SCALARS: u8 = 66;
/// Bases: as many as a byte can name. Those after the bound scalars are not used.
pub(in crate::stream) const BASES: usize = 256;
const _: () =
    assert!(SCALARS as usize == TENSORS as usize + MAX_BOUND && 2 * MAX_BOUND + 2 <= BASES);

/// The words of all recordings of a run.
#[derive(Clone, Copy)]
pub(in crate::stream) struct RecordingBuffer<'a> {
    words: &'a [AtomicU64],
    /// Where the argument words of all recordings begin: nothing is written from there on.
    end: usize,
}

/// What the first words of a recording say.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::stream) struct Totals {
    pub(in crate::stream) tasks: u32,
    pub(in crate::stream) tensors: u32,
    pub(in crate::stream) scalars: u32,
    /// Argument words, with one of block context a task; and where they end.
    pub(in crate::stream) arg_words: u32,
    pub(in crate::stream) words_end: u32,
    pub(in crate::stream) edges: u32,
    pub(in crate::stream) heap_bytes: u64,
    /// Touches.
    pub(in crate::stream) touches: u32,
    /// The start of the list of the tasks that wait for nothing within the recording, and how many there are.
    pub(in crate::stream) starters: (u32, u32),
    /// How many predicates are on bound tensors: the list of the block shapes that they are in follows.
    pub(in crate::stream) predicates: u32,
}

/// The first words of a task.
#[derive(Clone, Copy)]
pub(in crate::stream) struct TaskHead {
    pub(in crate::stream) func_id: u16,
    /// As in the task's line: a `CoreKind`, and `SHAPED`.
    pub(in crate::stream) kind: u8,
    pub(in crate::stream) args: u8,
    /// Within the recording.
    pub(in crate::stream) producers: u32,
    /// Within the recording.
    pub(in crate::stream) consumers: u32,
    pub(in crate::stream) touches: u32,
    /// Whether a replay publishes it: it waits for nothing within the recording, or may wait for something around it.
    pub(in crate::stream) starts: bool,
    pub(in crate::stream) kernel: u64,
}

impl Totals {
    /// The words of the consumers.
    pub(in crate::stream) fn consumers(&self) -> Range<usize> {
        let end = self.starters.0 as usize;
        end.wrapping_sub(self.edges as usize)..end
    }

    /// The argument words.
    pub(in crate::stream) fn words(&self) -> Range<usize> {
        let end = self.words_end as usize;
        end.saturating_sub(GROUP * (self.arg_words as usize).div_ceil(8))..end
    }
}

impl TaskHead {
    pub(in crate::stream) const WORDS: usize = 3;

    /// Whether it is more than one kernel on one core.
    #[inline]
    pub(in crate::stream) const fn is_shaped(&self) -> bool {
        self.kind & SHAPED != 0
    }

    /// The words of the producers of the task at `at`.
    #[inline]
    pub(in crate::stream) fn producers_at(&self, at: usize) -> usize {
        let shape = if self.is_shaped() { BlockSpec::WORDS } else { 0 };
        at + Self::WORDS + shape
    }

    /// The words of the touches of the task at `at`.
    #[inline]
    pub(in crate::stream) fn touches_at(&self, at: usize) -> usize {
        self.producers_at(at) + (self.producers as usize).div_ceil(2)
    }
}

/// An access to a tensor that is not the recording's own.
#[derive(Clone, Copy)]
pub(in crate::stream) struct Touch {
    /// The index of the bound tensor among the bases; `LITERAL`: it is always the same tensor.
    pub(in crate::stream) binding: u8,
    pub(in crate::stream) base: u64,
    pub(in crate::stream) region: Region,
    pub(in crate::stream) kind: AccessKind,
    /// Whether its task takes its edges from its tensors.
    pub(in crate::stream) is_derived: bool,
    pub(in crate::stream) looks: bool,
    pub(in crate::stream) is_noted: bool,
    /// The word of the previous touch of the same binding; 0: there is none.
    pub(in crate::stream) previous: u32,
}

/// A touch without its strides.
#[derive(Clone, Copy)]
pub(in crate::stream) struct TouchHead {
    pub(in crate::stream) binding: u8,
    pub(in crate::stream) kind: AccessKind,
    pub(in crate::stream) is_derived: bool,
    pub(in crate::stream) looks: bool,
    pub(in crate::stream) is_noted: bool,
    /// Whether the bytes from `low` up to `high` are all that there is to know of its region.
    pub(in crate::stream) is_run: bool,
    pub(in crate::stream) base: u64,
    pub(in crate::stream) low: u64,
    pub(in crate::stream) high: u64,
}

impl<'a> RecordingBuffer<'a> {
    /// A buffer without recordings.
    pub(in crate::stream) const fn new(words: &'a [AtomicU64]) -> Self {
        Self { words, end: words.len() }
    }

    /// Limits the buffer to the words before `end`; later words are not written.
    pub(super) const fn up_to(self, end: usize) -> Self {
        Self { words: self.words, end }
    }

    /// Where the argument words of all recordings begin.
    pub(super) const fn end(&self) -> usize {
        self.end
    }

    /// How many words there are.
    pub(super) const fn len(&self) -> usize {
        self.words.len()
    }

    /// The words of a part; none, where it is not there.
    #[inline]
    pub(in crate::stream) fn part(&self, part: Range<usize>) -> &'a [AtomicU64] {
        self.words.get(part).unwrap_or(&[])
    }

    #[inline]
    pub(in crate::stream) fn get(&self, at: usize) -> u64 {
        self.words.get(at).map_or(0, |word| word.load(Relaxed))
    }

    /// Writes a word; one past the end is counted, not written.
    #[inline]
    pub(in crate::stream) fn put(&self, at: usize, word: u64) {
        if let Some(target) = self.words.get(at).filter(|_| at < self.end) {
            target.store(word, Relaxed);
        }
    }

    pub(in crate::stream) fn put_totals(&self, start: usize, totals: &Totals) {
        let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        self.put(start + 1, two(totals.tasks, totals.tensors << 16 | totals.scalars));
        self.put(start + 2, two(totals.arg_words, totals.edges));
        self.put(start + 3, totals.heap_bytes);
        self.put(start + 4, two(totals.touches, totals.predicates));
        self.put(start + 5, two(totals.starters.0, totals.starters.1));
        self.put(start + 6, totals.words_end.into());
        self.put(start, START | start as u64);
    }

    /// What the recording says that begins at `start`; `None`: none begins there.
    pub(in crate::stream) fn totals(&self, start: usize) -> Option<Totals> {
        let two = |word: u64| (low_half(word), low_half(word >> 32));
        let [counts, sizes, heap_bytes, touches, starters, words_end] =
            core::array::from_fn(|word| self.get(start + 1 + word));
        let (tasks, bindings) = two(counts);
        let (arg_words, edges) = two(sizes);
        let (touches, predicates) = two(touches);
        (self.get(start) == START | start as u64).then_some(Totals {
            tasks,
            tensors: bindings >> 16,
            scalars: bindings & 0xFFFF,
            arg_words,
            words_end: low_half(words_end),
            edges,
            heap_bytes,
            touches,
            starters: two(starters),
            predicates,
        })
    }

    /// Writes a block shape; `base`: what the address of its predicate is counted from.
    pub(super) fn put_block_shape(&self, at: usize, shape: &BlockSpec, base: u8) {
        for (word, value) in (at..).zip(shape.words(base)) {
            self.put(word, value);
        }
    }

    /// The block shape at `at`, and what the address of its predicate is counted from.
    pub(in crate::stream) fn block_shape(&self, at: usize) -> (BlockSpec, u8) {
        BlockSpec::of_words(core::array::from_fn(|word| self.get(at + word)))
    }

    /// The word of binding number `index` of the recording at `start`.
    pub(in crate::stream) const fn binding(start: usize, index: usize) -> usize {
        start + HEADER + index * BINDING
    }

    pub(in crate::stream) fn put_binding(&self, at: usize, view: &TensorView<'_>) {
        for (word, wanted) in (at..).zip(words_of(view)) {
            self.put(word, wanted);
        }
    }

    pub(in crate::stream) fn is_written(&self, binding: usize) -> bool {
        self.get(binding) & WRITTEN != 0
    }

    pub(in crate::stream) fn set_written(&self, binding: usize) {
        self.put(binding, self.get(binding) | WRITTEN);
    }

    /// Whether a view looks as the binding at `at` says.
    #[inline]
    pub(in crate::stream) fn fits(&self, at: usize, view: &TensorView<'_>) -> bool {
        let rank = view.shape().len();
        let is_there = |(word, wanted): (usize, u64)| self.get(word) & !WRITTEN == wanted;
        (at..).zip(words_of(view)).take(1 + 2 * rank).all(is_there)
    }

    pub(in crate::stream) fn put_head(&self, at: usize, head: &TaskHead) {
        let counts = u64::from(head.func_id) | u64::from(head.kind) << 16;
        self.put(at, counts | u64::from(head.args) << 24 | u64::from(head.producers) << 32);
        let touches = u64::from(head.touches) | u64::from(head.starts) << STARTS;
        self.put(at + 1, touches | u64::from(head.consumers) << 32);
        self.put(at + 2, head.kernel);
    }

    #[inline]
    pub(in crate::stream) fn head(&self, at: usize) -> TaskHead {
        let words = self.words.get(at..).and_then(|words| words.first_chunk());
        let [counts, touches, kernel] = match words {
            Some(head) => head.each_ref().map(|word| word.load(Relaxed)),
            None => [0; TaskHead::WORDS],
        };
        let [func_low, func_high, kind, args, ..] = counts.to_le_bytes();
        TaskHead {
            func_id: u16::from_le_bytes([func_low, func_high]),
            kind,
            args,
            producers: low_half(counts >> 32),
            consumers: low_half(touches >> 32),
            touches: low_half(touches) & ((1 << STARTS) - 1),
            starts: touches >> STARTS & 1 != 0,
            kernel,
        }
    }

    /// Writes a touch; returns the word after it.
    pub(in crate::stream) fn put_touch(&self, at: usize, touch: &Touch) -> usize {
        let region = &touch.region;
        let rank = region.dims().len();
        let is_write = touch.kind == AccessKind::Write;
        let flags = [is_write, touch.looks, touch.is_noted, touch.is_derived];
        let flags = (0..).zip(flags).fold(0, |bits, (bit, flag)| bits | u64::from(flag) << bit);
        let first = u64::from(touch.binding) | flags << 8 | (rank as u64) << 16;
        self.put(at, first | u64::from(touch.previous) << 32);
        let rest = [touch.base, region.low, region.high, region.run];
        let dims = region.dims().iter().flat_map(|dim| [dim.stride, dim.count.into()]);
        for (word, value) in (at + 1..).zip(rest.into_iter().chain(dims)) {
            self.put(word, value);
        }
        at + 5 + 2 * rank
    }

    /// The touch at `at` without its strides, and the word after it.
    #[inline]
    pub(in crate::stream) fn touch_head(&self, at: usize) -> (TouchHead, usize) {
        let first = self.get(at);
        let [binding, flags, rank, ..] = first.to_le_bytes();
        let kind = if flags & 1 == 0 { AccessKind::Read } else { AccessKind::Write };
        let head = TouchHead {
            binding,
            kind,
            is_derived: flags & 8 != 0,
            looks: flags & 2 != 0,
            is_noted: flags & 4 != 0,
            is_run: rank == 0,
            base: self.get(at + 1),
            low: self.get(at + 2),
            high: self.get(at + 3),
        };
        (head, at + 5 + 2 * usize::from(rank))
    }

    /// The touch at `at`, and the word after it.
    pub(in crate::stream) fn touch(&self, at: usize) -> (Touch, usize) {
        let (TouchHead { binding, kind, is_derived, looks, is_noted, base, low, high, .. }, next) =
            self.touch_head(at);
        let mut dims = [Dim::default(); MAX_RANK];
        let mut rank = 0;
        for (dim, word) in dims.iter_mut().zip((at + 5..next).step_by(2)) {
            *dim = Dim { stride: self.get(word), count: low_half(self.get(word + 1)) };
            rank += 1;
        }
        let region = match dims.get(..rank) {
            None | Some([]) => Region::run(low, high),
            Some(dims) => Region::from_parts(low, high, self.get(at + 4), dims),
        };
        let previous = low_half(self.get(at) >> 32);
        (Touch { binding, base, region, kind, is_derived, looks, is_noted, previous }, next)
    }

    /// The touch at `at` is not noted: a later one hides it.
    pub(in crate::stream) fn hide(&self, at: usize) {
        self.put(at, self.get(at) & !(4 << 8));
    }
}

/// The bit in the second word of a task that says whether it starts.
const STARTS: u32 = 31;
/// In the first word of a binding: the recording writes it.
const WRITTEN: u64 = 1 << 32;

/// How a view looks: element type and rank, extents, strides; dimensions of one element have none that counts.
fn words_of<'v>(view: &'v TensorView<'_>) -> impl Iterator<Item = u64> + 'v {
    let rank = view.shape().len() as u64;
    let strides = view.shape().iter().zip(view.strides());
    let strides = strides.map(|(extent, stride)| if *extent == 1 { 0 } else { *stride });
    [u64::from(view.element().get()) | rank << 8]
        .into_iter()
        .chain(view.shape().iter().map(|extent| u64::from(*extent)))
        .chain(strides)
}
