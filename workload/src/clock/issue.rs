//! Issue: in order, to workers that each run one task at a time, within a window.
//!
//! The issue time never goes back: a task that is ready early waits after one that was ready late and came before it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::tree::{TaskWindow, WindowMode};

/// This many tasks are in progress, and the window is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowFull(pub u64);

/// The workers, and the tasks that are under way.
#[derive(Clone, Debug)]
pub struct Issue {
    issue_time: u64,
    /// When each worker is free.
    free: Vec<u64>,
    ends: BinaryHeap<Reverse<u64>>,
    window: TaskWindow,
    turn: u64,
    overflows: u64,
}

impl Issue {
    /// Workers that are free from the beginning.
    #[must_use]
    pub fn new(workers: u64, window: TaskWindow) -> Self {
        let workers = usize::try_from(workers.max(1)).unwrap_or(1);
        let (free, ends) = (vec![0; workers], BinaryHeap::new());
        Self { issue_time: 0, free, ends, window, turn: 0, overflows: 0 }
    }

    /// The worker whose turn it is.
    pub fn next_in_turn(&mut self) -> u64 {
        let worker = self.turn;
        self.turn = self.turn.wrapping_add(1);
        worker
    }

    /// How many tasks were issued although the window was full.
    #[must_use]
    pub const fn overflows(&self) -> u64 {
        self.overflows
    }

    /// The issue time goes on; tasks that have ended by then are not under way any more.
    fn advance(&mut self, time: u64) {
        self.issue_time = self.issue_time.max(time);
        while self.ends.peek().is_some_and(|Reverse(end)| *end <= self.issue_time) {
            self.ends.pop();
        }
    }

    fn under_way(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Whether the window takes no more.
    fn is_full(&self) -> bool {
        self.window.tasks > 0 && self.under_way() >= self.window.tasks
    }

    /// Issues a task of `cycles` to the worker `key % workers`; returns worker, begin and end.
    ///
    /// # Errors
    /// The window is full, in abort mode.
    pub fn issue(
        &mut self,
        cycles: u64,
        key: u64,
        ready: u64,
    ) -> Result<(u64, u64, u64), WindowFull> {
        self.advance(ready);
        match self.window.mode {
            WindowMode::Abort if self.is_full() => return Err(WindowFull(self.under_way())),
            WindowMode::Benchmark => self.overflows += u64::from(self.is_full()),
            WindowMode::Abort | WindowMode::Stall => self.stall(),
        }
        let worker = key % self.free.len() as u64;
        let free = &mut self.free[usize::try_from(worker).unwrap_or(0)];
        let start = (*free).max(self.issue_time);
        let end = start.saturating_add(cycles);
        *free = end;
        self.ends.push(Reverse(end));
        Ok((worker, start, end))
    }

    /// Waits for the tasks that end first.
    fn stall(&mut self) {
        while self.is_full() {
            let Some(Reverse(first)) = self.ends.peek().copied() else { return };
            self.advance(first);
        }
    }
}
