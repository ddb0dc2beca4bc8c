//! Which kernels a block of a task has, and thus which cores of a cluster it needs.

use pto_abi::CoreKind;
use pto_abi::stream::MAX_LANES;

/// Kernels that a block may have: all lanes but none.
pub const LANE_SETS: usize = 1 << MAX_LANES;

/// Which parts a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes(pub u8);

impl Lanes {
    /// One kernel, on a core of this kind.
    #[must_use]
    pub const fn one(kind: CoreKind) -> Self {
        Self(1 << kind.index())
    }

    /// Whether there is a kernel for a lane: 0 for the cube core, 1 and 2 for the vector cores.
    #[must_use]
    pub const fn has(self, lane: usize) -> bool {
        self.0 >> lane & 1 == 1
    }

    /// How many kernels.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The kind of core, where one core is enough.
    #[must_use]
    pub const fn single(self) -> Option<CoreKind> {
        match self.0 {
            1 => Some(CoreKind::AIC),
            2 => Some(CoreKind::AIV),
            _ => None,
        }
    }
}
