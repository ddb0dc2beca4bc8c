//! The longest path of kernels along *all* dependencies of a streaming program.
//!
//! A builder adds no edge from a task that has retired, and rightly: no task need wait for it. But where the builder is slower
//! than the cores, most producers have retired before their consumers are submitted, and a path along the edges that were added
//! falls apart. The lower bound of the program is that of all its dependencies. They are looked for here, as the builder's tensor
//! map looks for them, in a table that keeps all of them: which task wrote each region last, and which have read it since.
//!
//! What a replay reads and writes is not seen: the edges between a replay and what has retired before it are missing, so
//! that the bound of a program with replays may be lower than it could be, and never higher.
//!
//! Invariants: the end of a task is known from when its kernel has ended; a task that has not ended has edges of its own to its
//! consumers, along which the ledger carries its path.
//!
//! Why it is so: `docs/decisions/bounds.md`.

use std::collections::BTreeMap;

use pto_aicpu_fw::stream::overlap::overlap;
use pto_aicpu_fw::stream::region::Region;
use pto_graph::{HeapTag, TensorView};

use super::digest::Keyed;

/// An access of a task to a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TensorAccess {
    base: u64,
    heap: HeapTag,
    region: Region,
    does: Does,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Read,
    Write,
}

impl TensorAccess {
    /// To the bytes of a view.
    pub(super) fn of(view: &TensorView<'_>, does: Does) -> Self {
        Self { base: view.base().0, heap: view.heap(), region: Region::of(view), does }
    }
}

/// A task, by the order in which tasks were added.
type Number = usize;

/// The end of a task whose kernel has not ended.
const NOT_ENDED: u64 = u64::MAX;

/// Reads of a region before those that have ended are put together.
const READS: usize = 32;

/// The book.
#[derive(Default)]
pub(super) struct Paths {
    /// By number: the longest path of kernels up to the end of the task.
    ends: Vec<u64>,
    /// By slot and generation.
    numbers: Keyed<(u32, u32), Number>,
    /// By slot: the task in it.
    standing: Keyed<u32, Number>,
    tensors: Keyed<(u64, u32, u64), Tensor>,
}

/// The accesses to one tensor, by the first byte of their regions.
#[derive(Default)]
struct Tensor {
    regions: BTreeMap<(u64, Number), Accesses>,
    /// Bytes of the longest region.
    longest: u64,
}

/// The accesses to one region.
struct Accesses {
    region: Region,
    writer: Option<Number>,
    /// Since the last write.
    readers: Vec<Number>,
    /// The longest path of readers that are not in `readers` any more.
    read_ns: u64,
}

impl Paths {
    /// A task was added to this slot.
    pub(super) fn add(&mut self, slot: u32, generation: u32) {
        let number = self.ends.len();
        self.ends.push(NOT_ENDED);
        self.numbers.insert((slot, generation), number);
        self.standing.insert(slot, number);
    }

    /// The kernel of the task in this slot has ended, or was skipped.
    pub(super) fn end(&mut self, slot: u32, path_ns: u64) {
        let number = self.standing.get(&slot);
        if let Some(end) = number.and_then(|number| self.ends.get_mut(*number)) {
            *end = path_ns;
        }
    }

    /// Whether no other task was added to the slot after the one of this generation.
    pub(super) fn was_last_in(&self, slot: u32, generation: u32) -> bool {
        let number = self.numbers.get(&(slot, generation));
        number.is_some() && number == self.standing.get(&slot)
    }

    /// The path up to the end of a task that may have retired; 0: it has not ended, or is not known.
    pub(super) fn after(&self, slot: u32, generation: u32) -> u64 {
        self.numbers.get(&(slot, generation)).map_or(0, |number| ended(&self.ends, *number))
    }

    /// Notes an access of the task in this slot; the longest path up to the end of a task that it depends on by that.
    pub(super) fn access(&mut self, slot: u32, access: &TensorAccess) -> u64 {
        let Some(&number) = self.standing.get(&slot) else { return 0 };
        let HeapTag { depth, serial } = access.heap;
        let tensor = self.tensors.entry((access.base, depth, serial)).or_default();
        tensor.access(number, access, &self.ends)
    }
}

/// The end of a task, if it has ended.
fn ended(ends: &[u64], number: Number) -> u64 {
    ends.get(number).copied().filter(|end| *end != NOT_ENDED).unwrap_or(0)
}

impl Tensor {
    fn access(&mut self, number: Number, access: &TensorAccess, ends: &[u64]) -> u64 {
        let Region { low, high, .. } = access.region;
        let mut path_ns = 0;
        let mut own = None;
        let from = low.saturating_sub(self.longest);
        for (at, met) in self.regions.range_mut((from, 0)..(high, 0)) {
            if met.region == access.region {
                own = Some(*at);
            } else if overlap(&met.region, &access.region) != Ok(true) {
                // The builder refuses a task whose regions it cannot compare.
                continue;
            }
            path_ns = path_ns.max(met.path_ns(access.does, ends));
        }
        let own = own.unwrap_or((low, number));
        let accesses = self.regions.entry(own).or_insert_with(|| Accesses::to(access.region));
        accesses.note(number, access.does, ends);
        self.longest = self.longest.max(high - low);
        path_ns
    }
}

impl Accesses {
    const fn to(region: Region) -> Self {
        Self { region, writer: None, readers: Vec::new(), read_ns: 0 }
    }

    /// The longest path up to the end of a task that an access depends on which does this.
    fn path_ns(&self, does: Does, ends: &[u64]) -> u64 {
        let written = self.writer.map_or(0, |writer| ended(ends, writer));
        match does {
            Does::Read => written,
            Does::Write => {
                let reads = self.readers.iter().map(|reader| ended(ends, *reader));
                reads.fold(written.max(self.read_ns), u64::max)
            }
        }
    }

    fn note(&mut self, number: Number, does: Does, ends: &[u64]) {
        match does {
            // A task that depends on one of those before depends on this one.
            Does::Write => *self = Self { writer: Some(number), ..Self::to(self.region) },
            Does::Read => {
                self.readers.push(number);
                if self.readers.len() >= READS && self.readers.len().is_power_of_two() {
                    self.put_together(ends);
                }
            }
        }
    }

    /// Keeps of the readers that have ended their longest path.
    fn put_together(&mut self, ends: &[u64]) {
        let reads = self.readers.iter().map(|reader| ended(ends, *reader));
        self.read_ns = reads.fold(self.read_ns, u64::max);
        self.readers.retain(|reader| ends.get(*reader) == Some(&NOT_ENDED));
    }
}

#[cfg(test)]
mod tests {
    use super::{Does, Paths, TensorAccess};
    use pto_abi::GmAddr;
    use pto_graph::{ElementType, HeapTag, TensorView};

    fn matrix() -> TensorView<'static> {
        TensorView::dense(GmAddr(4096), ElementType::F32, &[64, 64])
    }

    /// A task that ends at once, one longer than the path before it; that path.
    fn task(paths: &mut Paths, slot: u32, generation: u32, accesses: &[TensorAccess]) -> u64 {
        paths.add(slot, generation);
        let before = accesses.iter().map(|access| paths.access(slot, access)).max().unwrap_or(0);
        paths.end(slot, before + 1);
        before
    }

    #[test]
    fn a_path_leads_through_slots_that_were_used_again() {
        let mut paths = Paths::default();
        let all = matrix();
        for lap in 1..=100 {
            let access = TensorAccess::of(&all, Does::Write);
            assert_eq!(task(&mut paths, 7, lap, &[access]), u64::from(lap) - 1);
        }
        assert_eq!((paths.after(7, 50), paths.after(7, 101), paths.after(8, 1)), (50, 0, 0));
    }

    #[test]
    fn readers_wait_for_writers_and_writers_for_both() {
        let mut paths = Paths::default();
        let (upper, lower) = (matrix().slice(0, 0, 40), matrix().slice(0, 40, 24));
        let columns = matrix().slice(1, 10, 4);
        assert_eq!(task(&mut paths, 0, 1, &[TensorAccess::of(&upper, Does::Write)]), 0);
        assert_eq!(
            task(&mut paths, 1, 1, &[TensorAccess::of(&lower, Does::Write)]),
            0,
            "no byte in common"
        );
        // More readers than are kept one by one, none of which waits for another.
        for slot in 2..80 {
            assert_eq!(task(&mut paths, slot, 1, &[TensorAccess::of(&columns, Does::Read)]), 1);
        }
        assert_eq!(task(&mut paths, 80, 1, &[TensorAccess::of(&lower, Does::Write)]), 2);
        assert_eq!(task(&mut paths, 81, 1, &[TensorAccess::of(&columns, Does::Read)]), 3);
    }

    #[test]
    fn memory_of_the_heap_that_is_used_again_is_another_tensor() {
        let mut paths = Paths::default();
        for serial in 0..3 {
            let view = matrix().tagged(HeapTag { depth: 1, serial });
            assert_eq!(task(&mut paths, 0, 1, &[TensorAccess::of(&view, Does::Write)]), 0);
            assert_eq!(task(&mut paths, 1, 1, &[TensorAccess::of(&view, Does::Read)]), 1);
        }
    }

    #[test]
    fn what_has_not_ended_is_left_to_its_edges() {
        let mut paths = Paths::default();
        let access = TensorAccess::of(&matrix(), Does::Write);
        paths.add(0, 1);
        assert_eq!((paths.access(0, &access), paths.after(0, 1)), (0, 0));
        paths.add(1, 1);
        assert_eq!(paths.access(1, &access), 0);
        paths.end(0, 9);
        assert_eq!(paths.after(0, 1), 9);
    }
}
