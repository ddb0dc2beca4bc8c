//! Why a run does not get on: the stall classes, and the tasks, transfers and edges that cause them.

use pto_abi::kinds::TaskState;
use pto_abi::runtime::{BlockedTask, EPITAPH_BLOCKED, Epitaph, NOBODY};
use pto_abi::sync::Ordering;
use pto_abi::task::{CLOSED, SHAPED, Task};
use pto_abi::{BuildMode, Fault, TaskId};

use crate::blame::Blame;
use crate::block_shapes::List;
use crate::fanout::ConsumerWalk;
use crate::state::SharedState;

/// The class of a stall, when no core is busy and nothing has moved for `since_ns`. In sequential mode no scheduler
/// takes ready tasks before the build is done, so that the builder keeps them waiting.
#[must_use]
pub fn classify(state: &SharedState<'_>, mode: BuildMode, since_ns: u64) -> Blame {
    let ready: u64 = state.ready.iter().map(|queue| queue.len()).sum();
    let ready = ready + u64::from(state.shaped_waiting());
    let is_building = !state.build_is_done();
    if let Some((slot, task)) = transfers(state).next() {
        return blame_transfer(state, (slot, task), since_ns);
    }
    let fault = if ready > 0 && !(is_building && mode == BuildMode::SEQUENTIAL) {
        Fault::STALL_READY
    } else if is_building {
        Fault::STALL_BUILDER
    } else {
        Fault::STALL_DEADLOCK
    };
    let blame = Blame::of(fault).since(since_ns).detail(ready, state.outstanding());
    match blocked_tasks(state).next() {
        Some((slot, task)) if fault == Fault::STALL_DEADLOCK => {
            let generation = task.generation.load(Ordering::Relaxed);
            let func = task.func_id.load(Ordering::Relaxed);
            blame.task(TaskId { slot, generation }).func(func.into())
        }
        _ => blame,
    }
}

/// A transfer keeps the run waiting: no engine has taken it, or the other rank does not do its part.
fn blame_transfer(state: &SharedState<'_>, (slot, task): (u32, &Task), since_ns: u64) -> Blame {
    let is_taken = task.state.load(Ordering::Relaxed) == TaskState::DISPATCHED.get();
    let fault = if is_taken { Fault::TRANSFER_STALL } else { Fault::TRANSFER_NO_ENGINE };
    let generation = task.generation.load(Ordering::Relaxed);
    let func = task.func_id.load(Ordering::Relaxed);
    let blame = Blame::of(fault).since(since_ns).task(TaskId { slot, generation });
    blame.func(func.into()).detail(transfers(state).count() as u64, state.outstanding())
}

/// The transfers that are ready, or under way.
fn transfers<'a>(state: &SharedState<'a>) -> impl Iterator<Item = (u32, &'a Task)> + use<'a> {
    let shapes = state.shapes;
    added_tasks(state).filter(move |(slot, task)| {
        let line = shapes.and_then(|shapes| shapes.line(*slot));
        let is_shaped = task.kind.load(Ordering::Relaxed) & SHAPED != 0;
        let is_transfer =
            is_shaped && line.is_some_and(|line| List::of(line) == Some(List::TRANSFERS));
        let is_ready = task.fanin.load(Ordering::Relaxed) == 0;
        let at = task.state.load(Ordering::Relaxed);
        let waits = at == TaskState::PUBLISHED.get() || at == TaskState::DISPATCHED.get();
        is_transfer && is_ready && waits
    })
}

/// The run has taken longer than its budget.
#[must_use]
pub const fn over_budget(since_ns: u64) -> Blame {
    Blame::of(Fault::STALL_RUN_BUDGET).since(since_ns)
}

/// Writes the post-mortem: the blame, the counts, the blocked tasks and one missing producer of each.
/// Reads every task and edge; a run makes it once, after its end. A builder may still write lines of tasks meanwhile: a field is then read as it was before that write or after
/// it ([`TaskHead::write`](pto_abi::task::TaskHead::write)).
#[must_use]
pub fn epitaph(state: &SharedState<'_>, blame: &Blame, instance: u32, now_ns: u64) -> Epitaph {
    let mut epitaph = Epitaph::of(blame.fault);
    epitaph.instance = instance;
    epitaph.core = blame.worker;
    epitaph.func_id = blame.func_id;
    epitaph.task = blame.task;
    epitaph.time_ns = now_ns;
    epitaph.since_ns = blame.since_ns;
    epitaph.detail = blame.detail;
    (epitaph.ring, epitaph.scope) = blame.ring;
    epitaph.argument = blame.argument;
    epitaph.part = blame.part;
    epitaph.shaped = state.shaped_waiting();
    epitaph.added = state.sum(|line| line.added.load(Ordering::Relaxed));
    epitaph.published = state.sum(|line| line.published.load(Ordering::Relaxed));
    epitaph.completed = state.sum(|line| line.completed.load(Ordering::Relaxed));
    let busy = state.sum(|line| line.busy_cores.load(Ordering::Relaxed).into());
    epitaph.busy_cores = u32::try_from(busy).unwrap_or(u32::MAX);
    for (ready, queue) in epitaph.ready.iter_mut().zip(&state.ready) {
        *ready = u32::try_from(queue.len()).unwrap_or(u32::MAX);
    }
    if let Some(task) = state.task(blame.task.slot) {
        epitaph.kernel = task.kernel.load(Ordering::Relaxed);
    }
    name_blocked(state, &mut epitaph);
    epitaph
}

fn name_blocked(state: &SharedState<'_>, epitaph: &mut Epitaph) {
    let mut named = 0;
    for (slot, task) in blocked_tasks(state) {
        epitaph.blocked_count = epitaph.blocked_count.saturating_add(1);
        if let Some(entry) = epitaph.blocked.get_mut(named) {
            let fanin = task.fanin.load(Ordering::Relaxed);
            *entry = BlockedTask { task: slot, fanin, producer: NOBODY, producer_state: 0 };
            named += 1;
        }
    }
    if let Some(entries) = epitaph.blocked.get_mut(..named.min(EPITAPH_BLOCKED)) {
        name_producers(state, entries);
    }
}

/// Finds, for each entry, a task that has an edge to it and has not completed.
fn name_producers(state: &SharedState<'_>, entries: &mut [BlockedTask]) {
    for (slot, producer) in added_tasks(state) {
        let fanout = producer.fanout.load(Ordering::Relaxed);
        if fanout & CLOSED != 0 {
            continue;
        }
        let mut walk = ConsumerWalk::new(fanout);
        while let Some(consumer) = walk.next(producer, state.chunks) {
            for entry in entries.iter_mut().filter(|entry| entry.task == consumer) {
                if entry.producer == NOBODY {
                    entry.producer = slot;
                    entry.producer_state = producer.state.load(Ordering::Relaxed).into();
                }
            }
        }
    }
}

fn added_tasks<'a>(state: &SharedState<'a>) -> impl Iterator<Item = (u32, &'a Task)> + use<'a> {
    let added = state.sum(|line| line.added.load(Ordering::Relaxed));
    (0_u32..).zip(state.tasks).take(usize::try_from(added).unwrap_or(usize::MAX))
}

fn blocked_tasks<'a>(state: &SharedState<'a>) -> impl Iterator<Item = (u32, &'a Task)> + use<'a> {
    added_tasks(state).filter(|(_, task)| {
        let published = task.state.load(Ordering::Relaxed) == TaskState::PUBLISHED.get();
        published && task.fanin.load(Ordering::Relaxed) > 0
    })
}
