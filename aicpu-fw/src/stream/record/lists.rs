//! What stands behind the tasks of a record: which of them a replay publishes, and which predicates it looks at first.

use pto_abi::sync::Sharing;

use super::super::builder::Stream;
use super::super::tape::{TENSORS, Tape, TaskHead};
use super::Draft;
use crate::builder::{BuilderHost, DeviceMemory};
use crate::fanout::FanoutPolicy;

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
    /// Lists the tasks that wait for nothing within the record, and the predicates on bound tensors.
    pub(super) fn put_lists(&self, draft: &mut Draft) {
        let is_starter = |number: u32, _: usize, head: &TaskHead, looks: bool| {
            (head.producers == 0 || looks).then_some(number.into())
        };
        let is_bound = |_: u32, at: usize, head: &TaskHead, _: bool| {
            let at = at + TaskHead::WORDS + head.arg_words();
            let (line, base) = self.tape.shape(at);
            let is_bound = head.is_shaped() && line.has_predicate() && base >= TENSORS;
            is_bound.then_some(at as u64)
        };
        draft.totals.starters = self.put_list(draft, is_starter);
        draft.totals.predicates = self.put_list(draft, is_bound).1;
    }

    /// Lists what `of` says of the tasks, which it is given by number, place, head, and whether they look around; where
    /// the list stands, and how long it is.
    fn put_list(
        &self,
        draft: &mut Draft,
        of: impl Fn(u32, usize, &TaskHead, bool) -> Option<u64>,
    ) -> (u32, u32) {
        let list = draft.next;
        let mut at = Tape::binding(draft.start, draft.totals.tensors as usize);
        for number in 0..draft.totals.tasks {
            let head = self.tape.head(at);
            let (looks, next) = self.looks(at, &head);
            if let Some(word) = of(number, at, &head, looks) {
                self.tape.put(draft.next, word);
                draft.next += 1;
            }
            at = next;
        }
        let count = u32::try_from(draft.next - list).unwrap_or(u32::MAX);
        (u32::try_from(list).unwrap_or(u32::MAX), count)
    }

    /// Whether a touch of the task at `at` looks around; and where the next task is.
    fn looks(&self, at: usize, head: &TaskHead) -> (bool, usize) {
        let mut at = head.producers_at(at) + (head.producers as usize).div_ceil(2);
        let mut looks = false;
        for _ in 0..head.touches {
            let touch;
            (touch, at) = self.tape.touch(at);
            looks |= touch.looks;
        }
        (looks, at)
    }
}
