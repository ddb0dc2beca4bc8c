//! One AICore: the worker loop's port over control registers, and cores that misbehave.
//!
//! A core reads DATA_MAIN_BASE and writes COND; it never writes DATA_MAIN_BASE. It reads what it is to do from
//! its line in GM, and answers the greeting there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pto_abi::CoreKind;
use pto_abi::handshake::{
    Command, DOORBELL_EXIT, Dispatch, FINISHED, Handshake, LAST_DISPATCH_ID, STATUS_EXITED,
    STATUS_IDLE, next_dispatch_id, previous_dispatch_id,
};
use pto_abi::sync::{AtomicU32, Ordering};
use pto_aicore_kernels::worker::{self, WorkerPort, WorkerStep};

use crate::memory::CoreRegisters;

/// `FAST_PATH_ENABLE`: what AICPU writes reaches the core.
pub(crate) const FAST_PATH_OPEN: u32 = 0xE;
/// After so many looks at its doorbell that found nothing, a core rests before each further look. The processors that play a device are few,
/// and a core that only looks takes their time from the firmware.
pub(crate) const LOOKS: u32 = 16;
/// How long it rests.
pub(crate) const REST: Duration = Duration::from_micros(50);

/// What a core does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// What it should.
    Good,
    /// Never answers a greeting.
    Deaf,
    /// Never finishes a task.
    Hangs,
    /// Reports a dispatch that it was not given.
    Lies,
    /// Says that it is another core.
    Impostor,
}

/// What cores and loader tell each other.
#[derive(Default)]
pub(crate) struct Watch {
    /// 1: cores leave whatever they do.
    pub(crate) abandon: AtomicU32,
    /// Doorbells that break the protocol.
    pub(crate) violations: AtomicU32,
    /// Tasks run.
    pub(crate) tasks: AtomicU32,
}

/// One core.
pub(crate) struct Core {
    pub(crate) lines: &'static Handshake,
    pub(crate) registers: CoreRegisters,
    pub(crate) worker: u32,
    pub(crate) kind: CoreKind,
    pub(crate) conduct: Conduct,
    pub(crate) watch: Arc<Watch>,
    /// The id of the next dispatch; `None`: not in service.
    pub(crate) expected: Option<u32>,
}

impl Core {
    /// The thread of the core.
    pub(crate) fn serve(mut self) {
        let mut looks = 0;
        while self.watch.abandon.load(Ordering::Relaxed) == 0 {
            match worker::step(&mut self) {
                WorkerStep::Worked => looks = 0,
                WorkerStep::Idle if looks < LOOKS => {
                    looks += 1;
                    std::thread::yield_now();
                }
                WorkerStep::Idle => std::thread::sleep(REST),
                WorkerStep::Left => return,
            }
        }
    }

    fn violation(&self, what: &str, value: u32) {
        eprintln!("core {}: {what} ({value:#x})", self.worker);
        self.watch.violations.fetch_add(1, Ordering::Relaxed);
    }

    /// A doorbell that the core has not seen: is it one that may come now? Returns the dispatch to be run: the next
    /// one, which may be the one before the doorbell.
    fn inspect(&mut self, rung: u32, expected: u32) -> u32 {
        if self.registers.fast_path() != FAST_PATH_OPEN {
            self.violation("the fast path is not open", self.registers.fast_path());
        }
        let is_in_order = rung == expected || rung == next_dispatch_id(expected);
        if !is_in_order {
            self.violation("a dispatch id out of order", rung);
        }
        let id = if is_in_order { expected } else { rung };
        self.expected = Some(next_dispatch_id(id));
        id
    }
}

impl WorkerPort for Core {
    fn command(&mut self) -> Command {
        let Some(expected) = self.expected else {
            // Acquire: pairs with the Release store in `Handshake::greet`.
            let epoch = self.lines.scheduler.aicpu_ready.load(Ordering::Acquire);
            let answered = self.lines.worker.aicore_done.load(Ordering::Relaxed);
            let silent = epoch == answered || self.conduct == Conduct::Deaf;
            return if silent { Command::Wait } else { Command::Greet(epoch) };
        };
        // Acquire: pairs with the `dsb st` before the doorbell in the image's `registers::ring`.
        let rung = self.registers.data_main_base.load(Ordering::Acquire);
        if rung == DOORBELL_EXIT {
            return Command::Quit;
        }
        if rung > LAST_DISPATCH_ID || rung == previous_dispatch_id(expected) {
            return Command::Wait;
        }
        let id = self.inspect(rung, expected);
        Command::Run(self.lines.scheduler.dispatch(id))
    }

    fn introduce(&mut self, epoch: u32) {
        self.registers.cond.store(STATUS_IDLE, Ordering::Relaxed);
        self.expected = Some(0);
        let id = self.worker + u32::from(self.conduct == Conduct::Impostor);
        self.lines.introduce(epoch, id, self.kind);
    }

    fn run(&mut self, dispatch: &Dispatch) {
        while self.conduct == Conduct::Hangs && self.watch.abandon.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(REST);
        }
        // A core may say that it has begun.
        self.registers.cond.store(dispatch.id, Ordering::Relaxed);
        let start = Instant::now();
        // SAFETY: by the firmware's contract: the loader registers functions of this type.
        unsafe { pto_aicore_kernels::call(dispatch) };
        self.lines.account(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        self.watch.tasks.fetch_add(1, Ordering::Relaxed);
    }

    fn finish(&mut self, id: u32) {
        let id = if self.conduct == Conduct::Lies { id + 5 } else { id };
        // Release: pairs with the `dsb ld` after the load of COND in the image's `registers::status`.
        self.registers.cond.store(FINISHED | id, Ordering::Release);
        while self.conduct == Conduct::Lies && self.watch.abandon.load(Ordering::Relaxed) == 0 {
            if self.registers.data_main_base.load(Ordering::Relaxed) == DOORBELL_EXIT {
                return;
            }
            std::thread::sleep(REST);
        }
    }

    fn leave(&mut self) {
        self.expected = None;
        self.lines.leave();
        // Release: pairs with the `dsb ld` after the load of COND in the image's `registers::status`.
        self.registers.cond.store(STATUS_EXITED, Ordering::Release);
    }
}
