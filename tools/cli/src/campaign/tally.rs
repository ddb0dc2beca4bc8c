//! What came of some seeds, as numbers that ranks can send to each other and write to a file.

/// Counts of a tally. What they count is the campaign's affair; they are added up.
pub(crate) const COUNTS: usize = 6;

/// See the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The number of seeds first.
    pub(crate) counts: [u64; COUNTS],
    /// Exclusive or of what happened with each seed.
    pub(crate) hash: u64,
    /// Seeds that failed.
    pub(crate) failed: Vec<u64>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        for (own, more) in self.counts.iter_mut().zip(other.counts) {
            *own = own.saturating_add(more);
        }
        self.hash ^= other.hash;
        self.failed.extend(&other.failed);
    }
}
