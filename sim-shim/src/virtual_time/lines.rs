//! The stale-line model: which core has which line of results in its cache, and whether it may.
//!
//! Modelled: a core invalidates its cache when it starts a task, fetches a line when it first reads it, owns the
//! lines that it writes until it has written them back at the end of the task (`dcci` writes whole lines). What
//! the model finds is reported as a violation; the bytes themselves are those of the host, which is coherent.
//!
//! | found | on the device |
//! |---|---|
//! | two cores own one line at once | the one that writes back last destroys what the other wrote |
//! | a core reads a line that another one owns | it reads what was there before |
//! | a core reads its own old copy of a line (no invalidation) | the same |
//!
//! Followed are the kernels whose access is known here: `dag_node` and the elementwise ones. Not followed: other
//! kernels, what the host and AICPU read and write in GM, and lines that one core writes while another reads
//! them in tasks that the graph does not order.

use std::collections::HashMap;

use pto_abi::arena::Arena;
use pto_abi::{FuncId, GmAddr};
use pto_aicore_kernels::func;

use super::cost::COST_ARGS;
use super::inject::Trouble;
use super::ledger::{Invariant, Violation};

/// Bytes of a line.
const LINE: u64 = 64;

/// The lines that one task reads and writes, by number (address over [`LINE`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LineAccess {
    reads: Vec<u64>,
    writes: Vec<u64>,
}

impl LineAccess {
    /// What a task of this kernel with these arguments accesses; empty for kernels that are not known here.
    pub(super) fn of(arena: &Arena<'_>, func_id: u16, args: &[u64; COST_ARGS]) -> Self {
        let mut access = Self::default();
        match FuncId(func_id) {
            func::DAG_NODE_AIC | func::DAG_NODE_AIV => access.dag_node(arena, args),
            func::ADD | func::MUL => {
                access.vectors(&[args[0], args[1]], args[2], args[3]);
            }
            func::ADD_SCALAR => access.vectors(&[args[0]], args[2], args[3]),
            func::EXP => access.vectors(&[args[0]], args[1], args[2]),
            _ => {}
        }
        access
    }

    fn dag_node(&mut self, arena: &Arena<'_>, args: &[u64; COST_ARGS]) {
        let [index, _, values, counters, producers, count, ..] = *args;
        let gm = arena.gm();
        for at in 0..count {
            let address = GmAddr(producers.wrapping_add(4 * at));
            let producer: Option<u32> = gm.offset_of(address, 4).and_then(|offset| gm.read(offset));
            let Some(producer) = producer else { return };
            self.reads.push(values.wrapping_add(8 * u64::from(producer)) / LINE);
        }
        self.writes.push(values.wrapping_add(8 * index) / LINE);
        self.writes.push(counters.wrapping_add(4 * index) / LINE);
    }

    fn vectors(&mut self, inputs: &[u64], output: u64, n: u64) {
        if n == 0 {
            return;
        }
        let lines = |start: u64| start / LINE..=start.wrapping_add(4 * n - 1) / LINE;
        self.reads = inputs.iter().flat_map(|start| lines(*start)).collect();
        self.writes = lines(output).collect();
    }
}

/// Who wrote a line last.
#[derive(Clone, Copy)]
struct Owner {
    worker: u32,
    task: u32,
    from_ns: u64,
    /// When it wrote the line back; `u64::MAX`: it did not.
    until_ns: u64,
}

#[derive(Default)]
pub(super) struct Lines {
    owners: HashMap<u64, Owner>,
    /// When a core fetched a line.
    fetched: HashMap<(u32, u64), u64>,
    /// When a core invalidated its cache last.
    invalidated: HashMap<u32, u64>,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// A core ran a task with this access; returns what it must not have done.
    pub(super) fn task(
        &mut self,
        worker: u32,
        task: u32,
        during: (u64, u64),
        access: &LineAccess,
        trouble: Option<Trouble>,
    ) -> Vec<Violation> {
        let (from_ns, until_ns) = during;
        if trouble != Some(Trouble::NoInvalidate) {
            self.invalidated.insert(worker, from_ns);
        }
        let mut found = Vec::new();
        let mut note = |other, what| {
            let rule = Invariant::LineOwnership;
            found.push(Violation { rule, time_ns: from_ns, task, other, what });
        };
        for &line in &access.reads {
            if let Some((other, what)) = self.read(worker, line, from_ns) {
                note(other, what);
            }
        }
        let until_ns = if trouble == Some(Trouble::NoFlush) { u64::MAX } else { until_ns };
        for &line in &access.writes {
            let before = self.owners.insert(line, Owner { worker, task, from_ns, until_ns });
            let overlaps = |owner: &Owner| {
                owner.until_ns > from_ns && owner.from_ns < during.1.max(from_ns + 1)
            };
            if let Some(owner) = before.filter(|owner| owner.worker != worker && overlaps(owner)) {
                note(owner.task, "writes a line that another core is writing");
            }
            self.fetched.insert((worker, line), from_ns);
        }
        found
    }

    fn read(&mut self, worker: u32, line: u64, now_ns: u64) -> Option<(u32, &'static str)> {
        let owner = self.owners.get(&line).copied().filter(|owner| owner.worker != worker);
        let since = self.invalidated.get(&worker).copied().unwrap_or(0);
        let cached = self.fetched.get(&(worker, line)).copied().filter(|fetched| *fetched >= since);
        if cached.is_none() {
            self.fetched.insert((worker, line), now_ns);
        }
        let owner = owner?;
        if owner.until_ns > now_ns {
            return Some((owner.task, "reads a line that its writer has not written back"));
        }
        let is_stale = cached.is_some_and(|fetched| owner.until_ns > fetched);
        is_stale.then_some((owner.task, "reads its own old copy of a line"))
    }
}

#[cfg(test)]
mod tests {
    use super::{LineAccess, Lines, Trouble};

    fn access(reads: &[u64], writes: &[u64]) -> LineAccess {
        LineAccess { reads: reads.to_vec(), writes: writes.to_vec() }
    }

    #[test]
    fn in_order_nothing_is_found() {
        let mut lines = Lines::new();
        assert!(lines.task(0, 0, (0, 10), &access(&[], &[7]), None).is_empty());
        assert!(lines.task(1, 1, (10, 20), &access(&[7], &[8]), None).is_empty());
        assert!(lines.task(0, 2, (20, 30), &access(&[7, 8], &[7]), None).is_empty());
        assert!(lines.task(1, 3, (30, 40), &access(&[7], &[7]), None).is_empty());
    }

    #[test]
    fn two_writers_of_one_line() {
        let mut lines = Lines::new();
        lines.task(0, 0, (0, 10), &access(&[], &[7]), None);
        let found = lines.task(1, 1, (9, 20), &access(&[], &[7]), None);
        assert!(found.len() == 1 && found[0].other == 0 && found[0].what.contains("is writing"));
        let one_core = lines.task(1, 2, (20, 21), &access(&[7], &[7]), None);
        assert!(one_core.is_empty(), "one core has one cache");
    }

    #[test]
    fn missing_maintenance_shows_at_the_reader() {
        let mut lines = Lines::new();
        lines.task(0, 0, (0, 10), &access(&[], &[7]), Some(Trouble::NoFlush));
        let found = lines.task(1, 1, (50, 60), &access(&[7], &[]), None);
        assert!(found[0].what.contains("not written back"));
        let mut lines = Lines::new();
        lines.task(1, 0, (0, 5), &access(&[7], &[]), None);
        lines.task(0, 1, (10, 20), &access(&[], &[7]), None);
        let found = lines.task(1, 2, (30, 40), &access(&[7], &[]), Some(Trouble::NoInvalidate));
        assert!(found[0].what.contains("own old copy"));
        assert!(lines.task(1, 3, (50, 60), &access(&[7], &[]), None).is_empty());
    }
}
