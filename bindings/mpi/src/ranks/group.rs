//! The types of `pto_host` groups that the exchange uses.

pub(crate) use pto_host::graph::group::tag::{call, is_of_call};
pub(crate) use pto_host::graph::group::transfer::{NO_SLOT, SIGNAL_SLOTS};
pub(crate) use pto_host::group::{
    CallLog, Completion, RankLocation, TransferSide, ByteRange, Transfer, TransferError, TransferKind, Transport,
    transfer_words,
};
