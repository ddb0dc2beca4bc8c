//! Shapes whose edges are a line of arithmetic.

use pto_aicore_kernels::mix;

use crate::csr::Csr;
use crate::family::width::WIDTH;

pub(super) fn chain(tasks: u32) -> Csr {
    let mut csr = Csr::with_capacity(tasks, tasks as usize);
    for task in 0..tasks {
        csr.add(task.checked_sub(1));
    }
    csr
}

pub(super) fn independent(tasks: u32) -> Csr {
    let mut csr = Csr::with_capacity(tasks, 0);
    for _ in 0..tasks {
        csr.add([]);
    }
    csr
}

pub(super) fn fork_join(tasks: u32) -> Csr {
    let stages = (tasks - 1) / (WIDTH + 1);
    let mut csr = Csr::with_capacity(tasks, 2 * tasks as usize);
    let mut join = csr.add([]);
    for _ in 0..stages {
        for _ in 0..WIDTH {
            csr.add([join]);
        }
        join = csr.add(join + 1..=join + WIDTH);
    }
    csr
}

pub(super) fn wavefront(tasks: u32) -> Csr {
    let side = tasks.isqrt();
    let mut csr = Csr::with_capacity(side * side, 2 * tasks as usize);
    for task in 0..side * side {
        let left = (task % side > 0).then(|| task - 1);
        csr.add(left.into_iter().chain(task.checked_sub(side)));
    }
    csr
}

/// Butterflies one after the other, on the largest row of a power of two for which one fits.
pub(super) fn fft(tasks: u32) -> Csr {
    let fits = |stages: &u32| u64::from(stages + 1) << stages <= u64::from(tasks);
    let stages = (1..31).take_while(fits).last().unwrap_or(0);
    let width = 1 << stages;
    let rows = tasks / width;
    let mut csr = Csr::with_capacity(rows * width, 2 * tasks as usize);
    for row in 0..rows {
        for point in 0..width {
            match row.checked_sub(1) {
                None => csr.add([]),
                Some(above) => {
                    let partner = point ^ (1 << (above % stages.max(1))) & (width - 1);
                    let row = above * width;
                    let own = Some(row + point);
                    csr.add(own.into_iter().chain((partner != point).then_some(row + partner)))
                }
            };
        }
    }
    csr
}

pub(super) fn tree(tasks: u32) -> Csr {
    let mut csr = Csr::with_capacity(tasks, tasks as usize);
    for task in 0..tasks {
        csr.add(task.checked_sub(1).map(|before| before / 2));
    }
    csr
}

const RANDOM_PRODUCERS: usize = 4;
const RANDOM_WINDOW: u32 = 1000;

/// Four different ones of the last thousand; the first tasks take what there is.
pub(super) fn random(tasks: u32) -> Csr {
    let mut csr = Csr::with_capacity(tasks, RANDOM_PRODUCERS * tasks as usize);
    let mut state = 1;
    for task in 0..tasks {
        let window = task.min(RANDOM_WINDOW);
        let mut chosen = [u32::MAX; RANDOM_PRODUCERS];
        let count = RANDOM_PRODUCERS.min(window as usize);
        let mut found = 0;
        while found < count {
            state = mix(state);
            // The window is 32 bits wide, and so is what is left of a product shifted down by 32.
            let back = u32::try_from(((state >> 32) * u64::from(window)) >> 32).unwrap_or(0);
            let producer = task - 1 - back;
            if !chosen[..found].contains(&producer) {
                chosen[found] = producer;
                found += 1;
            }
        }
        csr.add(chosen[..count].iter().copied());
    }
    csr
}
