//! The ready queue: each id comes out once, and who gets it sees what was written before the push.

use pto_abi::ready::QueueEnds;
use pto_abi::sync::{AtomicU64, Concurrent, Exclusive, Ordering, Sharing};
use pto_aicpu_fw::ready_queue::ReadyQueue;

use crate::{explore, spawn};

const IDS: usize = 6;

/// A queue, and for each id a word that its pusher writes before it pushes.
struct Queue {
    ends: QueueEnds,
    slots: Vec<AtomicU64>,
    written: [AtomicU64; IDS],
}

impl Queue {
    fn new(slots: usize) -> Self {
        Self {
            ends: QueueEnds::default(),
            slots: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            written: Default::default(),
        }
    }

    fn view(&self) -> ReadyQueue<'_> {
        ReadyQueue::new(&self.ends, &self.slots).unwrap()
    }

    fn push<S: Sharing>(&self, ids: &[u32]) {
        for id in ids {
            self.written[*id as usize].store(1, Ordering::Relaxed);
        }
        self.view().push::<S>(ids);
    }

    fn pop<S: Sharing>(&self, most: usize) -> Vec<u32> {
        let mut ids = vec![u32::MAX; most];
        let count = self.view().pop::<S>(&mut ids);
        ids.truncate(count);
        for id in &ids {
            let written = self.written[*id as usize].load(Ordering::Relaxed);
            assert_eq!(written, 1, "id {id} was popped and its task is not visible");
        }
        ids
    }

    /// What `popped` left, and that together they are `0 .. count`, each once.
    fn check(&self, mut popped: Vec<u32>, count: u32) {
        while let [id] = self.pop::<Concurrent>(1)[..] {
            popped.push(id);
        }
        popped.sort_unstable();
        assert_eq!(popped, (0..count).collect::<Vec<_>>(), "each id once");
        assert!(self.view().is_empty());
    }
}

fn two_pushers_one_popper<S: Sharing>() {
    explore(
        5,
        || Queue::new(4),
        move |queue| {
            let pushers = [0, 1].map(|id| spawn(move || queue.push::<S>(&[id])));
            let mut popped = queue.pop::<S>(1);
            popped.extend(queue.pop::<S>(2));
            pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
            queue.check(popped, 2);
        },
    );
}

fn one_pusher_two_poppers<S: Sharing>() {
    explore(
        5,
        || Queue::new(4),
        move |queue| {
            let poppers = [0, 1].map(|_| spawn(move || queue.pop::<S>(1)));
            queue.push::<S>(&[0]);
            queue.push::<S>(&[1]);
            let popped = poppers.map(|popper| popper.join().unwrap()).concat();
            queue.check(popped, 2);
        },
    );
}

/// Both ids are there before anybody pops.
fn two_poppers_of_what_is_there<S: Sharing>() {
    explore(
        5,
        || Queue::new(4),
        move |queue| {
            queue.push::<S>(&[0, 1]);
            let poppers = [0, 1].map(|_| spawn(move || queue.pop::<S>(1)));
            let popped = poppers.map(|popper| popper.join().unwrap()).concat();
            queue.check(popped, 2);
        },
    );
}

fn batches<S: Sharing>() {
    explore(
        5,
        || Queue::new(4),
        move |queue| {
            let pusher = spawn(move || queue.push::<S>(&[0, 1, 2]));
            let popper = spawn(move || queue.pop::<S>(2));
            let mut popped = queue.pop::<S>(2);
            pusher.join().unwrap();
            popped.extend(popper.join().unwrap());
            queue.check(popped, 3);
        },
    );
}

/// Two slots, both full; each agent pushes a further id when it has got one, so that the laps overlap.
fn laps_of_two_slots<S: Sharing>() {
    explore(
        5,
        || Queue::new(2),
        move |queue| {
            queue.push::<S>(&[0, 1]);
            let turn = |new: u32| {
                let popped = queue.pop::<S>(1);
                if !popped.is_empty() {
                    queue.push::<S>(&[new]);
                }
                popped
            };
            let other = spawn(move || [turn(2), turn(3)].concat());
            let mut popped = turn(4);
            let pushed = 2 + u32::from(!popped.is_empty());
            let others = other.join().unwrap();
            let last = pushed + u32::try_from(others.len()).unwrap();
            popped.extend(others);
            while let [id] = queue.pop::<S>(1)[..] {
                popped.push(id);
            }
            let count = popped.len();
            popped.sort_unstable();
            popped.dedup();
            let distinct = popped.len();
            assert_eq!((count, distinct), (last as usize, count), "each id once: {popped:?}");
        },
    );
}

#[test]
fn two_push_and_one_pops() {
    two_pushers_one_popper::<Concurrent>();
}

#[test]
fn one_pushes_and_two_pop() {
    one_pusher_two_poppers::<Concurrent>();
}

#[test]
fn two_pop_what_is_there() {
    two_poppers_of_what_is_there::<Concurrent>();
}

#[test]
fn batches_go_in_and_out() {
    batches::<Concurrent>();
}

#[test]
fn two_slots_wrap() {
    laps_of_two_slots::<Concurrent>();
}

#[test]
#[should_panic(expected = "each id once")]
fn wrong_when_pushers_take_the_same_slot() {
    two_pushers_one_popper::<Exclusive>();
}

#[test]
#[should_panic(expected = "each id once")]
fn wrong_when_poppers_take_the_same_slot() {
    two_poppers_of_what_is_there::<Exclusive>();
}

/// A queue whose slots are published by a relaxed store.
#[test]
#[should_panic(expected = "its task is not visible")]
fn wrong_when_a_slot_is_not_released() {
    explore(
        5,
        || Queue::new(4),
        move |queue| {
            let pusher = spawn(move || {
                queue.written[0].store(1, Ordering::Relaxed);
                let position = queue.ends.tail.fetch_add(1, Ordering::Relaxed);
                queue.slots[usize::try_from(position).unwrap()].store(1 << 32, Ordering::Relaxed);
            });
            let popped = queue.pop::<Concurrent>(1);
            pusher.join().unwrap();
            queue.check(popped, 1);
        },
    );
}
