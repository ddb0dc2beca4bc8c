//! Finding a cycle in a graph, and naming it.
//!
//! Kahn's algorithm on the reversed graph: tasks without consumers are taken away until none is left; what
//! remains leads into a cycle. The reversed direction needs only the lists of producers that a graph has
//! anyway.

use std::fmt;

/// Tasks of which each waits for the one before it, and the first for the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    tasks: Vec<u32>,
}

/// How many tasks of a cycle are named before the rest is only counted.
const NAMED: usize = 32;

impl Cycle {
    /// The tasks, producers before consumers, from the lowest id on.
    #[must_use]
    pub fn tasks(&self) -> &[u32] {
        &self.tasks
    }

    fn from_walk(mut tasks: Vec<u32>) -> Self {
        let lowest = tasks.iter().enumerate().min_by_key(|(_, task)| **task);
        let lowest = lowest.map_or(0, |(index, _)| index);
        tasks.rotate_left(lowest);
        Self { tasks }
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for task in self.tasks.iter().take(NAMED) {
            write!(f, "{task} -> ")?;
        }
        if let Some(more) = self.tasks.len().checked_sub(NAMED).filter(|more| *more > 0) {
            write!(f, "({more} more tasks) -> ")?;
        }
        self.tasks.first().map_or(Ok(()), |first| write!(f, "{first}"))
    }
}

/// Edges grouped by consumer: task `i` has the producers `producers[starts[i] .. starts[i + 1]]`.
#[derive(Clone, Copy)]
pub(crate) struct Edges<'a> {
    pub(crate) starts: &'a [usize],
    pub(crate) producers: &'a [u32],
}

impl Edges<'_> {
    fn task_count(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    fn producers_of(&self, task: usize) -> &[u32] {
        &self.producers[self.starts[task]..self.starts[task + 1]]
    }
}

/// A cycle, if the graph has one. Every producer is below the number of tasks.
pub(crate) fn find(edges: Edges<'_>) -> Option<Cycle> {
    let waiting = consumers_left(edges);
    // Each task that is left has a consumer that is left: following them runs into a cycle.
    let mut next = vec![u32::MAX; edges.task_count()];
    for consumer in (0..edges.task_count()).filter(|task| waiting[*task] > 0) {
        for &producer in edges.producers_of(consumer) {
            next[producer as usize] = index(consumer);
        }
    }
    let start = waiting.iter().position(|consumers| *consumers > 0)?;
    Some(Cycle::from_walk(walk(&next, start)))
}

/// Consumers of each task that are left when all tasks outside and downstream of cycles are taken away.
fn consumers_left(edges: Edges<'_>) -> Vec<u32> {
    let mut consumers = vec![0_u32; edges.task_count()];
    for &producer in edges.producers {
        consumers[producer as usize] += 1;
    }
    let mut free: Vec<usize> =
        (0..edges.task_count()).filter(|task| consumers[*task] == 0).collect();
    while let Some(task) = free.pop() {
        for &producer in edges.producers_of(task) {
            let producer = producer as usize;
            consumers[producer] -= 1;
            if consumers[producer] == 0 {
                free.push(producer);
            }
        }
    }
    consumers
}

/// The part of the walk along `next` that repeats.
fn walk(next: &[u32], start: usize) -> Vec<u32> {
    let mut position = vec![usize::MAX; next.len()];
    let mut path = Vec::new();
    let mut task = start;
    while position[task] == usize::MAX {
        position[task] = path.len();
        path.push(index(task));
        task = next[task] as usize;
    }
    path.split_off(position[task])
}

fn index(task: usize) -> u32 {
    u32::try_from(task).expect("a graph has at most MAX_TASKS tasks")
}

/// The cycle among a few edges (producer, consumer) between tasks of any id, such as those that an
/// epitaph names.
pub(crate) fn among(edges: &[(u32, u32)]) -> Option<Cycle> {
    let mut tasks: Vec<u32> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let mut starts = vec![0];
    let mut producers = Vec::new();
    for task in &tasks {
        let of_task = edges.iter().filter(|(_, consumer)| consumer == task);
        let position = |producer: &u32| tasks.binary_search(producer).map(index).ok();
        producers.extend(of_task.filter_map(|(producer, _)| position(producer)));
        starts.push(producers.len());
    }
    let found = find(Edges { starts: &starts, producers: &producers })?;
    Some(Cycle::from_walk(found.tasks.iter().map(|at| tasks[*at as usize]).collect()))
}

#[cfg(test)]
mod tests {
    use super::{Cycle, among};

    #[test]
    fn a_cycle_is_named_in_the_order_of_its_edges() {
        let edges = [(1, 3), (3, 7), (7, 9), (9, 3), (9, 12), (12, 13)];
        assert_eq!(among(&edges).unwrap().to_string(), "3 -> 7 -> 9 -> 3");
    }

    #[test]
    fn a_graph_without_a_cycle_has_none() {
        assert_eq!(among(&[(1, 2), (2, 3), (1, 3), (0, 3)]), None);
        assert_eq!(among(&[]), None);
    }

    #[test]
    fn parallel_edges_do_not_confuse() {
        assert_eq!(among(&[(1, 2), (1, 2), (2, 3)]), None);
        assert_eq!(among(&[(1, 2), (1, 2), (2, 1)]).unwrap().tasks(), [1, 2]);
    }

    #[test]
    fn a_long_cycle_is_counted_not_cut() {
        let text = Cycle { tasks: (5..105).collect() }.to_string();
        assert!(text.starts_with("5 -> 6 -> ") && text.ends_with("(68 more tasks) -> 5"), "{text}");
    }
}
