//! The kernel that executes tile kernels: one task of an expanded plan.
//!
//! The words are those of [`pto_graph::plan::task`]. The core takes a slot of the scratch memory, accepts the kernel's bytes unless
//! the slot has the kernel already, and lets the [tile machine](crate::tile) execute it on views of the tensors. The first fault of a run is
//! written into the [epitaph]; every later tile kernel of the run does nothing.

mod scratch;
mod shared;

use core::cell::Cell;

use pto_abi::sync::{AtomicU64, Ordering};
use pto_graph::plan::layout::form;
use pto_graph::plan::{epitaph, task};

use self::scratch::{AcceptedKernel, Scratch};
use self::shared::shared_word;
use crate::args::{load, size, store};
use crate::tile::element::{Element, bits_of};
use crate::tile::{Call, DType, FaultCause, Kernel, ParamKind, TileFault, TileView};

/// What a kernel has at most, of tensors as of scalars.
const MOST: usize = crate::tile::limits::PARAMS;

/// Executes the task of these words.
///
/// # Safety
/// The words are those of a task as [`pto_graph::plan`] writes them. Code, epitaph, scratch memory, descriptors and the tensors that
/// the descriptors name are mapped for as long as the task runs. No other task writes what this one touches meanwhile: its
/// tensors are those that it was submitted with.
pub unsafe fn run(words: u64) {
    // SAFETY: the caller keeps the contract.
    unsafe {
        run_by(words, |loaded, call, frame| {
            let ran = loaded.machine.run(&loaded.kernel, call, frame);
            ran.map_err(|fault| TaskFailure::fault(&loaded.kernel, &fault))
        });
    }
}

/// Executes the task of these words, whose kernel has its body elsewhere: `body` gets the kernel's parameters and what they are called with, and gives the
/// cycles that the kernel takes on the `v9` clock.
///
/// # Safety
/// As [`run`].
pub unsafe fn run_body(
    words: u64,
    body: impl FnOnce(&Kernel, &Call<'_>) -> Result<u64, FaultCause>,
) {
    // SAFETY: the caller keeps the contract.
    unsafe {
        run_by(words, |loaded, call, _| body(&loaded.kernel, call).map_err(TaskFailure::early));
    }
}

/// # Safety
/// As [`run`].
unsafe fn run_by(
    words: u64,
    body: impl FnOnce(&AcceptedKernel, &Call<'_>, &mut [u64]) -> Result<u64, TaskFailure>,
) {
    // SAFETY: the caller keeps the contract, for each word of the head.
    let word = |at: usize| unsafe { load::<u64>(words, at) };
    let epitaph = word(task::EPITAPH);
    let kernel = || task::kernel_number(word(task::CODE_BYTES)) as u64;
    // SAFETY: the epitaph is there, aligned, and its state is reached by atomics only.
    let state = unsafe { shared_word(epitaph, epitaph::STATE) };
    // Relaxed: a kernel that misses the fault of another one does work that is not used.
    if state.load(Ordering::Relaxed) != epitaph::FREE {
        return;
    }
    // SAFETY: the caller keeps the contract: the scratch memory is there.
    let slot = unsafe { Scratch::take(word(task::SCRATCH), words) };
    let Some(mut slot) = slot else {
        let ended = TaskFailure::early(FaultCause::Scratch { needed: 1, found: 0 });
        // SAFETY: the epitaph is there.
        return unsafe { write_epitaph(epitaph, state, kernel(), ended) };
    };
    let (code, bytes) = (word(task::CODE), task::code_bytes(word(task::CODE_BYTES)));
    // SAFETY: the caller keeps the contract: the code is there, and it does not change while the program is bound.
    let loaded = unsafe { slot.load(code, bytes) };
    let result = match loaded {
        Some((loaded, frame)) => {
            // SAFETY: the caller keeps the contract: the words after the head are those of the kernel's parameters.
            unsafe { with_operands(&loaded.kernel, words, |call| body(loaded, call, frame)) }
        }
        // Bytes that are no kernel were one on the host, and have been changed since.
        None => Err(TaskFailure::early(FaultCause::Broken)),
    };
    if let Ok(cycles) = result {
        slot.add_cycles(cycles);
    }
    drop(slot);
    if let Err(ended) = result {
        // SAFETY: the epitaph is there.
        unsafe { write_epitaph(epitaph, state, kernel(), ended) }
    }
}

/// Why a task did not come to its end.
#[derive(Clone, Copy)]
struct TaskFailure {
    cause: FaultCause,
    instruction: Option<u16>,
    param: Option<usize>,
}

impl TaskFailure {
    /// Before the first instruction.
    const fn early(cause: FaultCause) -> Self {
        Self { cause, instruction: None, param: None }
    }

    fn fault(kernel: &Kernel, fault: &TileFault) -> Self {
        let index_of = |name| kernel.params().iter().position(|param| param.name == name);
        Self {
            cause: fault.cause,
            instruction: fault.instruction,
            param: fault.param.and_then(index_of),
        }
    }
}

/// Calls `body` with what the words say.
///
/// # Safety
/// As [`run`]: the words are those of a task of this kernel.
unsafe fn with_operands<R>(kernel: &Kernel, words: u64, body: impl FnOnce(&Call<'_>) -> R) -> R {
    // SAFETY: the caller keeps the contract.
    let word = |at: usize| unsafe { load::<u64>(words, at) };
    let (descriptors, forms) = (word(task::DESCRIPTORS), word(task::FORMS));
    let mut tensors: heapless::Vec<TileView<'_>, MOST> = heapless::Vec::new();
    let mut scalars: heapless::Vec<u64, MOST> = heapless::Vec::new();
    let mut at = task::PARAMS;
    for (number, param) in kernel.params().iter().enumerate() {
        match param.kind {
            ParamKind::Tensor { .. } => {
                // SAFETY: the caller keeps the contract: these are a tensor's words.
                let view = unsafe { view(word(at + 1), word(at + 2), descriptors) };
                // There is room for as many as a kernel has.
                let _ = tensors.push(view);
                at += task::TENSOR_WORDS;
            }
            ParamKind::Scalar(dtype) => {
                let form = forms >> (2 * number) & 3;
                let _ = scalars.push(element_bits(dtype, form, word(at)));
                at += 1;
            }
        }
    }
    body(&Call { tensors: &tensors, scalars: &scalars })
}

/// A tile of a tensor.
///
/// # Safety
/// The tensor's descriptor is among the descriptors, and its memory is mapped as long as `'a`.
unsafe fn view<'a>(first: u64, sides: u64, descriptors: u64) -> TileView<'a> {
    let sides = task::unpack_sides(sides);
    let descriptor = usize::from(sides.tensor) * task::descriptor::WORDS;
    // SAFETY: the caller promises the descriptor.
    let word = |at: usize| unsafe { load::<u64>(descriptors, descriptor + at) };
    let (base, bytes) = (word(task::descriptor::BASE), word(task::descriptor::BYTES));
    let stride = |dim: Option<u8>| {
        dim.map_or(0, |dim| word(task::descriptor::STRIDES + usize::from(dim)).cast_signed())
    };
    let memory = core::ptr::with_exposed_provenance::<Cell<u8>>(size(base));
    // SAFETY: the caller promises the memory. It is read and written through cells only, and of its elements this core touches
    // those of its task only.
    let memory = unsafe { core::slice::from_raw_parts(memory, size(bytes)) };
    TileView::new(memory, first.cast_signed(), sides.dims.map(stride), sides.extents)
}

/// The bits of an element, from a word of this form.
fn element_bits(dtype: DType, form: u64, word: u64) -> u64 {
    match form {
        form::SIGNED => bits_of(dtype, word.cast_signed()),
        form::UNSIGNED => bits_of(dtype, word),
        form::F32 => bits_of(dtype, <f32 as Element>::from_bits(word)),
        _ => word,
    }
}

/// Writes why a task ended, unless another one has done so.
///
/// # Safety
/// The epitaph is there.
#[cold]
unsafe fn write_epitaph(epitaph: u64, state: &AtomicU64, kernel: u64, ended: TaskFailure) {
    // Relaxed: the core that has taken the epitaph writes it alone, and the host reads it when the run has ended.
    let taken =
        state.compare_exchange(epitaph::FREE, epitaph::TAKEN, Ordering::Relaxed, Ordering::Relaxed);
    if taken.is_err() {
        return;
    }
    let (number, said) = ended.cause.to_words();
    let instruction = ended.instruction.map_or(0, |instruction| u64::from(instruction) + 1) << 32;
    let operand = ended.param.map_or(0, |param| param as u64 + 1) << 48;
    let said = (epitaph::CAUSE_WORDS..).zip(said);
    let words = [(epitaph::KERNEL, kernel | instruction | operand), (epitaph::CAUSE, number)];
    for (at, value) in words.into_iter().chain(said) {
        // SAFETY: the caller promises the epitaph; the word is written by the one that has taken it.
        unsafe { store(epitaph, at, value) }
    }
    // Release: pairs with the Acquire load in `FaultLine::epitaph_is_sealed`.
    state.store(epitaph::WRITTEN, Ordering::Release);
}
