//! A process of a pipeline: where it is in its body, so that it can stop at any node and go on later.

use super::channels::{Mark, Moment};
use super::heads::Loop;
use super::layout::limits;
use super::values::Vars;

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Runs,
    /// The process waits for a token of this channel.
    Takes(u8),
    /// It waits until there is room in a channel, or the receiver is there.
    Sends,
    Done,
}

/// A node that is under way. Where the process continues after it says `after`, where that is not the end of what is inside.
pub(super) enum Frame {
    /// So many nodes are left, one after the other.
    Nodes(u32),
    /// One of two nodes.
    Choice {
        after: usize,
    },
    Loop {
        around: Loop,
        body: usize,
        after: usize,
    },
    /// `at` is the node.
    Consume {
        channel: u8,
        var: u32,
        at: usize,
        body: usize,
        after: usize,
    },
}

/// See the module.
pub(super) struct Process {
    /// The channels that it sends to, a bit for each.
    pub(super) sends: u32,
    /// The rank that runs the process.
    pub(super) rank: u16,
    pub(super) state: State,
    /// The process's time on the `v9` clock.
    pub(super) time: u64,
    /// The nodes that are under way.
    pub(super) frames: heapless::Vec<Frame, { limits::PROCESS_DEPTH as usize }>,
    /// Where it is in the plan.
    pub(super) at: usize,
    /// Whether a node begins there.
    pub(super) is_at_node: bool,
    /// Where it waits.
    pub(super) waits_at: usize,
    pub(super) vars: Vars,
    /// Loop variables in scope.
    pub(super) var_count: u32,
    /// What its next task waits for: of each process the newest task. Those before it have completed then, because the tasks of a
    /// process run one after another.
    after: [Option<Mark>; limits::PROCESSES],
}

impl Process {
    /// Before its body, which begins at this word of the plan.
    pub(super) const fn new(body: usize, sends: u32, rank: u16) -> Self {
        Self {
            sends,
            rank,
            state: State::Runs,
            time: 0,
            frames: heapless::Vec::new(),
            at: body,
            is_at_node: true,
            waits_at: body,
            vars: [0; limits::VARS],
            var_count: 0,
            after: [None; limits::PROCESSES],
        }
    }

    /// Whether its next task does not wait for this task, or for a newer one of the same process, already.
    pub(super) fn lacks(&self, mark: Mark) -> bool {
        let known = self.after.get(usize::from(mark.process)).copied().flatten();
        known.is_none_or(|known| known.number < mark.number)
    }

    /// Its next task waits for this one as well, which it [lacks](Self::lacks).
    pub(super) fn wait_for(&mut self, mark: Mark) {
        if let Some(known) = self.after.get_mut(usize::from(mark.process)) {
            *known = Some(mark);
        }
    }

    /// A task of its own was submitted, after all that it has waited for.
    pub(super) fn submitted(&mut self, mark: Mark) {
        self.after = [None; limits::PROCESSES];
        self.wait_for(mark);
    }

    /// What its next task waits for.
    pub(super) fn after(&self) -> impl Iterator<Item = Mark> {
        self.after.iter().copied().flatten()
    }

    /// Now: its time, its own last task if nothing else came after it, and the newest task of another process that it waits for.
    pub(super) fn now(&self, own: u8) -> Moment {
        let others = self.after().filter(|mark| mark.process != own);
        let newest = others.max_by_key(|mark| mark.number);
        let last = self.after.get(usize::from(own)).copied().flatten();
        Moment { time: self.time, marks: [last, newest] }
    }

    /// Goes on in front of a node.
    pub(super) const fn begin(&mut self, at: usize) {
        (self.at, self.is_at_node) = (at, true);
    }

    /// Continues after a node.
    pub(super) const fn end(&mut self, at: usize) {
        (self.at, self.is_at_node) = (at, false);
    }
}
