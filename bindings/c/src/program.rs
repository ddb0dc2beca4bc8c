//! Programs: read from files, made of texts, written to files, loaded onto a device.

use std::ffi::{c_char, c_void};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pto_host::abi::numbers::Counted;
use pto_host::whole_file::write_whole;
use pto_host::workloads::program::{Program, Role};
use pto_native::stitch::{Choices, load};
use pto_native::{Failure, FailureKind};

use crate::argument::{invalid, text, values};
use crate::error::{answer, answer_to};
use crate::handle;
use crate::session::OpaqueSession;
use crate::tensor::{Layout, TensorDescription, described, layout_of};

/// A program: what a file `.ptop` holds. Made by `pto_program_read`, `pto_program_of_text` or `pto_program_of_tasks`, destroyed by `pto_program_destroy`.
#[derive(Debug)]
pub struct OpaqueProgram;

/// A program in the memory of a device. Made by `pto_program_load`, let go by `pto_loaded_program_release`.
#[derive(Debug)]
pub struct OpaqueLoadedProgram;

pub(crate) fn opened(program: Program) -> *mut OpaqueProgram {
    handle::open(Arc::new(Mutex::new(program)))
}

/// Reads a program file. Nothing in it is trusted: what does not fit is refused, with what was found and what is wanted.
///
/// Fails with NULL_ARGUMENT, PROGRAM. Thread safety: any thread.
///
/// # Safety
/// `path` is null or a C string; `program` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_program_read(
    path: *const c_char,
    program: *mut *mut OpaqueProgram,
) -> i32 {
    let body = || {
        // SAFETY: the caller vouches for the pointers, here and below.
        let path = unsafe { text(path, "path") }?;
        let file = std::fs::read(path).map_err(|error| in_file(path, &error))?;
        let read = Program::from_bytes(&file).map_err(|error| in_file(path, &error))?;
        Ok(opened(read))
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(program, "program", body) }
}

fn in_file(path: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(FailureKind::PROGRAM, format!("'{path}': {error}"))
}

/// Makes a program of the text of a workload (`workload NAME { .. }`). Its tensors are row-major on the device, and are inputs, outputs or updated
/// as its tasks use them.
///
/// Fails with NULL_ARGUMENT, PROGRAM. Thread safety: any thread.
///
/// # Safety
/// `workload` is null or a C string; `program` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_program_of_text(
    workload: *const c_char,
    program: *mut *mut OpaqueProgram,
) -> i32 {
    let body = || {
        // SAFETY: the caller vouches for the pointers, here and below.
        let workload = unsafe { text(workload, "workload") }?;
        Ok(opened(Choices::default().program_of_text(workload)?))
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(program, "program", body) }
}

/// Destroys a program. Loaded ones stay.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_program_destroy(program: *mut OpaqueProgram) -> i32 {
    answer(|| handle::close(program))
}

fn changed(
    program: *const OpaqueProgram,
    change: impl FnOnce(Program) -> Result<Program, Failure>,
) -> Result<(), Failure> {
    let program = handle::get(program)?;
    let mut held = program.lock().unwrap_or_else(PoisonError::into_inner);
    *held = change(held.clone())?;
    Ok(())
}

/// Chooses the role of a tensor that the program writes: "output", "updated" or "temporary".
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, PROGRAM; the program is as before then. Thread safety: any thread.
///
/// # Safety
/// `tensor` and `role` are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_program_set_role(
    program: *const OpaqueProgram,
    tensor: *const c_char,
    role: *const c_char,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointers, here and below.
        let name = unsafe { text(tensor, "tensor") }?;
        // SAFETY: as above.
        let role = unsafe { text(role, "role") }?;
        let known = Role::from_name(role).ok_or_else(|| {
            invalid(format!("'{role}' is no role; use output, updated or temporary"))
        })?;
        changed(program, |program| Ok(program.with_role(name, known)?))
    })
}

/// Chooses the layout that the program needs of a tensor: "row-major", "column-major", "nz:500x300", "on-chip, row-major".
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, PROGRAM; the program is as before then. Thread safety: any thread.
///
/// # Safety
/// `tensor` and `layout` are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_program_set_layout(
    program: *const OpaqueProgram,
    tensor: *const c_char,
    layout: *const c_char,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointers, here and below.
        let name = unsafe { text(tensor, "tensor") }?;
        // SAFETY: as above.
        let layout = unsafe { text(layout, "layout") }?;
        changed(program, |program| Ok(program.with_layout_text(name, layout)?))
    })
}

/// Makes an input a constant with these elements, which travel in the file.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, PROGRAM; the program is as before then. Thread safety: any thread.
///
/// # Safety
/// `tensor` is null or a C string; `elements` is null or readable for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_program_set_constant(
    program: *const OpaqueProgram,
    tensor: *const c_char,
    elements: *const c_void,
    bytes: u64,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointers, here and below.
        let name = unsafe { text(tensor, "tensor") }?;
        // SAFETY: as above.
        let elements = unsafe { values(elements.cast::<u8>(), bytes, "elements") }?;
        changed(program, |program| Ok(program.with_constant(name, elements.to_vec())?))
    })
}

/// Writes a program file, and replaces one that is there. If it cannot be written, that one stays as it was.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, PROGRAM (the file cannot be written). Thread safety: any thread.
///
/// # Safety
/// `path` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_program_save(
    program: *const OpaqueProgram,
    path: *const c_char,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointer.
        let path = unsafe { text(path, "path") }?;
        let program = handle::get(program)?;
        let file = program.lock().unwrap_or_else(PoisonError::into_inner).to_bytes();
        let written = write_whole(Path::new(path), |to| to.write_all(&file));
        written.map_err(|error| in_file(path, &error))
    })
}

/// Describes the tensor with this number; numbers count from 0, and the first one that is too large is INVALID_ARGUMENT.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT. Thread safety: any thread.
///
/// # Safety
/// `tensor` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_program_tensor(
    program: *const OpaqueProgram,
    number: u32,
    tensor: *mut TensorDescription,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(tensor, "tensor", || {
            let program = handle::get(program)?;
            let program = program.lock().unwrap_or_else(PoisonError::into_inner);
            let count = program.tensors().len();
            let found =
                usize::try_from(number).ok().and_then(|number| program.tensors().get(number));
            let found = found.ok_or_else(|| {
                let count = Counted(count as u64, "tensor");
                invalid(format!("number is {number}, and the program has {count}"))
            })?;
            let value = described(
                (&found.name, found.role.name()),
                (found.dtype, &found.shape),
                &found.layout.to_string(),
                found.bytes(),
            );
            Ok(value)
        })
    }
}

/// The layout that a loaded program needs of a tensor.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, PROGRAM. Thread safety: any thread.
///
/// # Safety
/// `tensor` is null or a C string; `layout` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_loaded_program_layout(
    program: *const OpaqueLoadedProgram,
    tensor: *const c_char,
    layout: *mut Layout,
) -> i32 {
    let body = || {
        // SAFETY: the caller vouches for the pointers, here and below.
        let name = unsafe { text(tensor, "tensor") }?;
        let program = handle::get(program)?;
        Ok(layout_of(&program.input_layout(name)?.to_string()))
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(layout, "layout", body) }
}

/// Puts a program and its constants into the memory of the device of a session.
///
/// Fails with INVALID_HANDLE, PROGRAM (another target), UNKNOWN_KERNEL, OUT_OF_MEMORY. Thread safety: any thread.
///
/// # Safety
/// `loaded` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_program_load(
    session: *const OpaqueSession,
    program: *const OpaqueProgram,
    loaded: *mut *mut OpaqueLoadedProgram,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(loaded, "loaded", || {
            let (session, program) = (handle::get(session)?, handle::get(program)?);
            let program = program.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Ok(handle::open(load(&session, program)?))
        })
    }
}

/// Lets a loaded program go; its memory is free when its runs are over.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_loaded_program_release(program: *mut OpaqueLoadedProgram) -> i32 {
    answer(|| handle::close(program))
}
