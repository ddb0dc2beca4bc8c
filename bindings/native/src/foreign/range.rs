//! Ranges of tasks that foreign code submits in one call: what differs from one task to the next, and what each of them waits for. Those
//! on tensors: `stream/ranges.rs`.
//!
//! ```text
//! pto_task_range --read--> the first task, variations, waits --ids of the numbers--> TaskRange (pto-graph) --> numbers of the tasks
//! ```
//! Foreign code knows tasks by their numbers, and those of a range follow one another: so a wait names its producers by the first one and
//! how many there are, or by a list of numbers.

use core::ffi::c_void;

use heapless::Vec;
use pto_abi::chain::MAX_CHAIN_ARGS;
use pto_abi::limits::MAX_ARGS;
use pto_abi::{Fault, GmAddr, TaskId};
use pto_graph::{TaskRange, TaskSpec, Variation, Wait};

use crate::foreign::alias::Alias;
use crate::foreign::build::{Build, Finder, NewTask, known};
use crate::foreign::pointers::{value, values};

/// Tasks of a range, at most (`PTO_RANGE_TASKS`).
pub const RANGE_TASKS: usize = 128;
/// Producers that all waits of a range name, at most (`PTO_RANGE_PRODUCERS`).
pub const RANGE_PRODUCERS: usize = 512;
/// Waits of a range, at most (`PTO_RANGE_WAITS`).
pub const RANGE_WAITS: usize = 8;

/// `struct pto_stream_variation`: how one argument differs between the tasks of a range.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StreamVariation {
    /// Which argument.
    pub arg: u32,
    /// How many words there are; 0: it grows by the step.
    pub count: u32,
    /// By how much it grows from task to task: a scalar by that number, a tensor by this many bytes.
    pub step: i64,
    /// The word of each task. Of a tensor, these are the addresses where its view begins.
    pub words: *const u64,
}

/// `struct pto_range_wait`: which tasks each task of a range waits for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RangeWait {
    /// `PTO_RANGE_WAIT_*`.
    pub kind: u32,
    /// How many producers there are.
    pub count: u32,
    /// Their numbers; null: those from `first` on.
    pub producers: *const i64,
    /// The number of the first one, without a list.
    pub first: i64,
    /// Of a window: which producer the first task waits for first.
    pub from: i32,
    /// Of a window: how many each task waits for.
    pub width: u32,
    /// Of a window: by how many producers it moves from task to task.
    pub stride: u32,
    /// Zero.
    pub reserved: u32,
    /// Of lists: where the producers of each task end.
    pub ends: *const u32,
}

/// Each task waits for all producers (`PTO_RANGE_WAIT_ALL`).
pub const WAIT_ALL: u32 = 0;
/// Each task waits for a window of them (`PTO_RANGE_WAIT_WINDOW`).
pub const WAIT_WINDOW: u32 = 1;
/// Each task waits for a part of them (`PTO_RANGE_WAIT_LISTED`).
pub const WAIT_LISTED: u32 = 2;

/// `struct pto_task_range`: tasks of one kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RangeOfTasks {
    /// The struct's size.
    pub struct_size: u32,
    /// Which kernel.
    pub func_id: u32,
    /// A `CoreKind`.
    pub core_type: u32,
    /// How many tasks.
    pub tasks: u32,
    /// The arguments of the first one.
    pub args: *const u64,
    /// How arguments differ.
    pub variations: *const StreamVariation,
    /// What the tasks wait for.
    pub waits: *const RangeWait,
    /// How many arguments.
    pub arg_count: u32,
    /// How many variations.
    pub variation_count: u32,
    /// How many waits.
    pub wait_count: u32,
    /// Zero.
    pub reserved: u32,
}

// `pto_range.h` asserts the same numbers.
const _: () = {
    assert!(size_of::<StreamVariation>() == 24);
    assert!(core::mem::offset_of!(StreamVariation, words) == 16);
    assert!(size_of::<RangeWait>() == 48);
    assert!(core::mem::offset_of!(RangeWait, first) == 16);
    assert!(core::mem::offset_of!(RangeWait, ends) == 40);
    assert!(size_of::<RangeOfTasks>() == 56);
    assert!(core::mem::offset_of!(RangeOfTasks, args) == 16);
    assert!(core::mem::offset_of!(RangeOfTasks, arg_count) == 40);
};

/// Submits a range: runtime and range. The number of the first task, or -1.
pub type SubmitTaskRange = unsafe extern "C" fn(*mut c_void, *const RangeOfTasks) -> i64;

/// `pto_submit_range`: the number of the first task, or -1.
///
/// # Safety
/// `range` is null, or has as many bytes as its `struct_size` says; its pointers are null, or hold what the counts say.
pub unsafe extern "C" fn submit_task_range<F: Finder>(
    runtime: *mut c_void,
    range: *const RangeOfTasks,
) -> i64 {
    F::find(runtime, -1, |build| {
        let added = build.call(|build| {
            // SAFETY: as the caller says.
            let range = unsafe { range_of(range) }?;
            // SAFETY: as the caller says.
            unsafe { submit(build, &range) }
        });
        added.unwrap_or(-1)
    })
}

/// The range that foreign code states. No release has another one yet.
///
/// # Safety
/// `range` is null, or has as many bytes as its `struct_size` says.
unsafe fn range_of(range: *const RangeOfTasks) -> Result<RangeOfTasks, Fault> {
    // SAFETY: the size comes first; as the caller says.
    let size = unsafe { value(range.cast::<u32>()) }?;
    if usize::try_from(size) != Ok(size_of::<RangeOfTasks>()) {
        return Err(Fault::BUILD_FOREIGN_STRUCT);
    }
    // SAFETY: it has its size, as the caller says.
    let range = unsafe { value(range) }?;
    if range.reserved == 0 { Ok(range) } else { Err(Fault::BUILD_FOREIGN_STRUCT) }
}

/// How many tasks a range may have.
pub(crate) fn tasks_of(tasks: u32) -> Result<usize, Fault> {
    let tasks = usize::try_from(tasks).unwrap_or(usize::MAX);
    if tasks == 0 || tasks > RANGE_TASKS { Err(Fault::BUILD_RANGE_LENGTH) } else { Ok(tasks) }
}

/// The variations that foreign code states.
///
/// # Safety
/// `variations` is null, or has `count` of them, and each of them as many words as it says, for the lifetime that the caller gives them.
pub(crate) unsafe fn variations_of<'a>(
    variations: *const StreamVariation,
    count: u32,
) -> Result<Vec<Variation<'a>, MAX_CHAIN_ARGS>, Fault> {
    let mut varies = Vec::new();
    // SAFETY: as the caller says.
    for variation in unsafe { values(variations, count) }? {
        // SAFETY: as above.
        let words = unsafe { values(variation.words, variation.count) }?;
        let arg = usize::try_from(variation.arg).unwrap_or(usize::MAX);
        let variation = match words {
            [] => Variation::by(arg, variation.step),
            words => Variation::of(arg, words),
        };
        varies.push(variation).map_err(|_| Fault::BUILD_CHAIN_LIMIT)?;
    }
    Ok(varies)
}

/// # Safety
/// The pointers of the range are null, or hold what the counts say.
unsafe fn submit(build: &mut Build<'_>, range: &RangeOfTasks) -> Result<i64, Fault> {
    if usize::try_from(range.arg_count).map_or(true, |count| count > MAX_ARGS) {
        return Err(Fault::BUILD_TOO_MANY_ARGS);
    }
    let tasks = tasks_of(range.tasks)?;
    // SAFETY: as the caller says, here and below.
    let args = unsafe { values(range.args, range.arg_count) }?;
    // SAFETY: as above.
    let varies = unsafe { variations_of(range.variations, range.variation_count) }?;
    // SAFETY: as above.
    let given = unsafe { values(range.waits, range.wait_count) }?;
    if given.len() > RANGE_WAITS {
        return Err(Fault::BUILD_RANGE_LENGTH);
    }
    let mut producers: Vec<TaskId, RANGE_PRODUCERS> = Vec::new();
    for wait in given {
        // SAFETY: as above.
        unsafe { add_producers(build, wait, &mut producers) }?;
    }
    let mut rest = producers.as_slice();
    let mut waits: Vec<Wait<'_>, RANGE_WAITS> = Vec::new();
    for wait in given {
        // As many as were added for it, if foreign code has left the count as it was.
        let own = rest.split_at_checked(usize::try_from(wait.count).unwrap_or(usize::MAX));
        let (own, others) = own.ok_or(Fault::BUILD_FOREIGN_STRUCT)?;
        rest = others;
        // SAFETY: as above.
        let wait = unsafe { wait_of(wait, own, range.tasks) }?;
        waits.push(wait).map_err(|_| Fault::BUILD_RANGE_LENGTH)?;
    }
    let (func_id, kind) = known(range.func_id.into(), range.core_type.into())?;
    let range = TaskRange::new(TaskSpec::new(func_id, kind, args)).times(range.tasks);
    submit_tasks(build, &range.varying(&varies).after(&waits), tasks)
}

/// # Safety
/// The pointers of the wait are null, or hold what the count says.
unsafe fn add_producers(
    build: &Build<'_>,
    wait: &RangeWait,
    to: &mut Vec<TaskId, RANGE_PRODUCERS>,
) -> Result<(), Fault> {
    if wait.reserved != 0 || wait.kind > WAIT_LISTED {
        return Err(Fault::BUILD_FOREIGN_STRUCT);
    }
    let mut add = |number: i64| to.push(build.id(number)?).map_err(|_| Fault::BUILD_RANGE_LENGTH);
    if wait.producers.is_null() {
        let number = |at: u32| wait.first.checked_add(at.into()).ok_or(Fault::BUILD_UNKNOWN_TASK);
        return (0..wait.count).try_for_each(|at| add(number(at)?));
    }
    // SAFETY: as the caller says.
    let numbers = unsafe { values(wait.producers, wait.count) }?;
    numbers.iter().try_for_each(|number| add(*number))
}

/// # Safety
/// `ends` of the wait is null, or has as many entries as the range has tasks.
unsafe fn wait_of<'a>(
    wait: &RangeWait,
    producers: &'a [TaskId],
    tasks: u32,
) -> Result<Wait<'a>, Fault> {
    Ok(match wait.kind {
        WAIT_ALL => Wait::all(producers),
        WAIT_WINDOW => Wait::window(producers, wait.from, wait.width).every(wait.stride),
        // SAFETY: as the caller says.
        _ => Wait::listed(producers, unsafe { values(wait.ends, tasks) }?),
    })
}

fn submit_tasks(build: &mut Build<'_>, range: &TaskRange<'_>, tasks: usize) -> Result<i64, Fault> {
    if build.alias() != Alias::default() {
        return submit_seen_tasks(build, range, tasks);
    }
    let mut ids = [TaskId::NONE; RANGE_TASKS];
    let ids = ids.get_mut(..tasks).ok_or(Fault::BUILD_RANGE_LENGTH)?;
    build.graph().submit_range(range, ids)?;
    note_all(build, ids)
}

/// Notes the tasks of a range; the number of the first one.
pub(crate) fn note_all(build: &mut Build<'_>, ids: &[TaskId]) -> Result<i64, Fault> {
    let mut first = None;
    for id in ids {
        let number = build.note(*id)?;
        first.get_or_insert(number);
    }
    first.ok_or(Fault::BUILD_RANGE_LENGTH)
}

/// Submits the tasks of a program that sees other addresses, which are in its words, too.
#[cold]
fn submit_seen_tasks(
    build: &mut Build<'_>,
    range: &TaskRange<'_>,
    tasks: usize,
) -> Result<i64, Fault> {
    range.check(tasks)?;
    let (mut words, mut first) = ([0; MAX_CHAIN_ARGS], None);
    for index in 0..range.tasks() {
        let task = range.task_at(index, &mut words);
        let (func_id, core_type) = (task.func_id.0.into(), task.kind.get().into());
        let new = NewTask { func_id, core_type, args: task.args, kernel: GmAddr::NULL };
        let number = build.add_task(&new)?;
        let id = build.id(number)?;
        for wait in range.waits() {
            let producers = wait.of(index).iter();
            producers.copied().try_for_each(|from| build.graph().add_edge(from, id).map(drop))?;
        }
        build.publish(number)?;
        first.get_or_insert(number);
    }
    first.ok_or(Fault::BUILD_RANGE_LENGTH)
}
