//! A workload as the program states it, before any check.

use crate::kernel::TileKernel;

use super::node::{Channel, TreeNode};
use super::schedule::Schedule;
use super::view::Tensor;

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The workload's name.
    pub name: String,
    /// The tensors that its tasks read and write.
    pub tensors: Vec<Tensor>,
    /// The kernels of its tasks.
    pub kernels: Vec<TileKernel>,
    /// The channels of its pipeline.
    pub channels: Vec<Channel>,
    /// How tasks go to workers.
    pub schedule: Schedule,
    /// The tree.
    pub root: TreeNode,
}

impl Workload {
    /// A workload without tensors, kernels and channels, whose tasks all go to one worker.
    #[must_use]
    pub fn new(name: &str, root: TreeNode) -> Self {
        Self {
            name: name.to_owned(),
            tensors: Vec::new(),
            kernels: Vec::new(),
            channels: Vec::new(),
            schedule: Schedule::default(),
            root,
        }
    }
}
