//! Where the time of each core kind went, as an integral over the run.
//!
//! At every instant and for each kind: how many cores are idle (no kernel and no rung dispatch), and how many
//! tasks are ready and undispatched. Both above zero at once is scheduler overhead, by the field's definition
//! (facts/field-lessons.md). Changes come out of order, but never before the agenda's present moment, so that
//! what lies before it can be sorted and summed in batches: memory stays bounded.

use pto_abi::CoreKind;

/// A change of one of the two counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    TaskReady,
    TaskDispatched,
    CoreIdle,
    CoreBusy,
}

/// Sums for one core kind, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindTime {
    /// At least one core idle while at least one task is ready and undispatched: scheduler overhead.
    pub overhead_ns: u64,
    /// Every core idle while at least one task is ready and undispatched.
    pub all_idle_ns: u64,
    /// Core time lost that way: the smaller of the two counts, integrated.
    pub overhead_core_ns: u64,
    /// Core time idle without a ready task, while the graph ran.
    pub no_work_core_ns: u64,
    /// Core time with a dispatch, from the doorbell to the end of the kernel.
    pub occupied_core_ns: u64,
}

/// Changes that are sorted at once: about 20 ns each.
const BATCH: usize = 1 << 14;

pub(super) struct Account {
    changes: Vec<u64>,
    sort_at: usize,
    present_ns: u64,
    cores: [u64; CoreKind::COUNT],
    idle: [i64; CoreKind::COUNT],
    ready: [i64; CoreKind::COUNT],
    sums: [KindTime; CoreKind::COUNT],
}

impl Account {
    pub(super) fn new(cores: [u64; CoreKind::COUNT]) -> Self {
        Self {
            changes: Vec::with_capacity(2 * BATCH),
            sort_at: BATCH,
            present_ns: 0,
            cores,
            idle: cores.map(|count| i64::try_from(count).unwrap_or(0)),
            ready: [0; CoreKind::COUNT],
            sums: [KindTime::default(); CoreKind::COUNT],
        }
    }

    #[inline]
    pub(super) fn add(&mut self, time_ns: u64, kind: usize, change: Change) {
        // Bits 2..0 hold what changed; a run of 2^61 ns is 73 years.
        self.changes.push(time_ns << 3 | (change as u64) << 1 | (kind as u64 & 1));
    }

    /// Sums what lies before `until_ns`, once enough has come together.
    #[inline]
    pub(super) fn settle(&mut self, until_ns: u64) {
        if self.changes.len() >= self.sort_at {
            self.sum_up(until_ns);
            self.sort_at = (2 * self.changes.len()).max(BATCH);
        }
    }

    /// The sums, at the end of the run.
    pub(super) fn finish(&mut self) -> [KindTime; CoreKind::COUNT] {
        self.sum_up(u64::MAX >> 3);
        self.sums
    }

    fn sum_up(&mut self, until_ns: u64) {
        self.changes.sort_unstable();
        let mut changes = std::mem::take(&mut self.changes);
        let before = changes.partition_point(|change| change >> 3 < until_ns);
        for change in changes.drain(..before) {
            self.move_to(change >> 3);
            let kind = usize::from(change & 1 == 1);
            match change >> 1 & 3 {
                0 => self.ready[kind] += 1,
                1 => self.ready[kind] -= 1,
                2 => self.idle[kind] += 1,
                _ => self.idle[kind] -= 1,
            }
        }
        self.changes = changes;
    }

    #[inline]
    fn move_to(&mut self, time_ns: u64) {
        let elapsed = time_ns - self.present_ns;
        self.present_ns = time_ns;
        if elapsed == 0 {
            return;
        }
        for kind in 0..CoreKind::COUNT {
            let idle = u64::try_from(self.idle[kind]).unwrap_or(0);
            let lost = idle.min(u64::try_from(self.ready[kind]).unwrap_or(0));
            let sums = &mut self.sums[kind];
            if lost > 0 {
                sums.overhead_ns += elapsed;
                sums.overhead_core_ns += lost * elapsed;
                if idle == self.cores[kind] {
                    sums.all_idle_ns += elapsed;
                }
            }
            sums.no_work_core_ns += (idle - lost) * elapsed;
            sums.occupied_core_ns += self.cores[kind].saturating_sub(idle) * elapsed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, Change, KindTime};

    #[test]
    fn overhead_is_an_idle_core_and_a_ready_task_at_once() {
        let mut account = Account::new([1, 2]);
        // AIV: two tasks ready at 10; one dispatched at 15, the other at 40; cores end at 30 and 60.
        for (time, change) in [
            (60, Change::CoreIdle),
            (10, Change::TaskReady),
            (10, Change::TaskReady),
            (15, Change::TaskDispatched),
            (15, Change::CoreBusy),
            (30, Change::CoreIdle),
            (40, Change::TaskDispatched),
            (40, Change::CoreBusy),
        ] {
            account.add(time, 1, change);
        }
        account.settle(0);
        let [aic, aiv] = account.finish();
        let expected = KindTime {
            overhead_ns: 30,
            all_idle_ns: 5 + 10,
            overhead_core_ns: 2 * 5 + 25,
            no_work_core_ns: 20 + 10 + 20 - 10 + 10,
            occupied_core_ns: 15 + 20,
        };
        assert_eq!((aiv.overhead_ns, aiv.all_idle_ns), (30, 15));
        assert_eq!(aiv.overhead_core_ns, expected.overhead_core_ns);
        assert_eq!(aiv.occupied_core_ns, expected.occupied_core_ns);
        assert_eq!(aic.overhead_ns, 0);
        assert_eq!(aic.no_work_core_ns, 60);
    }

    #[test]
    fn batches_give_the_same_sums() {
        let run = |settle: bool| {
            let mut account = Account::new([4, 4]);
            for task in 0..100_000_u64 {
                let time = task * 10;
                account.add(time + 5, 0, Change::TaskReady);
                account.add(time + 9, 0, Change::TaskDispatched);
                account.add(time + 9, 0, Change::CoreBusy);
                account.add(time + 44, 0, Change::CoreIdle);
                if settle {
                    account.settle(time);
                }
            }
            (account.finish(), account.changes.capacity())
        };
        let (once, batched) = (run(false), run(true));
        assert_eq!(once.0, batched.0);
        assert!(batched.1 < 100_000, "memory is bounded: {}", batched.1);
    }
}
