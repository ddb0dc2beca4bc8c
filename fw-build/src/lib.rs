//! Builds firmware images: finds a compiler for AArch64 or brings one, runs cargo, seals what comes out.
//!
//! ```text
//! Request --Toolchain::provide--> rustup's target, or Debian's packages in a cache   pto_toolchain
//!         --cargo--> ELF files --seal--> Built                                       cargo.rs
//! ```

mod cargo;
mod error;

use std::path::{Path, PathBuf};

use pto_host::fw::{Image, ImageKind, Recording, seal};

pub use error::BuildError;
pub use pto_toolchain::{Source, Toolchain, packages};

/// For which platform an image is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// The emulated machine: a firmware and, without a crate of one's own, the blob of kernels.
    #[default]
    Virt,
    /// The CANN driver stack: a shared object.
    Cann,
}

impl Platform {
    /// The Rust target.
    #[must_use]
    pub const fn triple(self) -> &'static str {
        match self {
            Self::Virt => pto_toolchain::BARE_METAL,
            Self::Cann => pto_toolchain::LINUX,
        }
    }
}

/// How an image is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// With overflow checks and debug assertions: a panic becomes a fault that says where.
    #[default]
    Checked,
    /// As it is shipped: small, and no panic is reachable.
    Release,
}

/// What to build.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// For which platform.
    pub platform: Platform,
    /// A firmware crate of one's own; `None`: the default images, from the sources of this program.
    pub crate_folder: Option<PathBuf>,
    /// How.
    pub profile: Profile,
    /// Which compiler.
    pub source: Source,
    /// Features of the crate with the firmware.
    pub features: Vec<String>,
    /// Whether the firmware records runs, of the platform `virt`: the feature `recording` of a crate of one's own.
    pub recording: Recording,
    /// Where cargo puts what it builds; `None`: where it does without being told.
    pub target_folder: Option<PathBuf>,
}

/// An image that was built and sealed.
#[derive(Clone, Debug)]
pub struct Built {
    /// The file.
    pub path: PathBuf,
    /// The image.
    pub image: Image,
}

/// Builds what `request` asks for; tells `say` what it does, in sentences.
///
/// # Errors
/// See [`BuildError`].
pub fn build(request: &Request, say: &dyn Fn(&str)) -> Result<Vec<Built>, BuildError> {
    let toolchain = Toolchain::provide(request.platform.triple(), request.source, say)?;
    let mut built = Vec::new();
    for artifact in cargo::build(request, &toolchain, say)? {
        built.push(finish(&artifact)?);
    }
    match built.iter().find(|built| is_wanted(request.platform, built.image.kind)) {
        Some(_) => Ok(built),
        None => Err(BuildError::NoImage { platform: request.platform }),
    }
}

/// A crate may make firmware, kernels or both.
const fn is_wanted(platform: Platform, kind: ImageKind) -> bool {
    match platform {
        Platform::Virt => matches!(kind, ImageKind::Virt | ImageKind::Kernels),
        Platform::Cann => matches!(kind, ImageKind::Cann),
    }
}

/// Seals a copy of what cargo has built, and reads it as a device would.
fn finish(artifact: &Path) -> Result<Built, BuildError> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| BuildError::File { path, source }
    };
    let refused = |error| BuildError::Image { path: artifact.to_path_buf(), error };
    let mut file = std::fs::read(artifact).map_err(io(artifact))?;
    seal(&mut file).map_err(refused)?;
    let path = artifact.with_extension("img");
    // Renamed to its place: somebody may run what stands there.
    let beside = artifact.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&beside, &file).map_err(io(&beside))?;
    std::fs::rename(&beside, &path).map_err(io(&path))?;
    let image = Image::read(&path).map_err(refused)?;
    Ok(Built { path, image })
}
