//! A transfer as a task: its words, as a communicator writes them and a transfer engine reads them.
//!
//! | word | what |
//! |---|---|
//! | 0 | the tensor on this device: it is read, or written |
//! | 1 | its bytes; of a counted transfer: the most that it may have |
//! | 2 | a [`TransferKind`]; from bit 32 on the other rank |
//! | 3 | the lower half of the [tag](super::tag); sends and receives with equal tags meet, in their order |
//! | 4 | the lower half of the stamp, in which both sides of a transfer must agree |
//! | 5 | the window at the other rank; from bit 32 on the signal slot, or [`NO_SLOT`] |
//! | 6 | the offset in the window; of a send or a receive: the upper half of the tag |
//! | 7 | the value of the signal; of a send or a receive: the upper half of the stamp |
//! | 8 | of a counted transfer: the address of a `u32`, read when the transfer starts |
//! | 9 | of a counted transfer: bytes of each one that is counted; zero: it is not counted |

use pto_abi::closed_set;
use pto_abi::ids::GmAddr;

closed_set! {
    /// What a transfer does.
    pub struct TransferKind(u8) {
        /// Writes to a window of another rank, and signals it if that is wanted.
        PUT = 0, "put";
        /// Reads from a window of another rank.
        GET = 1, "get";
        /// Gives a tensor to the receive that has the same tag.
        SEND = 2, "send";
        /// Takes a tensor from the send that has the same tag.
        RECEIVE = 3, "receive";
        /// Adds to a signal slot of another rank.
        SIGNAL = 4, "signal";
        /// Is over when a signal slot of this rank has at least a value.
        WAIT = 5, "wait";
    }
}

/// No signal slot.
pub const NO_SLOT: u32 = u32::MAX;
/// Signal slots of each rank. All are zero when a run begins.
pub const SIGNAL_SLOTS: u32 = 256;
/// Words of a transfer.
pub const WORDS: usize = 10;

/// What a transfer is, apart from its tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What it does.
    pub kind: TransferKind,
    /// Where the tensor is on this device.
    pub local: GmAddr,
    /// The tensor's bytes; of a counted transfer: at most.
    pub bytes: u64,
    /// The other rank, of the whole group.
    pub peer: u32,
    /// Sends and receives with equal tags meet.
    pub tag: u128,
    /// Both sides must agree in it.
    pub stamp: u128,
    /// The window at the other rank.
    pub window: u32,
    /// The offset in the window.
    pub offset: u64,
    /// The signal slot, or [`NO_SLOT`].
    pub slot: u32,
    /// What is added to the slot, or waited for.
    pub value: u64,
    /// Where the count is, and the bytes of each one that is counted; `None`: it is not counted.
    pub count: Option<(GmAddr, u64)>,
}

impl Transfer {
    /// A transfer with nothing but these.
    #[must_use]
    pub const fn new(kind: TransferKind, peer: u32) -> Self {
        Self {
            kind,
            local: GmAddr::NULL,
            bytes: 0,
            peer,
            tag: 0,
            stamp: 0,
            window: 0,
            offset: 0,
            slot: NO_SLOT,
            value: 0,
            count: None,
        }
    }

    /// Its words. A send and a receive have no offset and no value.
    #[must_use]
    pub const fn words(&self) -> [u64; WORDS] {
        let (at, unit) = match self.count {
            Some((at, unit)) => (at.0, unit),
            None => (0, 0),
        };
        let head = self.kind.get() as u64 | (self.peer as u64) << 32;
        let window_and_slot = self.window as u64 | (self.slot as u64) << 32;
        let (g, h) = if self.meets() {
            (low_half(self.tag >> 64), low_half(self.stamp >> 64))
        } else {
            (self.offset, self.value)
        };
        let (tag, stamp) = (low_half(self.tag), low_half(self.stamp));
        let front = [self.local.0, self.bytes, head, tag, stamp, window_and_slot];
        let [a, b, c, d, e, f] = front;
        [a, b, c, d, e, f, g, h, at, unit]
    }

    /// What [`words`](Self::words) gave; `None`: no transfer has such words.
    #[must_use]
    pub fn of_words(words: &[u64; WORDS]) -> Option<Self> {
        let [local, bytes, head, tag, stamp, window_and_slot, g, h, at, unit] = *words;
        let low = |word: u64| (word & 0xFFFF_FFFF) as u32;
        let kind =
            u8::try_from(low(head)).ok().and_then(|kind| TransferKind::try_from(kind).ok())?;
        let mut found = Self::new(kind, low(head >> 32));
        let (above, offset, value) = if found.meets() { ([g, h], 0, 0) } else { ([0, 0], g, h) };
        let [tag_above, stamp_above] = above.map(|half| u128::from(half) << 64);
        (found.local, found.bytes) = (GmAddr(local), bytes);
        (found.tag, found.stamp) = (tag_above | u128::from(tag), stamp_above | u128::from(stamp));
        (found.window, found.slot) = (low(window_and_slot), low(window_and_slot >> 32));
        (found.offset, found.value) = (offset, value);
        found.count = (unit > 0).then_some((GmAddr(at), unit));
        Some(found)
    }

    /// Whether it meets another rank's transfer.
    #[must_use]
    pub const fn meets(&self) -> bool {
        matches!(self.kind, TransferKind::SEND | TransferKind::RECEIVE)
    }
}

const fn low_half(word: u128) -> u64 {
    (word & 0xFFFF_FFFF_FFFF_FFFF) as u64
}

#[cfg(test)]
mod tests {
    use super::{NO_SLOT, Transfer, TransferKind};
    use pto_abi::ids::GmAddr;

    #[test]
    fn a_transfer_survives_its_words() {
        for &kind in TransferKind::ALL {
            let plain = Transfer::new(kind, u32::MAX);
            let counted = Transfer { count: Some((GmAddr(64), 128)), slot: 7, ..plain };
            let full = Transfer { bytes: 1 << 40, tag: 8, stamp: 9, window: 3, ..counted };
            let own = match kind {
                TransferKind::SEND | TransferKind::RECEIVE => {
                    Transfer { tag: u128::MAX, stamp: u128::MAX - 1, ..full }
                }
                _ => Transfer { offset: u64::MAX, value: u64::MAX - 1, ..full },
            };
            for transfer in [plain, counted, full, own] {
                assert_eq!(Transfer::of_words(&transfer.words()), Some(transfer));
            }
            assert_eq!(plain.slot, NO_SLOT);
        }
        let mut words = Transfer::new(TransferKind::PUT, 0).words();
        words[2] = 99;
        assert_eq!(Transfer::of_words(&words), None);
    }
}
