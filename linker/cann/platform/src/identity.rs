//! What the image says of itself, readable without running it: an ELF note in section `.note.pto` with the
//! owner "PTO", whose body is `pto_abi::fw_image::FwNote`.
//!
//! A well-formed note, because the section stands in the same segment as the build id, for which the driver
//! stack walks the notes.

use pto_abi::fw_image::{FwIdentity, FwNote};
use pto_abi::launch_record::FW_KIND_CANN;

/// The type of our note.
pub const NOTE_TYPE: u32 = 1;

/// The note.
#[repr(C, align(8))]
pub struct IdentityNote<const NAMES_BYTES: usize> {
    name_bytes: u32,
    body_bytes: u32,
    note_type: u32,
    name: [u8; 4],
    body: FwNote<NAMES_BYTES>,
}

impl<const NAMES_BYTES: usize> IdentityNote<NAMES_BYTES> {
    /// The note of an image with these builders.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "an image's names are far below 4 GiB")]
    pub const fn new(builders: &[&str]) -> Self {
        Self {
            name_bytes: 4,
            body_bytes: (size_of::<FwIdentity>() + NAMES_BYTES) as u32,
            note_type: NOTE_TYPE,
            name: *b"PTO\0",
            body: FwNote::new(FW_KIND_CANN, builders),
        }
    }
}
