//! Broadcast and reduce through relays: each tile has a rank that passes it on, and the ranks but the root take turns.
//!
//! A link carries every byte once, in both directions, so that a large tensor takes the time of one copy. (A scatter followed by a gather
//! carries the bytes of the root twice.)

use pto_abi::fault::Fault;

use super::call::Call;
use crate::reduction::Reduction;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;

/// The rank that passes on a tile. Each tile has one relay, which is not the root.
fn relay_of(call: &Call<'_>, root: u32, tile: u32) -> u32 {
    let position = tile.checked_rem(call.size() - 1).unwrap_or(0);
    (root + 1 + position).checked_rem(call.size()).unwrap_or(0)
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

/// How many rounds a rank sends tiles of while it has not reduced its own tile of the first of them. In each round every relay has a tile.
const ROUNDS_AHEAD: usize = 3;

/// `root` gets the reduction of all tensors, in the order of the ranks; what the others have afterwards is not defined.
///
/// A rank sends to the relays of a round when it has reduced its own tile of two or three rounds before: what it has reduced would
/// otherwise wait for all that it sends to others, and the root would have nothing to do in the meantime.
pub(super) fn reduce<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    (root, reduction): (u32, Reduction),
) -> Result<(), Fault> {
    if call.size() < 2 {
        return Ok(());
    }
    let mut reduced = [None; ROUNDS_AHEAD];
    for (at, tile) in call.tiles(Some(*view)) {
        let relay = relay_of(call, root, at);
        if call.rank() == relay {
            reduced.rotate_left(1);
            reduced[ROUNDS_AHEAD - 1] = call.receive_all(stream, &tile, (at, 0), reduction)?;
            call.send(stream, Some(tile), (root, at))?;
            continue;
        }
        let after = reduced[0].as_slice();
        call.send_one(stream, &tile, (relay, at, 0), after)?;
        if call.rank() == root {
            call.receive(stream, Some(tile), (relay, at))?;
        }
    }
    Ok(())
}
