//! Tensors that the runtime makes, and single elements that a program reads and writes.

use pto_host::DeviceMemory;
use pto_host::abi::{Fault, GmAddr, TaskId};
use pto_host::graph::{Arg, Comparison, ElementType, Predicate, TensorTask, TensorView};

use crate::build::{BuildContext, describe};
use crate::codes::ErrorCode;
use crate::loaded::DUMMY;
use crate::memory::NoMemory;
use crate::rule::BufferRegion;
use crate::run_log::NewTask;
use crate::scopes::TaskStatus;
use crate::wire::{ChipTensor, CreateInfo, Outputs, SourceLocation, TaskArgument, element_of, tag};

impl BuildContext<'_> {
    /// A tensor on the heap of the innermost scope, which `owner` makes.
    pub(crate) fn make(
        &mut self,
        info: &CreateInfo,
        owner: u64,
        location: &SourceLocation,
        at: usize,
    ) -> Option<(ChipTensor, Option<TensorView<'static>>)> {
        let shape = usize::try_from(info.ndims).ok().and_then(|ndims| info.shapes.get(..ndims));
        let (Some(shape), Some(element)) = (shape, element_of(info.dtype)) else {
            let detail = format!(
                "{}: output {at} has {} dimensions and the data type {}: at most 5, and a DataType",
                describe(location),
                info.ndims,
                info.dtype
            );
            self.build.fail(ErrorCode::INVALID_ARGS, detail);
            return None;
        };
        let mut tensor = ChipTensor::dense(0, info.dtype, shape);
        (tensor.owner, tensor.manual_dep) = (owner, info.manual_dep);
        if tensor.is_empty() {
            return Some((tensor, None));
        }
        let scope = self.build.scopes.innermost();
        let view = match self.stream.alloc(element, shape) {
            Ok(view) => view.tagged(scope.tag),
            Err(fault) => {
                self.build.fail_with(
                    fault,
                    location,
                    &format!("output {at} of {} bytes", tensor.bytes),
                );
                return None;
            }
        };
        tensor.address = view.base().0;
        if info.has_initial == 1 {
            let filled =
                fill(self.build.listed_on.as_ref(), &tensor, info.initial, element.bytes());
            if let Err(fault) = filled {
                let what = format!("the initial value of output {at}");
                self.build.fail_with(fault, location, &what);
                return None;
            }
        }
        Some((tensor, Some(view)))
    }

    /// Tensors without a task.
    pub(crate) fn alloc(&mut self, infos: &[TaskArgument], location: &SourceLocation) -> Outputs {
        if self.build.is_over() {
            return Outputs::NONE;
        }
        let owner = self.build.ids.made_id(&self.build.scopes);
        let mut made = Vec::new();
        for (at, info) in infos.iter().enumerate() {
            if info.tag != tag::OUTPUT || info.what.is_null() {
                let detail = format!(
                    "{}: alloc_tensors: argument {at} is no TensorCreateInfo",
                    describe(location)
                );
                self.build.fail(ErrorCode::INVALID_ARGS, detail);
                return Outputs::NONE;
            }
            // SAFETY: the header passes this type with this tag.
            let info = unsafe { &*info.what.cast::<CreateInfo>() };
            let Some((tensor, _)) = self.make(info, owner, location, at) else {
                return Outputs::NONE;
            };
            made.push(tensor);
        }
        let is_manual = self.build.scopes.innermost().is_manual;
        if let Some(run_log) = &mut self.build.run_log {
            let (kernels, blocks, named) = ([-1; 3], 1, &[][..]);
            let (arguments, tensors) = (infos, made.as_slice());
            run_log.submitted(
                owner,
                NewTask {
                    is_manual,
                    kernels,
                    blocks,
                    starts_at_once: false,
                    arguments,
                    tensors,
                    named,
                    location,
                },
            );
        }
        let tensors = self.build.outputs.keep(&made);
        Outputs { task: owner, tensors, count: made.len() as u64 }
    }

    /// Reads an element, when what writes it has completed; 0 after an error.
    pub(crate) fn get(
        &mut self,
        tensor: &ChipTensor,
        indices: &[u32],
        location: &SourceLocation,
    ) -> u64 {
        let call = "get_tensor_data";
        let Some((one, view)) = self.element(tensor, indices, location, call) else { return 0 };
        if self.settle_for(tensor, false, location).is_none() {
            return 0;
        }
        match self.stream.get(&view, &[0]) {
            Ok(word) => word,
            // The engine has waited, and the memory is the process's own: a region, or memory of a worker.
            Err(Fault::BUILD_GM_RANGE) => {
                let (address, bytes) = own_element(&one);
                let mut word = [0; 8];
                let read = crate::memory::read(address, word.get_mut(..bytes).unwrap_or_default());
                self.check_memory(read, indices, location, call);
                u64::from_le_bytes(word)
            }
            Err(fault) => {
                self.build.fail_with(fault, location, call);
                0
            }
        }
    }

    /// Writes an element, when nothing reads or writes it any more.
    pub(crate) fn set(
        &mut self,
        tensor: &ChipTensor,
        indices: &[u32],
        value: u64,
        location: &SourceLocation,
    ) {
        let call = "set_tensor_data";
        let Some((one, view)) = self.element(tensor, indices, location, call) else { return };
        if self.settle_for(tensor, true, location).is_none() {
            return;
        }
        match self.stream.set(&view, &[0], value) {
            Ok(()) => {}
            Err(Fault::BUILD_GM_RANGE) => {
                let (address, bytes) = own_element(&one);
                let word = value.to_le_bytes();
                let written = crate::memory::write(address, word.get(..bytes).unwrap_or_default());
                self.check_memory(written, indices, location, call);
            }
            Err(fault) => self.build.fail_with(fault, location, call),
        }
    }

    fn check_memory(
        &mut self,
        used: Result<(), NoMemory>,
        indices: &[u32],
        location: &SourceLocation,
        call: &str,
    ) {
        if let Err(none) = used {
            let detail = format!("{}: {call}: element {indices:?}: {none}", describe(location));
            self.build.fail(ErrorCode::INVALID_ARGS, detail);
        }
    }

    /// An element as a tensor, and its view. An error has been left where there is none.
    fn element(
        &mut self,
        tensor: &ChipTensor,
        indices: &[u32],
        location: &SourceLocation,
        call: &str,
    ) -> Option<(ChipTensor, TensorView<'static>)> {
        if self.build.is_over() {
            return None;
        }
        let view = self.view_of(tensor, location, &|| format!("the tensor of {call}")).ok()?;
        let one = tensor.element(indices).zip(element_of(tensor.dtype)).zip(view);
        let Some(((one, element), whole)) = one else {
            let detail = format!(
                "{}: {call}: element {indices:?} is not in a tensor of shape {:?} in a buffer of {} bytes",
                describe(location),
                tensor.shape().unwrap_or(&[]),
                tensor.bytes
            );
            self.build.fail(ErrorCode::INVALID_ARGS, detail);
            return None;
        };
        Some((one, crate::views::view(&one, &[1], element).tagged(whole.heap())))
    }

    /// Waits for the tasks that the engine's map does not know: those of manual scopes, and all under the field's rule. `writes`:
    /// those that read the tensor as well, which are not known, so that the wait is for all of them.
    fn settle_for(
        &mut self,
        tensor: &ChipTensor,
        writes: bool,
        location: &SourceLocation,
    ) -> Option<()> {
        let build = &mut *self.build;
        let mut after = Vec::new();
        if writes {
            after.extend(build.ids.not_noted());
        } else {
            if let TaskStatus::Alive { id, is_noted: false, .. } = build.ids.find(tensor.owner) {
                after.push(id);
            }
            let (ids, oldest) = (&build.ids, build.ids.oldest());
            build.writers.look(
                tensor.address,
                &BufferRegion::of(tensor),
                false,
                oldest,
                |number, _| {
                    after.extend(ids.numbered(number));
                },
            );
        }
        if after.is_empty() {
            return Some(());
        }
        self.wait_for(&after)
            .map_err(|fault| self.build.fail_with(fault, location, "the wait for an element"))
            .ok()
    }

    /// Waits for tasks: a task without a kernel waits for them, and writes the word that is then read.
    fn wait_for(&mut self, tasks: &[TaskId]) -> Result<(), Fault> {
        let mut rest = tasks;
        let mut joined = None;
        let word = TensorView::dense(self.build.zero.offset(32), ElementType::U32, &[1]);
        let never = Predicate::new(&word, &[0], Comparison::NOT_EQUAL, 0);
        while !rest.is_empty() {
            // A task has a limited number of producers: the joins form a chain.
            let (some, others) = rest.split_at(rest.len().min(64));
            let after: Vec<_> = some.iter().copied().chain(joined).collect();
            let args = [Arg::Scalar(0), Arg::Out(&word)];
            let kind = self.build.callable.dummy_kind();
            let join = TensorTask::new(DUMMY, kind, &args).after(&after).when(&never);
            let id = self.stream.submit_tensors(&join)?;
            let number = self.build.ids.next();
            if let Some(races) = &mut self.build.races {
                races.submitted(number, "a wait of the runtime");
            }
            self.build.ids.add(id, true);
            (rest, joined) = (others, Some(id));
        }
        self.stream.get(&word, &[0]).map(drop)
    }
}

/// Where an element is that is a tensor, in the process's own memory, and its bytes.
fn own_element(one: &ChipTensor) -> (u64, usize) {
    let bytes = element_of(one.dtype).map_or(1, ElementType::bytes);
    // It is in the buffer, which may be said to go beyond 64 bits.
    let address = one.address.wrapping_add(one.start_offset.wrapping_mul(bytes));
    (address, usize::try_from(bytes).unwrap_or(1).min(8))
}

/// Writes the same element everywhere in a dense tensor that no task uses yet; `device` has it, or this process.
fn fill(
    device: Option<&DeviceMemory>,
    tensor: &ChipTensor,
    bits: u64,
    element: u64,
) -> Result<(), Fault> {
    let bytes = bits.to_le_bytes();
    let element = usize::try_from(element).unwrap_or(1).clamp(1, 8);
    let (from, _) = bytes.split_at(element);
    let len = usize::try_from(tensor.bytes).unwrap_or(0);
    if let Some(device) = device {
        let elements = from.repeat(len / element);
        let copied = device.copy_to_device(GmAddr(tensor.address), &elements);
        return copied.map_err(|_| Fault::BUILD_GM_RANGE);
    }
    let elements =
        std::ptr::with_exposed_provenance_mut::<u8>(crate::wire::pointer_word(tensor.address));
    // SAFETY: the heap has just given out this memory of the device, which is memory of this process, to this tensor alone.
    let memory = unsafe { std::slice::from_raw_parts_mut(elements, len) };
    memory.chunks_exact_mut(element).for_each(|chunk| chunk.copy_from_slice(from));
    Ok(())
}
