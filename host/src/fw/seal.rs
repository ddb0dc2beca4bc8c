//! The checksum inside an image. `pto fw build` seals what it has built; damage on the way to a device is found
//! wherever it is in the file.

use sha2::{Digest, Sha256};

use super::elf::Elf;
use super::identity;
use crate::fw::error::ImageError;

/// What is known of an image's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// The image has no seal: cargo built it, and it was not sealed afterwards.
    Open,
    /// It is this, and the content is what was sealed.
    Whole(u64),
    /// The content is not what was sealed.
    Broken {
        /// In the image.
        sealed: u64,
        /// Computed.
        found: u64,
    },
}

/// Seals an image: writes its checksum into it, and returns it.
///
/// # Errors
/// What is wrong with the file.
pub fn seal(file: &mut [u8]) -> Result<u64, ImageError> {
    let at = identity::read(&Elf::parse(file)?)?.checksum_at;
    let checksum = compute(file, at);
    if let Some(place) = file.get_mut(at..at + 8) {
        place.copy_from_slice(&checksum.to_le_bytes());
    }
    Ok(checksum)
}

/// Compares a file with the checksum in it.
pub(crate) fn examine(file: &[u8], sealed: u64, at: usize) -> Seal {
    match compute(file, at) {
        _ if sealed == 0 => Seal::Open,
        found if found == sealed => Seal::Whole(sealed),
        found => Seal::Broken { sealed, found },
    }
}

/// The first eight bytes of the SHA-256 of the file with zeros in place of the checksum. Never zero.
fn compute(file: &[u8], at: usize) -> u64 {
    let (before, rest) = file.split_at(at.min(file.len()));
    let digest = Sha256::new()
        .chain_update(before)
        .chain_update([0; 8])
        .chain_update(rest.get(8..).unwrap_or(&[]))
        .finalize();
    digest.first_chunk().map_or(1, |bytes| u64::from_le_bytes(*bytes)).max(1)
}

/// The SHA-256 of a file, as text.
pub(crate) fn sha256(file: &[u8]) -> String {
    hex(&Sha256::digest(file))
}

/// Bytes as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
