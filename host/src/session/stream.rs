//! A stream: commands in order, independent of other streams but for events.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use pto_abi::limits::MAX_ARGS;
use pto_abi::session::command::LAUNCH_WORDS;
use pto_abi::session::{CommandHead, CommandKind, ValueTest};
use pto_abi::task::TRANSFER as TRANSFER_KIND;
use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_aicore_kernels::LibraryKernel;
use pto_aicore_kernels::tile::DType;
use pto_graph::group::transfer::WORDS as TRANSFER_WORDS;
use pto_graph::group::{TRANSFER, Transfer};

use super::capture::{Capture, Captured, KernelCall, Recording};
use super::captured::{CapturedCommand, CapturedObject, CapturedRun};
use super::command_object::{Barrier, CommandObject};
use super::error::{CommandFailure, SessionError};
use super::event::Event;
use super::guarded::HostFunction;
use super::host_buffer::HostBuffer;
use super::ids::StreamId;
use super::mark::StreamMark;
use super::monitor::{Driver, Unmet};
use super::notify::Notify;
use super::options::StreamOptions;
use super::owned_work::{OwnedWork, RunTicket};
use super::owner::Session;
use super::reduction::Reduction;
use super::serving;
use super::session_core::SessionCore;
use super::stream_core::{StreamCore, StreamStatus, Submitting};
use super::submitted::Submitted;
use crate::call_check::check_call;
use crate::error::Error;
use crate::memory::Memory;
use crate::options::RunOptions;

/// Arguments that most launches do not exceed.
const FEW_ARGS: usize = 13;

/// A stream of a session, which is an owner of that session. It may be used from several threads; then their commands come in the order of the calls. When it is
/// dropped, the commands that were submitted still run, unless it was the last owner; a capture that was begun on it is over.
pub struct Stream {
    core: Arc<StreamCore>,
    shared: Arc<SessionCore>,
    session: Session,
}

impl Stream {
    pub(super) fn of(core: Arc<StreamCore>, shared: Arc<SessionCore>, session: Session) -> Self {
        Self { core, shared, session }
    }

    /// The stream's session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The stream's number in the session.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.core.id
    }

    /// A mark after everything that was submitted to it so far.
    #[must_use]
    pub fn mark(&self) -> StreamMark {
        StreamMark::of(&self.core)
    }

    /// Whether a mark is of this stream.
    #[inline]
    #[must_use]
    pub fn has(&self, mark: &StreamMark) -> bool {
        mark.is_of(&self.core)
    }

    /// Gives kernels of the stream that begin from here on another time than [`StreamOptions::kernel_budget`]: also those that were submitted
    /// before and have not begun.
    ///
    /// # Errors
    /// `Option`: below 1 us, above the task budget of the session, or not in whole microseconds.
    pub fn set_kernel_budget(&self, budget: Option<Duration>) -> Result<(), SessionError> {
        let options = StreamOptions { kernel_budget: budget, ..self.core.options };
        options.check_kernel_budget(self.shared.options.run.task_budget)?;
        self.core.set_kernel_budget(&options);
        Ok(())
    }

    /// Launches a registered kernel with the arguments `args`, on one core of the kind that it is written for. What
    /// became of the call is returned, here and by the other calls.
    ///
    /// # Errors
    /// `Argument`: the kernel is not registered, the device has no core for it, or there are more than 128 arguments. `Device`: a kernel of
    /// the library does not take the arguments (`Call`).
    /// `Stopped`, `RingFull`, `Ended`, of every call that submits.
    #[inline]
    pub fn launch(&self, func_id: FuncId, args: &[u64]) -> Result<Submitted, SessionError> {
        self.launch_blocks(func_id, 1, args)
    }

    /// Launches a kernel in `blocks` blocks: each runs once, with the same arguments, followed by its own block context.
    ///
    /// # Errors
    /// Those of [`Stream::launch`]; `Argument`: no block, or more than 65,535; more than 127 arguments with several blocks.
    #[inline]
    pub fn launch_blocks(
        &self,
        func_id: FuncId,
        blocks: u32,
        args: &[u64],
    ) -> Result<Submitted, SessionError> {
        // Most launches have few arguments: then little memory is cleared for them.
        if args.len() <= FEW_ARGS {
            self.launch_with(&mut [0; LAUNCH_WORDS + FEW_ARGS], func_id, blocks, args)
        } else {
            self.launch_with(&mut [0; LAUNCH_WORDS + MAX_ARGS], func_id, blocks, args)
        }
    }

    /// As [`Stream::launch_blocks`]; `room` holds the words of the command.
    #[inline]
    fn launch_with(
        &self,
        room: &mut [u64],
        func_id: FuncId,
        blocks: u32,
        args: &[u64],
    ) -> Result<Submitted, SessionError> {
        let kind = self.check_launch(func_id, blocks, args)?;
        let words = &mut room[..LAUNCH_WORDS + args.len()];
        words[..LAUNCH_WORDS].copy_from_slice(&[
            func_id.0.into(),
            kind.get().into(),
            blocks.into(),
        ]);
        words[LAUNCH_WORDS..].copy_from_slice(args);
        let side = self.with_room(CommandHead::entries_of(words.len()))?;
        if let Some(capture) = &side.capture {
            let call = KernelCall { func_id, kind: Some(kind), blocks, args: args.to_vec() };
            capture.add(self.id(), Captured::Launch(call));
            return Ok(Submitted::Captured);
        }
        self.submit(&side, CommandKind::LAUNCH, words, None)
    }

    #[inline]
    fn check_launch(
        &self,
        func_id: FuncId,
        blocks: u32,
        args: &[u64],
    ) -> Result<CoreKind, SessionError> {
        let most = MAX_ARGS - usize::from(blocks > 1);
        match self.shared.kernels.of(func_id) {
            Some((kind, library))
                if args.len() <= most && (1..=MAX_LAUNCH_BLOCKS).contains(&blocks) =>
            {
                if let Some(library) = library {
                    self.check_arguments(library, (args, blocks))?;
                }
                Ok(kind)
            }
            kernel => Err(refuse_launch(func_id, kernel.is_some(), blocks, args.len())),
        }
    }

    /// Whether its kernel takes a launch of a recording; transfers have none.
    pub(super) fn check_call(&self, call: &KernelCall) -> Result<(), SessionError> {
        match self.shared.kernels.of(call.func_id) {
            Some((_, Some(library))) if call.kind.is_some() => {
                self.check_arguments(library, (&call.args, call.blocks))
            }
            _ => Ok(()),
        }
    }

    /// Whether a kernel of the library takes these arguments.
    fn check_arguments(
        &self,
        library: &'static LibraryKernel,
        call: (&[u64], u32),
    ) -> Result<(), SessionError> {
        let signature = library.signature();
        check_call((&signature, signature.kind), call, &self.shared.memory)
            .map_err(|what| SessionError::Device(Arc::new(Error::Call { what })))
    }

    /// Starts a transfer, which a [`Communicator`](pto_graph::group::Communicator) makes (`send_transfer` and the others): a task as a launch is, which
    /// the transfer engine does and no core. The next command of the stream begins when it is over; other streams go on meanwhile. It may be captured.
    ///
    /// # Errors
    /// `Argument`: the device is in no group that was opened with [`Group::sessions`](crate::group::Group::sessions). Those of every call that submits.
    pub fn transfer(&self, transfer: &Transfer) -> Result<Submitted, SessionError> {
        if !self.shared.has_transfers {
            return Err(SessionError::Argument {
                what: "transfer: the device",
                found: "in no group".to_owned(),
                allowed: "a device whose session was opened by Group::sessions",
            });
        }
        let args = transfer.words();
        let side =
            self.with_room(const { CommandHead::entries_of(LAUNCH_WORDS + TRANSFER_WORDS) })?;
        if let Some(capture) = &side.capture {
            let (func_id, args) = (TRANSFER, args.to_vec());
            let call = KernelCall { func_id, kind: None, blocks: 1, args };
            capture.add(self.id(), Captured::Launch(call));
            return Ok(Submitted::Captured);
        }
        let mut words = [0; LAUNCH_WORDS + TRANSFER_WORDS];
        words[..LAUNCH_WORDS].copy_from_slice(&[TRANSFER.0.into(), TRANSFER_KIND.into(), 1]);
        words[LAUNCH_WORDS..].copy_from_slice(&args);
        self.submit(&side, CommandKind::LAUNCH, &words, None)
    }

    /// Runs a graph or a builder program, with the run options of the session. A run has the cores alone: it begins when
    /// the present kernels and runs have ended; copies and functions of the host go on during it.
    ///
    /// # Errors
    /// Those of every call that submits.
    pub fn run(&self, work: impl Into<OwnedWork>) -> Result<RunTicket, SessionError> {
        self.submit_run(work.into(), None)
    }

    /// As [`Stream::run`], with options of its own.
    ///
    /// # Errors
    /// Those of every call that submits.
    pub fn run_with(
        &self,
        work: impl Into<OwnedWork>,
        options: RunOptions,
    ) -> Result<RunTicket, SessionError> {
        self.submit_run(work.into(), Some(options))
    }

    fn submit_run(
        &self,
        work: OwnedWork,
        options: Option<RunOptions>,
    ) -> Result<RunTicket, SessionError> {
        let ticket = RunTicket::default();
        let options = options.or_else(|| self.options_of_runs());
        let run = CapturedRun { work, options, ticket: ticket.clone() };
        self.take(CommandKind::RUN, &[], CapturedObject::Run(Box::new(run)))?;
        Ok(ticket)
    }

    /// The options of runs that have none of their own; `None`: those of the session.
    pub(super) fn options_of_runs(&self) -> Option<RunOptions> {
        self.core.kernel_budget().map(|task_budget| self.own_options(task_budget))
    }

    /// The run options of the session, with this time for each kernel.
    fn own_options(&self, task_budget: Duration) -> RunOptions {
        RunOptions { task_budget, ..self.shared.options.run.clone() }
    }

    /// Copies `from` to `to`. A buffer is read when the copy's turn comes; a vector or a slice is taken over by this call.
    ///
    /// # Errors
    /// `Device` with `CopyOutOfRange`: the range is not in one live allocation. Those of every call that submits.
    pub fn copy_to_device(
        &self,
        to: GmAddr,
        from: impl Into<HostBuffer>,
    ) -> Result<Submitted, SessionError> {
        let from = from.into();
        let words = [to.0, from.bytes()];
        self.check_range(to, from.bytes())?;
        self.take(CommandKind::COPY_IN, &words, CapturedObject::Buffer(from))
    }

    /// Fills `to` from `from`.
    ///
    /// # Errors
    /// As [`Stream::copy_to_device`].
    pub fn copy_from_device(
        &self,
        from: GmAddr,
        to: &HostBuffer,
    ) -> Result<Submitted, SessionError> {
        let words = [from.0, to.bytes()];
        self.check_range(from, to.bytes())?;
        self.take(CommandKind::COPY_OUT, &words, CapturedObject::Buffer(to.clone()))
    }

    /// Copies `bytes` bytes on the device.
    ///
    /// # Errors
    /// `Argument`: the ranges overlap. As [`Stream::copy_to_device`].
    pub fn copy_on_device(
        &self,
        from: GmAddr,
        to: GmAddr,
        bytes: u64,
    ) -> Result<Submitted, SessionError> {
        self.check_apart(from, to, bytes)?;
        self.take(CommandKind::COPY, &[from.0, to.0, bytes], CapturedObject::Nothing)
    }

    /// Fills `bytes` bytes with `byte`.
    ///
    /// # Errors
    /// As [`Stream::copy_to_device`].
    pub fn fill(&self, to: GmAddr, byte: u8, bytes: u64) -> Result<Submitted, SessionError> {
        self.fill_elements(to, DType::U8, byte.into(), bytes)
    }

    /// Fills `bytes` bytes with elements of a type that have these bits.
    ///
    /// # Errors
    /// As [`Stream::copy_to_device`]; `Argument`: `bytes` is no number of whole elements, or an element has fewer bits.
    pub fn fill_elements(
        &self,
        to: GmAddr,
        dtype: DType,
        bits: u64,
        bytes: u64,
    ) -> Result<Submitted, SessionError> {
        let size = dtype.bytes();
        let element = bits.to_le_bytes();
        if !bytes.is_multiple_of(size as u64) || element[size..].iter().any(|byte| *byte != 0) {
            return Err(SessionError::Argument {
                what: "fill_elements: the bytes and the bits of an element",
                found: format!(
                    "{bytes} bytes, and an element of type {dtype} with the bits {bits:#x}"
                ),
                allowed: "whole elements, and bits that the type has",
            });
        }
        self.check_range(to, bytes)?;
        let mut pattern = [0; 8];
        pattern.chunks_mut(size).for_each(|part| part.copy_from_slice(&element[..size]));
        let words = [to.0, bytes, u64::from_le_bytes(pattern)];
        self.take(CommandKind::FILL, &words, CapturedObject::Nothing)
    }

    /// Calls `function` on a thread of the session; the stream waits for its return. A panic of it is a failure of the command.
    /// Within the function, a wait for this stream is refused with `Stuck`.
    ///
    /// # Errors
    /// `Capture`: a recording may call a function again, which [`Stream::call_each`] takes. Those of every call that submits.
    pub fn call(
        &self,
        function: impl FnOnce() + Send + 'static,
    ) -> Result<Submitted, SessionError> {
        let side = self.with_room(1)?;
        self.check_uncaptured(&side, "call", ONCE)?;
        let object = CommandObject::Function(HostFunction::new(function));
        self.submit(&side, CommandKind::CALL, &[], Some(object))
    }

    /// As [`Stream::call`], with a function that may be called again: where the stream is captured, each launch of the recording calls it.
    ///
    /// # Errors
    /// Those of every call that submits.
    pub fn call_each(
        &self,
        function: impl Fn() + Send + Sync + 'static,
    ) -> Result<Submitted, SessionError> {
        self.take(CommandKind::CALL, &[], CapturedObject::Function(Arc::new(function)))
    }

    /// Records `event`: its next record is complete when everything before in this stream is.
    ///
    /// # Errors
    /// `OtherSession`. Those of every call that submits.
    pub fn record(&self, event: &Event) -> Result<Submitted, SessionError> {
        self.check_event(event)?;
        let side = self.with_room(1)?;
        if let Some(capture) = &side.capture {
            event.core().set_joint(capture.joint(self.id()));
            return Ok(Submitted::Captured);
        }
        let record = event.core().next_record(self.id());
        let words = [event.core().address(), record];
        let object = CommandObject::Record(Arc::clone(event.core()), record);
        self.submit(&side, CommandKind::RECORD, &words, Some(object))
            .inspect_err(|_| event.core().forget(record))
    }

    /// Makes the stream wait for the record of `event` that is the last one now. An event that was never recorded is not
    /// waited for. An event that was recorded in a capture takes this stream into the capture.
    ///
    /// # Errors
    /// `OtherSession`; `Capture`: the stream is captured, and the event was not recorded in the same capture. Those of every
    /// call that submits.
    pub fn wait(&self, event: &Event) -> Result<Submitted, SessionError> {
        self.check_event(event)?;
        if let Some(joint) = event.core().joint() {
            let mut side = self.core.submitting();
            let joined = joint.join(self.id(), side.capture.as_ref());
            side.capture = Some(joined.ok_or_else(|| self.no_capture("wait", MIXED))?);
            return Ok(Submitted::Captured);
        }
        let side = self.with_room(1)?;
        self.check_uncaptured(&side, "wait", FOREIGN)?;
        self.submit_wait(&side, event, event.core().awaited())
    }

    /// Makes the stream wait for the next record of `event` that is submitted after this call.
    ///
    /// # Errors
    /// As [`Stream::wait`].
    pub fn wait_next(&self, event: &Event) -> Result<Submitted, SessionError> {
        self.check_event(event)?;
        let side = self.uncaptured_with_room("wait_next")?;
        self.submit_wait(&side, event, event.core().next())
    }

    /// As [`Stream::wait`]; a wait that lasts for longer than `limit` fails with the cause `TimedOut`.
    ///
    /// # Errors
    /// As [`Stream::wait`]; `Capture` also where the event was recorded in a capture: graphs have no limits of waits.
    pub fn wait_within(&self, event: &Event, limit: Duration) -> Result<Submitted, SessionError> {
        self.check_event(event)?;
        let side = self.uncaptured_with_room("wait_within")?;
        self.within(limit, || self.submit_wait(&side, event, event.core().awaited()))
    }

    /// As [`Stream::wait_next`]; a wait that lasts for longer than `limit` fails with the cause `TimedOut`.
    ///
    /// # Errors
    /// As [`Stream::wait`].
    pub fn wait_next_within(
        &self,
        event: &Event,
        limit: Duration,
    ) -> Result<Submitted, SessionError> {
        self.check_event(event)?;
        let side = self.uncaptured_with_room("wait_next_within")?;
        self.within(limit, || self.submit_wait(&side, event, event.core().next()))
    }

    fn submit_wait(
        &self,
        side: &Submitting,
        event: &Event,
        record: u64,
    ) -> Result<Submitted, SessionError> {
        let words = [event.core().address(), record];
        let object = CommandObject::Event(Arc::clone(event.core()));
        self.submit(side, CommandKind::WAIT, &words, Some(object))
    }

    /// Resets `event`: until it is recorded again it is not complete, and a wait waits for that record.
    ///
    /// # Errors
    /// `OtherSession`. Those of every call that submits.
    pub fn reset(&self, event: &Event) -> Result<Submitted, SessionError> {
        self.check_event(event)?;
        let side = self.uncaptured_with_room("reset")?;
        let submitted = self.submit(&side, CommandKind::RESET, &[event.core().address()], None)?;
        event.core().reset();
        Ok(submitted)
    }

    /// Writes a word of GM.
    ///
    /// # Errors
    /// `Argument`: the address is not a multiple of 8. As [`Stream::copy_to_device`].
    pub fn write_value(&self, at: GmAddr, value: u64) -> Result<Submitted, SessionError> {
        self.check_word(at)?;
        self.take(CommandKind::WRITE_VALUE, &[at.0, value], CapturedObject::Nothing)
    }

    /// Makes the stream wait until a word of GM is as `test` says. A stream, a kernel or the host may write it.
    ///
    /// # Errors
    /// As [`Stream::write_value`].
    pub fn wait_value(
        &self,
        at: GmAddr,
        test: ValueTest,
        value: u64,
    ) -> Result<Submitted, SessionError> {
        self.check_word(at)?;
        let words = [at.0, value, test.get().into()];
        self.take(CommandKind::WAIT_VALUE, &words, CapturedObject::Nothing)
    }

    /// As [`Stream::wait_value`]; a wait that lasts for longer than `limit` fails with the cause `TimedOut`.
    ///
    /// # Errors
    /// As [`Stream::write_value`].
    pub fn wait_value_within(
        &self,
        at: GmAddr,
        test: ValueTest,
        value: u64,
        limit: Duration,
    ) -> Result<Submitted, SessionError> {
        self.check_word(at)?;
        let side = self.uncaptured_with_room("wait_value_within")?;
        let words = [at.0, value, test.get().into()];
        self.within(limit, || self.submit(&side, CommandKind::WAIT_VALUE, &words, None))
    }

    /// Submits a wait with a limit of its own. The caller has the right to submit.
    fn within(
        &self,
        limit: Duration,
        submit: impl FnOnce() -> Result<Submitted, SessionError>,
    ) -> Result<Submitted, SessionError> {
        let number = self.core.limit(limit);
        submit().inspect_err(|_| self.core.unlimit(number))
    }

    /// Raises a flag of the device.
    ///
    /// # Errors
    /// `OtherSession`. Those of every call that submits.
    pub fn notify(&self, notify: &Notify) -> Result<Submitted, SessionError> {
        self.check_notify(notify)?;
        self.write_value(notify.address(), 1)
    }

    /// Waits for a flag of the device, and lowers it. These are two commands; the number of the second one is returned.
    ///
    /// # Errors
    /// `OtherSession`. Those of every call that submits.
    pub fn wait_notify(&self, notify: &Notify) -> Result<Submitted, SessionError> {
        self.check_notify(notify)?;
        let at = notify.address();
        self.check_word(at)?;
        let wait = [at.0, 1, ValueTest::EQUAL.get().into()];
        let lower = [at.0, 0];
        // No other thread's command comes between the two. If the stream stops after the first one, the second is skipped.
        let side = self.with_room(2)?;
        self.take_on(&side, CommandKind::WAIT_VALUE, &wait, CapturedObject::Nothing)?;
        self.take_on(&side, CommandKind::WRITE_VALUE, &lower, CapturedObject::Nothing)
    }

    /// Reduces `bytes` bytes of `from` into `to`: each element of the target becomes what it is together with the one of the source.
    ///
    /// # Errors
    /// `Argument`: the ranges overlap, or `bytes` are not whole elements. As [`Stream::copy_to_device`].
    pub fn reduce(
        &self,
        (reduction, dtype): (Reduction, DType),
        from: GmAddr,
        to: GmAddr,
        bytes: u64,
    ) -> Result<Submitted, SessionError> {
        self.check_apart(from, to, bytes)?;
        if !bytes.is_multiple_of(dtype.bytes() as u64) {
            return Err(SessionError::Argument {
                what: "reduce: the bytes",
                found: format!("{bytes}"),
                allowed: "whole elements",
            });
        }
        let words = [from.0, to.0, bytes, reduction.word(dtype)];
        self.take(CommandKind::REDUCE, &words, CapturedObject::Nothing)
    }

    pub(super) fn barrier(&self, barrier: &Arc<Barrier>) -> Result<Submitted, SessionError> {
        let side = self.uncaptured_with_room("barrier")?;
        let object = CommandObject::Barrier(Arc::clone(barrier));
        self.submit(&side, CommandKind::BARRIER, &[0], Some(object))
    }

    /// Submits a command, or makes it part of the capture.
    fn take(
        &self,
        kind: CommandKind,
        words: &[u64],
        object: CapturedObject,
    ) -> Result<Submitted, SessionError> {
        let side = self.with_room(CommandHead::entries_of(words.len()))?;
        self.take_on(&side, kind, words, object)
    }

    /// As `take`, for who has the right to submit, with room for the command.
    fn take_on(
        &self,
        side: &Submitting,
        kind: CommandKind,
        words: &[u64],
        object: CapturedObject,
    ) -> Result<Submitted, SessionError> {
        if let Some(capture) = &side.capture {
            let command = CapturedCommand { kind, words: words.to_vec(), object };
            capture.add(self.id(), Captured::Command(command));
            return Ok(Submitted::Captured);
        }
        self.submit(side, kind, words, CommandObject::of(&object))
    }

    /// The submitters' side of the stream.
    pub(super) fn submitting(&self) -> MutexGuard<'_, Submitting> {
        self.core.submitting()
    }

    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.shared.memory
    }

    /// Entries of its ring.
    pub(super) fn ring_entries(&self) -> u64 {
        self.shared.options.ring_entries as u64
    }

    /// The lock for submitting so many entries: their room stays while the caller holds it. If the stream is captured, room is not needed.
    ///
    /// A thread does not hold the lock while it waits for room: in a session that its waiting threads step, it runs the functions of the host, and
    /// they may submit to this stream.
    #[inline]
    pub(super) fn with_room(
        &self,
        entries: u64,
    ) -> Result<MutexGuard<'_, Submitting>, SessionError> {
        let side = self.core.submitting();
        if self.has_room(entries) || side.capture.is_some() {
            return Ok(side);
        }
        drop(side);
        self.await_room(entries)
    }

    /// Whether so many entries can be submitted.
    #[inline]
    pub(super) fn has_room(&self, entries: u64) -> bool {
        let is_open = !self.shared.has_ended() && !self.core.has_stopped();
        is_open && self.core.ring().room() >= entries
    }

    /// As [`Stream::with_room`], for a call that is no part of a capture and takes one entry.
    fn uncaptured_with_room(
        &self,
        call: &'static str,
    ) -> Result<MutexGuard<'_, Submitting>, SessionError> {
        let side = self.with_room(1)?;
        self.check_uncaptured(&side, call, CAPTURED)?;
        Ok(side)
    }

    /// Submits a command. The caller holds the lock, with room for it.
    #[inline]
    pub(super) fn submit(
        &self,
        _side: &Submitting,
        kind: CommandKind,
        words: &[u64],
        object: Option<CommandObject>,
    ) -> Result<Submitted, SessionError> {
        if !self.shared.deferred_frees.submitted() {
            return Err(SessionError::Ended);
        }
        if let Some(object) = object {
            self.core.keep(object);
        }
        let number = self.core.ring().put(kind, words);
        let number = number.expect("there is room, and the caller holds the lock");
        self.shared.notify(self.core.slot, kind);
        Ok(Submitted::Command(number))
    }

    /// Waits until there is room for this many entries, and takes the lock for submitting them.
    #[cold]
    pub(super) fn await_room(
        &self,
        entries: u64,
    ) -> Result<MutexGuard<'_, Submitting>, SessionError> {
        let start = Instant::now();
        loop {
            self.check_open()?;
            let budget = self.core.options.room_budget;
            let left = Some(budget.saturating_sub(start.elapsed()));
            let look = |_: &mut StreamStatus| {
                let is_over = self.shared.has_ended() || self.core.has_stopped();
                (is_over || self.core.ring().room() >= entries).then_some(())
            };
            match self.shared.driver.wait(&self.core.status, left, look) {
                Ok(()) => {}
                Err(Unmet::TimedOut(_)) => {
                    let (stream, state) = (self.id(), self.core.describe());
                    return Err(SessionError::RingFull { stream, waited: budget, state });
                }
                Err(Unmet::Stuck(state)) => return Err(SessionError::Stuck { state }),
            }
            // Another thread may have taken the room.
            let side = self.core.submitting();
            if self.has_room(entries) || side.capture.is_some() {
                return Ok(side);
            }
        }
    }

    fn check_open(&self) -> Result<(), SessionError> {
        if self.shared.has_ended() {
            return Err(SessionError::Ended);
        }
        let stopped = self.core.status.lock().stopped.clone();
        stopped.map_or(Ok(()), |cause| Err(SessionError::Stopped { stream: self.id(), cause }))
    }

    /// Whether it is a stream of the session with these.
    pub(super) fn is_of(&self, shared: &Arc<SessionCore>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    fn check_event(&self, event: &Event) -> Result<(), SessionError> {
        if event.is_of(&self.shared.driver) {
            return Ok(());
        }
        Err(SessionError::OtherSession { what: event.id().to_string() })
    }

    fn check_notify(&self, notify: &Notify) -> Result<(), SessionError> {
        if notify.is_of(&self.shared.memory) {
            return Ok(());
        }
        Err(SessionError::OtherSession { what: "the flag".to_owned() })
    }

    pub(super) fn check_range(&self, address: GmAddr, bytes: u64) -> Result<(), SessionError> {
        Ok(self.shared.memory.check_user_range(address, bytes)?)
    }

    /// Both ranges are in live allocations, and do not overlap.
    pub(super) fn check_apart(
        &self,
        from: GmAddr,
        to: GmAddr,
        bytes: u64,
    ) -> Result<(), SessionError> {
        self.check_range(from, bytes)?;
        self.check_range(to, bytes)?;
        if from.0 < to.0.saturating_add(bytes) && to.0 < from.0.saturating_add(bytes) {
            return Err(SessionError::Argument {
                what: "source and target on the device",
                found: format!("{bytes} bytes at {from} and at {to} overlap"),
                allowed: "ranges that do not",
            });
        }
        Ok(())
    }

    pub(super) fn check_word(&self, at: GmAddr) -> Result<(), SessionError> {
        if !at.0.is_multiple_of(8) {
            return Err(SessionError::Argument {
                what: "the address of a word",
                found: at.to_string(),
                allowed: "a multiple of 8",
            });
        }
        self.check_range(at, 8)
    }
}

/// Waiting for a stream.
impl Stream {
    /// Whether every command that was submitted is over. It reports no failure.
    ///
    /// # Errors
    /// `Capture`: the stream is captured.
    pub fn query(&self) -> Result<bool, SessionError> {
        let _side = self.uncaptured("query")?;
        Ok(self.core.is_idle())
    }

    /// How many commands of the stream are over.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.core.completed()
    }

    /// Waits until every command that was submitted before this call is over.
    ///
    /// # Errors
    /// `Failed`: the first command that failed since the last synchronise; the others are over as well. `Aborted`: the stream
    /// was aborted meanwhile. `Stuck`: in a session that is stepped, the stream cannot go on. `Capture`.
    pub fn synchronize(&self) -> Result<(), SessionError> {
        self.synchronize_within(None)
    }

    /// As [`Stream::synchronize`], at most for `limit`, if there is one.
    ///
    /// # Errors
    /// Those of [`Stream::synchronize`]; `TimedOut`, with what the stream does.
    pub fn synchronize_within(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> Result<(), SessionError> {
        // The lock on submissions is not held while this call waits.
        drop(self.uncaptured("synchronize")?);
        await_core(&self.core, &self.shared.driver, limit.into())
    }

    /// As [`Stream::synchronize_within`]; `goes_on` is called now and then, and when it returns `false`, the wait ends.
    ///
    /// # Errors
    /// Those of [`Stream::synchronize_within`]; `Interrupted`: `goes_on` has said no. What was submitted goes on.
    pub fn synchronize_while(
        &self,
        limit: Option<Duration>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), SessionError> {
        drop(self.uncaptured("synchronize")?);
        await_core_while(&self.core, &self.shared.driver, limit, goes_on)
    }

    /// Drops the commands that have not begun; those that have go on to their end. Records among the dropped ones count as
    /// complete. A wait for the stream fails with `Aborted`.
    pub fn abort(&self) {
        self.core.abort();
        self.shared.touch();
    }
}

/// Capture.
impl Stream {
    /// From here on commands become part of a recording instead of being done: launches, runs, copies, fills, reductions, values, flags, functions
    /// that can be called again, recordings, and events that are recorded and waited for within the capture. Streams that wait for an event which was recorded
    /// in the capture join it. Everything else is refused with the error `Capture`.
    ///
    /// # Errors
    /// `Capture`: the stream is captured.
    pub fn begin_capture(&self) -> Result<(), SessionError> {
        let mut side = self.uncaptured("begin_capture")?;
        side.capture = Some(Capture::begin(self.id()));
        Ok(())
    }

    /// Ends the capture that was begun on this stream, for every stream that takes part.
    ///
    /// # Errors
    /// `Capture`: the capture was not begun on this stream, or this stream has not waited for the end of another one that takes
    /// part. The capture is over in both cases but the first.
    pub fn end_capture(&self) -> Result<Recording, SessionError> {
        let capture = {
            let side = self.core.submitting();
            let begun = side.capture.clone().filter(|capture| capture.is_origin);
            begun.ok_or_else(|| self.no_capture("end_capture", NOT_BEGUN))?
        };
        let ended = capture.end(self.id());
        for stream in self.shared.streams() {
            let mut side = stream.submitting();
            if side.capture.as_ref().is_some_and(|other| other.is_same(&capture)) {
                side.capture = None;
            }
        }
        ended.map_err(|stream| SessionError::Capture {
            stream,
            call: "end_capture",
            why: "finds launches of this stream that the captured stream has not waited for; record an event after them \
                  and wait for it",
        })
    }

    /// While the stream is captured, keeps the owner of what its commands name until the capture ends. Without a capture nothing is kept.
    pub fn hold<T: Any + Send + Sync>(&self, owner: &Arc<T>) {
        if let Some(capture) = &self.core.submitting().capture {
            capture.hold(Arc::<T>::clone(owner));
        }
    }

    /// What [`hold`](Self::hold) was given in the capture that this stream takes part in, on any stream.
    #[must_use]
    pub fn holds(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        let side = self.core.submitting();
        side.capture.as_ref().map(Capture::holds).unwrap_or_default()
    }

    /// Whether it is captured.
    #[must_use]
    pub fn is_captured(&self) -> bool {
        self.core.submitting().capture.is_some()
    }

    fn uncaptured(&self, call: &'static str) -> Result<MutexGuard<'_, Submitting>, SessionError> {
        let side = self.core.submitting();
        self.check_uncaptured(&side, call, CAPTURED)?;
        Ok(side)
    }

    fn check_uncaptured(
        &self,
        side: &Submitting,
        call: &'static str,
        why: &'static str,
    ) -> Result<(), SessionError> {
        if side.capture.is_some() { Err(self.no_capture(call, why)) } else { Ok(()) }
    }

    fn no_capture(&self, call: &'static str, why: &'static str) -> SessionError {
        SessionError::Capture { stream: self.id(), call, why }
    }
}

/// How often a wait calls `goes_on`.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Waits until every command that was submitted before this call is over, and takes the stream's failure.
pub(super) fn await_core(
    core: &StreamCore,
    driver: &Driver,
    limit: Option<Duration>,
) -> Result<(), SessionError> {
    await_number(core, driver, |is_over| driver.wait(&core.status, limit, is_over))
}

/// As [`await_core`]; every [`ASK_EVERY`] it calls `goes_on`, and ends when that returns `false`.
fn await_core_while(
    core: &StreamCore,
    driver: &Driver,
    limit: Option<Duration>,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<(), SessionError> {
    if driver.is_stepped() {
        // The waiting thread steps the session itself, and its wait fails at once when nothing can happen.
        return await_core(core, driver, limit);
    }
    let start = Instant::now();
    let mut is_interrupted = false;
    let result = await_number(core, driver, |is_over| {
        loop {
            let left = limit.map(|limit| limit.saturating_sub(start.elapsed()));
            let turn = left.map_or(ASK_EVERY, |left| left.min(ASK_EVERY));
            match driver.wait(&core.status, Some(turn), &mut *is_over) {
                Err(Unmet::TimedOut(_)) if left.is_none_or(|left| left > turn) => {
                    is_interrupted = !goes_on();
                    if is_interrupted {
                        return Err(Unmet::TimedOut(start.elapsed()));
                    }
                }
                Err(Unmet::TimedOut(waited)) => {
                    return Err(Unmet::TimedOut(limit.unwrap_or(waited)));
                }
                ended => return ended,
            }
        }
    });
    if is_interrupted {
        return Err(SessionError::Interrupted { stream: core.id });
    }
    result
}

/// The result of a wait for a stream: its failure, and whether it was aborted meanwhile.
type WaitResult = (Option<Arc<CommandFailure>>, bool);

/// Waits by `wait` for the commands that were submitted before this call.
fn await_number(
    core: &StreamCore,
    driver: &Driver,
    wait: impl FnOnce(
        &mut dyn FnMut(&mut StreamStatus) -> Option<WaitResult>,
    ) -> Result<WaitResult, Unmet>,
) -> Result<(), SessionError> {
    check_not_own(core, driver)?;
    let last = core.ring().commands();
    let aborts = core.status.lock().aborts;
    // Commands that are over within a moment need no wake-up.
    driver.expect_soon(|| core.completed() >= last);
    let waited = wait(&mut |status| {
        (core.completed() >= last).then(|| (status.failure.take(), status.aborts != aborts))
    });
    let stream = core.id;
    match waited {
        Ok((Some(failure), _)) => Err(SessionError::Failed(failure)),
        Ok((None, true)) => Err(SessionError::Aborted { stream }),
        Ok((None, false)) => Ok(()),
        Err(Unmet::TimedOut(waited)) => {
            Err(SessionError::TimedOut { stream, waited, state: core.describe() })
        }
        Err(Unmet::Stuck(state)) => Err(SessionError::Stuck { state }),
    }
}

/// Waits until the commands up to this number are over; it takes no failure.
pub(super) fn await_over(
    core: &StreamCore,
    last: u64,
    driver: &Driver,
) -> Result<(), SessionError> {
    check_not_own(core, driver)?;
    let is_over = |_: &mut StreamStatus| (core.completed() >= last).then_some(());
    driver.wait(&core.status, None, is_over).map_err(stuck)
}

/// Waits until the stream has seen so many resets of its session. One that has not stopped need not.
pub(super) fn await_reset(
    core: &StreamCore,
    resets: u64,
    driver: &Driver,
) -> Result<(), SessionError> {
    check_not_own(core, driver)?;
    // It may have stopped again meanwhile.
    let is_reset = |status: &mut StreamStatus| {
        (status.stopped.is_none() || status.resets >= resets).then_some(())
    };
    driver.wait(&core.status, None, is_reset).map_err(stuck)
}

/// A function does not wait for the stream that calls it.
fn check_not_own(core: &StreamCore, driver: &Driver) -> Result<(), SessionError> {
    if serving::is_called_by(driver.address(), core.id) {
        let state = format!("a function of {} waits for the stream that calls it", core.id);
        return Err(SessionError::Stuck { state });
    }
    Ok(())
}

fn stuck(unmet: Unmet) -> SessionError {
    match unmet {
        Unmet::Stuck(state) => SessionError::Stuck { state },
        Unmet::TimedOut(_) => SessionError::Stuck { state: "the time is over".to_owned() },
    }
}

const CAPTURED: &str = "is not possible while the stream is captured; end the capture first";
const ONCE: &str = "gives a function that can be called once, and a recording may be launched again; use call_each";
const FOREIGN: &str =
    "names an event that was not recorded in the capture; record it in a stream that takes part";
const MIXED: &str = "would mix two captures; end one of them first";
const NOT_BEGUN: &str =
    "ends a capture that was not begun on this stream; call it on the stream of begin_capture";

/// Blocks of one launch, at most.
pub const MAX_LAUNCH_BLOCKS: u32 = 0xFFFF;

#[cold]
fn refuse_launch(func_id: FuncId, is_known: bool, blocks: u32, args: usize) -> SessionError {
    let (what, found, allowed) = match is_known {
        false => (
            "launch: the kernel",
            format!("func id {func_id} has no kernel, or the device has no core for it"),
            "a func id that was registered with the session",
        ),
        true if blocks == 0 || blocks > MAX_LAUNCH_BLOCKS => {
            ("launch: the blocks", blocks.to_string(), "1 to 65,535")
        }
        true => (
            "launch: the arguments",
            format!("{args} words"),
            "at most 128, or 127 where there are several blocks",
        ),
    };
    SessionError::Argument { what, found, allowed }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.is_captured() {
            // Refused where the capture was begun on another stream.
            drop(self.end_capture());
        }
        self.core.close();
        self.shared.touch();
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.core.describe())
    }
}
