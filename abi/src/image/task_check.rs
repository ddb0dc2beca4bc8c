//! The check of an image's tasks, one after the other: the loader makes it while it loads.

use super::mismatch::{FieldMismatch, expect_at_most, expect_equal};
use crate::fault::Fault;
use crate::graph_header::{GraphHeader, ImageTask};
use crate::limits::{MAX_ARGS, MAX_FANIN};

/// [`MAX_ARGS`], as a task counts.
#[expect(clippy::cast_possible_truncation, reason = "128")]
const MOST_ARGS: u8 = MAX_ARGS as u8;

/// Checks tasks one after the other: each one's arguments and edges begin where those of the task before it end.
#[derive(Clone, Copy, Debug)]
pub struct ImageTaskCheck {
    task_count: u32,
    edge_count: u64,
    arg_words: u64,
    is_topological: bool,
    next_edge: u64,
    next_arg: u64,
}

impl ImageTaskCheck {
    pub(super) const fn new(header: &GraphHeader) -> Self {
        Self {
            task_count: header.task_count,
            edge_count: header.edge_count,
            arg_words: header.arg_words,
            is_topological: header.is_topological(),
            next_edge: 0,
            next_arg: 0,
        }
    }

    /// Whether every producer comes before its consumers, as the header claims.
    #[must_use]
    #[inline]
    pub const fn is_topological(&self) -> bool {
        self.is_topological
    }

    /// The next tasks.
    ///
    /// # Errors
    /// The index of the first that is wrong. `GRAPH_TASK_ARGS`, `GRAPH_TASK_EDGES`: its arguments or edges begin elsewhere,
    /// or end outside the image; `BUILD_TOO_MANY_ARGS`, `BUILD_FANIN_LIMIT`.
    #[inline]
    pub fn tasks(&mut self, tasks: &[ImageTask]) -> Result<(), (u32, FieldMismatch)> {
        let (mut args, mut edges) = (self.next_arg, self.next_edge);
        // All of them at once, without a branch; which one is wrong is found when one is.
        let mut is_wrong = false;
        for task in tasks {
            is_wrong |= u64::from(task.first_arg) != args;
            is_wrong |= u64::from(task.first_edge) != edges;
            is_wrong |= task.arg_count > MOST_ARGS;
            is_wrong |= task.edge_count > MAX_FANIN;
            args += u64::from(task.arg_count);
            edges += u64::from(task.edge_count);
        }
        if is_wrong || args > self.arg_words || edges > self.edge_count {
            return self.find(tasks);
        }
        (self.next_arg, self.next_edge) = (args, edges);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, tasks: &[ImageTask]) -> Result<(), (u32, FieldMismatch)> {
        for (index, task) in (0..).zip(tasks) {
            let args = self.next_arg + u64::from(task.arg_count);
            let edges = self.next_edge + u64::from(task.edge_count);
            self.one(task, args, edges).map_err(|refusal| (index, refusal))?;
            (self.next_arg, self.next_edge) = (args, edges);
        }
        Ok(())
    }

    fn one(&self, task: &ImageTask, args: u64, edges: u64) -> Result<(), FieldMismatch> {
        expect_equal(Fault::GRAPH_TASK_ARGS, task.first_arg.into(), self.next_arg)?;
        expect_at_most(Fault::GRAPH_TASK_ARGS, args, self.arg_words)?;
        expect_equal(Fault::GRAPH_TASK_EDGES, task.first_edge.into(), self.next_edge)?;
        expect_at_most(Fault::GRAPH_TASK_EDGES, edges, self.edge_count)?;
        expect_at_most(Fault::BUILD_TOO_MANY_ARGS, task.arg_count.into(), MOST_ARGS.into())?;
        expect_at_most(Fault::BUILD_FANIN_LIMIT, task.edge_count.into(), MAX_FANIN.into())
    }

    /// Argument words of the tasks so far.
    #[must_use]
    #[inline]
    pub const fn args(&self) -> u64 {
        self.next_arg
    }

    /// Producers of the task `index` are below this number.
    #[must_use]
    #[inline]
    pub const fn producers_below(&self, index: u32) -> u32 {
        if self.is_topological { index } else { self.task_count }
    }

    /// Why a producer of the task `index` is refused that is not below [`producers_below`](Self::producers_below).
    #[must_use]
    #[cold]
    pub fn refuse_producer(&self, index: u32, producer: u32) -> FieldMismatch {
        let found = u64::from(producer);
        if producer < self.task_count {
            return FieldMismatch { fault: Fault::GRAPH_FLAGS, found, expected: index.into() };
        }
        let expected = u64::from(self.task_count).saturating_sub(1);
        FieldMismatch { fault: Fault::GRAPH_EDGE_PRODUCER, found, expected }
    }

    /// After the last task.
    ///
    /// # Errors
    /// `GRAPH_EDGE_COUNT`, `GRAPH_ARG_WORDS`: there are edges or argument words that no task has.
    pub fn end(&self) -> Result<(), FieldMismatch> {
        expect_equal(Fault::GRAPH_EDGE_COUNT, self.edge_count, self.next_edge)?;
        expect_equal(Fault::GRAPH_ARG_WORDS, self.arg_words, self.next_arg)
    }
}
