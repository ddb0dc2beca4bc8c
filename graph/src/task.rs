//! A task of one kernel on one core, as a graph builder adds it.

use pto_abi::ids::{FuncId, GmAddr};
use pto_abi::kinds::CoreKind;

/// A task to be added.
#[derive(Clone, Copy, Debug)]
pub struct TaskSpec<'a> {
    /// Which kernel.
    pub func_id: FuncId,
    /// Which cores it runs on.
    pub kind: CoreKind,
    /// GM addresses and scalars, at most [`MAX_ARGS`](pto_abi::limits::MAX_ARGS) words.
    pub args: &'a [u64],
    /// The kernel's code; [`GmAddr::NULL`]: as registered in `kernel_addrs[func_id]`.
    pub kernel: GmAddr,
}

impl<'a> TaskSpec<'a> {
    /// A task with the registered kernel.
    #[must_use]
    #[inline]
    pub const fn new(func_id: FuncId, kind: CoreKind, args: &'a [u64]) -> Self {
        Self { func_id, kind, args, kernel: GmAddr::NULL }
    }
}
