//! Bring-up of a core, and the lines through which work is handed over.
//!
//! ```text
//! AICPU (SchedulerLine)                    AICore (WorkerLine)
//! greet:  aicpu_ready = epoch  ----------> kind, core_id, then aicore_done = epoch
//! commit: dispatches[id & 1],
//!         then doorbell = id   ----------> runs the kernel
//! poll:   sees FINISHED | id   <---------- status = FINISHED | id
//! stop:   control = QUIT       ----------> status = EXITED, the loop returns
//! ```
//! Ids are consecutive. A core may have two dispatches at once: the one that it runs, and the next, which it starts
//! without waiting for AICPU. It finds which of them is to be run from its own status: two ids less than the
//! doorbell, the older one; one id less, the newer one. An order to quit comes before both.
//!
//! One writer per line. The words have the values of the a2a3 control registers, so that the register
//! form (DATA_MAIN_BASE, COND) and this one carry the same protocol.

use crate::kinds::CoreKind;
use crate::shared_struct::shared_struct;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// In `status`: the dispatch in bits 30..0 is finished (COND bit 31).
pub const FINISHED: u32 = 1 << 31;
/// The last id that a dispatch may have; then ids start again at 0.
pub const LAST_DISPATCH_ID: u32 = 0x7FFF_FFEF;
/// `doorbell`: nothing was dispatched yet.
pub const DOORBELL_IDLE: u32 = 0x7FFF_FFFD;
/// The doorbell register: leave the loop. The lines say the same by [`CONTROL_QUIT`].
pub const DOORBELL_EXIT: u32 = 0x7FFF_FFF0;
/// `status`: nothing was run yet.
pub const STATUS_IDLE: u32 = 0x7FFF_FFFF;
/// `status`: the core has left its loop.
pub const STATUS_EXITED: u32 = 0x7FFF_FFFE;
/// `control`: keep running.
pub const CONTROL_RUN: u32 = 0;
/// `control`: leave the loop.
pub const CONTROL_QUIT: u32 = 1;

shared_struct! {
    /// One of the two dispatches that a core may have.
    #[derive(Default)]
    pub struct DispatchWords [size = 24, align = 8] {
        /// GM address of the kernel's code.
        0 => kernel: AtomicU64,
        /// GM address of the arguments.
        8 => args: AtomicU64,
        /// Slot of the task.
        16 => task: AtomicU32,
        /// Not used; zero.
        20 => reserved: AtomicU32,
    }
}

shared_struct! {
    /// What AICPU writes for one core.
    #[derive(Default)]
    pub struct SchedulerLine [size = 64, align = 64] {
        /// Bring-up epoch, written to greet the core.
        0 => aicpu_ready: AtomicU32,
        /// [`CONTROL_RUN`] or [`CONTROL_QUIT`].
        4 => control: AtomicU32,
        /// The dispatch id; written last.
        8 => doorbell: AtomicU32,
        /// Not used; zero.
        12 => reserved: AtomicU32,
        /// The dispatches, by the low bit of their ids.
        16 => dispatches: [DispatchWords; 2],
    }
}

shared_struct! {
    /// What the core writes.
    #[derive(Default)]
    pub struct WorkerLine [size = 64, align = 64] {
        /// Bring-up epoch, echoed when the core is ready.
        0 => aicore_done: AtomicU32,
        /// The core's own id.
        4 => core_id: AtomicU32,
        /// The core's own kind.
        8 => kind: AtomicU32,
        /// [`FINISHED`] and the dispatch id.
        12 => status: AtomicU32,
        /// Tasks run since bring-up.
        16 => tasks_run: AtomicU64,
        /// Time in kernels since bring-up, if the run asks for it.
        24 => busy_ns: AtomicU64,
        /// Which kernel of a chain it runs, from 1 on; zero: it runs none.
        32 => chain_kernel: AtomicU32,
        /// Its func id.
        36 => chain_func: AtomicU32,
        /// Not used; zero.
        40 => reserved: [AtomicU64; 3],
    }
}

shared_struct! {
    /// The two lines of one core.
    #[derive(Default)]
    pub struct Handshake [size = 128, align = 64] {
        /// Written by AICPU.
        0 => scheduler: SchedulerLine,
        /// Written by the core.
        64 => worker: WorkerLine,
    }
}

/// The dispatch id after `id`.
#[must_use]
#[inline]
pub const fn next_dispatch_id(id: u32) -> u32 {
    if id >= LAST_DISPATCH_ID { 0 } else { id + 1 }
}

/// The dispatch id before `id`.
#[must_use]
#[inline]
pub const fn previous_dispatch_id(id: u32) -> u32 {
    if id == 0 { LAST_DISPATCH_ID } else { id - 1 }
}

/// One dispatch as the core sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dispatch {
    /// The dispatch id, to be reported back.
    pub id: u32,
    /// Slot of the task.
    pub task: u32,
    /// GM address of the kernel's code.
    pub kernel: u64,
    /// GM address of the arguments.
    pub args: u64,
}

/// What a core finds in its scheduler's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// There is no new command.
    Wait,
    /// A bring-up epoch that the core has not answered.
    Greet(u32),
    /// A task to run.
    Run(Dispatch),
    /// Leave the loop.
    Quit,
}

/// What a scheduler finds in a core's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The dispatch has not finished.
    Busy,
    /// The dispatch has finished, and what the core wrote is visible. Of two: the older one.
    Finished,
    /// Both of two dispatches have finished.
    FinishedBoth,
    /// The core reports something that it was not given.
    Foreign(u32),
}

/// AICPU's side of the protocol.
impl Handshake {
    /// Greets the core with `epoch`. A core that has answered this epoch before stays in service.
    pub fn greet(&self, epoch: u32) {
        self.scheduler.control.store(CONTROL_RUN, Ordering::Relaxed);
        if self.scheduler.aicpu_ready.load(Ordering::Relaxed) != epoch {
            self.scheduler.doorbell.store(DOORBELL_IDLE, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire load of aicpu_ready in `command`.
        self.scheduler.aicpu_ready.store(epoch, Ordering::Release);
    }

    /// The core's id and kind, once it has answered `epoch`.
    #[must_use]
    pub fn answer(&self, epoch: u32) -> Option<(u32, u32)> {
        // Acquire: pairs with the Release store of aicore_done in `introduce`.
        if self.worker.aicore_done.load(Ordering::Acquire) != epoch || self.exited() {
            return None;
        }
        let id = self.worker.core_id.load(Ordering::Relaxed);
        Some((id, self.worker.kind.load(Ordering::Relaxed)))
    }

    /// The id of the last dispatch, to go on from.
    #[must_use]
    pub fn last_dispatch_id(&self) -> u32 {
        self.scheduler.doorbell.load(Ordering::Relaxed)
    }

    /// Writes dispatch `id` without ringing. The dispatch two ids before it must have finished.
    #[inline]
    pub fn stage(&self, id: u32, task: u32, kernel: u64, args: u64) {
        let words = self.scheduler.words(id);
        words.task.store(task, Ordering::Relaxed);
        words.kernel.store(kernel, Ordering::Relaxed);
        words.args.store(args, Ordering::Relaxed);
    }

    /// Rings: the staged dispatch becomes visible as `id`.
    #[inline]
    pub fn ring(&self, id: u32) {
        // Release: pairs with the Acquire load of doorbell in `command`; the core sees the staged words
        // and all that the task's producers wrote.
        self.scheduler.doorbell.store(id, Ordering::Release);
    }

    /// The status word; what the core wrote before it is visible.
    #[must_use]
    #[inline]
    pub fn acquire_status(&self) -> u32 {
        // Acquire: pairs with the Release store of status in `finish`.
        self.worker.status.load(Ordering::Acquire)
    }

    /// How far dispatch `id` is.
    #[must_use]
    #[inline]
    pub fn status(&self, id: u32, previous: u32) -> Status {
        let status = self.acquire_status();
        if status == FINISHED | id {
            Status::Finished
        } else if status == previous || status == id {
            Status::Busy
        } else {
            Status::Foreign(status)
        }
    }

    /// How far the two dispatches `newer` and the one before it are.
    #[must_use]
    #[inline]
    pub fn status_of_two(&self, newer: u32, previous: u32) -> Status {
        let older = previous_dispatch_id(newer);
        let status = self.acquire_status();
        if status == FINISHED | older || status == newer {
            Status::Finished
        } else if status == FINISHED | newer {
            Status::FinishedBoth
        } else if status == previous || status == older {
            Status::Busy
        } else {
            Status::Foreign(status)
        }
    }

    /// The dispatch that the core has to run, or has run last: for reports of a run that has ended badly.
    #[must_use]
    pub fn current_dispatch(&self) -> Dispatch {
        let doorbell = self.scheduler.doorbell.load(Ordering::Relaxed);
        self.scheduler.dispatch(due_dispatch_id(doorbell, self.raw_status()))
    }

    /// The status word.
    #[must_use]
    pub fn raw_status(&self) -> u32 {
        self.worker.status.load(Ordering::Relaxed)
    }

    /// Asks the core to leave its loop.
    pub fn quit(&self) {
        // Release: pairs with the Acquire load of control in `command`.
        self.scheduler.control.store(CONTROL_QUIT, Ordering::Release);
    }

    /// Whether the core has left its loop.
    #[must_use]
    pub fn exited(&self) -> bool {
        // Acquire: pairs with the Release store of status in `leave`.
        self.worker.status.load(Ordering::Acquire) == STATUS_EXITED
    }
}

/// The dispatch that a core with this status has to run, when `doorbell` is the newest id and has not finished: the one
/// before it, if that has not finished either.
#[must_use]
#[inline]
pub const fn due_dispatch_id(doorbell: u32, status: u32) -> u32 {
    let next = next_dispatch_id(status & !FINISHED);
    if next_dispatch_id(next) == doorbell { next } else { doorbell }
}

/// Whether a core with this status has finished the dispatch just before `doorbell`, in one comparison:
/// the status of an id is one less than the next id with [`FINISHED`], and so is [`STATUS_IDLE`] for the first id, 0.
#[inline]
const fn is_next(doorbell: u32, status: u32) -> bool {
    status == (FINISHED | doorbell).wrapping_sub(1)
}

impl SchedulerLine {
    /// The words of dispatch `id`.
    #[inline]
    fn words(&self, id: u32) -> &DispatchWords {
        // Two entries and one bit: no bounds check remains.
        &self.dispatches[(id & 1) as usize]
    }

    /// Dispatch `id`, whose doorbell was written.
    #[must_use]
    #[inline]
    pub fn dispatch(&self, id: u32) -> Dispatch {
        let words = self.words(id);
        Dispatch {
            id,
            task: words.task.load(Ordering::Relaxed),
            kernel: words.kernel.load(Ordering::Relaxed),
            args: words.args.load(Ordering::Relaxed),
        }
    }
}

/// The core's side of the protocol. Stateless: the core's own line says what it has done.
impl Handshake {
    /// The dispatch in the doorbell, if it follows the last one that the core has finished, and there is no order to
    /// quit. This is the path of most tasks. When it is `None`, call [`command`](Self::command).
    #[must_use]
    #[inline]
    pub fn next_dispatch(&self) -> Option<Dispatch> {
        // Acquire: pairs with the Release store of doorbell in `ring`.
        let doorbell = self.scheduler.doorbell.load(Ordering::Acquire);
        let status = self.worker.status.load(Ordering::Relaxed);
        // Relaxed: the order itself is taken in `bring_up_command`.
        let goes_on = self.scheduler.control.load(Ordering::Relaxed) == CONTROL_RUN;
        (goes_on && is_next(doorbell, status)).then(|| self.scheduler.dispatch(doorbell))
    }

    /// What AICPU wants of the core.
    #[must_use]
    #[inline]
    pub fn command(&self) -> Command {
        self.next_dispatch().map_or_else(|| self.further_command(), Command::Run)
    }

    /// There is no new dispatch, or a second one, or the order to quit.
    #[inline(never)]
    fn further_command(&self) -> Command {
        // Acquire: pairs with the Release store of doorbell in `ring`; the others as in `next_dispatch`.
        let doorbell = self.scheduler.doorbell.load(Ordering::Acquire);
        let status = self.worker.status.load(Ordering::Relaxed);
        let goes_on = self.scheduler.control.load(Ordering::Relaxed) == CONTROL_RUN;
        let has_more = doorbell <= LAST_DISPATCH_ID && status != FINISHED | doorbell;
        if has_more && goes_on && status != STATUS_EXITED {
            return Command::Run(self.scheduler.dispatch(due_dispatch_id(doorbell, status)));
        }
        self.bring_up_command()
    }

    /// A core that has left its loop waits for the next greeting, which takes the order to quit back: until then a greeting
    /// that it has not answered is one of its last life, ended before it began.
    fn bring_up_command(&self) -> Command {
        let in_service = self.worker.status.load(Ordering::Relaxed) != STATUS_EXITED;
        // Acquire: pairs with the Release store of control in `quit`.
        if self.scheduler.control.load(Ordering::Acquire) == CONTROL_QUIT {
            return if in_service { Command::Quit } else { Command::Wait };
        }
        // Acquire: pairs with the Release store of aicpu_ready in `greet`.
        let epoch = self.scheduler.aicpu_ready.load(Ordering::Acquire);
        if epoch != self.worker.aicore_done.load(Ordering::Relaxed) {
            return Command::Greet(epoch);
        }
        Command::Wait
    }

    /// Answers the greeting: the core is in service and has finished no dispatch.
    pub fn introduce(&self, epoch: u32, core_id: u32, kind: CoreKind) {
        self.worker.core_id.store(core_id, Ordering::Relaxed);
        self.worker.kind.store(u32::from(kind.get()), Ordering::Relaxed);
        self.worker.status.store(STATUS_IDLE, Ordering::Relaxed);
        // Release: pairs with the Acquire load of aicore_done in `answer`.
        self.worker.aicore_done.store(epoch, Ordering::Release);
    }

    /// Reports dispatch `id` as finished.
    #[inline]
    pub fn finish(&self, id: u32) {
        // Release: pairs with the Acquire load of status in `status`.
        self.worker.status.store(FINISHED | id, Ordering::Release);
    }

    /// Counts a task, in the core's own line (call it before `finish`).
    #[inline]
    pub fn count_task(&self) {
        let tasks = self.worker.tasks_run.load(Ordering::Relaxed);
        self.worker.tasks_run.store(tasks + 1, Ordering::Relaxed);
    }

    /// Counts a task and the time it took.
    #[inline]
    pub fn account(&self, busy_ns: u64) {
        self.count_task();
        let total = self.worker.busy_ns.load(Ordering::Relaxed);
        self.worker.busy_ns.store(total.wrapping_add(busy_ns), Ordering::Relaxed);
    }

    /// Says which kernel of a chain the core runs: its number from 1 on, and its func id; zero: none.
    #[inline]
    pub fn note_chain(&self, number: u32, func_id: u16) {
        self.worker.chain_func.store(func_id.into(), Ordering::Relaxed);
        self.worker.chain_kernel.store(number, Ordering::Relaxed);
    }

    /// Which kernel of a chain the core runs, from 1 on, and its func id, as far as it has said; for reports.
    #[must_use]
    pub fn chain_kernel(&self) -> Option<(u32, u32)> {
        let number = self.worker.chain_kernel.load(Ordering::Relaxed);
        (number > 0).then(|| (number, self.worker.chain_func.load(Ordering::Relaxed)))
    }

    /// Says that the core has left its loop.
    pub fn leave(&self) {
        // Release: pairs with the Acquire load of status in `exited`.
        self.worker.status.store(STATUS_EXITED, Ordering::Release);
    }
}

impl Handshake {
    /// Both lines as they are before the first bring-up. Only while no other agent uses them.
    pub fn reset(&self) {
        self.scheduler.aicpu_ready.store(0, Ordering::Relaxed);
        self.scheduler.control.store(CONTROL_RUN, Ordering::Relaxed);
        self.scheduler.doorbell.store(DOORBELL_IDLE, Ordering::Relaxed);
        self.worker.aicore_done.store(0, Ordering::Relaxed);
        self.worker.status.store(STATUS_EXITED, Ordering::Relaxed);
        self.worker.tasks_run.store(0, Ordering::Relaxed);
        self.worker.busy_ns.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
