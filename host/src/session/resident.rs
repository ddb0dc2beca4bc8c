//! The resident firmware, as the session brings it up: how it is run, and how the launches in flight ended after a fault.

use std::sync::Arc;

use pto_abi::arena::{Arena, Capacities};
use pto_abi::kinds::TaskState;
use pto_abi::runtime::region;
use pto_abi::session::board::{LAUNCH_PAYLOAD_WORDS, RESIDENT_PROGRAM};
use pto_abi::session::{LaneLine, SessionBoard};
use pto_abi::stream::StreamCapacities;
use pto_abi::sync::Ordering;
use pto_abi::{BuildMode, Fault, TaskId};

use super::error::FailureCause;
use super::lines::BoardMemory;
use super::memory_sync::MemorySync;
use super::work::{FirmwareExit, InterruptedLaunch, LaunchOutcome};
use crate::control::RunControl;
use crate::device::Device;
use crate::error::Error;
use crate::options::{KernelTimes, RunOptions, Work};

/// A launch in flight, as the board and the tasks of the run have it.
struct InFlightLaunch {
    stream_slot: usize,
    /// The slots of its tasks, and how far these are.
    tasks: Vec<(u32, TaskState)>,
    /// Some of its blocks are over, or are still to begin.
    is_partial: bool,
    is_refused: bool,
}

/// Runs the firmware until it returns.
pub(super) fn run(
    device: &mut Device,
    board: &BoardMemory,
    sync: &MemorySync<'_>,
    options: &RunOptions,
    control: &RunControl,
) -> FirmwareExit {
    let stream = match device.has_transfers() {
        true => StreamCapacities::for_transfers(board.slots()),
        false => StreamCapacities::OFF,
    };
    let options = resident_options(options, board.slots(), stream);
    let words = [board.address().0];
    let work = Work::AicpuBuilder { builder: RESIDENT_PROGRAM, orch_args: &words };
    let (mut in_flight, mut fetched) = (Vec::new(), Ok(()));
    let result = device.run_on(work, &options, |backend, arena| {
        Ok(control.over(arena, || {
            let outcome = backend.run(arena);
            fetched = sync.fetch();
            if outcome.fault.is_some() {
                in_flight = look(&arena, board.board());
            }
            outcome
        }))
    });
    match result.and_then(|report| fetched.map(|()| report)) {
        Ok(report) => FirmwareExit { result: Ok(report.makespan), interrupted: Vec::new() },
        Err(error) => {
            let error = Arc::new(error);
            let interrupted = judge(&in_flight, &error);
            FirmwareExit { result: Err(error), interrupted }
        }
    }
}

/// The session's options, as the firmware needs them: an instance that feeds, and room for its tasks. Its time is not limited by
/// the budget of a run, of which it uses a part before it returns by itself.
fn resident_options(of_session: &RunOptions, slots: u32, stream: StreamCapacities) -> RunOptions {
    let capacities = Capacities {
        tasks: slots,
        arg_words: u64::from(slots) * u64::from(LAUNCH_PAYLOAD_WORDS),
        edges: 0,
        image_bytes: 0,
        stream,
        ..of_session.capacities
    };
    RunOptions {
        build_mode: BuildMode::CONCURRENT,
        aicpu_instances: of_session.aicpu_instances.max(2),
        capacities,
        kernel_times: KernelTimes::Skip,
        trace: None,
        ..of_session.clone()
    }
}

/// The launches of this run that are in flight.
fn look(arena: &Arena<'_>, board: &SessionBoard<'_>) -> Vec<InFlightLaunch> {
    let run = arena.header().run_epoch;
    let tasks = arena.tasks(arena.regions()[region::TASKS]).unwrap_or_default();
    let state = |slot: u32| {
        let state = tasks.get(slot as usize).map(|task| task.state.load(Ordering::Relaxed));
        state.and_then(|state| TaskState::try_from(state).ok()).unwrap_or(TaskState::NONE)
    };
    let mut found = Vec::new();
    for (stream_slot, lane) in board.lanes.iter().enumerate() {
        if lane.run.load(Ordering::Relaxed) == run {
            look_at_lane(stream_slot, lane, board, &state, &mut found);
        }
    }
    found
}

fn look_at_lane(
    stream_slot: usize,
    lane: &LaneLine,
    board: &SessionBoard<'_>,
    state: &impl Fn(u32) -> TaskState,
    found: &mut Vec<InFlightLaunch>,
) {
    let is_partial = lane.blocks_begun.load(Ordering::Relaxed) > 0;
    let mut slot = lane.first.load(Ordering::Relaxed);
    let mut tasks = Vec::new();
    for _ in 0..lane.in_flight.load(Ordering::Relaxed) {
        let Some(note) = board.notes.get(slot as usize) else { break };
        tasks.push((slot, state(slot)));
        if !is_partial {
            let tasks = std::mem::take(&mut tasks);
            found.push(InFlightLaunch { stream_slot, tasks, is_partial: false, is_refused: false });
        }
        slot = note.next.load(Ordering::Relaxed);
    }
    if is_partial {
        let over = lane.blocks_over.load(Ordering::Relaxed);
        let open = over > 0 || tasks.len() < total(board, &tasks);
        found.push(InFlightLaunch { stream_slot, tasks, is_partial: open, is_refused: false });
    }
    if lane.refused.load(Ordering::Relaxed) != 0 {
        found.push(InFlightLaunch {
            stream_slot,
            tasks: Vec::new(),
            is_partial: false,
            is_refused: true,
        });
    }
}

/// The blocks of the launch that these tasks are of.
fn total(board: &SessionBoard<'_>, tasks: &[(u32, TaskState)]) -> usize {
    let note = tasks.first().and_then(|(slot, _)| board.notes.get(*slot as usize));
    note.map_or(0, |note| note.blocks.load(Ordering::Relaxed) as usize)
}

fn judge(in_flight: &[InFlightLaunch], error: &Arc<Error>) -> Vec<InterruptedLaunch> {
    let blamed = blamed(error);
    let judge = |launch: &InFlightLaunch| InterruptedLaunch {
        slot: launch.stream_slot,
        outcome: outcome(launch, blamed, error),
    };
    in_flight.iter().map(judge).collect()
}

fn outcome(launch: &InFlightLaunch, blamed: Option<u32>, error: &Arc<Error>) -> LaunchOutcome {
    let is_blamed = |(slot, _): &(u32, TaskState)| Some(*slot) == blamed;
    if launch.is_refused || launch.tasks.iter().any(is_blamed) {
        return LaunchOutcome::Failed(FailureCause::Device(Arc::clone(error)));
    }
    let is_over = |(_, state): &(u32, TaskState)| *state == TaskState::COMPLETED;
    if !launch.is_partial && !launch.tasks.is_empty() && launch.tasks.iter().all(is_over) {
        return LaunchOutcome::Done;
    }
    let has_begun = |(_, state): &(u32, TaskState)| {
        matches!(*state, TaskState::DISPATCHED | TaskState::COMPLETED)
    };
    if launch.is_partial || launch.tasks.iter().any(has_begun) {
        return LaunchOutcome::Failed(FailureCause::Interrupted(Arc::clone(error)));
    }
    LaunchOutcome::NotBegun
}

/// The slot of the task that the post-mortem names.
fn blamed(error: &Error) -> Option<u32> {
    let Error::Fault { fault, report } = error else { return None };
    let task = report.epitaph.as_ref().map(|epitaph| epitaph.task)?;
    let is_named = task != TaskId::NONE && *fault != Fault::RUN_CANCELLED;
    is_named.then_some(task.slot)
}

#[cfg(test)]
mod tests {
    use super::{InFlightLaunch, judge};
    use crate::error::Error;
    use crate::session::error::FailureCause;
    use crate::session::work::LaunchOutcome;
    use pto_abi::kinds::TaskState;
    use std::sync::Arc;

    fn judged(launches: &[(&[TaskState], bool)]) -> Vec<&'static str> {
        let in_flight: Vec<_> = launches
            .iter()
            .map(|(states, is_partial)| InFlightLaunch {
                stream_slot: 0,
                tasks: (0..).zip(states.iter().copied()).collect(),
                is_partial: *is_partial,
                is_refused: false,
            })
            .collect();
        let name = |outcome: &LaunchOutcome| match outcome {
            LaunchOutcome::Done => "done",
            LaunchOutcome::Failed(FailureCause::Interrupted(_)) => "interrupted",
            LaunchOutcome::Failed(_) => "failed",
            LaunchOutcome::NotBegun => "not begun",
        };
        let interrupted = judge(&in_flight, &Arc::new(Error::ZeroSize));
        interrupted.iter().map(|launch| name(&launch.outcome)).collect()
    }

    #[test]
    fn what_was_done_is_done_and_what_was_on_a_core_is_interrupted() {
        let one = |state| std::slice::from_ref(state);
        let (done, on_core) = (TaskState::COMPLETED, TaskState::DISPATCHED);
        let waits = TaskState::PUBLISHED;
        let launches = [(one(&done), false), (one(&on_core), false), (one(&waits), false)];
        assert_eq!(judged(&launches), ["done", "interrupted", "not begun"]);
    }

    #[test]
    fn a_launch_of_blocks_is_done_when_all_are() {
        let (done, waits) = (TaskState::COMPLETED, TaskState::PUBLISHED);
        assert_eq!(judged(&[(&[done, done], false)]), ["done"]);
        assert_eq!(judged(&[(&[done, done], true)]), ["interrupted"], "others are to begin");
        assert_eq!(judged(&[(&[done, waits], false)]), ["interrupted"]);
        assert_eq!(judged(&[(&[waits, waits], false)]), ["not begun"]);
    }
}
