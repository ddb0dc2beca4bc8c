//! The requests of a streaming program to its builder other than submissions: scopes, the heap, elements, recordings, and what goes between
//! ranks.
//!
//! [`StreamBuilder`](crate::StreamBuilder) has a call for each, written once; a builder answers all of them in
//! [`stream_op`](crate::StreamBuilder::stream_op), and so does a layer in front of one.

use pto_abi::fault::Fault;
use pto_abi::ids::TaskId;

use crate::collective::CollectiveCall;
use crate::element::ElementType;
use crate::exchange::{Crossing, Exchange};
use crate::recording::Recording;
use crate::scope::{DependencyMode, ScopeId};
use crate::tensor::TensorView;

/// An operation of a stream. The calls of the same names say what each does, and its errors.
#[derive(Clone, Copy, Debug)]
pub enum StreamOp<'a> {
    /// [`open_scope`](crate::StreamBuilder::open_scope): `Scope`.
    OpenScope(DependencyMode),
    /// [`close_scope`](crate::StreamBuilder::close_scope): `Done`.
    CloseScope(ScopeId),
    /// [`alloc`](crate::StreamBuilder::alloc): `Tensor`.
    Alloc(ElementType, &'a [u32]),
    /// [`yield_now`](crate::StreamBuilder::yield_now): `Done`.
    Yield,
    /// [`get`](crate::StreamBuilder::get) of the element at this index: `Value`.
    Get(&'a TensorView<'a>, &'a [u32]),
    /// [`set`](crate::StreamBuilder::set) of the element at this index: `Done`.
    Set(&'a TensorView<'a>, &'a [u32], u64),
    /// [`begin_recording`](crate::StreamBuilder::begin_recording): `Serial`.
    BeginRecording(&'a [TensorView<'a>]),
    /// [`end_recording`](crate::StreamBuilder::end_recording): `Recorded`.
    EndRecording,
    /// [`begin_collective`](crate::StreamBuilder::begin_collective): `Done`.
    BeginCollective(&'a CollectiveCall),
    /// [`end_collective`](crate::StreamBuilder::end_collective): `Done`.
    EndCollective,
    /// [`exchange`](crate::StreamBuilder::exchange): `Done`.
    Exchange(&'a Exchange<'a>),
    /// [`begin_crossings`](crate::StreamBuilder::begin_crossings): `Ranks`.
    BeginCrossings(u32),
    /// [`cross`](crate::StreamBuilder::cross): `Task`.
    Cross(&'a Crossing<'a>),
}

impl StreamOp<'_> {
    /// What a builder answers that has no transfers: it ignores collectives, and is rank 0 of 1. `None`: the operation is another one.
    #[must_use]
    #[inline]
    pub const fn alone(&self) -> Option<Result<OpResult, Fault>> {
        match self {
            Self::BeginCollective(_) | Self::EndCollective => Some(Ok(OpResult::Done)),
            Self::BeginCrossings(_) => Some(Ok(OpResult::Ranks(0, 1))),
            Self::Exchange(_) | Self::Cross(_) => Some(Err(Fault::TRANSFER_NO_ENGINE)),
            _ => None,
        }
    }
}

/// What an operation returns.
#[derive(Clone, Copy, Debug)]
pub enum OpResult {
    /// The operation has no result.
    Done,
    /// The scope that was opened.
    Scope(ScopeId),
    /// The tensor that was allocated.
    Tensor(TensorView<'static>),
    /// The element, in the low bits.
    Value(u64),
    /// The number of a recording in its run.
    Serial(u32),
    /// The recording that ended.
    Recorded(Recording),
    /// A rank, and how many there are.
    Ranks(u32, u32),
    /// The task that was submitted.
    Task(TaskId),
}
