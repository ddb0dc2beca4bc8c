//! Why an expansion stopped, and where in the plan.

use pto_abi::fault::Fault;

/// A fault with its place: the word of the plan at which the walk was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// What happened.
    pub fault: Fault,
    /// The word of the plan.
    pub at: usize,
    /// What was found.
    pub found: u64,
    /// What was expected, or the limit.
    pub limit: u64,
}

impl Stop {
    /// A fault at a word of the plan.
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
