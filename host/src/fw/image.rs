//! An image file: reads it, and decides whether a device may use it.

use std::fs;
use std::path::Path;

use pto_abi::layout::LAYOUT_HASH;
use pto_abi::runtime::{ABI_MAJOR, ABI_MINOR};

use super::aicore::WORKER_SECTION;
use super::blob::{self, BlobKernel, KernelBlob};
use super::elf::{Elf, Section, Sizes};
use super::identity;
use super::seal::{self, Seal};
use crate::fw::error::ImageError;
use crate::fw::kind::{FlashDevice, ImageKind, Machine, Tracing};

/// An image whose structure holds together.
#[derive(Clone, Debug)]
pub struct Image {
    bytes: Vec<u8>,
    /// The file's name.
    pub name: String,
    /// What it is.
    pub kind: ImageKind,
    /// Whose code it is.
    pub machine: Machine,
    /// The image's first instruction; 0: it has none.
    pub entry: u64,
    /// The image's sections.
    pub sections: Vec<Section>,
    /// Sizes of what is loaded.
    pub sizes: Sizes,
    /// ABI: major, minor.
    pub abi: (u16, u16),
    /// The hash of the structs that it shares with the host; a blob shares none.
    pub layout_hash: Option<u64>,
    /// Whether it records runs.
    pub tracing: Tracing,
    /// Builders that are linked in.
    pub builders: Vec<String>,
    /// Kernels inside.
    pub kernels: Vec<BlobKernel>,
    /// The linker's hash of the content; empty: there is none.
    pub build_id: String,
    /// The image's checksum.
    pub seal: Seal,
    /// SHA-256 of the file.
    pub sha256: String,
}

impl Image {
    /// Reads an image that this host can use.
    ///
    /// # Errors
    /// Why not: see [`ImageError`].
    pub fn read(path: &Path) -> Result<Self, ImageError> {
        let image = Self::inspect(path)?;
        image.verify()?;
        Ok(image)
    }

    /// Reads an image that may be of another release, or damaged inside; [`Image::verify`] says that.
    ///
    /// # Errors
    /// When it cannot be read, or is no image at all.
    pub fn inspect(path: &Path) -> Result<Self, ImageError> {
        let bytes = fs::read(path)
            .map_err(|source| ImageError::Read { path: path.to_path_buf(), source })?;
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        Self::parse(name, bytes)
    }

    /// As [`Image::inspect`], of a file's content.
    ///
    /// # Errors
    /// When it is no image.
    pub fn parse(name: String, bytes: Vec<u8>) -> Result<Self, ImageError> {
        let elf = Elf::parse(&bytes)?;
        let identity = identity::read(&elf)?;
        let (entry, sizes, build_id) = (elf.entry, elf.sizes(), seal::hex(&elf.build_id));
        Ok(Self {
            entry,
            sizes,
            build_id,
            sections: elf.sections,
            seal: seal::examine(&bytes, identity.checksum, identity.checksum_at),
            sha256: seal::sha256(&bytes),
            kind: identity.kind,
            machine: elf.machine,
            abi: identity.abi,
            layout_hash: identity.layout_hash,
            tracing: identity.tracing,
            builders: identity.builders,
            kernels: identity.kernels,
            name,
            bytes,
        })
    }

    /// Whether it is whole, and of this host's interface.
    ///
    /// # Errors
    /// `Checksum`, `Abi`, `LayoutHash`.
    pub fn verify(&self) -> Result<(), ImageError> {
        if let Seal::Broken { sealed, found } = self.seal {
            return Err(ImageError::Checksum { sealed, found });
        }
        let expected = (ABI_MAJOR, ABI_MINOR);
        if self.abi.0 != expected.0 || self.abi.1 < expected.1 {
            return Err(ImageError::Abi { found: self.abi, expected });
        }
        match self.layout_hash {
            Some(found) if found != LAYOUT_HASH => {
                Err(ImageError::LayoutHash { found, expected: LAYOUT_HASH })
            }
            _ => Ok(()),
        }
    }

    /// Whether `device` can have it.
    ///
    /// # Errors
    /// `WrongDevice`, `Machine`.
    pub fn suits(&self, device: FlashDevice) -> Result<(), ImageError> {
        if !device.takes(self.kind) {
            return Err(ImageError::WrongDevice { device, image: self.kind });
        }
        match (device, self.machine) {
            (FlashDevice::Qemu, Machine::X86_64) => {
                Err(ImageError::Machine { found: self.machine.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its kernels, as they are copied into GM; `None`: it is not a blob.
    #[must_use]
    pub fn blob(&self) -> Option<KernelBlob> {
        let is_blob = matches!(self.kind, ImageKind::Kernels | ImageKind::Aicore);
        let elf = Elf::parse(&self.bytes).ok().filter(|_| is_blob)?;
        Some(KernelBlob { bytes: blob::flat(&elf), kernels: self.kernels.clone() })
    }

    /// The program that the driver loads on AICores: the worker of an image for AICores. Of a blob of kernels it is the file itself, which the
    /// stand-in takes for a program, because its cores have a worker loop of their own.
    #[must_use]
    pub fn core_program(&self) -> &[u8] {
        let elf = Elf::parse(&self.bytes).ok();
        let worker = elf.as_ref().and_then(|elf| elf.section(WORKER_SECTION));
        worker.map_or(&self.bytes, |(_, program)| program)
    }
}
