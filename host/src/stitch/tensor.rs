//! A tensor on the device: it owns its memory, and knows its layout.

use std::fmt;

use pto_abi::GmAddr;
use pto_workload::program::{MemorySpace, TensorLayout};
use pto_workload::tile::DType;

use super::stitcher_core::Block;
use crate::session::{Session, StreamId};

/// A tensor without its memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub(super) dtype: DType,
    pub(super) shape: Vec<u64>,
    pub(super) layout: TensorLayout,
}

impl Form {
    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> u64 {
        let elements = self.layout.elements(&self.shape).unwrap_or(u64::MAX);
        elements.saturating_mul(self.dtype.bytes() as u64)
    }

    /// Element type and extents.
    pub(super) fn kind(&self) -> String {
        format!("{}{:?}", self.dtype, self.shape)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind(), self.layout)
    }
}

/// An owned tensor on the device. It is moved into a run, or borrowed by one. When it is dropped, its memory goes to the
/// next tensor of its stream.
pub struct Tensor {
    pub(super) block: Block,
    pub(super) form: Form,
}

impl Tensor {
    pub(super) const fn new(block: Block, form: Form) -> Self {
        Self { block, form }
    }

    /// The element type.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.form.dtype
    }

    /// The extents.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.form.shape
    }

    /// The layout.
    #[must_use]
    pub const fn layout(&self) -> &TensorLayout {
        &self.form.layout
    }

    /// Whether it is in this layout.
    #[must_use]
    pub fn has_layout(&self, layout: &TensorLayout) -> bool {
        self.form.layout == *layout
    }

    /// Bytes that it takes, those that fill up tiles among them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.form.bytes()
    }

    /// Where it is.
    #[must_use]
    pub const fn address(&self) -> GmAddr {
        self.block.address
    }

    /// The stream of its commands.
    #[must_use]
    pub const fn stream(&self) -> StreamId {
        self.block.stream()
    }

    /// Whether it is one of this session.
    #[must_use]
    pub fn is_of(&self, session: &Session) -> bool {
        self.block.is_of_session(session)
    }

    /// Whether it should be on the chip, and is in the memory of the device because there was no room.
    #[must_use]
    pub fn is_bounced(&self) -> bool {
        self.form.layout.memory == MemorySpace::OnChip && !self.block.is_on_chip()
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor {} at {}", self.form, self.address())
    }
}
