//! Builds firmware images.
//!
//! ```text
//! images     runs cargo, and writes a checksum into each image: what `pto fw build` does
//! toolchain  finds or installs the compiler, the cross tools and the emulators
//! sources    for build scripts of images: builders and kernels in C and C++ become objects that an image can hold (with the compilers of program.rs)
//! ```
//! Each line has a feature, but for the last one: a build script needs nothing of the host, and `xtask` only the tools.
//!
//! Why it is so: `docs/decisions/image-builds.md`.

#[cfg(feature = "images")]
mod images;
pub mod program;
pub mod sources;
#[cfg(feature = "toolchain")]
pub mod toolchain;

#[cfg(feature = "images")]
pub use images::AicoreRequest;
#[cfg(feature = "images")]
pub use images::aicore::{AicoreBuilt, CodeSize, build_aicore, seal_aicore};
#[cfg(feature = "images")]
pub use images::{
    BuildError, BuilderSource, Built, CoreCode, KernelSource, Platform, Profile, Request, build,
};
#[cfg(feature = "images")]
pub use toolchain::{Source, Toolchain, packages, stand_in};
