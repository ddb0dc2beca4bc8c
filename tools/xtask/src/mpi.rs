//! `cargo xtask mpi`: the plug-in that links MPI, once for each MPI of this machine, and the tests of ranks over it.
//!
//! The plug-in is a feature of `pto-mpi`, because no other build may need an MPI. Plug-ins go to `target/mpi`, where `pto` finds
//! them. Where OpenMPI is missing, it is installed, and with `--mpich` MPICH as well; where one cannot be, the step says that it did not run.

use std::path::{Path, PathBuf};
use std::process::Command;

use pto_image_build::toolchain::packages::{self, LIBCLANG, MPICH, OPENMPI, Program};

use crate::cargo::cargo;
use crate::steps::StepResult;

/// Which MPIs must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredMpi {
    /// OpenMPI; of others, those that this machine has.
    OpenMpi,
    /// MPICH as well.
    Both,
}

impl RequiredMpi {
    const fn programs(self) -> &'static [Program] {
        match self {
            Self::OpenMpi => &[OPENMPI, LIBCLANG],
            Self::Both => &[OPENMPI, LIBCLANG, MPICH],
        }
    }
}

/// The MPIs that a plug-in is built with: the name in its file, and the compiler wrapper.
const MPIS: [(&str, &str); 2] = [("openmpi", "mpicc.openmpi"), ("mpich", "mpicc.mpich")];

/// Builds the plug-ins, and tests them.
pub(crate) fn test(root: &Path, target: &Path, asked: RequiredMpi) -> Result<StepResult, String> {
    let say = |sentence: &str| println!("{sentence}");
    for needed in asked.programs() {
        if let Err(why) = packages::install(&[*needed], &say) {
            return Ok(StepResult::Not(format!("ranks over MPI are not tested here: {why}")));
        }
    }
    for (name, compiler) in MPIS {
        match find(compiler) {
            Some(_) => build(root, target, (name, compiler))?,
            None => println!(
                "{compiler} is not here: no plug-in for {name}, and no tests with it. `cargo xtask mpi --mpich` installs it"
            ),
        }
    }
    run_tests(root)
}

fn find(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn build(root: &Path, target: &Path, (name, compiler): (&str, &str)) -> Result<(), String> {
    let plugins = target.join("mpi");
    let mut command = cargo(root);
    command.args(["rustc", "--package", "pto-mpi", "--lib", "--crate-type", "cdylib"]);
    command.args(["--no-default-features", "--features", "plugin", "--profile", "dist"]);
    command.arg("--locked").env("MPICC", compiler);
    // One folder for each MPI: what is built with one is not for the other.
    command.env("CARGO_TARGET_DIR", plugins.join(name));
    succeed(&mut command)?;
    let built = plugins.join(name).join("dist/libpto_mpi.so");
    let plugin = plugins.join(format!("libpto_mpi_{name}.so"));
    std::fs::copy(&built, &plugin).map_err(|error| format!("{}: {error}", plugin.display()))?;
    println!("{}", plugin.display());
    Ok(())
}

/// The tests are built with the others of the workspace, and ask for an MPI.
fn run_tests(root: &Path) -> Result<StepResult, String> {
    let arguments = "test --workspace --test command -- --ignored --nocapture --test-threads=1 mpi";
    succeed(cargo(root).args(arguments.split(' '))).map(|()| StepResult::Whole)
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cargo cannot be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}
