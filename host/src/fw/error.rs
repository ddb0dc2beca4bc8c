//! Why an image is refused, and why the store cannot do what it is asked for.

use std::io;
use std::path::PathBuf;

use crate::fw::kind::{FlashDevice, ImageKind, Machine};

/// Why an image is refused.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The file cannot be read.
    #[error("'{path}' cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No ELF file at all.
    #[error(
        "this is no ELF file (it begins with {found:02x?}): give the image that `pto fw build` names"
    )]
    NotElf {
        /// How it begins.
        found: Vec<u8>,
    },
    /// The file ends before something that it announces.
    #[error(
        "the file is cut: {what} would end at byte {end}, the file ends at {bytes}; build or copy it again"
    )]
    Truncated {
        /// What is not all there.
        what: String,
        /// Where it should end.
        end: u64,
        /// Size of the file.
        bytes: u64,
    },
    /// The image is code for another machine.
    #[error(
        "the image is for the machine {found}, and the device is AArch64: build it with `pto fw build`"
    )]
    Machine {
        /// The machine, as ELF numbers or calls it.
        found: String,
    },
    /// Firmware and kernels of different machines.
    #[error(
        "the firmware is {firmware} code and the kernels are {kernels} code: flash both of one machine. \
         `pto fw build --image cann --machine x86-64` makes both for the stand-in, and `pto fw rollback` takes a flash back"
    )]
    Machines {
        /// The machine of the firmware.
        firmware: Machine,
        /// The machine of the kernel blob.
        kernels: Machine,
    },
    /// An object of a program for AICores that no core can run.
    #[error("'{file}': {what}")]
    AicoreObject {
        /// The file.
        file: String,
        /// Why, and what to do.
        what: String,
    },
    /// A field of a header has a value that no image of ours has.
    #[error(
        "{field} is {found:#x}, and must be {expected}: the file is damaged, or no image of ours"
    )]
    Field {
        /// The field, as the ELF specification or `pto_abi` calls it.
        field: &'static str,
        /// The field's value in the image.
        found: u64,
        /// What it must be.
        expected: String,
    },
    /// The file does not say what kind of image it is.
    #[error(
        "the file does not say what it is: it has neither a section .note.pto nor a table of kernels; a \
         firmware crate gets its note from firmware!"
    )]
    NoIdentity,
    /// The identity is not one.
    #[error("the image's identity is damaged: {what}; build or copy it again")]
    Identity {
        /// What is wrong.
        what: String,
    },
    /// Another interface.
    #[error(
        "the image speaks ABI {}.{}, and this host {}.{}: build it again with this release",
        found.0, found.1, expected.0, expected.1
    )]
    Abi {
        /// The image's.
        found: (u16, u16),
        /// This host's.
        expected: (u16, u16),
    },
    /// Other structs.
    #[error(
        "the image's structs are laid out in another way (layout hash {found:#018x}, this host's is \
         {expected:#018x}): build image and host from the same sources"
    )]
    LayoutHash {
        /// The image's.
        found: u64,
        /// This host's.
        expected: u64,
    },
    /// For no device that this host knows.
    #[error(
        "the image is for a device \"{found}\" that this host does not know: it knows qemu and cann"
    )]
    UnknownKind {
        /// What the image says.
        found: String,
    },
    /// For another device.
    #[error("{} cannot have {image}: flash it to {}", device.name(), image.devices())]
    WrongDevice {
        /// The device.
        device: FlashDevice,
        /// The image.
        image: ImageKind,
    },
    /// The content is not what was sealed.
    #[error(
        "the image is damaged: its checksum is {found:#018x}, and it was sealed with {sealed:#018x}; build or \
         copy it again"
    )]
    Checksum {
        /// In the image.
        sealed: u64,
        /// Computed.
        found: u64,
    },
    /// Not what the store put there.
    #[error(
        "'{path}' is not what was flashed (SHA-256 {found}, not {expected}): flash the image again"
    )]
    Stored {
        /// The file.
        path: PathBuf,
        /// SHA-256 of the file.
        found: String,
        /// SHA-256 when it was flashed.
        expected: String,
    },
}

crate::debug_as_display::debug_as_display!(ImageError);

/// Why the store cannot do what it is asked for.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no folder for the store.
    #[error("there is no place for flashed images: set PTO_HOME, XDG_DATA_HOME or HOME")]
    NoHome,
    /// The image is refused.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A file of the store cannot be read or written.
    #[error("{what} '{path}': {source}; {kept}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
        /// What that means for the device.
        kept: &'static str,
    },
    /// The record of a device's images is damaged.
    #[error("'{path}' is damaged ({what}): remove it and flash the device again")]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// No image was ever flashed.
    #[error(
        "{} has no {what}: `pto fw build` makes one, `pto fw flash IMAGE --device {}` puts it there",
        device.name(), device.name()
    )]
    NothingFlashed {
        /// The device.
        device: FlashDevice,
        /// What is missing.
        what: &'static str,
    },
    /// There is no earlier generation.
    #[error("{} has no earlier image to go back to: `pto fw list` shows its history", device.name())]
    NothingBefore {
        /// The device.
        device: FlashDevice,
    },
}

crate::debug_as_display::debug_as_display!(StoreError);
