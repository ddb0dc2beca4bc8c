//! Who decides what the hardware leaves open: which of several agents that are due goes first, and how long a
//! delay takes within its span. One stream of choices decides a whole run, so that it can be drawn, replayed
//! and enumerated.

use super::profile::CostRange;
use super::random::{below, draw};
use super::search::Search;

/// Where the choices of a run come from.
#[derive(Clone, Debug)]
pub struct Chooser {
    source: ChoiceSource,
    count: u64,
    listed: Option<Vec<u32>>,
}

#[derive(Clone, Debug)]
enum ChoiceSource {
    Seed(u64),
    Replay { choices: Vec<u32>, next: usize },
    Search(Search),
}

impl Chooser {
    /// Draws from a generator with this seed (splitmix64, Steele, Lea and Flood 2014).
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self { source: ChoiceSource::Seed(seed), count: 0, listed: None }
    }

    /// Repeats a list of choices; after its end the first alternative is taken.
    #[must_use]
    pub const fn replay(choices: Vec<u32>) -> Self {
        Self { source: ChoiceSource::Replay { choices, next: 0 }, count: 0, listed: None }
    }

    /// The first path of a depth-first search over all choices of agents; delays take their mean.
    #[must_use]
    pub const fn search() -> Self {
        Self { source: ChoiceSource::Search(Search::over_paths()), count: 0, listed: None }
    }

    /// As [`search`](Self::search), and no path goes on from a state that was reached before.
    #[must_use]
    pub fn search_states() -> Self {
        Self { source: ChoiceSource::Search(Search::over_states()), count: 0, listed: None }
    }

    /// How far a search is; `None`: this is none.
    #[must_use]
    pub const fn searched(&self) -> Option<&Search> {
        match &self.source {
            ChoiceSource::Search(search) => Some(search),
            _ => None,
        }
    }

    /// Whether this is a search over states.
    pub(super) fn searches_states(&self) -> bool {
        self.searched().is_some_and(Search::is_over_states)
    }

    /// Whether the state before the next choice is of interest.
    #[inline]
    pub(super) fn wants_state(&self) -> bool {
        self.searched().is_some_and(Search::wants_state)
    }

    /// The machine is in this state, before a choice.
    pub(super) fn visit(&mut self, state: u128) {
        if let ChoiceSource::Search(search) = &mut self.source {
            search.visit(state);
        }
    }

    /// Keeps the choices of agents, for [`replay`](Self::replay).
    #[must_use]
    pub fn listing(mut self) -> Self {
        self.listed = Some(Vec::new());
        self
    }

    /// The choices that were kept.
    #[must_use]
    pub fn listed(&self) -> &[u32] {
        self.listed.as_deref().unwrap_or(&[])
    }

    /// How many choices were made: those with more than one alternative.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// One of `of` agents; `of` is not zero.
    #[inline]
    pub fn agent(&mut self, of: u32) -> u32 {
        if of < 2 {
            return 0;
        }
        self.count += 1;
        let chosen = match &mut self.source {
            ChoiceSource::Seed(state) => below(draw(state), of),
            ChoiceSource::Replay { choices, next } => {
                let chosen = choices.get(*next).copied().unwrap_or(0);
                *next += 1;
                chosen.min(of - 1)
            }
            ChoiceSource::Search(search) => search.step(of),
        };
        if let Some(listed) = &mut self.listed {
            listed.push(chosen);
        }
        chosen
    }

    /// A delay within `span`.
    #[inline]
    pub fn delay(&mut self, span: CostRange) -> u64 {
        let width = span.high - span.low;
        if width == 0 {
            return span.low;
        }
        match &mut self.source {
            ChoiceSource::Seed(state) => {
                self.count += 1;
                let width = u32::try_from(width).unwrap_or(u32::MAX - 1);
                span.low + u64::from(below(draw(state), width + 1))
            }
            ChoiceSource::Replay { .. } | ChoiceSource::Search(_) => span.mean(),
        }
    }

    /// In a search: goes on to the next path; `false`: all have been taken.
    pub fn advance(&mut self) -> bool {
        self.count = 0;
        if let Some(listed) = &mut self.listed {
            listed.clear();
        }
        let ChoiceSource::Search(search) = &mut self.source else { return false };
        search.advance()
    }
}

#[cfg(test)]
mod tests {
    use super::{Chooser, CostRange};

    #[test]
    fn a_seed_repeats_and_seeds_differ() {
        let take = |seed| {
            let mut chooser = Chooser::seeded(seed);
            (0..64).map(|_| chooser.agent(5)).collect::<Vec<_>>()
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
        let mut seen = take(1);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn delays_stay_in_their_span() {
        let mut chooser = Chooser::seeded(1);
        let span = CostRange { low: 180, high: 1020 };
        let delays: Vec<_> = (0..20_000).map(|_| chooser.delay(span)).collect();
        assert!(delays.iter().all(|delay| (180..=1020).contains(delay)));
        let mean = delays.iter().sum::<u64>() / 20_000;
        assert!((590..610).contains(&mean), "{mean}");
        assert_eq!(chooser.delay(CostRange { low: 7, high: 7 }), 7);
        assert_eq!(Chooser::search().delay(span), 600);
    }

    #[test]
    fn a_search_takes_every_path_once() {
        let mut chooser = Chooser::search().listing();
        let mut paths = Vec::new();
        loop {
            // A tree whose shape depends on the choices.
            let first = chooser.agent(3);
            let of = first + 1;
            chooser.agent(of);
            paths.push(chooser.listed().to_vec());
            if !chooser.advance() {
                break;
            }
        }
        assert_eq!(paths, [vec![0], vec![1, 0], vec![1, 1], vec![2, 0], vec![2, 1], vec![2, 2]]);
    }

    #[test]
    fn a_listed_run_is_replayed() {
        let mut drawn = Chooser::seeded(3).listing();
        let first: Vec<_> = (2..30).map(|of| drawn.agent(of)).collect();
        let mut again = Chooser::replay(drawn.listed().to_vec());
        assert_eq!((2..30).map(|of| again.agent(of)).collect::<Vec<_>>(), first);
        assert_eq!((again.agent(9), again.count()), (0, 29));
    }
}
