//! The tarball: a prefix that works wherever it is unpacked.
//!
//! ```text
//! bin/pto                        lib/lib*.so                 lib/pkgconfig, lib/cmake
//! include                        headers; include/acl, ..    those of the CANN interface
//! share/man/man1                 share/bash-completion, share/zsh, share/fish
//! share/pto/firmware             images to flash             share/doc/pto
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python;

/// The libraries of a release, next to the command.
const LIBRARIES: [&str; 6] = [
    "libpto_runtime.so",
    "libascendcl.so",
    "libpto_acl.so",
    "libacl_op_compiler.so",
    "libopapi.so",
    "libhccl.so",
];
/// Where the headers of C and C++ are in the tree, and where they are in the tarball.
const HEADERS: [&str; 2] = ["bindings/include", "bindings/acl/include"];
/// Pages for people who have no tree.
const PAGES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];
/// Shells, and where each looks for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/pto"),
    ("zsh", "share/zsh/site-functions/_pto"),
    ("fish", "share/fish/vendor_completions.d/pto.fish"),
];
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Makes it in `files`; its file.
pub(super) fn make(
    root: &Path,
    built: &Path,
    images: &[PathBuf],
    files: &Path,
) -> Result<PathBuf, String> {
    let name = format!("pto-{VERSION}-{}-linux-gnu", std::env::consts::ARCH);
    let prefix = files.join(&name);
    stripped(&built.join("pto"), &prefix.join("bin/pto"))?;
    for library in LIBRARIES {
        // A library that cargo has built for another crate is one folder below.
        let places = [built.join(library), built.join("deps").join(library)];
        let made = places.iter().find(|file| file.is_file());
        let made = made.ok_or_else(|| format!("there is no {}", places[0].display()))?;
        stripped(made, &prefix.join("lib").join(library))?;
    }
    for folder in HEADERS {
        copied_folder(&root.join(folder), &prefix.join("include"))?;
    }
    for page in PAGES {
        copied(&root.join(page), &prefix.join("share/doc/pto").join(page))?;
    }
    for image in images {
        let name = image.file_name().unwrap_or_default();
        copied(image, &prefix.join("share/pto/firmware").join(name))?;
    }
    written(&prefix.join("lib/pkgconfig/pto_runtime.pc"), &pkg_config())?;
    let cmake = prefix.join("lib/cmake/pto_runtime");
    written(&cmake.join("pto_runtime-config.cmake"), CMAKE)?;
    written(&cmake.join("pto_runtime-config-version.cmake"), &cmake_version())?;
    pages_and_completions(&prefix)?;

    let tarball = files.join(format!("{name}.tar.gz"));
    let mut pack = Command::new("tar");
    pack.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-czf"]).arg(&tarball);
    python::run(pack.arg("-C").arg(files).arg(&name))?;
    fs::remove_dir_all(&prefix).map_err(|error| format!("{}: {error}", prefix.display()))?;
    Ok(tarball)
}

/// What the command says of itself.
fn pages_and_completions(prefix: &Path) -> Result<(), String> {
    let pto = prefix.join("bin/pto");
    let pages = prefix.join("share/man/man1");
    python::run(Command::new(&pto).arg("man").arg(&pages))?;
    for (shell, file) in COMPLETIONS {
        let said = Command::new(&pto).args(["completions", shell]).output();
        let said = said.map_err(|error| format!("{}: {error}", pto.display()))?;
        let script = String::from_utf8_lossy(&said.stdout).into_owned();
        if !said.status.success() || script.is_empty() {
            return Err(format!("`pto completions {shell}` gives no script"));
        }
        written(&prefix.join(file), &script)?;
    }
    Ok(())
}

/// Where the tarball is unpacked is not known: `pcfiledir` is the folder of the file itself.
fn pkg_config() -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         includedir=${{prefix}}/include\n\
         libdir=${{prefix}}/lib\n\
         \n\
         Name: pto_runtime\n\
         Description: PTO Runtime: task graphs of kernels on Ascend devices and on their simulator\n\
         Version: {VERSION}\n\
         Cflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -lpto_runtime -Wl,-rpath,${{libdir}}\n"
    )
}

const CMAKE: &str = r#"# The library libpto_runtime as the target pto::runtime.
get_filename_component(_pto_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET pto::runtime)
  add_library(pto::runtime SHARED IMPORTED)
  set_target_properties(pto::runtime PROPERTIES
    IMPORTED_LOCATION "${_pto_prefix}/lib/libpto_runtime.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_pto_prefix}/include"
    IMPORTED_NO_SONAME TRUE)
endif()
unset(_pto_prefix)
"#;

/// Before 1.0.0 a program needs the MINOR that it was written for.
fn cmake_version() -> String {
    format!(
        "set(PACKAGE_VERSION {VERSION})\n\
         string(REGEX MATCH \"^[0-9]+\\\\.[0-9]+\" _pto_series \"${{PACKAGE_VERSION}}\")\n\
         string(REGEX MATCH \"^[0-9]+\\\\.[0-9]+\" _pto_wanted \"${{PACKAGE_FIND_VERSION}}\")\n\
         if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION OR NOT _pto_series STREQUAL _pto_wanted)\n  \
           set(PACKAGE_VERSION_COMPATIBLE FALSE)\n\
         else()\n  \
           set(PACKAGE_VERSION_COMPATIBLE TRUE)\n\
         endif()\n\
         if(PACKAGE_VERSION STREQUAL PACKAGE_FIND_VERSION)\n  \
           set(PACKAGE_VERSION_EXACT TRUE)\n\
         endif()\n"
    )
}

fn written(file: &Path, text: &str) -> Result<(), String> {
    parent_of(file)?;
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

fn copied(from: &Path, to: &Path) -> Result<(), String> {
    parent_of(to)?;
    let copy = fs::copy(from, to).map(drop);
    copy.map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

fn copied_folder(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", from.display());
    for entry in fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() { copied_folder(&path, &to)? } else { copied(&path, &to)? }
    }
    Ok(())
}

/// A program or a library without the symbols that only a debugger needs.
fn stripped(from: &Path, to: &Path) -> Result<(), String> {
    copied(from, to)?;
    python::run(Command::new("strip").arg(to))
}

fn parent_of(file: &Path) -> Result<(), String> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}
