//! What the exchange needs of a network: messages on two channels, in order between two ranks of a channel and a tag. [`MpiLibrary`](crate::ranks::library::MpiLibrary)
//! is MPI; tests have a network within one process.

use crate::ranks::group::ByteRange;
use crate::table::Channel;

/// Where a span begins.
pub(crate) fn pointer(span: ByteRange) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(usize::try_from(span.address).unwrap_or(usize::MAX))
}

/// How long it is.
pub(crate) fn length(span: ByteRange) -> usize {
    usize::try_from(span.bytes).unwrap_or(usize::MAX)
}

/// The span of bytes of this process. The caller keeps them at their address until the request that uses them is complete.
pub(crate) fn span_of(bytes: &mut [u8]) -> ByteRange {
    ByteRange { address: bytes.as_mut_ptr().expose_provenance() as u64, bytes: bytes.len() as u64 }
}

/// The bytes of a span.
pub(crate) fn copied(span: ByteRange) -> Vec<u8> {
    let mut bytes = vec![0; length(span)];
    // SAFETY: the maker of the span keeps its bytes alive, and nothing writes them meanwhile.
    unsafe { span.copy_to(span_of(&mut bytes)) };
    bytes
}

/// Writes from the beginning of a span as many bytes as there are, and as fit.
pub(crate) fn fill(span: ByteRange, bytes: &[u8]) {
    let count = bytes.len().min(length(span));
    // SAFETY: the maker of the span keeps its bytes alive, and nothing else uses them meanwhile.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), pointer(span), count) };
}

const _: () = assert!(usize::BITS == 64);

/// A message in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct RequestId(pub(crate) u64);

/// A message that is through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Who sent it, if it was received.
    pub(crate) peer: u32,
    /// How long it was, if it was received.
    pub(crate) bytes: u64,
}

/// The network's error number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WireError(pub(crate) String);

/// A network. Nothing here waits, but [`barrier`](Self::barrier), [`all_reduce_sum`](Self::all_reduce_sum) and [`finish`](Self::finish).
pub(crate) trait Wire: Send {
    /// Begins to send; the bytes stay as they are until the request is complete.
    fn send(
        &mut self,
        channel: Channel,
        from: ByteRange,
        peer: u32,
        tag: i32,
    ) -> Result<RequestId, WireError>;

    /// Begins to receive; nothing touches the bytes until the request is complete. `None`: from any rank.
    fn receive(
        &mut self,
        channel: Channel,
        to: ByteRange,
        peer: Option<u32>,
        tag: i32,
    ) -> Result<RequestId, WireError>;

    /// Which of these requests are complete, in their order. Those that are, or that failed, are gone.
    fn test(
        &mut self,
        requests: &[RequestId],
        answers: &mut Vec<Option<Arrival>>,
    ) -> Result<(), WireError>;

    /// Gives a request up.
    fn give_up(&mut self, request: RequestId);

    /// Ends the network; waits for all ranks.
    fn finish(&mut self) -> Result<(), WireError>;

    /// The network's own sum over all ranks; waits for all ranks.
    fn all_reduce_sum(&mut self, from: &[f32], to: &mut [f32]) -> Result<(), WireError>;

    /// Waits for all ranks.
    fn barrier(&mut self) -> Result<(), WireError>;
}
