//! Plain tasks: those that are one kernel on one core. Which ready one goes to which core.
//!
//! ```text
//! own newly ready tasks -> the part of siblings with free cores: shared queue
//! own newly ready tasks -> free own cores -> (two dispatches a core) busy own cores ->  shared queue
//! shared queue          -> free own cores -> (two dispatches a core) busy own cores
//! ```
//! [`choose`] says what comes next for one kind of cores, and changes nothing; [`PlainTasks::dispatch`] does it, and asks again.
//!
//! Where looks at cores cost something, and nothing waits on the board, schedulers divide what is ready: each free core of the kind, here and at siblings, by what
//! these said last, is to have as many tasks ([`PlainTasks::give_away`]). Tasks that start together end together, and one scheduler
//! alone would see their ends one after another.
//!
//! A second dispatch is a promise that cannot be taken back, so it is given only
//! - while no core of the kind is free, here or at a sibling, by what siblings said last;
//! - to a core that is expected to be free soon, the soonest first. A kernel that was not seen to finish yet, or
//!   that takes twice what it took before, is expected to take for ever.
//!
//! So a task loses at most about that time against a core that becomes free earlier than expected.
//!
//! Invariants:
//! - *No hoarding*: at the end of a step `local` is empty. What the own cores did not take is in the shared queue. No more is left
//!   there while an own core is free than siblings have free cores, by what they said; each step takes some of it.
//! - `has_shared` says that siblings have something to look for since the last [`PlainTasks::take_shared`].
//! - While a task waits on the board that comes first, `hands_over` is false: no core goes straight to a consumer.

use core::hash::{Hash, Hasher};

use heapless::Vec;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::runtime::InstanceLine;
use pto_abi::sync::Ordering;
use pto_abi::{CoreKind, Fault};

use super::dispatcher::Dispatcher;
use crate::block_shapes::BlockShapeMemory;
use crate::machine::Machine;
use crate::mutant::{self, Mutant};
use crate::platform::Platform;
use crate::state::SharedState;

/// Ready tasks that a step holds before it shares some.
const LOCAL_READY: usize = MAX_WORKERS;
/// Ids taken from a shared queue at once: a line of the queue's slots holds 8.
const SHARED_BATCH: usize = 16;

/// What comes next for the cores of one kind.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlainAction {
    /// The newest of the own tasks goes to a free core.
    OwnToFree,
    /// The oldest tasks of the shared queue go to free cores.
    SharedToFree,
    /// A task goes to the busy core that is free soonest, if there is one.
    SecondToBusy,
    /// The own tasks go to the shared queue.
    Share,
    /// No action.
    Nothing,
}

/// What there is of one kind of cores.
struct OfKind {
    /// Tasks that this scheduler has made ready.
    has_own: bool,
    /// Free cores.
    has_free: bool,
    /// Busy cores that may be given a second task.
    has_seconds: bool,
}

/// Decides what comes next for the cores of one kind. `is_queued` looks at the shared queue, which costs a line: it is asked only
/// where the answer matters.
#[inline(always)]
fn choose(of_kind: OfKind, is_queued: impl FnOnce() -> bool) -> PlainAction {
    let OfKind { has_own, has_free, has_seconds } = of_kind;
    if has_own && has_free {
        PlainAction::OwnToFree
    } else if has_free {
        if is_queued() { PlainAction::SharedToFree } else { PlainAction::Nothing }
    } else if has_seconds && (has_own || is_queued()) {
        PlainAction::SecondToBusy
    } else if has_own {
        PlainAction::Share
    } else {
        PlainAction::Nothing
    }
}

/// The plain tasks that one scheduler has made ready.
#[repr(C)]
pub(super) struct PlainTasks<'a> {
    // This instance among those that share the queues.
    line: &'a InstanceLine,
    has_shared: bool,
    hands_over: bool,
    local: [Vec<u32, LOCAL_READY>; CoreKind::COUNT],
}

impl<'a> PlainTasks<'a> {
    #[inline(always)]
    pub(super) const fn new(line: &'a InstanceLine) -> Self {
        Self { line, has_shared: false, hands_over: true, local: [Vec::new(), Vec::new()] }
    }

    /// Whether a core that has finished may go straight to a consumer.
    #[inline(always)]
    pub(super) const fn hands_over(&self) -> bool {
        self.hands_over
    }

    /// Finds out whether freed cores may go straight to the next task: nothing waits for them that comes first.
    pub(super) fn look_at_board(&mut self, shapes: &BlockShapeMemory<'_>) {
        self.hands_over = !shapes.has_more_pressing();
    }

    /// Siblings have something to look for.
    pub(super) const fn share_with_siblings(&mut self) {
        self.has_shared = true;
    }

    /// Whether siblings have something to look for since the last call.
    #[inline(always)]
    pub(super) const fn take_shared(&mut self) -> bool {
        core::mem::replace(&mut self.has_shared, false)
    }

    /// Whether something is ready that is in no queue.
    #[inline(always)]
    pub(super) fn has_local(&self) -> bool {
        self.local.iter().any(|local| !local.is_empty())
    }

    /// How many tasks of a kind are ready and in no queue.
    pub(super) fn local_count(&self, kind: CoreKind) -> usize {
        self.local[kind.index()].len()
    }

    /// The newest task of a kind that is in no queue.
    #[inline(always)]
    pub(super) fn pop_local(&mut self, kind: CoreKind) -> Option<u32> {
        self.local[kind.index()].pop()
    }

    /// A task is ready for a core of its kind.
    #[inline(always)]
    pub(super) fn make_ready<P: Platform>(
        &mut self,
        state: &SharedState<'_>,
        slot: u32,
        kind: CoreKind,
    ) {
        if self.local[kind.index()].push(slot).is_err() {
            self.share::<P>(state, kind);
            // There is room now.
            self.local[kind.index()].push(slot).unwrap_or_default();
        }
    }

    /// A task with a block shape is about to be posted: the plain tasks that are ready already go to the shared queues, where
    /// their positions say that they are older. Siblings may have the cores for it.
    pub(super) fn before_post<P: Platform>(&mut self, state: &SharedState<'_>) {
        self.share_all::<P>(state);
        self.has_shared = true;
    }

    /// Puts the own tasks of a kind into the shared queue.
    #[cold]
    fn share<P: Platform>(&mut self, state: &SharedState<'_>, kind: CoreKind) {
        let local = &mut self.local[kind.index()];
        state.queue(kind).push::<P::Sharing>(local);
        local.clear();
        self.has_shared = true;
    }

    /// Puts all own tasks into the shared queues.
    #[inline(always)]
    pub(super) fn share_all<P: Platform>(&mut self, state: &SharedState<'_>) {
        for &kind in CoreKind::ALL {
            if !self.local[kind.index()].is_empty() {
                self.share::<P>(state, kind);
            }
        }
    }

    /// Fills the free cores of a kind, from the own newly ready tasks, then from the shared queue; then what is pending. What
    /// is left of the own ones goes to the shared queue. Sets `has_staged` if something was staged, and touches it only where there
    /// is work.
    #[inline(always)]
    pub(super) fn dispatch<P: Platform>(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        platform: &mut P,
        kind: CoreKind,
        among: Among,
        has_staged: &mut bool,
    ) -> Result<(), Fault> {
        if self.has_work::<P>(dispatcher, kind) {
            *has_staged |= self.dispatch_kind(dispatcher, platform, kind, among)?;
        }
        Ok(())
    }

    /// Whether there is a ready task of `kind` that could go somewhere.
    #[inline(always)]
    fn has_work<P: Platform>(&self, dispatcher: &Dispatcher<'_>, kind: CoreKind) -> bool {
        let has_room = dispatcher.cores().free_count(kind) > 0 || P::Machine::SLOTS > 1;
        !self.local[kind.index()].is_empty()
            || has_room && dispatcher.state().queue(kind).has_ready::<P::Sharing>()
    }

    #[inline(never)]
    fn dispatch_kind<P: Platform>(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        platform: &mut P,
        kind: CoreKind,
        among: Among,
    ) -> Result<bool, Fault> {
        let (mut staged, mut has_seconds) = (false, P::Machine::SLOTS > 1 && self.hands_over);
        dispatcher.look_at_clock(platform);
        let mut siblings = Siblings::new(self.line);
        let mut may_take = if P::Machine::POLLS_COST && among == Among::Schedulers {
            self.give_away(dispatcher, platform, kind, &mut siblings)
        } else {
            usize::MAX
        };
        // Sharing ends it, and comes after the loop: a call in the loop costs each task five instructions on AArch64.
        let shares = loop {
            let has_free = dispatcher.cores().free_count(kind) > 0;
            let has_own = !self.local[kind.index()].is_empty();
            let queue = dispatcher.state().queue(kind);
            let is_queued = || may_take > 0 && queue.has_ready::<P::Sharing>();
            match choose(OfKind { has_own, has_free, has_seconds }, is_queued) {
                PlainAction::OwnToFree => {
                    let Some(slot) = self.pop_local(kind) else { break false };
                    dispatcher.stage_on_free(platform, kind, slot)?;
                    staged = true;
                }
                PlainAction::SharedToFree => {
                    let room = dispatcher.cores().free_count(kind).min(SHARED_BATCH).min(may_take);
                    let taken = dispatch_shared(dispatcher, platform, kind, room)?;
                    may_take -= taken;
                    staged |= taken > 0;
                }
                PlainAction::SecondToBusy => {
                    has_seconds =
                        self.dispatch_second(dispatcher, platform, kind, &mut siblings)?;
                    staged |= has_seconds;
                }
                PlainAction::Share => break true,
                PlainAction::Nothing => break false,
            }
        };
        if shares && !mutant::is(Mutant::Hoards) {
            self.share::<P>(dispatcher.state(), kind);
        }
        Ok(staged)
    }

    /// Where siblings have free cores as well, they get their part of what is ready before the own cores do: they fill theirs
    /// meanwhile, and who looks at the cores later is not one alone. How many tasks of the shared queue the own cores may have.
    fn give_away<P: Platform>(
        &mut self,
        dispatcher: &Dispatcher<'_>,
        platform: &mut P,
        kind: CoreKind,
        siblings: &mut Siblings<'_>,
    ) -> usize {
        let state = dispatcher.state();
        let (here, own) = (dispatcher.cores().free_count(kind), self.local_count(kind));
        let queued = usize::try_from(state.queue(kind).len()).unwrap_or(usize::MAX);
        let ready = own.saturating_add(queued);
        if ready < 2 || here == 0 {
            return usize::MAX;
        }
        let elsewhere = siblings.free(state, platform, kind);
        if elsewhere == 0 {
            return usize::MAX;
        }
        let part = ready.saturating_mul(here).div_ceil(here.saturating_add(elsewhere).max(1));
        let local = &mut self.local[kind.index()];
        let given = own.saturating_sub(part.min(here));
        if let Some(oldest) = local.get(..given).filter(|oldest| !oldest.is_empty()) {
            state.queue(kind).push::<P::Sharing>(oldest);
            // Written out, because the device has no panics: the rest moves to the front.
            for at in given..own {
                let slot = local.get(at).copied().unwrap_or_default();
                if let Some(to) = local.get_mut(at - given) {
                    *to = slot;
                }
            }
            local.truncate(own - given);
            platform.machine().wake_siblings();
        }
        part.saturating_sub(own)
    }

    /// Gives a second task to the busy core that is free soonest, unless a sibling has a free core of the kind. Whether there
    /// was such a core, and a task.
    fn dispatch_second<P: Platform>(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        platform: &mut P,
        kind: CoreKind,
        siblings: &mut Siblings<'_>,
    ) -> Result<bool, Fault> {
        let is_hungry = siblings.free(dispatcher.state(), platform, kind) > 0;
        if is_hungry && !mutant::is(Mutant::PendsDespiteFreeCores) {
            return Ok(false);
        }
        let Some(core) = dispatcher.soonest_free(kind) else { return Ok(false) };
        let queue = dispatcher.state().queue(kind);
        let found = self.pop_local(kind).or_else(|| queue.pop_one::<P::Sharing>());
        let Some(slot) = found else { return Ok(false) };
        dispatcher.look_at_clock(platform);
        dispatcher.stage_second(platform, core, slot)?;
        Ok(true)
    }

    /// Hashes everything that later steps depend on.
    pub(super) fn hash_state<H: Hasher>(&self, into: &mut H) {
        let Self { line: _, has_shared, hands_over, local } = self;
        (has_shared, hands_over, local).hash(into);
    }
}

/// Whose cores plain tasks are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Among {
    /// Those of all schedulers: no other task wants the own ones.
    Schedulers,
    /// The own ones: tasks of lower priority have them next.
    Own,
}

/// What siblings have for the cores of one kind, as they said last: looked at once, where it matters.
struct Siblings<'a> {
    // The line of the instance that asks.
    own: &'a InstanceLine,
    free: Option<usize>,
}

impl<'a> Siblings<'a> {
    const fn new(own: &'a InstanceLine) -> Self {
        Self { own, free: None }
    }

    /// How many free cores of `kind` they have.
    fn free<P: Platform>(
        &mut self,
        state: &SharedState<'_>,
        platform: &mut P,
        kind: CoreKind,
    ) -> usize {
        *self.free.get_or_insert_with(|| {
            let others = state.schedulers.iter().filter(|line| !core::ptr::eq(*line, self.own));
            let free = others.map(|line| {
                platform.machine().fetch_sibling();
                line.free_cores[kind.index()].load(Ordering::Relaxed) as usize
            });
            free.fold(0, usize::saturating_add)
        })
    }
}

/// Takes up to `room` tasks from the shared queue to free cores; how many.
fn dispatch_shared<P: Platform>(
    dispatcher: &mut Dispatcher<'_>,
    platform: &mut P,
    kind: CoreKind,
    room: usize,
) -> Result<usize, Fault> {
    let mut slots = [0; SHARED_BATCH];
    let slots = slots.get_mut(..room).unwrap_or_default();
    let taken = dispatcher.state().queue(kind).pop::<P::Sharing>(slots);
    dispatcher.look_at_clock(platform);
    for &slot in slots.iter().take(taken) {
        dispatcher.stage_on_free(platform, kind, slot)?;
    }
    Ok(taken)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{OfKind, PlainAction, choose};

    const fn of(has_own: bool, has_free: bool, has_seconds: bool) -> OfKind {
        OfKind { has_own, has_free, has_seconds }
    }

    /// Every state in which a choice is made, against what the top of the file says.
    #[test]
    fn every_choice() {
        for bits in 0..16_u8 {
            let [own, free, seconds, queued] = [0, 1, 2, 3].map(|bit| bits >> bit & 1 == 1);
            let choice = choose(of(own, free, seconds), || queued);
            let expected = match (own, free, seconds, queued) {
                (true, true, ..) => PlainAction::OwnToFree,
                (false, true, _, true) => PlainAction::SharedToFree,
                (true, false, true, _) | (false, false, true, true) => PlainAction::SecondToBusy,
                (true, false, false, _) => PlainAction::Share,
                _ => PlainAction::Nothing,
            };
            assert_eq!(choice, expected, "{own} {free} {seconds} {queued}");
        }
    }

    #[test]
    fn the_queue_is_not_looked_at_where_it_does_not_matter() {
        let unasked = || panic!("the queue was looked at");
        assert_eq!(choose(of(true, true, true), unasked), PlainAction::OwnToFree);
        assert_eq!(choose(of(true, false, true), unasked), PlainAction::SecondToBusy);
        assert_eq!(choose(of(true, false, false), unasked), PlainAction::Share);
        assert_eq!(choose(of(false, false, false), unasked), PlainAction::Nothing);
    }
}
