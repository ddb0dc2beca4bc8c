//! The commands that a campaign names: what repeats a seed, and what tries the rest.

use std::ops::Range;

use crate::replay;

/// Those of a campaign that `pto soak` runs with this option.
pub(crate) struct Commands {
    pub(crate) which: &'static str,
}

impl Commands {
    /// What repeats one seed.
    pub(crate) fn replay(&self, seed: u64) -> String {
        self.pto_soak(&["--replay", &seed.to_string()])
    }

    /// What tries the seeds that an interrupted campaign has not, after the first `tried`; `None`: it had tried everything.
    pub(crate) fn go_on(&self, seeds: Range<u64>, tried: u64) -> Option<String> {
        let from = seeds.start + tried;
        let left = seeds.end.checked_sub(from).filter(|left| *left > 0)?;
        Some(self.pto_soak(&["--seed", &from.to_string(), "--seeds", &left.to_string()]))
    }

    fn pto_soak(&self, words: &[&str]) -> String {
        let program = std::env::args_os().next();
        let words = ["soak", self.which].into_iter().chain(words.iter().copied()).map(Into::into);
        replay::command(program.into_iter().chain(words))
    }
}
