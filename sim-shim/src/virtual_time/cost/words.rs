//! Kernels that are not of the library, whose tasks say what they cost.

use std::sync::{PoisonError, RwLock};

/// Addresses of code, each with the word of its tasks.
static WORDS: RwLock<Vec<(u64, usize)>> = RwLock::new(Vec::new());

/// A word of each task of the code at this address, one of the first twelve, is how many nanoseconds the task takes; 0 there: that is not known.
pub fn set_cost_word(code: u64, at: usize) {
    let mut words = WORDS.write().unwrap_or_else(PoisonError::into_inner);
    match words.iter_mut().find(|(known, _)| *known == code) {
        Some(known) => known.1 = at,
        None => words.push((code, at)),
    }
}

/// What a task with these words says.
pub(super) fn cost_ns(code: u64, args: &[u64]) -> Option<u64> {
    let words = WORDS.read().unwrap_or_else(PoisonError::into_inner);
    let (_, at) = words.iter().find(|(known, _)| *known == code)?;
    args.get(*at).copied().filter(|cost_ns| *cost_ns > 0)
}

#[cfg(test)]
mod tests {
    use super::set_cost_word;
    use crate::virtual_time::KernelCosts;

    #[test]
    fn a_task_costs_what_its_word_says() {
        // No code is there.
        const CODE: u64 = 0x5;
        let args: [u64; 12] = std::array::from_fn(|at| 100 * at as u64);
        let model = KernelCosts::Library { fallback: 77 };
        let cost = |costs: KernelCosts, args| costs.of_code((500, CODE), 0, args);
        assert_eq!(cost(model, &args), 77, "the code says nothing");
        set_cost_word(CODE, 1);
        set_cost_word(CODE, 3);
        assert_eq!(cost(model, &args), 300);
        assert_eq!(cost(model, &[0; 12]), 77, "that is not known");
        assert_eq!(cost(KernelCosts::Constant(5), &args), 5, "as the user says");
    }
}
