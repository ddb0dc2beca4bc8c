//! All-gather in place: each rank has its part; afterwards everybody has all of them.

use pto_abi::fault::Fault;

use super::call::Call;
use crate::group::choice::Algorithm;
use crate::group::tiles::parts;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;

/// The first step of a gather: a call that scatters before has lower ones.
const FIRST_STEP: u32 = 1 << 15;

/// Gathers with one of the algorithms.
pub(super) fn gather<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    algorithm: Algorithm,
) -> Result<(), Fault> {
    match algorithm {
        Algorithm::RING => ring(call, stream, view),
        Algorithm::HALVING => doubling(call, stream, view),
        _ => direct(call, stream, view),
    }
}

/// Each rank gives its part to all others.
fn direct<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
) -> Result<(), Fault> {
    let (rank, size) = (call.rank(), call.size());
    let part = |of: u32| parts(view, (of, of + 1), size);
    for at in call.tiles_of_parts(view) {
        for distance in 1..size {
            let (to, from) = (call.after(distance), call.before(distance));
            call.send_tile(stream, part(rank), (to, FIRST_STEP, at))?;
            call.receive_tile(stream, part(from), (from, FIRST_STEP, at))?;
        }
    }
    Ok(())
}

/// Each part goes round once.
fn ring<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
) -> Result<(), Fault> {
    let size = call.size();
    let (left, right) = (call.before(1), call.after(1));
    for step in 0..size - 1 {
        let (sent, received) = (call.before(step), call.before(step + 1));
        let part = |of: u32| parts(view, (of, of + 1), size);
        let (sent, received) = ((part(sent), right), (part(received), left));
        call.exchange(stream, sent, received, FIRST_STEP + step)?;
    }
    Ok(())
}

/// In each round a rank exchanges all that it has with a partner.
fn doubling<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
) -> Result<(), Fault> {
    let (rank, size) = (call.rank(), call.size());
    let mut distance = 1;
    while distance < size {
        let partner = rank ^ distance;
        let start = |of: u32| of & !(distance - 1);
        let has = |of: u32| parts(view, (start(of), start(of) + distance), size);
        let (sent, received) = ((has(rank), partner), (has(partner), partner));
        call.exchange(stream, sent, received, FIRST_STEP + distance)?;
        distance *= 2;
    }
    Ok(())
}

/// One rank gets the parts of all others.
pub(super) fn gather_at<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    root: u32,
) -> Result<(), Fault> {
    let (rank, size) = (call.rank(), call.size());
    let part = |of: u32| parts(view, (of, of + 1), size);
    if rank != root {
        return call.send(stream, part(rank), (root, FIRST_STEP));
    }
    for from in (0..size).filter(|from| *from != root) {
        call.receive(stream, part(from), (from, FIRST_STEP))?;
    }
    Ok(())
}

/// One rank gives each other one its part.
pub(super) fn spread_from<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    root: u32,
) -> Result<(), Fault> {
    let (rank, size) = (call.rank(), call.size());
    let part = |of: u32| parts(view, (of, of + 1), size);
    if rank != root {
        return call.receive(stream, part(rank), (root, 0));
    }
    for to in (0..size).filter(|to| *to != root) {
        call.send(stream, part(to), (to, 0))?;
    }
    Ok(())
}
