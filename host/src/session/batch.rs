//! A batch of launches as one run: a graph with a chain for each stream; and after a fault, which of them were done, which one
//! is to blame, which have not begun.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pto_abi::arena::Arena;
use pto_abi::kinds::TaskState;
use pto_abi::runtime::region;
use pto_abi::sync::Ordering;
use pto_abi::{Fault, TaskId};
use pto_graph::BuildError;

use super::error::Cause;
use super::ids::StreamId;
use super::work::{Launch, Outcome};
use crate::{Device, Error, GraphImage, HostGraph, RunControl, RunOptions, RunReport, Work};

/// A batch that has been run: its outcomes, and the report where there was no fault.
pub(super) struct Ran {
    pub(super) outcomes: Vec<(StreamId, Outcome)>,
    pub(super) report: Option<RunReport>,
}

/// Runs the launches.
pub(super) fn run(
    device: &mut Device,
    launches: &[Launch],
    options: &RunOptions,
    control: &RunControl,
) -> Ran {
    let (image, tasks) = match graph_of(device, launches) {
        Ok(built) => built,
        Err(error) => return refused(device, launches, options, control, error),
    };
    let mut states = Vec::new();
    let result = device.run_on(Work::HostGraph(&image), options, |backend, arena| {
        control.over(arena, || {
            let landing = backend.run(arena);
            if landing.fault.is_some() {
                states = read_states(&arena, image.header().task_count as usize);
            }
            landing
        })
    });
    let outcomes = match result {
        Ok(report) => {
            let outcomes = launches.iter().map(|launch| (launch.stream, Outcome::Done)).collect();
            return Ran { outcomes, report: Some(report) };
        }
        Err(error) => judge(launches, &tasks, &states, &Arc::new(error)),
    };
    Ran { outcomes, report: None }
}

/// The graph, and which tasks belong to which launch.
fn graph_of(
    device: &Device,
    launches: &[Launch],
) -> Result<(GraphImage, Vec<Range<usize>>), Error> {
    let mut tasks = Vec::with_capacity(launches.len());
    let image = HostGraph::build(device, &[], |graph| {
        let mut last: BTreeMap<StreamId, Vec<TaskId>> = BTreeMap::new();
        for launch in launches {
            let first = graph.task_count();
            let after = last.entry(launch.stream).or_default();
            *after = launch.call.add_to(graph, after).map_err(BuildError::Fault)?;
            tasks.push(first..graph.task_count());
        }
        Ok(())
    })?;
    Ok((image, tasks))
}

/// The device refuses some launch: each is tried alone, so that only that one fails.
fn refused(
    device: &mut Device,
    launches: &[Launch],
    options: &RunOptions,
    control: &RunControl,
    error: Error,
) -> Ran {
    if let [launch] = launches {
        let failed = Outcome::Failed(Cause::Device(Arc::new(error)));
        return Ran { outcomes: vec![(launch.stream, failed)], report: None };
    }
    let mut outcomes = Vec::with_capacity(launches.len());
    let mut failed: Vec<StreamId> = Vec::new();
    for launch in launches {
        if failed.contains(&launch.stream) {
            outcomes.push((launch.stream, Outcome::NotBegun));
            continue;
        }
        let alone = run(device, std::slice::from_ref(launch), options, control).outcomes;
        failed.extend(
            alone
                .iter()
                .filter(|(_, outcome)| !matches!(outcome, Outcome::Done))
                .map(|(stream, _)| *stream),
        );
        outcomes.extend(alone);
    }
    Ran { outcomes, report: None }
}

/// How far each task is, of this run.
fn read_states(arena: &Arena<'_>, count: usize) -> Vec<TaskState> {
    let run = arena.header().run_epoch;
    let tasks = arena.tasks(arena.regions()[region::TASKS]).unwrap_or_default();
    let state = |task: &pto_abi::task::Task| {
        // What an earlier run has left says nothing of this one.
        let is_of_run = task.generation.load(Ordering::Relaxed) == run;
        let state = TaskState::try_from(task.state.load(Ordering::Relaxed));
        state.ok().filter(|_| is_of_run).unwrap_or(TaskState::NONE)
    };
    tasks.iter().take(count).map(state).collect()
}

/// After a fault: what has become of each launch. At least one has failed, so that the streams get on.
fn judge(
    launches: &[Launch],
    tasks: &[Range<usize>],
    states: &[TaskState],
    error: &Arc<Error>,
) -> Vec<(StreamId, Outcome)> {
    let blamed = blamed(error);
    let mut outcomes: Vec<Outcome> =
        tasks.iter().map(|tasks| outcome(tasks, states, blamed, error)).collect();
    let is_failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_));
    if !outcomes.iter().any(is_failed) {
        // The run itself failed, and names no launch: the first one that is not done, or the last one.
        let open = outcomes.iter().position(|outcome| matches!(outcome, Outcome::NotBegun));
        let at = open.unwrap_or(outcomes.len().saturating_sub(1));
        if let Some(outcome) = outcomes.get_mut(at) {
            *outcome = Outcome::Failed(Cause::Device(Arc::clone(error)));
        }
    }
    launches.iter().map(|launch| launch.stream).zip(outcomes).collect()
}

fn outcome(
    tasks: &Range<usize>,
    states: &[TaskState],
    blamed: Option<usize>,
    error: &Arc<Error>,
) -> Outcome {
    let states = states.get(tasks.clone()).unwrap_or_default();
    if blamed.is_some_and(|task| tasks.contains(&task)) {
        return Outcome::Failed(Cause::Device(Arc::clone(error)));
    }
    if !states.is_empty() && states.iter().all(|state| *state == TaskState::COMPLETED) {
        return Outcome::Done;
    }
    let has_begun =
        |state: &TaskState| matches!(*state, TaskState::DISPATCHED | TaskState::COMPLETED);
    if states.iter().any(has_begun) {
        return Outcome::Failed(Cause::Interrupted(Arc::clone(error)));
    }
    Outcome::NotBegun
}

/// The task that the post-mortem names.
fn blamed(error: &Error) -> Option<usize> {
    let Error::Fault { fault, report } = error else { return None };
    let task = report.epitaph.as_ref().map(|epitaph| epitaph.task)?;
    let is_named = task != TaskId::NONE && *fault != Fault::RUN_CANCELLED;
    is_named.then_some(task.slot as usize)
}

#[cfg(test)]
mod tests {
    use super::super::capture::KernelCall;
    use super::super::error::Cause;
    use super::{Launch, Outcome, StreamId, judge};
    use crate::Error;
    use pto_abi::kinds::TaskState;
    use pto_abi::{CoreKind, FuncId};
    use std::sync::Arc;

    fn launches(streams: &[u32]) -> Vec<Launch> {
        let call = KernelCall { func_id: FuncId(0), kind: CoreKind::AIV, blocks: 1, args: vec![] };
        let launch = |stream: &u32| Launch { stream: StreamId(*stream), call: call.clone() };
        streams.iter().map(launch).collect()
    }

    fn judged(states: &[TaskState]) -> Vec<&'static str> {
        let tasks: Vec<_> = (0..states.len()).map(|task| task..task + 1).collect();
        let streams: Vec<_> = (0..).take(states.len()).collect();
        let outcomes = judge(&launches(&streams), &tasks, states, &Arc::new(Error::ZeroSize));
        let name = |outcome: &Outcome| match outcome {
            Outcome::Done => "done",
            Outcome::Failed(Cause::Interrupted(_)) => "interrupted",
            Outcome::Failed(_) => "failed",
            Outcome::NotBegun => "not begun",
        };
        outcomes.iter().map(|(_, outcome)| name(outcome)).collect()
    }

    #[test]
    fn what_was_done_is_done_and_what_was_on_a_core_has_failed() {
        let states = [TaskState::COMPLETED, TaskState::DISPATCHED, TaskState::PUBLISHED];
        assert_eq!(judged(&states), ["done", "interrupted", "not begun"]);
    }

    #[test]
    fn some_launch_fails_in_any_case() {
        assert_eq!(judged(&[TaskState::NONE; 2]), ["failed", "not begun"]);
        assert_eq!(judged(&[TaskState::COMPLETED; 2]), ["done", "failed"]);
    }
}
