//! A recording as a program: what was captured of a stream can be shipped in a file, and run on other tensors.
//!
//! ```text
//! Recording: launches on addresses --the tensors at these addresses--> tasks on tensors: Program
//! ```
//! The library says which arguments of its kernels are addresses. For other kernels it is unknown: a word that lies in one of the
//! tensors is an address, a word that lies elsewhere in the memory of the device is refused, and any other word stays what it is.

use std::ops::Range;

use pto_abi::{CoreKind, GmAddr};
use pto_aicore_kernels::library::{self, LibraryKernel};
use pto_workload::program::{
    BlockShape, GraphArgument, GraphTask, NativeKernels, Program, ProgramBody, TensorDescription,
};

use super::error::StitchError;
use crate::kernels::KernelDescription;
use crate::session::{RecordedTask, Recording};

/// What a recording is read with.
pub(super) struct Setting<'t> {
    /// The tensors and their addresses while it was captured.
    pub(super) tensors: &'t [(TensorDescription, GmAddr)],
    /// The kernels of the device.
    pub(super) registered: &'t [KernelDescription],
    /// The memory of the device.
    pub(super) memory: Range<u64>,
}

/// A kernel of a recording.
#[derive(Clone, Copy)]
enum Called<'k> {
    OfLibrary(&'static LibraryKernel),
    Own(&'k str),
}

/// The program of a recording, with these kernels of its own.
pub(super) fn program(
    name: &str,
    recording: &Recording,
    setting: &Setting<'_>,
    native: Option<NativeKernels>,
) -> Result<Program, StitchError> {
    let task = |(number, task): (usize, &RecordedTask)| {
        let refused =
            |what| StitchError::Recording { program: name.to_owned(), task: number, what };
        let is_transfer = || refused("is a transfer, which programs have none of".to_owned());
        let kind = task.kind.ok_or_else(is_transfer)?;
        let kernel = kernel(task, kind, setting.registered, native.as_ref()).map_err(refused)?;
        let args = task.args.iter().enumerate();
        let args = args.map(|(at, word)| match kernel {
            Called::OfLibrary(kernel) => argument(kernel, at, task, *word, setting.tensors),
            Called::Own(kernel) => argument_of_own(kernel, at, task, *word, setting),
        });
        let kernel = match kernel {
            Called::OfLibrary(kernel) => kernel.name,
            Called::Own(kernel) => kernel,
        };
        Ok(GraphTask {
            kernel: kernel.to_owned(),
            kind,
            args: args.collect::<Result<_, _>>().map_err(refused)?,
            producers: task.after.clone(),
            block_shape: BlockShape::plain(),
        })
    };
    if let Some((task, kind)) = recording.first_command() {
        let what = format!("is {kind}, and a program has launches only");
        return Err(StitchError::Recording { program: name.to_owned(), task, what });
    }
    let tasks = recording.tasks(&[]);
    let tasks = tasks.iter().enumerate().map(task).collect::<Result<_, StitchError>>()?;
    let described = setting.tensors.iter().map(|(tensor, _)| tensor.clone()).collect();
    let program = Program::new(name, ProgramBody::Graph(tasks), described)?;
    Ok(match native {
        Some(native) => program.with_native(native)?,
        None => program,
    })
}

/// The kernel that a task runs.
fn kernel<'k>(
    task: &RecordedTask,
    kind: CoreKind,
    registered: &'k [KernelDescription],
    native: Option<&NativeKernels>,
) -> Result<Called<'k>, String> {
    let found = registered.iter().find(|kernel| kernel.func_id == task.func_id);
    let named = found.map_or("that is not registered any more", |kernel| kernel.name.as_str());
    let own = native.and_then(|native| native.kernel(named));
    if own.is_some_and(|own| own.kind == kind) {
        return Ok(Called::Own(named));
    }
    let of_library = library::by_name(named).filter(|kernel| kernel.kind == kind);
    of_library.map(Called::OfLibrary).ok_or_else(|| {
        format!(
            "runs kernel {named} (func id {}) on {} cores, which is none of the library and none that was given; give the machine code of it, as \
             pto_native::program::native_kernels reads it from a shared object",
            task.func_id, kind
        )
    })
}

/// An argument of a kernel that is not one of the library.
fn argument_of_own(
    kernel: &str,
    at: usize,
    task: &RecordedTask,
    word: u64,
    setting: &Setting<'_>,
) -> Result<GraphArgument, String> {
    let is_context = task.is_block && at + 1 == task.args.len();
    let found = if is_context { None } else { in_tensors(word, setting.tensors) };
    match found {
        Some(argument) => Ok(argument),
        None if !is_context && setting.memory.contains(&word) => Err(format!(
            "has {} as argument {at} of {kernel}, which lies in the memory of the device and in none of the tensors that were given; give the \
             tensor at this address",
            GmAddr(word)
        )),
        None => Ok(GraphArgument::Word(word)),
    }
}

/// The byte of a tensor at this address.
fn in_tensors(word: u64, tensors: &[(TensorDescription, GmAddr)]) -> Option<GraphArgument> {
    tensors.iter().enumerate().find_map(|(tensor, (described, address))| {
        let offset = word.checked_sub(address.0)?;
        (offset < described.bytes()).then_some(GraphArgument::Tensor { tensor, offset })
    })
}

fn argument(
    kernel: &LibraryKernel,
    at: usize,
    task: &RecordedTask,
    word: u64,
    tensors: &[(TensorDescription, GmAddr)],
) -> Result<GraphArgument, String> {
    let is_context = task.is_block && at + 1 == task.args.len();
    // Words after those that the table names may be anything.
    let is_address = kernel.addresses.get(at).copied().unwrap_or(kernel.takes_more);
    if is_context || !is_address {
        return Ok(GraphArgument::Word(word));
    }
    match in_tensors(word, tensors) {
        Some(argument) => Ok(argument),
        None if at >= kernel.addresses.len() => Ok(GraphArgument::Word(word)),
        None => Err(format!(
            "has {} as argument {} of {}, which is in none of the tensors that were given; give the tensor at this address",
            GmAddr(word),
            kernel.args.get(at).unwrap_or(&"?"),
            kernel.name
        )),
    }
}
