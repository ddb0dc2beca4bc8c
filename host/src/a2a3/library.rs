//! Which libraries of the vendor's there are, and where each may be: first the folder that the user names, then the driver's own, then
//! the folders of `LD_LIBRARY_PATH`. Every place is an absolute path, so that no library of an equal name is taken.

use std::fmt;
use std::path::{Path, PathBuf};

/// The environment variable that names the folder of CANN.
pub const HOME_VARIABLE: &str = "ASCEND_HOME_PATH";
const DRIVER_FOLDER: &str = "/usr/local/Ascend/driver/lib64/driver";

/// A library of the vendor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// The interface `aclrt*`.
    Acl,
    /// The interface `rt*` below it.
    Runtime,
    /// The driver's.
    Hal,
}

impl Library {
    /// The names of its file, the better one first.
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Acl => &["libacl_rt.so", "libascendcl.so"],
            Self::Runtime => &["libruntime.so"],
            Self::Hal => &["libascend_hal.so"],
        }
    }

    /// Where it may be, in the order in which it is looked for.
    pub(crate) fn places(self, home: Option<&Path>) -> Vec<PathBuf> {
        let in_home = |name: &&str| home.map(|home| home.join("lib64").join(name));
        let mut places: Vec<PathBuf> = self.names().iter().filter_map(in_home).collect();
        if self == Self::Hal {
            places.extend(self.names().iter().map(|name| Path::new(DRIVER_FOLDER).join(name)));
        }
        for folder in folders_of_loader() {
            places.extend(self.names().iter().map(|name| folder.join(name)));
        }
        places
    }
}

/// The folders that the environment names for the loader; those that depend on the current folder are left out.
fn folders_of_loader() -> Vec<PathBuf> {
    let list = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&list).filter(|folder| folder.is_absolute()).collect()
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names().first().unwrap_or(&"a library"))
    }
}

/// The folder of CANN, as an absolute path: the one that is given, else that of the environment.
pub(crate) fn home_of(given: Option<&Path>) -> Option<PathBuf> {
    let of_environment = || std::env::var_os(HOME_VARIABLE).map(PathBuf::from);
    let home = given.map(Path::to_path_buf).or_else(of_environment);
    // A path that the system cannot complete is refused where a library is opened.
    home.map(|home| std::path::absolute(&home).unwrap_or(home))
}
