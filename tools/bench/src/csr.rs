//! A graph as edge lists: for each task its producers. What every runner, ours and the peers', builds from.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use pto_aicore_kernels::{dag_value, mix};

/// The first bytes of a graph file.
pub const FILE_MAGIC: &[u8; 8] = b"PTOCSR01";

/// For each task its producers, all of them tasks before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csr {
    /// Where the producers of each task start, and the end.
    starts: Vec<u32>,
    producers: Vec<u32>,
}

impl Default for Csr {
    /// A graph without tasks.
    fn default() -> Self {
        Self::with_capacity(0, 0)
    }
}

impl Csr {
    /// A graph without tasks, with room for `tasks` of them.
    #[must_use]
    pub fn with_capacity(tasks: u32, edges: usize) -> Self {
        let mut starts = Vec::with_capacity(tasks as usize + 1);
        starts.push(0);
        Self { starts, producers: Vec::with_capacity(edges) }
    }

    /// Adds the next task; returns its number.
    ///
    /// # Panics
    /// When a producer is not before it, or there are 2^32 tasks or edges.
    pub fn add(&mut self, producers: impl IntoIterator<Item = u32>) -> u32 {
        let task = self.tasks();
        let first = self.producers.len();
        self.producers.extend(producers);
        assert!(
            self.producers[first..].iter().all(|producer| *producer < task),
            "task {task} waits for a task that is not before it"
        );
        self.starts.push(u32::try_from(self.producers.len()).expect("below 2^32 edges"));
        task
    }

    /// How many tasks.
    #[must_use]
    pub fn tasks(&self) -> u32 {
        u32::try_from(self.starts.len() - 1).expect("below 2^32 tasks")
    }

    /// How many edges.
    #[must_use]
    pub fn edges(&self) -> u64 {
        self.producers.len() as u64
    }

    /// How many tasks the longest path has.
    #[must_use]
    pub fn depth(&self) -> u64 {
        let mut depths: Vec<u64> = Vec::with_capacity(self.tasks() as usize);
        for (_, producers) in self.iter() {
            let before = producers.iter().map(|producer| depths[*producer as usize]);
            depths.push(before.max().unwrap_or(0) + 1);
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// The producers of a task.
    #[must_use]
    pub fn producers_of(&self, task: u32) -> &[u32] {
        self.producers_between(task..task + 1)
    }

    /// The producers of all tasks, one task's after the other's.
    #[must_use]
    pub fn producers(&self) -> &[u32] {
        &self.producers
    }

    /// Every task with its producers, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.iter_between(0..self.tasks())
    }

    /// These tasks with their producers, in order.
    ///
    /// # Panics
    /// When there are fewer tasks.
    #[inline]
    pub fn iter_between(&self, tasks: Range<u32>) -> impl Iterator<Item = (u32, &[u32])> {
        let starts = &self.starts[tasks.start as usize..=tasks.end as usize];
        let producers = |ends: &[u32]| &self.producers[ends[0] as usize..ends[1] as usize];
        (tasks.start..).zip(starts.windows(2).map(producers))
    }

    /// The producers of these tasks, one task's after the other's.
    ///
    /// # Panics
    /// When there are fewer tasks.
    #[must_use]
    pub fn producers_between(&self, tasks: Range<u32>) -> &[u32] {
        let [start, end] = [tasks.start, tasks.end].map(|task| self.starts[task as usize] as usize);
        &self.producers[start..end]
    }

    /// What the tasks must produce when each ran once, after its producers: the sum of what each mixes
    /// from its number and its producers' values ([`dag_value`] with seed 0).
    #[must_use]
    pub fn checksum(&self) -> u64 {
        let mut values: Vec<u64> = Vec::with_capacity(self.tasks() as usize);
        for (task, producers) in self.iter() {
            let inputs = producers.iter().map(|producer| values[*producer as usize]);
            values.push(dag_value(0, task.into(), inputs));
        }
        fold_values(values)
    }

    /// Writes the file that peers read: [`FILE_MAGIC`], tasks and edges as `u64`, the starts, the producers as
    /// `u32`, all little-endian.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(FILE_MAGIC)?;
        for count in [u64::from(self.tasks()), self.edges()] {
            file.write_all(&count.to_le_bytes())?;
        }
        for word in self.starts.iter().chain(&self.producers) {
            file.write_all(&word.to_le_bytes())?;
        }
        file.flush()
    }
}

/// One number of all tasks' values that changes with each of them and with their places.
#[must_use]
pub fn fold_values(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0, |sum, value| mix(sum ^ value))
}

#[cfg(test)]
mod tests {
    use super::{Csr, FILE_MAGIC};

    fn diamond() -> Csr {
        let mut csr = Csr::with_capacity(4, 4);
        for producers in [&[][..], &[0], &[0], &[1, 2]] {
            csr.add(producers.iter().copied());
        }
        csr
    }

    #[test]
    fn a_graph_is_what_was_added() {
        let csr = diamond();
        assert_eq!((csr.tasks(), csr.edges()), (4, 4));
        assert_eq!(csr.producers_of(3), [1, 2]);
        let listed: Vec<_> = csr.iter().map(|(task, producers)| (task, producers.len())).collect();
        assert_eq!(listed, [(0, 0), (1, 1), (2, 1), (3, 2)]);
    }

    #[test]
    #[should_panic(expected = "task 0 waits for a task that is not before it")]
    fn a_producer_stands_before_its_consumer() {
        Csr::with_capacity(1, 1).add([0]);
    }

    #[test]
    fn the_checksum_knows_edges_and_their_order() {
        let mut other = Csr::with_capacity(4, 4);
        for producers in [&[][..], &[0], &[0], &[2, 1]] {
            other.add(producers.iter().copied());
        }
        assert_eq!(diamond().checksum(), diamond().checksum());
        assert_ne!(diamond().checksum(), other.checksum());
    }

    #[test]
    fn the_file_is_what_its_description_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        diamond().write(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(&bytes[..8], FILE_MAGIC);
        assert_eq!(bytes[8..24], [4, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
        let words: Vec<_> =
            bytes[24..].as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        assert_eq!(words, [0, 0, 1, 2, 4, 0, 0, 1, 2]);
    }
}
