//! Structures as the vendor's libraries get them, byte by byte: every byte has a value, or is said to be free.

use std::ffi::c_void;

use crate::Code;

pub(crate) const BAD_ARGUMENT: Code = 107_000;

/// Why a call is refused: its code and a sentence.
pub(crate) type Refusal = (Code, String);

/// Refuses an argument.
pub(crate) fn refuse<T>(sentence: impl Into<String>) -> Result<T, Refusal> {
    Err((BAD_ARGUMENT, sentence.into()))
}

/// The bytes of a structure that the caller passes.
pub(crate) fn bytes_at(name: &str, start: *const c_void, bytes: usize) -> Result<Vec<u8>, Refusal> {
    if start.is_null() {
        return refuse(format!("{name} is null"));
    }
    let mut copy = vec![0; bytes];
    // SAFETY: the caller passes a structure of this size, which the interface obliges it to.
    unsafe { std::ptr::copy_nonoverlapping(start.cast::<u8>(), copy.as_mut_ptr(), bytes) };
    Ok(copy)
}

/// What the bytes of a structure must be. What is not named must be zero.
pub(crate) struct Expected {
    name: &'static str,
    bytes: Vec<Option<u8>>,
}

impl Expected {
    pub(crate) fn new(name: &'static str, bytes: usize) -> Self {
        Self { name, bytes: vec![Some(0); bytes] }
    }

    /// At `offset` stand these bytes.
    pub(crate) fn holds(mut self, offset: usize, bytes: &[u8]) -> Self {
        for (slot, byte) in self.bytes[offset..].iter_mut().zip(bytes) {
            *slot = Some(*byte);
        }
        self
    }

    /// At `offset` may stand anything.
    pub(crate) fn free(mut self, offset: usize, bytes: usize) -> Self {
        self.bytes[offset..offset + bytes].fill(None);
        self
    }

    /// The first byte that is not as it must be.
    pub(crate) fn check(&self, found: &[u8]) -> Result<(), Refusal> {
        let pairs = self.bytes.iter().zip(found).enumerate();
        let wrong =
            pairs.into_iter().find(|(_, (byte, found))| byte.is_some_and(|byte| byte != **found));
        match wrong {
            None if found.len() == self.bytes.len() => Ok(()),
            None => {
                refuse(format!("{} has {} bytes, not {}", self.name, found.len(), self.bytes.len()))
            }
            Some((at, (byte, found))) => refuse(format!(
                "{}: byte {at} is {found:#04x}, and must be {:#04x}",
                self.name,
                byte.unwrap_or(0)
            )),
        }
    }
}

/// A number in a structure.
pub(crate) fn word(bytes: &[u8], offset: usize) -> u64 {
    bytes
        .get(offset..offset + 8)
        .and_then(|word| word.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

/// A smaller one.
pub(crate) fn half(bytes: &[u8], offset: usize) -> u32 {
    bytes
        .get(offset..offset + 4)
        .and_then(|word| word.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::Expected;

    #[test]
    fn every_byte_that_is_not_free_is_compared() {
        let expected = || Expected::new("a structure", 16).holds(0, &[1, 2]).free(8, 4);
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&[1, 2]);
        bytes[9] = 77;
        expected().check(&bytes).unwrap();
        for at in (0..8).chain(12..16) {
            let mut wrong = bytes;
            wrong[at] ^= 0x80;
            let (_, sentence) = expected().check(&wrong).unwrap_err();
            assert!(sentence.contains(&format!("byte {at} is")), "{sentence}");
        }
        assert!(expected().check(&bytes[..15]).is_err());
    }
}
