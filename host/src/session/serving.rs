//! Which session the calling thread works for. Such a thread does not wait for what it has to do itself: neither for the service while it is the service, nor
//! for a stream while it runs a function of that stream.

use std::cell::Cell;

use super::ids::StreamId;

/// What a thread does for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serving {
    /// The thread is the service.
    Service,
    /// The thread runs a function of this stream.
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

fn here(driver: usize) -> Option<Serving> {
    let (of, serving) = SERVING.get()?;
    (of == driver).then_some(serving)
}

/// Whether the calling thread is the service of the session whose driver has this address.
pub(super) fn is_service(driver: usize) -> bool {
    here(driver) == Some(Serving::Service)
}

/// Whether the calling thread runs a function of this stream of that session.
pub(super) fn is_called_by(driver: usize, stream: StreamId) -> bool {
    here(driver) == Some(Serving::Function(stream))
}

/// Whether the calling thread works for that session.
pub(super) fn is_here(driver: usize) -> bool {
    here(driver).is_some()
}

/// Whether the calling thread works for a session, this one or another.
pub(super) fn is_anywhere() -> bool {
    SERVING.get().is_some()
}

/// Does `work` as the service of that session, or as a function of a stream.
pub(super) fn serve<R>(driver: usize, stream: Option<StreamId>, work: impl FnOnce() -> R) -> R {
    let serving = stream.map_or(Serving::Service, Serving::Function);
    let _restore = Restore(SERVING.replace(Some((driver, serving))));
    work()
}
