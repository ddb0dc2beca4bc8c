//! Addresses that a program sees instead of those of the device's memory.
//!
//! A platform may keep a program from following addresses of the device as pointers: the program gets addresses of memory that may not be
//! touched, as far from each other as those of the device. Addresses that it passes back are translated to the device's.

use pto_abi::GmAddr;
use pto_abi::foreign::StreamTensor;

/// A translation of addresses; by default a program sees those of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alias {
    device: u64,
    seen: u64,
    bytes: u64,
}

impl Alias {
    /// `bytes` bytes of the device's memory from `device` on are seen from `seen` on.
    #[must_use]
    pub const fn new(device: GmAddr, seen: u64, bytes: u64) -> Self {
        Self { device: device.0, seen, bytes }
    }

    /// The word that a program sees for a word of the device: one in the device's memory is taken for an address.
    #[must_use]
    pub const fn seen(self, word: u64) -> u64 {
        moved(word, self.device, self.seen, self.bytes)
    }

    /// The word of the device for one that a program passes.
    #[must_use]
    pub const fn device(self, word: u64) -> u64 {
        moved(word, self.seen, self.device, self.bytes)
    }

    /// The device's address that a program followed when it reached `pointer`; `None`: another one.
    #[must_use]
    pub const fn followed(self, pointer: u64) -> Option<GmAddr> {
        let is_ours = pointer.wrapping_sub(self.seen) < self.bytes;
        if is_ours { Some(GmAddr(self.device(pointer))) } else { None }
    }

    /// A tensor that a program passes.
    #[must_use]
    pub const fn device_tensor(self, tensor: &StreamTensor) -> StreamTensor {
        StreamTensor { base: GmAddr(self.device(tensor.base.0)), ..*tensor }
    }

    /// A tensor that a program gets.
    #[must_use]
    pub const fn seen_tensor(self, tensor: &StreamTensor) -> StreamTensor {
        StreamTensor { base: GmAddr(self.seen(tensor.base.0)), ..*tensor }
    }
}

const fn moved(word: u64, from: u64, to: u64, bytes: u64) -> u64 {
    let offset = word.wrapping_sub(from);
    if offset < bytes { to.wrapping_add(offset) } else { word }
}

#[cfg(test)]
mod tests {
    use super::Alias;
    use pto_abi::GmAddr;

    #[test]
    fn addresses_of_the_device_are_seen_elsewhere_and_come_back() {
        let alias = Alias::new(GmAddr(0x1000), 0x9000, 0x100);
        for (device, seen) in [(0x1000, 0x9000), (0x10FF, 0x90FF), (0x1100, 0x1100), (7, 7)] {
            assert_eq!((alias.seen(device), alias.device(seen)), (seen, device));
        }
        assert_eq!(alias.followed(0x9010), Some(GmAddr(0x1010)));
        assert_eq!((alias.followed(0x9100), alias.followed(0x1000)), (None, None));
    }

    #[test]
    fn without_one_every_word_is_its_own() {
        let none = Alias::default();
        assert_eq!((none.seen(0), none.device(u64::MAX), none.followed(0)), (0, u64::MAX, None));
    }
}
