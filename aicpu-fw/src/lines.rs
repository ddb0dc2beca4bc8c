//! A platform over handshake lines in coherent memory, for every machine whose cores look at lines in GM: the
//! simulator's hosting modes and the emulated machine. They differ in the [`Machine`]: what has to happen
//! in addition to the write so that a core takes its step, and the clock.

use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use heapless::Vec;

use pto_abi::Fault;
use pto_abi::handshake::{
    Dispatch, FINISHED, Handshake, LAST_DISPATCH_ID, STATUS_IDLE, Status, next_dispatch_id,
    previous_dispatch_id,
};
use pto_abi::limits::MAX_WORKERS;
use pto_abi::sync::Sharing;

use crate::machine::Machine;
use crate::platform::{CoreStatus, Platform, Staged};

/// `CoreRef::unfinished` with one slot: staged, and its doorbell not written.
const STAGED: u8 = u8::MAX;

/// One core, as its scheduler knows it.
#[derive(Clone, Copy)]
struct CoreRef<'a> {
    worker: u32,
    lines: &'a Handshake,
    // The dispatch whose doorbell was written last, and the status that the core showed before what it has now.
    id: u32,
    settled: u32,
    // Dispatches whose doorbell was written and that have not been seen to finish.
    unfinished: u8,
    is_staged: bool,
}

impl CoreRef<'_> {
    /// Whether something can be staged for it. With one slot a staged one needs no look of its own: it counts as unfinished.
    #[inline]
    fn is_open<M: Machine>(&self) -> bool {
        usize::from(self.unfinished) < M::SLOTS && !(M::SLOTS > 1 && self.is_staged)
    }

    /// Writes the next dispatch of the core, without ringing; its id.
    #[inline(always)]
    fn write(&self, dispatch: Staged) -> u32 {
        let id = next_dispatch_id(self.id);
        self.lines.stage(id, dispatch.task, dispatch.kernel.0, dispatch.args.0);
        id
    }

    /// Rings the only dispatch of the core.
    #[inline]
    fn ring(&mut self, id: u32) {
        self.id = id;
        self.unfinished = 1;
        self.lines.ring(id);
    }

    /// How far the older of two dispatches is.
    #[inline]
    fn poll_two(&mut self) -> CoreStatus {
        match self.lines.status_of_two(self.id, self.settled) {
            Status::Busy => CoreStatus::Busy,
            status @ (Status::Finished | Status::FinishedBoth) => {
                self.settled = FINISHED | previous_dispatch_id(self.id);
                self.unfinished = 1;
                if status == Status::Finished {
                    CoreStatus::Finished
                } else {
                    CoreStatus::FinishedMore
                }
            }
            Status::Foreign(status) => CoreStatus::Foreign(status),
        }
    }
}

/// The platform of one AICPU instance. `S` is how the words of a run are shared on this machine.
pub struct LinesPlatform<'a, S, M> {
    workers: &'a [Handshake],
    cores: Vec<CoreRef<'a>, MAX_WORKERS>,
    staged: Vec<u8, MAX_WORKERS>,
    machine: M,
    sharing: PhantomData<S>,
}

impl<'a, S, M> LinesPlatform<'a, S, M> {
    /// A platform over the lines of all workers, by their numbers; none is attached yet.
    pub const fn new(workers: &'a [Handshake], machine: M) -> Self {
        Self { workers, cores: Vec::new(), staged: Vec::new(), machine, sharing: PhantomData }
    }

    /// Hashes what it knows of its cores in addition to their lines.
    pub fn hash_state<H: Hasher>(&self, into: &mut H) {
        let Self { workers: _, cores, staged, machine: _, sharing: _ } = self;
        for CoreRef { worker, lines: _, id, settled, unfinished, is_staged } in cores {
            (worker, id, settled, unfinished, is_staged).hash(into);
        }
        staged.hash(into);
    }
}

impl<'a, S: Sharing, M: Machine> Platform for LinesPlatform<'a, S, M> {
    type Sharing = S;
    type Machine = M;

    #[inline(always)]
    fn machine(&mut self) -> &mut M {
        &mut self.machine
    }

    fn attach(&mut self, worker: u32) {
        // The worker table was checked against the limit, which is the number of lines.
        let Some(lines) = self.workers.get(worker as usize) else { return };
        let id = lines.last_dispatch_id();
        let settled = STATUS_IDLE;
        let core = CoreRef { worker, lines, id, settled, unfinished: 0, is_staged: false };
        self.cores.push(core).unwrap_or_default();
        self.machine.own(worker);
    }

    fn greet(&mut self, core: usize, epoch: u32) {
        let Some(core) = self.cores.get(core) else { return };
        core.lines.greet(epoch);
        // A core in service has answered this epoch in an earlier run; it need not be woken.
        if core.lines.answer(epoch).is_none() {
            self.machine.ring(core.worker);
        }
    }

    fn answer(&mut self, core: usize, epoch: u32) -> Option<(u32, u32)> {
        let core = self.cores.get_mut(core)?;
        let answer = core.lines.answer(epoch)?;
        // A core in service goes on with its ids; what it shows is settled.
        core.id = core.lines.last_dispatch_id();
        let in_service = core.id <= LAST_DISPATCH_ID;
        core.settled = if in_service { FINISHED | core.id } else { STATUS_IDLE };
        Some(answer)
    }

    #[inline]
    fn poll(&mut self, core: usize) -> CoreStatus {
        let Some(core) = self.cores.get_mut(core) else { return CoreStatus::Idle };
        if M::SLOTS > 1 && core.unfinished > 1 {
            return core.poll_two();
        }
        if core.unfinished != 1 {
            return CoreStatus::Idle;
        }
        let status = core.lines.acquire_status();
        if status == FINISHED | core.id {
            core.settled = status;
            core.unfinished = 0;
            CoreStatus::Finished
        } else if status == core.settled || status == core.id {
            CoreStatus::Busy
        } else {
            CoreStatus::Foreign(status)
        }
    }

    #[inline]
    fn stage(&mut self, core: usize, dispatch: Staged) -> Result<(), Fault> {
        let refused = Fault::SCHEDULE_CORE_NOT_FREE;
        let is_open = |entry: &&mut CoreRef<'a>| entry.is_open::<M>();
        let entry = self.cores.get_mut(core).filter(is_open).ok_or(refused)?;
        let number = u8::try_from(core).map_err(|_| refused)?;
        let id = entry.write(dispatch);
        if M::RINGS_AT_ONCE {
            entry.ring(id);
            self.machine.ring(entry.worker);
            return Ok(());
        }
        if M::SLOTS > 1 {
            entry.is_staged = true;
        } else {
            entry.unfinished = STAGED;
        }
        self.staged.push(number).map_err(|_| refused)
    }

    #[inline]
    fn commit(&mut self) {
        if M::RINGS_AT_ONCE {
            return;
        }
        for number in &self.staged {
            let Some(core) = self.cores.get_mut(usize::from(*number)) else { continue };
            if M::SLOTS > 1 {
                core.id = next_dispatch_id(core.id);
                core.lines.ring(core.id);
                core.unfinished += 1;
                core.is_staged = false;
            } else {
                core.ring(next_dispatch_id(core.id));
            }
            self.machine.ring(core.worker);
        }
        self.staged.clear();
    }

    fn stop(&mut self, core: usize) {
        if let Some(core) = self.cores.get(core) {
            core.lines.quit();
            self.machine.ring(core.worker);
        }
    }

    fn stopped(&mut self, core: usize) -> bool {
        self.cores.get(core).is_none_or(|core| core.lines.exited())
    }

    #[inline]
    fn stage_ahead(&mut self, core: usize, dispatch: Staged) {
        if let Some(core) = self.cores.get(core).filter(|core| core.is_open::<M>()) {
            core.write(dispatch);
        }
    }

    #[inline]
    fn ring_ahead(&mut self, core: usize, _: u32) -> Result<(), Fault> {
        let is_open = |core: &&mut CoreRef<'a>| core.is_open::<M>();
        let entry = self.cores.get_mut(core).filter(is_open);
        let core = entry.ok_or(Fault::SCHEDULE_CORE_NOT_FREE)?;
        core.id = next_dispatch_id(core.id);
        // A Release store: it makes visible what was written for the core, whenever that was.
        core.lines.ring(core.id);
        core.unfinished += 1;
        self.machine.ring(core.worker);
        Ok(())
    }

    #[inline(always)]
    fn run(&mut self, core: usize, dispatch: Staged) -> Result<CoreStatus, Fault> {
        let refused = Fault::SCHEDULE_CORE_NOT_FREE;
        let is_free = |entry: &&mut CoreRef<'a>| entry.unfinished == 0;
        let entry = self.cores.get_mut(core).filter(is_free).ok_or(refused)?;
        // A copy: to the compiler a store into the lines could change where they are.
        let (lines, id) = (entry.lines, next_dispatch_id(entry.id));
        let Staged { task, kernel, args } = dispatch;
        lines.stage(id, task, kernel.0, args.0);
        entry.id = id;
        lines.ring(id);
        let dispatch = Dispatch { id, task, kernel: kernel.0, args: args.0 };
        if self.machine.run_dispatch(entry.worker, lines, &dispatch) {
            // What its line says: this thread has just written it.
            entry.settled = FINISHED | id;
            return Ok(CoreStatus::Finished);
        }
        // It is polled from now on.
        entry.unfinished = 1;
        Ok(CoreStatus::Busy)
    }

    #[inline]
    fn has_news(&self, busy: &[u8]) -> bool {
        let news = |core: &CoreRef<'a>| core.lines.acquire_status() != core.settled;
        let cores = busy.iter().filter_map(|core| self.cores.get(usize::from(*core)));
        // Without a way out: the lines come together as fast as one of them alone.
        cores.fold(false, |any, core| any | news(core))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::LinesPlatform;
    use crate::machine::Machine;
    use crate::platform::{CoreStatus, Platform, Staged};
    use pto_abi::handshake::{Command, Handshake, LAST_DISPATCH_ID};
    use pto_abi::sync::{Exclusive, Ordering};
    use pto_abi::{CoreKind, Fault, GmAddr};
    use std::vec::Vec;

    #[derive(Default)]
    struct Rings(Vec<u32>);

    impl Machine for Rings {
        fn now_ns(&self) -> u64 {
            0
        }
        fn ring(&mut self, worker: u32) {
            self.0.push(worker);
        }
    }

    const TASK: Staged = Staged { task: 1, kernel: GmAddr(2), args: GmAddr(3) };

    fn with_core(test: impl FnOnce(&mut LinesPlatform<'_, Exclusive, Rings>, &Handshake)) {
        let workers: Vec<Handshake> = (0..128).map(|_| Handshake::default()).collect();
        workers.iter().for_each(Handshake::reset);
        let mut platform = LinesPlatform::new(&workers, Rings::default());
        platform.attach(5);
        platform.greet(0, 1);
        workers[5].introduce(1, 5, CoreKind::AIV);
        assert_eq!(platform.answer(0, 1), Some((5, 1)));
        test(&mut platform, &workers[5]);
    }

    #[test]
    fn a_dispatch_starts_with_commit_and_finishes_once() {
        with_core(|platform, core| {
            assert_eq!(platform.poll(0), CoreStatus::Idle);
            platform.stage(0, TASK).unwrap();
            assert_eq!(core.command(), Command::Wait);
            platform.commit();
            assert_eq!(platform.machine.0, [5, 5], "greeted, then dispatched");
            let Command::Run(dispatch) = core.command() else { panic!("no doorbell") };
            assert_eq!(platform.poll(0), CoreStatus::Busy);
            core.finish(dispatch.id);
            assert_eq!(platform.poll(0), CoreStatus::Finished);
            assert_eq!(platform.poll(0), CoreStatus::Idle);
        });
    }

    #[test]
    fn a_core_that_is_not_free_is_refused() {
        with_core(|platform, _| {
            platform.stage(0, TASK).unwrap();
            assert_eq!(platform.stage(0, TASK), Err(Fault::SCHEDULE_CORE_NOT_FREE));
            platform.commit();
            assert_eq!(platform.stage(0, TASK), Err(Fault::SCHEDULE_CORE_NOT_FREE));
        });
    }

    #[test]
    fn an_old_status_is_busy_and_a_foreign_one_is_seen() {
        with_core(|platform, core| {
            for _ in 0..3 {
                platform.stage(0, TASK).unwrap();
                platform.commit();
                assert_eq!(platform.poll(0), CoreStatus::Busy);
                let Command::Run(dispatch) = core.command() else { panic!("no doorbell") };
                core.finish(dispatch.id);
                assert_eq!(platform.poll(0), CoreStatus::Finished);
            }
            platform.stage(0, TASK).unwrap();
            platform.commit();
            core.finish(77);
            assert!(matches!(platform.poll(0), CoreStatus::Foreign(_)));
        });
    }

    #[test]
    fn a_core_that_does_not_finish_at_once_is_polled() {
        with_core(|platform, core| {
            // This machine runs nothing.
            assert_eq!(platform.run(0, TASK), Ok(CoreStatus::Busy));
            assert_eq!(platform.run(0, TASK), Err(Fault::SCHEDULE_CORE_NOT_FREE));
            assert_eq!(platform.poll(0), CoreStatus::Busy);
            let Command::Run(dispatch) = core.command() else { panic!("no doorbell") };
            core.finish(dispatch.id);
            assert_eq!(platform.poll(0), CoreStatus::Finished);
            assert_eq!(platform.run(0, TASK), Ok(CoreStatus::Busy), "it is free again");
        });
    }

    #[test]
    fn dispatch_ids_wrap() {
        with_core(|platform, core| {
            core.scheduler.doorbell.store(LAST_DISPATCH_ID, Ordering::Relaxed);
            core.finish(LAST_DISPATCH_ID);
            assert!(platform.answer(0, 1).is_some());
            for expected in [0, 1] {
                platform.stage(0, TASK).unwrap();
                platform.commit();
                let Command::Run(dispatch) = core.command() else { panic!("no doorbell") };
                assert_eq!(dispatch.id, expected);
                core.finish(dispatch.id);
                assert_eq!(platform.poll(0), CoreStatus::Finished);
            }
        });
    }
}
