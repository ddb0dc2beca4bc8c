//! A recording in GM, as the firmware begins it: the launches of a capture, with what each of them follows.
//!
//! ```text
//! words: [ nodes | index of node 0, 1, .. | slot of node 0, 1, .. | nodes ]
//! node:  [ head: func id, core kind or `TRANSFER`, arguments, earlier nodes | numbers of the earlier nodes | arguments ]
//! ```
//! The host writes all words but the slots, before the command is submitted. The slots are the firmware's, while the command is on its way. A node
//! follows earlier nodes only, so that the order of the nodes is one in which they can be begun.

use crate::ids::FuncId;
use crate::kinds::CoreKind;
use crate::sync::{AtomicU64, Ordering};
use crate::task::TRANSFER;

/// The most nodes that may follow a node directly: those that find room in the line of its task.
pub const MOST_FOLLOWERS: usize = crate::task::INLINE_CONSUMERS;
/// The most nodes of a recording.
pub const MOST_NODES: usize = 1 << 20;

/// The head of a node; `kind`: a `CoreKind`, or [`TRANSFER`].
#[must_use]
pub const fn node_head(func: FuncId, kind: u8, args: u8, after: u32) -> u64 {
    func.0 as u64 | (kind as u64) << 16 | (args as u64) << 24 | (after as u64) << 32
}

/// Words before the nodes.
#[must_use]
pub const fn words_before_nodes(nodes: usize) -> usize {
    1 + 2 * nodes
}

/// A recording whose frame is right; each node is checked when it is looked at.
#[derive(Clone, Copy)]
pub struct RecordedLaunches<'a> {
    words: &'a [AtomicU64],
    nodes: u32,
}

/// A node that is right.
#[derive(Clone, Copy)]
pub struct RecordedNode<'a> {
    /// The kernel.
    pub func: FuncId,
    /// Where it runs; `None`: the transfer engine does it.
    pub kind: Option<CoreKind>,
    /// Numbers of nodes that it follows, each below its own.
    after: &'a [AtomicU64],
    /// The arguments.
    args: &'a [AtomicU64],
}

impl<'a> RecordedLaunches<'a> {
    /// The recording in these words. `None`: it has no nodes, too many, or an index is not within the words.
    #[must_use]
    pub fn of(words: &'a [AtomicU64]) -> Option<Self> {
        let count = words.first()?.load(Ordering::Relaxed);
        let nodes = usize::try_from(count).ok().filter(|count| (1..=MOST_NODES).contains(count))?;
        words.get(..words_before_nodes(nodes))?;
        Some(Self { words, nodes: u32::try_from(nodes).ok()? })
    }

    /// How many nodes it has.
    #[must_use]
    pub const fn nodes(&self) -> u32 {
        self.nodes
    }

    /// A node. `None`: there is none of this number, or its words cannot be.
    #[must_use]
    pub fn node(&self, number: u32) -> Option<RecordedNode<'a>> {
        if number >= self.nodes {
            return None;
        }
        let start = self.words.get(1 + number as usize)?.load(Ordering::Relaxed);
        let words = self.words.get(usize::try_from(start).ok()?..)?;
        let (head, rest) = words.split_first()?;
        let [func_low, func_high, kind, args, a, b, c, d] =
            head.load(Ordering::Relaxed).to_le_bytes();
        let after = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
        let (after, rest) = rest.split_at_checked(after)?;
        let is_earlier = |earlier: &AtomicU64| earlier.load(Ordering::Relaxed) < u64::from(number);
        Some(RecordedNode {
            func: FuncId(u16::from_le_bytes([func_low, func_high])),
            kind: if kind == TRANSFER { None } else { Some(CoreKind::try_from(kind).ok()?) },
            after: after.iter().all(is_earlier).then_some(after)?,
            args: rest.get(..usize::from(args))?,
        })
    }

    /// The slot of a node that was begun.
    #[must_use]
    pub fn slot(&self, number: u32) -> u32 {
        let index = 1 + self.nodes as usize + number as usize;
        let slot = self.words.get(index).map(|slot| slot.load(Ordering::Relaxed));
        slot.and_then(|slot| u32::try_from(slot).ok()).unwrap_or(u32::MAX)
    }

    /// A node was begun in this slot.
    pub fn set_slot(&self, number: u32, slot: u32) {
        if let Some(word) = self.words.get(1 + self.nodes as usize + number as usize) {
            word.store(slot.into(), Ordering::Relaxed);
        }
    }
}

impl RecordedNode<'_> {
    /// How many arguments it has.
    #[must_use]
    pub const fn arg_count(&self) -> usize {
        self.args.len()
    }

    /// An argument; zero: there is none of this number.
    #[must_use]
    #[inline]
    pub fn arg(&self, index: usize) -> u64 {
        self.args.get(index).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// The nodes that it follows.
    pub fn after(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.after.iter().map(|earlier| {
            // Below its own number, which is 32 bits wide.
            u32::try_from(earlier.load(Ordering::Relaxed)).unwrap_or(0)
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::{RecordedLaunches, node_head, words_before_nodes};
    use crate::ids::FuncId;
    use crate::kinds::CoreKind;
    use crate::sync::AtomicU64;
    use crate::task::TRANSFER;
    use std::vec::Vec;

    fn words(of: &[u64]) -> Vec<AtomicU64> {
        of.iter().map(|word| AtomicU64::new(*word)).collect()
    }

    fn two() -> Vec<u64> {
        let first = words_before_nodes(2) as u64;
        let head = |args, after| node_head(FuncId(7), CoreKind::AIV.get(), args, after);
        [2, first, first + 2, 0, 0, head(1, 0), 11, head(2, 1), 0, 12, 13].to_vec()
    }

    #[test]
    fn nodes_are_read() {
        let words = words(&two());
        let recording = RecordedLaunches::of(&words).unwrap();
        let node = recording.node(1).unwrap();
        assert_eq!((node.func, node.kind, node.arg_count()), (FuncId(7), Some(CoreKind::AIV), 2));
        assert_eq!((node.arg(0), node.arg(1), node.arg(2)), (12, 13, 0));
        assert_eq!(node.after().collect::<Vec<_>>(), [0]);
        recording.set_slot(1, 9);
        assert_eq!((recording.slot(1), recording.nodes()), (9, 2));
        assert!(recording.node(2).is_none());
    }

    #[test]
    fn a_transfer_is_a_node_without_a_core() {
        let mut transfer = two();
        transfer[7] = node_head(FuncId(7), TRANSFER, 2, 1);
        let words = words(&transfer);
        let node = RecordedLaunches::of(&words).unwrap().node(1).unwrap();
        assert_eq!((node.kind, node.arg(1)), (None, 13));
    }

    #[test]
    fn words_that_cannot_be_are_no_nodes() {
        let refused = |index: usize, word: u64| {
            let mut changed = two();
            changed[index] = word;
            let words = words(&changed);
            RecordedLaunches::of(&words).is_none_or(|recording| recording.node(1).is_none())
        };
        assert!(refused(0, 0) && refused(0, 6) && refused(0, u64::MAX), "counts");
        assert!(refused(2, 99) && refused(2, u64::MAX), "indices");
        assert!(refused(8, 1) && refused(8, u64::MAX), "follows itself or a later one");
        assert!(refused(7, node_head(FuncId(7), CoreKind::AIV.get(), 3, 1)), "arguments");
        assert!(refused(7, node_head(FuncId(7), CoreKind::AIV.get(), 0, 4)), "earlier nodes");
        assert!(refused(7, 0xFF << 16), "kind");
    }
}
