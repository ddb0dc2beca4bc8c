//! What the exchange needs of a network: messages on two lanes, in order between two ranks of a lane and a tag. [`Library`](crate::library::Library)
//! is MPI; tests have a network within one process.

use crate::table::Lane;

/// Bytes that a message is sent from, or received into. Whoever makes one keeps them in place until the request is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Their address in this process.
    pub(crate) address: u64,
    /// How many.
    pub(crate) bytes: u64,
}

impl Span {
    pub(crate) fn of(bytes: &mut [u8]) -> Self {
        Self { address: bytes.as_mut_ptr().expose_provenance() as u64, bytes: bytes.len() as u64 }
    }

    pub(crate) fn pointer(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address as usize)
    }

    pub(crate) fn length(self) -> usize {
        self.bytes as usize
    }

    /// What stands there.
    pub(crate) fn copy(self) -> Vec<u8> {
        let mut bytes = vec![0; self.length()];
        // SAFETY: whoever made the span keeps its bytes in place, and nobody writes them meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(self.pointer(), bytes.as_mut_ptr(), bytes.len()) };
        bytes
    }

    /// Writes from the beginning as many bytes as there are, and as fit.
    pub(crate) fn fill(self, bytes: &[u8]) {
        let count = bytes.len().min(self.length());
        // SAFETY: whoever made the span keeps its bytes in place, and nobody uses them meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.pointer(), count) };
    }

    /// A part of it.
    pub(crate) fn part(self, offset: u64, bytes: u64) -> Self {
        Self { address: self.address + offset, bytes }
    }
}

const _: () = assert!(usize::BITS == 64);

/// A message under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request(pub(crate) u64);

/// A message that is through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Who sent it, if it was received.
    pub(crate) peer: u32,
    /// How long it was, if it was received.
    pub(crate) bytes: u64,
}

/// What the network says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WireError(pub(crate) String);

/// A network. Nothing here waits, but [`barrier`](Self::barrier), [`all_reduce_sum`](Self::all_reduce_sum) and [`finish`](Self::finish).
pub(crate) trait Wire: Send {
    /// Begins to send; the bytes stay as they are until the request is complete.
    fn send(&mut self, lane: Lane, from: Span, peer: u32, tag: i32) -> Result<Request, WireError>;

    /// Begins to receive; nobody touches the bytes until the request is complete. `None`: from any rank.
    fn receive(
        &mut self,
        lane: Lane,
        to: Span,
        peer: Option<u32>,
        tag: i32,
    ) -> Result<Request, WireError>;

    /// Whether a request is complete. One that is, or that failed, is gone.
    fn test(&mut self, request: Request) -> Result<Option<Arrival>, WireError>;

    /// Gives a request up.
    fn give_up(&mut self, request: Request);

    /// Ends the network; waits for all ranks.
    fn finish(&mut self) -> Result<(), WireError>;

    /// The network's own sum over all ranks; waits for all ranks.
    fn all_reduce_sum(&mut self, from: &[f32], to: &mut [f32]) -> Result<(), WireError>;

    /// Waits for all ranks.
    fn barrier(&mut self) -> Result<(), WireError>;
}
