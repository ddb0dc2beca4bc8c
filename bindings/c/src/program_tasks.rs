//! Programs of tasks, with kernels of the library and of one's own.

use std::ffi::c_char;
use std::path::Path;
use std::sync::PoisonError;

use pto_host::abi::CoreKind;
use pto_host::workloads::program::{BlockShape, GraphArgument, GraphTask};
use pto_native::Failure;
use pto_native::stitch::{DescribedTensor, program_of_tasks, with_objects};

use crate::argument::{invalid, text, values};
use crate::error::{answer, answer_to};
use crate::handle;
use crate::program::{OpaqueProgram, opened};

/// A tensor of a program of tasks.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProgramTensorSpec {
    /// Its name.
    pub name: *const c_char,
    /// "input", "output", "updated" or "temporary".
    pub role: *const c_char,
    /// The element type: "f32", "bf16", "i32", ..
    pub element: *const c_char,
    /// The layout: "row-major", "nz", "on-chip, row-major", ..
    pub layout: *const c_char,
    /// The extents.
    pub shape: *const u64,
    /// How many of them: 1 to 5.
    pub rank: u32,
    /// Not used; zero.
    pub reserved: u32,
}

/// An argument of a task.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProgramArgument {
    /// The number of a tensor, or `PTO_PROGRAM_WORD`.
    pub tensor: u32,
    /// Not used; zero.
    pub reserved: u32,
    /// Of a tensor the byte whose address is the argument. Otherwise the word; a float has its bits in the low half.
    pub value: u64,
}

/// In `ProgramArgument::tensor`: the argument is a word.
pub const PTO_PROGRAM_WORD: u32 = u32::MAX;

/// A task of a program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProgramTask {
    /// The name of its kernel.
    pub kernel: *const c_char,
    /// Its arguments.
    pub args: *const ProgramArgument,
    /// The numbers of the tasks that it waits for; each is below its own.
    pub after: *const u32,
    /// How many arguments.
    pub arg_count: u32,
    /// How many tasks it waits for.
    pub after_count: u32,
    /// The cores that its kernel runs on, as in `pto_kernel_register`: 0 AIC, 1 AIV.
    pub kind: u32,
    /// Not used; zero.
    pub reserved: u32,
}

/// Makes a program of tasks. Their kernels are those of the library, and those that `pto_program_set_kernels` adds.
///
/// Fails with NULL_ARGUMENT, INVALID_ARGUMENT, PROGRAM (a tensor cannot be as described, or a task does not fit the tensors). Thread safety: any
/// thread.
///
/// # Safety
/// `name` is null or a C string; `tensors` and `tasks` are null or valid for as many values as their counts say, and so are the pointers in them;
/// `program` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_program_of_tasks(
    name: *const c_char,
    tensors: *const ProgramTensorSpec,
    tensor_count: u32,
    tasks: *const ProgramTask,
    task_count: u32,
    program: *mut *mut OpaqueProgram,
) -> i32 {
    let body = || {
        // SAFETY: the caller vouches for the pointers, here and below.
        let name = unsafe { text(name, "name") }?;
        // SAFETY: as above.
        let tensors = unsafe { values(tensors, tensor_count.into(), "tensors") }?;
        // SAFETY: as above.
        let tasks = unsafe { values(tasks, task_count.into(), "tasks") }?;
        // SAFETY: as above.
        let tensors = tensors.iter().map(|tensor| unsafe { described(tensor) });
        let tensors = tensors.collect::<Result<Vec<_>, Failure>>()?;
        // SAFETY: as above.
        let tasks = tasks.iter().enumerate().map(|(number, task)| unsafe { of_task(number, task) });
        let tasks = tasks.collect::<Result<Vec<_>, Failure>>()?;
        Ok(opened(program_of_tasks(name, &tensors, tasks)?))
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(program, "program", body) }
}

/// # Safety
/// The texts and the extents are null or readable for as long as `'t`.
unsafe fn described<'t>(tensor: &ProgramTensorSpec) -> Result<DescribedTensor<'t>, Failure> {
    check_reserved(tensor.reserved, "tensors.reserved")?;
    // SAFETY: the caller vouches for the pointers, here and below.
    let name = unsafe { text(tensor.name, "tensors.name") }?;
    // SAFETY: as above.
    let role = unsafe { text(tensor.role, "tensors.role") }?;
    // SAFETY: as above.
    let element = unsafe { text(tensor.element, "tensors.element") }?;
    // SAFETY: as above.
    let layout = unsafe { text(tensor.layout, "tensors.layout") }?;
    // SAFETY: as above.
    let shape = unsafe { values(tensor.shape, tensor.rank.into(), "tensors.shape") }?;
    Ok(DescribedTensor { name, role, element, shape, layout })
}

/// # Safety
/// The kernel's name, the arguments and the numbers are null or readable.
unsafe fn of_task(number: usize, task: &ProgramTask) -> Result<GraphTask, Failure> {
    check_reserved(task.reserved, "tasks.reserved")?;
    // SAFETY: the caller vouches for the pointers, here and below.
    let kernel = unsafe { text(task.kernel, "tasks.kernel") }?;
    // SAFETY: as above.
    let args = unsafe { values(task.args, task.arg_count.into(), "tasks.args") }?;
    // SAFETY: as above.
    let after = unsafe { values(task.after, task.after_count.into(), "tasks.after") }?;
    let kind = match task.kind {
        0 => CoreKind::AIC,
        1 => CoreKind::AIV,
        other => {
            return Err(invalid(format!(
                "kind of task {number} is {other}; use 0 (AIC) or 1 (AIV)"
            )));
        }
    };
    Ok(GraphTask {
        kernel: kernel.to_owned(),
        kind,
        args: args.iter().map(argument).collect::<Result<_, _>>()?,
        producers: after.iter().map(|number| *number as usize).collect(),
        block_shape: BlockShape::plain(),
    })
}

fn argument(arg: &ProgramArgument) -> Result<GraphArgument, Failure> {
    check_reserved(arg.reserved, "tasks.args.reserved")?;
    Ok(match arg.tensor {
        PTO_PROGRAM_WORD => GraphArgument::Word(arg.value),
        tensor => GraphArgument::Tensor { tensor: tensor as usize, offset: arg.value },
    })
}

fn check_reserved(found: u32, name: &str) -> Result<(), Failure> {
    match found {
        0 => Ok(()),
        found => Err(invalid(format!("`{name}` is {found}; it has to be zero"))),
    }
}

/// Gives a program of tasks the kernels that shared objects list (pto_kernels.h), one object for each processor; the first one is for this processor.
/// Their code travels in the file.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT (no object; a kernel has the name of one of the library; a task runs one on other
/// cores), LOAD_FAILED, OBJECT_FORMAT, SYMBOL_MISSING; the program is as before then. Thread safety: any thread.
///
/// # Safety
/// `paths` is null or readable for `count` pointers, each null or a C string. The objects are loaded, and run code when they are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_program_set_kernels(
    program: *const OpaqueProgram,
    paths: *const *const c_char,
    count: u32,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointers, here and below.
        let paths = unsafe { values(paths, count.into(), "paths") }?;
        // SAFETY: as above.
        let paths = paths.iter().map(|path| unsafe { text(*path, "paths") });
        let paths = paths.collect::<Result<Vec<_>, Failure>>()?;
        if paths.is_empty() {
            return Err(invalid("`count` is 0; give an object at least"));
        }
        let paths: Vec<_> = paths.into_iter().map(Path::new).collect();
        let program = handle::get(program)?;
        let mut held = program.lock().unwrap_or_else(PoisonError::into_inner);
        *held = with_objects(held.clone(), &paths)?;
        Ok(())
    })
}
