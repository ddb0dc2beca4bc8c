//! The owners of a session: the user's `Session`, its streams, and the stitchers of programs.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::running::SteppedService;
use super::session_core::SessionCore;
use crate::device::Device;

/// A device that takes commands from streams until the session is closed. A clone is another owner of the same session.
///
/// Streams, and the stitchers of programs, own their session as well. It ends when it is closed ([`Session::close`]), or when its last owner is dropped: then
/// commands that have not begun are dropped, and those that have are waited for, unless a function of a stream drops that owner.
#[derive(Clone)]
pub struct Session {
    pub(super) parts: Arc<SessionParts>,
}

/// The state that all owners of a session share.
pub(super) struct SessionParts {
    pub(super) shared: Arc<SessionCore>,
    /// `None`: the session is closed.
    pub(super) device: Mutex<Option<Arc<Mutex<Device>>>>,
    pub(super) service: Mutex<ServiceRunner>,
}

/// What steps the service.
pub(super) enum ServiceRunner {
    Thread(Option<JoinHandle<()>>),
    Stepped(Arc<SteppedService>),
}
