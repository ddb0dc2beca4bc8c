//! Which parts of an arena go to the device before a launch, and which come back: what the firmware's `coherence.rs` says that
//! the host writes and reads. The rest, above all the heaps of the streaming builder, never leaves the device.

use std::mem::offset_of;
use std::ops::Range;

use pto_abi::arena::Arena;
use pto_abi::handshake::Handshake;
use pto_abi::runtime::{Region, Runtime, region};
use pto_abi::stream::StreamHeader;
use pto_abi::{CoreKind, GmWindow};

use super::dma::Dma;
use super::error::A2a3Error;
use super::port::Port;

/// Bytes that are copied at once.
const CHUNK_BYTES: usize = 1 << 20;
/// From the start of a ready queue: its ends, in two lines.
const QUEUE_ENDS_BYTES: u64 = 128;

/// Parts of an arena, by their offsets.
pub(super) type Parts = Vec<Range<u64>>;

/// What the host writes for a run.
pub(super) fn sent(arena: &Arena<'_>) -> Parts {
    let regions = arena.regions();
    let mut parts = shared(arena);
    parts.push(range(regions[region::GRAPH]));
    parts
}

/// What the host reads of every run.
pub(super) fn fetched(arena: &Arena<'_>) -> Parts {
    let mut parts = shared(arena);
    parts.push(range(arena.regions()[region::LOGS]));
    parts
}

/// The further memory that the report of a fault reads.
pub(super) fn fetched_of_fault(arena: &Arena<'_>) -> Parts {
    let regions = arena.regions();
    [region::TASKS, region::PAYLOADS, region::EDGES].map(|which| range(regions[which])).into()
}

/// The first fault and its epitaph.
pub(super) fn fault() -> Range<u64> {
    offset_of!(Runtime, fault) as u64..offset_of!(Runtime, workers) as u64
}

/// The counters of progress.
pub(super) fn progress() -> Range<u64> {
    offset_of!(Runtime, progress) as u64..offset_of!(Runtime, fault) as u64
}

/// The lines of the first cores.
pub(super) fn cores(count: usize) -> Range<u64> {
    let start = offset_of!(Runtime, workers);
    start as u64..(start + count * size_of::<Handshake>()).min(size_of::<Runtime>()) as u64
}

/// What both sides write.
fn shared(arena: &Arena<'_>) -> Parts {
    let regions = arena.regions();
    let stream = regions[region::STREAM];
    let stream_bytes = stream.bytes.min(size_of::<StreamHeader>() as u64);
    let mut parts = vec![
        0..size_of::<Runtime>() as u64,
        range(Region { offset: stream.offset, bytes: stream_bytes }),
    ];
    parts.extend(CoreKind::ALL.iter().filter_map(|kind| queue_ends(arena, *kind)));
    parts
}

/// The ends of the ready queue of a kind.
fn queue_ends(arena: &Arena<'_>, kind: CoreKind) -> Option<Range<u64>> {
    let (ends, _) = arena.ready_queue(arena.regions()[region::READY], kind)?;
    let start = arena.window().pointer(0, 1, 1)?.addr();
    let offset = std::ptr::from_ref(ends).addr().checked_sub(start)? as u64;
    debug_assert_eq!(size_of_val(ends) as u64, QUEUE_ENDS_BYTES);
    Some(offset..offset + QUEUE_ENDS_BYTES)
}

const fn range(region: Region) -> Range<u64> {
    region.offset..region.offset + region.bytes
}

/// Copies parts of the arena to the device.
pub(super) fn send(port: &Port, window: &GmWindow<'_>, parts: Parts) -> Result<(), A2a3Error> {
    for (at, bytes) in parts.into_iter().flat_map(chunks) {
        let mut chunk = vec![0; bytes];
        // The parts are within the arena.
        window.read_bytes(at, &mut chunk).unwrap_or_default();
        port.to_device(window.address().offset(at), &chunk)?;
    }
    Ok(())
}

/// Copies parts of the arena from the device.
pub(super) fn fetch(port: &Port, window: &GmWindow<'_>, parts: Parts) -> Result<(), A2a3Error> {
    for (at, bytes) in parts.into_iter().flat_map(chunks) {
        let mut chunk = vec![0; bytes];
        port.to_host(window.address().offset(at), &mut chunk)?;
        window.write_bytes(at, &chunk).unwrap_or_default();
    }
    Ok(())
}

/// The pieces of a range: where each begins, and its bytes.
fn chunks(part: Range<u64>) -> impl Iterator<Item = (u64, usize)> {
    let end = part.end;
    part.step_by(CHUNK_BYTES).map(move |at| {
        let left = usize::try_from(end - at).unwrap_or(CHUNK_BYTES);
        (at, left.min(CHUNK_BYTES))
    })
}

#[cfg(test)]
mod tests {
    use super::chunks;

    #[test]
    fn a_range_is_copied_whole() {
        let pieces: Vec<_> = chunks(64..64 + (1 << 20) + 10).collect();
        assert_eq!(pieces, [(64, 1 << 20), (64 + (1 << 20), 10)]);
        assert_eq!(chunks(5..5).count(), 0);
    }
}
