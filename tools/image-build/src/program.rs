//! A program that is not Rust's, and the compilers of sources in images.

use std::path::{Path, PathBuf};

/// A program and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// The packages that it needs, with a space between.
    pub packages: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// A file of these packages that must be there, too; empty: none.
    pub file: &'static str,
}

/// The compiler for C in images, and the linker of images for the CANN driver stack.
pub const CROSS_C: Program = Program {
    name: "aarch64-linux-gnu-gcc",
    packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
    purpose: "links the cann image, compiles builders in C",
    file: "/usr/aarch64-linux-gnu/lib/libc.so.6",
};
/// The compiler for C++ in images.
pub const CROSS_CXX: Program = Program {
    name: "aarch64-linux-gnu-g++",
    packages: "g++-aarch64-linux-gnu",
    purpose: "compiles builders in C++",
    file: "",
};

impl Program {
    /// Where it is, in PATH; `None`: it, or the file next to it, is missing.
    #[must_use]
    pub fn find(self) -> Option<PathBuf> {
        let paths = std::env::var_os("PATH")?;
        let mut places = std::env::split_paths(&paths).map(|folder| folder.join(self.name));
        let is_whole = self.file.is_empty() || Path::new(self.file).exists();
        places.find(|path| path.is_file()).filter(|_| is_whole)
    }
}
