//! The lists that follow the tasks of a recording: their consumers, which of them a replay publishes, and which predicates it
//! looks at first.

use super::super::super::rings::low_half;
use super::super::buffer::{RecordingBuffer, TENSORS, TaskHead};
use super::Draft;

impl Draft<'_> {
    /// Makes the lists. There is room for the consumers, and then for a word for each task.
    pub(super) fn put_lists(&mut self) {
        self.put_consumers();
        let buffer = self.buffer;
        let is_starter =
            |number: u32, _: usize, head: &TaskHead| head.starts.then_some(number.into());
        let is_bound = |_: u32, at: usize, head: &TaskHead| {
            let at = at + TaskHead::WORDS;
            let (shape, base) = buffer.block_shape(at);
            let is_bound = head.is_shaped() && shape.has_predicate() && base >= TENSORS;
            is_bound.then_some(at as u64)
        };
        self.totals.starters = self.put_list(is_starter);
        self.totals.predicates = self.put_list(is_bound).1;
    }

    /// The word of its first task.
    const fn first_task(&self) -> usize {
        RecordingBuffer::binding(self.start, self.totals.tensors as usize)
    }

    /// Lists the consumers of each task in the order in which they were recorded, and writes into its head how many there
    /// are, and whether it starts.
    fn put_consumers(&mut self) {
        let buffer = self.buffer;
        let (list, edges) = (self.next, self.totals.edges as usize);
        let tasks = self.totals.tasks as usize;
        // How many consumers a task has, then where the next one of them belongs.
        let count_word = |task: u64| list + edges + usize::try_from(task).unwrap_or(usize::MAX);
        (0..tasks as u64).for_each(|task| buffer.put(count_word(task), 0));
        self.for_each_edge(|producer, _| {
            let word = count_word(producer);
            buffer.put(word, buffer.get(word) + 1);
        });
        let (mut at, mut first) = (self.first_task(), list as u64);
        for task in 0..tasks as u64 {
            let consumers = buffer.get(count_word(task));
            buffer.put(count_word(task), first);
            first += consumers;
            let mut head = buffer.head(at);
            let (looks, next) = self.looks(at, &head);
            head.consumers = low_half(consumers);
            head.starts = looks || head.producers == 0;
            buffer.put_head(at, &head);
            at = next;
        }
        self.for_each_edge(|producer, consumer| {
            let next = buffer.get(count_word(producer));
            buffer.put(usize::try_from(next).unwrap_or(usize::MAX), consumer);
            buffer.put(count_word(producer), next + 1);
        });
        self.next += edges;
    }

    /// The edges in the order in which they were recorded, producer and consumer.
    fn for_each_edge(&self, mut each: impl FnMut(u64, u64)) {
        let mut at = self.first_task();
        for consumer in 0..u64::from(self.totals.tasks) {
            let head = self.buffer.head(at);
            let producers = head.producers_at(at);
            for index in 0..head.producers as usize {
                let two = self.buffer.get(producers + index / 2);
                each(two >> (32 * (index % 2)) & 0xFFFF_FFFF, consumer);
            }
            at = self.looks(at, &head).1;
        }
    }

    /// Lists what `of` says of the tasks, which it gets by number, position and head; returns the start of the list and its
    /// length.
    fn put_list(&mut self, of: impl Fn(u32, usize, &TaskHead) -> Option<u64>) -> (u32, u32) {
        let list = self.next;
        let mut at = self.first_task();
        for number in 0..self.totals.tasks {
            let head = self.buffer.head(at);
            if let Some(word) = of(number, at, &head) {
                self.buffer.put(self.next, word);
                self.next += 1;
            }
            at = self.looks(at, &head).1;
        }
        let count = u32::try_from(self.next - list).unwrap_or(u32::MAX);
        (u32::try_from(list).unwrap_or(u32::MAX), count)
    }

    /// Whether a touch of the task at `at` looks around; and where the next task is.
    fn looks(&self, at: usize, head: &TaskHead) -> (bool, usize) {
        let mut at = head.touches_at(at);
        let mut looks = false;
        for _ in 0..head.touches {
            let touch;
            (touch, at) = self.buffer.touch(at);
            looks |= touch.looks;
        }
        (looks, at)
    }
}
