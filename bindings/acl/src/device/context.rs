//! Contexts: what streams and events belong to.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::open::Open;
use crate::common::refusal::{Answer, Refusal};
use crate::common::table::{Handle, Kind, Table};

/// The contexts of the process.
pub(crate) static CONTEXTS: Table<Context> = Table::new(Kind::Context);

/// A context of a device.
pub(crate) struct Context {
    pub(crate) handle: Handle,
    pub(crate) open: Arc<Open>,
    /// Made by `aclrtSetDevice`.
    pub(crate) is_primary: bool,
    default_stream: OnceLock<Handle>,
    /// A stream that stops on failure has failed.
    failure: Mutex<Option<Refusal>>,
}

impl Context {
    /// A context without a default stream yet.
    pub(crate) fn new(open: Arc<Open>, is_primary: bool) -> Arc<Self> {
        let handle = CONTEXTS.reserve();
        let context = Arc::new(Self {
            handle,
            open,
            is_primary,
            default_stream: OnceLock::new(),
            failure: Mutex::default(),
        });
        CONTEXTS.insert(handle, Arc::clone(&context));
        context
    }

    /// Its default stream.
    pub(crate) fn default_stream(&self) -> Handle {
        self.default_stream.get().copied().unwrap_or_default()
    }

    /// Says which stream is the default one, once.
    pub(crate) fn set_default_stream(&self, stream: Handle) {
        self.default_stream.get_or_init(|| stream);
    }

    /// A stream that stops on failure has failed: nothing more is taken.
    pub(crate) fn fail(&self, refusal: &Refusal) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| refusal.clone());
    }

    /// Refuses where a stream has stopped the context.
    pub(crate) fn check_running(&self) -> Answer {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone().map_or(Ok(()), |refusal| {
            let text = format!("a stream of this context has stopped it: {}; destroy the context, or reset the device", refusal.text);
            Err(Refusal::new(refusal.code, text))
        })
    }
}
