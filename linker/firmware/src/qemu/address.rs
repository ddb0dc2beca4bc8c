//! Device addresses as addresses of this machine: the map is the identity.

const _: () = assert!(usize::BITS == 64, "an address is a word");

/// The address, or index, as Rust counts.
#[inline]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits, asserted above")]
pub(crate) const fn address(word: u64) -> usize {
    word as usize
}
