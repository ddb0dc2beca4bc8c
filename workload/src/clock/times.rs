//! When a node is ready, and when it is done: only the tree orders tasks.
//!
//! Parallel nodes are ready together, and done with the last of them. Chained nodes are ready one after the other.

use super::walk::ChildOrder;

/// A node that is under way.
#[derive(Clone, Copy, Debug)]
struct Level {
    order: ChildOrder,
    ready: u64,
    done: u64,
}

/// The times of the nodes that are under way, outermost first.
#[derive(Debug)]
pub(super) struct Times {
    levels: Vec<Level>,
    /// The root.
    root: Level,
}

impl Default for Times {
    fn default() -> Self {
        Self { levels: Vec::new(), root: Level { order: ChildOrder::Chained, ready: 0, done: 0 } }
    }
}

impl Times {
    fn innermost(&mut self) -> &mut Level {
        self.levels.last_mut().unwrap_or(&mut self.root)
    }

    /// When the next node is ready.
    pub(super) fn ready(&mut self) -> u64 {
        self.innermost().ready
    }

    /// A node begins.
    pub(super) fn enter(&mut self, order: ChildOrder) {
        let ready = self.ready();
        self.levels.push(Level { order, ready, done: ready });
    }

    /// It ends.
    pub(super) fn exit(&mut self) {
        if let Some(Level { done, .. }) = self.levels.pop() {
            self.done(done);
        }
    }

    /// A node inside of the innermost one is done.
    pub(super) fn done(&mut self, at: u64) {
        let level = self.innermost();
        level.done = level.done.max(at);
        if level.order == ChildOrder::Chained {
            level.ready = level.done;
        }
    }

    /// When the root is done.
    pub(super) const fn total(&self) -> u64 {
        self.root.done
    }
}
