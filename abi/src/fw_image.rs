//! What a firmware image says of itself: its identity ([`FwIdentity`], in a section of the ELF file) and, for
//! kernels, the table of a blob ([`KernelBlobHeader`]). [`boot`] is how host and image meet on the device `qemu`.

use crate::layout::LAYOUT_HASH;
use crate::runtime::{ABI_MAJOR, ABI_MINOR};

pub use crate::fw_bytes::blob::{
    KERNEL_BLOB_MAGIC, KERNEL_NAME_BYTES, KernelBlobEntry, KernelBlobHeader,
};
pub use crate::fw_bytes::boot;
pub use crate::fw_bytes::boot::{
    BOOT_MAGIC, BootBlock, BootHeader, ExceptionFrame, FW_OFF, FW_REFUSED, FW_STARTED,
    FirmwareLine, LaunchLine, LaunchOrder, VCPU_DEAD, VCPU_INSTANCE, VCPU_OFF, VCPU_READY,
    VCPU_WORKER, VcpuLine, qemu,
};
pub use crate::fw_bytes::identity::{FW_MAGIC, FwIdentity};

/// The section of an image that holds its [`FwElfNote`].
pub const FW_NOTE_SECTION: &str = ".note.pto";
/// `FwIdentity::kind` of an image for the device `qemu`.
pub const FW_KIND_QEMU: [u8; 16] = *b"qemu\0\0\0\0\0\0\0\0\0\0\0\0";

/// `FwIdentity::features`: the image traces runs that ask for it.
pub const FW_TRACES: u64 = 1;

/// An image's identity with the names of its builders, as an [`FwElfNote`] holds it.
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

/// Whether an earlier name is equal to name `at`.
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

/// The content of [`FW_NOTE_SECTION`]: an ELF note of [`FW_NOTE_OWNER`], well-formed, because one segment may
/// hold this section and the build id.
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

    /// The note of an image with these features; see [`FwIdentity`].
    #[must_use]
    pub const fn with_features(mut self, features: u64) -> Self {
        self.body.identity.features = features;
        self
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{FW_KIND_QEMU, FwNote, names_bytes};

    #[test]
    fn a_note_holds_its_names() {
        // A builder with two programs is one builder.
        const NAMES: &[&str] = &["chain", "fork_join", "chain"];
        let note = FwNote::<{ names_bytes(NAMES) }>::new(FW_KIND_QEMU, NAMES);
        assert_eq!(&note.names, b"chain\0fork_join\0");
        assert_eq!((note.identity.builder_count, note.identity.names_bytes), (2, 16));
    }
}
