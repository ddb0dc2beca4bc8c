//! Random programs over streams, events, words, barriers, copies, reductions, recordings and functions of the host, whose results are
//! those of a reference that does everything in the order of the submissions.
//!
//! Each stream has a buffer of its own. A stream reads another one's buffer after that one's last command, and that
//! one waits until it was read. So every order that the waits allow gives the results of the reference.

use std::time::Duration;

use pto_abi::session::ValueTest;
use pto_aicore_kernels::tile::DType;

use super::outcome::{ProgramOutcome, Wrong, mixed, require};
use crate::buffer::DeviceBuffer;
use crate::session::choice::Seeded;
use crate::session::error::SessionError;
use crate::session::host_buffer::HostBuffer;
use crate::session::owner::Session;
use crate::session::reduction::Reduction;
use crate::session::stream::Stream;
use crate::session::submitted::Submitted;
use pto_aicore_kernels::func;

/// No program takes as long.
const LONG: Duration = Duration::from_secs(60);
const STREAMS: usize = 4;
/// Elements of each buffer: copies that the session does itself, and copies that a copy worker does.
const LENGTHS: [usize; 4] = [16, 16, 16, 4096];
/// Steps of a program; some of them take several commands.
const STEPS: usize = 12;

/// Runs a program.
pub(super) fn run(session: &Session, random: &mut Seeded) -> Result<ProgramOutcome, Wrong> {
    let mut program = Program::new(session, LENGTHS[random.below(LENGTHS.len())])?;
    for _ in 0..STEPS {
        program.step(random)?;
    }
    program.check()
}

struct Program<'s> {
    session: &'s Session,
    streams: Vec<Stream>,
    buffers: Vec<DeviceBuffer<f32>>,
    /// Each is written once, when the one that waits for it may go on.
    words: DeviceBuffer<u64>,
    words_used: u64,
    /// What the buffers hold after the commands so far.
    expected: Vec<Vec<f32>>,
    /// Copies to the host, and what they must hold in the end.
    copies: Vec<(HostBuffer, Vec<f32>)>,
    /// Commands of each stream so far.
    commands: [u64; STREAMS],
    /// Commands of streams that were closed.
    closed: u64,
}

impl<'s> Program<'s> {
    fn new(session: &'s Session, len: usize) -> Result<Self, SessionError> {
        let ones = vec![1.0_f32; len];
        Ok(Self {
            session,
            streams: (0..STREAMS).map(|_| session.stream()).collect::<Result<_, _>>()?,
            buffers: (0..STREAMS).map(|_| session.upload(&ones)).collect::<Result<_, _>>()?,
            words: session.zeroed(4 * STEPS)?,
            words_used: 0,
            expected: vec![ones; STREAMS],
            copies: Vec::new(),
            commands: [0; STREAMS],
            closed: 0,
        })
    }

    fn at(&self, stream: usize) -> u64 {
        self.buffers[stream].address().0
    }

    fn len(&self) -> u64 {
        self.buffers[0].len() as u64
    }

    /// The stream has taken a command.
    fn took(&mut self, stream: usize, submitted: Submitted) {
        self.commands[stream] = submitted.number().unwrap_or(self.commands[stream]);
    }

    fn step(&mut self, random: &mut Seeded) -> Result<(), SessionError> {
        let (one, other) = (random.below(STREAMS), random.below(STREAMS));
        match random.below(11) {
            0 | 1 => self.between(one, other, random, |program| program.add(one, other)),
            2 if one != other => {
                self.between(one, other, random, |program| program.copy(one, other))
            }
            3 if one != other => {
                self.between(one, other, random, |program| program.reduce(one, other))
            }
            4 => self.fill(one),
            5 => self.set(one, random.below(100)),
            6 => self.fetch(one),
            7 => self.replay(one, other, random.below(2) == 0),
            8 => self.barrier(random),
            9 => self.reopen(one),
            _ => self.nap(one),
        }
    }

    /// Does `of` between two streams: the other one waits before it goes on.
    fn between(
        &mut self,
        one: usize,
        other: usize,
        random: &mut Seeded,
        of: impl FnOnce(&mut Self) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        if one == other {
            return of(self);
        }
        self.follow(one, other, random)?;
        of(self)?;
        self.follow(other, one, random)
    }

    /// `waits` goes on after the present commands of `is_before`.
    fn follow(
        &mut self,
        waits: usize,
        is_before: usize,
        random: &mut Seeded,
    ) -> Result<(), SessionError> {
        let (later, earlier) = (&self.streams[waits], &self.streams[is_before]);
        let (recorded, waited) = match random.below(3) {
            0 => {
                let word = self.words.address().offset(8 * self.words_used);
                self.words_used += 1;
                let written = earlier.write_value(word, self.words_used)?;
                (written, later.wait_value(word, ValueTest::EQUAL, self.words_used)?)
            }
            1 => {
                let notify = self.session.notify()?;
                (earlier.notify(&notify)?, later.wait_notify(&notify)?)
            }
            _ => {
                let event = self.session.event()?;
                (earlier.record(&event)?, later.wait(&event)?)
            }
        };
        self.took(is_before, recorded);
        self.took(waits, waited);
        Ok(())
    }

    fn add(&mut self, one: usize, other: usize) -> Result<(), SessionError> {
        let words = [self.at(other), f32_word(0.5), self.at(one), self.len()];
        let submitted = self.streams[one].launch(func::ADD_SCALAR, &words)?;
        self.expected[one] = self.expected[other].iter().map(|value| value + 0.5).collect();
        self.took(one, submitted);
        Ok(())
    }

    fn copy(&mut self, one: usize, other: usize) -> Result<(), SessionError> {
        let [to, from] = [one, other].map(|stream| self.buffers[stream].address());
        let submitted = self.streams[one].copy_on_device(from, to, 4 * self.len())?;
        self.expected[one] = self.expected[other].clone();
        self.took(one, submitted);
        Ok(())
    }

    fn reduce(&mut self, one: usize, other: usize) -> Result<(), SessionError> {
        let [to, from] = [one, other].map(|stream| self.buffers[stream].address());
        let how = (Reduction::Max, DType::F32);
        let submitted = self.streams[one].reduce(how, from, to, 4 * self.len())?;
        let larger = self.expected[one].iter().zip(&self.expected[other]);
        self.expected[one] = larger.map(|(one, other)| one.max(*other)).collect();
        self.took(one, submitted);
        Ok(())
    }

    fn fill(&mut self, one: usize) -> Result<(), SessionError> {
        let half = self.buffers[one].len() / 2;
        let submitted = self.streams[one].fill(self.buffers[one].address(), 0, 4 * half as u64)?;
        self.expected[one][..half].fill(0.0);
        self.took(one, submitted);
        Ok(())
    }

    fn set(&mut self, one: usize, value: usize) -> Result<(), SessionError> {
        self.expected[one].fill(value as f32);
        let bytes = bytes_of(&self.expected[one]);
        let submitted = self.streams[one].copy_to_device(self.buffers[one].address(), bytes)?;
        self.took(one, submitted);
        Ok(())
    }

    fn fetch(&mut self, one: usize) -> Result<(), SessionError> {
        let buffer = HostBuffer::new(4 * self.buffers[one].len())?;
        let submitted = self.streams[one].copy_from_device(self.buffers[one].address(), &buffer)?;
        self.copies.push((buffer, self.expected[one].clone()));
        self.took(one, submitted);
        Ok(())
    }

    /// A recording of a fork over two streams, which writes to the buffer of the first one, launched twice.
    /// `has_others`: with commands that are no launches.
    fn replay(&mut self, one: usize, other: usize, has_others: bool) -> Result<(), SessionError> {
        let half = self.buffers[one].len() / 2;
        let words = |value, len| [self.at(one), f32_word(value), self.at(one), len];
        let stream = &self.streams[one];
        stream.begin_capture()?;
        stream.launch(func::ADD_SCALAR, &words(0.5, self.len()))?;
        if one != other {
            let (fork, join) = (self.session.event()?, self.session.event()?);
            let other = &self.streams[other];
            stream.record(&fork)?;
            other.wait(&fork)?;
            other.launch(func::ADD_SCALAR, &words(-0.25, half as u64))?;
            if has_others {
                other.call_each(std::thread::yield_now)?;
            }
            other.record(&join)?;
            stream.wait(&join)?;
        }
        stream.launch_blocks(func::EMPTY_AIC, 2, &[])?;
        stream.launch(func::ADD_SCALAR, &words(0.5, self.len()))?;
        let buffer = HostBuffer::new(4 * self.buffers[one].len())?;
        if has_others {
            // Each launch of the recording writes the host buffer. After the last launch the buffer holds that launch's result.
            stream.copy_from_device(self.buffers[one].address(), &buffer)?;
        }
        let recording = stream.end_capture()?;
        stream.launch_recording(&recording, &[])?;
        let submitted = stream.launch_recording(&recording, &[])?;
        self.expected[one].iter_mut().for_each(|value| *value += 2.0);
        if one != other {
            self.expected[one][..half].iter_mut().for_each(|value| *value -= 0.5);
        }
        if has_others {
            self.copies.push((buffer, self.expected[one].clone()));
        }
        self.took(one, submitted);
        Ok(())
    }

    fn barrier(&mut self, random: &mut Seeded) -> Result<(), SessionError> {
        let chosen: Vec<usize> = (0..STREAMS).filter(|_| random.below(2) == 0).collect();
        let streams: Vec<&Stream> = chosen.iter().map(|stream| &self.streams[*stream]).collect();
        self.session.barrier(&streams)?;
        chosen.into_iter().for_each(|stream| self.commands[stream] += 1);
        Ok(())
    }

    /// Another stream goes on with the buffer, after the commands of the one that is closed.
    fn reopen(&mut self, one: usize) -> Result<(), SessionError> {
        let (fresh, event) = (self.session.stream()?, self.session.event()?);
        let last = self.streams[one].record(&event)?;
        let first = fresh.wait(&event)?;
        self.streams[one] = fresh;
        self.closed += last.number().unwrap_or_default();
        self.took(one, first);
        Ok(())
    }

    fn nap(&mut self, one: usize) -> Result<(), SessionError> {
        let submitted = self.streams[one].call(std::thread::yield_now)?;
        self.took(one, submitted);
        Ok(())
    }

    /// Waits, and compares what came out.
    fn check(&self) -> Result<ProgramOutcome, Wrong> {
        self.session.synchronize_within(LONG)?;
        let mut hash = 0;
        for (stream, buffer) in self.buffers.iter().enumerate() {
            let (found, expected) = (buffer.read()?, &self.expected[stream]);
            require(found == *expected, || {
                format!("{}", Differs { stream, found: &found, expected })
            })?;
            hash = mixed(hash ^ u64::from(found[0].to_bits()));
        }
        for (copy, expected) in &self.copies {
            let holds = copy.to_vec() == bytes_of(expected);
            require(holds, || "a copy to the host does not hold what the buffer held".to_owned())?;
        }
        for (stream, commands) in self.streams.iter().zip(self.commands) {
            let completed = stream.completed();
            require(completed == commands, || {
                format!("{} has completed {completed} of {commands} commands", stream.id())
            })?;
        }
        let commands = self.closed + self.commands.iter().sum::<u64>();
        Ok(ProgramOutcome { commands, failed_streams: 0, hash })
    }
}

struct Differs<'a> {
    stream: usize,
    found: &'a [f32],
    expected: &'a [f32],
}

impl std::fmt::Display for Differs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pairs = self.found.iter().zip(self.expected);
        let first = pairs.enumerate().find(|(_, (found, expected))| found != expected);
        let Some((at, (found, expected))) = first else { return f.write_str("nothing differs") };
        let stream = self.stream;
        write!(f, "the buffer of stream {stream} holds {found} at {at}, and {expected} is expected")
    }
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn f32_word(value: f32) -> u64 {
    value.to_bits().into()
}
