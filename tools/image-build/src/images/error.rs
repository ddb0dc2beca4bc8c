//! The errors of building an image.

use std::io;
use std::path::{Path, PathBuf};

use crate::toolchain::ToolError;
use pto_host::fw::ImageError;

use super::request::PTO_ISA_HEADER;
use super::request::Platform;

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Something to build with is missing.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The sources that this program was built from are gone.
    #[error(
        "the sources that this program was built from are not in '{0}' any more: \
         give a firmware crate with --crate, build `pto` from its sources, or flash an image that was built elsewhere (`pto fw flash`)"
    )]
    NoSources(PathBuf),
    /// There is no crate.
    #[error("there is no Cargo.toml in '{0}': give the folder of a firmware crate")]
    NoCrate(PathBuf),
    /// A manifest that says what cannot be.
    #[error("'{path}': {what}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A builder in C or C++ that cannot be.
    #[error("{0}")]
    Builder(String),
    /// A kernel in C++ that cannot be.
    #[error("{0}")]
    Kernel(String),
    /// The headers of PTO-ISA are not there.
    #[error(
        "kernels for AICores need the headers of PTO-ISA, and {}: name the folder with {PTO_ISA_HEADER} by --pto-isa",
        no_headers(.folder.as_deref())
    )]
    PtoIsa {
        /// The folder that was named.
        folder: Option<PathBuf>,
    },
    /// The compiler for AICores, or its linker, refuses a file.
    #[error("'{file}' cannot be built for AICores: {how}")]
    Compiler {
        /// The source, or what was to be linked.
        file: String,
        /// What the program says, and how it was called.
        how: String,
    },
    /// A folder for a source tree that has something else in it.
    #[error(
        "'{0}' has files in it that are no source tree for AICores: name another folder, or an empty one"
    )]
    Occupied(PathBuf),
    /// cargo fails.
    #[error("cargo cannot build {what}: see its messages above ({how})")]
    Cargo {
        /// What it should have built.
        what: String,
        /// How it ended.
        how: String,
    },
    /// cargo has built something else.
    #[error(
        "cargo has built nothing that is a firmware image for {triple}: {}", hint(*platform)
    )]
    NoImage {
        /// The platform.
        platform: Platform,
        /// The Rust target.
        triple: &'static str,
    },
    /// What was built is no image.
    #[error("'{path}': {error}")]
    Image {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ImageError,
    },
    /// A file cannot be read or written.
    #[error("'{path}': {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

fn no_headers(folder: Option<&Path>) -> String {
    folder.map_or_else(
        || "no folder of them was named".to_owned(),
        |folder| format!("'{}' has none", folder.display()),
    )
}

const fn hint(platform: Platform) -> &'static str {
    match platform {
        Platform::Qemu => {
            "the crate needs a binary with firmware!, linked as linker/example-firmware is"
        }
        Platform::Cann => "the crate needs a cdylib with firmware!, as linker/images has",
    }
}
