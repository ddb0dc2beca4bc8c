//! What follows when a task has finished: its fanout is closed, its consumers are released, and those that are ready by that
//! go to what dispatches them.
//!
//! ```text
//! complete --+--> consumers in the task's own line --> ready: handed over, started ahead, or PlainTasks / the board
//!            `--> the others: go_on, as far as the releases of the pass go --> resume, in the next step
//! ```
//! Invariants:
//! - A pass over the cores, or over the tasks that run as soon as their doorbell is written, releases at most [`RELEASES_A_PASS`] consumers in addition to the few in each task's
//!   own line. A larger fanout ends the pass and goes on in the next step, before anything else is collected. A step makes two passes at most.
//! - A task is counted as completed after all its consumers have been released; nothing of it is touched from then on.

use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use pto_abi::kinds::TaskState;
use pto_abi::runtime::InstanceLine;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::{INLINE_CONSUMERS, Task};
use pto_abi::trace::{TraceKind, TracePoint};
use pto_abi::{CoreKind, Fault};

use super::ahead::Hint;
use super::dispatcher::Dispatcher;
use super::plain::PlainTasks;
use super::tally::Tally;
use crate::cores::apart::PART;
use crate::fanout::{ConsumerWalk, FanoutPolicy};
use crate::machine::Machine;
use crate::mutant::{self, Mutant};
use crate::platform::Platform;
use crate::state::{SharedState, has_block_shape, kind_in, kind_of};

/// Consumers that one pass of a step releases at most. 1,024 decrements take about 10 us: the length of the pause that
/// a large fanout may cause to the other cores of the instance.
pub const RELEASES_A_PASS: u32 = 1024;

/// Consumers in a task's own line.
#[expect(clippy::cast_possible_truncation, reason = "five")]
const INLINE: u32 = INLINE_CONSUMERS as u32;

/// What a core that has finished a task could run next, of what is ready by that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NextTask {
    /// There is no task of a wanted kind.
    Nothing,
    /// This task, of this kind, which is in no queue.
    Ready(u32, CoreKind),
    /// A task that was staged ahead for it, and has been started.
    Started,
}

/// A task, or a part of one, on the core that has finished it.
#[derive(Clone, Copy)]
pub(super) struct OnCore {
    /// The core's index.
    pub(super) core: usize,
    /// The slot of the task; of a part, what the core runs.
    pub(super) slot: u32,
}

/// A release that is not finished.
#[derive(Hash)]
struct Release {
    slot: u32,
    walk: ConsumerWalk,
}

/// The way of a task through a scheduler: given to a core, finished, its consumers ready. One struct, so that the hot path has one
/// pointer to it.
#[repr(C)]
pub(super) struct Flow<'a, F> {
    tally: Tally<'a>,
    release: Option<Release>,
    // Consumers that may still be released in this pass.
    releases_left: u32,
    /// What is ready.
    pub(super) plain: PlainTasks<'a>,
    /// The cores.
    pub(super) dispatcher: Dispatcher<'a>,
    policy: PhantomData<F>,
}

impl<'a, F: FanoutPolicy> Flow<'a, F> {
    #[inline(always)]
    pub(super) const fn new(
        state: SharedState<'a>,
        line: &'a InstanceLine,
        generation: u32,
    ) -> Self {
        Self {
            dispatcher: Dispatcher::new(state, generation),
            plain: PlainTasks::new(line),
            tally: Tally::new(line),
            release: None,
            releases_left: 0,
            policy: PhantomData,
        }
    }

    /// How many there were.
    #[inline(always)]
    pub(super) const fn tally(&self) -> &Tally<'a> {
        &self.tally
    }

    /// Publishes how many tasks this instance has completed.
    pub(super) fn flush<P: Platform>(&mut self) {
        let Self { tally, dispatcher, .. } = self;
        tally.flush::<P>(dispatcher.cores(), dispatcher.state().progress);
    }

    /// Whether a large fanout waits to be released further.
    #[inline(always)]
    pub(super) const fn is_releasing(&self) -> bool {
        self.release.is_some()
    }

    /// A pass over the cores begins: it, and the tasks that complete without a core, may release so many consumers.
    #[inline(always)]
    pub(super) const fn begin(&mut self) {
        self.releases_left = RELEASES_A_PASS;
    }

    /// Closes the fanout of the task that a core has finished, and releases its consumers. Returns the first one of a
    /// kind that is wanted and is ready by that, if any; it is in no queue then. What was staged ahead is started.
    #[inline]
    pub(super) fn complete<P: Platform>(
        &mut self,
        platform: &mut P,
        finished: OnCore,
        wants: impl Fn(CoreKind) -> bool,
    ) -> Result<NextTask, Fault> {
        let Some(task) = self.dispatcher.state().task(finished.slot) else {
            if P::Machine::BLOCK_SHAPES {
                self.part_finished(platform, finished);
            }
            return Ok(NextTask::Nothing);
        };
        self.complete_task(platform, finished, task, wants)
    }

    /// Completes a task whose record the caller already has.
    #[inline(always)]
    pub(super) fn complete_task<P: Platform>(
        &mut self,
        platform: &mut P,
        finished: OnCore,
        task: &'a Task,
        wants: impl Fn(CoreKind) -> bool,
    ) -> Result<NextTask, Fault> {
        let OnCore { core, slot } = finished;
        self.dispatcher.look_at_clock(platform);
        self.trace_completed(platform, finished);
        let lost = u32::from(mutant::is(Mutant::DropsAnEdge));
        let count = F::close::<P::Sharing>(task).saturating_sub(lost);
        let mut next = NextTask::Nothing;
        let hint = if P::Machine::STAGES_AHEAD { self.dispatcher.take_hint(core) } else { None };
        let in_line = task.consumers.get(..count.min(INLINE) as usize);
        // At hand: what is released could be anything to the compiler, which would look for the tasks again after each.
        let tasks = self.dispatcher.state().tasks;
        for consumer in in_line.unwrap_or(&task.consumers) {
            let consumer = consumer.load(Ordering::Relaxed);
            let ready = self.release(platform, tasks, consumer);
            let ready = ready.or_else(|| too_early(self.dispatcher.state(), hint, consumer));
            let Some(kind) = ready else { continue };
            if P::Machine::STAGES_AHEAD
                && self.plain.hands_over()
                && let Some(target) =
                    self.dispatcher.core_staged_for(hint, consumer, core, wants(kind))
            {
                self.dispatcher.ring_ahead(platform, core, target, consumer)?;
                if target == core
                    && let NextTask::Ready(other, kind) =
                        core::mem::replace(&mut next, NextTask::Started)
                {
                    self.plain.make_ready::<P>(self.dispatcher.state(), other, kind);
                }
            } else if next == NextTask::Nothing && wants(kind) {
                next = NextTask::Ready(consumer, kind);
            } else {
                self.plain.make_ready::<P>(self.dispatcher.state(), consumer, kind);
            }
        }
        if count > INLINE {
            self.releases_left = self.releases_left.saturating_sub(INLINE);
            let walk = ConsumerWalk::beyond_the_line(count);
            self.go_on(platform, Release { slot, walk });
        } else {
            self.note_completed(task);
        }
        Ok(next)
    }

    /// All consumers of the task are released.
    #[inline]
    fn note_completed(&mut self, task: &Task) {
        if !mutant::is(Mutant::ForgetsTheState) {
            // Release: pairs with the Acquire loads in `SlotWindow::advance` and `proof::rest`; the builder then reuses the slot and its edges:
            // nothing of the task is touched after this store.
            task.state.store(TaskState::COMPLETED.get(), Ordering::Release);
        }
        self.tally.count();
    }

    /// Goes on with the release that an earlier step has left.
    #[cold]
    pub(super) fn resume<P: Platform>(&mut self, platform: &mut P) {
        if let Some(release) = self.release.take() {
            self.dispatcher.look_at_clock(platform);
            self.go_on(platform, release);
        }
    }

    #[inline]
    fn trace_completed<P: Platform>(&self, platform: &mut P, finished: OnCore) {
        if platform.machine().traces() {
            let (time_ns, kind) = (self.dispatcher.traced_ns(), TraceKind::COMPLETED);
            let extra = self.dispatcher.cores().worker(finished.core);
            platform.machine().trace(TracePoint { time_ns, kind, task: finished.slot, extra });
        }
    }

    /// Releases the consumers of a large fanout, as far as the releases of the pass go.
    #[inline(never)]
    fn go_on<P: Platform>(&mut self, platform: &mut P, release: Release) {
        let Release { slot, mut walk } = release;
        let Some(task) = self.dispatcher.state().task(slot) else { return };
        let tasks = self.dispatcher.state().tasks;
        while let Some(consumer) = walk.next(task, self.dispatcher.state().chunks) {
            if let Some(kind) = self.release(platform, tasks, consumer) {
                self.plain.make_ready::<P>(self.dispatcher.state(), consumer, kind);
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
        &mut self,
        platform: &mut P,
        tasks: &[Task],
        consumer: u32,
    ) -> Option<CoreKind> {
        let task = tasks.get(consumer as usize)?;
        if mutant::is(Mutant::ReleasesTwice) {
            P::Sharing::fetch_sub_u32(&task.fanin, 1, Ordering::Relaxed);
        }
        // AcqRel: Release passes on what this producer wrote; Acquire, in the last decrement, pairs with the
        // Release half of the others and with the publish in `release_published`.
        if P::Sharing::fetch_sub_u32(&task.fanin, 1, Ordering::AcqRel) != 1 {
            return None;
        }
        if platform.machine().traces() {
            let (time_ns, kind) = (self.dispatcher.traced_ns(), TraceKind::READY);
            platform.machine().trace(TracePoint { time_ns, kind, task: consumer, extra: 0 });
        }
        let kind = task.kind.load(Ordering::Relaxed);
        if P::Machine::BLOCK_SHAPES && has_block_shape(kind) {
            self.post::<P>(consumer);
            return None;
        }
        Some(kind_in(kind))
    }

    /// A task with a block shape is ready: no core that finishes later in this step goes straight to a plain one before it. A transfer needs no core,
    /// and siblings have nothing to do for it.
    #[cold]
    #[inline(never)]
    fn post<P: Platform>(&mut self, slot: u32) {
        let state = self.dispatcher.state();
        if !P::Machine::TRANSFERS || !state.is_transfer(slot) {
            self.plain.before_post::<P>(state);
        }
        state.post_ready(slot);
        if let Some(shapes) = &state.shapes {
            self.plain.look_at_board(shapes);
        }
    }

    /// Completes a task that does not run.
    pub(super) fn skip<P: Platform>(&mut self, platform: &mut P, slot: u32, task: &Task) {
        platform.skipped(slot);
        self.dispatcher.look_at_clock(platform);
        if platform.machine().traces() {
            let (time_ns, kind) = (self.dispatcher.traced_ns(), TraceKind::SKIPPED);
            platform.machine().trace(TracePoint { time_ns, kind, task: slot, extra: 0 });
        }
        let count = F::close::<P::Sharing>(task);
        let count = if mutant::is(Mutant::SkipsTheConsumersToo) { 0 } else { count };
        self.go_on(platform, Release { slot, walk: ConsumerWalk::new(count) });
    }

    /// The engine has finished a transfer: the tasks that are released now must see what it brought.
    #[cold]
    pub(super) fn transferred<P: Platform>(&mut self, platform: &mut P, slot: u32, task: &Task) {
        platform.transferred(slot);
        self.dispatcher.look_at_clock(platform);
        if platform.machine().traces() {
            // As of a task that runs on no core of this device.
            let (time_ns, kind) = (self.dispatcher.traced_ns(), TraceKind::SKIPPED);
            platform.machine().trace(TracePoint { time_ns, kind, task: slot, extra: 0 });
        }
        let count = F::close::<P::Sharing>(task);
        self.go_on(platform, Release { slot, walk: ConsumerWalk::new(count) });
    }

    /// A core has finished a part. With the last one the task is complete.
    #[cold]
    #[inline(never)]
    fn part_finished<P: Platform>(&mut self, platform: &mut P, part: OnCore) {
        let OnCore { core, slot: running } = part;
        let slot = running & !PART;
        let line = self.dispatcher.state().shapes.and_then(|shapes| shapes.line(slot));
        let Some(line) = line.filter(|_| running & PART != 0) else { return };
        self.dispatcher.look_at_clock(platform);
        if platform.machine().traces() {
            let (time_ns, kind) = (self.dispatcher.traced_ns(), TraceKind::COLLECTED);
            let extra = self.dispatcher.cores().worker(core);
            platform.machine().trace(TracePoint { time_ns, kind, task: slot, extra });
        }
        let one = if mutant::is(Mutant::ForgetsAPart) { 2 } else { 1 };
        // AcqRel: pairs with itself: Release passes on what this part wrote, and the last part acquires what the others wrote.
        let left = P::Sharing::fetch_sub_u32(&line.parts_left, one, Ordering::AcqRel);
        if left == one || left == 1 {
            self.parts_are_done(platform, OnCore { core, slot });
        }
    }

    /// As `complete`, which has one caller on the hot path.
    fn parts_are_done<P: Platform>(&mut self, platform: &mut P, last: OnCore) {
        let slot = last.slot;
        let Some(task) = self.dispatcher.state().task(slot) else { return };
        // Another agent may have counted down a part that ended later than the clock was read here last.
        self.dispatcher.look_at_clock(platform);
        self.trace_completed(platform, last);
        let lost = u32::from(mutant::is(Mutant::DropsAnEdge));
        let count = F::close::<P::Sharing>(task).saturating_sub(lost);
        self.go_on(platform, Release { slot, walk: ConsumerWalk::new(count) });
    }
}

impl<F> Flow<'_, F> {
    /// Hashes everything that later steps depend on: what may still be released is set anew by each.
    pub(super) fn hash_state<H: Hasher>(&self, into: &mut H) {
        let Self { dispatcher, plain, tally, release, releases_left: _, policy: _ } = self;
        dispatcher.hash_state(into);
        plain.hash_state(into);
        tally.hash_state(into);
        release.hash(into);
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
