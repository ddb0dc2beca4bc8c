//! Reduce-scatter in place: afterwards the part of each rank has the reduction of that part of all tensors. The contents of the other parts
//! are not defined.

use pto_abi::fault::Fault;

use super::call::Call;
use crate::group::choice::Algorithm;
use crate::group::tiles::parts;
use crate::reduction::Reduction;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;

/// Reduces and scatters with one of the algorithms.
pub(super) fn scatter<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    (algorithm, reduction): (Algorithm, Reduction),
) -> Result<(), Fault> {
    match algorithm {
        Algorithm::RING => ring(call, stream, view, reduction),
        Algorithm::HALVING => halving(call, stream, view, reduction),
        _ => direct(call, stream, view, reduction),
    }
}

/// Each rank gets its part from all others at once, and reduces them in the order of the ranks.
///
/// Tile by tile: a send is complete when the other rank has received it, and what is on the heap goes when everything before it is
/// complete. With all sends in front, no rank would have room for its receives, once they fill the heap.
fn direct<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    reduction: Reduction,
) -> Result<(), Fault> {
    let (rank, size) = (call.rank(), call.size());
    let part = |of: u32| parts(view, (of, of + 1), size);
    for at in call.tiles_of_parts(view) {
        for to in (1..size).map(|distance| call.after(distance)) {
            call.send_tile(stream, part(to), (to, 0, at))?;
        }
        if let Some(tile) = call.tile(part(rank), at) {
            call.receive_all(stream, &tile, (0, at), reduction)?;
        }
    }
    Ok(())
}

/// Each part goes round once, and is reduced with one rank's after the other; it ends at its own rank.
fn ring<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    reduction: Reduction,
) -> Result<(), Fault> {
    let size = call.size();
    let (left, right) = (call.before(1), call.after(1));
    for step in 1..size {
        let (sent, received) = (call.before(step), call.before(step + 1));
        let part = |of: u32| parts(view, (of, of + 1), size);
        let (sent, received) = ((part(sent), right), (part(received), left));
        call.exchange_into(stream, sent, received, (step, reduction))?;
    }
    Ok(())
}

/// In each round a rank gives half of what it has to a partner, and gets the other half of the partner's.
fn halving<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    reduction: Reduction,
) -> Result<(), Fault> {
    let (rank, size) = (call.rank(), call.size());
    let mut distance = size / 2;
    while distance > 0 {
        let partner = rank ^ distance;
        let start = |of: u32| of & !(distance - 1);
        let half = |of: u32| parts(view, (start(of), start(of) + distance), size);
        let (sent, received) = ((half(partner), partner), (half(rank), partner));
        call.exchange_into(stream, sent, received, (distance, reduction))?;
        distance /= 2;
    }
    Ok(())
}
