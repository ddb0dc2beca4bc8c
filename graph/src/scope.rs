//! Scopes: where tensors of the heap end, and where the edges of their tasks come from.

use pto_abi::closed_set;

closed_set! {
    /// Where the edges of the tasks of a scope come from.
    pub struct DependencyMode(u8) {
        /// Edges come from the tensors, and from `after`.
        DERIVED = 0, "derived";
        /// From `after` only. Accesses are noted: tasks of derived scopes wait for them.
        EXPLICIT = 1, "explicit";
        /// From `after` only, and nothing is noted: for the derived scopes the tasks touch no tensor.
        MANUAL = 2, "manual";
    }
}

/// A scope that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopeId {
    /// How many scopes are around it.
    pub depth: u32,
    /// The scope's number in the run.
    pub serial: u64,
}
