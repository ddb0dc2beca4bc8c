//! The programs that make objects for AArch64: Debian's, for Linux, which do for freestanding code.

use std::path::PathBuf;
use std::process::Command;

use super::refused::Refused;

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The compiler for C.
    Cc,
    /// The compiler for C++.
    Cxx,
    /// The linker.
    Ld,
    /// Lists symbols.
    Nm,
    /// Lists sections.
    Objdump,
    /// Renames and hides symbols.
    Objcopy,
}

impl Tool {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cc => "aarch64-linux-gnu-gcc",
            Self::Cxx => "aarch64-linux-gnu-g++",
            Self::Ld => "aarch64-linux-gnu-ld",
            Self::Nm => "aarch64-linux-gnu-nm",
            Self::Objdump => "aarch64-linux-gnu-objdump",
            Self::Objcopy => "aarch64-linux-gnu-objcopy",
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::Cc => "gcc-aarch64-linux-gnu",
            Self::Cxx => "g++-aarch64-linux-gnu",
            _ => "binutils-aarch64-linux-gnu",
        }
    }

    /// A call of it.
    pub(crate) fn command(self) -> Result<Command, Refused> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let found: Option<PathBuf> =
            std::env::split_paths(&paths).map(|at| at.join(self.name())).find(|at| at.is_file());
        let found = found.ok_or_else(|| {
            let (name, package) = (self.name(), self.package());
            Refused(format!(
                "{name} is missing, which builders in C and C++ need: apt-get install {package}"
            ))
        })?;
        let mut command = Command::new(found);
        command.env("LC_ALL", "C");
        Ok(command)
    }
}

/// What it says, on both outputs; an error if it fails.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    let said = said.concat().trim_end().to_owned();
    if output.status.success() {
        Ok(said)
    } else {
        Err(format!("{said}\nThe command was: {command:?}"))
    }
}
