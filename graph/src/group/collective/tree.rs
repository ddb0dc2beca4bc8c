//! Binomial trees with the whole tensor: few steps, for small ones.

use pto_abi::fault::Fault;

use super::call::Call;
use crate::reduction::Reduction;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;

/// The first step on the way down.
const DOWN: u32 = 1 << 14;

/// Everybody gets the tensor of `root`.
pub(super) fn broadcast<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    root: u32,
) -> Result<(), Fault> {
    let (size, own) = (call.size(), position(call, root));
    let rank_at = |at: u32| (at + root).checked_rem(size).unwrap_or(0);
    // The lowest bit of a position says by how much its parent is lower; the root has all of them.
    let lowest = if own == 0 { size.next_power_of_two() } else { own & own.wrapping_neg() };
    if own != 0 {
        call.receive(stream, Some(*view), (rank_at(own - lowest), DOWN))?;
    }
    let mut distance = lowest / 2;
    while distance > 0 {
        if own + distance < size {
            call.send(stream, Some(*view), (rank_at(own + distance), DOWN))?;
        }
        distance /= 2;
    }
    Ok(())
}

/// `root` gets the reduction of all tensors; what the others have afterwards is not defined.
pub(super) fn reduce<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    (root, reduction): (u32, Reduction),
) -> Result<(), Fault> {
    let (size, own) = (call.size(), position(call, root));
    let rank_at = |at: u32| (at + root).checked_rem(size).unwrap_or(0);
    let mut distance = 1;
    while distance < size {
        if own & distance != 0 {
            return call.send(stream, Some(*view), (rank_at(own - distance), 0));
        }
        if own + distance < size {
            let from = (rank_at(own + distance), 0);
            call.receive_into(stream, Some(*view), from, reduction)?;
        }
        distance *= 2;
    }
    Ok(())
}

/// This rank's index in a tree whose root has index 0.
fn position(call: &Call<'_>, root: u32) -> u32 {
    call.before(root)
}
