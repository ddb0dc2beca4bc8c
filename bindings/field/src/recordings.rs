//! Graphs of the host-built runtime, and what differs from the field's: there a graph is recorded when it is first submitted, and replayed later.
//!
//! A replay has the tasks of the first time, and their scalars. Only a scalar of the boundary that the body passes on unchanged gets its new value. Here the
//! body runs each time. Where that gives something else, the program would compute something else there.

use std::collections::BTreeMap;

use pto_host::abi::numbers::Counted;

/// A task of a graph: where it is submitted, and its scalars.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordedTask {
    location: String,
    scalars: Vec<u64>,
}

/// A graph as it was at a submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shot {
    boundary: Vec<u64>,
    tasks: Vec<RecordedTask>,
}

/// See the file.
#[derive(Default)]
pub(crate) struct Recordings {
    counts: BTreeMap<u64, u64>,
    /// Whether what differs is to be said.
    compares: bool,
    first: BTreeMap<u64, Shot>,
    /// The graph that is submitted, if they are compared.
    open: Option<(u64, Shot)>,
}

impl Recordings {
    pub(crate) fn new(compares: bool) -> Self {
        Self { compares, ..Self::default() }
    }

    /// A graph begins; how often it was submitted before.
    pub(crate) fn begin(&mut self, key: u64, boundary: &[u64]) -> u64 {
        if self.compares && self.open.is_none() {
            self.open = Some((key, Shot { boundary: boundary.to_vec(), tasks: Vec::new() }));
        }
        let count = self.counts.entry(key).or_default();
        *count += 1;
        *count - 1
    }

    /// A task is submitted, in a graph or outside of one.
    pub(crate) fn task(&mut self, scalars: &[u64], location: impl FnOnce() -> String) {
        if let Some((_, shot)) = &mut self.open {
            shot.tasks.push(RecordedTask { location: location(), scalars: scalars.to_vec() });
        }
    }

    /// The graph ends; what is to be said.
    pub(crate) fn end(&mut self, key: u64) -> Vec<String> {
        let Some((_, now)) = self.open.take_if(|(open, _)| *open == key) else { return Vec::new() };
        match self.first.get(&key) {
            Some(first) => first.differences(&now),
            None => {
                self.first.insert(key, now);
                Vec::new()
            }
        }
    }
}

impl Shot {
    fn differences(&self, now: &Self) -> Vec<String> {
        let (had, has) = (self.tasks.len(), now.tasks.len());
        if had != has {
            let location = now.tasks.last().or(self.tasks.last()).map_or("", |task| &task.location);
            let had = Counted(had as u64, "task");
            return vec![format!(
                "{location}: this graph had {had} when it was first submitted, and has {has} now. The field replays the first ones: give \
                 graphs of different tasks different keys"
            )];
        }
        let pairs = self.tasks.iter().zip(&now.tasks);
        let scalars = pairs.flat_map(|(first, now)| {
            let words = first.scalars.iter().zip(&now.scalars).enumerate();
            words.map(move |(at, (first, value))| (now, at, *first, *value))
        });
        scalars
            .filter(|(_, _, first, value)| first != value && !self.is_passed_on(now, *first, *value))
            .map(|(task, at, first, value)| {
                format!(
                    "{}: scalar {at} of this task was {first:#x} when its graph was first submitted, and is {value:#x} now. The field keeps \
                     the first value: hand a scalar of the boundary on as it is, args.scalar(n), and compute outside of the graph",
                    task.location
                )
            })
            .collect()
    }

    /// Whether a scalar of the boundary had the one value, and has the other one.
    fn is_passed_on(&self, now: &Self, first: u64, value: u64) -> bool {
        self.boundary.iter().zip(&now.boundary).any(|pair| pair == (&first, &value))
    }
}

#[cfg(test)]
mod tests {
    use super::Recordings;

    /// Submits a graph with one scalar at its boundary, and tasks with these scalars.
    fn submit(graphs: &mut Recordings, boundary: u64, tasks: &[u64]) -> Vec<String> {
        graphs.begin(9, &[boundary]);
        for scalar in tasks {
            graphs.task(&[*scalar], || "a.cpp:4".to_owned());
        }
        graphs.end(9)
    }

    #[test]
    fn scalars_that_a_replay_would_keep_are_reported() {
        let mut graphs = Recordings::new(true);
        assert!(submit(&mut graphs, 5, &[5, 10, 7]).is_empty(), "the first time");
        let notes = submit(&mut graphs, 6, &[6, 12, 7]);
        assert_eq!(
            notes.len(),
            1,
            "the first one is passed on, the third one is constant: {notes:?}"
        );
        assert!(notes[0].contains("was 0xa") && notes[0].contains("is 0xc now"), "{notes:?}");
        let notes = submit(&mut graphs, 5, &[5, 10]);
        assert!(notes[0].contains("had 3 tasks") && notes[0].contains("has 2 now"), "{notes:?}");
    }
}
