//! What the exchange needs of groups, in one place.

pub(crate) use pto_host::graph::group::transfer::{NO_SLOT, SIGNAL_SLOTS};
pub(crate) use pto_host::group::{
    Completion, Place, Side, Span, Transfer, TransferError, TransferKind, Transport, stamp_words,
};
