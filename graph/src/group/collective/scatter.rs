//! Reduce-scatter in place: afterwards the part of each rank has the reduction of that part of all tensors; what stands in the
//! other parts is not defined.

use pto_abi::fault::Fault;

use super::call::Call;
use crate::group::choice::Algorithm;
use crate::group::reduction::Reduction;
use crate::group::tiles::parts;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;

/// By one of the algorithms.
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
fn direct<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    reduction: Reduction,
) -> Result<(), Fault> {
    let (rank, size) = (call.rank(), call.size());
    for distance in 1..size {
        let to = call.after(distance);
        call.send(stream, parts(view, (to, to + 1), size), (to, 0))?;
    }
    call.receive_all(stream, parts(view, (rank, rank + 1), size), 0, reduction)
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
        call.send(stream, parts(view, (sent, sent + 1), size), (right, step))?;
        let part = parts(view, (received, received + 1), size);
        call.receive_into(stream, part, (left, step), reduction)?;
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
        call.send(stream, half(partner), (partner, distance))?;
        call.receive_into(stream, half(rank), (partner, distance), reduction)?;
        distance /= 2;
    }
    Ok(())
}
