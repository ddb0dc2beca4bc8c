//! Finds or installs the tools that build and run firmware images: a compiler for AArch64, the cross tools, the emulators.
//! It needs little, because `xtask` is built for every command.
//!
//! ```text
//! Toolchain::provide --> the compiler in use, with a target that rustup adds          compiler.rs
//!                    '-> Debian's compiler in a cache                                 debian.rs
//! provide_std_source --> the source of its standard library                           std_source.rs
//! stand_in           --> the folder that stands for CANN's
//! packages           --> programs that are not Rust's, installed with apt-get         packages.rs
//! ```
//! `process` runs programs within a limit.

mod compiler;
mod debian;
pub mod packages;
mod process;
pub mod stand_in;
mod std_source;

pub use compiler::{Source, Toolchain};
pub use std_source::provide_std_source;

/// The Rust target of what boots on the bare machine.
pub const BARE_METAL: &str = "aarch64-unknown-none";
/// The Rust target of what the CANN driver stack loads.
pub const LINUX: &str = "aarch64-unknown-linux-gnu";

/// The Rust target of what the stand-in for CANN loads on a development machine.
pub const DEVELOPMENT: &str = "x86_64-unknown-linux-gnu";

/// Why something that is needed is not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// No compiler can be had.
    #[error(
        "there is no compiler for {triple}.\n  rustup: {rustup}\n  Debian's packages: {debian}\n  \
         Run `rustup target add {triple}` where there is a network, and try again."
    )]
    NoCompiler {
        /// The target.
        triple: &'static str,
        /// Why not from rustup.
        rustup: String,
        /// Why not from Debian.
        debian: String,
    },
    /// The compiler in use has no source of its standard library.
    #[error(
        "the source of the standard library cannot be had ({why}).\n  Run `rustup component add rust-src` where there \
         is a network, and try again."
    )]
    NoStdSource {
        /// What went wrong.
        why: String,
    },
    /// A program that is needed is missing.
    #[error("{program} is not installed: `apt-get install {packages}` brings it")]
    NoProgram {
        /// The program.
        program: &'static str,
        /// The packages that have it.
        packages: &'static str,
    },
    /// apt cannot bring what is missing.
    #[error(
        "{programs} cannot be installed ({why}): as root, run `apt-get install {packages}`; what needs them was not \
         tested"
    )]
    NotInstalled {
        /// The programs.
        programs: String,
        /// The packages that have them.
        packages: String,
        /// What went wrong.
        why: String,
    },
}
