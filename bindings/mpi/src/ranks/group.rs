//! The types of `pto_host` groups that the exchange uses.

pub(crate) use pto_host::graph::group::tag::{call, is_of_call};
pub(crate) use pto_host::graph::group::transfer::{NO_SLOT, SIGNAL_SLOTS};
pub(crate) use pto_host::group::{
    ByteRange, CallLog, Completion, RankLocation, Transfer, TransferError, TransferKind,
    TransferSide, Transport, transfer_words,
};
