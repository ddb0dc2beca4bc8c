//! A tile kernel that was checked.

use pto_aicore_kernels::tile::{Kernel, Op, Param};

/// A kernel that was checked.
#[derive(Clone, Debug)]
pub struct TileKernel {
    code: Kernel,
}

impl PartialEq for TileKernel {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.code, &other.code);
        ours.name() == theirs.name()
            && ours.params() == theirs.params()
            && ours.ops().eq(theirs.ops())
    }
}

impl TileKernel {
    /// A kernel that was accepted elsewhere.
    #[must_use]
    pub const fn new(code: Kernel) -> Self {
        Self { code }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.code.name().as_str()
    }

    /// The parameters.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        self.code.params()
    }

    /// The instructions.
    pub fn ops(&self) -> impl ExactSizeIterator<Item = &Op> {
        self.code.ops()
    }

    /// What the tile machine runs.
    #[must_use]
    pub const fn code(&self) -> &Kernel {
        &self.code
    }
}
