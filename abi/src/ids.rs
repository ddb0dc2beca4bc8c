//! Ids and addresses: indices, never pointers, between tasks.

use bytemuck::{Pod, Zeroable};
use core::fmt;

/// A device address in global memory (GM). On `a2a3sim` it is an address of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
pub struct GmAddr(pub u64);

impl GmAddr {
    /// No address.
    pub const NULL: Self = Self(0);

    /// The address `bytes` further on; wraps as the hardware's adder does (ranges are checked on use).
    #[must_use]
    #[inline]
    pub const fn offset(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// Whether this is [`GmAddr::NULL`].
    #[must_use]
    #[inline]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for GmAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Which kernel a task runs: an index into `kernel_addrs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
pub struct FuncId(pub u16);

impl FuncId {
    /// The index into `kernel_addrs`.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for FuncId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A task: its slot, and the generation of that slot, so that an id of an earlier run is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct TaskId {
    /// Index of the task's line in the task region.
    pub slot: u32,
    /// Generation of the slot; an id whose generation is over is stale.
    pub generation: u32,
}

impl TaskId {
    /// No task.
    pub const NONE: Self = Self { slot: u32::MAX, generation: 0 };
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.slot)
    }
}
