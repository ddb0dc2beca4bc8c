//! Shaped tasks, as one scheduler dispatches them: which blocks go to which of its cores.
//!
//! ```text
//! step: collect -> arrivals -> start what is pledged -> the task that gathers -> urgent, high, normal -> (plain tasks) -> low
//!                                 each level: gather for the task at the gate, then clusters, then single cores
//! ```
//! Invariants:
//! - A core that is *pledged* waits for the other cores of the task at the gate; only that task holds cores so.
//! - A core that is *held* is free, and kept from tasks of lower rank for the rest of this step: its cluster is the one
//!   that a MIX task gets next. The next step decides anew. No cluster with a pledged core is held.
//! - All parts of a block are staged in one step, and thus rung by one commit.

use heapless::Vec;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::stream::{MAX_LANES, NO_TASK};
use pto_abi::task::Task;
use pto_abi::trace::{TraceKind, TracePoint};
use pto_abi::{CoreKind, Fault};
use pto_graph::Priority;

use super::collect::Moved;
use super::parts::Part;
use super::{RELEASES_A_STEP, Scheduler};
use crate::fanout::{ConsumerWalk, FanoutPolicy};
use crate::mutant::{self, Mutant};
use crate::platform::Platform;
use crate::shapes::{GATHERS, Lanes, List, ShapeMemory, has_predicate, lanes_of};
use crate::state::kind_of;

/// Tasks whose predicate one step reads at most: each may release as many consumers as a completion.
const ARRIVALS_A_STEP: usize = 16;
/// No core, no cluster.
const NONE: u8 = u8::MAX;
/// The lists whose tasks go before plain ones; and the task that has cores and lacks others.
const BEFORE_PLAIN: u32 = List::level(Priority::URGENT)
    | List::level(Priority::HIGH)
    | List::level(Priority::NORMAL)
    | GATHERS;

/// Cores by lane: of a cluster its cube core and its vector cores, of a block the core for each of its kernels.
pub(super) type ClusterCores = [u8; MAX_LANES];

/// The cores that wait for a block to start.
#[derive(Clone, Copy, Hash)]
struct Pledge {
    place: ClusterCores,
    block: u32,
}

/// What a scheduler keeps for shaped tasks.
#[derive(Hash)]
pub(super) struct Shapes {
    clusters: Vec<ClusterCores, MAX_WORKERS>,
    pledged_to: u32,
    pledges: Vec<Pledge, MAX_WORKERS>,
    held: Vec<u8, MAX_WORKERS>,
    /// The cluster that was held last.
    filling: u8,
    /// The task that has gathered in this step before its turn.
    went_on: u32,
}

impl Shapes {
    pub(super) const fn new() -> Self {
        Self {
            clusters: Vec::new(),
            pledged_to: NO_TASK,
            pledges: Vec::new(),
            held: Vec::new(),
            filling: NONE,
            went_on: NO_TASK,
        }
    }

    /// Whether it has nothing pledged.
    pub(super) fn is_idle(&self) -> bool {
        self.pledged_to == NO_TASK
    }
}

/// The cores of a place for these lanes; [`NONE`] for a lane that it has no core for.
fn members(place: ClusterCores, lanes: Lanes) -> impl Iterator<Item = u8> {
    (0..MAX_LANES).filter(move |lane| lanes.has(*lane)).map(move |lane| place[lane])
}

impl<P: Platform, F: FanoutPolicy> Scheduler<'_, P, F> {
    /// Tells which of its cores stand together: the cluster of each worker.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn form_clusters(&mut self, cluster_of: impl Fn(u32) -> Option<u32>) {
        if !P::SHAPES || self.state.shapes.is_none() {
            return;
        }
        self.first_look |= super::BOARD;
        let mut numbers: Vec<u32, MAX_WORKERS> = Vec::new();
        for core in 0..self.cores.len() {
            let Some(number) = cluster_of(self.cores.worker(core)) else { continue };
            let known = numbers.iter().position(|known| *known == number);
            let at = known.unwrap_or(numbers.len());
            if known.is_none() {
                // There are no more clusters than workers.
                numbers.push(number).unwrap_or_default();
                self.shapes.clusters.push([NONE; MAX_LANES]).unwrap_or_default();
            }
            let lanes = match self.cores.kind(core) {
                CoreKind::AIC => 0..1,
                _ => 1..MAX_LANES,
            };
            let cluster = self.shapes.clusters.get_mut(at).and_then(|cores| cores.get_mut(lanes));
            let place = cluster.and_then(|cores| cores.iter_mut().find(|core| **core == NONE));
            if let Some(place) = place {
                *place = u8::try_from(core).unwrap_or(NONE);
            }
        }
    }

    /// Whether freed cores may go straight to the next task: nothing waits for them that comes first.
    pub(super) fn look_at_board(&mut self) {
        if let Some(shapes) = &self.state.shapes {
            let is_first = shapes.lists() & BEFORE_PLAIN == 0;
            self.hands_over = is_first;
        }
    }

    /// [`dispatch`](Self::dispatch), and around it what has a shape.
    #[inline(always)]
    pub(super) fn dispatch_all(
        &mut self,
        platform: &mut P,
        moved: &mut Moved,
        first_look: u8,
    ) -> Result<(), Fault> {
        if P::SHAPES
            && first_look != 0
            && let Some(shapes) = self.state.shapes.filter(|shapes| self.has_shaped(shapes))
        {
            return self.dispatch_shaped(platform, &shapes, moved);
        }
        self.dispatch(platform, moved)
    }

    fn has_shaped(&self, shapes: &ShapeMemory<'_>) -> bool {
        let has_pledged = self.shapes.pledged_to != NO_TASK;
        shapes.lists() != 0 || has_pledged && !mutant::is(Mutant::ForgetsWhatItPledged)
    }

    #[inline(never)]
    fn dispatch_shaped(
        &mut self,
        platform: &mut P,
        shapes: &ShapeMemory<'_>,
        moved: &mut Moved,
    ) -> Result<(), Fault> {
        self.take_arrivals(platform, shapes, moved)?;
        moved.dispatched |= self.start_pledged(platform, shapes)?;
        moved.dispatched |= self.go_on_gathering(platform, shapes)?;
        for number in 0..Priority::ALL.len() {
            let is_wrong = mutant::is(Mutant::IgnoresPriority);
            let last = Priority::ALL.len() - 1;
            let priority = Priority::ALL[if is_wrong { number } else { last - number }];
            if priority == Priority::LOW {
                self.hands_over = shapes.lists() & BEFORE_PLAIN == 0;
                self.dispatch(platform, moved)?;
            }
            if shapes.lists() & List::level(priority) != 0 {
                moved.dispatched |= self.dispatch_level(platform, shapes, priority)?;
            }
        }
        while let Some(core) = self.shapes.held.pop() {
            self.cores.give_back(usize::from(core));
        }
        Ok(())
    }

    /// A task is ready that has a shape.
    #[cold]
    #[inline(never)]
    pub(super) fn shaped_is_ready(&mut self, slot: u32) {
        let Some(shapes) = self.state.shapes else { return };
        let Some(record) = shapes.record(slot) else { return };
        if has_predicate(record) {
            shapes.post(List::ARRIVALS, slot);
        } else if let Some(list) = List::of(record) {
            shapes.post(list, slot);
        }
        // Siblings may have the cores for it.
        self.shared = true;
    }

    /// Reads the predicates of tasks that have become ready.
    fn take_arrivals(
        &mut self,
        platform: &mut P,
        shapes: &ShapeMemory<'_>,
        moved: &mut Moved,
    ) -> Result<(), Fault> {
        for _ in 0..ARRIVALS_A_STEP {
            // What an earlier one releases comes first.
            if self.release.is_some() || shapes.lists() & List::ARRIVALS.bit() == 0 {
                return Ok(());
            }
            let Some(slot) = shapes.take_arrival() else { return Ok(()) };
            let (Some(record), Some(task)) = (shapes.record(slot), self.state.task(slot)) else {
                continue;
            };
            moved.collected = true;
            self.expect_published(slot, task)?;
            let (address, element) = shapes.element(record);
            platform.refresh(address, element.bytes());
            if !shapes.predicate_holds(record) && !mutant::is(Mutant::IgnoresPredicates) {
                self.skip(platform, slot, task);
            } else if let Some(list) = List::of(record) {
                shapes.post(list, slot);
                self.shared = true;
            } else {
                self.make_ready(slot, kind_of(task));
            }
        }
        Ok(())
    }

    /// Completes a task that does not run.
    fn skip(&mut self, platform: &mut P, slot: u32, task: &Task) {
        platform.skipped(slot);
        if P::TRACES {
            self.traced_ns = platform.now_ns();
            let (time_ns, kind) = (self.traced_ns, TraceKind::SKIPPED);
            platform.trace(TracePoint { time_ns, kind, task: slot, extra: 0 });
        }
        let count = F::close::<P::Sharing>(task);
        let count = if mutant::is(Mutant::SkipsTheConsumersToo) { 0 } else { count };
        let mut budget = RELEASES_A_STEP;
        self.go_on(platform, slot, ConsumerWalk::new(count), &mut budget);
    }

    /// What waits at one priority gets the cores that are free.
    fn dispatch_level(
        &mut self,
        platform: &mut P,
        shapes: &ShapeMemory<'_>,
        priority: Priority,
    ) -> Result<bool, Fault> {
        let mut staged = self.gather(platform, shapes, priority)?;
        staged |= self.dispatch_clusters(platform, shapes, priority)?;
        for &kind in CoreKind::ALL {
            staged |= self.dispatch_blocks(platform, shapes, priority, kind)?;
        }
        Ok(staged)
    }

    /// Gives blocks of one core each to free cores.
    fn dispatch_blocks(
        &mut self,
        platform: &mut P,
        shapes: &ShapeMemory<'_>,
        priority: Priority,
        kind: CoreKind,
    ) -> Result<bool, Fault> {
        let list = List::spread(priority, Lanes::one(kind));
        let mut staged = false;
        while shapes.lists() & list.bit() != 0 && self.cores.free_count(kind) > 0 {
            let free = u32::try_from(self.cores.free_count(kind)).unwrap_or(1);
            let Some(claim) = shapes.claim(list, None, free) else { break };
            staged = true;
            for block in claim.first..claim.first + claim.count {
                let Some(core) = self.cores.free_core(kind) else { break };
                self.cores.set_apart(core);
                let lane = usize::from(kind == CoreKind::AIV);
                let part = Part { slot: claim.slot, lane, block };
                self.stage_part(platform, shapes, core, part)?;
            }
        }
        Ok(staged)
    }

    /// Gives blocks of several cores to clusters whose cores are free, and holds the cores of the one that is free next.
    fn dispatch_clusters(
        &mut self,
        platform: &mut P,
        shapes: &ShapeMemory<'_>,
        priority: Priority,
    ) -> Result<bool, Fault> {
        // Any lanes that are more than one core.
        let list = List::spread(priority, Lanes(7));
        let mut staged = false;
        while shapes.lists() & list.bit() != 0 {
            let Some(slot) = shapes.head(list) else { break };
            let Some(record) = shapes.record(slot) else { break };
            let lanes = lanes_of(record);
            let Some(place) = self.free_cluster(lanes) else {
                self.hold_a_cluster(lanes);
                break;
            };
            // Another scheduler may have taken the last block, and there is another task at the head.
            let Some(claim) = shapes.claim(list, Some(slot), 1) else { continue };
            self.set_place_apart(place, lanes);
            self.stage_block(platform, shapes, place, (slot, claim.first, lanes))?;
            staged = true;
        }
        Ok(staged)
    }

    /// Pledges free cores to the task that has some: nothing goes before it, whatever its priority, because the cores that it
    /// has are idle until it has all.
    fn go_on_gathering(
        &mut self,
        platform: &mut P,
        shapes: &ShapeMemory<'_>,
    ) -> Result<bool, Fault> {
        let mut staged = false;
        let is_there = shapes.lists() & GATHERS != 0 && !mutant::is(Mutant::GathersInItsTurn);
        let found = if is_there { shapes.gathers() } else { None };
        self.shapes.went_on = found.unwrap_or(NO_TASK);
        while found.is_some() && shapes.gathers() == found {
            let slot = self.shapes.went_on;
            if !self.gather_for(platform, shapes, slot, &mut staged)? {
                break;
            }
        }
        Ok(staged)
    }

    /// Pledges free cores to the task at the gate.
    fn gather(
        &mut self,
        platform: &mut P,
        shapes: &ShapeMemory<'_>,
        priority: Priority,
    ) -> Result<bool, Fault> {
        let mut staged = false;
        while shapes.lists() & List::sync(priority).bit() != 0 {
            // What could go on has done so in this step.
            let slot = shapes.gathering(priority).filter(|slot| *slot != self.shapes.went_on);
            let Some(slot) = slot else { break };
            if !self.gather_for(platform, shapes, slot, &mut staged)? {
                break;
            }
        }
        Ok(staged)
    }

    /// Pledges the cores of one block to the task at the gate; `false`: there are none.
    fn gather_for(
        &mut self,
        platform: &mut P,
        shapes: &ShapeMemory<'_>,
        slot: u32,
        staged: &mut bool,
    ) -> Result<bool, Fault> {
        let Some(record) = shapes.record(slot) else { return Ok(false) };
        if self.shapes.pledged_to != slot {
            // The one before has left the gate, so that all of its blocks can start.
            *staged |= self.start_pledged(platform, shapes)?;
        }
        let lanes = lanes_of(record);
        let Some(place) = self.free_place(lanes) else {
            if lanes.single().is_none() {
                let left = shapes.blocks_left(slot);
                (0..left).take_while(|_| self.hold_a_cluster(lanes)).for_each(drop);
            }
            return Ok(false);
        };
        // Another scheduler may have pledged the last one, or sent it back.
        let Some(claim) = shapes.pledge(slot, 1) else { return Ok(true) };
        self.set_place_apart(place, lanes);
        let pledge = Pledge { place, block: claim.first };
        self.shapes.pledged_to = slot;
        // A core is pledged once, so there is room.
        self.shapes.pledges.push(pledge).unwrap_or_default();
        if claim.is_last || mutant::is(Mutant::StartsBeforeAllAreThere) {
            // Siblings have pledged cores too.
            self.shared = true;
            *staged |= self.start_pledged(platform, shapes)?;
        }
        Ok(true)
    }

    /// Starts the blocks for which cores were pledged, if all are there.
    fn start_pledged(&mut self, platform: &mut P, shapes: &ShapeMemory<'_>) -> Result<bool, Fault> {
        let slot = self.shapes.pledged_to;
        let is_early = mutant::is(Mutant::StartsBeforeAllAreThere);
        let Some(record) = shapes.record(slot) else { return Ok(false) };
        if shapes.blocks_left(slot) > 0 && !is_early {
            return Ok(false);
        }
        let lanes = lanes_of(record);
        self.shapes.pledged_to = NO_TASK;
        while let Some(Pledge { place, block }) = self.shapes.pledges.pop() {
            self.stage_block(platform, shapes, place, (slot, block, lanes))?;
        }
        Ok(true)
    }

    /// A free core or a cluster of free cores for a block.
    fn free_place(&self, lanes: Lanes) -> Option<ClusterCores> {
        let Some(kind) = lanes.single() else { return self.free_cluster(lanes) };
        let core = u8::try_from(self.cores.free_core(kind)?).unwrap_or(NONE);
        // Of one lane.
        Some([core; MAX_LANES])
    }

    fn set_place_apart(&mut self, place: ClusterCores, lanes: Lanes) {
        members(place, lanes).for_each(|core| self.cores.set_apart(core.into()));
    }

    /// Cores for these lanes in one cluster that are all free.
    fn free_cluster(&self, lanes: Lanes) -> Option<ClusterCores> {
        let is_free = |core: u8| self.cores.is_free(core.into());
        let places = self.shapes.clusters.iter().map(|cores| self.place_in(*cores, lanes));
        places.into_iter().find(|place| members(*place, lanes).all(is_free))
    }

    /// The cores of a cluster that a block with these lanes gets. One vector kernel goes to either vector core: to the first
    /// one, unless only the second one is free, or only that one will be.
    fn place_in(&self, mut cores: ClusterCores, lanes: Lanes) -> ClusterCores {
        if lanes.has(1) && !lanes.has(2) {
            let [_, first, second] = cores.map(usize::from);
            let will_be = |core| self.cores.is_free(core) || self.cores.is_busy(core);
            let is_second = self.cores.is_free(second) && !self.cores.is_free(first);
            if is_second || will_be(second) && !will_be(first) {
                cores[1] = cores[2];
            }
        }
        cores
    }

    /// Keeps what is free of one cluster from tasks of lower rank, for the rest of the step: of the one with the most free
    /// cores, so that it is whole soonest. Whether there was one.
    fn hold_a_cluster(&mut self, lanes: Lanes) -> bool {
        let score = |(cluster, cores): (usize, &ClusterCores)| {
            let mut free = 0;
            let place = self.place_in(*cores, lanes);
            for core in members(place, lanes).map(usize::from) {
                if self.cores.is_free(core) {
                    free += 1;
                } else if !self.cores.is_busy(core) {
                    // There is none, or it is pledged, or held for another task.
                    return None;
                }
            }
            let is_filling = usize::from(self.shapes.filling) == cluster;
            Some((2 * free + u32::from(is_filling), cluster, place))
        };
        let clusters = self.shapes.clusters.iter().enumerate();
        let best = clusters.filter_map(score).max_by_key(|(score, ..)| *score);
        let Some((_, cluster, place)) = best.filter(|(score, ..)| *score > 1) else { return false };
        self.shapes.filling = u8::try_from(cluster).unwrap_or(NONE);
        for core in members(place, lanes) {
            if self.cores.is_free(core.into()) {
                self.cores.set_apart(core.into());
                // A core is held once, so there is room.
                self.shapes.held.push(core).unwrap_or_default();
            }
        }
        true
    }
}
