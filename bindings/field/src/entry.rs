//! A task, as the program submitted it.

use crate::wire::ChipTensor;

/// A submission, or a call of `alloc_tensors`.
#[derive(Clone, Debug)]
pub struct TaskEntry {
    /// Ring and number in the ring, as the field counts.
    pub id: u64,
    /// In a scope MANUAL.
    pub is_manual: bool,
    /// AIC, AIV 0, AIV 1; negative: none.
    pub kernels: [i32; 3],
    /// Blocks.
    pub blocks: i32,
    /// All blocks start at once.
    pub starts_at_once: bool,
    /// Each with its [`tag`](crate::wire::tag).
    pub tensors: Vec<(u64, ChipTensor)>,
    /// Where the program submits it.
    pub location: String,
}
