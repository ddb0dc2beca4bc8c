//! Messages between progress threads on [`Channel::Control`](crate::table::Channel): frames of one fixed header, followed by few bytes.
//!
//! ```text
//! Hello (process, name of the host) · Meet (round, word) · Ended · Beat · Failed (root, text) · Leave
//! Send (tag, stamp, bytes [contents]) · Put (window, offset, bytes, slot, value [contents]) · Get (window, offset, bytes) · Signal (slot, value)
//! Done (number) · Refused (number, reason) · Ask · Waits (tag, stamp, bytes)
//! ```
//! Contents that fit are in the frame. Longer ones follow on [`Channel::Payload`](crate::table::Channel) under the tag that the header names.

/// Words of a header.
const WORDS: usize = 12;
/// Bytes of a header.
const HEADER_BYTES: usize = WORDS * 8;
/// Bytes of a whole frame.
pub(crate) const FRAME_BYTES: usize = 4096;
/// Contents up to so many bytes are in the frame.
pub(crate) const INLINE_BYTES: usize = FRAME_BYTES - HEADER_BYTES;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Kind {
    Hello = 1,
    Meet,
    Ended,
    Beat,
    Failed,
    Leave,
    Send,
    Put,
    Get,
    Signal,
    Done,
    Refused,
    Ask,
    Waits,
}

impl Kind {
    const ALL: [Self; 14] = [
        Self::Hello,
        Self::Meet,
        Self::Ended,
        Self::Beat,
        Self::Failed,
        Self::Leave,
        Self::Send,
        Self::Put,
        Self::Get,
        Self::Signal,
        Self::Done,
        Self::Refused,
        Self::Ask,
        Self::Waits,
    ];
}

/// The header of a frame. What a kind does not use is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// The run that it belongs to.
    pub(crate) run: u64,
    /// Of the transfer at the rank that started it; of a meeting, its round.
    pub(crate) number: u64,
    /// The program's tag.
    pub(crate) tag: u128,
    /// What both sides must agree on.
    pub(crate) stamp: u128,
    /// How long the contents are.
    pub(crate) bytes: u64,
    /// The tag of the payload; 0: the contents are in the frame.
    pub(crate) payload: u64,
    /// Window and slot.
    pub(crate) window_slot: (u32, u32),
    /// From the beginning of the window.
    pub(crate) offset: u64,
    /// What a signal adds; the word of a meeting; the root of a failure.
    pub(crate) value: u64,
}

impl Header {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self {
            kind,
            run: 0,
            number: 0,
            tag: 0,
            stamp: 0,
            bytes: 0,
            payload: 0,
            window_slot: (0, 0),
            offset: 0,
            value: 0,
        }
    }

    /// The frame, with contents that fit.
    pub(crate) fn frame(&self, contents: &[u8]) -> Box<[u8]> {
        debug_assert!(contents.len() <= INLINE_BYTES);
        let (window, slot) = self.window_slot;
        let words = [
            self.kind as u64,
            self.run,
            self.number,
            low_half(self.tag),
            low_half(self.tag >> 64),
            low_half(self.stamp),
            low_half(self.stamp >> 64),
            self.bytes,
            self.payload,
            u64::from(window) | u64::from(slot) << 32,
            self.offset,
            self.value,
        ];
        let header = words.iter().flat_map(|word| word.to_le_bytes());
        header.chain(contents.iter().copied()).collect()
    }

    /// Reads a frame. `None`: it is none of ours.
    pub(crate) fn read(frame: &[u8]) -> Option<(Self, &[u8])> {
        let (header, contents) = frame.split_at_checked(HEADER_BYTES)?;
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(header.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let [kind, run, number, tag, tag_above, stamp, stamp_above, rest @ ..] = words;
        let [bytes, payload, window_slot, offset, value] = rest;
        let whole = |low: u64, above: u64| u128::from(low) | u128::from(above) << 64;
        let (tag, stamp) = (whole(tag, tag_above), whole(stamp, stamp_above));
        let kind = Kind::ALL.into_iter().find(|known| *known as u64 == kind)?;
        let window_slot = (low(window_slot), low(window_slot >> 32));
        let header =
            Self { kind, run, number, tag, stamp, bytes, payload, window_slot, offset, value };
        Some((header, contents))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
const fn low(word: u64) -> u32 {
    word as u32
}

const fn low_half(word: u128) -> u64 {
    (word & 0xFFFF_FFFF_FFFF_FFFF) as u64
}

#[cfg(test)]
mod tests {
    use super::{FRAME_BYTES, Header, INLINE_BYTES, Kind};

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        for kind in Kind::ALL {
            let header = Header {
                kind,
                run: 3,
                number: 1,
                tag: 2 | 3 << 64,
                stamp: u128::MAX - 1,
                bytes: 4,
                payload: 5,
                window_slot: (6, u32::MAX),
                offset: 8,
                value: 9,
            };
            let contents = vec![7; INLINE_BYTES];
            let frame = header.frame(&contents);
            assert_eq!(frame.len(), FRAME_BYTES);
            assert_eq!(Header::read(&frame), Some((header, contents.as_slice())));
        }
    }

    #[test]
    fn what_is_no_frame_is_not_read() {
        let frame = Header::new(Kind::Beat).frame(&[]);
        assert_eq!(Header::read(&frame[1..]), None);
        assert_eq!(Header::read(&[0xff; FRAME_BYTES]), None);
    }
}
