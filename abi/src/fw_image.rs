//! What a firmware image says of itself: its identity ([`FwIdentity`], in a section of the ELF file) and, for
//! kernels, the table of a blob ([`KernelBlobHeader`]). [`boot`] is how host and image meet on the device `virt`.

pub mod boot;

use bytemuck::{Pod, Zeroable};

use crate::layout::LAYOUT_HASH;
use crate::runtime::{ABI_MAJOR, ABI_MINOR};
use crate::shared_struct;

pub use boot::{
    BOOT_MAGIC, BootBlock, BootHeader, ExceptionFrame, FW_OFF, FW_REFUSED, FW_STARTED,
    FirmwareLine, LaunchLine, LaunchOrder, VCPU_DEAD, VCPU_INSTANCE, VCPU_OFF, VCPU_READY,
    VCPU_WORKER, VcpuLine, virt,
};

/// `FwIdentity::magic`: "PTOFWIMG", little-endian.
pub const FW_MAGIC: u64 = u64::from_le_bytes(*b"PTOFWIMG");
/// The section of an image that holds its [`FwElfNote`].
pub const FW_NOTE_SECTION: &str = ".note.pto";
/// `FwIdentity::kind` of an image for the device `virt`.
pub const FW_KIND_VIRT: [u8; 16] = *b"virt\0\0\0\0\0\0\0\0\0\0\0\0";

shared_struct! {
    /// What a firmware image says of itself. The names of its builders follow, each ended by a zero byte.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct FwIdentity [size = 64, align = 8] {
        /// [`FW_MAGIC`].
        0 => magic: u64,
        /// `ABI_MAJOR`.
        8 => abi_major: u16,
        /// `ABI_MINOR`.
        10 => abi_minor: u16,
        /// Size of this struct.
        12 => identity_bytes: u32,
        /// `layout::LAYOUT_HASH`.
        16 => layout_hash: u64,
        /// The device that the image is for, padded with zeros.
        24 => kind: [u8; 16],
        /// How many builders are linked in.
        40 => builder_count: u32,
        /// Bytes of their names.
        44 => names_bytes: u32,
        /// Checksum of the file, as `pto fw build` seals it: the first eight bytes of the SHA-256 of the file with
        /// zero here. Zero: the file is not sealed.
        48 => checksum: u64,
        /// What the image can do beside: [`FW_TRACES`]. Other bits are zero.
        56 => features: u64,
    }
}

/// `FwIdentity::features`: the image traces runs that ask for it.
pub const FW_TRACES: u64 = 1;

/// An image's identity with the names of its builders, as it stands in an [`FwElfNote`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FwNote<const NAMES_BYTES: usize> {
    /// The identity.
    pub identity: FwIdentity,
    /// The names.
    pub names: [u8; NAMES_BYTES],
}

/// Bytes that [`FwNote::new`] needs for these names. A name that is there again, because a builder has a program for graphs and
/// one for tensors, counts once.
#[must_use]
pub const fn names_bytes(names: &[&str]) -> usize {
    let mut bytes = 0;
    let mut i = 0;
    while i < names.len() {
        if !is_repeated(names, i) {
            bytes += names[i].len() + 1;
        }
        i += 1;
    }
    bytes
}

/// Whether name `at` stands before already.
const fn is_repeated(names: &[&str], at: usize) -> bool {
    let mut before = 0;
    while before < at {
        if is_same(names[before].as_bytes(), names[at].as_bytes()) {
            return true;
        }
        before += 1;
    }
    false
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut byte = 0;
    while byte < one.len() {
        if one[byte] != other[byte] {
            return false;
        }
        byte += 1;
    }
    true
}

impl<const NAMES_BYTES: usize> FwNote<NAMES_BYTES> {
    /// The note of an image of this ABI. For constants: a wrong size fails the build.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "an image's names are far below 4 GiB")]
    pub const fn new(kind: [u8; 16], builders: &[&str]) -> Self {
        let mut names = [0; NAMES_BYTES];
        let (mut at, mut i, mut count) = (0, 0, 0);
        while i < builders.len() {
            if !is_repeated(builders, i) {
                let name = builders[i].as_bytes();
                let mut byte = 0;
                while byte < name.len() {
                    names[at + byte] = name[byte];
                    byte += 1;
                }
                at += name.len() + 1;
                count += 1;
            }
            i += 1;
        }
        assert!(at == NAMES_BYTES, "NAMES_BYTES is not names_bytes(builders)");
        let identity = FwIdentity {
            magic: FW_MAGIC,
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            identity_bytes: size_of::<FwIdentity>() as u32,
            layout_hash: LAYOUT_HASH,
            kind,
            builder_count: count,
            names_bytes: NAMES_BYTES as u32,
            checksum: 0,
            features: 0,
        };
        Self { identity, names }
    }
}

/// The owner of our ELF notes.
pub const FW_NOTE_OWNER: [u8; 4] = *b"PTO\0";
/// The type of the ELF note that holds an [`FwNote`].
pub const FW_NOTE_TYPE: u32 = 1;

/// The content of [`FW_NOTE_SECTION`]: an ELF note of [`FW_NOTE_OWNER`], well-formed, because the section may
/// stand in one segment with the build id.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct FwElfNote<const NAMES_BYTES: usize> {
    owner_bytes: u32,
    body_bytes: u32,
    note_type: u32,
    owner: [u8; 4],
    body: FwNote<NAMES_BYTES>,
}

impl<const NAMES_BYTES: usize> FwElfNote<NAMES_BYTES> {
    /// As [`FwNote::new`].
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "an image's names are far below 4 GiB")]
    pub const fn new(kind: [u8; 16], builders: &[&str]) -> Self {
        Self {
            owner_bytes: FW_NOTE_OWNER.len() as u32,
            body_bytes: (size_of::<FwIdentity>() + NAMES_BYTES) as u32,
            note_type: FW_NOTE_TYPE,
            owner: FW_NOTE_OWNER,
            body: FwNote::new(kind, builders),
        }
    }

    /// The note of an image that can do this beside; see [`FwIdentity`].
    #[must_use]
    pub const fn with_features(mut self, features: u64) -> Self {
        self.body.identity.features = features;
        self
    }
}

/// `KernelBlobHeader::magic`: "PTOKERNL", little-endian.
pub const KERNEL_BLOB_MAGIC: u64 = u64::from_le_bytes(*b"PTOKERNL");
/// Bytes of a kernel's name in a blob.
pub const KERNEL_NAME_BYTES: usize = 48;

shared_struct! {
    /// The start of a blob of kernels: position-independent code for GM, to be copied to any page. Its
    /// table of [`KernelBlobEntry`] follows.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct KernelBlobHeader [size = 64, align = 8] {
        /// [`KERNEL_BLOB_MAGIC`].
        0 => magic: u64,
        /// `ABI_MAJOR`.
        8 => abi_major: u16,
        /// `ABI_MINOR`.
        10 => abi_minor: u16,
        /// How many kernels.
        12 => kernel_count: u32,
        /// Size of the blob.
        16 => total_bytes: u64,
        /// As `FwIdentity::checksum`, of the blob's file.
        24 => checksum: u64,
        /// Not used; zero.
        32 => reserved: [u64; 4],
    }
}

shared_struct! {
    /// One kernel of a blob.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct KernelBlobEntry [size = 64, align = 8] {
        /// Its code, from the start of this entry (a distance, so that the blob needs no relocation).
        0 => distance: u64,
        /// Its func id.
        8 => func_id: u32,
        /// The `CoreKind` that it is for.
        12 => kind: u32,
        /// Its name, padded with zeros.
        16 => name: [u8; KERNEL_NAME_BYTES],
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{FW_KIND_VIRT, FwNote, names_bytes};

    #[test]
    fn a_note_holds_its_names() {
        // A builder with two programs is one builder.
        const NAMES: &[&str] = &["chain", "fork_join", "chain"];
        let note = FwNote::<{ names_bytes(NAMES) }>::new(FW_KIND_VIRT, NAMES);
        assert_eq!(&note.names, b"chain\0fork_join\0");
        assert_eq!((note.identity.builder_count, note.identity.names_bytes), (2, 16));
    }
}
