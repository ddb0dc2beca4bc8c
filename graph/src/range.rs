//! Ranges: many tasks of one kernel that are submitted in one call.
//!
//! A builder checks the kernel, finds room and counts once for all tasks of a range. What it does for each task is to write its line and its
//! words, and to add its edges. The tasks of a range do not wait for each other, and each is a task like any other once it is submitted.
//!
//! ```
//! use pto_abi::{CoreKind, FuncId, TaskId};
//! use pto_graph::{TaskRange, TaskSpec, Variation, Wait};
//!
//! // A row of eight points, each of which waits for its neighbours in the row before.
//! let above = [TaskId { slot: 0, generation: 1 }; 8];
//! let grows = [Variation::by(0, 256)];
//! let waits = [Wait::window(&above, -1, 3)];
//! let task = TaskSpec::new(FuncId(2), CoreKind::AIV, &[0x1000, 64]);
//! let row = TaskRange::new(task).times(8).varying(&grows).after(&waits);
//! assert_eq!((row.tasks(), row.check(8)), (8, Ok(())));
//! assert_eq!([0, 1, 7].map(|point| waits[0].of(point).len()), [2, 3, 2]);
//! ```
//! Invariant: a range that [`check`](TaskRange::check) accepts has an id for each task, and each list of producers has an end for each task.
//!
//! Why it is so: `docs/decisions/ranges.md`.

use pto_abi::chain::MAX_CHAIN_ARGS;
use pto_abi::{Fault, TaskId};

use crate::link::{Link, Variation};
use crate::task::TaskSpec;

/// Which tasks each task of a range waits for.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    producers: &'a [TaskId],
    how: How<'a>,
}

#[derive(Clone, Copy, Debug)]
enum How<'a> {
    All,
    Window { from: i64, width: u32, stride: u32 },
    Listed(&'a [u32]),
}

impl<'a> Wait<'a> {
    /// Each task waits for all of them.
    #[must_use]
    pub const fn all(producers: &'a [TaskId]) -> Self {
        Self { producers, how: How::All }
    }

    /// Task `n` waits for `producers[n]`, if there is one.
    #[must_use]
    pub const fn each(producers: &'a [TaskId]) -> Self {
        Self::window(producers, 0, 1)
    }

    /// Task `n` waits for `width` of them from `producers[n + from]` on; producers before the first one or after the last one are left out.
    #[must_use]
    pub const fn window(producers: &'a [TaskId], from: i32, width: u32) -> Self {
        let from = from as i64;
        Self { producers, how: How::Window { from, width, stride: 1 } }
    }

    /// The same window, which moves by `stride` producers from each task to the next. With 2 and a width of 2, the tasks join pairs.
    #[must_use]
    pub const fn every(mut self, by: u32) -> Self {
        if let How::Window { from, width, .. } = self.how {
            self.how = How::Window { from, width, stride: by };
        }
        self
    }

    /// Task `n` waits for those from `ends[n - 1]` up to `ends[n]`; the first one for those from the start.
    #[must_use]
    pub const fn listed(producers: &'a [TaskId], ends: &'a [u32]) -> Self {
        Self { producers, how: How::Listed(ends) }
    }

    /// Out of how many tasks those are that each of them waits for.
    #[must_use]
    pub const fn producers(&self) -> usize {
        self.producers.len()
    }

    /// What task `index` of the range waits for.
    #[must_use]
    #[inline]
    pub fn of(&self, index: u32) -> &'a [TaskId] {
        match self.how {
            How::All => self.producers,
            How::Window { from, width, stride } => {
                // A window so far past the last producer that this wraps ends before the first producer, so it is empty as well.
                let from = from.wrapping_add(i64::from(index).wrapping_mul(i64::from(stride)));
                let (low, high) = (from.max(0), from.wrapping_add(i64::from(width)));
                let most = self.producers.len();
                let high = usize::try_from(high).unwrap_or(0).min(most);
                let low = usize::try_from(low).unwrap_or(most).min(high);
                self.producers.get(low..high).unwrap_or(&[])
            }
            How::Listed(ends) => self.listed_part(ends, index),
        }
    }

    /// Whether a list says what each task waits for.
    #[must_use]
    #[inline]
    pub const fn is_listed(&self) -> bool {
        matches!(self.how, How::Listed(_))
    }

    /// Out of line, so that a builder's loop needs no registers for it.
    #[inline(never)]
    fn listed_part(&self, ends: &[u32], index: u32) -> &'a [TaskId] {
        let end = |at: Option<u32>| at.and_then(|at| ends.get(at as usize)).copied();
        let start = end(index.checked_sub(1)).unwrap_or(0);
        let part = start as usize..end(Some(index)).unwrap_or(start) as usize;
        self.producers.get(part).unwrap_or(&[])
    }

    fn fits(&self, tasks: u32) -> bool {
        let How::Listed(ends) = self.how else { return true };
        ends.len() == tasks as usize
            && ends.iter().zip(ends.iter().skip(1)).all(|(end, next)| end <= next)
            && ends.last().is_none_or(|end| *end as usize == self.producers.len())
    }
}

/// A walk along what one task after the other waits for, in fewer instructions than [`Wait::of`] takes for each. There is one for each way in which a
/// wait tells it; along a wait that tells it in another way, every task is one that [`of`](Wait::of) has to be asked about.
pub trait WaitWalk<'a> {
    /// A walk along what the tasks from `index` on wait for.
    fn along(wait: &Wait<'a>, index: u32) -> Self;

    /// What the next task waits for, which is task `index`; `None`: [`Wait::of`] knows.
    fn next(&mut self, index: u32) -> Option<&'a [TaskId]>;
}

/// A walk along windows that lie within their producers.
#[derive(Clone, Copy, Debug)]
pub struct WindowWalk<'a> {
    producers: &'a [TaskId],
    /// Where the window of the next task begins, modulo 2^64: one that begins before the first producer has a large number here.
    from: usize,
    width: usize,
    stride: usize,
}

impl<'a> WaitWalk<'a> for WindowWalk<'a> {
    #[inline(always)]
    fn along(wait: &Wait<'a>, index: u32) -> Self {
        let (from, width, stride) = match wait.how {
            How::All => (0, wait.producers.len(), 0),
            How::Window { from, width, stride } => {
                let by = i64::from(index).wrapping_mul(i64::from(stride));
                let from = usize::try_from(from.wrapping_add(by).cast_unsigned());
                (from.unwrap_or(usize::MAX), width as usize, stride as usize)
            }
            // The range begins after its end.
            How::Listed(_) => (usize::MAX, 1, 0),
        };
        Self { producers: wait.producers, from, width, stride }
    }

    #[inline(always)]
    fn next(&mut self, _index: u32) -> Option<&'a [TaskId]> {
        let from = self.from;
        self.from = from.wrapping_add(self.stride);
        self.producers.get(from..from.wrapping_add(self.width))
    }
}

/// A walk along a list.
#[derive(Clone, Copy, Debug)]
pub struct ListWalk<'a> {
    producers: &'a [TaskId],
    /// Where those of the task before end.
    from: u32,
    /// Where those of each task end.
    ends: &'a [u32],
}

impl<'a> WaitWalk<'a> for ListWalk<'a> {
    #[inline(always)]
    fn along(wait: &Wait<'a>, index: u32) -> Self {
        let How::Listed(ends) = wait.how else {
            return Self { producers: &[], from: 0, ends: &[] };
        };
        let before = index.checked_sub(1).and_then(|before| ends.get(before as usize));
        let from = before.copied().unwrap_or(0);
        Self { producers: wait.producers, from, ends }
    }

    #[inline(always)]
    fn next(&mut self, index: u32) -> Option<&'a [TaskId]> {
        // Not by `get`, whose pointer would be compared with null on the way.
        if index as usize >= self.ends.len() {
            return None;
        }
        let end = self.ends[index as usize];
        let from = core::mem::replace(&mut self.from, end);
        self.producers.get(from as usize..end as usize)
    }
}

/// Tasks of one kernel that are submitted in one call.
#[derive(Clone, Copy, Debug)]
pub struct TaskRange<'a> {
    link: Link<'a>,
    waits: &'a [Wait<'a>],
}

impl<'a> TaskRange<'a> {
    /// One task, which waits for nothing.
    #[must_use]
    pub const fn new(task: TaskSpec<'a>) -> Self {
        Self { link: Link::new(task), waits: &[] }
    }

    /// Sets the number of tasks.
    #[must_use]
    pub const fn times(mut self, tasks: u32) -> Self {
        self.link = self.link.times(tasks);
        self
    }

    /// Sets the arguments that differ from task to task.
    #[must_use]
    pub const fn varying(mut self, variations: &'a [Variation<'a>]) -> Self {
        self.link = self.link.varying(variations);
        self
    }

    /// Sets the tasks that the range waits for.
    #[must_use]
    pub const fn after(mut self, waits: &'a [Wait<'a>]) -> Self {
        self.waits = waits;
        self
    }

    /// How many tasks it has.
    #[must_use]
    pub const fn tasks(&self) -> u32 {
        self.link.count()
    }

    /// The kernel, as a task without arguments.
    #[must_use]
    pub const fn task(&self) -> TaskSpec<'static> {
        self.link.task()
    }

    /// How many arguments each task has.
    #[must_use]
    pub const fn arg_count(&self) -> usize {
        self.link.arg_count()
    }

    /// The arguments of the first task, before anything varies.
    pub fn words(&self) -> impl Iterator<Item = u64> + use<'a> {
        self.link.words()
    }

    /// The arguments of the first task, if they were given as words.
    #[must_use]
    pub const fn plain_words(&self) -> Option<&'a [u64]> {
        self.link.plain_words()
    }

    /// What differs from task to task.
    #[must_use]
    pub const fn variations(&self) -> &'a [Variation<'a>] {
        self.link.variations()
    }

    /// What the tasks wait for.
    #[must_use]
    pub const fn waits(&self) -> &'a [Wait<'a>] {
        self.waits
    }

    /// Task `index`; its arguments are written to `words`.
    #[must_use]
    pub fn task_at<'w>(&self, index: u32, words: &'w mut [u64; MAX_CHAIN_ARGS]) -> TaskSpec<'w> {
        self.link.task_at(index, words)
    }

    /// Whether it can be submitted as it is, with room for this many ids.
    ///
    /// # Errors
    /// `BUILD_RANGE_LENGTH`, `BUILD_CHAIN_VARIES`, `BUILD_CHAIN_LIMIT`.
    pub fn check(&self, ids: usize) -> Result<(), Fault> {
        if ids != self.tasks() as usize || !self.waits.iter().all(|wait| wait.fits(self.tasks())) {
            return Err(Fault::BUILD_RANGE_LENGTH);
        }
        if self.tasks() == 0 { Ok(()) } else { self.link.check(self.link.task().kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::{ListWalk, TaskRange, Wait, WaitWalk, WindowWalk};
    use crate::link::Variation;
    use crate::task::TaskSpec;
    use pto_abi::{CoreKind, Fault, FuncId, TaskId};

    const fn ids<const N: usize>() -> [TaskId; N] {
        let mut ids = [TaskId { slot: 0, generation: 1 }; N];
        let mut at = 0;
        while at < N {
            #[expect(clippy::cast_possible_truncation, reason = "a handful")]
            let slot = at as u32;
            ids[at].slot = slot;
            at += 1;
        }
        ids
    }

    #[track_caller]
    fn slots<const N: usize>(wait: &Wait<'_>, index: u32, expected: [u32; N]) {
        assert!(wait.of(index).iter().map(|id| id.slot).eq(expected), "{:?}", wait.of(index));
    }

    #[test]
    fn windows_end_where_the_producers_do() {
        let five = ids::<5>();
        let near = Wait::window(&five, -1, 3);
        slots(&near, 0, [0, 1]);
        slots(&near, 3, [2, 3, 4]);
        slots(&near, 4, [3, 4]);
        slots(&near, 5, [4]);
        slots(&near, 6, []);
        slots(&near, u32::MAX, []);
        let far = Wait::window(&five, i32::MIN, u32::MAX);
        slots(&far, 0, [0, 1, 2, 3, 4]);
        slots(&Wait::window(&five, -9, 3), 0, []);
        let pairs = Wait::window(&five, 0, 2).every(2);
        slots(&pairs, 1, [2, 3]);
        slots(&pairs, 2, [4]);
        slots(&Wait::window(&five, 0, 1).every(u32::MAX), u32::MAX, []);
        slots(&Wait::each(&five), 4, [4]);
        slots(&Wait::all(&five), 9, [0, 1, 2, 3, 4]);
        let listed = Wait::listed(&five, &[2, 2, 5]);
        slots(&listed, 0, [0, 1]);
        slots(&listed, 1, []);
        slots(&listed, 2, [2, 3, 4]);
    }

    /// From each task on; whether the walk knew at least one of them by itself.
    fn walk_along<'a, W: WaitWalk<'a>>(wait: &Wait<'a>, tasks: u32) -> bool {
        let mut knew = false;
        for start in 0..tasks {
            let mut walk = W::along(wait, start);
            for index in start..tasks {
                if let Some(found) = walk.next(index) {
                    assert_eq!(found, wait.of(index), "{wait:?} from {start} at {index}");
                    knew = true;
                }
            }
        }
        knew
    }

    #[test]
    fn a_walk_finds_what_each_task_waits_for() {
        let five = ids::<5>();
        for from in [i32::MIN, -9, -3, -1, 0, 1, 4, 5, 6, i32::MAX] {
            for width in [0, 1, 2, 3, 5, 6, u32::MAX] {
                for stride in [0, 1, 2, 5, u32::MAX] {
                    let wait = Wait::window(&five, from, width).every(stride);
                    walk_along::<WindowWalk<'_>>(&wait, 8);
                    assert!(!walk_along::<ListWalk<'_>>(&wait, 8));
                }
            }
        }
        assert!(walk_along::<WindowWalk<'_>>(&Wait::window(&five, -1, 3), 5));
        assert!(walk_along::<WindowWalk<'_>>(&Wait::window(&five, 1, 2).every(2), 3));
        assert!(walk_along::<WindowWalk<'_>>(&Wait::all(&five), 9));
        for ends in [&[2, 2, 5][..], &[0, 0, 0, 5], &[5], &[0, 1, 5, 5]] {
            let wait = Wait::listed(&five, ends);
            let tasks = u32::try_from(ends.len()).unwrap();
            assert!(walk_along::<ListWalk<'_>>(&wait, tasks));
            assert!(!walk_along::<WindowWalk<'_>>(&wait, tasks));
        }
        // More and fewer tasks than the list has.
        walk_along::<ListWalk<'_>>(&Wait::listed(&five, &[1, 4]), 5);
        // Far along, where the windows of a stride wrap.
        let wait = Wait::window(&five, -5, 3).every(u32::MAX);
        let mut walk = WindowWalk::along(&wait, u32::MAX - 1);
        assert_eq!([walk.next(u32::MAX - 1), walk.next(u32::MAX)], [None; 2]);
    }

    #[test]
    fn a_range_that_does_not_fit_is_refused() {
        let task = TaskSpec::new(FuncId(3), CoreKind::AIV, &[1, 2]);
        let five = ids::<5>();
        let range = TaskRange::new(task).times(3);
        assert_eq!(range.check(3), Ok(()));
        assert_eq!(range.check(2), Err(Fault::BUILD_RANGE_LENGTH));
        assert_eq!(range.times(0).check(0), Ok(()));
        for (ends, expected) in [
            (&[1, 1, 5][..], Ok(())),
            (&[1, 5], Err(Fault::BUILD_RANGE_LENGTH)),
            (&[1, 2, 4], Err(Fault::BUILD_RANGE_LENGTH)),
            (&[1, 0, 5], Err(Fault::BUILD_RANGE_LENGTH)),
            (&[1, 2, 6], Err(Fault::BUILD_RANGE_LENGTH)),
        ] {
            let waits = [Wait::listed(&five, ends)];
            assert_eq!(range.after(&waits).check(3), expected, "{ends:?}");
        }
        let wrong = [Variation::by(2, 8)];
        assert_eq!(range.varying(&wrong).check(3), Err(Fault::BUILD_CHAIN_VARIES));
        let words = [0; 32];
        let many = TaskRange::new(TaskSpec { args: &words, ..task });
        assert_eq!(many.check(1), Err(Fault::BUILD_CHAIN_LIMIT));
    }
}
