//! What follows when a task has finished: its fanout is closed, its consumers are released, and those that are ready by that
//! are told to whoever dispatches them.
//!
//! ```text
//! complete --+--> consumers in the task's own line --> ready: handed over, rung ahead, or PlainTasks / the board
//!            `--> the others: go_on, as far as the step's releases go --> resume, in the next step
//! ```
//! Invariants:
//! - A step releases at most [`RELEASES_A_STEP`] consumers beside the few in each task's own line. A larger fanout goes on in
//!   the next step, before anything else is collected.
//! - A task is counted as completed after all its consumers have been released; nothing of it is touched from then on.

use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use pto_abi::kinds::TaskState;
use pto_abi::runtime::InstanceLine;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::{INLINE_CONSUMERS, Task};
use pto_abi::trace::{TraceKind, TraceRecord};
use pto_abi::{CoreKind, Fault};

use super::ahead::Hint;
use super::dispatcher::Dispatcher;
use super::plain::PlainTasks;
use super::tally::Tally;
use crate::cores::apart::PART;
use crate::fanout::{ConsumerWalk, FanoutPolicy};
use crate::mutant::{self, Mutant};
use crate::platform::Platform;
use crate::state::{SharedState, has_block_shape, kind_in, kind_of};

/// Consumers that one step releases at most. 1,024 decrements take about 10 us: the length of the pause that
/// a large fanout may cause to the other cores of the instance.
pub const RELEASES_A_STEP: u32 = 1024;

/// Consumers in a task's own line.
#[expect(clippy::cast_possible_truncation, reason = "five")]
const INLINE: u32 = INLINE_CONSUMERS as u32;

/// What a core that has finished a task could run next, of what is ready by that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing that is wanted.
    Nothing,
    /// This task, of this kind, which is in no queue.
    Ready(u32, CoreKind),
    /// A task that was staged ahead for it, and has been rung.
    Rung,
}

/// A release that is not finished.
#[derive(Hash)]
struct Release {
    slot: u32,
    walk: ConsumerWalk,
}

/// The completions of one scheduler. See the module.
#[repr(C)]
pub(super) struct Completions<'a, F> {
    tally: Tally<'a>,
    release: Option<Release>,
    // Consumers that may still be released in this step.
    releases_left: u32,
    // The clock as this completion found it, where events are recorded.
    traced_ns: u64,
    policy: PhantomData<F>,
}

impl<'a, F: FanoutPolicy> Completions<'a, F> {
    pub(super) const fn new(line: &'a InstanceLine) -> Self {
        let (tally, policy) = (Tally::new(line), PhantomData);
        Self { tally, release: None, releases_left: 0, traced_ns: 0, policy }
    }

    /// How many there were.
    #[inline(always)]
    pub(super) const fn tally(&self) -> &Tally<'a> {
        &self.tally
    }

    /// The same, to tell others.
    #[inline(always)]
    pub(super) const fn tally_mut(&mut self) -> &mut Tally<'a> {
        &mut self.tally
    }

    /// Whether a large fanout waits to be released further.
    #[inline(always)]
    pub(super) const fn is_releasing(&self) -> bool {
        self.release.is_some()
    }

    /// A pass over the cores begins: it may release so many consumers.
    #[inline(always)]
    pub(super) const fn begin(&mut self) {
        self.releases_left = RELEASES_A_STEP;
    }

    /// Closes the fanout of the task that a core has finished, and releases its consumers. Returns the first one of a
    /// kind that is wanted and is ready by that, if any; it is in no queue then. What was staged ahead is rung.
    #[inline]
    pub(super) fn complete<P: Platform>(
        &mut self,
        (dispatcher, plain): (&mut Dispatcher<'a>, &mut PlainTasks<'a>),
        platform: &mut P,
        (core, slot): (usize, u32),
        wants: impl Fn(CoreKind) -> bool,
    ) -> Result<Next, Fault> {
        let Some(task) = dispatcher.state().task(slot) else {
            if P::SHAPES {
                self.part_finished(dispatcher, plain, platform, (core, slot));
            }
            return Ok(Next::Nothing);
        };
        self.look_at_clock(platform);
        self.trace_completed(dispatcher, platform, (core, slot));
        let lost = u32::from(mutant::is(Mutant::DropsAnEdge));
        let count = F::close::<P::Sharing>(task).saturating_sub(lost);
        let mut next = Next::Nothing;
        let hint = if P::STAGES_AHEAD { dispatcher.take_hint(core) } else { None };
        let in_line = task.consumers.get(..count.min(INLINE) as usize);
        for consumer in in_line.unwrap_or(&task.consumers) {
            let consumer = consumer.load(Ordering::Relaxed);
            let ready = self.release(dispatcher.state(), plain, platform, consumer);
            let ready = ready.or_else(|| too_early(dispatcher.state(), hint, consumer));
            let Some(kind) = ready else { continue };
            if P::STAGES_AHEAD
                && plain.hands_over()
                && let Some(target) = dispatcher.stands_on(hint, consumer, (core, wants(kind)))
            {
                dispatcher.ring_ahead(platform, (core, target), consumer)?;
                if target == core
                    && let Next::Ready(other, kind) = core::mem::replace(&mut next, Next::Rung)
                {
                    plain.make_ready::<P>(dispatcher.state(), other, kind);
                }
            } else if next == Next::Nothing && wants(kind) {
                next = Next::Ready(consumer, kind);
            } else {
                plain.make_ready::<P>(dispatcher.state(), consumer, kind);
            }
        }
        if count > INLINE {
            self.releases_left = self.releases_left.saturating_sub(INLINE);
            let walk = ConsumerWalk::beyond_the_line(count);
            self.go_on(dispatcher.state(), plain, platform, (slot, walk));
        } else {
            self.note_completed(task);
        }
        Ok(next)
    }

    /// All consumers of the task are released.
    #[inline]
    fn note_completed(&mut self, task: &Task) {
        if !mutant::is(Mutant::ForgetsTheState) {
            // Release: pairs with the Acquire loads in `stream::Stream`, whose builder then reuses the slot and its edges:
            // nothing of the task is touched after this store.
            task.state.store(TaskState::COMPLETED.get(), Ordering::Release);
        }
        self.tally.count();
    }

    /// Goes on with the release that an earlier step has left.
    #[cold]
    pub(super) fn resume<P: Platform>(
        &mut self,
        state: &SharedState<'a>,
        plain: &mut PlainTasks<'a>,
        platform: &mut P,
    ) {
        if let Some(Release { slot, walk }) = self.release.take() {
            self.look_at_clock(platform);
            self.go_on(state, plain, platform, (slot, walk));
        }
    }

    /// Where events are recorded: one look serves all events of a completion.
    #[inline]
    fn look_at_clock<P: Platform>(&mut self, platform: &P) {
        if P::TRACES {
            self.traced_ns = platform.now_ns();
        }
    }

    #[inline]
    fn trace_completed<P: Platform>(
        &self,
        dispatcher: &Dispatcher<'_>,
        platform: &mut P,
        (core, task): (usize, u32),
    ) {
        if P::TRACES {
            let (time_ns, kind) = (self.traced_ns, TraceKind::COMPLETED);
            let extra = dispatcher.cores().worker(core);
            platform.trace(TraceRecord { time_ns, kind, task, extra });
        }
    }

    /// Releases the consumers of a large fanout, as far as the step's releases go.
    #[inline(never)]
    fn go_on<P: Platform>(
        &mut self,
        state: &SharedState<'a>,
        plain: &mut PlainTasks<'a>,
        platform: &mut P,
        (slot, mut walk): (u32, ConsumerWalk),
    ) {
        let Some(task) = state.task(slot) else { return };
        while let Some(consumer) = walk.next(task, state.chunks) {
            if let Some(kind) = self.release(state, plain, platform, consumer) {
                plain.make_ready::<P>(state, consumer, kind);
            }
            self.releases_left = self.releases_left.saturating_sub(1);
            if self.releases_left == 0 {
                self.release = Some(Release { slot, walk });
                return;
            }
        }
        self.note_completed(task);
    }

    /// One producer of `consumer` has completed; the consumer's kind, if it is ready by that for a core of that kind.
    #[inline(always)]
    fn release<P: Platform>(
        &self,
        state: &SharedState<'a>,
        plain: &mut PlainTasks<'a>,
        platform: &mut P,
        consumer: u32,
    ) -> Option<CoreKind> {
        let task = state.task(consumer)?;
        if mutant::is(Mutant::ReleasesTwice) {
            P::Sharing::fetch_sub_u32(&task.fanin, 1, Ordering::Relaxed);
        }
        // AcqRel: Release passes on what this producer wrote; Acquire, in the last decrement, pairs with the
        // Release half of the others and with the publish in `release_published`.
        if P::Sharing::fetch_sub_u32(&task.fanin, 1, Ordering::AcqRel) != 1 {
            return None;
        }
        if P::TRACES {
            let (time_ns, kind) = (self.traced_ns, TraceKind::READY);
            platform.trace(TraceRecord { time_ns, kind, task: consumer, extra: 0 });
        }
        let kind = task.kind.load(Ordering::Relaxed);
        if P::SHAPES && has_block_shape(kind) {
            post::<P>(state, plain, consumer);
            return None;
        }
        Some(kind_in(kind))
    }

    /// Completes a task that does not run.
    pub(super) fn skip<P: Platform>(
        &mut self,
        state: &SharedState<'a>,
        plain: &mut PlainTasks<'a>,
        platform: &mut P,
        (slot, task): (u32, &Task),
    ) {
        platform.skipped(slot);
        self.look_at_clock(platform);
        if P::TRACES {
            let (time_ns, kind) = (self.traced_ns, TraceKind::SKIPPED);
            platform.trace(TraceRecord { time_ns, kind, task: slot, extra: 0 });
        }
        let count = F::close::<P::Sharing>(task);
        let count = if mutant::is(Mutant::SkipsTheConsumersToo) { 0 } else { count };
        self.begin();
        self.go_on(state, plain, platform, (slot, ConsumerWalk::new(count)));
    }

    /// A core has finished a part. With the last one the task is complete.
    #[cold]
    #[inline(never)]
    fn part_finished<P: Platform>(
        &mut self,
        dispatcher: &Dispatcher<'a>,
        plain: &mut PlainTasks<'a>,
        platform: &mut P,
        (core, running): (usize, u32),
    ) {
        let slot = running & !PART;
        let record = dispatcher.state().shapes.and_then(|shapes| shapes.record(slot));
        let Some(record) = record.filter(|_| running & PART != 0) else { return };
        if P::TRACES {
            let (time_ns, kind) = (platform.now_ns(), TraceKind::COLLECTED);
            let extra = dispatcher.cores().worker(core);
            platform.trace(TraceRecord { time_ns, kind, task: slot, extra });
        }
        let one = if mutant::is(Mutant::ForgetsAPart) { 2 } else { 1 };
        // AcqRel: Release passes on what this part wrote; Acquire, in the last decrement, pairs with the Release half of
        // the others.
        let left = P::Sharing::fetch_sub_u32(&record.parts_left, one, Ordering::AcqRel);
        if left == one || left == 1 {
            self.parts_are_done(dispatcher, plain, platform, (core, slot));
        }
    }

    /// As `complete`, which has one caller on the hot path.
    fn parts_are_done<P: Platform>(
        &mut self,
        dispatcher: &Dispatcher<'a>,
        plain: &mut PlainTasks<'a>,
        platform: &mut P,
        (core, slot): (usize, u32),
    ) {
        let Some(task) = dispatcher.state().task(slot) else { return };
        self.look_at_clock(platform);
        self.trace_completed(dispatcher, platform, (core, slot));
        let lost = u32::from(mutant::is(Mutant::DropsAnEdge));
        let count = F::close::<P::Sharing>(task).saturating_sub(lost);
        self.go_on(dispatcher.state(), plain, platform, (slot, ConsumerWalk::new(count)));
    }
}

impl<F> Completions<'_, F> {
    /// Hashes everything that later steps depend on: what may still be released is set anew by each.
    pub(super) fn hash_state<H: Hasher>(&self, into: &mut H) {
        let Self { tally, release, releases_left: _, traced_ns, policy: _ } = self;
        tally.hash_state(into);
        (release, traced_ns).hash(into);
    }
}

/// A task with a block shape is ready: no core that finishes later in this step goes straight to a plain one before it.
#[cold]
#[inline(never)]
fn post<P: Platform>(state: &SharedState<'_>, plain: &mut PlainTasks<'_>, slot: u32) {
    plain.before_post::<P>(state);
    state.post_ready(slot);
    if let Some(shapes) = &state.shapes {
        plain.look_at_board(shapes);
    }
}

/// A mutant: what was staged ahead, whatever it waits for.
#[inline(always)]
fn too_early(state: &SharedState<'_>, hint: Option<Hint>, consumer: u32) -> Option<CoreKind> {
    if !mutant::is(Mutant::RingsTooEarly) {
        return None;
    }
    hint.filter(|hint| hint.is_of(consumer))?;
    state.task(consumer).map(kind_of)
}
