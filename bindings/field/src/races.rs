//! Where the two dependency rules differ: tasks that conflict, and that nothing orders under the rule of the field.
//!
//! The field makes no edge from a reader to a later writer, and none between existing outputs. Such a pair is a race there, unless
//! other edges order it. This file keeps the edges of the field's rule next to those of the run, and looks for a path.
//!
//! Invariant: `tasks[n]` is task `first + n`, and its producers have smaller numbers.

use std::collections::VecDeque;

use crate::rule::{AccessMode, BufferRegion, Writers};
use crate::wire::ChipTensor;

/// A task, with its producers under the field's rule.
struct TaskNode {
    producers: Vec<u64>,
    location: String,
}

/// What the next task does.
#[derive(Default)]
struct PendingTask {
    producers: Vec<u64>,
    /// Earlier tasks that it conflicts with, and what they do.
    conflicts: Vec<(u64, &'static str)>,
    reads: Vec<(Buffer, BufferRegion)>,
    writes: Vec<(Buffer, BufferRegion)>,
}

/// See the file.
pub(crate) struct Races {
    tasks: VecDeque<TaskNode>,
    first: u64,
    window: usize,
    readers: Writers<Buffer>,
    writers: Writers<Buffer>,
    next: PendingTask,
}

/// What a tensor is known by: its address and its owner. A region of the heap is another tensor when another task has made it.
type Buffer = (u64, u64);

const fn buffer_of(tensor: &ChipTensor) -> Buffer {
    (tensor.address, tensor.owner)
}

impl Races {
    /// No tasks; pairs that are further apart than `window` are not looked for.
    pub(crate) fn new(window: usize) -> Self {
        Self {
            tasks: VecDeque::new(),
            first: 0,
            window,
            readers: Writers::default(),
            writers: Writers::default(),
            next: PendingTask::default(),
        }
    }

    /// The next task waits for task `number`, by name or because that one made a tensor.
    pub(crate) fn waits_for(&mut self, number: u64) {
        self.next.producers.push(number);
    }

    /// The next task touches this tensor, in a scope of derived edges.
    pub(crate) fn touches(&mut self, tensor: &ChipTensor, access: AccessMode) {
        let (buffer, region, oldest) = (buffer_of(tensor), BufferRegion::of(tensor), self.first);
        let PendingTask { producers, conflicts, reads, writes } = &mut self.next;
        let takes_over = matches!(access, AccessMode::Both);
        self.writers.look(buffer, &region, takes_over, oldest, |number, _| match access {
            AccessMode::Write => conflicts.push((number, "writes")),
            AccessMode::Read | AccessMode::Both => producers.push(number),
        });
        if !matches!(access, AccessMode::Read) {
            let conflict = |number, _: &BufferRegion| conflicts.push((number, "reads"));
            self.readers.look(buffer, &region, false, oldest, conflict);
        }
        if matches!(access, AccessMode::Read) { reads } else { writes }.push((buffer, region));
    }

    /// The next task has been submitted as `number`, at `location`; the races that it is in.
    pub(crate) fn submitted(&mut self, number: u64, location: &str) -> Vec<String> {
        let mut next = std::mem::take(&mut self.next);
        next.conflicts.sort_unstable();
        next.conflicts.dedup();
        let unordered =
            next.conflicts.iter().filter(|(other, _)| !self.is_before(*other, &next.producers));
        let notes = unordered
            .filter_map(|(other, does)| {
                let entry = self.entry(*other)?;
                Some(format!(
                    "{location}: this task writes what the task of {} {does}, and under the rule of the field nothing orders the two: \
                     that is a race there. Give the later task a dependency (set_dependencies), or make the tensor an inout",
                    entry.location
                ))
            })
            .collect();
        for (buffer, region) in next.reads {
            self.readers.register(buffer, region, number);
        }
        for (buffer, region) in next.writes {
            self.writers.register(buffer, region, number);
        }
        self.tasks.push_back(TaskNode { producers: next.producers, location: location.to_owned() });
        if self.tasks.len() > self.window {
            self.tasks.pop_front();
            self.first += 1;
        }
        notes
    }

    fn entry(&self, number: u64) -> Option<&TaskNode> {
        self.tasks.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Whether task `earlier` is before a task with these producers.
    fn is_before(&self, earlier: u64, producers: &[u64]) -> bool {
        let mut open = producers.to_vec();
        let mut seen = std::collections::HashSet::new();
        while let Some(number) = open.pop() {
            if number == earlier {
                return true;
            }
            if number > earlier && seen.insert(number) {
                open.extend(self.entry(number).into_iter().flat_map(|entry| &entry.producers));
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Races;
    use crate::rule::AccessMode;
    use crate::wire::ChipTensor;

    #[test]
    fn a_writer_after_a_reader_is_a_race_unless_something_orders_it() {
        let mut races = Races::new(100);
        let tensor = ChipTensor::dense(0x1000, 0, &[64]);
        races.touches(&tensor, AccessMode::Write);
        assert!(races.submitted(0, "a.cpp:1").is_empty());
        races.touches(&tensor, AccessMode::Read);
        assert!(races.submitted(1, "a.cpp:2").is_empty());
        races.touches(&tensor, AccessMode::Both);
        let notes = races.submitted(2, "a.cpp:3");
        assert!(notes[0].starts_with("a.cpp:3") && notes[0].contains("a.cpp:2 reads"), "{notes:?}");
        races.touches(&tensor, AccessMode::Read);
        assert!(races.submitted(3, "a.cpp:4").is_empty());
        races.waits_for(3);
        races.touches(&tensor, AccessMode::Both);
        let notes = races.submitted(4, "a.cpp:5");
        assert_eq!(notes.len(), 1, "task 3 is ordered by name, task 1 by nothing: {notes:?}");
        assert!(notes[0].contains("a.cpp:2 reads"));
    }

    #[test]
    fn other_tiles_are_no_conflict() {
        let mut races = Races::new(100);
        let mut tile = ChipTensor::dense(0x1000, 0, &[64]);
        tile.shapes[0] = 32;
        races.touches(&tile, AccessMode::Read);
        races.submitted(0, "a.cpp:1");
        tile.start_offset = 32;
        races.touches(&tile, AccessMode::Write);
        assert!(races.submitted(1, "a.cpp:2").is_empty());
    }

    #[test]
    fn tensors_of_neighbouring_owners_on_a_heap_are_no_conflict() {
        let mut races = Races::new(100);
        let mut tensor = ChipTensor::dense(0x10_0000, 0, &[64]);
        (tensor.owner, tensor.address) = (7, 0x10_0000);
        races.touches(&tensor, AccessMode::Read);
        races.submitted(0, "a.cpp:1");
        (tensor.owner, tensor.address) = (6, 0x12_0000);
        races.touches(&tensor, AccessMode::Write);
        let notes = races.submitted(1, "a.cpp:2");
        assert!(notes.is_empty(), "no byte of one is in the other: {notes:?}");
    }
}
