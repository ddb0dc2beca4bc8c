//! What can go wrong, and the exit code that says so.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use pto_host::virtual_time::VirtualReport;
use pto_timeline::Trace;

/// How a command ended, for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; of a run: the result is right.
    Pass = 0,
    /// The run ended, and its result is wrong, or a checker of the virtual machine found a violation; or `pto check` found
    /// something.
    Wrong = 1,
    /// The request cannot be met: an unknown name, a bad value, a bad input file. Nothing ran.
    Usage = 2,
    /// The run ended with a fault of the runtime.
    Fault = 3,
    /// A file could not be read or written, or the program itself failed.
    Internal = 4,
}

/// The exit codes, as `--help` shows them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done; of a run: the result is right
  1  the run ended, and its result is wrong (in virtual time: or a checker found a violation);
     of a check: something is wrong with the program
  2  an unknown name, a bad value, a bad input file; nothing ran
  3  the run ended with a fault of the runtime
  4  a file could not be read or written, or an internal error";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command cannot go on.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
    as_json: bool,
    /// The timeline up to the fault, if the run was recorded.
    trace: Option<Box<Trace>>,
    /// What the machine saw, if the run was one in virtual time.
    virtual_report: Option<Box<VirtualReport>>,
}

impl Failure {
    /// The request cannot be met.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A result is not what it must be.
    pub(crate) fn wrong(message: impl fmt::Display) -> Self {
        Self::new(Exit::Wrong, message)
    }

    /// A file, or the program itself.
    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        Self::new(Exit::Internal, message)
    }

    fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
            as_json: false,
            trace: None,
            virtual_report: None,
        }
    }

    /// Says it on standard output as well, as an object, for a program that reads `--json`.
    pub(crate) fn also_as_json(self) -> Self {
        Self { as_json: true, ..self }
    }

    /// Takes the timeline up to the fault.
    pub(crate) fn take_trace(&mut self) -> Option<Trace> {
        self.trace.take().map(|trace| *trace)
    }

    /// What the machine saw in virtual time.
    pub(crate) fn virtual_report(&self) -> Option<&VirtualReport> {
        self.virtual_report.as_deref()
    }

    /// Whether it is a fault of the run.
    pub(crate) fn is_fault(&self) -> bool {
        self.exit == Exit::Fault
    }

    /// What it says.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Adds a sentence.
    pub(crate) fn and(self, sentence: impl fmt::Display) -> Self {
        Self { message: format!("{}\n  {sentence}", self.message), ..self }
    }

    /// Says what went wrong; the code to exit with.
    pub(crate) fn report(&self) -> ExitCode {
        // Where standard error or output are gone, there is nobody to tell.
        let _ = writeln!(std::io::stderr().lock(), "error: {}", self.message);
        if self.as_json {
            let object = serde_json::json!({ "error": self.message, "exit_code": self.exit as u8 });
            let _ = writeln!(std::io::stdout().lock(), "{object:#}");
        }
        self.exit.into()
    }
}

impl From<pto_host::Error> for Failure {
    fn from(error: pto_host::Error) -> Self {
        use pto_host::Error as E;
        let exit = match &error {
            // A graph that the host refuses is one that the device would refuse.
            E::Fault { .. } | E::Build { .. } | E::NotPublished { .. } | E::Cycle { .. } => {
                Exit::Fault
            }
            E::Workers { .. }
            | E::MapGm { .. }
            | E::OutOfMemory { .. }
            | E::SizeOverflow { .. }
            | E::ZeroSize
            | E::Budget { .. }
            | E::Capacity(_)
            | E::ArenaMemory { .. }
            | E::OrchArgs { .. }
            | E::VirtCores { .. }
            | E::VirtGm { .. }
            | E::Image(_)
            | E::KernelNotFlashed { .. }
            | E::RecordsNothing { .. }
            | E::BuildModeVariable { .. } => Exit::Usage,
            _ => Exit::Internal,
        };
        let failure = Self::new(exit, &error);
        match error {
            E::Fault { report, .. } => {
                Self { trace: report.trace, virtual_report: report.virtual_report, ..failure }
            }
            _ => failure,
        }
    }
}

impl From<pto_host::fw::StoreError> for Failure {
    fn from(error: pto_host::fw::StoreError) -> Self {
        use pto_host::fw::StoreError as E;
        match error {
            E::Image(_) | E::NothingFlashed { .. } | E::NothingBefore { .. } | E::NoHome => {
                Self::usage(error)
            }
            error => Self::internal(error),
        }
    }
}

impl From<pto_image_build::BuildError> for Failure {
    fn from(error: pto_image_build::BuildError) -> Self {
        match error {
            pto_image_build::BuildError::NoCrate(_)
            | pto_image_build::BuildError::Manifest { .. } => Self::usage(error),
            error => Self::internal(error),
        }
    }
}

impl From<pto_examples::host::Error> for Failure {
    fn from(error: pto_examples::host::Error) -> Self {
        match error {
            pto_examples::host::Error::Device(error) => error.into(),
            error => Self::usage(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EXIT_CODES, Exit, Failure};

    #[test]
    fn the_help_names_every_code() {
        for exit in [Exit::Pass, Exit::Wrong, Exit::Usage, Exit::Fault, Exit::Internal] {
            assert!(EXIT_CODES.contains(&format!("\n  {}  ", exit as u8)), "{exit:?}");
        }
    }

    #[test]
    fn a_device_error_inside_an_example_error_keeps_its_code() {
        let fault = pto_host::abi::Fault::BUILD_NO_CORE_OF_KIND;
        let refused = pto_host::Error::Build { fault, what: String::new() };
        let failure = Failure::from(pto_examples::host::Error::Device(refused));
        assert_eq!(failure.exit, Exit::Fault);
        let invalid = pto_examples::host::Error::Invalid("no".into());
        assert_eq!(Failure::from(invalid).exit, Exit::Usage);
    }
}
