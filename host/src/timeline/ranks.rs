//! The timelines of the ranks of a group as one, on one clock: a row for each core of each rank, and rows for its transfers.
//!
//! A transfer runs on no core. It is shown from the moment at which it was ready to the one at which a scheduler saw its end: the time in which it waits for
//! the other rank is part of it. Transfers of a rank that are under way at once have rows of their own: as many as are needed, up to [`TRANSFER_ROWS`].
//! Where the timeline has no room for this many, each rank has an equal part of what the cores leave, and [`LEAST_TRANSFER_ROWS`] in any
//! case.

use std::collections::BTreeMap;

use pto_abi::CoreKind;
use pto_abi::trace::TraceOwner;

use crate::timeline::file::MAX_ROWS;
use crate::timeline::model::{
    BlockPart, Edge, EndFault, Moments, RingCounts, RowNames, Task, Trace,
};

/// Rows for the transfers of a rank, at most: a layer of `tp_decoder` has 72 under way on one of 4 ranks. Those without a row are counted in the facts of the run.
pub const TRANSFER_ROWS: usize = 128;
/// Rows that the transfers of a rank may take in every timeline.
pub const LEAST_TRANSFER_ROWS: usize = 8;
/// How the library calls a transfer.
const TRANSFER: &str = "transfer";

/// Why timelines are not those of the ranks of one run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// One of them is not of a rank.
    #[error(
        "not all of them are timelines of ranks; give those that one run of a group has written"
    )]
    NoRank,
    /// Two of them are of one rank.
    #[error("two of them are of rank {0}; give one for each rank")]
    Twice(u32),
    /// They name a kernel differently.
    #[error(
        "func id {func_id} is {one} in one of them and {other} in another one; give those of one run"
    )]
    Kernels {
        /// The func id.
        func_id: u16,
        /// The kernel's name at one rank.
        one: String,
        /// The kernel's name at another rank.
        other: String,
    },
    /// A page has no more rows.
    #[error(
        "their cores and transfers are {0} rows, and a timeline has {MAX_ROWS} at most; give fewer ranks"
    )]
    Rows(usize),
}

/// One timeline of all ranks.
///
/// # Errors
/// See [`MergeError`].
pub fn merge(traces: &[Trace]) -> Result<Trace, MergeError> {
    let ranked: Option<BTreeMap<u32, &Trace>> =
        traces.iter().map(|trace| Some((trace.rank?, trace))).collect();
    let ranked = ranked.filter(|ranked| !ranked.is_empty()).ok_or(MergeError::NoRank)?;
    if ranked.len() < traces.len() {
        let count = |rank: u32| traces.iter().filter(|trace| trace.rank == Some(rank)).count();
        let twice = ranked.keys().find(|rank| count(**rank) > 1);
        return Err(MergeError::Twice(twice.copied().unwrap_or(0)));
    }
    let began_ns = ranked.values().map(|trace| trace.began_ns).min().unwrap_or(0);
    let first = ranked.values().next().map_or_else(BTreeMap::new, |trace| trace.run.clone());
    let kinds = vec!["cube cores".to_owned(), "vector cores, transfers".to_owned()];
    let names = RowNames { kinds, rows: Vec::new() };
    let mut merged = Merged {
        trace: Trace { run: first, names: None, ..Trace::default() },
        names,
        transfer_rows: transfer_rows(traces),
        without_row: 0,
    };
    for (rank, trace) in ranked {
        merged.add(rank, trace, trace.began_ns - began_ns)?;
    }
    merged.finish()
}

/// What has been merged so far.
struct Merged {
    trace: Trace,
    names: RowNames,
    /// Rows for the transfers of a rank, at most.
    transfer_rows: usize,
    /// Transfers that have no row.
    without_row: usize,
}

impl Merged {
    fn add(&mut self, rank: u32, of: &Trace, late_ns: u64) -> Result<(), MergeError> {
        for (func_id, name) in &of.kernels {
            let known = self.trace.kernels.entry(*func_id).or_insert_with(|| name.clone());
            if known != name {
                let (one, other) = (known.clone(), name.clone());
                return Err(MergeError::Kernels { func_id: *func_id, one, other });
            }
        }
        let [tasks, rows] = [self.trace.tasks.len(), self.trace.cores.len()].map(low);
        for (core, kind) in (0..).zip(&of.cores) {
            self.row(*kind, format!("rank {rank} {}", of.core_name(core)));
        }
        let moved = |task: &Task| Task {
            core: task.core.map(|core| rows + core),
            scheduler: None,
            at: later(task.at, late_ns),
            ..*task
        };
        if !of.task_names.is_empty() {
            self.trace.task_names.resize(self.trace.tasks.len(), String::new());
            self.trace.task_names.extend_from_slice(&of.task_names);
        }
        self.trace.tasks.extend(of.tasks.iter().map(moved));
        self.trace.parts.extend(of.parts.iter().map(|part| BlockPart {
            task: tasks + part.task,
            run: moved(&part.run),
            ..*part
        }));
        let edge =
            |edge: &Edge| Edge { producer: tasks + edge.producer, consumer: tasks + edge.consumer };
        self.trace.edges.extend(of.edges.iter().map(edge));
        self.trace.lanes.extend(of.lanes.iter().map(|lane| match lane.owner {
            TraceOwner::Core(core) => RingCounts { owner: TraceOwner::Core(rows + core), ..*lane },
            TraceOwner::Instance(_) => *lane,
        }));
        self.trace.end_ns = self.trace.end_ns.max(late_ns + of.end_ns);
        self.trace.makespan_ns = self.trace.makespan_ns.max(of.makespan_ns);
        if let Some(fault) = &of.fault
            && self.trace.fault.is_none()
        {
            self.trace.fault = Some(EndFault {
                core: fault.core.map(|core| rows + core),
                task: fault.task.map(|task| tasks + task),
                instance: None,
                ..fault.clone()
            });
        }
        self.assign_transfer_rows(rank, tasks as usize);
        Ok(())
    }

    fn row(&mut self, kind: CoreKind, name: String) -> u32 {
        self.trace.cores.push(kind);
        self.names.rows.push(name);
        low(self.trace.cores.len() - 1)
    }

    /// Gives each transfer of a rank, whose tasks begin at `from`, a row in which it is alone.
    fn assign_transfer_rows(&mut self, rank: u32, from: usize) {
        let is_transfer =
            |func_id: &u16| self.trace.kernels.get(func_id).is_some_and(|it| it == TRANSFER);
        let spans = self.trace.tasks.iter().enumerate().skip(from);
        let mut spans: Vec<_> = spans
            .filter(|(_, task)| is_transfer(&task.func_id))
            .filter_map(|(at, task)| {
                let begin = task.at.ready.or(task.at.published)?;
                Some((begin, task.at.completed?.max(begin), at))
            })
            .collect();
        spans.sort_unstable();
        // The rows of transfers, and when each is free again.
        let mut rows: Vec<(u32, u64)> = Vec::new();
        for (begin, end, at) in spans {
            // What was skipped for the scheduler ran for the group.
            self.trace.tasks[at].at.skipped = None;
            let free = rows.iter().position(|(_, until)| *until <= begin);
            let index = match free {
                Some(index) => index,
                None if rows.len() < self.transfer_rows => {
                    let name = format!("rank {rank} transfers {}", rows.len());
                    rows.push((self.row(CoreKind::AIV, name), 0));
                    rows.len() - 1
                }
                None => {
                    self.without_row += 1;
                    continue;
                }
            };
            let task = &mut self.trace.tasks[at];
            (task.core, rows[index].1) = (Some(rows[index].0), end);
            task.at = Moments {
                dispatched: Some(begin),
                started: Some(begin),
                finished: Some(end),
                ..task.at
            };
        }
    }

    fn finish(mut self) -> Result<Trace, MergeError> {
        let rows = self.names.rows.len();
        if rows > MAX_ROWS {
            return Err(MergeError::Rows(rows));
        }
        if self.without_row > 0 {
            let text = format!(
                "{} (more than {} of a rank were under way at once)",
                self.without_row, self.transfer_rows
            );
            self.trace.run.insert("transfers without a row".to_owned(), text);
        }
        self.trace.names = Some(self.names);
        Ok(self.trace)
    }
}

/// How many rows the transfers of a rank may take, so that all ranks have as many.
fn transfer_rows(traces: &[Trace]) -> usize {
    let cores: usize = traces.iter().map(|trace| trace.cores.len()).sum();
    let left = MAX_ROWS.saturating_sub(cores) / traces.len().max(1);
    left.clamp(LEAST_TRANSFER_ROWS, TRANSFER_ROWS)
}

/// Converts moments to a clock that began `late_ns` earlier.
fn later(at: Moments, late_ns: u64) -> Moments {
    let later = |moment: Option<u64>| moment.map(|moment| moment + late_ns);
    Moments {
        added: later(at.added),
        published: later(at.published),
        ready: later(at.ready),
        dispatched: later(at.dispatched),
        started: later(at.started),
        finished: later(at.finished),
        completed: later(at.completed),
        skipped: later(at.skipped),
    }
}

/// Tasks and rows have numbers of 32 bits in every timeline.
fn low(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{MergeError, TRANSFER_ROWS, merge};
    use crate::timeline::Analysis;
    use crate::timeline::file::{self, MAX_ROWS};
    use crate::timeline::model::{Edge, Moments, Task, Trace};
    use pto_abi::CoreKind;

    fn moments(ready: u64, started: u64, finished: u64) -> Moments {
        let [ready, started, finished] = [ready, started, finished].map(Some);
        let (added, published, dispatched, completed) = (ready, ready, ready, finished);
        let skipped = None;
        Moments { added, published, ready, dispatched, started, finished, completed, skipped }
    }

    /// A kernel from 10 to 20, and after it as many transfers until 50.
    fn rank(rank: u32, began_ns: u64, transfers: u32) -> Trace {
        let kernel = Task {
            func_id: 1,
            kind: CoreKind::AIV,
            core: Some(1),
            scheduler: Some(0),
            at: moments(0, 10, 20),
        };
        let at = Moments { started: None, finished: None, skipped: Some(50), ..moments(20, 0, 50) };
        let transfer = Task { func_id: 42, core: None, at, ..kernel };
        let mut tasks = vec![kernel];
        tasks.resize(1 + transfers as usize, transfer);
        Trace {
            rank: Some(rank),
            began_ns,
            cores: vec![CoreKind::AIC, CoreKind::AIV],
            instances: 1,
            kernels: [(1, "add".to_owned()), (42, "transfer".to_owned())].into(),
            edges: (1..=transfers).map(|consumer| Edge { producer: 0, consumer }).collect(),
            tasks,
            end_ns: 50,
            makespan_ns: Some(60),
            ..Trace::default()
        }
    }

    #[test]
    fn ranks_are_below_each_other_on_one_clock() {
        let merged = merge(&[rank(1, 107, 1), rank(0, 100, 2)]).unwrap();
        let names = merged.names.clone().unwrap();
        let expected = [
            "rank 0 aic 0",
            "rank 0 aiv 0",
            "rank 0 transfers 0",
            "rank 0 transfers 1",
            "rank 1 aic 0",
            "rank 1 aiv 0",
            "rank 1 transfers 0",
        ];
        assert_eq!(names.rows, expected);
        let spans: Vec<_> =
            merged.tasks.iter().map(|task| (task.core.unwrap(), task.span().unwrap())).collect();
        assert_eq!(
            spans,
            [(1, (10, 20)), (2, (20, 50)), (3, (20, 50)), (5, (17, 27)), (6, (27, 57))]
        );
        assert_eq!((merged.end_ns, merged.makespan_ns, merged.skipped()), (57, Some(60), 0));
        assert_eq!(merged.edges.last(), Some(&Edge { producer: 3, consumer: 4 }));
        Analysis::of(&merged).unwrap();
        let mut written = Vec::new();
        file::write(&merged, &mut written).unwrap();
        assert_eq!(file::read(&written).unwrap(), merged);
    }

    #[test]
    fn a_rank_keeps_its_number_and_its_clock_in_its_file() {
        let of_rank = rank(3, 1000, 1);
        let mut written = Vec::new();
        file::write(&of_rank, &mut written).unwrap();
        assert_eq!(file::read(&written).unwrap(), of_rank);
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        assert_eq!(merge(&[]), Err(MergeError::NoRank));
        assert_eq!(merge(&[rank(0, 0, 0), Trace::default()]), Err(MergeError::NoRank));
        assert_eq!(merge(&[rank(4, 0, 0), rank(4, 9, 0)]), Err(MergeError::Twice(4)));
        let mut other = rank(1, 0, 0);
        other.kernels.insert(1, "mul".to_owned());
        assert!(matches!(
            merge(&[rank(0, 0, 0), other]),
            Err(MergeError::Kernels { func_id: 1, .. })
        ));
    }

    #[test]
    fn transfers_without_a_row_are_counted() {
        let merged = merge(&[rank(0, 0, u32::try_from(TRANSFER_ROWS).unwrap() + 3)]).unwrap();
        assert_eq!(merged.cores.len(), 2 + TRANSFER_ROWS);
        assert!(merged.run["transfers without a row"].starts_with("3 "), "{:?}", merged.run);
    }

    /// Two ranks whose cores leave 25 rows: 12 for each.
    #[test]
    fn transfers_share_what_the_cores_leave() {
        let cores = (MAX_ROWS - 25) / 2;
        let traces = [0, 1].map(|number| Trace {
            cores: vec![CoreKind::AIV; cores + number as usize],
            ..rank(number, 0, 13 + number)
        });
        let merged = merge(&traces).unwrap();
        assert_eq!(merged.cores.len(), MAX_ROWS - 25 + 24);
        let text = merged.run["transfers without a row"].as_str();
        assert_eq!(text, "3 (more than 12 of a rank were under way at once)");
    }
}
