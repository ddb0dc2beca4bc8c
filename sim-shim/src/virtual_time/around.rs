//! What a device in virtual time has around it.

use super::cost::FastRegions;
use super::group::SeatOf;

/// What a device has around it.
#[derive(Clone, Default)]
pub(super) struct Around {
    /// Its place in a group.
    pub(super) seat: Option<SeatOf>,
    /// Regions of its memory that are fast.
    pub(super) fast: FastRegions,
}
