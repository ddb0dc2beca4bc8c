//! Copies, fills and reductions, as a copy worker does them.

use pto_abi::{GmAddr, GmWindow};
use pto_aicore_kernels::tile::DType;

use super::error::Cause;
use super::host_buffer::HostBuffer;
use super::reduction::Reduction;
use crate::memory::Memory;
use crate::traffic::Way;

/// Bytes that go through the worker's hands at once.
const CHUNK_BYTES: usize = 1 << 12;

/// What is to be copied.
pub(super) enum Copy {
    /// From the host.
    In { to: GmAddr, from: HostBuffer },
    /// To the host.
    Out { from: GmAddr, to: HostBuffer },
    /// On the device; the ranges do not overlap.
    On { from: GmAddr, to: GmAddr, bytes: u64 },
    /// As a copy on the device, into what is there.
    Reduce { from: GmAddr, to: GmAddr, bytes: u64, how: (Reduction, DType) },
    /// A byte, many times.
    Fill { to: GmAddr, bytes: u64, byte: u8 },
}

impl Copy {
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
    pub(super) fn way(&self) -> Way {
        match self {
            Self::In { .. } => Way::ToDevice,
            Self::Out { .. } => Way::ToHost,
            Self::On { .. } | Self::Reduce { .. } => Way::OnDevice,
            Self::Fill { .. } => Way::Filled,
        }
    }

    /// Does it, and counts its bytes.
    pub(super) fn perform(&self, memory: &Memory) -> Result<(), Cause> {
        memory.traffic().count(self.way(), self.bytes());
        if memory.gm().is_remote() {
            // No session is opened on such a device (`Device::session`).
            return Err(Cause::Memory("the device's memory is reached by copies only".to_owned()));
        }
        let gm = memory.gm().window();
        let done =
            match self {
                Self::In { to, from } => move_bytes(&from.window(), part(&gm, *to, from.bytes())),
                Self::Out { from, to } => part(&gm, *from, to.bytes())
                    .and_then(|from| move_bytes(&from, Some(to.window()))),
                Self::On { from, to, bytes } => part(&gm, *from, *bytes)
                    .and_then(|from| move_bytes(&from, part(&gm, *to, *bytes))),
                Self::Reduce { from, to, bytes, how } => part(&gm, *from, *bytes)
                    .zip(part(&gm, *to, *bytes))
                    .and_then(|(from, to)| reduce(&from, &to, *how)),
                Self::Fill { to, bytes, byte } => {
                    part(&gm, *to, *bytes).and_then(|to| fill(&to, *byte))
                }
            };
        done.ok_or_else(|| Cause::Memory(format!("{} bytes do not lie in GM", self.bytes())))
    }
}

fn part<'w>(gm: &GmWindow<'w>, address: GmAddr, bytes: u64) -> Option<GmWindow<'w>> {
    gm.part(gm.offset_of(address, bytes)?, bytes)
}

/// Copies all of `from` to `to`, which is as large.
fn move_bytes(from: &GmWindow<'_>, to: Option<GmWindow<'_>>) -> Option<()> {
    let to = to?;
    let mut chunk = [0; CHUNK_BYTES];
    let mut at = 0;
    while at < from.bytes() {
        let step =
            usize::try_from(from.bytes() - at).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        let chunk = &mut chunk[..step];
        from.read_bytes(at, chunk)?;
        to.write_bytes(at, chunk)?;
        at += step as u64;
    }
    Some(())
}

/// Reduces all of `from` into `to`, which is as large. A chunk holds whole elements.
fn reduce(
    from: &GmWindow<'_>,
    to: &GmWindow<'_>,
    (reduction, dtype): (Reduction, DType),
) -> Option<()> {
    let (mut other, mut one) = ([0; CHUNK_BYTES], [0; CHUNK_BYTES]);
    let mut at = 0;
    while at < from.bytes() {
        let step =
            usize::try_from(from.bytes() - at).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        let (other, one) = (&mut other[..step], &mut one[..step]);
        from.read_bytes(at, other)?;
        to.read_bytes(at, one)?;
        reduction.apply(dtype, one, other);
        to.write_bytes(at, one)?;
        at += step as u64;
    }
    Some(())
}

fn fill(to: &GmWindow<'_>, byte: u8) -> Option<()> {
    let chunk = [byte; CHUNK_BYTES];
    let mut at = 0;
    while at < to.bytes() {
        let step =
            usize::try_from(to.bytes() - at).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        to.write_bytes(at, &chunk[..step])?;
        at += step as u64;
    }
    Some(())
}
