//! Where the time of each core kind went, as an integral over the run.
//!
//! At every instant and for each kind: how many cores are idle (no kernel and no rung dispatch), and how many of them the
//! tasks that are ready and undispatched could have. More than none is scheduler overhead, by the field's definition
//! (facts/field-lessons.md); [`super::fitting`] says what a task can have that needs several cores at once. Changes come out
//! of order, but never before the agenda's present moment, so that what lies before it can be sorted and summed in batches:
//! memory stays bounded.

use pto_abi::CoreKind;
use pto_abi::limits::MAX_WORKERS;
use pto_aicpu_fw::divide::WorkerTable;

use super::digest::Keyed;
use super::fitting::{Cores, Fit, WaitingTask, fit};

/// What happened to a core, or to a task without a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A task of this kind is ready.
    TaskReady(CoreKind),
    /// A task of this kind was dispatched.
    TaskDispatched(CoreKind),
    /// The core of this worker is idle.
    CoreIdle(u32),
    /// The core of this worker is busy.
    CoreBusy(u32),
}

/// Sums for one core kind, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindTime {
    /// At least one core idle that something could have that is ready and undispatched: scheduler overhead.
    pub overhead_ns: u64,
    /// Every core idle meanwhile.
    pub all_idle_ns: u64,
    /// Core time lost that way: the cores that could be had, integrated.
    pub overhead_core_ns: u64,
    /// Core time idle while something ready needs the core and others with it, in the cluster or for its other blocks, which
    /// are not idle.
    pub unfit_core_ns: u64,
    /// Core time idle and wanted by nothing that is ready, while the graph ran.
    pub no_work_core_ns: u64,
    /// Core time with a dispatch, from the doorbell to the end of the kernel.
    pub occupied_core_ns: u64,
}

/// Changes that are sorted at once: about 20 ns each.
const BATCH: usize = 1 << 14;
/// Low bits of a change: what it is, in two, and of which worker or kind, in eight.
const CHANGE_BITS: u32 = 10;
const _: () = assert!(MAX_WORKERS <= 256, "a worker has eight bits");

/// What happened to a task with a shape.
#[derive(Clone, Copy, Debug)]
enum ShapedChange {
    Ready(WaitingTask),
    /// A block is dispatched: its first part is.
    Block(u32, Cores),
    /// The task does not run.
    Skipped(u32, Cores, u64),
}

/// A core.
struct CoreState {
    kind: CoreKind,
    cluster: usize,
    /// Dispatches that it has. Of one moment all changes count, in any order.
    dispatches: i32,
}

impl CoreState {
    const fn is_idle(&self) -> bool {
        self.dispatches <= 0
    }
}

pub(super) struct Account {
    changes: Vec<u64>,
    sort_at: usize,
    present_ns: u64,
    members: Vec<CoreState>,
    clusters: usize,
    cores: Cores,
    idle: Cores,
    /// Tasks and blocks that wait for one core of the kind.
    ready: [i64; CoreKind::COUNT],
    shaped_changes: Vec<(u64, ShapedChange)>,
    /// By slot: the cores of a block, and blocks that were not dispatched.
    shaped: Keyed<u32, (Cores, u64)>,
    waiters: Vec<WaitingTask>,
    sums: [KindTime; CoreKind::COUNT],
}

impl Account {
    pub(super) fn new(workers: &WorkerTable) -> Self {
        let member = |worker: u32| {
            let cluster = workers.cluster(worker).unwrap_or(0) as usize;
            let kind = workers.kind(worker).unwrap_or(CoreKind::AIV);
            CoreState { kind, cluster, dispatches: 0 }
        };
        let cores = [CoreKind::AIC, CoreKind::AIV].map(|kind| workers.count(kind) as u64);
        Self {
            changes: Vec::with_capacity(2 * BATCH),
            sort_at: BATCH,
            present_ns: 0,
            members: (0..).take(workers.len()).map(member).collect(),
            clusters: workers.cluster_count() as usize,
            cores,
            idle: cores,
            ready: [0; CoreKind::COUNT],
            shaped_changes: Vec::new(),
            shaped: Keyed::default(),
            waiters: Vec::new(),
            sums: [KindTime::default(); CoreKind::COUNT],
        }
    }

    #[inline]
    pub(super) fn add(&mut self, time_ns: u64, change: Change) {
        let (what, index) = match change {
            Change::TaskReady(kind) => (0, kind.index() as u64),
            Change::TaskDispatched(kind) => (1, kind.index() as u64),
            Change::CoreIdle(worker) => (2, worker.into()),
            Change::CoreBusy(worker) => (3, worker.into()),
        };
        // A run of 2^54 ns is 208 days.
        self.changes.push(time_ns << CHANGE_BITS | what << 8 | index & 0xFF);
    }

    /// A task with a shape is ready, and will run: `blocks` blocks of this many cores each.
    pub(super) fn shaped_is_ready(&mut self, time_ns: u64, waiter: WaitingTask) {
        self.shaped.insert(waiter.slot, (waiter.need, waiter.blocks));
        self.shaped_changes.push((time_ns, ShapedChange::Ready(waiter)));
    }

    /// The first part of one of its blocks is dispatched. One that was not waiting (a predicate that changed) is not counted.
    pub(super) fn block_is_dispatched(&mut self, time_ns: u64, slot: u32) {
        let Some((need, blocks)) = self.shaped.get_mut(&slot) else { return };
        self.shaped_changes.push((time_ns, ShapedChange::Block(slot, *need)));
        *blocks -= 1;
        if *blocks == 0 {
            self.shaped.remove(&slot);
        }
    }

    /// It does not run, although it looked so when it became ready.
    pub(super) fn shaped_is_skipped(&mut self, time_ns: u64, slot: u32) {
        if let Some((need, blocks)) = self.shaped.remove(&slot) {
            self.shaped_changes.push((time_ns, ShapedChange::Skipped(slot, need, blocks)));
        }
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
        self.sum_up(u64::MAX >> CHANGE_BITS);
        self.sums
    }

    fn sum_up(&mut self, until_ns: u64) {
        self.changes.sort_unstable();
        // Stable: what happens to one task at one moment happens in this order.
        self.shaped_changes.sort_by_key(|(time_ns, _)| *time_ns);
        let mut changes = std::mem::take(&mut self.changes);
        let mut shaped = std::mem::take(&mut self.shaped_changes);
        let before = changes.partition_point(|change| change >> CHANGE_BITS < until_ns);
        let shaped_before = shaped.partition_point(|(time_ns, _)| *time_ns < until_ns);
        let mut of_tasks = shaped.drain(..shaped_before).peekable();
        for change in changes.drain(..before) {
            let time_ns = change >> CHANGE_BITS;
            while let Some((time_ns, change)) = of_tasks.next_if(|(first, _)| *first <= time_ns) {
                self.move_to(time_ns);
                self.reshape(change);
            }
            self.move_to(time_ns);
            self.apply(change);
        }
        for (time_ns, change) in of_tasks {
            self.move_to(time_ns);
            self.reshape(change);
        }
        (self.changes, self.shaped_changes) = (changes, shaped);
    }

    #[inline]
    fn apply(&mut self, change: u64) {
        let index = (change & 0xFF) as usize;
        match change >> 8 & 3 {
            0 => self.ready[index % CoreKind::COUNT] += 1,
            1 => self.ready[index % CoreKind::COUNT] -= 1,
            what => {
                let Some(member) = self.members.get_mut(index) else { return };
                let was_idle = member.is_idle();
                member.dispatches += if what == 2 { -1 } else { 1 };
                let idle = &mut self.idle[member.kind.index()];
                // A core with a fault may report twice, or be rung twice: it is one core.
                *idle += u64::from(member.is_idle());
                *idle -= u64::from(was_idle);
            }
        }
    }

    fn reshape(&mut self, change: ShapedChange) {
        match change {
            ShapedChange::Ready(waiter) if waits_for_one(&waiter) => {
                self.add_singles(waiter.need, waiter.blocks.cast_signed());
            }
            ShapedChange::Ready(waiter) => self.waiters.push(waiter),
            ShapedChange::Block(slot, need) => {
                let Some(at) = self.waiters.iter().position(|waiter| waiter.slot == slot) else {
                    return self.add_singles(need, -1);
                };
                let waiter = &mut self.waiters[at];
                // With the first block the task has started: each of the others can start by itself.
                waiter.at_once = false;
                waiter.blocks -= 1;
                if waiter.blocks == 0 || waits_for_one(waiter) {
                    let waiter = self.waiters.remove(at);
                    self.add_singles(waiter.need, waiter.blocks.cast_signed());
                }
            }
            ShapedChange::Skipped(slot, need, blocks) => {
                let before = self.waiters.len();
                self.waiters.retain(|waiter| waiter.slot != slot);
                if self.waiters.len() == before {
                    self.add_singles(need, -blocks.cast_signed());
                }
            }
        }
    }

    fn add_singles(&mut self, need: Cores, blocks: i64) {
        for (ready, cores) in self.ready.iter_mut().zip(need) {
            *ready += blocks * cores.cast_signed();
        }
    }

    #[inline]
    fn move_to(&mut self, time_ns: u64) {
        let elapsed = time_ns - self.present_ns;
        self.present_ns = time_ns;
        if elapsed == 0 {
            return;
        }
        let idle = self.idle;
        let placed = self.placed(idle);
        for kind in 0..CoreKind::COUNT {
            let (idle, lost, unfit) = (idle[kind], placed.taken[kind], placed.unfit[kind]);
            let sums = &mut self.sums[kind];
            if lost > 0 {
                sums.overhead_ns += elapsed;
                sums.overhead_core_ns += lost * elapsed;
                if idle == self.cores[kind] {
                    sums.all_idle_ns += elapsed;
                }
            }
            sums.unfit_core_ns += unfit * elapsed;
            sums.no_work_core_ns += (idle - lost - unfit) * elapsed;
            sums.occupied_core_ns += self.cores[kind].saturating_sub(idle) * elapsed;
        }
    }

    /// What could start on the cores that are idle.
    #[inline]
    fn placed(&self, idle: Cores) -> Fit {
        let ready = self.ready.map(|count| u64::try_from(count).unwrap_or(0));
        if self.waiters.is_empty() {
            let taken = [idle[0].min(ready[0]), idle[1].min(ready[1])];
            return Fit { taken, unfit: [0; CoreKind::COUNT] };
        }
        let mut idle_in = vec![Cores::default(); self.clusters];
        for member in self.members.iter().filter(|member| member.is_idle()) {
            idle_in[member.cluster][member.kind.index()] += 1;
        }
        fit(idle_in, &self.waiters, ready)
    }
}

/// Whether each of its blocks needs one core, whatever the others have.
fn waits_for_one(waiter: &WaitingTask) -> bool {
    waiter.need.iter().sum::<u64>() == 1 && (!waiter.at_once || waiter.blocks == 1)
}

#[cfg(test)]
mod tests {
    use super::{Account, Change, KindTime};
    use crate::virtual_time::fitting::{WaitingTask, need};
    use pto_abi::CoreKind;
    use pto_abi::runtime::WorkerEntry;
    use pto_aicpu_fw::block_shapes::Lanes;
    use pto_aicpu_fw::divide::WorkerTable;

    const AIV: CoreKind = CoreKind::AIV;

    /// Clusters of one cube core and two vector cores, numbered so in turn.
    fn clusters(count: u32) -> Account {
        let entry = |worker| WorkerEntry { kind: u32::from(worker % 3 > 0), cluster: worker / 3 };
        let table = WorkerTable::check((0..3 * count).map(entry)).expect("it is one");
        Account::new(&table)
    }

    #[test]
    fn overhead_is_an_idle_core_and_a_ready_task_at_once() {
        let mut account = clusters(1);
        // AIV: two tasks ready at 10; one dispatched at 15, the other at 40; cores end at 30 and 60.
        for (time, change) in [
            (60, Change::CoreIdle(2)),
            (10, Change::TaskReady(AIV)),
            (10, Change::TaskReady(AIV)),
            (15, Change::TaskDispatched(AIV)),
            (15, Change::CoreBusy(1)),
            (30, Change::CoreIdle(1)),
            (40, Change::TaskDispatched(AIV)),
            (40, Change::CoreBusy(2)),
        ] {
            account.add(time, change);
        }
        account.settle(0);
        let [aic, aiv] = account.finish();
        let expected = KindTime {
            overhead_ns: 30,
            all_idle_ns: 5 + 10,
            overhead_core_ns: 2 * 5 + 25,
            unfit_core_ns: 0,
            no_work_core_ns: 20 + 10 + 20 - 10 + 10,
            occupied_core_ns: 15 + 20,
        };
        assert_eq!((aiv.overhead_ns, aiv.all_idle_ns), (30, 15));
        assert_eq!(aiv.overhead_core_ns, expected.overhead_core_ns);
        assert_eq!((aiv.occupied_core_ns, aiv.unfit_core_ns), (expected.occupied_core_ns, 0));
        assert_eq!(aic.overhead_ns, 0);
        assert_eq!(aic.no_work_core_ns, 60);
    }

    #[test]
    fn batches_give_the_same_sums() {
        let run = |settle: bool| {
            let mut account = clusters(2);
            for task in 0..50_000_u64 {
                let time = task * 20;
                account.add(time + 5, Change::TaskReady(CoreKind::AIC));
                account.add(time + 9, Change::TaskDispatched(CoreKind::AIC));
                account.add(time + 9, Change::CoreBusy(0));
                account.add(time + 44, Change::CoreIdle(0));
                let waiter =
                    WaitingTask { slot: 7, need: need(Lanes(6)), blocks: 1, at_once: false };
                account.shaped_is_ready(time + 3, waiter);
                account.block_is_dispatched(time + 11, 7);
                if settle {
                    account.settle(time);
                }
            }
            let sums = account.finish();
            (sums, account.changes.capacity() + account.shaped_changes.capacity())
        };
        let (once, batched) = (run(false), run(true));
        assert_eq!(once.0, batched.0);
        assert_eq!(once.0[1].overhead_ns, 50_000 * 8);
        assert!(batched.1 < 100_000, "memory is bounded: {}", batched.1);
    }

    /// One cluster's cube core and the other one's vector cores: nothing fits, whatever the counts say.
    #[test]
    fn a_mix_task_waits_for_a_cluster_and_not_for_cores() {
        let mut account = clusters(2);
        for worker in [1, 2, 3] {
            account.add(0, Change::CoreBusy(worker));
        }
        let waiter = WaitingTask { slot: 9, need: need(Lanes(7)), blocks: 2, at_once: false };
        account.shaped_is_ready(100, waiter);
        // Until 350 no cluster is whole; then one is, until the doorbell at 400.
        account.add(350, Change::CoreIdle(3));
        account.block_is_dispatched(400, 9);
        [3, 4, 5].into_iter().for_each(|worker| account.add(400, Change::CoreBusy(worker)));
        // The second block: the other cluster is whole at 700, its doorbell at 710.
        [1, 2].into_iter().for_each(|worker| account.add(700, Change::CoreIdle(worker)));
        account.block_is_dispatched(710, 9);
        account.add(1_000, Change::CoreIdle(3));
        let [aic, aiv] = account.finish();
        assert_eq!((aic.overhead_ns, aic.overhead_core_ns), (50 + 10, 50 + 10));
        assert_eq!((aiv.overhead_ns, aiv.overhead_core_ns), (60, 2 * 60));
        // AIC 0 from 100 on, but not the last 10; AIV 4 and 5 from 100 to 350.
        assert_eq!((aic.unfit_core_ns, aiv.unfit_core_ns), (600, 2 * 250));
        assert_eq!(aic.no_work_core_ns, 100 + 290);
    }

    /// Of faulty runs: a doorbell or a report that comes twice does not change the number of cores.
    #[test]
    fn a_core_is_one_core_however_often_it_is_rung() {
        let mut account = clusters(1);
        for (time, change) in [
            (10, Change::CoreBusy(1)),
            (20, Change::CoreBusy(1)),
            (30, Change::CoreIdle(2)),
            (40, Change::CoreIdle(2)),
        ] {
            account.add(time, change);
        }
        let waiter = WaitingTask { slot: 9, need: need(Lanes(2)), blocks: 2, at_once: true };
        account.shaped_is_ready(0, waiter);
        account.add(100, Change::CoreIdle(0));
        let [_, aiv] = account.finish();
        assert_eq!(aiv.occupied_core_ns, 90);
        assert_eq!((aiv.overhead_core_ns, aiv.unfit_core_ns), (2 * 10, 90));
    }

    #[test]
    fn blocks_that_start_at_once_wait_for_as_many_cores() {
        let mut account = clusters(1);
        account.add(0, Change::CoreBusy(1));
        let waiter = WaitingTask { slot: 9, need: need(Lanes(2)), blocks: 2, at_once: true };
        account.shaped_is_ready(100, waiter);
        // Core 2 is idle meanwhile, and kept for it; a plain task could have had it from 200 to 300.
        account.add(200, Change::TaskReady(AIV));
        account.add(300, Change::CoreIdle(1));
        account.block_is_dispatched(310, 9);
        account.add(310, Change::CoreBusy(2));
        // The second block starts 40 later, on a core of another scheduler.
        account.block_is_dispatched(350, 9);
        account.add(350, Change::CoreBusy(1));
        account.add(400, Change::CoreIdle(1));
        account.add(420, Change::TaskDispatched(AIV));
        let [aic, aiv] = account.finish();
        assert_eq!(aic.overhead_ns + aic.unfit_core_ns, 0);
        assert_eq!(aiv.unfit_core_ns, 100);
        assert_eq!(aiv.overhead_ns, 100 + 10 + 40 + 20);
        assert_eq!(aiv.overhead_core_ns, 100 + 2 * 10 + 40 + 20);
        assert_eq!(aiv.all_idle_ns, 10);
    }

    #[test]
    fn what_does_not_run_waits_for_nothing_any_more() {
        let mut account = clusters(1);
        for (slot, lanes) in [(1, 7), (2, 2)] {
            let waiter = WaitingTask { slot, need: need(Lanes(lanes)), blocks: 4, at_once: false };
            account.shaped_is_ready(0, waiter);
            account.shaped_is_skipped(30, slot);
            account.block_is_dispatched(40, slot);
        }
        account.add(90, Change::CoreBusy(0));
        let [aic, aiv] = account.finish();
        assert_eq!((aic.overhead_ns, aiv.overhead_ns, aiv.overhead_core_ns), (30, 30, 60));
        assert_eq!((aic.no_work_core_ns, aiv.no_work_core_ns), (60, 120));
    }
}
