//! A submission: from the arguments as the program gives them to a task of the engine.
//!
//! ```text
//! checked -> tensors, outputs (tensors.rs) -> frame -> edges of the rule -> the engine's task -> id and outputs for the program
//! ```

use pto_host::abi::{CoreKind, Fault, FuncId};
use pto_host::graph::{Arg, Comparison, ElementType, Predicate, TensorTask, TensorView};
use pto_native::foreign::field::TaskFrame;

use crate::build::{BuildContext, describe, text_of};
use crate::codes::ErrorCode;
use crate::dump::Plan;
use crate::limits::RingLimits;
use crate::loaded::DUMMY;
use crate::options::EdgeRule;
use crate::rule::{AccessMode, BufferRegion};
use crate::run_log::NewTask;
use crate::scopes::TaskStatus;
use crate::wire::{
    ChipTensor, CreateInfo, MAX_SCALARS, MAX_TENSORS, Outputs, SYNC_START, Task, TaskArgument, tag,
};

/// What a task is made of, on its way to the engine.
#[derive(Default)]
struct PreparedTask {
    /// Descriptors, in the order of the arguments; those that the runtime makes among them.
    tensors: Vec<ChipTensor>,
    made: Vec<ChipTensor>,
    /// What the engine derives edges from.
    accesses: Vec<(AccessMode, TensorView<'static>, ChipTensor)>,
    after: Vec<pto_host::abi::TaskId>,
    /// Writers that the field's rule registers when the task is there.
    writes: Vec<(u64, BufferRegion)>,
}

/// A slice that C passes.
///
/// # Safety
/// The pointer holds this many, or the count is 0.
pub(crate) unsafe fn slice<'a, T>(from: *const T, count: u32) -> &'a [T] {
    if count == 0 || from.is_null() {
        return &[];
    }
    // SAFETY: the caller vouches for it.
    unsafe { std::slice::from_raw_parts(from, count as usize) }
}

impl BuildContext<'_> {
    /// Submits a task.
    pub(crate) fn submit(&mut self, task: &Task) -> Outputs {
        if self.build.is_over() {
            return Outputs::NONE;
        }
        self.try_submit(task).unwrap_or(Outputs::NONE)
    }

    fn refuse<T>(&mut self, task: &Task, code: ErrorCode, why: &str) -> Option<T> {
        let number = self.build.ids.next();
        self.build.fail(code, format!("{}: task {number}: {why}", describe(&task.location)));
        None
    }

    fn try_submit(&mut self, task: &Task) -> Option<Outputs> {
        let kernels = self.check(task)?;
        // SAFETY: the header passes as many as it counts.
        let scalars = unsafe { slice(task.scalars, task.scalar_count) };
        self.build.recordings.task(scalars, || describe(&task.location));
        let (scope, own) =
            (self.build.scopes.innermost(), self.build.ids.next_id(&self.build.scopes));
        let mut prepared = PreparedTask::default();
        // SAFETY: the header passes as many as it counts.
        let arguments = unsafe { slice(task.tensors, task.tensor_count) };
        for (at, argument) in arguments.iter().enumerate() {
            self.take(task, &mut prepared, (at, argument), own)?;
        }
        self.explicit(task, &mut prepared)?;
        let frame = self.write_frame(task, &prepared, &kernels, own);
        let Some(frame) = frame else {
            let number = self.build.ids.next();
            let what = format!("the arguments of task {number}");
            self.build.fail_with(Fault::STREAM_HEAP_RING, &task.location, &what);
            return None;
        };
        self.plan_dump(task, arguments, &prepared, own);
        let is_noted = !scope.is_manual && self.build.rule == EdgeRule::Ours;
        let id = self.add(task, &mut prepared, &kernels, frame)?;
        self.log_submission(task, arguments, &prepared, own);
        let number = self.build.ids.next();
        for (buffer, region) in prepared.writes {
            self.build.writers.register(buffer, region, number);
        }
        if let Some(races) = &mut self.build.races {
            for note in races.submitted(number, &describe(&task.location)) {
                self.build.note(|| note);
            }
        }
        self.build.ids.add(id, is_noted);
        self.build.last_id = own;
        let tensors = self.build.outputs.keep(&prepared.made);
        Some(Outputs { task: own, tensors, count: prepared.made.len() as u64 })
    }

    /// Says what of the arguments is to be kept, before the task can run.
    fn plan_dump(
        &self,
        task: &Task,
        arguments: &[TaskArgument],
        prepared: &PreparedTask,
        own: u64,
    ) {
        self.build.shared.plan(own, || {
            // SAFETY: the header passes as many as it counts.
            let scalars = unsafe { slice(task.scalars, task.scalar_count) };
            let kernels = task.kernels.iter().filter(|kernel| **kernel >= 0).count();
            let tags = arguments.iter().map(|argument| argument.tag);
            Plan {
                calls: task.blocks.unsigned_abs() * u32::try_from(kernels).unwrap_or(1),
                tensors: tags.zip(prepared.tensors.iter().copied()).collect(),
                scalars: scalars.to_vec(),
                mask: task.dump,
            }
        });
    }

    fn log_submission(
        &mut self,
        task: &Task,
        arguments: &[TaskArgument],
        prepared: &PreparedTask,
        own: u64,
    ) {
        let is_manual = self.is_manual();
        let Some(run_log) = &mut self.build.run_log else { return };
        // SAFETY: the header passes as many as it counts.
        let named = unsafe { slice(task.dependencies, task.dependency_count) };
        run_log.submitted(
            own,
            NewTask {
                is_manual,
                kernels: task.kernels,
                blocks: task.blocks,
                starts_at_once: starts_at_once(task),
                arguments,
                tensors: &prepared.tensors,
                named,
                location: &task.location,
            },
        );
    }

    /// The func ids of the task's kernels, which are there.
    fn check(&mut self, task: &Task) -> Option<[Option<FuncId>; 3]> {
        if !task.error.is_null() {
            // SAFETY: the header passes a constant of the program.
            let why = unsafe { text_of(task.error) };
            return self.refuse(task, ErrorCode::INVALID_ARGS, &why);
        }
        if task.tensor_count as usize > MAX_TENSORS || task.scalar_count as usize > MAX_SCALARS {
            let why = format!(
                "{} tensors and {} scalars; a task has at most {MAX_TENSORS} and {MAX_SCALARS}",
                task.tensor_count, task.scalar_count
            );
            return self.refuse(task, ErrorCode::INVALID_ARGS, &why);
        }
        let words = task.scalar_words.count_ones();
        if words != 0 && words != task.scalar_count {
            let why = format!("{words} words are scalars, of {} scalars", task.scalar_count);
            return self.refuse(task, ErrorCode::INVALID_ARGS, &why);
        }
        if task.blocks < 1 {
            let why = format!("{} blocks; a task has at least one", task.blocks);
            return self.refuse(task, ErrorCode::INVALID_ARGS, &why);
        }
        let parts =
            i32::try_from(task.kernels.iter().filter(|kernel| **kernel >= 0).count()).unwrap_or(1);
        if task.blocks.saturating_mul(parts) > i16::MAX.into() {
            let why = format!(
                "{} blocks of {parts} kernels; a task has at most {} calls of kernels",
                task.blocks,
                i16::MAX
            );
            return self.refuse(task, ErrorCode::INVALID_ARGS, &why);
        }
        let taken = self.build.limits.as_mut().map(|limits| limits.take(task.dependency_count));
        if let Some(Err((code, why))) = taken {
            if self.build.limits.as_ref().is_some_and(RingLimits::are_enforced) {
                return self.refuse(task, code, &why);
            }
            self.build.limits = None;
            self.build.note(|| {
                format!(
                    "{}: the default rings of the field do not hold this program, which fails there with code -{}: {why}. Give it larger \
                     rings there (ring_task_window, ring_dep_pool), or more scopes",
                    describe(&task.location),
                    code.0
                )
            });
        }
        let mut kernels = [None; 3];
        for (slot, (kernel, number)) in kernels.iter_mut().zip(task.kernels).enumerate() {
            if number < 0 {
                continue;
            }
            let kind = if slot == 0 { CoreKind::AIC } else { CoreKind::AIV };
            match self.build.callable.kernel(number, kind) {
                Ok(_) => *kernel = u16::try_from(number).ok().map(FuncId),
                Err(why) => return self.refuse(task, ErrorCode::INVALID_ARGS, &why),
            }
        }
        Some(kernels)
    }

    /// Takes one argument: its descriptor, and what it makes the task wait for.
    fn take(
        &mut self,
        task: &Task,
        prepared: &mut PreparedTask,
        (at, argument): (usize, &TaskArgument),
        own: u64,
    ) -> Option<()> {
        if argument.what.is_null() {
            return self.refuse(
                task,
                ErrorCode::INVALID_ARGS,
                &format!("argument {at} is a null pointer"),
            );
        }
        if argument.tag == tag::OUTPUT {
            // SAFETY: the header passes this type with this tag.
            let info = unsafe { &*argument.what.cast::<CreateInfo>() };
            let (tensor, view) = self.make(info, own, &task.location, at)?;
            let derives = self.build.rule == EdgeRule::Ours && !self.is_manual();
            if let Some(view) = view.filter(|_| derives && info.manual_dep == 0) {
                prepared.accesses.push((AccessMode::Write, view, tensor));
            }
            prepared.tensors.push(tensor);
            prepared.made.push(tensor);
            return Some(());
        }
        // SAFETY: the header passes a tensor with every other tag.
        let tensor = unsafe { argument.what.cast::<ChipTensor>().read() };
        let number = self.build.ids.next();
        let what = || format!("argument {at} of task {number}");
        let view = self.view_of(&tensor, &task.location, &what).ok()?;
        prepared.tensors.push(tensor);
        if self.is_manual() {
            return Some(());
        }
        let access = match argument.tag {
            tag::INPUT => Some(AccessMode::Read),
            tag::INOUT => Some(AccessMode::Both),
            tag::OUTPUT_EXISTING => Some(AccessMode::Write),
            _ => None,
        };
        let access = access.filter(|_| tensor.manual_dep == 0);
        self.creator(&tensor, prepared, access.is_some());
        let (Some(view), Some(access)) = (view, access) else { return Some(()) };
        if let Some(races) = &mut self.build.races {
            races.touches(&tensor, access);
        }
        match self.build.rule {
            EdgeRule::Ours => prepared.accesses.push((access, view, tensor)),
            EdgeRule::Theirs => self.look(&tensor, access, prepared),
        }
        Some(())
    }

    fn is_manual(&self) -> bool {
        self.build.scopes.innermost().is_manual
    }

    /// The task that made a tensor, unless the engine finds it by the access.
    fn creator(&mut self, tensor: &ChipTensor, prepared: &mut PreparedTask, is_accessed: bool) {
        if let TaskStatus::Alive { id, number, is_noted } = self.build.ids.find(tensor.owner) {
            if let Some(races) = &mut self.build.races {
                races.waits_for(number);
            }
            let is_found = is_noted && is_accessed;
            if !is_found && !prepared.after.contains(&id) {
                prepared.after.push(id);
            }
        }
    }

    /// The writers that the field's rule finds.
    fn look(&mut self, tensor: &ChipTensor, access: AccessMode, prepared: &mut PreparedTask) {
        let region = BufferRegion::of(tensor);
        let build = &mut *self.build;
        let oldest = build.ids.oldest();
        if !matches!(access, AccessMode::Write) {
            let (ids, after) = (&build.ids, &mut prepared.after);
            build.writers.look(
                tensor.address,
                &region,
                matches!(access, AccessMode::Both),
                oldest,
                |number, _| {
                    if let Some(id) = ids.numbered(number).filter(|id| !after.contains(id)) {
                        after.push(id);
                    }
                },
            );
        }
        if !matches!(access, AccessMode::Read) {
            prepared.writes.push((tensor.address, region));
        }
    }

    /// The tasks that the program names.
    fn explicit(&mut self, task: &Task, prepared: &mut PreparedTask) -> Option<()> {
        // SAFETY: the header passes as many as it counts.
        let ids = unsafe { slice(task.dependencies, task.dependency_count) };
        let kinds = if task.dependency_kinds.is_null() { 0 } else { task.dependency_count };
        // SAFETY: as above.
        let kinds = unsafe { slice(task.dependency_kinds, kinds) };
        for (at, raw) in ids.iter().enumerate() {
            if kinds.get(at).is_some_and(|kind| kind & 1 == 0) {
                // The tensors live until their scope ends: there is nothing to retain.
                continue;
            }
            match self.build.ids.find(*raw) {
                TaskStatus::Unknown => {
                    let why = format!("dependency {at} is no task that was submitted before");
                    return self.refuse(task, ErrorCode::INVALID_ARGS, &why);
                }
                TaskStatus::Retired => {}
                TaskStatus::Alive { id, number, .. } => {
                    prepared.after.push(id);
                    if let Some(races) = &mut self.build.races {
                        races.waits_for(number);
                    }
                }
            }
        }
        Some(())
    }

    /// Writes what the kernels read; its address. `None`: the device has no room for it.
    fn write_frame(
        &mut self,
        task: &Task,
        prepared: &PreparedTask,
        kernels: &[Option<FuncId>; 3],
        own: u64,
    ) -> Option<u64> {
        // SAFETY: the header passes as many as it counts.
        let scalars = unsafe { slice(task.scalars, task.scalar_count) };
        let build = &mut *self.build;
        let room = build.frames.take(build.ids.next(), prepared.tensors.len(), scalars.len())?;
        let frame = room.memory;
        let entries = kernels.map(|kernel| kernel.map_or(0, |id| build.callable.entry(id)));
        let starts_at_once = starts_at_once(task);
        let of_a_block = kernels.iter().flatten().count();
        let together = if starts_at_once { task.blocks.unsigned_abs() as usize } else { 1 };
        // `check` has seen that a task has at most 32,767 calls.
        let party = u16::try_from(together * of_a_block).unwrap_or(u16::MAX);
        // `check` has seen that there are at most 32 tensors and 16 scalars; the header keeps slots below 16.
        let small = |count: usize| u8::try_from(count).unwrap_or(u8::MAX);
        let header = TaskFrame {
            entries,
            task: own,
            shared: build.state.cast(),
            file: task.location.file,
            line: task.location.line,
            tensors: small(prepared.tensors.len()),
            scalars: small(scalars.len()),
            block_word: small(1 + prepared.accesses.len()),
            timing_slot: i8::try_from(task.timing_slot).unwrap_or(-1),
            party,
            starts_at_once,
            scalar_words: task.scalar_words,
        };
        // SAFETY: `take` has reserved room for this frame, its tensors and its scalars.
        unsafe { frame.write(header) };
        let tensors = TaskFrame::tensors_of(frame).cast_mut();
        // SAFETY: as above.
        unsafe {
            tensors.copy_from_nonoverlapping(prepared.tensors.as_ptr(), prepared.tensors.len())
        };
        let words = TaskFrame::scalars_of(frame, prepared.tensors.len()).cast_mut();
        // SAFETY: as above.
        unsafe { words.copy_from_nonoverlapping(scalars.as_ptr(), scalars.len()) };
        build.frames.hand_over(room)
    }

    /// Submits the task to the engine.
    fn add(
        &mut self,
        task: &Task,
        prepared: &mut PreparedTask,
        kernels: &[Option<FuncId>; 3],
        frame: u64,
    ) -> Option<pto_host::abi::TaskId> {
        let predicate = self.predicate(task)?;
        let added = self.hand_over(task, prepared, kernels, frame, predicate.as_ref());
        let added = match added {
            Err(Fault::STREAM_OUT_OVERLAP | Fault::STREAM_VIEW_IRREGULAR) => {
                // One access to the whole of each buffer: more edges than need be, and none too few.
                for (access, view, tensor) in &mut prepared.accesses {
                    (*access, *view) =
                        (AccessMode::Both, crate::views::whole(tensor).tagged(view.heap()));
                }
                let mut seen = Vec::new();
                for (access, _, tensor) in &mut prepared.accesses {
                    if seen.contains(&tensor.address) {
                        *access = AccessMode::Read;
                    }
                    seen.push(tensor.address);
                }
                self.hand_over(task, prepared, kernels, frame, predicate.as_ref())
            }
            added => added,
        };
        match added {
            Ok(id) => Some(id),
            Err(fault) => {
                let number = self.build.ids.next();
                self.build.fail_with(fault, &task.location, &format!("task {number}"));
                None
            }
        }
    }

    fn hand_over(
        &mut self,
        task: &Task,
        prepared: &PreparedTask,
        kernels: &[Option<FuncId>; 3],
        frame: u64,
        predicate: Option<&Predicate<'_>>,
    ) -> Result<pto_host::abi::TaskId, Fault> {
        let mut args = [Arg::Scalar(frame); MAX_TENSORS + 1];
        for (arg, (access, view, _)) in args.iter_mut().skip(1).zip(&prepared.accesses) {
            *arg = access.arg(view);
        }
        let args = args.get(..1 + prepared.accesses.len()).unwrap_or(&[]);
        let [cube, vector, second] = *kernels;
        let vectors = [vector.unwrap_or(DUMMY), second.unwrap_or(DUMMY)];
        let extra = usize::from(vector.is_some()) + usize::from(second.is_some());
        let (func_id, kind, mixed) = match (cube, vector) {
            (Some(cube), _) => (cube, CoreKind::AIC, &vectors[..extra]),
            (None, Some(vector)) => (vector, CoreKind::AIV, &vectors[1..extra.max(1)]),
            (None, None) => (DUMMY, self.build.callable.dummy_kind(), &vectors[..0]),
        };
        let mut kernel_thread = TensorTask::new(func_id, kind, args).after(&prepared.after);
        if !mixed.is_empty() {
            kernel_thread = kernel_thread.mix(mixed);
        }
        if task.blocks > 1 {
            kernel_thread = kernel_thread.blocks(task.blocks.unsigned_abs());
            if starts_at_once(task) {
                kernel_thread = kernel_thread.sync_start();
            }
        }
        if let Some(predicate) = predicate {
            kernel_thread = kernel_thread.when(predicate);
        }
        self.stream.submit_tensors(&kernel_thread)
    }

    /// What decides whether the task runs. A task without a kernel never does: it completes when it is ready.
    fn predicate(&mut self, task: &Task) -> Option<Option<Predicate<'static>>> {
        if task.kernels.iter().all(|kernel| *kernel < 0) {
            let zero = TensorView::dense(self.build.zero, ElementType::U32, &[1]);
            return Some(Some(Predicate::new(&zero, &[0], Comparison::NOT_EQUAL, 0)));
        }
        if task.predicate.is_null() {
            return Some(None);
        }
        // SAFETY: not null: the program's tensor.
        let tensor = unsafe { task.predicate.read() };
        let what = || "the predicate's tensor".to_owned();
        let view = self.view_of(&tensor, &task.location, &what).ok()?;
        let indices = task.predicate_indices.get(..task.predicate_ndims as usize);
        let comparison = comparison_of(task.predicate_op);
        let element = crate::wire::element_of(tensor.dtype);
        let (Some(view), Some(indices), Some(comparison), Some(element)) =
            (view, indices, comparison, element)
        else {
            return self.refuse(
                task,
                ErrorCode::INVALID_ARGS,
                "the predicate names no element or no comparison",
            );
        };
        // The element alone, as a signed number of its size.
        let Some(single) = tensor.element(indices) else {
            let why = "the predicate's element is not in its tensor";
            return self.refuse(task, ErrorCode::INVALID_ARGS, why);
        };
        let signed = crate::views::signed(element);
        let single = crate::views::view(&single, &[1], signed).tagged(view.heap());
        let target = clamped(task.predicate_target, element.bytes());
        Some(Some(Predicate::new(&single, &[0], comparison, target)))
    }
}

/// Whether all blocks of a task start at once.
fn starts_at_once(task: &Task) -> bool {
    task.blocks > 1 && task.flags & SYNC_START != 0
}

fn comparison_of(op: u32) -> Option<Comparison> {
    let all = [
        Comparison::EQUAL,
        Comparison::NOT_EQUAL,
        Comparison::GREATER,
        Comparison::LESS,
        Comparison::GREATER_EQUAL,
        Comparison::LESS_EQUAL,
    ];
    all.get((op as usize).checked_sub(1)?).copied()
}

/// The target in the low bits of the word.
#[expect(clippy::cast_sign_loss, reason = "the bits are meant")]
fn clamped(target: i64, bytes: u64) -> u64 {
    let most = if bytes >= 8 { i64::MAX } else { (1 << (8 * bytes - 1)) - 1 };
    target.clamp(-most - 1, most) as u64
}
