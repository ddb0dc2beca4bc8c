//! What can go wrong with programs, sessions and tensors, for other languages: the same sentences as in Rust, without its calls.

use pto_host::session::{FailureCause, SessionError};
use pto_host::stitch::StitchError;
use pto_host::workloads::program::ProgramError;

use crate::failure::{Failure, FailureKind};

impl From<ProgramError> for Failure {
    fn from(error: ProgramError) -> Self {
        Self::new(FailureKind::PROGRAM, error.to_string())
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let message = error.to_string();
        if let Some(fault) = error.fault() {
            return Self::of_fault(fault, message);
        }
        Self::new(kind_of(&error), message)
    }
}

fn kind_of(error: &SessionError) -> FailureKind {
    match error {
        SessionError::Device(error) => crate::failure::kind_of(error),
        SessionError::Failed(failure) => match &failure.cause {
            FailureCause::Device(error) => crate::failure::kind_of(error),
            _ => FailureKind::COMMAND_FAILED,
        },
        SessionError::Stopped { .. } => FailureKind::STREAM_STOPPED,
        SessionError::Aborted { .. } => FailureKind::STREAM_ABORTED,
        SessionError::TimedOut { .. } | SessionError::EventTimedOut { .. } => {
            FailureKind::TIMED_OUT
        }
        SessionError::OtherSession { .. } => FailureKind::OTHER_SESSION,
        SessionError::Option { .. } | SessionError::Argument { .. } => {
            FailureKind::INVALID_ARGUMENT
        }
        _ => FailureKind::SESSION,
    }
}

impl From<StitchError> for Failure {
    fn from(error: StitchError) -> Self {
        let kind = match error {
            StitchError::Session(error) => return error.into(),
            StitchError::Program(error) => return error.into(),
            StitchError::Layout { program, tensor, wanted, found } => {
                let message = format!(
                    "program {program} needs {tensor} in the layout '{wanted}', and the tensor is in '{found}'"
                );
                return Self::new(FailureKind::TENSOR_LAYOUT, message);
            }
            StitchError::Missing { program, tensor, .. } => {
                let message = format!("program {program} needs {tensor}, which was not given");
                return Self::new(FailureKind::PROGRAM_ARGUMENT, message);
            }
            StitchError::Given { program, tensor, role, .. } => {
                let message = format!("program {program}: {tensor} is {role}, and cannot be given");
                return Self::new(FailureKind::PROGRAM_ARGUMENT, message);
            }
            StitchError::OtherStream { ref what, found, here } => {
                let message = format!("{what} belongs to {found}, and this is {here}");
                return Self::new(FailureKind::OTHER_STREAM, message);
            }
            StitchError::Fault { .. } => FailureKind::PROGRAM_FAULT,
            StitchError::OtherSession { .. } => FailureKind::OTHER_SESSION,
            StitchError::Kernel { .. } | StitchError::Native { .. } => FailureKind::UNKNOWN_KERNEL,
            StitchError::Conversion { .. } => FailureKind::TENSOR_LAYOUT,
            _ => FailureKind::PROGRAM_ARGUMENT,
        };
        Self::new(kind, error.to_string())
    }
}
