//! The byte form of a kernel.

use pto_aicore_kernels::tile::Kernel;
use pto_aicore_kernels::tile::bytes::{self, Header};

use crate::kernel::tile_kernel::TileKernel;

impl TileKernel {
    /// The byte form, which [`Kernel::accept`] reads.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self.code())
    }
}

/// Writes the byte form.
fn encode(kernel: &Kernel) -> Vec<u8> {
    let (name, name_bytes) = bytes::write_name(kernel.name());
    let (params, ops) = (kernel.params().len(), kernel.ops().len());
    let bytes = bytes::bytes_of(params, ops);
    // A kernel is within the limits, which are far below these types'.
    let short = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    let header = Header {
        magic: bytes::MAGIC,
        version: bytes::VERSION,
        params: short(params),
        ops: short(ops),
        name_bytes,
        total_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        name,
    };
    let mut encoded = Vec::with_capacity(bytes);
    encoded.extend_from_slice(bytemuck::bytes_of(&header));
    for param in kernel.params() {
        encoded.extend_from_slice(bytemuck::bytes_of(&bytes::write_param(param)));
    }
    for op in kernel.ops() {
        encoded.extend_from_slice(bytemuck::bytes_of(&bytes::write(op)));
    }
    encoded
}
