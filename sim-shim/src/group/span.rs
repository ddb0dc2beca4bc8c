//! Bytes in the GM of a device that is simulated in this process.

use std::ptr;

/// Bytes of GM; the address is one of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByteRange {
    /// The first one.
    pub address: u64,
    /// How many.
    pub bytes: u64,
}

impl ByteRange {
    /// The part of it that begins at `offset` and has so many bytes; `None`: it does not lie in it.
    #[must_use]
    pub fn part(self, offset: u64, bytes: u64) -> Option<Self> {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.bytes)?;
        Some(Self { address: self.address.checked_add(end - bytes)?, bytes })
    }

    /// Whether `other` lies in it.
    #[must_use]
    pub fn holds(self, other: Self) -> bool {
        let offset = other.address.checked_sub(self.address);
        other.bytes == 0 || offset.is_some_and(|offset| self.part(offset, other.bytes).is_some())
    }

    /// Copies these bytes to `target`, as many as both have. They may overlap.
    ///
    /// # Safety
    /// Both ranges are mapped in this process. During the call no other thread writes these bytes or accesses those of `target`.
    pub unsafe fn copy_to(self, target: Self) {
        let bytes = usize::try_from(self.bytes.min(target.bytes)).unwrap_or(0);
        let address = |span: Self| usize::try_from(span.address).unwrap_or(0);
        let from = ptr::with_exposed_provenance::<u8>(address(self));
        let to = ptr::with_exposed_provenance_mut::<u8>(address(target));
        // SAFETY: the caller promises that both are mapped and apart from others' accesses.
        unsafe { ptr::copy(from, to, bytes) };
    }

    /// The `u32` at the start.
    ///
    /// # Safety
    /// The range is mapped in this process, and no other thread writes it during the call.
    #[must_use]
    pub unsafe fn read_u32(self) -> Option<u32> {
        let address = usize::try_from(self.address).ok().filter(|_| self.bytes >= 4)?;
        let at = ptr::with_exposed_provenance::<u32>(address);
        // SAFETY: the caller promises that it is mapped; the read needs no alignment.
        Some(unsafe { at.read_unaligned() })
    }
}

#[cfg(test)]
mod tests {
    use super::ByteRange;

    #[test]
    fn a_part_lies_in_its_span() {
        let span = ByteRange { address: 100, bytes: 10 };
        assert_eq!(span.part(2, 8), Some(ByteRange { address: 102, bytes: 8 }));
        assert_eq!((span.part(3, 8), span.part(u64::MAX, 2)), (None, None));
        assert!(
            span.holds(ByteRange { address: 109, bytes: 1 }) && span.holds(ByteRange::default())
        );
        assert!(!span.holds(ByteRange { address: 110, bytes: 1 }));
        assert!(!span.holds(ByteRange { address: 99, bytes: 2 }));
    }
}
