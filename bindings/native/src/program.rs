//! The kernels of a program file that are not those of the library: native ones, and operators.

use std::collections::HashMap;
use std::env::consts::ARCH;
use std::sync::{Mutex, OnceLock, PoisonError};

use pto_host::Kernel;
use pto_host::workloads::program::{
    NativeKernel, NativeKernels, NativeObject, Program, ProgramError,
};
use pto_operators::{COST_WORD, OperatorKernel};
use sha2::{Digest as _, Sha256};

use crate::failure::{Failure, FailureKind};
use crate::kernel_table::{self, ListedKernel};

/// The kernels of a program for `Stitcher::load_with`: its native ones for this processor, and the operators that its tasks call; none of a
/// program that has neither. An object is loaded once in a process, and stays. Its code is trusted, as any that a process loads.
///
/// # Errors
/// `INVALID_ARGUMENT`: the program has no code for this processor, or its object lists other kernels than the program says; a task calls
/// an operator on tensors that do not fit it; those of [`kernel_table::read`].
pub fn kernels(program: &Program) -> Result<Vec<Kernel>, Failure> {
    let operators = pto_operators::kernels(program)
        .map_err(|error| Failure::new(FailureKind::INVALID_ARGUMENT, error.to_string()))?;
    let operator = |kernel: OperatorKernel| {
        Kernel::from_fn(kernel.name, kernel.kind, kernel.entry).with_cost_word(COST_WORD)
    };
    let mut kernels = native(program)?;
    kernels.extend(operators.into_iter().map(operator));
    Ok(kernels)
}

/// The native kernels.
fn native(program: &Program) -> Result<Vec<Kernel>, Failure> {
    let Some(native) = program.native() else { return Ok(Vec::new()) };
    let object = native.object(program.name(), ARCH).map_err(|error| refused(&error))?;
    let shown = format!("{ARCH} object of program {}", program.name());
    let listed = loaded(&object.code, &shown)?;
    let of = |wanted: &NativeKernel| {
        let is_wanted =
            |found: &&Kernel| found.name() == wanted.name && found.kind() == wanted.kind;
        listed.iter().find(is_wanted).cloned().ok_or_else(|| {
            let NativeKernel { name, kind } = wanted;
            let message = format!(
                "the {shown} has no kernel {name} for {kind} cores, although the program lists it; build the program again"
            );
            Failure::new(FailureKind::INVALID_ARGUMENT, message)
        })
    };
    native.kernels().iter().map(of).collect()
}

/// The kernels of an object; the same content is loaded once.
fn loaded(code: &[u8], shown: &str) -> Result<Vec<Kernel>, Failure> {
    static LOADED: OnceLock<Mutex<HashMap<[u8; 32], Vec<Kernel>>>> = OnceLock::new();
    let known = LOADED.get_or_init(Mutex::default);
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let hash: [u8; 32] = Sha256::digest(code).into();
    if let Some(kernels) = known.get(&hash) {
        return Ok(kernels.clone());
    }
    let kernels = kernel_table::of_bytes(code, shown)?;
    let kernels: Vec<_> = kernels.into_iter().map(|listed| listed.kernel).collect();
    known.insert(hash, kernels.clone());
    Ok(kernels)
}

/// A program with these kernels of its own; `objects` are those of [`native_kernels`].
///
/// # Errors
/// `INVALID_ARGUMENT`: a task runs a kernel on cores of another kind; those of [`native_kernels`].
pub fn with_kernels(
    program: Program,
    listed: &[ListedKernel],
    objects: Vec<(String, Vec<u8>)>,
) -> Result<Program, Failure> {
    let native = native_kernels(listed, objects)?;
    program.with_native(native).map_err(|error| refused(&error))
}

/// Kernels for a program file; `objects` are the shared objects that list them, one for each processor, each with what messages call it.
///
/// # Errors
/// `INVALID_ARGUMENT`: a name is that of a kernel of the library, or two objects are for one processor; those of [`kernel_table::processor`].
pub fn native_kernels(
    listed: &[ListedKernel],
    objects: Vec<(String, Vec<u8>)>,
) -> Result<NativeKernels, Failure> {
    let kernel = |listed: &ListedKernel| NativeKernel {
        name: listed.kernel.name().to_owned(),
        kind: listed.kernel.kind(),
    };
    let kernels: Vec<_> = listed.iter().map(kernel).collect();
    let of_library = kernels.iter().find(|own| Kernel::library(&own.name).is_ok());
    if let Some(NativeKernel { name, .. }) = of_library {
        let message = format!(
            "kernel {name} has the name of a kernel of the library; a program calls kernels by name, so choose another one"
        );
        return Err(Failure::new(FailureKind::INVALID_ARGUMENT, message));
    }
    let object = |(shown, code): (String, Vec<u8>)| {
        let processor = kernel_table::processor(&code, &shown)?.to_owned();
        Ok(NativeObject { processor, code })
    };
    let objects = objects.into_iter().map(object).collect::<Result<_, Failure>>()?;
    NativeKernels::new(kernels, objects).map_err(|error| refused(&error))
}

fn refused(error: &ProgramError) -> Failure {
    Failure::new(FailureKind::INVALID_ARGUMENT, error.to_string())
}
