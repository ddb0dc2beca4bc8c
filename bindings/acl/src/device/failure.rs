//! Maps errors of a session to codes of the interface.

use pto_host::SessionError;
use pto_host::session::{CommandFailure, FailureCause};
use pto_host::stitch::StitchError;

use crate::common::codes;
use crate::common::refusal::Refusal;

/// Precedes the code in the message of a function of the host that fails on purpose.
const MARK: char = '\u{1}';

/// Lets the command of a stream fail with `refusal`: the next synchronise gives it.
pub(crate) fn fail_command(refusal: &Refusal) -> ! {
    let text = format!("{MARK}{} {}", refusal.code, refusal.text);
    // Without the hook: nothing has gone wrong in this library.
    std::panic::resume_unwind(Box::new(text))
}

impl From<SessionError> for Refusal {
    fn from(error: SessionError) -> Self {
        if let SessionError::Failed(failure) | SessionError::Stopped { cause: failure, .. } = &error
        {
            return of_command(failure);
        }
        let code = match &error {
            SessionError::Device(error) => of_device(error),
            SessionError::Aborted { .. } => codes::STREAM_ABORTED,
            SessionError::TimedOut { .. } => codes::STREAM_TIMEOUT,
            SessionError::EventTimedOut { .. } => codes::EVENT_TIMEOUT,
            SessionError::Stuck { .. } => codes::WAIT_TIMEOUT,
            SessionError::TooManyStreams => codes::NO_STREAMS,
            SessionError::OtherSession { .. } => codes::OTHER_CONTEXT,
            SessionError::RingFull { .. } | SessionError::Thread { .. } => codes::NO_RESOURCE,
            SessionError::Argument { .. } | SessionError::Option { .. } => codes::BAD_VALUE,
            _ => codes::INTERNAL,
        };
        Self::new(code, error.to_string())
    }
}

impl From<pto_host::Error> for Refusal {
    fn from(error: pto_host::Error) -> Self {
        Self::new(of_device(&error), error.to_string())
    }
}

impl From<StitchError> for Refusal {
    fn from(error: StitchError) -> Self {
        match error {
            StitchError::Session(error) => error.into(),
            StitchError::Fault { .. } => Self::new(codes::AICORE_EXCEPTION, error.to_string()),
            _ => Self::value(error.to_string()),
        }
    }
}

impl From<pto_native::Failure> for Refusal {
    fn from(failure: pto_native::Failure) -> Self {
        Self::new(codes::INVALID_FILE, failure.to_string())
    }
}

fn of_device(error: &pto_host::Error) -> i32 {
    match error {
        pto_host::Error::OutOfMemory { .. } | pto_host::Error::MapGm { .. } => codes::OUT_OF_MEMORY,
        _ if error.fault().is_some() => codes::AICPU_EXCEPTION,
        _ => codes::BAD_VALUE,
    }
}

/// The code of a command that failed.
fn of_command(failure: &CommandFailure) -> Refusal {
    if let FailureCause::HostFunction(text) = &failure.cause
        && let Some(own) = text.strip_prefix(MARK)
        && let Some((code, text)) = own.split_once(' ')
    {
        return Refusal::new(code.parse().unwrap_or(codes::INTERNAL), text);
    }
    let code = match &failure.cause {
        FailureCause::Device(_) if is_timeout(failure) => codes::AICORE_TIMEOUT,
        FailureCause::Device(_) | FailureCause::Interrupted(_) => codes::AICORE_EXCEPTION,
        FailureCause::Deadlock(_) | FailureCause::TimedOut(_) => codes::WAIT_TIMEOUT,
        FailureCause::Memory(_) => codes::BAD_VALUE,
        _ => codes::INTERNAL,
    };
    Refusal::new(code, failure.to_string())
}

fn is_timeout(failure: &CommandFailure) -> bool {
    let text = failure.to_string();
    text.contains("STALL") || text.contains("TIMEOUT")
}
