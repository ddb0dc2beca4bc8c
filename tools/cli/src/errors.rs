//! What can go wrong, and the exit code that says so.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pto_abi::runtime::NOBODY;
use pto_abi::{CoreKind, Fault, TaskId};
use pto_host::FaultReport;
use pto_host::fw::ImageError;
use pto_host::group::GroupError;
use pto_host::session::FailureCause;
use pto_host::timeline::Trace;
use pto_host::virtual_time::VirtualReport;
use pto_host::workloads::plan::RunFault;

use serde_json::{Value, json};

use crate::form::Form;
use crate::text::{plain, plain_json};

/// How a command ended, for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; of a run: the result is right.
    Pass = 0,
    /// The run ended, and its result is wrong, or a checker of the virtual machine found a violation; or `pto check` found
    /// something; or a fault that was to be injected did not happen.
    Wrong = 1,
    /// The request cannot be met: an unknown name, a bad value, a bad input file. Nothing ran.
    Usage = 2,
    /// The run ended with a fault of the runtime.
    Fault = 3,
    /// A file could not be read or written, or the program itself failed.
    Internal = 4,
    /// Ctrl-C ended it; what it says is what it had done.
    Interrupted = 130,
}

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
    /// The fault, if that is what ended the run.
    fault: Option<Box<Value>>,
    /// The command that repeats the run.
    replay: Option<String>,
    /// The file with the timeline up to the fault.
    kept_trace: Option<PathBuf>,
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

    /// The run ended with a fault of the runtime.
    pub(crate) fn faulted(message: impl fmt::Display) -> Self {
        Self::new(Exit::Fault, message)
    }

    /// The run ended with the fault in the error of a device, or with another error of the device.
    fn faulted_by(message: impl fmt::Display, cause: &pto_host::Error) -> Self {
        let failure = Self::faulted(message);
        let pto_host::Error::Fault { report, .. } = cause else {
            return Self { fault: cause.fault().map(fault_json).map(Box::new), ..failure };
        };
        Self {
            fault: Some(Box::new(fault_report_json(report))),
            trace: report.trace.clone(),
            virtual_report: report.virtual_report.clone(),
            ..failure
        }
    }

    /// A result is not what it must be.
    pub(crate) fn wrong(message: impl fmt::Display) -> Self {
        Self::new(Exit::Wrong, message)
    }

    /// A file, or the program itself.
    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        Self::new(Exit::Internal, message)
    }

    /// Ctrl-C has ended the command.
    pub(crate) fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted by Ctrl-C")
    }

    fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
            fault: None,
            replay: None,
            kept_trace: None,
            trace: None,
            virtual_report: None,
        }
    }

    /// The command repeats the run.
    pub(crate) fn replayed_by(self, command: String) -> Self {
        Self { replay: Some(command), ..self }
    }

    /// The timeline up to the fault is in this file.
    pub(crate) fn kept_in(self, path: &Path) -> Self {
        Self { kept_trace: Some(path.to_owned()), ..self }
    }

    /// This is the timeline up to the fault.
    pub(crate) fn with_trace(self, trace: Trace) -> Self {
        Self { trace: Some(Box::new(trace)), ..self }
    }

    /// Takes the timeline up to the fault.
    pub(crate) fn take_trace(&mut self) -> Option<Trace> {
        self.trace.take().map(|trace| *trace)
    }

    /// Whether there is a timeline up to the fault.
    pub(crate) fn has_trace(&self) -> bool {
        self.trace.is_some()
    }

    /// What the machine saw in virtual time.
    pub(crate) fn virtual_report(&self) -> Option<&VirtualReport> {
        self.virtual_report.as_deref()
    }

    /// Whether it is a fault of the run.
    pub(crate) fn is_fault(&self) -> bool {
        self.exit == Exit::Fault
    }

    /// Whether tasks wait for each other.
    pub(crate) fn is_circle(&self) -> bool {
        let name = self.fault.as_ref().and_then(|fault| fault["name"].as_str());
        let circles = [Fault::GRAPH_CYCLE, Fault::STALL_DEADLOCK].map(Fault::name);
        name.is_some_and(|name| circles.contains(&name))
    }

    /// What it says.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Adds a sentence.
    pub(crate) fn and(self, sentence: impl fmt::Display) -> Self {
        Self { message: format!("{}\n  {sentence}", self.message), ..self }
    }

    /// Says what went wrong on standard error.
    pub(crate) fn tell(&self) {
        // Where standard error is gone, no message can be shown.
        let _ = writeln!(std::io::stderr().lock(), "error: {}", plain(&self.message));
    }

    /// Says what went wrong, in JSON on standard output as well; the code to exit with.
    pub(crate) fn report(&self, form: Form) -> ExitCode {
        self.tell();
        self.answer(form)
    }

    /// Says what went wrong in JSON on standard output, if that was asked for; the code to exit with.
    fn answer(&self, form: Form) -> ExitCode {
        if form == Form::Json {
            // As above.
            let _ =
                writeln!(std::io::stdout().lock(), "{}", plain_json(&format!("{:#}", self.json())));
        }
        self.exit.into()
    }

    /// For programs: `docs/reference/json.md`.
    fn json(&self) -> Value {
        let hash = self.virtual_report().map(|report| format!("{:016x}", report.trace_hash));
        json!({
            "exit_code": self.exit as u8,
            "error": self.message,
            "fault": self.fault,
            "replay": self.replay,
            "trace_hash": hash,
            "trace": self.kept_trace.as_ref().map(|path| json!({
                "file": path.display().to_string(),
                "error": Value::Null,
            })),
        })
    }
}

/// What clap says of a command line: help and version are answers, everything else is refused.
pub(crate) fn refused_arguments(error: &clap::Error, form: Form) -> ExitCode {
    let text = match std::env::args_os().find(|argument| argument.to_str().is_none()) {
        Some(argument) if error.kind() == clap::error::ErrorKind::InvalidUtf8 => {
            let refused = Failure::usage(format!(
                "the argument '{}' is not UTF-8, and results name what was run; give the file another name, or pass it by standard input and write -",
                argument.to_string_lossy()
            ));
            return refused.report(form);
        }
        _ => error.to_string(),
    };
    let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
    let refused = Failure::usage(text);
    if !error.use_stderr() {
        // Where standard output is gone, no message can be shown.
        let _ = error.print();
        return Exit::Pass.into();
    }
    if plain(text) == text {
        // In colours, where standard error has some.
        let _ = error.print();
    } else {
        refused.tell();
    }
    refused.answer(form)
}

/// A fault without a post-mortem: the host has refused a graph.
fn fault_json(fault: Fault) -> Value {
    json!({
        "code": fault.code(),
        "name": fault.name(),
        "subsystem": fault.subsystem(),
        "sentence": fault.entry().map(|entry| entry.sentence),
        "remedy": fault.entry().map(|entry| entry.remedy),
        "core": Value::Null,
        "core_kind": Value::Null,
        "task": Value::Null,
        "func_id": Value::Null,
        "instance": Value::Null,
        "time_ns": Value::Null,
    })
}

/// A fault of a run, with what its post-mortem names.
fn fault_report_json(report: &FaultReport) -> Value {
    let mut object = fault_json(report.fault);
    let Some(epitaph) = &report.epitaph else { return object };
    let named = |number: u32| (number != NOBODY).then_some(number);
    let task = (epitaph.task != TaskId::NONE).then_some(epitaph.task.slot);
    object["core"] = json!(named(epitaph.core));
    object["core_kind"] = json!(report.core_kind.map(CoreKind::name));
    object["task"] = json!(task);
    object["func_id"] = json!(named(epitaph.func_id));
    object["instance"] = json!(named(epitaph.instance));
    object["time_ns"] = json!(epitaph.time_ns);
    object
}

impl From<pto_host::Error> for Failure {
    fn from(error: pto_host::Error) -> Self {
        use pto_host::Error as E;
        let exit = match &error {
            // A graph that the host refuses is one that the device would refuse.
            E::Fault { .. } | E::Build { .. } | E::NotPublished { .. } | E::Cycle { .. } => {
                Exit::Fault
            }
            E::Image(error) => return of_image(error),
            E::Workers { .. }
            | E::PoolThreads { .. }
            | E::InjectionCore { .. }
            | E::MapGm { .. }
            | E::OutOfMemory { .. }
            | E::SizeOverflow { .. }
            | E::ZeroSize
            | E::Budget { .. }
            | E::Capacity(_)
            | E::ArenaMemory { .. }
            | E::OrchArgs { .. }
            | E::QemuCores { .. }
            | E::QemuGm { .. }
            | E::KernelNotFlashed { .. }
            | E::TracesNothing { .. }
            | E::BuildModeVariable { .. } => Exit::Usage,
            _ => Exit::Internal,
        };
        let failure = Self {
            fault: error.fault().filter(|_| exit == Exit::Fault).map(fault_json).map(Box::new),
            ..Self::new(exit, &error)
        };
        match error {
            E::Fault { report, .. } => Self {
                fault: Some(Box::new(fault_report_json(&report))),
                trace: report.trace,
                virtual_report: report.virtual_report,
                ..failure
            },
            _ => failure,
        }
    }
}

/// The image in this file is refused.
pub(crate) fn refused_image(path: &Path, error: &ImageError) -> Failure {
    match error {
        // It names the file itself.
        ImageError::Read { .. } => Failure::internal(error),
        _ => Failure::usage(format!("'{}' is refused: {error}", path.display())),
    }
}

/// An image that is refused; one that cannot be read is a matter of files.
pub(crate) fn of_image(error: &ImageError) -> Failure {
    match error {
        ImageError::Read { .. } => Failure::internal(error),
        _ => Failure::usage(error),
    }
}

/// A refusal of the request, or a fault of the run.
impl From<pto_host::SessionError> for Failure {
    fn from(error: pto_host::SessionError) -> Self {
        use pto_host::SessionError as E;
        match &error {
            E::Option { .. } | E::Argument { .. } => Self::usage(error),
            E::Device(_) if error.fault().is_none() => Self::usage(error),
            E::Device(cause) => Self::faulted_by(&error, cause),
            E::Failed(failed) | E::Stopped { cause: failed, .. } => match &failed.cause {
                // No run was begun.
                FailureCause::Device(cause)
                    if matches!(**cause, pto_host::Error::TracesNothing { .. }) =>
                {
                    Self::usage(error)
                }
                FailureCause::Device(cause) | FailureCause::Interrupted(cause) => {
                    Self::faulted_by(&error, cause)
                }
                _ => Self::faulted(error),
            },
            _ => Self::faulted(error),
        }
    }
}

impl From<pto_host::stitch::StitchError> for Failure {
    fn from(error: pto_host::stitch::StitchError) -> Self {
        use pto_host::stitch::StitchError as E;
        match error {
            E::Session(error) => error.into(),
            E::Fault { ref fault, .. } => {
                let code = match **fault {
                    RunFault::Expansion { fault, .. } => fault,
                    RunFault::Kernel(_) => Fault::PLAN_KERNEL,
                    RunFault::Deadlock(_) => Fault::PLAN_DEADLOCK,
                };
                Self { fault: Some(Box::new(fault_json(code))), ..Self::faulted(error) }
            }
            other => Self::usage(other),
        }
    }
}

/// The fault of the rank that is nearest to the cause.
impl From<GroupError> for Failure {
    fn from(error: GroupError) -> Self {
        let cause = match &error {
            GroupError::Failed { failures } => failures.first().map(|failure| &failure.error),
            GroupError::Rank { source, .. } => Some(source),
            _ => None,
        };
        match cause {
            Some(cause) => Self::faulted_by(&error, cause),
            None => Self::faulted(&error),
        }
    }
}

impl From<pto_host::fw::StoreError> for Failure {
    fn from(error: pto_host::fw::StoreError) -> Self {
        use pto_host::fw::StoreError as E;
        match error {
            E::Image(error) => of_image(&error),
            E::NothingFlashed { .. } | E::NothingBefore { .. } | E::NoHome => Self::usage(error),
            error => Self::internal(error),
        }
    }
}

impl From<pto_image_build::BuildError> for Failure {
    fn from(error: pto_image_build::BuildError) -> Self {
        match error {
            pto_image_build::BuildError::NoCrate(_)
            | pto_image_build::BuildError::Builder(_)
            | pto_image_build::BuildError::Kernel(_)
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
    use super::{Exit, Failure};

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
