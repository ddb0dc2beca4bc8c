//! What can go wrong between programs.

use pto_abi::numbers::Counted;
use pto_workload::plan::RunFault;
use pto_workload::program::{ProgramError, Role, TensorLayout};

use crate::session::{SessionError, StreamId};
use crate::workload::BindingError;

/// An error of stitched programs.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StitchError {
    /// The session refuses the call, or a command failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The program is not one that can run here.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A size or a symbol is not bound, or is not one of the program's.
    #[error("program {program}: {cause}")]
    Binding {
        /// The program.
        program: String,
        /// What is wrong.
        cause: BindingError,
    },
    /// The expansion of a program stopped, or one of its kernels ended with a fault.
    #[error("program {program}: {fault}")]
    Fault {
        /// The program.
        program: String,
        /// The fault, in the words of the workload.
        fault: Box<RunFault>,
    },
    /// The device cannot run tasks of several cores, blocks, a predicate or a priority from a program file.
    #[error(
        "program {program}: task {task} is {shape}, and the firmware of the device {device} has no builder 'workload', which adds such tasks; run it with an \
         image that has it, or build it without that"
    )]
    BlockShapes {
        /// The program.
        program: String,
        /// The number of the first such task.
        task: usize,
        /// What it is beyond one kernel on one core.
        shape: String,
        /// The name of the device.
        device: String,
    },
    /// A tensor is in another layout than the program needs.
    #[error(
        "program {program} needs {tensor} in the layout '{wanted}', and the tensor is in '{found}'; convert it with \
         stream.to_layout(tensor, &program.input_layout(\"{tensor}\")?)"
    )]
    Layout {
        /// The program.
        program: String,
        /// The tensor.
        tensor: String,
        /// The layout that the program needs.
        wanted: Box<TensorLayout>,
        /// The layout of what was given.
        found: Box<TensorLayout>,
    },
    /// A tensor has other elements or extents than the program needs.
    #[error("program {program} needs {tensor} as {wanted}, and the tensor is {found}")]
    Shape {
        /// The program.
        program: String,
        /// The tensor.
        tensor: String,
        /// Element type and extents that the program needs.
        wanted: String,
        /// Those of what was given.
        found: String,
    },
    /// An array of an axis is no dense tensor of type `i32`.
    #[error(
        "program {program} needs the array {array} as i32, side by side, and the tensor is {found}; convert it with stream.to_dtype and stream.to_layout"
    )]
    Array {
        /// The program.
        program: String,
        /// The array.
        array: String,
        /// The tensor that was given.
        found: String,
    },
    /// A tensor that the program needs was not given.
    #[error("program {program} needs {tensor}, which was not given; {how}")]
    Missing {
        /// The program.
        program: String,
        /// The tensor.
        tensor: String,
        /// How it is given.
        how: &'static str,
    },
    /// A tensor was given in a way that its role does not allow.
    #[error("program {program}: {tensor} is {role}, and was {given}; {how}")]
    Given {
        /// The program.
        program: String,
        /// The tensor.
        tensor: String,
        /// What it is to the program.
        role: &'static str,
        /// How it was given.
        given: &'static str,
        /// What to do.
        how: &'static str,
    },
    /// The program has no tensor of this name.
    #[error("program {program} has no tensor {tensor} that can be given or taken; it has {known}")]
    Unknown {
        /// The program.
        program: String,
        /// The name.
        tensor: String,
        /// The names that there are.
        known: String,
    },
    /// A tensor that another stream computes.
    #[error(
        "{what} belongs to {found}, and this is {here}; take it over with stream.take_over(tensor, &other), so that this stream \
         waits for the other one"
    )]
    OtherStream {
        /// What was given.
        what: String,
        /// Its stream.
        found: StreamId,
        /// The stream that was asked.
        here: StreamId,
    },
    /// A tensor or a program of another session.
    #[error("{what} belongs to another session; use one of this session")]
    OtherSession {
        /// What was given.
        what: String,
    },
    /// Elements that are not as many as the tensor has.
    #[error("a tensor {wanted} takes {bytes} bytes, and {found} were given")]
    Elements {
        /// Element type and extents.
        wanted: String,
        /// Bytes that it takes.
        bytes: u64,
        /// Bytes that were given.
        found: u64,
    },
    /// A run on memory of the caller was given too few addresses, or too many.
    #[error(
        "program {program} takes {} from outside, and {} given",
        Counted(*wanted as u64, "tensor"),
        match found {
            1 => "1 address was".to_owned(),
            found => format!("{found} addresses were"),
        }
    )]
    Addresses {
        /// The program.
        program: String,
        /// Tensors that it takes.
        wanted: usize,
        /// Addresses that were given.
        found: usize,
    },
    /// No conversion between these layouts.
    #[error("no conversion from {from} to {to}: {why}")]
    Conversion {
        /// Element type, extents and layout.
        from: String,
        /// What it should become.
        to: String,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// A native kernel of a program was not loaded.
    #[error(
        "program {program} brings kernel {kernel} as machine code, which was not loaded; load the program with `pto program run`, from Python or C, or in Rust with `Stitcher::load_with` and `pto_native::program::kernels`"
    )]
    Native {
        /// The program.
        program: String,
        /// The kernel.
        kernel: String,
    },
    /// A recording cannot become a program.
    #[error("program {program}: task {task} of the recording {what}")]
    Recording {
        /// The program.
        program: String,
        /// The number of the task: a launch, or a block of one.
        task: usize,
        /// What it does, and what to do.
        what: String,
    },
    /// The program is built by a builder program that the device does not have.
    #[error(
        "program {program} is built by builder {builder}, which {device} does not have; open the device with it, or build the program for one of: {known}"
    )]
    Builder {
        /// The program.
        program: String,
        /// The builder.
        builder: String,
        /// The device.
        device: String,
        /// The builders that the device has.
        known: String,
    },
    /// A kernel that a program calls is not in the library of this device.
    #[error(
        "program {program} calls kernel {kernel}, which the library does not have; build the program for this version"
    )]
    Kernel {
        /// The program.
        program: String,
        /// The kernel.
        kernel: String,
    },
}

crate::debug_as_display::debug_as_display!(StitchError);

/// What a role is called in a sentence.
pub(super) const fn role_text(role: Role) -> &'static str {
    match role {
        Role::Input => "an input",
        Role::Output => "an output",
        Role::Updated => "updated in place",
        Role::Temporary => "a temporary",
        Role::Constant => "a constant",
    }
}

impl From<crate::error::Error> for StitchError {
    fn from(error: crate::error::Error) -> Self {
        Self::Session(error.into())
    }
}
