//! What the exchange needs of groups, in one place.

pub(crate) use pto_host::graph::group::tag::{call, is_of_call};
pub(crate) use pto_host::graph::group::transfer::{NO_SLOT, SIGNAL_SLOTS};
pub(crate) use pto_host::group::{
    Calls, Completion, Place, Side, Span, Transfer, TransferError, TransferKind, Transport,
    transfer_words,
};
