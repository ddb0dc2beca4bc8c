//! An all-reduce by recursive doubling: in round k two ranks whose numbers differ in bit k exchange all that they have, and both reduce it.

use pto_abi::fault::Fault;

use super::call::Call;
use crate::reduction::Reduction;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;

/// All ranks reduce in the same order, so that they have the same bits. Of a power of two of ranks.
pub(super) fn all_reduce<G: StreamBuilder>(
    call: &Call<'_>,
    stream: &mut G,
    view: &TensorView<'_>,
    reduction: Reduction,
) -> Result<(), Fault> {
    let (rank, mut bit) = (call.rank(), 1);
    while bit < call.size() {
        let other = rank ^ bit;
        let position = u32::from(other < rank);
        for (at, tile) in call.tiles(Some(*view)) {
            call.send_one(stream, &tile, (other, bit, at), &[])?;
            call.reduce_one(stream, &tile, (other, bit, at), (reduction, position))?;
        }
        bit *= 2;
    }
    Ok(())
}
