//! Why an expansion stopped, and where in the plan.

use pto_abi::fault::Fault;

/// A fault and the index of the plan's word at which the expansion stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The fault.
    pub fault: Fault,
    /// The index of the word in the plan.
    pub at: usize,
    /// The value that was found.
    pub found: u64,
    /// The value that was expected, or the limit that was exceeded.
    pub limit: u64,
}

impl Stop {
    /// Makes a fault at a word of the plan.
    #[cold]
    #[must_use]
    pub const fn new(fault: Fault, at: usize) -> Self {
        Self { fault, at, found: 0, limit: 0 }
    }

    /// What was found, and the limit.
    #[must_use]
    pub const fn detail(mut self, found: u64, limit: u64) -> Self {
        (self.found, self.limit) = (found, limit);
        self
    }
}
