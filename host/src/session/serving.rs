//! Which session the calling thread works for. Such a thread does not wait for what it has to do itself: neither for the service while it is the service, nor
//! for a stream while it runs a function of that stream.

use std::cell::Cell;
use std::sync::Arc;

use super::ids::StreamId;
use super::seat::Driver;
use super::shared::Shared;

/// What a thread does for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serving {
    /// It is the service.
    Service,
    /// It runs a function of this stream.
    Function(StreamId),
}

thread_local! {
    /// The driver of the session, by its address, and what the thread does for it.
    static SERVING: Cell<Option<(usize, Serving)>> = const { Cell::new(None) };
}

/// Gives the thread back what it did before.
struct Restore(Option<(usize, Serving)>);

impl Drop for Restore {
    fn drop(&mut self) {
        SERVING.set(self.0);
    }
}

fn here(driver: &Driver) -> Option<Serving> {
    let (of, serving) = SERVING.get()?;
    (of == std::ptr::from_ref(driver).addr()).then_some(serving)
}

/// Whether the calling thread is the service of this session.
pub(super) fn is_service(driver: &Driver) -> bool {
    here(driver) == Some(Serving::Service)
}

/// Whether the calling thread runs a function of this stream of this session.
pub(super) fn is_called_by(driver: &Driver, stream: StreamId) -> bool {
    here(driver) == Some(Serving::Function(stream))
}

impl Shared {
    /// Does `work` as the service, or as a function of a stream.
    pub(super) fn serving<R>(&self, stream: Option<StreamId>, work: impl FnOnce() -> R) -> R {
        let serving = stream.map_or(Serving::Service, Serving::Function);
        let session = Arc::as_ptr(&self.driver).addr();
        let _restore = Restore(SERVING.replace(Some((session, serving))));
        work()
    }

    /// Whether the calling thread works for this session.
    pub(super) fn is_served_here(&self) -> bool {
        here(&self.driver).is_some()
    }
}
