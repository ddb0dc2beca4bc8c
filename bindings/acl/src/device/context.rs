//! Contexts: what streams and events belong to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::open::Open;
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, HandleTable, Kind};

/// The contexts of the process.
pub(crate) static CONTEXTS: HandleTable<Context> = HandleTable::new(Kind::Context);

/// A context of a device.
pub(crate) struct Context {
    pub(crate) handle: Handle,
    pub(crate) open: Arc<Open>,
    /// Made by `aclrtSetDevice`.
    pub(crate) is_primary: bool,
    default_stream: OnceLock<Handle>,
    /// A stream that stops on failure has failed.
    failure: OnceLock<Refusal>,
    is_destroyed: AtomicBool,
}

impl Context {
    /// A context without a default stream yet.
    pub(crate) fn new(open: Arc<Open>, is_primary: bool) -> Arc<Self> {
        CONTEXTS.open_with(|handle| Self {
            handle,
            open,
            is_primary,
            default_stream: OnceLock::new(),
            failure: OnceLock::new(),
            is_destroyed: AtomicBool::new(false),
        })
    }

    /// The context's default stream.
    pub(crate) fn default_stream(&self) -> Handle {
        self.default_stream.get().copied().unwrap_or_default()
    }

    /// Says which stream is the default one, once.
    pub(crate) fn set_default_stream(&self, stream: Handle) {
        self.default_stream.get_or_init(|| stream);
    }

    /// A stream that stops on failure has failed: nothing more is taken.
    pub(crate) fn fail(&self, refusal: &Refusal) {
        self.failure.get_or_init(|| refusal.clone());
    }

    /// From now on nothing of the context is current.
    pub(crate) fn mark_destroyed(&self) {
        // Relaxed: a call that has begun may miss it, as it may miss that the handle goes.
        self.is_destroyed.store(true, Ordering::Relaxed);
    }

    /// Whether it was destroyed.
    #[inline]
    pub(crate) fn is_destroyed(&self) -> bool {
        // Relaxed: as for `mark_destroyed`.
        self.is_destroyed.load(Ordering::Relaxed)
    }

    /// Refuses where it was destroyed.
    pub(crate) fn check_living(&self) -> Answer {
        require(!self.is_destroyed(), || {
            Refusal::new(codes::NO_CONTEXT, "the context was destroyed; set another one")
        })
    }

    /// Refuses where a stream has stopped the context.
    #[inline]
    pub(crate) fn check_running(&self) -> Answer {
        self.failure.get().map_or(Ok(()), |refusal| {
            let text = format!("a stream of this context has stopped it: {}; destroy the context, or reset the device", refusal.text);
            Err(Refusal::new(refusal.code, text))
        })
    }
}
