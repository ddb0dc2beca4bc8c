//! The service's side of one stream: where it is in the ring, and what its next command waits for.
//!
//! ```text
//! look -> Ready(Here):   do_here          over at once: events, values, skipped commands
//!      -> Ready(Worker): take_job         IN A JOB -> job_over
//!      -> Ready(Run):    take_run         IN A JOB -> job_over
//!      -> Ready(Launch): the firmware comes up, or gets the stream back: give_back
//!      -> WithFirmware:  the firmware has the head; catch_up takes over what it has done
//!      -> Blocked:       look again later, or fail_head where streams wait for each other
//! ```
//! Invariants: commands become over in their order, each once; entries are given back when their command is over. While the firmware
//! is up, the consumer's line of the ring is written here only between `LaneLine::handed` and `give_back`.

use std::sync::Arc;
use std::time::Duration;

use pto_abi::session::{CommandHead, CommandKind, CommandRing, ValueTest};
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::{GmAddr, GmWindow};

use super::command_object::{Barrier, CommandObject};
use super::copies::CopyCommand;
use super::error::{CommandFailure, FailureCause};
use super::event::EventCore;
use super::options::OnFailure;
use super::reduction::Reduction;
use super::session_core::SessionCore;
use super::stream_core::StreamCore;
use super::work::{Job, LaunchOutcome};
use crate::control::RunControl;

/// Copies of at most this many bytes are done by the service itself: a worker costs more.
const SMALL_COPY_BYTES: u64 = 1 << 13;

/// One stream.
pub(super) struct StreamState {
    pub(super) core: Arc<StreamCore>,
    /// The ring entry of its first command that is not over.
    at: u64,
    /// Commands that the host knows to be over.
    known: u64,
    busy: Busy,
    /// The head is a barrier that the stream has reached.
    has_arrived: bool,
    /// Resets of the session that it has seen.
    resets: u64,
    /// The wait at its head, and since when.
    waits: Option<(u64, u64)>,
    /// Where a seed decides: since when its head can be done; `None`: it could not when it was looked at last.
    ready_ns: Option<u64>,
}

enum Busy {
    No,
    /// Its head is with a worker, or is a run.
    Job(CommandHead),
}

/// The state of its next command.
pub(super) enum HeadState {
    /// There is none.
    Empty,
    /// The command is being executed.
    Busy,
    /// The firmware has taken the command.
    WithFirmware,
    /// The command can be executed, by this executor.
    Ready(Wants),
    /// The command waits.
    Blocked(WaitReason),
}

/// Who can do a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// The service.
    Here,
    /// A copy worker, or a thread for functions of the host.
    Worker,
    /// The firmware, together with other launches.
    Launch,
    /// The cores alone.
    Run,
}

/// What a command waits for.
pub(super) enum WaitReason {
    /// A record of an event.
    Record(Arc<EventCore>, u64),
    /// A word of GM.
    Value,
    /// Other streams at a barrier.
    Barrier(Arc<Barrier>),
}

impl StreamState {
    pub(super) fn new(core: Arc<StreamCore>, resets: u64) -> Self {
        core.status.change(|status| status.resets = resets);
        Self {
            core,
            at: 0,
            known: 0,
            busy: Busy::No,
            has_arrived: false,
            resets,
            waits: None,
            ready_ns: None,
        }
    }

    fn ring(&self) -> CommandRing<'_> {
        self.core.ring()
    }

    /// Whether one of its commands is being done.
    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.busy, Busy::No)
    }

    /// Whether its head is a run.
    pub(super) fn is_running(&self) -> bool {
        matches!(&self.busy, Busy::Job(head) if head.kind == CommandKind::RUN)
    }

    /// Whether it waits at this barrier.
    pub(super) fn is_at(&self, barrier: &Arc<Barrier>) -> bool {
        let is_same = |object: &CommandObject| match object {
            CommandObject::Barrier(other) => Some(Arc::ptr_eq(other, barrier)),
            _ => None,
        };
        let head = self.head().filter(|_| self.has_arrived);
        head.and_then(|head| self.core.with_object(head.number, is_same)).unwrap_or(false)
    }

    /// Whether it is closed, and all of its commands are over.
    pub(super) fn is_over(&self) -> bool {
        self.core.is_closed() && !self.is_busy() && self.ring().waiting(self.at) == 0
    }

    /// The session was reset: a stream that had stopped goes on.
    pub(super) fn see_resets(&mut self, resets: u64) {
        if self.resets != resets {
            self.resets = resets;
            let line = self.ring().consumer();
            line.stopped.store(0, Ordering::Relaxed);
            line.first_failed.store(0, Ordering::Relaxed);
            line.fault.store(0, Ordering::Relaxed);
            self.core.status.change(|status| {
                (status.stopped, status.failure, status.resets) = (None, None, resets);
            });
        }
    }

    /// Whether the firmware has handed it over, while it is up.
    fn is_handed(&self, shared: &SessionCore) -> bool {
        shared.board.board().is_handed(self.core.slot)
    }

    /// Before the firmware comes up: whether it gets the stream.
    pub(super) fn prepare(&self, shared: &SessionCore, is_theirs: bool) {
        let board = shared.board.board();
        let line = shared.board.stream(self.core.slot);
        // Relaxed: the launch of the firmware, which comes after these stores, publishes them.
        line.returned.store(0, Ordering::Relaxed);
        let host_keeps = !is_theirs || self.is_busy() || self.has_arrived;
        if let Some(lane) = board.lanes.get(self.core.slot) {
            lane.handed.store(host_keeps.into(), Ordering::Relaxed);
        }
        if !host_keeps {
            board.ring(self.core.slot);
        }
    }

    /// The firmware gets it back, with the next command at its head.
    pub(super) fn give_back(&self, shared: &SessionCore) {
        if shared.board.board().give_back(self.core.slot) {
            shared.ring_doorbell();
        }
    }

    /// Takes over what the firmware has done; whether that is anything new.
    pub(super) fn catch_up(&mut self, shared: &SessionCore) -> bool {
        let completed = self.core.completed();
        let Some(commands) = completed.checked_sub(self.known).filter(|news| *news > 0) else {
            return false;
        };
        self.known = completed;
        self.ready_ns = None;
        self.at = self.ring().taken();
        while let Some(object) = self.core.take_object_to(completed) {
            if let CommandObject::Record(event, record) = object {
                event.completed_by_firmware(record);
            }
        }
        shared.deferred_frees.finished(commands);
        self.core.status.change(|_| ());
        true
    }

    fn head(&self) -> Option<CommandHead> {
        self.ring().accept(self.at).and_then(Result::ok)
    }

    fn is_skipped(&self, number: u64) -> bool {
        self.core.has_stopped() || number <= self.core.skip_to()
    }

    /// As `look`, at this time; it also notes since when the head can be done.
    pub(super) fn look_at(&mut self, shared: &SessionCore, now_ns: u64) -> HeadState {
        let look = self.look(shared);
        match look {
            HeadState::Ready(_) => self.ready_ns = self.ready_ns.or(Some(now_ns)),
            HeadState::Busy => {}
            HeadState::Empty | HeadState::WithFirmware | HeadState::Blocked(_) => {
                self.ready_ns = None
            }
        }
        look
    }

    /// The state of its next command.
    pub(super) fn look(&self, shared: &SessionCore) -> HeadState {
        if self.is_busy() {
            return HeadState::Busy;
        }
        if shared.is_up() && !self.is_handed(shared) {
            return HeadState::WithFirmware;
        }
        if self.core.completed() != self.known {
            // It was handed over after the last `catch_up`, which says where the head is.
            return HeadState::WithFirmware;
        }
        self.look_at_head(shared)
    }

    /// As `look`, also if the firmware has the head.
    pub(super) fn look_at_head(&self, shared: &SessionCore) -> HeadState {
        let head = match self.ring().accept(self.at) {
            None => return HeadState::Empty,
            Some(Err(_)) => return HeadState::Ready(Wants::Here),
            Some(Ok(head)) => head,
        };
        if self.is_skipped(head.number) {
            return HeadState::Ready(Wants::Here);
        }
        match head.kind {
            CommandKind::LAUNCH | CommandKind::REPLAY => HeadState::Ready(Wants::Launch),
            CommandKind::RUN => HeadState::Ready(Wants::Run),
            CommandKind::CALL => HeadState::Ready(Wants::Worker),
            CommandKind::WAIT => self.look_record(head),
            CommandKind::BARRIER => self.look_barrier(head),
            CommandKind::WAIT_VALUE => self.look_value(shared),
            CommandKind::COPY
            | CommandKind::COPY_IN
            | CommandKind::COPY_OUT
            | CommandKind::REDUCE
            | CommandKind::FILL => {
                let is_on_device = matches!(head.kind, CommandKind::COPY | CommandKind::REDUCE);
                let bytes = self.word(if is_on_device { 2 } else { 1 });
                let is_here = bytes <= SMALL_COPY_BYTES && shared.copy_costs.is_none();
                HeadState::Ready(if is_here { Wants::Here } else { Wants::Worker })
            }
            _ => HeadState::Ready(Wants::Here),
        }
    }

    /// What its next command waits for, also if the firmware has it; then the answer may be out of date.
    pub(super) fn block(&self, shared: &SessionCore) -> Option<WaitReason> {
        let look = match self.look(shared) {
            HeadState::WithFirmware => self.look_at_head(shared),
            look => look,
        };
        match look {
            HeadState::Blocked(block) => Some(block),
            _ => None,
        }
    }

    /// When the wait at its head is to fail, on the session's clock. `None`: it does not wait, or may wait for ever.
    pub(super) fn deadline(&mut self, shared: &SessionCore) -> Option<u64> {
        if !self.core.has_budgets() {
            return None;
        }
        self.core.forget_limits(self.core.completed());
        let head = self.block(shared).and_then(|_| self.head()).map(|head| head.number);
        let Some(number) = head else {
            self.waits = None;
            return None;
        };
        let since = match self.waits.filter(|(known, _)| *known == number) {
            Some((_, since)) => since,
            None => shared.clock.now_ns(),
        };
        self.waits = Some((number, since));
        let budget = self.core.wait_budget(number)?;
        Some(since.saturating_add(u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long the wait at its head may last; `None`: it has no wait, or one that may last for ever.
    pub(super) fn budget(&self) -> Option<Duration> {
        self.head().and_then(|head| self.core.wait_budget(head.number))
    }

    /// Whether the firmware has its head.
    pub(super) fn is_theirs(&self, shared: &SessionCore) -> bool {
        matches!(self.look(shared), HeadState::WithFirmware)
    }

    fn word(&self, index: usize) -> u64 {
        self.ring().word(self.at, index)
    }

    fn look_record(&self, head: CommandHead) -> HeadState {
        let record = self.word(1);
        let event = self.core.with_object(head.number, |object| match object {
            CommandObject::Event(event) => Some(Arc::clone(event)),
            _ => None,
        });
        match event.filter(|event| !event.has_completed(record)) {
            Some(event) => HeadState::Blocked(WaitReason::Record(event, record)),
            None => HeadState::Ready(Wants::Here),
        }
    }

    fn look_barrier(&self, head: CommandHead) -> HeadState {
        let barrier = self.core.with_object(head.number, |object| match object {
            CommandObject::Barrier(barrier) => Some(Arc::clone(barrier)),
            _ => None,
        });
        match barrier.filter(|barrier| self.has_arrived && !barrier.is_open()) {
            Some(barrier) => HeadState::Blocked(WaitReason::Barrier(barrier)),
            None => HeadState::Ready(Wants::Here),
        }
    }

    fn look_value(&self, shared: &SessionCore) -> HeadState {
        let test = u32::try_from(self.word(2)).ok().and_then(|test| ValueTest::try_from(test).ok());
        let word = word_at(shared, GmAddr(self.word(0)));
        match test.zip(word) {
            Some((test, word)) if !test.is_met(word, self.word(1)) => {
                HeadState::Blocked(WaitReason::Value)
            }
            _ => HeadState::Ready(Wants::Here),
        }
    }

    /// Does a command that the service does itself.
    pub(super) fn do_here(&mut self, shared: &SessionCore) {
        let head = match self.ring().accept(self.at) {
            None => return,
            Some(Err(defect)) => return self.give_up(shared, FailureCause::Defect(defect)),
            Some(Ok(head)) => head,
        };
        if self.is_skipped(head.number) {
            self.skip(head);
            self.over(shared, head, Ok(()), self.ready_ns);
            return;
        }
        if head.kind == CommandKind::BARRIER && !self.has_arrived {
            self.has_arrived = true;
            self.core.with_object(head.number, |object| match object {
                CommandObject::Barrier(barrier) => {
                    barrier.arrive();
                    Some(())
                }
                _ => None,
            });
            return;
        }
        let over_ns = self.over_ns(head);
        let result = self.perform(shared, head);
        self.over(shared, head, result, over_ns);
    }

    /// When a command is over that the service does at once, where that is known.
    fn over_ns(&self, head: CommandHead) -> Option<u64> {
        match head.kind {
            CommandKind::WAIT => {
                let event_ns = self.core.with_object(head.number, |object| match object {
                    CommandObject::Event(event) => event.time_ns(),
                    _ => None,
                });
                self.ready_ns.map(|ready_ns| ready_ns.max(event_ns.unwrap_or(0)))
            }
            CommandKind::WAIT_VALUE | CommandKind::BARRIER => None,
            _ => self.ready_ns,
        }
    }

    fn perform(&mut self, shared: &SessionCore, head: CommandHead) -> Result<(), FailureCause> {
        match head.kind {
            CommandKind::RECORD => {
                if let Some(CommandObject::Record(event, record)) =
                    self.core.take_object(head.number)
                {
                    let time_ns = self.ready_ns.unwrap_or_else(|| shared.clock.now_ns());
                    event.complete(record, Some(time_ns));
                }
            }
            CommandKind::WRITE_VALUE => {
                let at = GmAddr(self.word(0));
                let written = write_word(shared, at, self.word(1));
                written.ok_or_else(|| FailureCause::Memory(format!("{at} is not in GM")))?;
            }
            CommandKind::WAIT_VALUE if word_at(shared, GmAddr(self.word(0))).is_none() => {
                return Err(FailureCause::Memory(format!("{} is not in GM", GmAddr(self.word(0)))));
            }
            CommandKind::COPY
            | CommandKind::COPY_IN
            | CommandKind::COPY_OUT
            | CommandKind::REDUCE
            | CommandKind::FILL => {
                return self.copy(head).map_or(Ok(()), |copy| copy.perform(&shared.memory));
            }
            _ => {}
        }
        Ok(())
    }

    /// Releases what waits for a command that is not done.
    fn skip(&mut self, head: CommandHead) {
        match self.core.take_object(head.number) {
            Some(CommandObject::Record(event, record)) => event.complete(record, None),
            Some(CommandObject::Barrier(barrier)) if !self.has_arrived => barrier.arrive(),
            _ => {}
        }
    }

    /// The copy that the head asks for.
    fn copy(&self, head: CommandHead) -> Option<CopyCommand> {
        let [first, second] = [self.word(0), self.word(1)];
        match (head.kind, self.core.take_object(head.number)) {
            (CommandKind::COPY_IN, Some(CommandObject::Buffer(from))) => {
                Some(CopyCommand::In { to: GmAddr(first), from })
            }
            (CommandKind::COPY_OUT, Some(CommandObject::Buffer(to))) => {
                Some(CopyCommand::Out { from: GmAddr(first), to })
            }
            (CommandKind::COPY, _) => {
                let (from, to) = (GmAddr(first), GmAddr(second));
                Some(CopyCommand::On { from, to, bytes: self.word(2) })
            }
            (CommandKind::REDUCE, _) => {
                let (from, to) = (GmAddr(first), GmAddr(second));
                let how = Reduction::of_word(self.word(3))?;
                Some(CopyCommand::Reduce { from, to, bytes: self.word(2), how })
            }
            (CommandKind::FILL, _) => {
                let pattern = self.word(2).to_le_bytes();
                Some(CopyCommand::Fill { to: GmAddr(first), bytes: second, pattern })
            }
            _ => None,
        }
    }

    /// The job of a command that a worker does.
    pub(super) fn take_job(&mut self, now_ns: u64) -> Option<Job> {
        let head = self.head()?;
        let job = match head.kind {
            CommandKind::CALL => match self.core.take_object(head.number)? {
                CommandObject::Function(function) => Job::Call(self.core.id, function),
                _ => return None,
            },
            _ => Job::Copy(self.core.id, self.copy(head)?, self.ready_ns.unwrap_or(now_ns)),
        };
        self.busy = Busy::Job(head);
        Some(job)
    }

    /// The run that the head asks for.
    pub(super) fn take_run(&mut self, control: RunControl) -> Option<Job> {
        let head = self.head()?;
        let CommandObject::Run(command) = self.core.take_object(head.number)? else { return None };
        self.busy = Busy::Job(head);
        Some(Job::Run(self.core.id, command, control))
    }

    /// The job of its head is over.
    pub(super) fn job_over(
        &mut self,
        shared: &SessionCore,
        result: Result<(), FailureCause>,
        over_ns: Option<u64>,
    ) {
        if let Busy::Job(head) = std::mem::replace(&mut self.busy, Busy::No) {
            self.over(shared, head, result, over_ns);
        }
    }

    /// The end of the head, which was in flight when a fault ended the firmware.
    pub(super) fn launch_over(&mut self, shared: &SessionCore, outcome: LaunchOutcome) {
        let Some(head) = self.head() else { return };
        match outcome {
            LaunchOutcome::NotBegun => {}
            LaunchOutcome::Done => self.over(shared, head, Ok(()), None),
            LaunchOutcome::Failed(cause) => self.over(shared, head, Err(cause), None),
        }
    }

    /// The head waits for something that never comes.
    pub(super) fn fail_head(&mut self, shared: &SessionCore, cause: FailureCause) {
        if let Some(head) = self.head().filter(|_| !self.is_busy()) {
            self.skip(head);
            self.over(shared, head, Err(cause), None);
        }
    }

    /// A command is over, since `over_ns` if that is known; the next one can begin then.
    fn over(
        &mut self,
        shared: &SessionCore,
        head: CommandHead,
        result: Result<(), FailureCause>,
        over_ns: Option<u64>,
    ) {
        self.core.take_object(head.number);
        self.has_arrived = false;
        // A synchronise after an abort reports the abort, and not the failures of aborted commands.
        if let Err(cause) = result
            && head.number > self.core.skip_to()
        {
            self.fail(shared, head.number, Some(head.kind), cause);
        }
        self.advance(shared, head.entries(), head.number, 1);
        self.ready_ns = over_ns.filter(|_| self.head().is_some());
    }

    fn advance(&mut self, shared: &SessionCore, entries: u64, number: u64, commands: u64) {
        self.at += entries;
        self.known = number;
        self.ring().take(self.at);
        // Release: pairs with the Acquire load in `StreamCore::completed`.
        self.ring().consumer().completed.store(number, Ordering::Release);
        shared.deferred_frees.finished(commands);
        self.core.status.change(|_| ());
    }

    /// The ring cannot be read any further: everything in it is dropped, and the stream stops.
    fn give_up(&mut self, shared: &SessionCore, cause: FailureCause) {
        let number = self.core.ring().commands();
        let open = number.saturating_sub(self.known);
        self.fail(shared, number, None, cause);
        let entries = self.ring().waiting(self.at);
        self.core.take_object(u64::MAX);
        self.advance(shared, entries, number, open);
    }

    fn fail(
        &self,
        shared: &SessionCore,
        command: u64,
        kind: Option<CommandKind>,
        cause: FailureCause,
    ) {
        let failure = Arc::new(CommandFailure { stream: self.core.id, command, kind, cause });
        let line = self.ring().consumer();
        line.failed.store(line.failed.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if line.first_failed.load(Ordering::Relaxed) == 0 {
            line.first_failed.store(command, Ordering::Relaxed);
            line.fault.store(failure.fault().map_or(0, |fault| fault.code()), Ordering::Relaxed);
        }
        // The streams stop before the failure is reported.
        match self.core.options.on_failure {
            OnFailure::Continue => {}
            OnFailure::Stop => self.core.stop(&failure),
            OnFailure::StopAll => shared.streams().iter().for_each(|core| core.stop(&failure)),
        }
        self.core.status.change(|status| {
            status.failure.get_or_insert_with(|| Arc::clone(&failure));
        });
    }
}

/// A word of GM as the service waits for it.
fn word_at(shared: &SessionCore, at: GmAddr) -> Option<u64> {
    let gm = shared.memory.gm();
    if gm.is_remote() {
        return gm.read_words(at).ok().map(|[word]| word);
    }
    // Acquire: pairs with the Release store in `write_word`, or with whatever a kernel does.
    live_word(gm.window(), at).map(|word| word.load(Ordering::Acquire))
}

/// Writes a word of GM.
fn write_word(shared: &SessionCore, at: GmAddr, value: u64) -> Option<()> {
    let gm = shared.memory.gm();
    if gm.is_remote() {
        return gm.write(at, &value.to_le_bytes()).ok();
    }
    // Release: pairs with the Acquire load in `word_at`.
    live_word(gm.window(), at).map(|word| word.store(value, Ordering::Release))
}

fn live_word(gm: GmWindow<'_>, at: GmAddr) -> Option<&AtomicU64> {
    gm.live(gm.offset_of(at, 8)?)
}
