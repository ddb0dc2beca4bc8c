//! A builder that shares a launch with plans, as the host writes it and `sim-shim/src/builders/concurrent.rs` reads it.
//!
//! ```text
//! words of 64 bits:  builder's symbol | arguments a, a words | gate's func and kind | tensors t, t times base, bytes, is written
//! ```

use pto_abi::{CoreKind, FuncId, GmAddr};

/// A builder with its arguments, as the host writes it.
pub(super) struct BuilderWords<'w> {
    pub(super) builder: &'w str,
    pub(super) args: &'w [u64],
    /// A kernel that the device has; no core runs it.
    pub(super) gate: (FuncId, CoreKind),
    /// Where each tensor is, its bytes, and whether the program writes it.
    pub(super) tensors: &'w [(GmAddr, u64, bool)],
}

impl BuilderWords<'_> {
    /// The words.
    pub(super) fn words(&self) -> Vec<u64> {
        let mut words = vec![pto_graph::symbol(self.builder), self.args.len() as u64];
        words.extend(self.args);
        words.extend([self.gate.0.0.into(), self.gate.1.get().into(), self.tensors.len() as u64]);
        for (base, bytes, is_written) in self.tensors {
            words.extend([base.0, *bytes, (*is_written).into()]);
        }
        words
    }
}
