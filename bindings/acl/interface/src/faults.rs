//! Faults that a user asks for, as text: `FUNCTION:N:CODE` lets a call fail, and `STRIKE:N` lets a command of a stream fail.

use std::fmt;
use std::str::FromStr;

use crate::functions::{AclFunction, all, nearest};

/// A fault that strikes a command of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// A kernel takes too long.
    AicoreTimeout,
    /// A kernel raises an exception.
    AicoreException,
    /// What starts kernels on the device takes too long.
    AicpuTimeout,
    /// What starts kernels on the device raises an exception.
    AicpuException,
    /// The command never ends, and no later command of its stream begins.
    StuckStream,
    /// The command fails, and the device does nothing more before a reset by force.
    PoisonedDevice,
}

impl Strike {
    const ALL: [Self; 6] = [
        Self::AicoreTimeout,
        Self::AicoreException,
        Self::AicpuTimeout,
        Self::AicpuException,
        Self::StuckStream,
        Self::PoisonedDevice,
    ];

    /// What users call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AicoreTimeout => "aicore-timeout",
            Self::AicoreException => "aicore-exception",
            Self::AicpuTimeout => "aicpu-timeout",
            Self::AicpuException => "aicpu-exception",
            Self::StuckStream => "stuck-stream",
            Self::PoisonedDevice => "poisoned-device",
        }
    }

    /// Whether it strikes kernels and models alone; the others strike every command.
    #[must_use]
    pub const fn needs_cores(self) -> bool {
        !matches!(self, Self::StuckStream | Self::PoisonedDevice)
    }
}

/// A fault that a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The N-th call of a function fails.
    Call {
        /// The name of the function.
        function: &'static str,
        /// Which call of it, from 1 on.
        number: u64,
        /// What it fails with.
        code: i32,
    },
    /// The N-th command that the strike can strike is struck.
    Command {
        /// What happens to the command.
        strike: Strike,
        /// Which command of the process, from 1 on.
        number: u64,
    },
}

/// A text that asks for no fault that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsound(String);

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsound {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { function, number, code } => write!(f, "{function}:{number}:{code}"),
            Self::Command { strike, number } => write!(f, "{}:{number}", strike.name()),
        }
    }
}

impl FromStr for Fault {
    type Err = Unsound;

    fn from_str(text: &str) -> Result<Self, Unsound> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            [function, number, code] => {
                let function = function_named(text, function)?;
                Ok(Self::Call {
                    function,
                    number: number_of(text, number)?,
                    code: code_of(text, code)?,
                })
            }
            [strike, number] => {
                let strike = strike_named(text, strike)?;
                Ok(Self::Command { strike, number: number_of(text, number)? })
            }
            _ => Err(Unsound(format!("\"{text}\" is neither FUNCTION:N:CODE nor FAULT:N"))),
        }
    }
}

/// The faults of a list with commas.
///
/// # Errors
/// The first one that there is not.
pub fn list(text: &str) -> Result<Vec<Fault>, Unsound> {
    text.split(',').filter(|part| !part.is_empty()).map(str::parse).collect()
}

fn function_named(text: &str, name: &str) -> Result<&'static str, Unsound> {
    let Some(function) = AclFunction::named(name) else {
        let near = nearest(name, all().map(|function| function.name));
        return Err(Unsound(format!("\"{text}\": there is no function {name}; {near}")));
    };
    match function.why_it_never_fails() {
        Some(why) => {
            Err(Unsound(format!("\"{text}\": {name} never fails: {why}; name another function")))
        }
        None => Ok(function.name),
    }
}

fn strike_named(text: &str, name: &str) -> Result<Strike, Unsound> {
    Strike::ALL.into_iter().find(|strike| strike.name() == name).ok_or_else(|| {
        if AclFunction::named(name).is_some() {
            return Unsound(format!("\"{text}\" has no code; write {name}:N:CODE"));
        }
        let near = nearest(name, Strike::ALL.into_iter().map(Strike::name));
        let all = Strike::ALL.map(Strike::name).join(", ");
        Unsound(format!("\"{text}\": there is no fault {name} of a command ({all}); {near}"))
    })
}

fn number_of(text: &str, number: &str) -> Result<u64, Unsound> {
    number.parse().ok().filter(|number| *number > 0).ok_or_else(|| {
        Unsound(format!(
            "\"{text}\": \"{number}\" is no number of a call or a command; count from 1"
        ))
    })
}

fn code_of(text: &str, code: &str) -> Result<i32, Unsound> {
    code.parse().ok().filter(|code| *code != 0).ok_or_else(|| {
        Unsound(format!("\"{text}\": \"{code}\" is no error code; write a number that is not 0"))
    })
}

#[cfg(test)]
mod tests {
    use super::{Fault, Strike, list};

    #[test]
    fn a_fault_is_what_it_was_written_as() {
        let texts = [
            "aclrtMalloc:3:207001",
            "aclmdlCreateDesc:1:-1",
            "aicpu-timeout:2",
            "ptoAclLaunch:1:7",
        ];
        for text in texts {
            assert_eq!(text.parse::<Fault>().map(|fault| fault.to_string()).as_deref(), Ok(text));
        }
        for strike in Strike::ALL {
            let fault = Fault::Command { strike, number: 5 };
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        assert_eq!(list("").map(|faults| faults.len()), Ok(0));
        assert_eq!(list("aclrtFree:1:5,stuck-stream:1").map(|faults| faults.len()), Ok(2));
    }

    #[test]
    fn invalid_faults_are_refused_with_what_to_do() {
        let cases = [
            ("aclrtMaloc:1:5", "no function aclrtMaloc; the nearest names are aclrtMalloc"),
            ("aclGetRecentErrMsg:1:5", "never fails: it returns the errors of other calls"),
            ("aclrtMalloc:0:5", "\"0\" is no number"),
            ("aclrtMalloc:x:5", "\"x\" is no number"),
            ("aclrtMalloc:1:0", "\"0\" is no error code"),
            ("aclrtMalloc:1:99999999999", "is no error code"),
            ("aclrtMalloc:1", "has no code; write aclrtMalloc:N:CODE"),
            ("aicore-timout:1", "the nearest names are aicore-timeout"),
            ("stuck-stream:0", "\"0\" is no number"),
            ("stuck-stream", "neither FUNCTION:N:CODE nor FAULT:N"),
            ("aclrtFree:1:5:6", "neither FUNCTION:N:CODE nor FAULT:N"),
        ];
        for (text, part) in cases {
            let said = text.parse::<Fault>().map_err(|error| error.to_string());
            assert!(said.as_ref().is_err_and(|said| said.contains(part)), "{text}: {said:?}");
            assert!(list(&format!("aclrtFree:1:5,{text}")).is_err(), "{text}");
        }
    }
}
