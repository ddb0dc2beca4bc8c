//! Copies, fills and reductions, as a copy worker does them.

use std::sync::Arc;

use pto_abi::GmAddr;
use pto_aicore_kernels::tile::DType;

use super::byte_window::ByteWindow;
use super::error::FailureCause;
use super::host_buffer::HostBuffer;
use super::reduction::Reduction;
use crate::error::Error;
use crate::gm::Gm;
use crate::memory::Memory;
use crate::traffic::TrafficKind;

/// Bytes that a worker buffers at once.
const CHUNK_BYTES: usize = 1 << 12;
/// Bytes that a worker buffers at once, where each step is a copy by the driver.
const REMOTE_CHUNK_BYTES: usize = 1 << 20;

/// What is to be copied.
pub(super) enum CopyCommand {
    /// From the host.
    In { to: GmAddr, from: HostBuffer },
    /// To the host.
    Out { from: GmAddr, to: HostBuffer },
    /// On the device; the ranges do not overlap.
    On { from: GmAddr, to: GmAddr, bytes: u64 },
    /// As a copy on the device, into what is there.
    Reduce { from: GmAddr, to: GmAddr, bytes: u64, how: (Reduction, DType) },
    /// These bytes again and again; the last time perhaps not all of them.
    Fill { to: GmAddr, bytes: u64, pattern: [u8; 8] },
}

impl CopyCommand {
    /// How many bytes it moves.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::In { from: buffer, .. } | Self::Out { to: buffer, .. } => buffer.bytes(),
            Self::On { bytes, .. } | Self::Reduce { bytes, .. } | Self::Fill { bytes, .. } => {
                *bytes
            }
        }
    }

    /// Which way its bytes go.
    pub(super) fn traffic_kind(&self) -> TrafficKind {
        match self {
            Self::In { .. } => TrafficKind::ToDevice,
            Self::Out { .. } => TrafficKind::ToHost,
            Self::On { .. } | Self::Reduce { .. } => TrafficKind::OnDevice,
            Self::Fill { .. } => TrafficKind::Filled,
        }
    }

    /// Does it, and counts its bytes.
    pub(super) fn perform(&self, memory: &Memory) -> Result<(), FailureCause> {
        memory.traffic().count(self.traffic_kind(), self.bytes());
        if memory.gm().is_remote() {
            let done = self.perform_remote(memory.gm());
            return done.map_err(|error| FailureCause::Device(Arc::new(error)));
        }
        let gm = memory.gm().window();
        let on_device =
            |at, bytes| gm.offset_of(at, bytes).map(|offset| ByteWindow { window: gm, offset });
        let done = match self {
            Self::In { to, from } => on_device(*to, from.bytes())
                .and_then(|to| move_bytes(from.bytes(), &from.window(), &to)),
            Self::Out { from, to } => on_device(*from, to.bytes())
                .and_then(|from| move_bytes(to.bytes(), &from, &to.window())),
            Self::On { from, to, bytes } => on_device(*from, *bytes)
                .zip(on_device(*to, *bytes))
                .and_then(|(from, to)| move_bytes(*bytes, &from, &to)),
            Self::Reduce { from, to, bytes, how } => on_device(*from, *bytes)
                .zip(on_device(*to, *bytes))
                .and_then(|(from, to)| reduce(*bytes, &from, &to, *how)),
            Self::Fill { to, bytes, pattern } => {
                on_device(*to, *bytes).and_then(|to| fill(*bytes, &to, *pattern))
            }
        };
        done.ok_or_else(|| FailureCause::Memory(format!("{} bytes do not lie in GM", self.bytes())))
    }
}

/// In memory that only copies reach.
impl CopyCommand {
    fn perform_remote(&self, gm: &Gm) -> Result<(), Error> {
        match self {
            Self::In { to, from } => in_chunks(from.bytes(), |at, chunk| {
                from.window().read(at, chunk).unwrap_or_default();
                gm.write(to.offset(at), chunk)
            }),
            Self::Out { from, to } => in_chunks(to.bytes(), |at, chunk| {
                gm.read(from.offset(at), chunk)?;
                to.window().write(at, chunk).unwrap_or_default();
                Ok(())
            }),
            Self::On { from, to, bytes } => in_chunks(*bytes, |at, chunk| {
                gm.read(from.offset(at), chunk)?;
                gm.write(to.offset(at), chunk)
            }),
            Self::Reduce { from, to, bytes, how: (reduction, dtype) } => {
                in_chunks(*bytes, |at, chunk| {
                    let mut other = chunk.to_vec();
                    gm.read(from.offset(at), &mut other)?;
                    gm.read(to.offset(at), chunk)?;
                    reduction.apply(*dtype, chunk, &other);
                    gm.write(to.offset(at), chunk)
                })
            }
            Self::Fill { to, bytes, pattern } => in_chunks(*bytes, |at, chunk| {
                // A chunk begins where the pattern does.
                chunk.iter_mut().zip(pattern.iter().cycle()).for_each(|(to, from)| *to = *from);
                gm.write(to.offset(at), chunk)
            }),
        }
    }
}

/// Moves so many bytes through a chunk, which holds whole elements: from where on, and the chunk.
fn in_chunks(
    bytes: u64,
    mut step: impl FnMut(u64, &mut [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut chunk = vec![0; REMOTE_CHUNK_BYTES.min(usize::try_from(bytes).unwrap_or(usize::MAX))];
    let mut at = 0;
    while at < bytes {
        let left = usize::try_from(bytes - at).unwrap_or(usize::MAX);
        let chunk_bytes = left.min(chunk.len());
        step(at, &mut chunk[..chunk_bytes])?;
        at += chunk_bytes as u64;
    }
    Ok(())
}

/// Calls `step` for each chunk of this many bytes: where it begins, and how many bytes it has.
fn chunks(bytes: u64, mut step: impl FnMut(u64, usize) -> Option<()>) -> Option<()> {
    let mut at = 0;
    while at < bytes {
        let length = usize::try_from(bytes - at).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        step(at, length)?;
        at += length as u64;
    }
    Some(())
}

fn move_bytes(bytes: u64, from: &ByteWindow<'_>, to: &ByteWindow<'_>) -> Option<()> {
    let mut chunk = [0; CHUNK_BYTES];
    chunks(bytes, |at, length| {
        from.read(at, &mut chunk[..length])?;
        to.write(at, &chunk[..length])
    })
}

/// Reduces the one into the other. A chunk holds whole elements.
fn reduce(
    bytes: u64,
    from: &ByteWindow<'_>,
    to: &ByteWindow<'_>,
    (reduction, dtype): (Reduction, DType),
) -> Option<()> {
    let (mut other, mut one) = ([0; CHUNK_BYTES], [0; CHUNK_BYTES]);
    chunks(bytes, |at, length| {
        let (other, one) = (&mut other[..length], &mut one[..length]);
        from.read(at, other)?;
        to.read(at, one)?;
        reduction.apply(dtype, one, other);
        to.write(at, one)
    })
}

fn fill(bytes: u64, to: &ByteWindow<'_>, pattern: [u8; 8]) -> Option<()> {
    let mut chunk = [0; CHUNK_BYTES];
    chunk.as_chunks_mut().0.fill(pattern);
    chunks(bytes, |at, length| to.write(at, &chunk[..length]))
}
