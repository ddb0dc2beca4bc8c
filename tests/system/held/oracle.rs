//! What becomes of a program on rings of a given size, by exhaustive accounting: after every step it is worked out anew which
//! tasks could ever complete if the program did nothing more. Knows nothing of the runtime but its rules.

use std::collections::HashMap;

use super::program::{New, REPLAYED, Step};

/// Rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) window: usize,
    pub(crate) words: usize,
}

/// What a program waits for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vain {
    /// Room in the ring of this number: so much is in use, so much would suffice.
    Ring(u32, [u64; 2]),
    /// A task.
    Task,
}

/// How a program ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All of its tasks complete.
    Done,
    /// It is done, and tasks are left that wait for each other.
    Circle,
    /// It waits in vain. `unpublished`: tasks that could end that; `circle`: those that wait for themselves, among all that
    /// it waits for.
    Stuck { vain: Vain, unpublished: Vec<usize>, circle: Vec<usize>, added: usize },
}

/// Words of a task of a replay: its argument, and the context.
const REPLAYED_WORDS: usize = 2;

/// Words of a task: its arguments, and the context.
fn words_of(new: &New) -> usize {
    new.reads.iter().chain(&new.writes).count() + new.scalars + 1
}

#[derive(Default)]
struct Task {
    producers: Vec<usize>,
    is_published: bool,
    is_replayed: bool,
    words: usize,
}

#[derive(Default)]
struct Tensor {
    writer: Option<usize>,
    readers: Vec<usize>,
}

/// The program so far.
#[derive(Default)]
struct Account {
    tasks: Vec<Task>,
    tensors: HashMap<usize, Tensor>,
    /// What the rings need.
    least: Sizes,
}

impl Account {
    /// Which tasks could complete now: the least fixed point.
    fn completable(&self) -> Vec<bool> {
        let mut found = vec![false; self.tasks.len()];
        loop {
            let before = found.clone();
            for (number, task) in self.tasks.iter().enumerate() {
                found[number] =
                    task.is_published && task.producers.iter().all(|producer| found[*producer]);
            }
            if found == before {
                return found;
            }
        }
    }

    /// The oldest task that could not; the next one, if all could.
    fn oldest(&self) -> usize {
        let completable = self.completable();
        completable.iter().position(|is| !is).unwrap_or(completable.len())
    }

    /// All that these wait for, with them, as far as it could not complete.
    fn waited_for(&self, from: &[usize]) -> Vec<usize> {
        let completable = self.completable();
        let (mut found, mut left) = (Vec::new(), from.to_vec());
        while let Some(task) = left.pop() {
            if !completable[task] && !found.contains(&task) {
                found.push(task);
                left.extend(&self.tasks[task].producers);
            }
        }
        found
    }

    fn stuck(&self, vain: Vain, from: &[usize]) -> End {
        let all = self.waited_for(from);
        let unpublished = all.iter().copied().filter(|task| !self.tasks[*task].is_published);
        let waits_for_itself =
            |task: &usize| self.waited_for(&self.tasks[*task].producers).contains(task);
        let circle = all.iter().copied().filter(waits_for_itself).collect();
        let unpublished = unpublished.collect();
        End::Stuck { vain, unpublished, circle, added: self.tasks.len() }
    }

    /// Tasks with so many words each are added at once.
    fn make_room(&mut self, words: &[usize], sizes: Sizes) -> Result<(), End> {
        let (oldest, added) = (self.oldest(), self.tasks.len());
        let kept: usize = self.tasks[oldest..].iter().map(|task| task.words).sum();
        let (slots, sum) = (added - oldest + words.len(), kept + words.iter().sum::<usize>());
        let Sizes { window, words: most } = self.least;
        self.least = Sizes { window: window.max(slots), words: most.max(sum) };
        let from: Vec<usize> = (oldest < added).then_some(oldest).into_iter().collect();
        let vain = if slots > sizes.window {
            Vain::Ring(0, [added - oldest, slots.next_power_of_two()].map(|size| size as u64))
        } else if sum > sizes.words {
            Vain::Ring(1, [kept, sum].map(|size| size as u64))
        } else {
            return Ok(());
        };
        Err(self.stuck(vain, &from))
    }

    /// The newest task reads or writes a tensor.
    fn touch(&mut self, tensor: usize, writes: bool) {
        let number = self.tasks.len() - 1;
        let tensor = self.tensors.entry(tensor).or_default();
        let producers = &mut self.tasks[number].producers;
        producers.extend(tensor.writer.filter(|writer| *writer != number));
        if writes {
            producers.extend(tensor.readers.drain(..).filter(|reader| *reader != number));
            tensor.writer = Some(number);
        } else {
            tensor.readers.push(number);
        }
    }

    fn add(&mut self, task: Task, reads: Option<usize>, writes: Option<usize>) {
        self.tasks.push(task);
        reads.into_iter().for_each(|tensor| self.touch(tensor, false));
        writes.into_iter().for_each(|tensor| self.touch(tensor, true));
    }

    /// The program waits for the tasks that write a tensor, and perhaps for those that read it.
    fn wait(&self, tensor: usize, for_readers: bool) -> Result<(), End> {
        let Some(tensor) = self.tensors.get(&tensor) else { return Ok(()) };
        let readers = tensor.readers.iter().filter(|_| for_readers);
        let awaited: Vec<usize> = tensor.writer.iter().chain(readers).copied().collect();
        match self.waited_for(&awaited).is_empty() {
            true => Ok(()),
            false => Err(self.stuck(Vain::Task, &awaited)),
        }
    }

    fn step(&mut self, step: &Step, sizes: Sizes) -> Result<(), End> {
        match *step {
            Step::Add(new) => {
                let words = words_of(&new);
                self.make_room(&[words], sizes)?;
                let task = Task { is_published: !new.is_kept, words, ..Task::default() };
                self.add(task, new.reads, new.writes);
            }
            Step::Edge { producer, consumer } => {
                // Those of a replay have no ids.
                if !self.tasks[producer].is_replayed {
                    self.tasks[consumer].producers.push(producer);
                }
            }
            Step::Publish(task) => self.tasks[task].is_published = true,
            Step::Replay(tensor) => {
                self.make_room(&[REPLAYED_WORDS; REPLAYED], sizes)?;
                for _ in 0..REPLAYED {
                    let (is_published, is_replayed) = (true, true);
                    let words = REPLAYED_WORDS;
                    let task = Task { producers: Vec::new(), is_published, is_replayed, words };
                    self.add(task, None, Some(tensor));
                }
            }
            Step::Get(tensor) => self.wait(tensor, false)?,
            Step::Set(tensor) => self.wait(tensor, true)?,
        }
        Ok(())
    }
}

/// How a program ends on rings of these sizes, and what it needs as far as it comes.
pub(crate) fn end(steps: &[Step], sizes: Sizes) -> (End, Sizes) {
    // The record has as many tasks as the window has slots, at most.
    let least = Sizes { window: REPLAYED, words: 0 };
    let mut account = Account { least, ..Account::default() };
    let stopped = steps.iter().try_for_each(|step| account.step(step, sizes));
    let end = match stopped {
        Err(end) => end,
        Ok(()) if account.oldest() == account.tasks.len() => End::Done,
        Ok(()) => End::Circle,
    };
    (end, account.least)
}
