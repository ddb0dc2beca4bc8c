//! What can go wrong on the way to a device: which step, which call, what its code means, what to do.

use std::path::PathBuf;

use super::codes;
use super::library::Library;

/// An error of the device `a2a3`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum A2a3Error {
    /// A library of the vendor's cannot be loaded.
    #[error(
        "{library} of CANN cannot be loaded. Tried: {}. Install CANN and the driver, or set ASCEND_HOME_PATH to the folder \
         that has lib64/{library}", .tried.join("; ")
    )]
    MissingLibrary {
        /// The library.
        library: Library,
        /// Each path that was tried, and the loader's message.
        tried: Vec<String>,
    },

    /// A library that lacks functions.
    #[error(
        "{} has no {}{}. Use a CANN with these functions (the interface 1.17 has them)",
        .path.display(), .symbols.join(", "), version_clause(.version.as_ref())
    )]
    MissingSymbols {
        /// The file.
        path: PathBuf,
        /// The functions.
        symbols: Vec<&'static str>,
        /// What the library says of its version.
        version: Option<[i32; 3]>,
    },

    /// An interface of another major version.
    #[error("CANN has version {}.{}.{} of its interface, and this host is written for 1. Install a CANN with version 1", .found[0], .found[1], .found[2])]
    Version {
        /// What was found.
        found: [i32; 3],
    },

    /// The library is this project's own implementation of the interface.
    #[error(
        "{} is this project's own libascendcl, which runs programs on a simulator. The device a2a3 needs the vendor's: leave \
         that folder out of LD_LIBRARY_PATH, or set ASCEND_HOME_PATH", .path.display()
    )]
    OwnLibrary {
        /// The file.
        path: PathBuf,
    },

    /// A call failed.
    #[error("{step}: {call} answered {code} ({}){}. {}", codes::meaning(*.code), message_clause(.message), codes::remedy(*.code))]
    Call {
        /// What was being done.
        step: &'static str,
        /// The function.
        call: &'static str,
        /// Its code.
        code: i32,
        /// What the library says itself.
        message: String,
    },

    /// The image did not write itself to the device.
    #[error("the bootstrap of the firmware: {what}")]
    Bootstrap {
        /// What went wrong.
        what: String,
    },

    /// The device is not as the firmware needs it.
    #[error("device {device}: {what}")]
    Unfit {
        /// Its id.
        device: u32,
        /// What is missing.
        what: String,
    },

    /// The AICPUs of a launch have ended, and its AICores have not.
    #[error(
        "the AICPUs have ended, and the AICores still run {after_ms} ms later: nothing tells them to leave any more. The device is reset by force; the fault \
         that the firmware has left says why it ended"
    )]
    CoresLeft {
        /// How long the host has waited for them.
        after_ms: u128,
    },

    /// A second firmware, or second kernels, in one process.
    #[error(
        "this process has already brought another {what} to the device, and the driver keeps it until the process ends: use \
         one {what} in each process"
    )]
    OnePerProcess {
        /// What there is one of.
        what: &'static str,
    },

    /// A file of the host.
    #[error("{what} ({source}): check the folder for temporary files")]
    File {
        /// What was being done.
        what: &'static str,
        /// What the system says.
        source: std::io::Error,
    },

    /// A variable of the environment that cannot be understood.
    #[error(
        "ASCEND_RT_VISIBLE_DEVICES is \"{value}\", which has no device {device}: give a list of numbers with at least {} of them",
        .device + 1
    )]
    Visible {
        /// The variable's value.
        value: String,
        /// The device that was asked for.
        device: u32,
    },
}

crate::debug_as_display::debug_as_display!(A2a3Error);

impl A2a3Error {
    /// The code of the call that failed.
    #[must_use]
    pub const fn code(&self) -> Option<i32> {
        match self {
            Self::Call { code, .. } => Some(*code),
            _ => None,
        }
    }
}

fn version_clause(version: Option<&[i32; 3]>) -> String {
    version.map_or_else(String::new, |[major, minor, patch]| {
        format!(" (its interface has version {major}.{minor}.{patch})")
    })
}

fn message_clause(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!("; it says: {}", message.trim_end()) }
}
