//! What the tests with programs in C share: the compiler, and where cargo has put the libraries.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the headers and the programs, which is this crate's or one above it.
pub(crate) fn here() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().find(|folder| folder.join("tests/c").is_dir()).expect("a folder with programs")
}

/// Where cargo has put the library and its plug-in: next to this test.
pub(crate) fn library_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.parent().expect("and a folder").to_path_buf();
    for file in ["libascendcl.so", "libpto_acl.so"] {
        assert!(folder.join(file).is_file(), "{file} is missing in {}", folder.display());
    }
    folder
}

/// A compiler with warnings as errors, and our headers.
pub(crate) fn compiler(program: &str, standard: &str) -> Command {
    let mut command = Command::new(program);
    let warnings = ["-Wall", "-Wextra", "-Werror"];
    command.args(["-D_GNU_SOURCE", "-O1", standard, "-pthread", "-I"]);
    command.arg(here().join("include")).args(warnings);
    command
}

/// A program that finds the library next to this test, and no other one that cargo has put somewhere.
pub(crate) fn start(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", library_folder());
    command
}
