//! Ranges: tasks with tensors that foreign code submits in one call.

use core::ffi::c_void;

use heapless::Vec;
use pto_abi::chain::MAX_CHAIN_ARGS;
use pto_abi::foreign::{ArgKind, StreamArg, StreamTask, StreamTensor};
use pto_abi::limits::MAX_ARGS;
use pto_abi::{Fault, GmAddr, TaskId};
use pto_graph::{ElementType, Publish, TensorRange, TensorTask, TensorView, Variation};

use super::block_shape::ForeignBlockShape;
use super::tasks::{AFTER, NewTensorTask, add_tensor_task, args_of, check_count, stated};
use crate::foreign::alias::Alias;
use crate::foreign::build::{Build, Finder, known};
use crate::foreign::range::{RANGE_TASKS, StreamVariation, note_all, tasks_of, variations_of};

/// Submits a range: runtime, first task, its arguments and how many, tasks that each of them waits for and how many, how many tasks, variations and
/// how many. The number of the first one, or -1.
pub type SubmitRange = unsafe extern "C" fn(
    *mut c_void,
    *const StreamTask,
    *const StreamArg,
    u32,
    *const i64,
    u32,
    u32,
    *const StreamVariation,
    u32,
) -> i64;

/// `pto_stream_submit_range`: the number of the first task, or -1.
///
/// # Safety
/// The pointers are null, or hold what the counts and `struct_size` say.
pub unsafe extern "C" fn submit_range<F: Finder>(
    runtime: *mut c_void,
    task: *const StreamTask,
    args: *const StreamArg,
    arg_count: u32,
    after: *const i64,
    after_count: u32,
    tasks: u32,
    variations: *const StreamVariation,
    variation_count: u32,
) -> i64 {
    F::find(runtime, -1, |build| {
        let added = build.call(|build| {
            check_count(arg_count)?;
            tasks_of(tasks)?;
            // SAFETY: as the caller says, here and below.
            let first =
                unsafe { stated(Publish::Now, task, (args, arg_count), (after, after_count)) }?;
            // SAFETY: as above.
            let varies = unsafe { variations_of(variations, variation_count) }?;
            NewRange { first, tasks, varies: &varies }.submit(build)
        });
        added.unwrap_or(-1)
    })
}

/// What a range is made of.
struct NewRange<'a> {
    first: NewTensorTask<'a>,
    tasks: u32,
    varies: &'a [Variation<'a>],
}

impl NewRange<'_> {
    fn submit(&self, build: &mut Build<'_>) -> Result<i64, Fault> {
        // A program that sees other addresses has them in its words, too.
        if build.alias() == Alias::default() && self.first.after.len() <= AFTER {
            self.submit_at_once(build)
        } else {
            self.submit_one_by_one(build)
        }
    }

    fn submit_at_once(&self, build: &mut Build<'_>) -> Result<i64, Fault> {
        let NewTensorTask { task, args, after, .. } = &self.first;
        let (func_id, kind) = known(task.func_id.into(), task.core_type.into())?;
        let mut views: Vec<TensorView<'static>, MAX_ARGS> = Vec::new();
        for arg in *args {
            views.push(TensorView::from(&arg.tensor)).map_err(|_| Fault::BUILD_TOO_MANY_ARGS)?;
        }
        let args = args_of(args, &views, Alias::default())?;
        let mut producers: Vec<TaskId, AFTER> = Vec::new();
        for producer in *after {
            // `submit` has seen that they fit.
            let _: Result<(), TaskId> = producers.push(build.id(*producer)?);
        }
        let shape = ForeignBlockShape::of(task)?;
        let task = shape.give(TensorTask::new(func_id, kind, &args).after(&producers));
        let range = TensorRange::new(task).times(self.tasks).varying(self.varies);
        let mut ids = [TaskId::NONE; RANGE_TASKS];
        let count = usize::try_from(self.tasks).unwrap_or(usize::MAX);
        let ids = ids.get_mut(..count).ok_or(Fault::BUILD_RANGE_LENGTH)?;
        build.stream()?.submit_tensor_range(&range, ids)?;
        note_all(build, ids)
    }

    fn submit_one_by_one(&self, build: &mut Build<'_>) -> Result<i64, Fault> {
        let NewTensorTask { task, args, after, .. } = &self.first;
        // The checks of a range, before its first task.
        known(task.func_id.into(), task.core_type.into())?;
        Variation::check_all(self.varies, args.len(), self.tasks)?;
        let mut first = None;
        for index in 0..self.tasks {
            let mut own: Vec<StreamArg, MAX_CHAIN_ARGS> = Vec::new();
            for (at, arg) in args.iter().enumerate() {
                let arg = self.arg_at(at, index, arg);
                own.push(arg).map_err(|_| Fault::BUILD_CHAIN_LIMIT)?;
            }
            let new = NewTensorTask { task: *task, args: &own, after, publish: Publish::Now };
            let number = add_tensor_task(build, &new)?;
            first.get_or_insert(number);
        }
        first.ok_or(Fault::BUILD_RANGE_LENGTH)
    }

    /// Argument number `at` of task `index`; the first one has `arg`.
    fn arg_at(&self, at: usize, index: u32, arg: &StreamArg) -> StreamArg {
        let varies = self.varies.iter().filter(|variation| variation.arg() == at);
        let vary = |first: u64| varies.fold(first, |word, variation| variation.at(index, word));
        if arg.kind == ArgKind::SCALAR.get() {
            return StreamArg { scalar: vary(arg.scalar), ..*arg };
        }
        if arg.kind == ArgKind::BOUND_SCALAR.get() {
            return *arg;
        }
        let size =
            u8::try_from(arg.tensor.element).ok().and_then(|e| ElementType::try_from(e).ok());
        let size = size.map_or(1, ElementType::bytes);
        let GmAddr(base) = arg.tensor.base;
        let first = base.wrapping_add(arg.tensor.offset.wrapping_mul(size));
        let offset = vary(first).wrapping_sub(base);
        let is_element = offset.checked_rem(size) == Some(0);
        // What begins at no element is a part of nothing.
        let bytes = if is_element { arg.tensor.bytes } else { 0 };
        let offset = offset.checked_div(size).unwrap_or(0);
        StreamArg { tensor: StreamTensor { offset, bytes, ..arg.tensor }, ..*arg }
    }
}
