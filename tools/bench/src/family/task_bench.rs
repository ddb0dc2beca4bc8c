//! The dependency patterns of Task Bench: rows of [`WIDTH`] points; a point depends on points of the row
//! before. Patterns that change from row to row repeat after [`PERIOD`] rows; those that have a radix have
//! [`RADIX`].

use pto_aicore_kernels::mix;

use crate::csr::Csr;
use crate::family::width::WIDTH;

const RADIX: u32 = 5;
const PERIOD: u32 = 3;
/// Of 256: the part of the neighbours of `random_nearest` that are producers.
const CONNECTED: u64 = 64;

/// Rows of full width; `of(row, point)` are the points of the row before.
fn rows<I: IntoIterator<Item = u32>>(tasks: u32, of: impl Fn(u32, u32) -> I) -> Csr {
    wide(WIDTH, tasks, of)
}

/// Rows of `width` points.
fn wide<I: IntoIterator<Item = u32>>(width: u32, tasks: u32, of: impl Fn(u32, u32) -> I) -> Csr {
    let count = (tasks / width).max(1);
    let mut csr = Csr::with_capacity(count * width, 3 * tasks as usize);
    for row in 0..count {
        for point in 0..width {
            match row.checked_sub(1) {
                None => csr.add([]),
                Some(above) => {
                    csr.add(of(row, point).into_iter().map(|point| above * width + point))
                }
            };
        }
    }
    csr
}

/// Points from `before` to the left up to `after` to the right, as far as a row of `width` goes.
fn around(width: u32, point: u32, before: u32, after: u32) -> std::ops::RangeInclusive<u32> {
    point.saturating_sub(before)..=(point + after).min(width - 1)
}

/// The neighbours of a point in patterns with a radix.
fn near(width: u32, point: u32) -> std::ops::RangeInclusive<u32> {
    around(width, point, RADIX / 2, (RADIX - 1) / 2)
}

pub(super) fn trivial(tasks: u32) -> Csr {
    rows(tasks, |_, _| [])
}

pub(super) fn no_comm(tasks: u32) -> Csr {
    rows(tasks, |_, point| [point])
}

pub(super) fn stencil_1d(width: u32, tasks: u32) -> Csr {
    wide(width, tasks, |_, point| around(width, point, 1, 1))
}

pub(super) fn stencil_1d_periodic(tasks: u32) -> Csr {
    rows(tasks, |_, point| [WIDTH - 1, 0, 1].map(|step| (point + step) % WIDTH))
}

/// Rows grow by a point until they are full, and shrink again at the end: the diagonals of a grid.
pub(super) fn dom(tasks: u32) -> Csr {
    let tasks_of =
        |rows: &u32| (0..*rows).map(|row| WIDTH.min(row + 1).min(rows - row)).sum::<u32>();
    // More rows than that are full ones.
    let growing = (1..2 * WIDTH).take_while(|rows| tasks_of(rows) <= tasks).last().unwrap_or(1);
    let count = growing + (tasks - tasks_of(&growing)) / WIDTH;
    let first_of = |row: u32| (row + WIDTH).saturating_sub(count);
    let mut csr = Csr::with_capacity(tasks, 2 * tasks as usize);
    let mut above = (0, 0..0);
    for row in 0..count {
        let width = WIDTH.min(row + 1).min(count - row);
        let (first, start) = (first_of(row), csr.tasks());
        for point in first..first + width {
            let (start_above, points_above) = &above;
            let producers = point.checked_sub(1).into_iter().chain([point]);
            let producers = producers.filter(|producer| points_above.contains(producer));
            csr.add(producers.map(|producer| start_above + producer - points_above.start));
        }
        above = (start, first..first + width);
    }
    csr
}

/// One point, two, four, up to the full width; then full rows.
pub(super) fn tree(tasks: u32) -> Csr {
    let mut csr = Csr::with_capacity(tasks, tasks as usize);
    let mut above = csr.add([]);
    let mut width = 1;
    loop {
        width = WIDTH.min(2 * width);
        let start = csr.tasks();
        if start.saturating_add(width) > tasks {
            return csr;
        }
        for point in 0..width {
            csr.add([above + point / 2]);
        }
        above = start;
    }
}

pub(super) fn fft(width: u32, tasks: u32) -> Csr {
    let stages = width.ilog2();
    wide(width, tasks, |row, point| {
        let distance = 1 << ((row + stages - 1) % stages);
        let right = Some(point + distance).filter(|right| *right < width);
        point.checked_sub(distance).into_iter().chain([point]).chain(right)
    })
}

pub(super) fn nearest(width: u32, tasks: u32) -> Csr {
    wide(width, tasks, |_, point| near(width, point))
}

pub(super) fn spread(tasks: u32) -> Csr {
    rows(tasks, |row, point| {
        (0..RADIX).map(move |index| {
            let turn = if index > 0 { row % PERIOD } else { 0 };
            (point + index * WIDTH / RADIX + turn) % WIDTH
        })
    })
}

pub(super) fn random_nearest(width: u32, tasks: u32) -> Csr {
    wide(width, tasks, |row, point| {
        near(width, point).filter(move |producer| {
            let seed = u64::from(row % PERIOD) << 32 | u64::from(point << 8 | producer);
            *producer == point || mix(seed) % 256 < CONNECTED
        })
    })
}

pub(super) fn all_to_all(tasks: u32) -> Csr {
    rows(tasks, |_, _| 0..WIDTH)
}
