//! The platform of the real device: work is handed over through control registers.
//!
//! ```text
//! AICPU                                             AICore
//! greet:  FAST_PATH_ENABLE = open,
//!         DATA_MAIN_BASE = idle, aicpu_ready (GM) -> COND = idle, then kind, core_id, aicore_done (GM)
//!         (idle again until the answer: the launch of a core sets DATA_MAIN_BASE to 0)
//! stage:  kernel, args, task into SchedulerLine::dispatches[id & 1] (GM)
//! commit: dsb st, DATA_MAIN_BASE = id ------------> reads the line, runs the kernel
//!         (the next id may be written while the core is busy: it goes on by itself)
//! ahead:  as stage, for a task that is not ready; then DATA_MAIN_BASE = id when it is
//! poll:   COND, dsb ld <--------------------------- COND = FINISHED | id
//! stop:   DATA_MAIN_BASE = exit ------------------> COND = exited, the loop returns
//!         (exit again until then, as for the greeting)
//! stopped: FAST_PATH_ENABLE = close
//! ```
//! Bring-up goes through the lines in GM, because a core says there who it is. The lines' doorbell, control and
//! status words are not used here. Ids go on from what COND shows, so that a core that stayed in service is
//! taken over without a word in GM.

use heapless::Vec;

use pto_abi::gm::GmWindow;
use pto_abi::handshake::{
    DOORBELL_EXIT, DOORBELL_IDLE, FINISHED, Handshake, LAST_DISPATCH_ID, STATUS_EXITED,
    STATUS_IDLE, next_dispatch_id, previous_dispatch_id,
};
use pto_abi::launch_words::CorePosition;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::sync::Concurrent;
use pto_abi::wait::{Backoff, SpinPolicy};
use pto_abi::{Fault, GmAddr};
use pto_aicpu_fw::Machine;
use pto_aicpu_fw::platform::{CoreStatus, Platform, Staged};

use crate::cann::coherence::Coherence;
use crate::cann::registers::{CoreRegisters, RegisterWindow};
use crate::cann::{barrier, clock};

/// Dispatches that a core may have at once: the one that it runs, and the next.
const SLOTS: u32 = 2;

/// Looks in vain before an instance offers its core to the operating system. Each look at a busy core takes
/// about 100 ns on a2a3, a system call about as long as two of them.
const POLICY: SpinPolicy = SpinPolicy { spins: 64, yields: u32::MAX };

/// One core, as its scheduler knows it.
#[derive(Clone, Copy)]
struct CoreRef<'a> {
    lines: &'a Handshake,
    registers: CoreRegisters<'a>,
    // The dispatch whose doorbell was written last, and the status that the core showed before what it has now.
    id: u32,
    settled: u32,
    // Dispatches whose doorbell was written and that have not been seen to finish.
    unfinished: u32,
    is_staged: bool,
    leaving: bool,
}

impl CoreRef<'_> {
    /// Whether something can be staged for it.
    #[inline]
    const fn is_open(&self) -> bool {
        self.unfinished < SLOTS && !self.is_staged
    }
}

/// The platform of one AICPU instance.
pub struct RegisterPlatform<'a> {
    workers: &'a [Handshake],
    window: RegisterWindow<'a>,
    positions: &'a [CorePosition],
    cores: Vec<CoreRef<'a>, MAX_WORKERS>,
    staged: Vec<u8, MAX_WORKERS>,
    // Something was written for a core since the last barrier.
    needs_barrier: bool,
    memory: Option<(GmWindow<'a>, Coherence)>,
    backoff: Backoff,
}

impl<'a> RegisterPlatform<'a> {
    /// A platform over all workers, by their numbers; none is attached yet. Every position is in the window,
    /// which [`AcceptedWords`](crate::cann::launch::AcceptedWords) proves.
    pub const fn new(
        workers: &'a [Handshake],
        window: RegisterWindow<'a>,
        positions: &'a [CorePosition],
    ) -> Self {
        Self {
            workers,
            window,
            positions,
            cores: Vec::new(),
            staged: Vec::new(),
            memory: None,
            needs_barrier: false,
            backoff: Backoff::new(POLICY),
        }
    }

    /// The same, on a device whose host writes this memory so.
    #[must_use]
    pub const fn in_memory(mut self, gm: GmWindow<'a>, coherence: Coherence) -> Self {
        self.memory = Some((gm, coherence));
        self
    }
}

impl<'a> Platform for RegisterPlatform<'a> {
    type Sharing = Concurrent;
    type Machine = Self;

    #[inline(always)]
    fn machine(&mut self) -> &mut Self {
        self
    }

    fn attach(&mut self, worker: u32) {
        let number = worker as usize;
        let position = self.positions.get(number).copied();
        let registers = position.and_then(|position| self.window.core(position));
        // The launch words were checked for every worker of the table, and the table against the limit.
        let (Some(registers), Some(lines)) = (registers, self.workers.get(number)) else { return };
        let (id, settled) = (DOORBELL_IDLE, STATUS_IDLE);
        let (unfinished, is_staged, leaving) = (0, false, false);
        let core = CoreRef { lines, registers, id, settled, unfinished, is_staged, leaving };
        self.cores.push(core).unwrap_or_default();
    }

    fn greet(&mut self, core: usize, epoch: u32) {
        let Some(core) = self.cores.get(core) else { return };
        core.registers.open();
        if core.lines.answer(epoch).is_none() {
            // What an earlier run left there, above all its exit signal, is not for this bring-up.
            core.registers.ring(DOORBELL_IDLE);
        }
        barrier::before_doorbell();
        core.lines.greet(epoch);
    }

    fn answer(&mut self, core: usize, epoch: u32) -> Option<(u32, u32)> {
        let core = self.cores.get_mut(core)?;
        let Some(answer) = core.lines.answer(epoch) else {
            // The launch of a core sets its doorbell to 0, and may come after the greeting.
            core.registers.ring(DOORBELL_IDLE);
            return None;
        };
        let status = core.registers.status();
        // A core in service goes on with its ids. Anything else than these two is not the answer of a core
        // that has come up, and the wait for it is bounded.
        core.id = match status {
            STATUS_IDLE => DOORBELL_IDLE,
            _ if status & FINISHED != 0 && status & !FINISHED <= LAST_DISPATCH_ID => {
                status & !FINISHED
            }
            _ => return None,
        };
        core.settled = status;
        Some(answer)
    }

    #[inline]
    fn poll(&mut self, core: usize) -> CoreStatus {
        let Some(core) = self.cores.get_mut(core) else { return CoreStatus::Idle };
        if core.unfinished == 0 {
            return CoreStatus::Idle;
        }
        let status = core.registers.status();
        let has_two = core.unfinished > 1;
        let oldest = if has_two { previous_dispatch_id(core.id) } else { core.id };
        let has_more = has_two && status == FINISHED | core.id;
        // A core that has begun the newer of two has finished the older one before.
        if status == FINISHED | oldest || has_more || has_two && status == core.id {
            barrier::after_status();
            core.settled = FINISHED | oldest;
            core.unfinished -= 1;
            return if has_more { CoreStatus::FinishedMore } else { CoreStatus::Finished };
        }
        if status == core.settled || status == oldest {
            return CoreStatus::Busy;
        }
        CoreStatus::Foreign(status)
    }

    #[inline]
    fn stage(&mut self, core: usize, dispatch: Staged) -> Result<(), Fault> {
        let refused = Fault::SCHEDULE_CORE_NOT_FREE;
        let entry = self.cores.get_mut(core).filter(|core| core.is_open()).ok_or(refused)?;
        let number = u8::try_from(core).map_err(|_| refused)?;
        let id = next_dispatch_id(entry.id);
        entry.lines.stage(id, dispatch.task, dispatch.kernel.0, dispatch.args.0);
        entry.is_staged = true;
        self.staged.push(number).map_err(|_| refused)
    }

    #[inline]
    fn commit(&mut self) {
        if self.staged.is_empty() {
            return;
        }
        barrier::before_doorbell();
        self.needs_barrier = false;
        for number in &self.staged {
            let Some(core) = self.cores.get_mut(usize::from(*number)) else { continue };
            core.id = next_dispatch_id(core.id);
            core.registers.ring(core.id);
            core.unfinished += 1;
            core.is_staged = false;
        }
        self.staged.clear();
        self.backoff.reset();
    }

    fn stop(&mut self, core: usize) {
        let Some(core) = self.cores.get_mut(core) else { return };
        core.registers.ring(DOORBELL_EXIT);
        core.leaving = true;
    }

    fn stopped(&mut self, core: usize) -> bool {
        let Some(core) = self.cores.get_mut(core) else { return true };
        let is_gone = core.registers.status() == STATUS_EXITED;
        if !is_gone {
            // As in `answer`: a launch that comes after the signal has taken it away.
            core.registers.ring(DOORBELL_EXIT);
        }
        is_gone
    }

    #[inline]
    fn stage_ahead(&mut self, core: usize, dispatch: Staged) {
        let Some(core) = self.cores.get(core).filter(|core| core.is_open()) else { return };
        let id = next_dispatch_id(core.id);
        core.lines.stage(id, dispatch.task, dispatch.kernel.0, dispatch.args.0);
        self.needs_barrier = true;
    }

    #[inline]
    fn settle(&mut self) {
        if core::mem::take(&mut self.needs_barrier) {
            barrier::before_doorbell();
        }
    }

    /// No barrier, as a rule: there was one since the words were written. What the task's producers wrote is in GM:
    /// their cores have said so in registers that were read before this store.
    #[inline]
    fn ring_ahead(&mut self, core: usize, _: u32) -> Result<(), Fault> {
        self.settle();
        let core = self.cores.get_mut(core).filter(|core| core.is_open());
        let core = core.ok_or(Fault::SCHEDULE_CORE_NOT_FREE)?;
        core.id = next_dispatch_id(core.id);
        core.registers.ring(core.id);
        core.unfinished += 1;
        self.backoff.reset();
        Ok(())
    }
}

impl<'a> Machine for RegisterPlatform<'a> {
    const SLOTS: usize = SLOTS as usize;
    const POLLS_COST: bool = true;
    const STAGES_AHEAD: bool = true;
    const TRANSFERS: bool = false;

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn relax(&mut self) {
        self.backoff.wait(|| {
            // SAFETY: the call has no arguments; it gives way to other threads and returns.
            #[cfg(target_os = "linux")]
            unsafe {
                libc::sched_yield();
            }
        });
    }

    fn refresh(&mut self, address: GmAddr, bytes: u64) {
        if let Some((gm, coherence)) = self.memory {
            coherence.look(gm, address, bytes);
        }
    }
}

impl Drop for RegisterPlatform<'_> {
    /// Closes the fast path of every core that was asked to leave, whether it has or hangs. A core that stays in
    /// service keeps it open.
    fn drop(&mut self) {
        for core in self.cores.iter().filter(|core| core.leaving) {
            core.registers.close();
        }
    }
}

#[cfg(test)]
mod tests;
