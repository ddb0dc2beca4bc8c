//! The windows of this rank: memory that other ranks put to and get from.

use std::collections::HashMap;

use crate::ranks::group::Span;

/// Why a rank refuses an access to a window of its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Refusal {
    NoWindow = 1,
    OutOfWindow = 2,
    NoSlot = 3,
}

impl Refusal {
    pub(crate) fn of(code: u64) -> Option<Self> {
        [Self::NoWindow, Self::OutOfWindow, Self::NoSlot]
            .into_iter()
            .find(|one| *one as u64 == code)
    }
}

/// By number.
#[derive(Debug, Default)]
pub(crate) struct Windows(HashMap<u32, Span>);

impl Windows {
    pub(crate) fn map(&mut self, window: u32, memory: Span) {
        self.0.insert(window, memory);
    }

    /// A part of a window, where all of it lies inside.
    pub(crate) fn part(&self, window: u32, offset: u64, bytes: u64) -> Result<Span, Refusal> {
        let whole = self.0.get(&window).ok_or(Refusal::NoWindow)?;
        whole.part(offset, bytes).ok_or(Refusal::OutOfWindow)
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusal, Windows};
    use crate::ranks::group::Span;

    #[test]
    fn an_access_stays_inside_of_its_window() {
        let mut windows = Windows::default();
        windows.map(3, Span { address: 4096, bytes: 64 });
        assert_eq!(windows.part(3, 8, 56), Ok(Span { address: 4104, bytes: 56 }));
        assert_eq!(windows.part(3, 64, 0), Ok(Span { address: 4160, bytes: 0 }));
        assert_eq!(windows.part(3, 8, 57), Err(Refusal::OutOfWindow));
        assert_eq!(windows.part(3, u64::MAX, 2), Err(Refusal::OutOfWindow));
        assert_eq!(windows.part(2, 0, 1), Err(Refusal::NoWindow));
        assert_eq!(Refusal::of(2), Some(Refusal::OutOfWindow));
        assert_eq!(Refusal::of(9), None);
    }
}
