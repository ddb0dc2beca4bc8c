//! A task with tensors, from what foreign code states to the builder.

use heapless::Vec;
use pto_abi::foreign::{ArgKind, STREAM_TASK_BYTES, StreamArg, StreamTask};
use pto_abi::limits::MAX_ARGS;
use pto_abi::{Fault, TaskId};
use pto_graph::{Arg, Publish, TensorTask, TensorView};

use super::block_shape::ForeignBlockShape;
use crate::foreign::alias::Alias;
use crate::foreign::build::{Build, known};
use crate::foreign::pointers::{value, values};

/// How many explicit edges are submitted with a task. Further edges are added after it.
pub(super) const AFTER: usize = 32;
/// The largest size in bytes that a caller's struct may have, in this release and in later ones.
const MAX_STRUCT: u32 = 4096;

/// The fields of a task that this release knows; those that the caller's does not are zero.
///
/// # Safety
/// `task` is null, or has as many bytes as its `struct_size` says.
pub(super) unsafe fn task_of(task: *const StreamTask) -> Result<StreamTask, Fault> {
    // SAFETY: the size comes first; as the caller says.
    let size = unsafe { value(task.cast::<u32>()) }?;
    let bytes = usize::try_from(size).unwrap_or(usize::MAX);
    if bytes < STREAM_TASK_BYTES || size > MAX_STRUCT {
        return Err(Fault::BUILD_FOREIGN_STRUCT);
    }
    // SAFETY: as the caller says.
    let given = unsafe { core::slice::from_raw_parts(task.cast::<u8>(), bytes) };
    let mut held = StreamTask::default();
    let (known, more) = given.split_at(bytes.min(size_of::<StreamTask>()));
    let fields = bytemuck::bytes_of_mut(&mut held);
    fields.iter_mut().zip(known).for_each(|(field, byte)| *field = *byte);
    let is_known = held.reserved == 0 && more.iter().all(|byte| *byte == 0);
    if is_known { Ok(held) } else { Err(Fault::BUILD_FOREIGN_STRUCT) }
}

/// The arguments of a task, as Rust has them; `views` are their tensors.
pub(super) fn args_of<'v>(
    args: &[StreamArg],
    views: &'v Vec<TensorView<'static>, MAX_ARGS>,
    alias: Alias,
) -> Result<Vec<Arg<'v>, MAX_ARGS>, Fault> {
    let mut list = Vec::new();
    for (arg, view) in args.iter().zip(views) {
        let kind = ArgKind::try_from(arg.kind).map_err(|_| Fault::STREAM_ARG_KIND)?;
        if arg.reserved != 0 {
            return Err(Fault::BUILD_FOREIGN_STRUCT);
        }
        let arg = match kind {
            ArgKind::IN => Arg::In(view),
            ArgKind::OUT => Arg::Out(view),
            ArgKind::INOUT => Arg::InOut(view),
            ArgKind::NO_DEP => Arg::NoDep(view),
            ArgKind::BOUND_SCALAR => {
                Arg::BoundScalar(u32::try_from(arg.scalar).unwrap_or(u32::MAX))
            }
            _ => Arg::Scalar(alias.device(arg.scalar)),
        };
        list.push(arg).map_err(|_| Fault::BUILD_TOO_MANY_ARGS)?;
    }
    Ok(list)
}

/// A task whose predicate is of the device's memory.
fn of_device(task: &StreamTask, alias: Alias) -> StreamTask {
    StreamTask { element_of: alias.device_tensor(&task.element_of), ..*task }
}

/// What a task is made of.
pub(super) struct NewTensorTask<'a> {
    pub(super) task: StreamTask,
    pub(super) args: &'a [StreamArg],
    pub(super) after: &'a [i64],
    pub(super) publish: Publish,
}

/// Whether a task may have this many arguments.
pub(super) fn check_count(args: u32) -> Result<(), Fault> {
    match usize::try_from(args) {
        Ok(count) if count <= MAX_ARGS => Ok(()),
        _ => Err(Fault::BUILD_TOO_MANY_ARGS),
    }
}

/// A task as foreign code states it: `args` and `after` with how many there are.
///
/// # Safety
/// The pointers are null, or hold what the counts and `struct_size` say, for the lifetime that the caller gives them.
pub(super) unsafe fn stated<'a>(
    publish: Publish,
    task: *const StreamTask,
    args: (*const StreamArg, u32),
    after: (*const i64, u32),
) -> Result<NewTensorTask<'a>, Fault> {
    check_count(args.1)?;
    // SAFETY: as the caller says, here and below.
    let task = unsafe { task_of(task) }?;
    // SAFETY: as above.
    let args = unsafe { values(args.0, args.1) }?;
    // SAFETY: as above.
    let after = unsafe { values(after.0, after.1) }?;
    Ok(NewTensorTask { task, args, after, publish })
}

pub(super) fn add_tensor_task(
    build: &mut Build<'_>,
    new: &NewTensorTask<'_>,
) -> Result<i64, Fault> {
    let (func_id, kind) = known(new.task.func_id.into(), new.task.core_type.into())?;
    let alias = build.alias();
    let mut views: Vec<TensorView<'static>, MAX_ARGS> = Vec::new();
    for arg in new.args {
        let tensor = alias.device_tensor(&arg.tensor);
        views.push(TensorView::from(&tensor)).map_err(|_| Fault::BUILD_TOO_MANY_ARGS)?;
    }
    let args = args_of(new.args, &views, alias)?;
    let (first, others) = new.after.split_at(new.after.len().min(AFTER));
    let mut after: Vec<TaskId, AFTER> = Vec::new();
    for producer in first {
        // `first` has no more than fit.
        let _: Result<(), TaskId> = after.push(build.id(*producer)?);
    }
    let shape = ForeignBlockShape::of(&of_device(&new.task, alias))?;
    let task = shape.give(TensorTask::new(func_id, kind, &args).after(&after));
    let id = build.stream()?.add_tensor_task(&task)?;
    let number = build.note(id)?;
    for producer in others {
        build.add_edge(*producer, number)?;
    }
    if new.publish == Publish::Now {
        build.publish(number)?;
    }
    Ok(number)
}
