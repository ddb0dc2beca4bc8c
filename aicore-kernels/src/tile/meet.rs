//! What counts of a pair of operands.

use super::fault::FaultCause;
use super::op::Spread;

/// What counts of the result of a pair: what counts of both.
pub(super) fn meet(spread: Spread, a: [u16; 2], b: [u16; 2]) -> Result<[u16; 2], FaultCause> {
    let counted = u32::from(b[0]) * u32::from(b[1]);
    let is_covered = match spread {
        Spread::Same => return Ok([a[0].min(b[0]), a[1].min(b[1])]),
        Spread::Row => counted >= u32::from(a[0]),
        Spread::Col => counted >= u32::from(a[1]),
        Spread::One => counted >= 1,
        Spread::FirstOne => return Ok(b),
    };
    if is_covered { Ok(a) } else { Err(FaultCause::Remainders { a, b }) }
}
