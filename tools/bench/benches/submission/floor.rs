//! The memory of a submission without the work: a floor for what it can cost on this machine.
//!
//! A step touches as many lines as a submission, in tables of the same sizes and in the same order: the task's own line,
//! its note and its words, one after the other; the row of each tensor, in a table of as many as are live; and the line
//! of the task that used the tensor before. What a submission costs beyond its costs in a small window, and this does too,
//! is the way to the memory.

use std::hint::black_box;

use pto_abi::stream::{MapRow, SlotNote};
use pto_abi::sync::{AtomicU64, Ordering::Relaxed};
use pto_abi::task::Task;

use super::{AccessPattern, best_of_rounds};

fn many<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

/// As `super::measure`.
pub(super) fn measure<const N: usize>(window: usize, pattern: AccessPattern) -> f64 {
    let (tasks, notes) = (many::<Task>(window), many::<SlotNote>(window));
    let words = many::<AtomicU64>(8 * window);
    let tensors = many::<MapRow>(usize::try_from(pattern.live()).unwrap_or(0));
    let empty = || tasks.iter().for_each(|task| task.fanout.store(0, Relaxed));
    let step = |number: u64| {
        let slot = usize::try_from(number).unwrap_or(0) % window;
        for arg in 0..N {
            let tensor = usize::try_from(pattern.tensor(number, arg as u64)).unwrap_or(0);
            let row = &tensors[tensor];
            // The last argument is written, the others are read.
            let (own, other) = if arg + 1 == N {
                (&row.writer, &row.readers[0])
            } else {
                (&row.readers[0], &row.writer)
            };
            let before = &tasks[other.load(Relaxed) as usize % window];
            before.fanout.store(before.fanout.load(Relaxed) + 1, Relaxed);
            own.store(u32::try_from(slot).unwrap_or(0), Relaxed);
        }
        let (task, note) = (&tasks[slot], &notes[slot]);
        task.fanin.store(1, Relaxed);
        task.kernel.store(number, Relaxed);
        task.generation.store(1, Relaxed);
        note.first_word.store(1, Relaxed);
        let first = (N + 3) * slot % (8 * window - N - 3);
        words[first..first + N + 3].iter().for_each(|word| word.store(number, Relaxed));
    };
    let ns = best_of_rounds(window, step, empty);
    black_box((&tasks, &tensors));
    ns
}
