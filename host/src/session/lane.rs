//! The service's side of one stream: where it is in the ring, and what its next command waits for.
//!
//! ```text
//! look -> Ready(Here):   do_here          over at once: events, values, skipped commands
//!      -> Ready(Worker): take_job         IN A JOB -> job_over
//!      -> Ready(Run):    take_run         IN A JOB -> job_over
//!      -> Ready(Launch): the firmware comes up, or gets the stream back: give_back
//!      -> Theirs:        the firmware has the head; catch_up tells what it has done
//!      -> Blocked:       look again later, or fail_head where streams wait for each other
//! ```
//! Invariants: commands become over in their order, each once; entries are given back when their command is over. While the firmware
//! is up, the consumer's line of the ring is written here only between `LaneLine::handed` and `give_back`.

use std::sync::Arc;
use std::time::Duration;

use pto_abi::session::{CommandHead, CommandKind, CommandRing, ValueTest};
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::{GmAddr, GmWindow};

use super::copies::Copy;
use super::error::{Cause, CommandFailure};
use super::event::EventCore;
use super::kept::{Barrier, Kept};
use super::options::OnFailure;
use super::reduction::Reduction;
use super::shared::Shared;
use super::stream_core::StreamCore;
use super::work::{Job, Outcome};
use crate::control::RunControl;

/// Copies of at most so many bytes are done by the service itself: a worker costs more.
const SMALL_COPY_BYTES: u64 = 1 << 13;

/// One stream.
pub(super) struct Lane {
    pub(super) core: Arc<StreamCore>,
    /// Where its first command that is not over stands.
    at: u64,
    /// Commands that the host knows to be over.
    known: u64,
    busy: Busy,
    /// The head is a barrier that the stream has come to.
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

/// What its next command is.
pub(super) enum Look {
    /// There is none.
    Nothing,
    /// It is being done.
    Busy,
    /// The firmware has it.
    Theirs,
    /// It can be done, by these.
    Ready(Wants),
    /// It waits.
    Blocked(Block),
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
pub(super) enum Block {
    /// A record of an event.
    Record(Arc<EventCore>, u64),
    /// A word of GM.
    Value,
    /// Other streams at a barrier.
    Barrier(Arc<Barrier>),
}

impl Lane {
    pub(super) fn new(core: Arc<StreamCore>, resets: u64) -> Self {
        core.told.change(|told| told.resets = resets);
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
        let is_same = |kept: &Kept| match kept {
            Kept::Barrier(other) => Some(Arc::ptr_eq(other, barrier)),
            _ => None,
        };
        let head = self.head().filter(|_| self.has_arrived);
        head.and_then(|head| self.core.with_kept(head.number, is_same)).unwrap_or(false)
    }

    /// Whether nobody submits to it any more, and everything is over.
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
            self.core.told.change(|told| {
                (told.stopped, told.failure, told.resets) = (None, None, resets);
            });
        }
    }

    /// Whether the firmware has handed it over, while it is up.
    fn is_handed(&self, shared: &Shared) -> bool {
        shared.board.board().is_handed(self.core.place)
    }

    /// Before the firmware comes up: whether it gets the stream.
    pub(super) fn prepare(&self, shared: &Shared, is_theirs: bool) {
        let board = shared.board.board();
        let line = shared.board.stream(self.core.place);
        // Relaxed: the launch of the firmware is behind these stores.
        line.returned.store(0, Ordering::Relaxed);
        let host_keeps = !is_theirs || self.is_busy() || self.has_arrived;
        if let Some(lane) = board.lanes.get(self.core.place) {
            lane.handed.store(host_keeps.into(), Ordering::Relaxed);
        }
        if !host_keeps {
            board.ring(self.core.place);
        }
    }

    /// The firmware gets it back, with the next command at its head.
    pub(super) fn give_back(&self, shared: &Shared) {
        if shared.board.board().give_back(self.core.place) {
            shared.ring_doorbell();
        }
    }

    /// Takes over what the firmware has done; whether that is anything new.
    pub(super) fn catch_up(&mut self, shared: &Shared) -> bool {
        let completed = self.core.completed();
        let Some(commands) = completed.checked_sub(self.known).filter(|news| *news > 0) else {
            return false;
        };
        self.known = completed;
        self.ready_ns = None;
        self.at = self.ring().taken();
        while let Some(kept) = self.core.take_kept_to(completed) {
            if let Kept::Record(event, record) = kept {
                event.completed_by_firmware(record);
            }
        }
        shared.holds.finished(commands);
        self.core.told.change(|_| ());
        true
    }

    fn head(&self) -> Option<CommandHead> {
        self.ring().accept(self.at).and_then(Result::ok)
    }

    fn is_skipped(&self, number: u64) -> bool {
        self.core.has_stopped() || number <= self.core.skip_to()
    }

    /// As `look`, at a turn at this time: since when the head can be done is known behind it.
    pub(super) fn look_at(&mut self, shared: &Shared, now_ns: u64) -> Look {
        let look = self.look(shared);
        match look {
            Look::Ready(_) => self.ready_ns = self.ready_ns.or(Some(now_ns)),
            Look::Busy => {}
            Look::Nothing | Look::Theirs | Look::Blocked(_) => self.ready_ns = None,
        }
        look
    }

    /// What its next command is.
    pub(super) fn look(&self, shared: &Shared) -> Look {
        if self.is_busy() {
            return Look::Busy;
        }
        if shared.is_up() && !self.is_handed(shared) {
            return Look::Theirs;
        }
        if self.core.completed() != self.known {
            // It was handed over after the last `catch_up`, which says where the head is.
            return Look::Theirs;
        }
        self.look_at_head(shared)
    }

    /// As `look`, whoever has the head.
    pub(super) fn look_at_head(&self, shared: &Shared) -> Look {
        let head = match self.ring().accept(self.at) {
            None => return Look::Nothing,
            Some(Err(_)) => return Look::Ready(Wants::Here),
            Some(Ok(head)) => head,
        };
        if self.is_skipped(head.number) {
            return Look::Ready(Wants::Here);
        }
        match head.kind {
            CommandKind::LAUNCH | CommandKind::REPLAY => Look::Ready(Wants::Launch),
            CommandKind::RUN => Look::Ready(Wants::Run),
            CommandKind::CALL => Look::Ready(Wants::Worker),
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
                Look::Ready(if is_here { Wants::Here } else { Wants::Worker })
            }
            _ => Look::Ready(Wants::Here),
        }
    }

    /// What its next command waits for, whoever has the head. While the firmware has it, the answer may be that of a moment ago.
    pub(super) fn block(&self, shared: &Shared) -> Option<Block> {
        let look = match self.look(shared) {
            Look::Theirs => self.look_at_head(shared),
            look => look,
        };
        match look {
            Look::Blocked(block) => Some(block),
            _ => None,
        }
    }

    /// When the wait at its head is to fail, on the session's clock. `None`: it does not wait, or may wait for ever.
    pub(super) fn deadline(&mut self, shared: &Shared) -> Option<u64> {
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
    pub(super) fn is_theirs(&self, shared: &Shared) -> bool {
        matches!(self.look(shared), Look::Theirs)
    }

    fn word(&self, index: usize) -> u64 {
        self.ring().word(self.at, index)
    }

    fn look_record(&self, head: CommandHead) -> Look {
        let record = self.word(1);
        let event = self.core.with_kept(head.number, |kept| match kept {
            Kept::Event(event) => Some(Arc::clone(event)),
            _ => None,
        });
        match event.filter(|event| !event.has_completed(record)) {
            Some(event) => Look::Blocked(Block::Record(event, record)),
            None => Look::Ready(Wants::Here),
        }
    }

    fn look_barrier(&self, head: CommandHead) -> Look {
        let barrier = self.core.with_kept(head.number, |kept| match kept {
            Kept::Barrier(barrier) => Some(Arc::clone(barrier)),
            _ => None,
        });
        match barrier.filter(|barrier| self.has_arrived && !barrier.is_open()) {
            Some(barrier) => Look::Blocked(Block::Barrier(barrier)),
            None => Look::Ready(Wants::Here),
        }
    }

    fn look_value(&self, shared: &Shared) -> Look {
        let test = u32::try_from(self.word(2)).ok().and_then(|test| ValueTest::try_from(test).ok());
        let word = word_at(shared, GmAddr(self.word(0)));
        match test.zip(word) {
            Some((test, word)) if !test.is_met(word, self.word(1)) => Look::Blocked(Block::Value),
            _ => Look::Ready(Wants::Here),
        }
    }

    /// Does a command that the service does itself.
    pub(super) fn do_here(&mut self, shared: &Shared) {
        let head = match self.ring().accept(self.at) {
            None => return,
            Some(Err(defect)) => return self.give_up(shared, Cause::Defect(defect)),
            Some(Ok(head)) => head,
        };
        if self.is_skipped(head.number) {
            self.skip(head);
            self.over(shared, head, Ok(()), self.ready_ns);
            return;
        }
        if head.kind == CommandKind::BARRIER && !self.has_arrived {
            self.has_arrived = true;
            self.core.with_kept(head.number, |kept| match kept {
                Kept::Barrier(barrier) => {
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
                let event_ns = self.core.with_kept(head.number, |kept| match kept {
                    Kept::Event(event) => event.time_ns(),
                    _ => None,
                });
                self.ready_ns.map(|ready_ns| ready_ns.max(event_ns.unwrap_or(0)))
            }
            CommandKind::WAIT_VALUE | CommandKind::BARRIER => None,
            _ => self.ready_ns,
        }
    }

    fn perform(&mut self, shared: &Shared, head: CommandHead) -> Result<(), Cause> {
        match head.kind {
            CommandKind::RECORD => {
                if let Some(Kept::Record(event, record)) = self.core.take_kept(head.number) {
                    let time_ns = self.ready_ns.unwrap_or_else(|| shared.clock.now_ns());
                    event.complete(record, Some(time_ns));
                }
            }
            CommandKind::WRITE_VALUE => {
                let at = GmAddr(self.word(0));
                let written = write_word(shared, at, self.word(1));
                written.ok_or_else(|| Cause::Memory(format!("{at} is not in GM")))?;
            }
            CommandKind::WAIT_VALUE if word_at(shared, GmAddr(self.word(0))).is_none() => {
                return Err(Cause::Memory(format!("{} is not in GM", GmAddr(self.word(0)))));
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

    /// Lets go of what hangs on a command that is not done.
    fn skip(&mut self, head: CommandHead) {
        match self.core.take_kept(head.number) {
            Some(Kept::Record(event, record)) => event.complete(record, None),
            Some(Kept::Barrier(barrier)) if !self.has_arrived => barrier.arrive(),
            _ => {}
        }
    }

    /// The copy that the head asks for.
    fn copy(&self, head: CommandHead) -> Option<Copy> {
        let [first, second] = [self.word(0), self.word(1)];
        match (head.kind, self.core.take_kept(head.number)) {
            (CommandKind::COPY_IN, Some(Kept::Buffer(from))) => {
                Some(Copy::In { to: GmAddr(first), from })
            }
            (CommandKind::COPY_OUT, Some(Kept::Buffer(to))) => {
                Some(Copy::Out { from: GmAddr(first), to })
            }
            (CommandKind::COPY, _) => {
                let (from, to) = (GmAddr(first), GmAddr(second));
                Some(Copy::On { from, to, bytes: self.word(2) })
            }
            (CommandKind::REDUCE, _) => {
                let (from, to) = (GmAddr(first), GmAddr(second));
                let how = Reduction::of_word(self.word(3))?;
                Some(Copy::Reduce { from, to, bytes: self.word(2), how })
            }
            (CommandKind::FILL, _) => {
                let pattern = self.word(2).to_le_bytes();
                Some(Copy::Fill { to: GmAddr(first), bytes: second, pattern })
            }
            _ => None,
        }
    }

    /// The job of a command that a worker does.
    pub(super) fn take_job(&mut self, now_ns: u64) -> Option<Job> {
        let head = self.head()?;
        let job = match head.kind {
            CommandKind::CALL => match self.core.take_kept(head.number)? {
                Kept::Function(function) => Job::Call(self.core.id, function),
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
        let Kept::Run(command) = self.core.take_kept(head.number)? else { return None };
        self.busy = Busy::Job(head);
        Some(Job::Run(self.core.id, command, control))
    }

    /// The job of its head is over.
    pub(super) fn job_over(
        &mut self,
        shared: &Shared,
        result: Result<(), Cause>,
        over_ns: Option<u64>,
    ) {
        if let Busy::Job(head) = std::mem::replace(&mut self.busy, Busy::No) {
            self.over(shared, head, result, over_ns);
        }
    }

    /// What has become of the head, which was on its way to the cores when a fault ended the firmware.
    pub(super) fn launch_over(&mut self, shared: &Shared, outcome: Outcome) {
        let Some(head) = self.head() else { return };
        match outcome {
            Outcome::NotBegun => {}
            Outcome::Done => self.over(shared, head, Ok(()), None),
            Outcome::Failed(cause) => self.over(shared, head, Err(cause), None),
        }
    }

    /// The head waits for something that never comes.
    pub(super) fn fail_head(&mut self, shared: &Shared, cause: Cause) {
        if let Some(head) = self.head().filter(|_| !self.is_busy()) {
            self.skip(head);
            self.over(shared, head, Err(cause), None);
        }
    }

    /// A command is over, since `over_ns` where that is known; the one behind it can begin then.
    fn over(
        &mut self,
        shared: &Shared,
        head: CommandHead,
        result: Result<(), Cause>,
        over_ns: Option<u64>,
    ) {
        self.core.take_kept(head.number);
        self.has_arrived = false;
        // Who was aborted is told so, and not what came of the rest.
        if let Err(cause) = result
            && head.number > self.core.skip_to()
        {
            self.fail(shared, head.number, Some(head.kind), cause);
        }
        self.advance(shared, head.entries(), head.number, 1);
        self.ready_ns = over_ns.filter(|_| self.head().is_some());
    }

    fn advance(&mut self, shared: &Shared, entries: u64, number: u64, commands: u64) {
        self.at += entries;
        self.known = number;
        self.ring().take(self.at);
        // Release: pairs with the Acquire load in `StreamCore::completed`.
        self.ring().consumer().completed.store(number, Ordering::Release);
        shared.holds.finished(commands);
        self.core.told.change(|_| ());
    }

    /// The ring cannot be read any further: everything in it is dropped, and the stream stops.
    fn give_up(&mut self, shared: &Shared, cause: Cause) {
        let number = self.core.ring().commands();
        let open = number.saturating_sub(self.known);
        self.fail(shared, number, None, cause);
        let entries = self.ring().waiting(self.at);
        self.core.take_kept(u64::MAX);
        self.advance(shared, entries, number, open);
    }

    fn fail(&self, shared: &Shared, command: u64, kind: Option<CommandKind>, cause: Cause) {
        let failure = Arc::new(CommandFailure { stream: self.core.id, command, kind, cause });
        let line = self.ring().consumer();
        line.failed.store(line.failed.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if line.first_failed.load(Ordering::Relaxed) == 0 {
            line.first_failed.store(command, Ordering::Relaxed);
            line.fault.store(failure.fault().map_or(0, |fault| fault.code()), Ordering::Relaxed);
        }
        // Streams have stopped before anybody is told.
        match self.core.options.on_failure {
            OnFailure::Continue => {}
            OnFailure::Stop => self.core.stop(&failure),
            OnFailure::StopAll => shared.streams().iter().for_each(|core| core.stop(&failure)),
        }
        self.core.told.change(|told| {
            told.failure.get_or_insert_with(|| Arc::clone(&failure));
        });
    }
}

/// A word of GM as the service waits for it.
fn word_at(shared: &Shared, at: GmAddr) -> Option<u64> {
    let gm = shared.memory.gm();
    if gm.is_remote() {
        return gm.read_words(at).ok().map(|[word]| word);
    }
    // Acquire: pairs with the Release store in `write_word`, or with whatever a kernel does.
    live_word(gm.window(), at).map(|word| word.load(Ordering::Acquire))
}

/// Writes a word of GM.
fn write_word(shared: &Shared, at: GmAddr, value: u64) -> Option<()> {
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
