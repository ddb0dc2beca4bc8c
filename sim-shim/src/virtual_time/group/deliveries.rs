//! A search over the orders in which transfers arrive: instead of the links a search decides which transfer of those on their way comes next.
//!
//! ```text
//! a transfer goes on its way -> kept in `under_way`
//! no machine has anything to do before the epoch -> one of them is chosen: it arrives now, and the next epoch begins
//! ```
//! Between two arrivals every machine comes to rest, so that what a rank does is a function of the transfers that have arrived at it and left it,
//! in their order. These orders of all ranks together are the state: two ways to one state are searched once.

use std::collections::BTreeMap;
use std::hash::Hash;

use crate::group::{Move, TransferId};
use crate::virtual_time::chooser::Chooser;
use crate::virtual_time::digest::Digest;

/// From one arrival to the next: longer than what a rank does between them in a small case.
const EPOCH_NS: u64 = 200_000;

/// Which transfer it is: its ranks, and the numbers that these have given it, which do not depend on the order of arrivals elsewhere.
type Id = (u32, u32, [Option<TransferId>; 2]);

/// See the file.
pub(super) struct Deliveries {
    chooser: Chooser,
    under_way: BTreeMap<Id, (Move, u64)>,
    /// Before this moment nothing arrives that has not been chosen.
    epoch_ns: u64,
    /// For each rank: a digest of what has arrived and left, in order.
    histories: Vec<Digest>,
}

impl Deliveries {
    pub(super) fn new(chooser: Chooser, size: usize) -> Self {
        let histories = vec![Digest::new(); size];
        Self { chooser, under_way: BTreeMap::new(), epoch_ns: EPOCH_NS, histories }
    }

    /// A run begins.
    pub(super) fn begin(&mut self) {
        self.under_way.clear();
        self.epoch_ns = EPOCH_NS;
        self.histories.fill(Digest::new());
    }

    /// See the field.
    pub(super) const fn epoch_ns(&self) -> u64 {
        self.epoch_ns
    }

    /// The transfer with this number goes on its way.
    pub(super) fn send(&mut self, found: Move, number: u64) {
        self.under_way.insert((found.from, found.to, found.over), (found, number));
    }

    /// No machine has anything to do before `next_ns`. If that is not before the epoch: the transfer that arrives, its number, and when.
    pub(super) fn arrival(&mut self, next_ns: u64) -> Option<(Move, u64, u64)> {
        if next_ns < self.epoch_ns {
            return None;
        }
        let at_ns = self.epoch_ns;
        let Ok(of) = u32::try_from(self.under_way.len()) else { return None };
        if of == 0 {
            self.epoch_ns = next_ns.saturating_add(EPOCH_NS);
            return None;
        }
        self.epoch_ns += EPOCH_NS;
        if of > 1 && self.chooser.wants_state() {
            let mut state = Digest::new();
            self.histories.iter().for_each(|history| history.number().hash(&mut state));
            self.chooser.visit(state.number());
        }
        let chosen = self.chooser.agent(of) as usize;
        let id = *self.under_way.keys().nth(chosen)?;
        let (found, number) = self.under_way.remove(&id)?;
        for rank in [found.from, found.to] {
            if let Some(history) = self.histories.get_mut(rank as usize) {
                id.hash(history);
            }
        }
        Some((found, number, at_ns))
    }

    /// The search as it is.
    pub(super) const fn chooser(&self) -> &Chooser {
        &self.chooser
    }

    /// Goes on to the next order; `false`: all have been taken.
    pub(super) fn advance(&mut self) -> bool {
        self.chooser.advance()
    }
}
