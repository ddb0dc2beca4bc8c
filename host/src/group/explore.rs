//! Small cases of groups in every order in which their transfers can arrive.
//!
//! Each run of a case is one order. The machines of the ranks take the choices of their seed: which of several cores or instances goes first on
//! one device is searched for one device alone (`pto_sim_shim::virtual_time::soak::explore`). A transfer that is lost or left out
//! ([`NetFaults`](super::NetFaults)) is so in every order.

use super::error::GroupError;
use super::ranks::Group;

/// What a search gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupExploration {
    /// Runs that were made.
    pub runs: u64,
    /// Whether they cover all orders.
    pub is_complete: bool,
    /// Orders that they cover; 0 unless they cover all.
    pub orders: u128,
    /// States in which several transfers could arrive next, and whose later orders were run once.
    pub states: usize,
    /// Choices of the longest one.
    pub longest: usize,
    /// The choices of the first run that failed, for [`Group::explore_one`], and what the case said.
    pub failure: Option<(Vec<u32>, String)>,
}

impl Group {
    /// Runs a case in every order in which its transfers can arrive, at most `limit` times, until one fails. `case` makes one run, or several, and says
    /// what is wrong with what it gave; it must do the same each time.
    ///
    /// # Errors
    /// `NotVirtual`: the group is not in virtual time.
    pub fn explore(
        &mut self,
        limit: u64,
        mut case: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<GroupExploration, GroupError> {
        let mut found = GroupExploration::default();
        // Later runs find cores in service. The first one is made twice, so that all of them do.
        if let Err(what) = self.explore_one(&[], &mut case)? {
            let failure = Some((Vec::new(), what));
            return Ok(GroupExploration { runs: 1, failure, ..found });
        }
        self.net()?.begin_search(None);
        while found.runs < limit && !found.is_complete {
            let result = case(self);
            let searched = self.net()?.searched().unwrap_or_default();
            found.runs += 1;
            found.longest = found.longest.max(searched.choices.len());
            if let Err(what) = result {
                found.failure = Some((searched.choices, what));
                break;
            }
            found.is_complete = !self.net()?.advance_search();
        }
        let searched = self.net()?.searched().unwrap_or_default();
        (found.orders, found.states) = (searched.orders, searched.states);
        self.net()?.end_search();
        Ok(found)
    }

    /// Runs a case in the order that these choices name; after the last of them the transfer that the lowest rank started first comes first.
    ///
    /// # Errors
    /// As [`explore`](Self::explore). The inner result is that of the case.
    pub fn explore_one(
        &mut self,
        choices: &[u32],
        mut case: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<Result<(), String>, GroupError> {
        self.net()?.begin_search(Some(choices.to_vec()));
        let result = case(self);
        self.net()?.end_search();
        Ok(result)
    }
}
