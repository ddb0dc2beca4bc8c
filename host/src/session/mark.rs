//! A position in a stream, whose passing can be asked for later.

use std::fmt;
use std::sync::Arc;

use super::stream_core::StreamCore;

/// A position in the commands of a stream: after everything that was submitted when the mark was made (`Stream::mark`) or moved on. Unlike an
/// event it is no command, and takes no memory of the device.
pub struct StreamMark {
    core: Arc<StreamCore>,
    number: u64,
}

impl StreamMark {
    pub(super) fn of(core: &Arc<StreamCore>) -> Self {
        Self { core: Arc::clone(core), number: core.commands() }
    }

    /// Whether it is a position in the stream of this core.
    #[inline]
    pub(super) fn is_of(&self, core: &Arc<StreamCore>) -> bool {
        Arc::ptr_eq(&self.core, core)
    }

    /// Moves after everything that is submitted now.
    #[inline]
    pub fn move_on(&mut self) {
        self.number = self.core.commands();
    }

    /// Whether everything before it is over, or was skipped.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        self.core.completed() >= self.number
    }
}

impl fmt::Debug for StreamMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at command {}", self.core.id, self.number)
    }
}
