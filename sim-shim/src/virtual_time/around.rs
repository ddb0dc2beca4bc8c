//! What a device in virtual time has around it.

use super::cost::FastRegions;
use super::group::NetEndpoint;

/// What a device has around it.
#[derive(Clone, Default)]
pub(super) struct Around {
    /// Its rank in a group.
    pub(super) endpoint: Option<NetEndpoint>,
    /// Regions of its memory that are fast.
    pub(super) fast: FastRegions,
}
