//! Which MPI has started this process, and where its plug-in is.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::ranks::error::MpiError;

pub use crate::ranks::error::{KIND_VARIABLE, Kind, PATH_VARIABLE};

impl Kind {
    /// The launchers, by a variable that each of them sets in the processes that it starts.
    const LAUNCHERS: [(&'static str, Self); 3] = [
        ("OMPI_COMM_WORLD_SIZE", Self::OpenMpi),
        ("PMIX_RANK", Self::OpenMpi),
        ("PMI_RANK", Self::Mpich),
    ];

    /// What it is called in [`KIND_VARIABLE`] and in the plug-in's file name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
        }
    }

    /// The MPI that has started this process.
    ///
    /// # Errors
    /// None has, or [`KIND_VARIABLE`] names none.
    pub fn of_launcher() -> Result<Self, MpiError> {
        Self::from_environment(|name| env::var_os(name))
    }

    fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, MpiError> {
        if let Some(given) = variable(KIND_VARIABLE) {
            let given = given.to_string_lossy().into_owned();
            let known = [Self::OpenMpi, Self::Mpich].into_iter().find(|one| one.name() == given);
            return known.ok_or(MpiError::UnknownKind { given });
        }
        let launchers = Self::LAUNCHERS.into_iter();
        let mut launched = launchers.filter(|(name, _)| variable(name).is_some());
        launched.next().map(|(_, kind)| kind).ok_or(MpiError::NotLaunched)
    }

    /// The name of the plug-in's file.
    #[must_use]
    pub fn file_name(self) -> String {
        format!("libpto_mpi_{}.so", self.name())
    }
}

/// The plug-in's file.
///
/// # Errors
/// There is none.
pub fn plugin(kind: Kind) -> Result<PathBuf, MpiError> {
    if let Some(path) = env::var_os(PATH_VARIABLE) {
        return Ok(path.into());
    }
    let program = env::current_exe().unwrap_or_default();
    let paths = candidates(&program, &kind.file_name());
    let found = paths.iter().find(|path| path.is_file()).cloned();
    let looked = || paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    found.ok_or_else(|| MpiError::NoPlugin { kind, looked: looked().join(", ") })
}

/// Next to the program; in the library folder of an installation; and in a build tree, where `cargo xtask mpi` puts plug-ins into `target/mpi`.
fn candidates(program: &Path, file: &str) -> Vec<PathBuf> {
    let folders = program.ancestors().skip(1).take(3).collect::<Vec<_>>();
    let sibling = folders.first().map(|folder| folder.join(file));
    let installed = folders.get(1).map(|folder| folder.join("lib/pto").join(file));
    let built = folders.iter().skip(1).map(|folder| folder.join("mpi").join(file));
    sibling.into_iter().chain(installed).chain(built).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use super::{Kind, candidates};

    fn kind(variables: &[(&str, &str)]) -> Result<Kind, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        Kind::from_environment(variable).map_err(|error| error.to_string())
    }

    #[test]
    fn the_launcher_says_which_mpi_it_is() {
        assert_eq!(kind(&[("OMPI_COMM_WORLD_SIZE", "2")]), Ok(Kind::OpenMpi));
        assert_eq!(kind(&[("PMI_RANK", "0")]), Ok(Kind::Mpich));
        assert_eq!(kind(&[("PMI_RANK", "0"), ("PTO_MPI", "openmpi")]), Ok(Kind::OpenMpi));
        assert!(kind(&[]).unwrap_err().contains("mpirun -n 8"));
        assert!(kind(&[("PTO_MPI", "lam")]).unwrap_err().contains("'lam'"));
    }

    #[test]
    fn a_plugin_is_looked_for_next_to_the_program_and_in_the_build_tree() {
        let found = candidates(Path::new("/t/debug/deps/pto"), "x.so");
        let paths =
            ["/t/debug/deps/x.so", "/t/debug/lib/pto/x.so", "/t/debug/mpi/x.so", "/t/mpi/x.so"];
        assert_eq!(found, paths.map(PathBuf::from));
    }
}
