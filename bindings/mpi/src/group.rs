//! Placeholder until pto-host has it.
#![allow(missing_docs)]
use std::time::Duration;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub address: u64,
    pub bytes: u64,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    Put,
    Get,
    Send,
    Receive,
    Signal,
    Wait,
}
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    pub kind: TransferKind,
    pub local: Span,
    pub peer: u32,
    pub tag: u64,
    pub stamp: u64,
    pub window: u32,
    pub offset: u64,
    pub slot: u32,
    pub value: u64,
}
pub const NO_SLOT: u32 = u32::MAX;
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    #[error("mismatch {here:?} {there:?}")]
    Mismatch { here: (u32, u64, u64), there: (u32, u64, u64) },
    #[error("outside of window {window}")]
    OutOfWindow { rank: u32, window: u32, offset: u64, bytes: u64 },
    #[error("no window {window} at rank {rank}")]
    NoWindow { rank: u32, window: u32 },
    #[error("rank {rank} on {host} failed: {cause}")]
    PeerFailed { rank: u32, host: String, cause: String },
    #[error("rank {rank} on {host} has not come within {waited:?}")]
    Absent { rank: u32, host: String, waited: Duration },
}
#[derive(Clone, Debug)]
pub struct Completion {
    pub number: u64,
    pub result: Result<(), TransferError>,
}
#[derive(Clone, Debug)]
pub struct Place {
    pub rank: u32,
    pub size: u32,
    pub host: String,
    pub ranks_per_node: u32,
}
pub trait Transport: Send + Sync {
    fn place(&self) -> Place;
    fn map(&self, id: u32, memory: Span) -> Result<(), TransferError>;
    fn start(&self, number: u64, transfer: &Transfer) -> Result<(), TransferError>;
    fn poll(&self, over: &mut Vec<Completion>);
    fn cancel(&self, cause: Option<&TransferError>);
    fn meet(&self, word: u64, budget: Duration) -> Result<Vec<u64>, TransferError>;
}
