//! A topological order of the tasks (Kahn 1962).

use crate::timeline::model::Neighbours;

/// Every task after its producers; `Err`: a task that waits for itself, directly or not.
pub(crate) fn topological(
    tasks: usize,
    producers: &Neighbours,
    consumers: &Neighbours,
) -> Result<Vec<u32>, u32> {
    let slots = 0..u32::try_from(tasks).unwrap_or(u32::MAX);
    let mut waiting: Vec<usize> = slots.clone().map(|slot| producers.of(slot).len()).collect();
    let mut order: Vec<u32> = slots.filter(|slot| waiting[*slot as usize] == 0).collect();
    let mut next = 0;
    while let Some(slot) = order.get(next).copied() {
        next += 1;
        for &consumer in consumers.of(slot) {
            waiting[consumer as usize] -= 1;
            if waiting[consumer as usize] == 0 {
                order.push(consumer);
            }
        }
    }
    match waiting.iter().position(|left| *left > 0) {
        None => Ok(order),
        Some(slot) => Err(u32::try_from(slot).unwrap_or(u32::MAX)),
    }
}
