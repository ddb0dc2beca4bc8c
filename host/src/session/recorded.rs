//! A recording as the words that the firmware begins it from (`pto_abi::session::recording`), and the recordings of a stream that are in GM.

use std::collections::VecDeque;
use std::sync::Arc;

use pto_abi::session::recording::{MOST_FOLLOWERS, MOST_NODES, node_head, words_before_nodes};
use pto_abi::task::TRANSFER;
use pto_abi::{CoreKind, FuncId, GmAddr};

use crate::buffer::DeviceBuffer;

/// Recordings of a stream that stay in GM.
const KEPT: usize = 32;

/// The tasks of a recording, one after the other.
#[derive(Default)]
pub(super) struct RecordedWords {
    /// The words of each task.
    tasks: Vec<Vec<u64>>,
    followers: Vec<usize>,
}

impl RecordedWords {
    /// Adds a task that waits for earlier ones; its number.
    pub(super) fn add(
        &mut self,
        (func, kind): (FuncId, Option<CoreKind>),
        args: &[u64],
        after: &[usize],
    ) -> usize {
        after.iter().for_each(|earlier| self.followers[*earlier] += 1);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        // A launch has at most 128 arguments.
        let arg_count = u8::try_from(args.len()).unwrap_or(u8::MAX);
        let kind = kind.map_or(TRANSFER, CoreKind::get);
        let mut words = vec![node_head(func, kind, arg_count, count(after.len()))];
        words.extend(after.iter().map(|earlier| *earlier as u64));
        words.extend(args);
        self.tasks.push(words);
        self.followers.push(0);
        self.tasks.len() - 1
    }

    /// All of them. `None`: the firmware does not begin such a recording, because there is no task, there are too many, or too many follow one.
    pub(super) fn finish(self) -> Option<Vec<u64>> {
        let count = self.tasks.len();
        let is_wide = self.followers.iter().any(|followers| *followers > MOST_FOLLOWERS);
        if !(1..=MOST_NODES).contains(&count) || is_wide {
            return None;
        }
        let mut words = vec![count as u64];
        let mut offset = words_before_nodes(count);
        for task in &self.tasks {
            words.push(offset as u64);
            offset += task.len();
        }
        words.resize(words_before_nodes(count), 0);
        words.extend(self.tasks.iter().flatten());
        Some(words)
    }
}

/// The recordings of a stream that are in GM: one that is launched again is not written again. Of one stream no two are in flight at once, so that
/// each needs its words, in which the firmware notes slots, only once.
pub(super) struct RecordedHere<R> {
    kept: VecDeque<(R, Bindings, Arc<DeviceBuffer<u64>>)>,
}

/// Addresses, and those that replace them.
type Bindings = Vec<(GmAddr, GmAddr)>;

impl<R> Default for RecordedHere<R> {
    fn default() -> Self {
        Self { kept: VecDeque::new() }
    }
}

impl<R> RecordedHere<R> {
    /// The words of a recording, if they are there.
    pub(super) fn find(
        &self,
        is_it: impl Fn(&R) -> bool,
        bindings: &[(GmAddr, GmAddr)],
    ) -> Option<Arc<DeviceBuffer<u64>>> {
        let found = self.kept.iter().find(|(of, bound, _)| bound == bindings && is_it(of));
        found.map(|(_, _, words)| Arc::clone(words))
    }

    /// Keeps the words of a recording, and lets go of the oldest.
    pub(super) fn keep(
        &mut self,
        recording: R,
        bindings: &[(GmAddr, GmAddr)],
        words: &Arc<DeviceBuffer<u64>>,
    ) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((recording, bindings.to_vec(), Arc::clone(words)));
    }
}

#[cfg(test)]
mod tests {
    use super::RecordedWords;
    use pto_abi::session::RecordedLaunches;
    use pto_abi::sync::AtomicU64;
    use pto_abi::{CoreKind, FuncId};

    const KERNEL: (FuncId, Option<CoreKind>) = (FuncId(3), Some(CoreKind::AIC));

    #[test]
    fn what_is_written_is_read() {
        let mut words = RecordedWords::default();
        let first = words.add(KERNEL, &[5, 6], &[]);
        let second = words.add(KERNEL, &[], &[first]);
        words.add(KERNEL, &[7], &[first, second]);
        let words = words.finish().unwrap();
        let words: Vec<AtomicU64> = words.into_iter().map(AtomicU64::new).collect();
        let recording = RecordedLaunches::of(&words).unwrap();
        let read = |number| {
            let node = recording.node(number).unwrap();
            let args: Vec<u64> = (0..node.arg_count()).map(|index| node.arg(index)).collect();
            (node.func, node.kind, args, node.after().collect::<Vec<_>>())
        };
        assert_eq!(read(0), (KERNEL.0, KERNEL.1, vec![5, 6], vec![]));
        assert_eq!(read(1), (KERNEL.0, KERNEL.1, vec![], vec![0]));
        assert_eq!(read(2), (KERNEL.0, KERNEL.1, vec![7], vec![0, 1]));
    }

    #[test]
    fn a_task_with_many_followers_is_not_for_the_firmware() {
        let fan = |followers: usize| {
            let mut words = RecordedWords::default();
            let first = words.add(KERNEL, &[], &[]);
            (0..followers).for_each(|_| {
                words.add(KERNEL, &[], &[first]);
            });
            words.finish().is_some()
        };
        assert!(fan(5) && !fan(6) && RecordedWords::default().finish().is_none());
    }
}
