//! Edges between tasks: a task waits for those that wrote bytes which it reads, and for those that read or wrote bytes which it writes. Tasks of one
//! operator do not wait for each other.

/// What a task does to bytes of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) tensor: usize,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) writes: bool,
}

impl Access {
    const fn meets(&self, other: &Self) -> bool {
        self.tensor == other.tensor && self.from < other.to && other.from < self.to
    }

    const fn covers(&self, other: &Self) -> bool {
        self.tensor == other.tensor && self.from <= other.from && other.to <= self.to
    }
}

/// Whom a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Producer {
    Task(usize),
    /// All tasks of a group.
    All(usize),
}

/// A group with more tasks than this is waited for through a task that joins them, where all of them are meant.
const JOINED: usize = 4;

/// The tasks of an operator.
#[derive(Debug, Default)]
struct Group {
    tasks: Vec<usize>,
    joined: Option<usize>,
}

/// What was done to which bytes, as far as it matters to later tasks.
#[derive(Debug, Default)]
pub(super) struct Edges {
    records: Vec<(Access, usize, usize)>,
    groups: Vec<Group>,
    /// Of the group that is added.
    fresh: Vec<(Access, usize, usize)>,
}

impl Edges {
    /// The tasks of an operator follow.
    pub(super) fn begin(&mut self, tasks: usize) {
        self.groups.push(Group { tasks: Vec::with_capacity(tasks), joined: None });
    }

    /// Whom a task with these accesses waits for.
    pub(super) fn producers(&self, accesses: &[Access]) -> Vec<Producer> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for access in accesses {
            let conflicts = self
                .records
                .iter()
                .filter(|(other, ..)| access.meets(other) && (access.writes || other.writes));
            found.extend(conflicts.map(|(_, group, task)| (*group, *task)));
        }
        found.sort_unstable();
        found.dedup();
        let mut producers = Vec::new();
        for of_group in found.chunk_by(|a, b| a.0 == b.0) {
            let group = of_group[0].0;
            let all = self.groups[group].tasks.len();
            if all > JOINED && of_group.len() == all {
                producers.push(Producer::All(group));
            } else {
                producers.extend(of_group.iter().map(|(_, task)| Producer::Task(*task)));
            }
        }
        producers
    }

    /// A task of the operator.
    pub(super) fn add(&mut self, task: usize, accesses: Vec<Access>) {
        let group = self.groups.len() - 1;
        self.groups[group].tasks.push(task);
        self.fresh.extend(accesses.into_iter().map(|access| (access, group, task)));
    }

    /// There are no more tasks of the operator. What they overwrite is waited for through them.
    pub(super) fn end(&mut self) {
        let fresh = std::mem::take(&mut self.fresh);
        let mut writes: Vec<Access> =
            fresh.iter().filter(|(access, ..)| access.writes).map(|(access, ..)| *access).collect();
        writes.sort_unstable_by_key(|access| (access.tensor, access.from));
        let mut covered: Vec<Access> = Vec::new();
        for write in writes {
            match covered.last_mut() {
                Some(last) if last.tensor == write.tensor && write.from <= last.to => {
                    last.to = last.to.max(write.to)
                }
                _ => covered.push(write),
            }
        }
        self.records.retain(|(record, ..)| !covered.iter().any(|write| write.covers(record)));
        self.records.extend(fresh);
    }

    pub(super) fn joined(&self, group: usize) -> Option<usize> {
        self.groups[group].joined
    }

    pub(super) fn set_joined(&mut self, group: usize, task: usize) {
        self.groups[group].joined = Some(task);
    }

    pub(super) fn tasks_of(&self, group: usize) -> &[usize] {
        &self.groups[group].tasks
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Edges, Producer};

    const fn access(from: u64, to: u64, writes: bool) -> Access {
        Access { tensor: 0, from, to, writes }
    }

    fn group(edges: &mut Edges, tasks: &[(usize, Access)]) -> Vec<Vec<Producer>> {
        edges.begin(tasks.len());
        let mut all = Vec::new();
        for (task, access) in tasks {
            all.push(edges.producers(&[*access]));
            edges.add(*task, vec![*access]);
        }
        edges.end();
        all
    }

    #[test]
    fn a_task_waits_for_those_whose_bytes_it_touches() {
        let mut edges = Edges::default();
        let first = group(&mut edges, &[(0, access(0, 64, true)), (1, access(64, 128, true))]);
        assert_eq!(first, [vec![], vec![]], "tasks of one operator do not wait for each other");
        let reads = group(&mut edges, &[(2, access(0, 64, false)), (3, access(32, 96, false))]);
        assert_eq!(reads, [vec![Producer::Task(0)], vec![Producer::Task(0), Producer::Task(1)]]);
        let writes = group(&mut edges, &[(4, access(0, 32, true))]);
        assert_eq!(writes, [vec![Producer::Task(0), Producer::Task(2)]], "a write waits for reads");
        assert!(group(&mut edges, &[(5, access(128, 256, true))])[0].is_empty());
    }

    #[test]
    fn all_tasks_of_a_large_group_are_waited_for_at_once() {
        let mut edges = Edges::default();
        let parts: Vec<_> =
            (0..8).map(|at| (at, access(8 * at as u64, 8 * at as u64 + 8, true))).collect();
        group(&mut edges, &parts);
        assert_eq!(group(&mut edges, &[(8, access(0, 64, false))])[0], [Producer::All(0)]);
        assert_eq!(
            group(&mut edges, &[(9, access(0, 16, false))])[0],
            [Producer::Task(0), Producer::Task(1)]
        );
    }
}
