//! Programs in C against the library, and what they write, for several files of tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::support::{compiler, here, library_folder};

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"))
}

/// What a program writes to its two outputs, and its code.
pub(crate) fn said(command: &mut Command) -> (String, String, Option<i32>) {
    let output = output(command);
    let [out, errors] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    (out, errors, output.status.code())
}

/// Compiles a source below `tests/c`.
pub(crate) fn compile(source: &str, options: &[&str], to: &Path) {
    let mut command = compiler("cc", "-std=c11");
    command.arg(here().join("tests/c").join(source)).arg("-o").arg(to);
    let (out, errors, code) = said(command.args(options));
    assert_eq!(code, Some(0), "{out}{errors}");
}

/// Compiles such a source, and links it with the library.
pub(crate) fn program(source: &str, folder: &Path) -> PathBuf {
    let to = folder.join(Path::new(source).file_stem().expect("a file"));
    let libraries = library_folder();
    compile(source, &["-L", &libraries.to_string_lossy(), "-lascendcl"], &to);
    to
}
