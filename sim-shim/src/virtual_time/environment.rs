//! The environment of a device in virtual time: its group, and its fast memory.

use super::cost::FastRegions;
use super::group::NetEndpoint;

/// The environment of a device.
#[derive(Clone, Default)]
pub(super) struct Environment {
    /// The environment's rank in a group.
    pub(super) endpoint: Option<NetEndpoint>,
    /// Regions of its memory that are fast.
    pub(super) fast: FastRegions,
}
