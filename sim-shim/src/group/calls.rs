//! What ranks have called, call by call: the second rank that comes to a call is compared with the first one, whether or not their transfers meet.

use std::collections::{HashMap, VecDeque};

use pto_graph::group::tag;

use super::error::{TransferError, TransferSide};

/// Calls that are kept. Ranks are not so far apart: each waits for the others in its calls.
const KEPT: usize = 4096;

/// The calls of one run, each with the sides that came first: one, or as many as there are sub-groups with the same tags.
#[derive(Debug, Default)]
pub struct CallLog {
    run: u64,
    first: HashMap<u128, Vec<TransferSide>>,
    /// In the order in which they came.
    order: VecDeque<u128>,
}

impl CallLog {
    /// A rank starts a transfer, of a run. What is of no call, or of one whose transfers or runs differ, is not compared.
    ///
    /// # Errors
    /// `Mismatch`: another rank calls something else there.
    pub fn note(&mut self, run: u64, tag: u128, second: TransferSide) -> Result<(), TransferError> {
        if !tag::is_of_call(tag) || !tag::stamp::is_one_of_its_call(second.stamp) || run < self.run
        {
            return Ok(());
        }
        if run > self.run {
            *self = Self { run, ..Self::default() };
        }
        let call = tag::call(tag);
        if let Some(sides) = self.first.get_mut(&call) {
            if sides.iter().any(|first| first.stamp == second.stamp) {
                return Ok(());
            }
            if let Some(first) = sides.iter().find(|first| first.disagrees_with(&second)) {
                return Err(TransferError::Mismatch { first: *first, second, tag });
            }
            sides.push(second);
            return Ok(());
        }
        if self.order.len() == KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.first.remove(&oldest);
        }
        self.first.insert(call, vec![second]);
        self.order.push_back(call);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{CallLog, KEPT, TransferSide};

    const CALL: u128 = 1 << 63 | 1 << 32;
    /// Of eight ranks.
    const STAMP: u128 = 1 << 15 | 1 << 80 | 8 << 96;

    fn side(rank: u32, stamp: u128) -> TransferSide {
        TransferSide { rank, bytes: 8, stamp }
    }

    #[test]
    fn the_second_rank_that_comes_to_a_call_is_compared() {
        let mut calls = CallLog::default();
        calls.note(1, CALL, side(0, STAMP)).unwrap();
        calls.note(1, CALL | 5, side(1, STAMP)).unwrap();
        let found = calls.note(1, CALL | 6, side(2, STAMP | 1)).unwrap_err().to_string();
        assert!(found.contains("rank 0 has") && found.contains("rank 2 has"), "{found}");
        // Another call, another communicator, another run.
        calls.note(1, CALL + (1 << 32), side(2, STAMP | 1)).unwrap();
        calls.note(1, CALL | 1 << 64, side(2, STAMP | 1)).unwrap();
        calls.note(2, CALL, side(2, STAMP | 1)).unwrap();
        calls.note(1, CALL, side(3, STAMP)).unwrap();
        assert!(calls.note(2, CALL, side(0, STAMP)).is_err());
    }

    /// The rows of a mesh have the same tags; a rank that is in the row of another one is in its call.
    #[test]
    fn sub_groups_are_compared_where_they_have_a_rank_in_common() {
        let of = |rank, first: u128, size: u128| {
            side(rank, 1 << 15 | first << 64 | 1 << 80 | size << 96)
        };
        let mut calls = CallLog::default();
        for (rank, first) in [(0, 0), (2, 2), (4, 4), (1, 0), (5, 4), (3, 2)] {
            calls.note(1, CALL, of(rank, first, 2)).unwrap();
        }
        let found = calls.note(1, CALL, of(5, 2, 4)).unwrap_err().to_string();
        assert!(found.contains("rank 2 has"), "{found}");
        assert!(found.contains("in a group of 4 ranks from 2"), "{found}");
    }

    #[test]
    fn transfers_that_may_differ_are_not_compared() {
        let mut calls = CallLog::default();
        // A program's own, tiles of a pipeline, and the calls of a session.
        for (tag, stamp) in [(5, STAMP), (CALL, 0), (CALL, STAMP | 1 << 112)] {
            calls.note(1, tag, side(0, stamp)).unwrap();
            calls.note(1, tag, side(1, stamp | 1)).unwrap();
        }
    }

    #[test]
    fn a_run_of_any_length_keeps_few_calls() {
        let mut calls = CallLog::default();
        for call in 0..3 * KEPT as u128 {
            calls.note(1, 1 << 63 | call << 32, side(0, STAMP)).unwrap();
        }
        assert_eq!((calls.first.len(), calls.order.len()), (KEPT, KEPT));
        let last = 1 << 63 | (3 * KEPT as u128 - 1) << 32;
        assert!(calls.note(1, last, side(1, STAMP | 1)).is_err());
    }
}
