//! The programs that make objects for AArch64: Debian's, for Linux, which do for freestanding code.

use std::process::Command;

use super::refused::Refused;
use crate::program::{CROSS_C, CROSS_CXX, Program};

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
    const fn program(self) -> Program {
        match self {
            Self::Cc => CROSS_C,
            Self::Cxx => CROSS_CXX,
            Self::Ld => binutils("aarch64-linux-gnu-ld"),
            Self::Nm => binutils("aarch64-linux-gnu-nm"),
            Self::Objdump => binutils("aarch64-linux-gnu-objdump"),
            Self::Objcopy => binutils("aarch64-linux-gnu-objcopy"),
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.program().name
    }

    /// A call of it.
    pub(crate) fn command(self) -> Result<Command, Refused> {
        let Program { name, packages, .. } = self.program();
        let found = self.program().find().ok_or_else(|| {
            Refused(format!(
                "{name} is missing, which builders in C and C++ need: apt-get install {packages}"
            ))
        })?;
        let mut command = Command::new(found);
        command.env("LC_ALL", "C");
        Ok(command)
    }
}

const fn binutils(name: &'static str) -> Program {
    Program {
        name,
        packages: "binutils-aarch64-linux-gnu",
        purpose: "makes objects of sources in C and C++",
        file: "",
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
