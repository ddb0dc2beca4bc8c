//! Exchanges of everybody with everybody: all-to-all, with equal parts or with counts that only the device knows; barrier.

use pto_abi::fault::Fault;

use super::call::Call;
use crate::group::tiles::{parts, range};
use crate::group::transfer::TransferKind;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;

/// Part `i` of `from` goes to rank `i`, whose part of `to` with this rank's number it becomes. The own part is sent to this rank as
/// well: the transfer engine copies it.
pub(super) fn all_to_all<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    (from, to): (&TensorView<'_>, &TensorView<'_>),
) -> Result<(), Fault> {
    let size = call.size();
    let part = |view, of: u32| parts(view, (of, of + 1), size);
    for at in call.tiles_of_parts(from) {
        for distance in 0..size {
            let (target, source) = (call.after(distance), call.before(distance));
            call.send_tile(stream, part(from, target), (target, 0, at))?;
            call.receive_tile(stream, part(to, source), (source, 0, at))?;
        }
    }
    Ok(())
}

/// As [`all_to_all`], but of each part only the first elements that its count says, each `unit` elements wide. `counts` are one
/// `u32` for each rank; those of what comes have come already.
pub(super) fn counted<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    (from, from_counts): (&TensorView<'_>, &TensorView<'_>),
    (to, to_counts): (&TensorView<'_>, &TensorView<'_>),
    unit: u64,
) -> Result<(), Fault> {
    let size = call.size();
    let unit_bytes = unit * from.element().bytes();
    for distance in 0..size {
        let (target, source) = (call.after(distance), call.before(distance));
        if let Some(part) = parts(from, (target, target + 1), size) {
            let count = count_of(from_counts, target)?;
            let send = (TransferKind::SEND, target);
            call.counted(stream, send, &part, (&count, unit_bytes))?;
        }
        if let Some(part) = parts(to, (source, source + 1), size) {
            let count = count_of(to_counts, source)?;
            let receive = (TransferKind::RECEIVE, source);
            call.counted(stream, receive, &part, (&count, unit_bytes))?;
        }
    }
    Ok(())
}

/// The count of a rank.
fn count_of<'t>(counts: &TensorView<'t>, rank: u32) -> Result<TensorView<'t>, Fault> {
    range(counts, rank.into(), u64::from(rank) + 1).ok_or(Fault::TRANSFER_TENSOR)
}

/// In round k each rank tells the one that is 2^k further on, and waits for the one that is 2^k before.
pub(super) fn barrier<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    guarded: &TensorView<'_>,
) -> Result<(), Fault> {
    let size = call.size();
    let mut distance = 1;
    while distance < size {
        let (to, from) = (call.after(distance), call.before(distance));
        call.token(stream, TransferKind::SEND, (to, distance), guarded)?;
        call.token(stream, TransferKind::RECEIVE, (from, distance), guarded)?;
        distance *= 2;
    }
    Ok(())
}
