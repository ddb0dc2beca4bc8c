//! A session on a device without memory that both sides map: what the host has written is copied to the device before the firmware starts,
//! and what the firmware has written is copied back when it has returned. In between neither sees what the other writes. So the session is
//! a series of launches, each of which does what was submitted before it.
//!
//! | written by | what | goes |
//! |---|---|---|
//! | the host | the board, and rings and events of the streams that the firmware gets: what the device lacks of them | there |
//! | the firmware | events, how far each of these streams is, the lanes of the board | back, in this order |
//!
//! The service acts on what has come back as on what the firmware writes elsewhere. So the lanes come last: when one says that the host has
//! a head, the ring says which one that is.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use super::session_core::SessionCore;
use super::stream_core::StreamCore;
use crate::error::Error;

/// The copies for one start of the firmware; see the file.
pub(super) struct MemorySync<'s> {
    shared: &'s SessionCore,
    /// The streams that the firmware gets. The host serves the others until it returns.
    streams: Vec<Arc<StreamCore>>,
}

impl<'s> MemorySync<'s> {
    /// Sends what the device lacks; nothing if both sides map the same memory.
    pub(super) fn send(shared: &'s SessionCore) -> Result<Self, Error> {
        let mut streams = Vec::new();
        if shared.memory.gm().is_remote() {
            if !shared.board.is_there()? {
                shared.board.forget();
                shared.streams().iter().for_each(|core| core.forget_sent());
            }
            let is_theirs = |core: &Arc<StreamCore>| !shared.board.board().is_handed(core.slot);
            streams.extend(shared.streams().into_iter().filter(is_theirs));
            streams.iter().try_for_each(|core| core.send())?;
            shared.board.send()?;
        }
        Ok(Self { shared, streams })
    }

    /// Fetches what has changed.
    pub(super) fn fetch(&self) -> Result<(), Error> {
        self.streams.iter().try_for_each(|core| core.fetch_events())?;
        self.streams.iter().try_for_each(|core| core.fetch_progress())?;
        // Release: pairs with the Acquire load in `LaneLine::is_handed`, whose thread then sees the progress above.
        fence(Ordering::Release);
        self.shared.board.fetch()
    }
}
