//! Broadcast and reduce through relays: each tile has a rank that passes it on, and the ranks but the root take turns.
//!
//! A link carries every byte once, in both directions, so that a large tensor takes the time of one copy. (A scatter with a gather behind it
//! carries the bytes of the root twice.)

use pto_abi::fault::Fault;

use super::call::Call;
use crate::group::reduction::Reduction;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;

/// The rank that passes on a tile, of which there is one beside the root.
fn relay_of(call: &Call<'_>, root: u32, tile: u32) -> u32 {
    let place = tile.checked_rem(call.size() - 1).unwrap_or(0);
    (root + 1 + place).checked_rem(call.size()).unwrap_or(0)
}

/// Everybody gets the tensor of `root`.
pub(super) fn broadcast<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    root: u32,
) -> Result<(), Fault> {
    if call.size() < 2 {
        return Ok(());
    }
    let rank = call.rank();
    for (at, tile) in call.tiles(Some(*view)) {
        let relay = relay_of(call, root, at);
        if rank == root {
            call.send(stream, Some(tile), (relay, at))?;
            continue;
        }
        let from = if rank == relay { root } else { relay };
        call.receive(stream, Some(tile), (from, at))?;
        if rank == relay {
            for to in (1..call.size()).map(|distance| call.after(distance)) {
                if to != root {
                    call.send(stream, Some(tile), (to, at))?;
                }
            }
        }
    }
    Ok(())
}

/// `root` gets the reduction of all tensors, in the order of the ranks; what the others have afterwards is not defined.
pub(super) fn reduce<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    (root, reduction): (u32, Reduction),
) -> Result<(), Fault> {
    if call.size() < 2 {
        return Ok(());
    }
    for (at, tile) in call.tiles(Some(*view)) {
        let relay = relay_of(call, root, at);
        if call.rank() == relay {
            call.receive_all(stream, &tile, (at, 0), reduction)?;
            call.send(stream, Some(tile), (root, at))?;
            continue;
        }
        call.send(stream, Some(tile), (relay, at))?;
        if call.rank() == root {
            call.receive(stream, Some(tile), (relay, at))?;
        }
    }
    Ok(())
}
