//! Random programs in which things go wrong: commands fail, waits are not met in time, streams wait in cycles, streams and the
//! session are aborted, and the device has a trouble of its own.
//!
//! What must hold whatever happens: every wait ends; a command is over once; a stream reports only what was done to it; after a reset the
//! session works as if nothing had been, and all memory is free again.

use std::any::Any;
use std::time::Duration;

use pto_abi::GmAddr;
use pto_abi::session::ValueTest;

use super::outcome::{ProgramOutcome, Wrong, mixed, require};
use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::session::choice::Seeded;
use crate::session::error::{CommandFailure, FailureCause, SessionError};
use crate::session::event::Event;
use crate::session::host_buffer::HostBuffer;
use crate::session::options::{OnFailure, StreamOptions};
use crate::session::owner::Session;
use crate::session::stream::Stream;
use crate::session::submitted::Submitted;
use pto_aicore_kernels::func;

const STREAMS: usize = 3;
const EVENTS: usize = 2;
/// Steps of a program; some of them take several commands.
const STEPS: usize = 12;
/// Iterations of a kernel that is at it for longer than it may, in virtual time.
const FOR_EVER: u64 = 40_000;
const WAIT_BUDGET: Duration = Duration::from_micros(300);
/// What the kernels of some streams have, in virtual time: half of what the session allows.
const KERNEL_BUDGET: Duration = Duration::from_micros(20);
/// Bytes of a copy that a copy worker does.
const LARGE: usize = 1 << 14;

/// Runs a program. With `is_injected` the device may have a trouble of its own.
pub(super) fn run(
    session: &Session,
    random: &mut Seeded,
    is_injected: bool,
) -> Result<ProgramOutcome, Wrong> {
    let mut program = Program::new(session, random, is_injected)?;
    for _ in 0..STEPS {
        program.step(random)?;
    }
    let failed_streams = program.check()?;
    program.check_reset()?;
    let commands = program.closed + program.submitted.iter().sum::<u64>();
    Ok(ProgramOutcome { commands, failed_streams, hash: mixed(failed_streams) })
}

/// The failures that a stream may report.
#[derive(Clone, Copy, Default)]
struct Expected {
    /// A failure of a command of its own.
    of_command: bool,
    /// A wait that lasts too long.
    of_time: bool,
    /// It may be in a cycle of waits, together with other streams.
    of_cycle: bool,
    /// It was aborted.
    of_abort: bool,
}

struct Program<'s> {
    session: &'s Session,
    streams: Vec<Stream>,
    options: [StreamOptions; STREAMS],
    /// Commands of streams that were closed.
    closed: u64,
    events: Vec<Event>,
    words: DeviceBuffer<u64>,
    large: DeviceBuffer<u8>,
    expected: [Expected; STREAMS],
    /// A kernel may run for too long, which concerns every stream that has launches on the cores.
    may_fault: bool,
    /// The device may have a trouble of its own.
    is_injected: bool,
    submitted: [u64; STREAMS],
}

impl<'s> Program<'s> {
    fn new(
        session: &'s Session,
        random: &mut Seeded,
        is_injected: bool,
    ) -> Result<Self, SessionError> {
        let choices = [OnFailure::Continue, OnFailure::Stop, OnFailure::StopAll];
        let is_virtual = session.with_device(Device::has_virtual_clock)?;
        let options = [(); STREAMS].map(|()| StreamOptions {
            wait_budget: (random.below(2) == 0).then_some(WAIT_BUDGET),
            on_failure: choices[random.below(choices.len())],
            priority: u8::try_from(random.below(8)).unwrap_or(0),
            kernel_budget: (random.below(3) == 0 && is_virtual).then_some(KERNEL_BUDGET),
            ..StreamOptions::default()
        });
        Ok(Self {
            session,
            streams: options
                .iter()
                .map(|one| session.stream_with(*one))
                .collect::<Result<_, _>>()?,
            options,
            closed: 0,
            events: (0..EVENTS).map(|_| session.event()).collect::<Result<_, _>>()?,
            words: session.zeroed(2)?,
            large: session.zeroed(LARGE)?,
            expected: [Expected::default(); STREAMS],
            may_fault: false,
            is_injected,
            submitted: [0; STREAMS],
        })
    }

    /// A stream that has stopped refuses the command, and says so.
    fn took(
        &mut self,
        at: usize,
        result: Result<Submitted, SessionError>,
    ) -> Result<(), SessionError> {
        match result {
            Ok(submitted) => self.submitted[at] = submitted.number().unwrap_or(self.submitted[at]),
            Err(SessionError::Stopped { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn step(&mut self, random: &mut Seeded) -> Result<(), SessionError> {
        let at = random.below(STREAMS);
        let result = match random.below(21) {
            kind @ 0..=12 => self.ordinary(at, kind, random),
            13 => self.replay(at, random),
            14 => self.fail(at),
            15 => self.spin(at),
            16 => self.wait_long(at, random),
            17 => return self.deadlock(at, (at + 1 + random.below(STREAMS - 1)) % STREAMS),
            kind @ 18..=19 => {
                self.abort(at, kind == 18);
                return Ok(());
            }
            _ => return self.reopen(at),
        };
        self.took(at, result)
    }

    /// A command that does not fail by itself.
    fn ordinary(
        &self,
        at: usize,
        kind: usize,
        random: &mut Seeded,
    ) -> Result<Submitted, SessionError> {
        let stream = &self.streams[at];
        let event = &self.events[random.below(EVENTS)];
        let [word, _] = self.words();
        match kind {
            0..=3 => stream.launch(func::EMPTY_AIV, &[]),
            4 => stream.launch_blocks(func::EMPTY_AIC, 3, &[]),
            5 => stream.record(event),
            6 => stream.wait(event),
            7 => stream.write_value(word, random.below(9) as u64),
            8 => stream.fill(word, 7, 8),
            9 => stream.copy_to_device(self.large.address(), vec![1; LARGE]),
            10 => stream.copy_from_device(self.large.address(), &HostBuffer::new(LARGE)?),
            11 => self.reset(stream, event),
            _ => stream.call(std::thread::yield_now),
        }
    }

    fn words(&self) -> [GmAddr; 2] {
        [0, 8].map(|offset| self.words.address().offset(offset))
    }

    /// A recording is captured and launched twice.
    fn replay(&self, at: usize, random: &mut Seeded) -> Result<Submitted, SessionError> {
        let (stream, event) = (&self.streams[at], &self.events[random.below(EVENTS)]);
        stream.begin_capture()?;
        for _ in 0..=random.below(4) {
            stream.launch(func::EMPTY_AIV, &[])?;
        }
        if random.below(2) == 0 {
            stream.launch_blocks(func::EMPTY_AIC, 2, &[])?;
            stream.fill(self.words()[0], 7, 8)?;
            stream.call_each(std::thread::yield_now)?;
            stream.record(event)?;
            stream.launch(func::EMPTY_AIV, &[])?;
        }
        let recording = stream.end_capture()?;
        stream.launch_recording(&recording, &[])?;
        stream.launch_recording(&recording, &[])
    }

    fn fail(&mut self, at: usize) -> Result<Submitted, SessionError> {
        self.expected[at].of_command = true;
        let silent: Box<dyn Any + Send> = Box::new("on purpose");
        self.streams[at].call(move || std::panic::resume_unwind(silent))
    }

    fn spin(&mut self, at: usize) -> Result<Submitted, SessionError> {
        if !self.session.with_device(Device::has_virtual_clock)? {
            return self.streams[at].launch(func::EMPTY_AIV, &[]);
        }
        self.may_fault = true;
        self.streams[at].launch(func::SPIN_AIV, &[FOR_EVER])
    }

    /// A wait that no command may meet, in a stream that does not wait for ever.
    fn wait_long(&mut self, at: usize, random: &mut Seeded) -> Result<Submitted, SessionError> {
        let [_, word] = self.words();
        if !self.has_budget(at) {
            return self.streams[at].launch(func::EMPTY_AIC, &[]);
        }
        self.expected[at].of_time = true;
        match random.below(2) {
            0 => {
                // The next record may be one that waits for this stream.
                self.expected[at].of_cycle = true;
                self.streams[at].wait_next(&self.events[random.below(EVENTS)])
            }
            _ => self.streams[at].wait_value(word, ValueTest::EQUAL, 1),
        }
    }

    /// A wait after a reset would wait for a record that no stream may submit.
    fn reset(&self, stream: &Stream, event: &Event) -> Result<Submitted, SessionError> {
        stream.reset(event)?;
        self.record(stream, event)
    }

    /// Records an event that a wait needs. A stream that has stopped refuses to, also while it waits for room in its ring; then another stream records it.
    fn record(&self, stream: &Stream, event: &Event) -> Result<Submitted, SessionError> {
        let result = stream.record(event);
        if let Err(SessionError::Stopped { .. }) = result {
            match self.session.stream()?.record(event) {
                // All streams have stopped, and skip their waits.
                Ok(_) | Err(SessionError::Stopped { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        result
    }

    /// Two streams that wait for each other.
    fn deadlock(&mut self, one: usize, other: usize) -> Result<(), SessionError> {
        let (first, second) = (self.session.event()?, self.session.event()?);
        for at in [one, other] {
            self.expected[at].of_cycle = true;
            self.expected[at].of_time |= self.has_budget(at);
        }
        let calls = [
            (one, true, &first),
            (other, true, &second),
            (one, false, &second),
            (other, false, &first),
        ];
        for (at, waits, event) in calls {
            let stream = &self.streams[at];
            let result = if waits { stream.wait_next(event) } else { self.record(stream, event) };
            self.took(at, result)?;
        }
        Ok(())
    }

    /// A stream is closed with the commands that it still has, and another one replaces it.
    fn reopen(&mut self, at: usize) -> Result<(), SessionError> {
        self.streams[at] = self.session.stream_with(self.options[at])?;
        self.closed += std::mem::take(&mut self.submitted[at]);
        Ok(())
    }

    fn has_budget(&self, at: usize) -> bool {
        self.options[at].wait_budget.is_some()
    }

    fn abort(&mut self, at: usize, is_one: bool) {
        if is_one {
            self.expected[at].of_abort = true;
            self.streams[at].abort();
        } else {
            self.expected.iter_mut().for_each(|expected| expected.of_abort = true);
            self.session.abort();
        }
    }

    /// Waits for every stream; how many reported a failure, which must fit what was done.
    fn check(&self) -> Result<u64, Wrong> {
        let mut failed_streams = 0;
        for (at, stream) in self.streams.iter().enumerate() {
            match stream.synchronize() {
                Ok(()) => {}
                Err(error) => {
                    failed_streams += 1;
                    require(self.is_expected(at, &error), || format!("unexpected: {error}"))?;
                }
            }
            let (completed, submitted) = (stream.completed(), self.submitted[at]);
            require(completed == submitted, || {
                format!("{} has completed {completed} of {submitted} commands", stream.id())
            })?;
        }
        Ok(failed_streams)
    }

    fn is_expected(&self, at: usize, error: &SessionError) -> bool {
        match error {
            SessionError::Aborted { .. } => self.expected[at].of_abort,
            SessionError::Failed(failure) => self.is_due(at, failure),
            _ => false,
        }
    }

    fn is_due(&self, at: usize, failure: &CommandFailure) -> bool {
        let expected = self.expected[at];
        match failure.cause {
            FailureCause::HostFunction(_) => expected.of_command,
            FailureCause::TimedOut(_) => expected.of_time || self.has_budget(at),
            FailureCause::Deadlock(_) => self.expected.iter().any(|other| other.of_cycle),
            _ if is_of_device(failure) => self.may_fault || self.is_injected,
            _ => false,
        }
    }

    /// Nothing of the troubles is left. The device has its own trouble once, and may have it only now.
    fn check_reset(&mut self) -> Result<(), Wrong> {
        match self.try_reset() {
            Err(SessionError::Failed(failure)) if self.is_injected && is_of_device(&failure) => {
                self.try_reset()?;
            }
            tried => tried?,
        }
        for (stream, submitted) in self.streams.iter().zip(self.submitted) {
            let completed = stream.completed();
            require(completed == submitted, || {
                format!("after a reset {} has completed {completed} of {submitted}", stream.id())
            })?;
        }
        Ok(())
    }

    fn try_reset(&mut self) -> Result<(), SessionError> {
        self.session.reset()?;
        for (stream, submitted) in self.streams.iter().zip(&mut self.submitted) {
            *submitted = stream.launch(func::EMPTY_AIV, &[])?.number().unwrap_or(*submitted);
            stream.synchronize()?;
        }
        Ok(())
    }
}

fn is_of_device(failure: &CommandFailure) -> bool {
    matches!(failure.cause, FailureCause::Device(_) | FailureCause::Interrupted(_))
}
