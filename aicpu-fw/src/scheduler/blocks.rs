//! Tasks with a block shape, as one scheduler dispatches them: which blocks go to which of its cores.
//!
//! ```text
//! step: collect -> arrivals -> begin: start what is pledged, then the task that gathers
//!               -> dispatch_level: urgent, high, normal -> (the other plain tasks) -> low -> end
//!                  each level: order::choose, and what it says, until nothing is left
//! ```
//! Invariants:
//! - A core that is *pledged* waits for the other cores of the task at the gate; only that task holds cores so.
//! - A core that is *held* is free, and kept from later tasks for the rest of this step: its cluster is the one
//!   that a MIX task gets next. The next step decides anew.

use core::hash::{Hash, Hasher};

use heapless::Vec;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::stream::MAX_LANES;
use pto_abi::{CoreKind, Fault};
use pto_graph::Priority;

use super::clusters::{ClusterCores, Clusters, members};
use super::dispatcher::Dispatcher;
use super::gathering::{Gathering, Pledge};
use super::order::{Level, NextDispatch};
use super::parts::{Block, stage_block};
use super::plain::PlainTasks;
use crate::block_shapes::{
    BlockShapeMemory, GATHERS, LEVEL_LISTS, Lanes, List, WaitsFor, lanes_of,
};
use crate::mutant::{self, Mutant};
use crate::platform::Platform;

/// Which task has its turn.
struct ChosenTask {
    priority: Priority,
    waits_for: WaitsFor,
    slot: u32,
}

/// What came of a task's turn.
#[derive(Clone, Copy)]
struct BlockOutcome {
    /// Whether a part was staged.
    has_staged: bool,
    /// There were cores for it, or another scheduler has dealt with it meanwhile: its list may have another turn.
    found_cores: bool,
}

/// What a scheduler keeps for tasks with a block shape.
pub(super) struct BlockTasks {
    clusters: Clusters,
    gathering: Gathering,
    held: Vec<u8, MAX_WORKERS>,
}

impl BlockTasks {
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Self { clusters: Clusters::new(), gathering: Gathering::new(), held: Vec::new() }
    }

    /// Whether it has nothing pledged.
    pub(super) const fn is_idle(&self) -> bool {
        self.gathering.is_idle()
    }

    /// Learns the cluster of each worker.
    #[cfg(not(any(loom, shuttle)))]
    pub(super) fn form_clusters(
        &mut self,
        dispatcher: &Dispatcher<'_>,
        cluster_of: impl Fn(u32) -> Option<u32>,
    ) {
        self.clusters.form(dispatcher.cores(), cluster_of);
    }

    /// Whether there is anything to do here.
    #[must_use]
    pub(super) fn has_work(&self, shapes: &BlockShapeMemory<'_>) -> bool {
        let has_pledged = !self.is_idle() && !mutant::is(Mutant::ForgetsWhatItPledged);
        shapes.lists() != 0 || has_pledged
    }

    /// Starts what has all its cores, and pledges free cores to the task that has some: nothing goes before it, whatever its
    /// priority, because the cores that it has are idle until it has all. Whether something was staged.
    pub(super) fn begin<P: Platform>(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        plain: &mut PlainTasks<'_>,
        platform: &mut P,
        shapes: &BlockShapeMemory<'_>,
    ) -> Result<bool, Fault> {
        let mut staged = self.start_pledged(dispatcher, platform, shapes)?;
        let is_there = shapes.lists() & GATHERS != 0 && !mutant::is(Mutant::GathersInItsTurn);
        let found = if is_there { shapes.gathers() } else { None };
        self.gathering.go_first(found);
        let Some(slot) = found else { return Ok(staged) };
        while shapes.gathers() == found {
            let turn = self.gather(dispatcher, plain, platform, shapes, slot)?;
            staged |= turn.has_staged;
            if !turn.found_cores {
                break;
            }
        }
        Ok(staged)
    }

    /// What waits at one priority gets the cores that are free, the oldest first. Whether something was staged.
    pub(super) fn dispatch_level<P: Platform>(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        plain: &mut PlainTasks<'_>,
        platform: &mut P,
        shapes: &BlockShapeMemory<'_>,
        priority: Priority,
    ) -> Result<bool, Fault> {
        let (mut staged, mut is_closed) = (false, [false; LEVEL_LISTS]);
        while shapes.lists() & List::level(priority) != 0 {
            match self.level(dispatcher, shapes, priority, is_closed).choose() {
                NextDispatch::Nothing => break,
                NextDispatch::Plain(kind, before) => {
                    staged |= dispatch_older(dispatcher, platform, kind, before)?;
                }
                NextDispatch::Blocks(list, slot) => {
                    let chosen = ChosenTask { priority, waits_for: list, slot };
                    let turn = self.take_turn(dispatcher, plain, platform, shapes, chosen)?;
                    staged |= turn.has_staged;
                    is_closed[list.index()] = !turn.found_cores;
                }
            }
        }
        Ok(staged)
    }

    /// The step is over: what was held is free again.
    pub(super) fn end(&mut self, dispatcher: &mut Dispatcher<'_>) {
        while let Some(core) = self.held.pop() {
            dispatcher.cores_mut().give_back(usize::from(core));
        }
    }

    /// What waits at a priority, but for what had its turn.
    fn level(
        &self,
        dispatcher: &Dispatcher<'_>,
        shapes: &BlockShapeMemory<'_>,
        priority: Priority,
        is_closed: [bool; LEVEL_LISTS],
    ) -> Level {
        let mut level = Level { heads: shapes.heads(priority), ..Level::default() };
        let lists = level.heads.iter_mut().zip(is_closed);
        lists.filter(|(_, is_closed)| *is_closed).for_each(|(head, _)| *head = None);
        let gathers = &mut level.heads[WaitsFor::AllAtOnce.index()];
        *gathers = gathers.filter(|head| !self.gathering.went_first(head.slot));
        for &kind in CoreKind::ALL {
            level.has_free[kind.index()] = dispatcher.cores().free_count(kind) > 0;
            if priority == Priority::NORMAL {
                level.plain[kind.index()] = dispatcher.state().queue(kind).front();
            }
        }
        level
    }

    /// The chosen task gets what it waits for, as far as it is there.
    fn take_turn<P: Platform>(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        plain: &mut PlainTasks<'_>,
        platform: &mut P,
        shapes: &BlockShapeMemory<'_>,
        chosen: ChosenTask,
    ) -> Result<BlockOutcome, Fault> {
        let ChosenTask { priority, waits_for, slot } = chosen;
        let list = List::at(priority, waits_for);
        match waits_for {
            WaitsFor::Core(kind) => dispatch_blocks(dispatcher, platform, shapes, list, slot, kind),
            WaitsFor::Cluster => self.dispatch_cluster(dispatcher, platform, shapes, list, slot),
            WaitsFor::AllAtOnce => match shapes.gathering(priority) {
                Some(slot) => self.gather(dispatcher, plain, platform, shapes, slot),
                None => Ok(BlockOutcome { has_staged: false, found_cores: false }),
            },
        }
    }

    /// Gives a block of several cores to a cluster whose cores are free, or holds the cores of the one that is free next.
    fn dispatch_cluster<P: Platform>(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        platform: &mut P,
        shapes: &BlockShapeMemory<'_>,
        list: List,
        slot: u32,
    ) -> Result<BlockOutcome, Fault> {
        let Some(line) = shapes.line(slot) else {
            return Ok(BlockOutcome { has_staged: false, found_cores: false });
        };
        let lanes = lanes_of(line);
        let Some(lane_cores) = self.clusters.free_cores(dispatcher.cores(), lanes) else {
            self.hold_a_cluster(dispatcher, lanes);
            return Ok(BlockOutcome { has_staged: false, found_cores: false });
        };
        // Another scheduler may have taken the last block, and there is another task at the head.
        let Some(claim) = shapes.claim(list, Some(slot), 1) else {
            return Ok(BlockOutcome { has_staged: false, found_cores: true });
        };
        set_apart(dispatcher, lane_cores, lanes);
        let block = Block { slot, number: claim.first, lanes };
        stage_block(dispatcher, platform, shapes, lane_cores, block)?;
        Ok(BlockOutcome { has_staged: true, found_cores: true })
    }

    /// Pledges the cores of one block to the task at the gate, if they are free.
    fn gather<P: Platform>(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        plain: &mut PlainTasks<'_>,
        platform: &mut P,
        shapes: &BlockShapeMemory<'_>,
        slot: u32,
    ) -> Result<BlockOutcome, Fault> {
        let mut turn = BlockOutcome { has_staged: false, found_cores: false };
        let Some(line) = shapes.line(slot) else { return Ok(turn) };
        if !self.gathering.is_for(slot) {
            // The one before has left the gate, so that all of its blocks can start.
            turn.has_staged |= self.start_pledged(dispatcher, platform, shapes)?;
        }
        let lanes = lanes_of(line);
        let Some(lane_cores) = self.clusters.free_cores(dispatcher.cores(), lanes) else {
            if lanes.single().is_none() {
                let left = shapes.blocks_left(slot);
                (0..left).take_while(|_| self.hold_a_cluster(dispatcher, lanes)).for_each(drop);
            }
            return Ok(turn);
        };
        turn.found_cores = true;
        // Another scheduler may have pledged the last one, or sent it back.
        let Some(claim) = shapes.pledge(slot, 1) else { return Ok(turn) };
        set_apart(dispatcher, lane_cores, lanes);
        self.gathering.pledge(slot, Pledge { lane_cores, block: claim.first });
        if claim.is_last || mutant::is(Mutant::StartsBeforeAllAreThere) {
            // Siblings have pledged cores too.
            plain.share_with_siblings();
            turn.has_staged |= self.start_pledged(dispatcher, platform, shapes)?;
        }
        Ok(turn)
    }

    /// Starts the blocks for which cores were pledged, if all are there. Whether something was staged.
    fn start_pledged<P: Platform>(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        platform: &mut P,
        shapes: &BlockShapeMemory<'_>,
    ) -> Result<bool, Fault> {
        let slot = self.gathering.task();
        let Some(line) = shapes.line(slot) else { return Ok(false) };
        if shapes.blocks_left(slot) > 0 && !mutant::is(Mutant::StartsBeforeAllAreThere) {
            return Ok(false);
        }
        let lanes = lanes_of(line);
        while let Some(Pledge { lane_cores, block }) = self.gathering.take_pledge() {
            let block = Block { slot, number: block, lanes };
            stage_block(dispatcher, platform, shapes, lane_cores, block)?;
        }
        Ok(true)
    }

    /// Keeps what is free of one cluster from later tasks, for the rest of the step. Whether there was one.
    fn hold_a_cluster(&mut self, dispatcher: &mut Dispatcher<'_>, lanes: Lanes) -> bool {
        let Some((cluster, lane_cores)) = self.clusters.choose_to_hold(dispatcher.cores(), lanes)
        else {
            return false;
        };
        self.clusters.note_held(cluster);
        for core in members(lane_cores, lanes) {
            if dispatcher.cores().is_free(core.into()) {
                dispatcher.cores_mut().set_apart(core.into());
                // A core is held once, so there is room.
                self.held.push(core).unwrap_or_default();
            }
        }
        true
    }

    /// Hashes everything that later steps depend on.
    pub(super) fn hash_state<H: Hasher>(&self, into: &mut H) {
        let Self { clusters, gathering, held } = self;
        (clusters, gathering, held).hash(into);
    }
}

/// Gives blocks of one core each to free cores.
fn dispatch_blocks<P: Platform>(
    dispatcher: &mut Dispatcher<'_>,
    platform: &mut P,
    shapes: &BlockShapeMemory<'_>,
    list: List,
    slot: u32,
    kind: CoreKind,
) -> Result<BlockOutcome, Fault> {
    let free = u32::try_from(dispatcher.cores().free_count(kind)).unwrap_or(1);
    let Some(claim) = shapes.claim(list, Some(slot), free) else {
        // Another scheduler has taken the last block.
        return Ok(BlockOutcome { has_staged: false, found_cores: true });
    };
    for number in claim.first..claim.first + claim.count {
        let Some(core) = dispatcher.cores().free_core(kind) else { break };
        dispatcher.cores_mut().set_apart(core);
        let lane_cores = [u8::try_from(core).unwrap_or(u8::MAX); MAX_LANES];
        let block = Block { slot: claim.slot, number, lanes: Lanes::one(kind) };
        stage_block(dispatcher, platform, shapes, lane_cores, block)?;
    }
    Ok(BlockOutcome { has_staged: true, found_cores: true })
}

/// Gives plain tasks before this position of their queue to free cores. Whether there was one.
fn dispatch_older<P: Platform>(
    dispatcher: &mut Dispatcher<'_>,
    platform: &mut P,
    kind: CoreKind,
    before: u64,
) -> Result<bool, Fault> {
    let mut staged = false;
    while dispatcher.cores().free_count(kind) > 0 {
        let queue = dispatcher.state().queue(kind);
        let Some(slot) = queue.pop_before::<P::Sharing>(before) else { break };
        dispatcher.look_at_clock(platform);
        dispatcher.stage_on_free(platform, kind, slot)?;
        staged = true;
    }
    Ok(staged)
}

fn set_apart(dispatcher: &mut Dispatcher<'_>, lane_cores: ClusterCores, lanes: Lanes) {
    members(lane_cores, lanes).for_each(|core| dispatcher.cores_mut().set_apart(core.into()));
}
