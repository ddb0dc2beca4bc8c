//! Tensors that the runtime makes, and single elements that a program reads and writes.

use pto_host::abi::{Fault, TaskId};
use pto_host::graph::{Arg, Comparison, ElementType, Predicate, TensorTask, TensorView};

use crate::build::{Seat, describe};
use crate::codes::Code;
use crate::diary::NewTask;
use crate::loaded::DUMMY;
use crate::rule::Part;
use crate::scopes::Known;
use crate::wire::{Argument, ChipTensor, CreateInfo, Outputs, Place, element_of, tag};

impl Seat<'_> {
    /// A tensor on the heap of the innermost scope, which `owner` makes.
    pub(crate) fn make(
        &mut self,
        info: &CreateInfo,
        owner: u64,
        place: &Place,
        at: usize,
    ) -> Option<(ChipTensor, Option<TensorView<'static>>)> {
        let shape = usize::try_from(info.ndims).ok().and_then(|ndims| info.shapes.get(..ndims));
        let (Some(shape), Some(element)) = (shape, element_of(info.dtype)) else {
            let detail = format!(
                "{}: output {at} has {} dimensions and the data type {}: at most 5, and a DataType",
                describe(place),
                info.ndims,
                info.dtype
            );
            self.build.fail(Code::INVALID_ARGS, detail);
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
                    place,
                    &format!("output {at} of {} bytes", tensor.bytes),
                );
                return None;
            }
        };
        tensor.address = view.base().0;
        if info.has_initial == 1 {
            fill(&tensor, info.initial, element.bytes());
        }
        Some((tensor, Some(view)))
    }

    /// Tensors without a task.
    pub(crate) fn alloc(&mut self, infos: &[Argument], place: &Place) -> Outputs {
        if self.build.is_over() {
            return Outputs::NONE;
        }
        let owner = self.build.ids.made_id(&self.build.scopes);
        let mut made = Vec::new();
        for (at, info) in infos.iter().enumerate() {
            if info.tag != tag::OUTPUT || info.what.is_null() {
                let detail = format!(
                    "{}: alloc_tensors: argument {at} is no TensorCreateInfo",
                    describe(place)
                );
                self.build.fail(Code::INVALID_ARGS, detail);
                return Outputs::NONE;
            }
            // SAFETY: the header passes this type with this tag.
            let info = unsafe { &*info.what.cast::<CreateInfo>() };
            let Some((tensor, _)) = self.make(info, owner, place, at) else { return Outputs::NONE };
            made.push(tensor);
        }
        let is_manual = self.build.scopes.innermost().is_manual;
        if let Some(diary) = &mut self.build.diary {
            let (kernels, blocks, named) = ([-1; 3], 1, &[][..]);
            let (arguments, tensors) = (infos, made.as_slice());
            diary.submitted(
                owner,
                NewTask {
                    is_manual,
                    kernels,
                    blocks,
                    starts_at_once: false,
                    arguments,
                    tensors,
                    named,
                    place,
                },
            );
        }
        let tensors = self.build.outputs.keep(&made);
        Outputs { task: owner, tensors, count: made.len() as u64 }
    }

    /// Reads an element, when what writes it has completed; 0 after an error.
    pub(crate) fn get(&mut self, tensor: &ChipTensor, indices: &[u32], place: &Place) -> u64 {
        let Some(view) = self.element(tensor, indices, place, "get_tensor_data") else { return 0 };
        if self.settle_for(tensor, false, place).is_none() {
            return 0;
        }
        match self.stream.get(&view, indices) {
            Ok(word) => word,
            // The engine has waited, and the memory is the process's own: a region, or memory of a worker.
            Err(Fault::BUILD_GM_RANGE) => read_own(tensor, indices),
            Err(fault) => {
                self.build.fail_with(fault, place, "get_tensor_data");
                0
            }
        }
    }

    /// Writes an element, when nothing reads or writes it any more.
    pub(crate) fn set(&mut self, tensor: &ChipTensor, indices: &[u32], value: u64, place: &Place) {
        let Some(view) = self.element(tensor, indices, place, "set_tensor_data") else { return };
        if self.settle_for(tensor, true, place).is_none() {
            return;
        }
        match self.stream.set(&view, indices, value) {
            Ok(()) => {}
            Err(Fault::BUILD_GM_RANGE) => write_own(tensor, indices, value),
            Err(fault) => self.build.fail_with(fault, place, "set_tensor_data"),
        }
    }

    fn element(
        &mut self,
        tensor: &ChipTensor,
        indices: &[u32],
        place: &Place,
        call: &str,
    ) -> Option<TensorView<'static>> {
        if self.build.is_over() {
            return None;
        }
        let view = self.view_of(tensor, place, &|| format!("the tensor of {call}")).ok()?;
        let is_inside = |view: &TensorView<'_>| {
            let shape = view.shape();
            shape.len() == indices.len()
                && indices.iter().zip(shape).all(|(at, extent)| at < extent)
        };
        let view = view.filter(is_inside);
        if view.is_none() {
            let detail = format!(
                "{}: {call}: element {indices:?} is not in a tensor of shape {:?}",
                describe(place),
                tensor.shape().unwrap_or(&[])
            );
            self.build.fail(Code::INVALID_ARGS, detail);
        }
        view
    }

    /// Waits for the tasks that the engine's map does not know: those of manual scopes, and all under the field's rule. `writes`:
    /// those that read the tensor as well, which are not known, so that the wait is for all of them.
    fn settle_for(&mut self, tensor: &ChipTensor, writes: bool, place: &Place) -> Option<()> {
        let build = &mut *self.build;
        let mut after = Vec::new();
        if writes {
            after.extend(build.ids.not_noted());
        } else {
            if let Known::Alive { id, is_noted: false, .. } = build.ids.find(tensor.owner) {
                after.push(id);
            }
            let (ids, oldest) = (&build.ids, build.ids.oldest());
            build.writers.look(tensor.address, &Part::of(tensor), false, oldest, |number, _| {
                after.extend(ids.numbered(number));
            });
        }
        if after.is_empty() {
            return Some(());
        }
        self.wait_for(&after)
            .map_err(|fault| self.build.fail_with(fault, place, "the wait for an element"))
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

/// An element of a tensor in the process's own memory, and its bytes.
fn own_element(tensor: &ChipTensor, indices: &[u32]) -> (*mut u8, usize) {
    let bytes = element_of(tensor.dtype).map_or(1, ElementType::bytes);
    let sides = indices.iter().zip(tensor.strides);
    let at: u64 = sides.map(|(at, stride)| u64::from(*at) * u64::from(stride)).sum();
    let address = tensor.address + (tensor.start_offset + at) * bytes;
    let place = std::ptr::with_exposed_provenance_mut(crate::wire::pointer_word(address));
    (place, usize::try_from(bytes).unwrap_or(1).min(8))
}

/// Reads an element, by bytes: nothing says that it is aligned.
fn read_own(tensor: &ChipTensor, indices: &[u32]) -> u64 {
    let (place, bytes) = own_element(tensor, indices);
    let mut word = [0; 8];
    for (at, byte) in word.iter_mut().enumerate().take(bytes) {
        // SAFETY: the program says that the tensor is there, as it does for its kernels, and `element` has found the index inside.
        *byte = unsafe { place.wrapping_add(at).read_volatile() };
    }
    u64::from_le_bytes(word)
}

/// Writes an element.
fn write_own(tensor: &ChipTensor, indices: &[u32], value: u64) {
    let (place, bytes) = own_element(tensor, indices);
    for (at, byte) in value.to_le_bytes().into_iter().enumerate().take(bytes) {
        // SAFETY: as `read_own`; nothing reads or writes the tensor any more.
        unsafe { place.wrapping_add(at).write_volatile(byte) };
    }
}

/// Writes the same element everywhere in a dense tensor that nobody else knows yet.
fn fill(tensor: &ChipTensor, bits: u64, element: u64) {
    let bytes = bits.to_le_bytes();
    let element = usize::try_from(element).unwrap_or(1).clamp(1, 8);
    let (from, _) = bytes.split_at(element);
    let place =
        std::ptr::with_exposed_provenance_mut::<u8>(crate::wire::pointer_word(tensor.address));
    let len = usize::try_from(tensor.bytes).unwrap_or(0);
    // SAFETY: the heap has just given out this memory of the device, which is memory of this process, to this tensor alone.
    let memory = unsafe { std::slice::from_raw_parts_mut(place, len) };
    memory.chunks_exact_mut(element).for_each(|chunk| chunk.copy_from_slice(from));
}
