//! The windows of this rank: memory that other ranks put to and get from.

use std::collections::HashMap;

use crate::ranks::group::ByteRange;

/// Why a rank refuses an access to a window of its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum WindowError {
    NoWindow = 1,
    OutOfWindow = 2,
    NoSlot = 3,
}

impl WindowError {
    pub(crate) fn of(code: u64) -> Option<Self> {
        [Self::NoWindow, Self::OutOfWindow, Self::NoSlot]
            .into_iter()
            .find(|one| *one as u64 == code)
    }
}

/// By number.
#[derive(Debug, Default)]
pub(crate) struct Windows(HashMap<u32, ByteRange>);

impl Windows {
    pub(crate) fn map(&mut self, window: u32, memory: ByteRange) {
        self.0.insert(window, memory);
    }

    /// A part of a window, where all of it lies inside.
    pub(crate) fn part(
        &self,
        window: u32,
        offset: u64,
        bytes: u64,
    ) -> Result<ByteRange, WindowError> {
        let whole = self.0.get(&window).ok_or(WindowError::NoWindow)?;
        whole.part(offset, bytes).ok_or(WindowError::OutOfWindow)
    }
}

#[cfg(test)]
mod tests {
    use super::{WindowError, Windows};
    use crate::ranks::group::ByteRange;

    #[test]
    fn an_access_stays_inside_of_its_window() {
        let mut windows = Windows::default();
        windows.map(3, ByteRange { address: 4096, bytes: 64 });
        assert_eq!(windows.part(3, 8, 56), Ok(ByteRange { address: 4104, bytes: 56 }));
        assert_eq!(windows.part(3, 64, 0), Ok(ByteRange { address: 4160, bytes: 0 }));
        assert_eq!(windows.part(3, 8, 57), Err(WindowError::OutOfWindow));
        assert_eq!(windows.part(3, u64::MAX, 2), Err(WindowError::OutOfWindow));
        assert_eq!(windows.part(2, 0, 1), Err(WindowError::NoWindow));
        assert_eq!(WindowError::of(2), Some(WindowError::OutOfWindow));
        assert_eq!(WindowError::of(9), None);
    }
}
