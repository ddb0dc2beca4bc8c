//! The identity of an image: the note of a firmware or of a program for AICores, or the header of a blob of kernels.

use bytemuck::pod_read_unaligned;
use object::elf::{ET_DYN, ET_EXEC};
use pto_abi::fw_image::{
    FW_KIND_QEMU, FW_MAGIC, FW_NOTE_OWNER, FW_NOTE_SECTION, FW_NOTE_TYPE, FW_TRACES, FwIdentity,
    KERNEL_BLOB_MAGIC, KernelBlobHeader, qemu,
};
use pto_abi::launch_words::FW_KIND_CANN;
use std::mem::offset_of;

use super::aicore;
use super::blob::{self, BlobKernel};
use super::elf::Elf;
use crate::fw::error::ImageError;
use crate::fw::kind::{ImageKind, Machine, Tracing};

/// Bytes of an ELF note before its body: three words and our owner.
const NOTE_HEADER: usize = 16;

/// What an image says of itself.
pub(crate) struct Identity {
    pub(crate) kind: ImageKind,
    pub(crate) abi: (u16, u16),
    /// A blob has none: it shares no struct but its own header.
    pub(crate) layout_hash: Option<u64>,
    pub(crate) tracing: Tracing,
    pub(crate) builders: Vec<String>,
    pub(crate) kernels: Vec<BlobKernel>,
    pub(crate) checksum: u64,
    /// The offset of the checksum in the file.
    pub(crate) checksum_at: usize,
}

/// Finds and reads the identity.
pub(crate) fn read(elf: &Elf<'_>) -> Result<Identity, ImageError> {
    match elf.section(FW_NOTE_SECTION) {
        Some((section, note)) => {
            let offset = usize::try_from(section.offset).unwrap_or(usize::MAX);
            let mut identity = of_firmware(note, offset)?;
            check_place(elf, identity.kind)?;
            if identity.kind == ImageKind::Aicore {
                identity.kernels = of_blob(elf)?.kernels;
            } else if elf.machine == Machine::DavC220 {
                return Err(ImageError::Machine { found: "0".to_owned() });
            }
            Ok(identity)
        }
        // A program of a development machine is no image, whatever else it lacks.
        None => match elf.machine {
            Machine::DavC220 => Err(ImageError::Machine { found: "0".to_owned() }),
            Machine::Aarch64 => of_blob(elf),
            Machine::X86_64 => {
                of_blob(elf).map_err(|_| ImageError::Machine { found: elf.machine.to_string() })
            }
        },
    }
}

fn damaged(what: impl Into<String>) -> ImageError {
    ImageError::Identity { what: what.into() }
}

fn of_firmware(note: &[u8], offset: usize) -> Result<Identity, ImageError> {
    let word =
        |at: usize| -> Option<u32> { Some(u32::from_le_bytes(*note.get(at..)?.first_chunk()?)) };
    let owner = note.get(12..NOTE_HEADER);
    let is_ours = word(0) == Some(4)
        && word(8) == Some(FW_NOTE_TYPE)
        && owner == Some(FW_NOTE_OWNER.as_slice());
    if !is_ours {
        return Err(damaged(".note.pto is not a note of owner PTO and type 1"));
    }
    let body_bytes = word(4).and_then(|bytes| usize::try_from(bytes).ok());
    let body = body_bytes.and_then(|bytes| note.get(NOTE_HEADER..)?.get(..bytes));
    let body = body.ok_or_else(|| damaged("its note is cut"))?;
    let fixed = body.get(..size_of::<FwIdentity>()).ok_or_else(|| damaged("its note is cut"))?;
    let fixed: FwIdentity = pod_read_unaligned(fixed);
    if fixed.magic != FW_MAGIC {
        return Err(damaged(format!("FwIdentity.magic is {:#x}", fixed.magic)));
    }
    if fixed.identity_bytes as usize != size_of::<FwIdentity>() {
        return Err(damaged(format!("FwIdentity.identity_bytes is {}", fixed.identity_bytes)));
    }
    if fixed.features & !FW_TRACES != 0 {
        return Err(damaged(format!("FwIdentity.features is {:#x}", fixed.features)));
    }
    Ok(Identity {
        kind: kind_of(fixed.kind)?,
        abi: (fixed.abi_major, fixed.abi_minor),
        layout_hash: Some(fixed.layout_hash),
        tracing: Tracing::of(fixed.features),
        builders: names(&fixed, &body[size_of::<FwIdentity>()..])?,
        kernels: Vec::new(),
        checksum: fixed.checksum,
        checksum_at: offset + NOTE_HEADER + offset_of!(FwIdentity, checksum),
    })
}

fn kind_of(kind: [u8; 16]) -> Result<ImageKind, ImageError> {
    match kind {
        FW_KIND_QEMU => Ok(ImageKind::Qemu),
        FW_KIND_CANN => Ok(ImageKind::Cann),
        aicore::KIND => Ok(ImageKind::Aicore),
        other => Err(ImageError::UnknownKind {
            found: other.escape_ascii().to_string().replace("\\x00", ""),
        }),
    }
}

/// The builders: each name ends with a zero, and the last zero ends the section.
fn names(fixed: &FwIdentity, bytes: &[u8]) -> Result<Vec<String>, ImageError> {
    let wrong = |field: &str, value: u32| damaged(format!("FwIdentity.{field} is {value}"));
    if fixed.names_bytes as usize != bytes.len() {
        return Err(wrong("names_bytes", fixed.names_bytes));
    }
    let Some(text) = bytes.strip_suffix(&[0]) else {
        let none = bytes.is_empty() && fixed.builder_count == 0;
        return if none { Ok(Vec::new()) } else { Err(damaged("its names do not end")) };
    };
    let names = text.split(|byte| *byte == 0).map(|name| String::from_utf8(name.to_vec()));
    let names: Vec<_> =
        names.collect::<Result<_, _>>().map_err(|_| damaged("a builder's name is not UTF-8"))?;
    if names.len() != fixed.builder_count as usize {
        return Err(wrong("builder_count", fixed.builder_count));
    }
    match names.iter().find(|name| name.is_empty() || name.contains(char::is_control)) {
        Some(name) => Err(damaged(format!("{name:?} is no name of a builder"))),
        None => Ok(names),
    }
}

/// Checks that the parts of an image are at the addresses from which its device can load them.
fn check_place(elf: &Elf<'_>, kind: ImageKind) -> Result<(), ImageError> {
    let field = |field, found, expected: String| ImageError::Field { field, found, expected };
    match kind {
        ImageKind::Qemu => {
            let room = qemu::IMAGE_ADDRESS..=qemu::IMAGE_ADDRESS + qemu::IMAGE_BYTES;
            if elf.machine != Machine::Aarch64 {
                return Err(ImageError::Machine { found: elf.machine.to_string() });
            }
            if elf.file_type != ET_EXEC {
                return Err(field("e_type", elf.file_type.into(), "2: an executable".into()));
            }
            if elf.entry != qemu::IMAGE_ADDRESS {
                return Err(field("e_entry", elf.entry, format!("{:#x}", qemu::IMAGE_ADDRESS)));
            }
            let outside = elf.loaded().find(|part| {
                let end = part.address.saturating_add(part.memory_bytes);
                part.memory_bytes > 0 && !(room.contains(&part.address) && room.contains(&end))
            });
            let expected = || format!("within {:#x} to {:#x}", room.start(), room.end());
            outside.map_or(Ok(()), |part| Err(field("p_vaddr", part.address, expected())))
        }
        ImageKind::Cann | ImageKind::Kernels | ImageKind::Aicore if elf.file_type != ET_DYN => {
            Err(field("e_type", elf.file_type.into(), "3: position-independent".into()))
        }
        ImageKind::Aicore if elf.section(aicore::WORKER_SECTION).is_none() => {
            Err(damaged("it has no worker"))
        }
        ImageKind::Cann | ImageKind::Kernels | ImageKind::Aicore => Ok(()),
    }
}

fn of_blob(elf: &Elf<'_>) -> Result<Identity, ImageError> {
    let first = elf.loaded().find(|part| part.address == 0 && part.file_bytes > 0);
    let offset = first.and_then(|part| usize::try_from(part.offset).ok());
    let blob = blob::flat(elf);
    let header = blob.get(..size_of::<KernelBlobHeader>());
    let (Some(offset), Some(header)) = (offset, header) else {
        return Err(ImageError::NoIdentity);
    };
    let header: KernelBlobHeader = pod_read_unaligned(header);
    if header.magic != KERNEL_BLOB_MAGIC {
        return Err(ImageError::NoIdentity);
    }
    check_place(elf, ImageKind::Kernels)?;
    Ok(Identity {
        kind: ImageKind::Kernels,
        abi: (header.abi_major, header.abi_minor),
        layout_hash: None,
        tracing: Tracing::Off,
        builders: Vec::new(),
        kernels: blob::kernels(elf.machine, &header, &blob)?,
        checksum: header.checksum,
        checksum_at: offset + offset_of!(KernelBlobHeader, checksum),
    })
}
