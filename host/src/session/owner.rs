//! Who owns a session: the session that the user has, its streams, and the stitchers of programs.

use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use super::running::SteppedService;
use super::shared::Shared;
use crate::device::Device;

/// A device that takes commands from streams until the session is closed. A clone is another owner of the same session.
///
/// Streams, and the stitchers of programs, own their session as well. It ends when it is closed ([`Session::close`]), or when its last owner is dropped: then
/// commands that have not begun are dropped, and those that have are waited for, unless a function of a stream drops that owner.
#[derive(Clone)]
pub struct Session {
    pub(super) parts: Arc<SessionParts>,
}

/// What the owners of a session share.
pub(super) struct SessionParts {
    pub(super) shared: Arc<Shared>,
    /// `None`: the session is closed.
    pub(super) device: Mutex<Option<Arc<Mutex<Device>>>>,
    pub(super) service: Mutex<Running>,
    /// What programs are told of the group that the device is in, behind their own words; not set: it is in none.
    pub(super) group_words: OnceLock<Vec<u64>>,
}

/// What steps the service.
pub(super) enum Running {
    Thread(Option<JoinHandle<()>>),
    Stepped(Arc<SteppedService>),
}
