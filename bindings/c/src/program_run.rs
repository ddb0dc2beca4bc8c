//! Runs of programs.

use std::ffi::c_char;

use pto_native::stitch::{Number, RunRequest};

use crate::argument::{invalid, text, values};
use crate::error::answer;
use crate::handle;
use crate::program::OpaqueLoadedProgram;
use crate::program_stream::OpaqueProgramStream;
use crate::tensor::OpaqueTensor;

/// A tensor for a run.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProgramTensor {
    /// The name that the program has for it.
    pub name: *const c_char,
    /// The tensor.
    pub tensor: *mut OpaqueTensor,
    /// 0: it is lent. The program reads it, updates it or writes it, as its role says. 1: it is given for good; its handles are released all the
    /// same. A tensor that is given and updated is among the outputs.
    pub is_given: u32,
    /// Not used; zero.
    pub reserved: u32,
}

/// A number for a size or a symbol of a program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProgramNumber {
    /// Its name.
    pub name: *const c_char,
    /// 0: `integer` counts. 1: `real` counts.
    pub kind: u32,
    /// For symbols of type f32.
    pub real: f32,
    /// For sizes of axes and integer symbols.
    pub integer: u64,
}

/// An output of a run.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProgramOutput {
    /// The name that the program has for it: the caller's.
    pub name: *const c_char,
    /// The tensor: the run's. To be released.
    pub tensor: *mut OpaqueTensor,
}

/// Runs a program, and returns at once. Outputs may be given to the next run before they are computed; outputs that are not asked for are let go.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, PROGRAM_ARGUMENT (a tensor or a number is missing, unknown, or of another shape), TENSOR_LAYOUT (the message
/// has both layouts), TENSOR_MOVED, OTHER_STREAM, OTHER_SESSION, STREAM_STOPPED, OUT_OF_MEMORY; then nothing ran, and nothing was taken. What the program
/// itself ends with is reported by `pto_program_stream_synchronize`. Thread safety: any thread; runs of one stream are in the order of the calls.
///
/// # Safety
/// `tensors`, `numbers` and `outputs` are null or valid for as many values as their counts say, and `outputs` writable; their texts are null or C
/// strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_program_run(
    stream: *const OpaqueProgramStream,
    program: *const OpaqueLoadedProgram,
    tensors: *const ProgramTensor,
    tensor_count: u32,
    numbers: *const ProgramNumber,
    number_count: u32,
    outputs: *mut ProgramOutput,
    output_count: u32,
) -> i32 {
    answer(|| {
        let (stream, program) = (handle::get(stream)?, handle::get(program)?);
        // SAFETY: the caller vouches for the pointers, here and below.
        let tensors = unsafe { values(tensors, tensor_count.into(), "tensors") }?;
        // SAFETY: as above.
        let numbers = unsafe { values(numbers, number_count.into(), "numbers") }?;
        // SAFETY: as above.
        let asked = unsafe { values(outputs.cast_const(), output_count.into(), "outputs") }?;
        let mut request = RunRequest::default();
        for one in tensors {
            // SAFETY: as above.
            let name = unsafe { text(one.name, "tensors.name") }?;
            let tensor = handle::get(one.tensor)?;
            match one.is_given {
                0 => request.lend(name, tensor),
                1 => request.give(name, tensor),
                other => {
                    return Err(invalid(format!("is_given of {name} is {other}; use 0 or 1")));
                }
            }
        }
        for one in numbers {
            // SAFETY: as above.
            let name = unsafe { text(one.name, "numbers.name") }?;
            request.number(
                name,
                match one.kind {
                    0 => Number::Integer(one.integer),
                    1 => Number::Real(one.real),
                    other => return Err(invalid(format!("kind of {name} is {other}; use 0 or 1"))),
                },
            );
        }
        // SAFETY: as above.
        let name_of = |one: &ProgramOutput| unsafe { text(one.name, "outputs.name") };
        let names: Vec<&str> = asked.iter().map(name_of).collect::<Result<_, _>>()?;
        request.check_outputs(program.program(), &names)?;
        let mut results = request.run(&stream, &program)?;
        for (number, name) in names.iter().enumerate() {
            let index = results.iter().position(|(known, _)| known == name);
            let opened = index.map(|index| results.swap_remove(index).1);
            let opened = opened.map(handle::open);
            // SAFETY: within the outputs, which are as many as the names.
            let output = unsafe { outputs.add(number) };
            // SAFETY: the caller says that it is writable, and no reference to it is left here.
            unsafe { (*output).tensor = opened.unwrap_or(std::ptr::null_mut()) };
        }
        Ok(())
    })
}
