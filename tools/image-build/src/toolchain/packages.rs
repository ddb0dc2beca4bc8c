//! Programs that are not Rust's, and the Debian packages that bring them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::{ToolError, process};

pub use crate::program::{CROSS_C, CROSS_CXX, Program};

/// How long one call of apt may take.
const APT_LIMIT: Duration = Duration::from_secs(600);

/// QEMU for the device `qemu`.
pub const QEMU: Program = Program {
    name: "qemu-system-aarch64",
    packages: "qemu-system-arm",
    purpose: "boots the bare-metal image",
    file: "",
};
/// QEMU for programs.
pub const QEMU_USER: Program = Program {
    name: "qemu-aarch64",
    packages: "qemu-user",
    purpose: "loads the cann image",
    file: "",
};
/// This machine's compiler for C.
pub const CC: Program =
    Program { name: "cc", packages: "gcc libc6-dev", purpose: "compiles C programs", file: "" };
/// The C++ compiler of this machine.
pub const CXX: Program =
    Program { name: "c++", packages: "g++", purpose: "compiles C++ programs", file: "" };
/// Builds the source tree for AICores where the vendor's compiler is.
pub const CMAKE: Program = Program {
    name: "cmake",
    packages: "cmake make",
    purpose: "builds the sources for AICores",
    file: "/usr/bin/make",
};
/// Says how to compile against a library.
pub const PKG_CONFIG: Program = Program {
    name: "pkg-config",
    packages: "pkg-config",
    purpose: "finds the library of a release",
    file: "",
};
/// Makes roots of Debian's packages.
pub const DEBOOTSTRAP: Program = Program {
    name: "debootstrap",
    packages: "debootstrap",
    purpose: "makes an empty root, in which a release is tried",
    file: "",
};
/// Callgrind.
pub const VALGRIND: Program = Program {
    name: "valgrind",
    packages: "valgrind",
    purpose: "counts the instructions of a task",
    file: "",
};
/// Python, for the package `pto_runtime`.
pub const PYTHON: Program = Program {
    name: "python3",
    packages: "python3 python3-venv",
    purpose: "runs the Python package and its tests",
    file: "",
};
/// What Debian's Python makes virtual environments with.
pub const PYTHON_VENV: Program = Program {
    name: "python3",
    packages: "python3-venv",
    purpose: "makes virtual environments",
    file: "/usr/share/doc/python3-venv",
};

/// OpenMPI: its compiler wrapper and its launcher.
pub const OPENMPI: Program = Program {
    name: "mpicc.openmpi",
    packages: "openmpi-bin libopenmpi-dev",
    purpose: "builds the plug-in for ranks over MPI, and starts them",
    file: "/usr/bin/mpirun.openmpi",
};
/// MPICH: its compiler wrapper and its launcher. It can be installed together with OpenMPI.
pub const MPICH: Program = Program {
    name: "mpicc.mpich",
    packages: "mpich libmpich-dev",
    purpose: "builds the plug-in for ranks over MPICH, and starts them",
    file: "/usr/bin/mpirun.mpich",
};
/// The library that reads the headers of an MPI.
pub const LIBCLANG: Program = Program {
    name: "cc",
    packages: "libclang-dev",
    purpose: "reads the headers of an MPI for the plug-in",
    file: "/usr/lib/llvm-14/lib/libclang.so",
};

impl Program {
    /// Where it is.
    ///
    /// # Errors
    /// `NoProgram`, with the packages that bring it.
    pub fn need(self) -> Result<PathBuf, ToolError> {
        let missing = ToolError::NoProgram { program: self.name, packages: self.packages };
        self.find().ok_or(missing)
    }
}

/// Installs what is missing of `programs` with `apt-get`, which takes root; tells `say` what it does.
///
/// # Errors
/// `NotInstalled`, with what to run by hand.
pub fn install(programs: &[Program], say: &dyn Fn(&str)) -> Result<(), ToolError> {
    let missing: Vec<_> = programs.iter().filter(|program| program.find().is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for Program { name, packages, purpose, .. } in &missing {
        say(&format!("{name} is missing ({purpose}): package {packages}"));
    }
    let packages: BTreeSet<_> = missing.iter().flat_map(|one| one.packages.split(' ')).collect();
    let packages: Vec<_> = packages.into_iter().collect();
    say(&format!("apt-get install {}", packages.join(" ")));
    // The lists may be fresh enough without it.
    let update = apt_get(&["update", "-q"]);
    let options = ["install", "-y", "-q", "--no-install-recommends"];
    let installed = apt_get(&[&options, packages.as_slice()].concat());
    let missing: Vec<_> = missing.iter().filter(|one| one.find().is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|one| one.name).collect();
    let why = match (update, installed) {
        (_, Ok(())) => "apt-get is content, and they are still not there".to_owned(),
        (Ok(()), Err(why)) => why,
        (Err(update), Err(why)) => format!("{why}; apt-get update: {update}"),
    };
    Err(ToolError::NotInstalled { programs: names.join(", "), packages: packages.join(" "), why })
}

fn apt_get(arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    process::output(&mut command, APT_LIMIT).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::{CC, CROSS_C, Program, QEMU, QEMU_USER};

    const SHELL: Program = Program { name: "sh", packages: "dash", purpose: "a test", file: "" };

    #[test]
    fn a_program_is_found_in_the_path() {
        assert!(SHELL.find().is_some());
        assert!(Program { file: "/no-such-file", ..SHELL }.find().is_none());
        let refused = Program { name: "pto-no-such-program", ..SHELL }.need().unwrap_err();
        assert!(refused.to_string().contains("apt-get install dash"), "{refused}");
    }

    #[test]
    fn every_program_says_where_it_is_from_and_what_it_is_for() {
        let programs = [QEMU, QEMU_USER, CROSS_C, CC];
        assert!(programs.iter().all(|one| !one.packages.is_empty() && !one.purpose.is_empty()));
    }
}
