//! Graphs that follow each other in a stream, joined into one graph on the host.
//!
//! Where the table of the library says which bytes every task touches ([`Listing::visible`](super::listed::Listing::visible)), the host finds the edges between the graphs
//! itself. The device gets the image that it would get of the same tasks in one program, and pays for nothing else.
//!
//! ```text
//! graph 0: its own edges | graph 1: its own edges, and those to tasks of graph 0 that use the same bytes | ..
//! ```

use std::collections::{BTreeMap, BTreeSet};

use pto_abi::TaskId;
use pto_graph::owned::OwnedArg;
use pto_graph::task_list::ListedTask;
use pto_graph::{GraphBuilder, TaskSpec, TensorView};

use crate::device::Device;
use crate::error::Error;
use crate::host_graph::HostGraph;
use crate::image::GraphImage;

/// The image of these graphs, one after the other.
pub(super) fn image(device: &Device, graphs: &[&[ListedTask]]) -> Result<GraphImage, Error> {
    let producers = producers(graphs);
    HostGraph::build(device, &[], |graph| {
        let mut ids: Vec<TaskId> = Vec::with_capacity(producers.len());
        for (task, producers) in graphs.iter().copied().flatten().zip(&producers) {
            let args: Vec<_> = task.args.iter().map(OwnedArg::word).collect();
            let after: Vec<_> = producers.iter().map(|producer| ids[*producer]).collect();
            ids.push(graph.submit(TaskSpec::new(task.kernel, task.kind, &args), &after)?);
        }
        Ok(())
    })
}

/// The tasks that each task waits for, by their numbers in all graphs.
fn producers(graphs: &[&[ListedTask]]) -> Vec<BTreeSet<usize>> {
    let mut uses = Uses::default();
    let mut all = Vec::new();
    for (graph, tasks) in graphs.iter().enumerate() {
        let first = all.len();
        for (task, number) in tasks.iter().zip(first..) {
            let own = task.producers.iter().map(|producer| first + producer);
            let mut producers: BTreeSet<_> = own.collect();
            for (view, writes) in task.args.iter().filter_map(OwnedArg::dependency) {
                let entry = ByteUse { bytes: Bytes::of(view), graph, task: number, writes };
                uses.add(entry, &mut producers);
            }
            all.push(producers);
        }
    }
    all
}

/// What a task does to some bytes.
struct ByteUse {
    bytes: Bytes,
    graph: usize,
    task: usize,
    writes: bool,
}

/// What the tasks so far do to which bytes.
#[derive(Default)]
struct Uses {
    /// By the first byte, and a number of its own.
    by_low: BTreeMap<(u64, usize), ByteUse>,
    added: usize,
    /// The most bytes from the first byte of a use to the end of its last one.
    widest: u64,
}

impl Uses {
    /// One more; the tasks of graphs before it that it has to wait for become `producers`.
    fn add(&mut self, new: ByteUse, producers: &mut BTreeSet<usize>) {
        let from = new.bytes.low.saturating_sub(self.widest);
        let mut covered = Vec::new();
        for (key, before) in self.by_low.range((from, 0)..(new.bytes.high, 0)) {
            let is_ordered = before.graph < new.graph && (before.writes || new.writes);
            if is_ordered && new.bytes.meets(&before.bytes) {
                producers.insert(before.task);
                // Later tasks wait for this one instead.
                if new.writes && new.bytes.covers(&before.bytes) {
                    covered.push(*key);
                }
            }
        }
        for key in covered {
            self.by_low.remove(&key);
        }
        self.widest = self.widest.max(new.bytes.high - new.bytes.low);
        self.added += 1;
        self.by_low.insert((new.bytes.low, self.added), new);
    }
}

/// Rows of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bytes {
    low: u64,
    /// The end: one more than the last one.
    high: u64,
    /// Of a row.
    run: u64,
    /// From row to row; zero: there is one row.
    stride: u64,
}

impl Bytes {
    /// Those of a view of one or two dimensions; of others all between the first and the last one.
    fn of(view: &TensorView<'_>) -> Self {
        let size = view.element().bytes();
        let low = view.address().0;
        let extents = view.shape().iter().zip(view.strides());
        let last: u64 =
            extents.map(|(extent, stride)| u64::from(*extent).saturating_sub(1) * stride).sum();
        let high = low + (last + 1) * size;
        match (view.shape(), view.strides()) {
            ([rows, cols], [stride, 1]) if *rows > 1 && u64::from(*cols) < *stride => {
                Self { low, high, run: u64::from(*cols) * size, stride: stride * size }
            }
            _ => Self { low, high, run: high - low, stride: 0 },
        }
    }

    /// Whether both may have a byte in common. Rows of different strides may wherever their ends say so.
    const fn meets(&self, other: &Self) -> bool {
        if self.high <= other.low || other.high <= self.low {
            return false;
        }
        match (self.stride, other.stride) {
            (0, 0) => true,
            (0, _) => other.has_row_in(self.low, self.high),
            (_, 0) => self.has_row_in(other.low, other.high),
            (one, two) if one != two => true,
            (stride, _) => {
                let (first, second) =
                    if self.low <= other.low { (self, other) } else { (other, self) };
                // How far into a row of the first one, or after it, a row of the second one begins.
                let rest = (second.low - first.low) % stride;
                rest < first.run || rest + second.run > stride
            }
        }
    }

    /// Whether one of its rows has a byte from `low` up to `high`, of which it has some between its ends.
    const fn has_row_in(&self, low: u64, high: u64) -> bool {
        // The first row that ends after `low`.
        let row = match (low + 1).checked_sub(self.low + self.run) {
            None => 0,
            Some(after) => after.div_ceil(self.stride),
        };
        self.low + row * self.stride < high
    }

    /// Whether every byte of `other` is one of these.
    fn covers(&self, other: &Self) -> bool {
        let is_around = self.low <= other.low && other.high <= self.high;
        (self.stride == 0 && is_around) || self == other
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pto_abi::{CoreKind, FuncId, GmAddr};
    use pto_graph::owned::OwnedArg;
    use pto_graph::task_list::ListedTask;
    use pto_graph::{ElementType, RawView, TensorView};

    use super::{Bytes, producers};

    fn tile(offset: u64, shape: [u32; 2], stride: u64) -> TensorView<'static> {
        let (base, bytes, element) = (GmAddr(0x1000), 1 << 20, ElementType::F32.get());
        let (shape, strides) = (&shape, &[stride, 1]);
        TensorView::alleged(&RawView { base, bytes, element, offset, shape, strides })
    }

    /// Its bytes, one by one.
    fn all(view: &TensorView<'_>) -> BTreeSet<u64> {
        let rows = u64::from(view.shape()[0]);
        let row = |row| {
            let first = 0x1000 + 4 * (view.offset() + row * view.strides()[0]);
            first..first + 4 * u64::from(view.shape()[1])
        };
        (0..rows).flat_map(row).collect()
    }

    #[test]
    fn rows_meet_where_they_have_a_byte_in_common() {
        let mut views = Vec::new();
        for offset in [0, 1, 2, 5, 7, 8, 11, 16, 23] {
            for shape in [[1, 1], [1, 3], [1, 20], [2, 3], [3, 2], [3, 8], [2, 5]] {
                views.push(tile(offset, shape, 8));
            }
        }
        let mut met = 0;
        for one in &views {
            for other in &views {
                let (bytes, others) = (Bytes::of(one), Bytes::of(other));
                let is_met = all(one).intersection(&all(other)).next().is_some();
                assert_eq!(bytes.meets(&others), is_met, "{one:?} and {other:?}");
                assert!(!bytes.covers(&others) || all(other).is_subset(&all(one)));
                met += u32::from(is_met);
            }
        }
        assert!((100..3_900).contains(&met), "{met}");
        // Not exact, and on the safe side.
        let (one, other) = (tile(0, [3, 2], 8), tile(4, [2, 2], 9));
        assert!(Bytes::of(&one).meets(&Bytes::of(&other)));
    }

    fn task(args: Vec<OwnedArg<TensorView<'static>>>, producers: &[usize]) -> ListedTask {
        let producers = producers.to_vec();
        ListedTask { args, producers, ..ListedTask::new(FuncId(0), CoreKind::AIV) }
    }

    #[test]
    fn tasks_wait_for_tasks_of_earlier_graphs_that_use_their_bytes() {
        let row = |number: u64| tile(number * 8, [1, 8], 8);
        let reads = |number| OwnedArg::In(row(number));
        let writes = |number| OwnedArg::Out(row(number));
        let first = [
            task(vec![writes(0)], &[]),
            task(vec![writes(1)], &[0]),
            task(vec![reads(1), writes(1)], &[]),
        ];
        let second = [
            task(vec![reads(0), reads(0), OwnedArg::Scalar(7), writes(2)], &[]),
            task(vec![reads(2), OwnedArg::InOut(row(1))], &[0]),
        ];
        let third = [task(vec![reads(1), writes(0)], &[])];
        let found = producers(&[&first, &second, &third]);
        let found: Vec<Vec<_>> =
            found.into_iter().map(|producers| producers.into_iter().collect()).collect();
        let expected: [&[usize]; 6] = [
            &[],
            &[0],
            // The graph itself does not order these two, and neither does the host.
            &[],
            &[0],
            &[1, 2, 3],
            // After the last one that wrote row 1, and all that used row 0.
            &[0, 3, 4],
        ];
        assert_eq!(found, expected);
    }
}
