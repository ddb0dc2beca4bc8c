//! Campaigns: random programs over streams in which commands fail, streams are aborted, and the session is reset, with every choice
//! of the service and of the firmware from a seed.
//!
//! What must hold whatever happens: every wait ends; a command is over once; what a stream is told fits what was done to it; after a
//! reset the session works as if nothing had been, and all memory is free again. `PTO_SESSION_PROGRAMS` sets how many programs
//! there are; a session runs [`A_SESSION`] of them, one after the other.

use std::time::Duration;

use pto_host::session::{Cause, Event, OnFailure, SessionError, SessionOptions, StreamOptions};
use pto_host::{Hosting, RunOptions, Session, Stream, func};

use super::random::Random;
use super::support::{device, options, pool, virtual_time};
use pto_host::session::Drive;

/// Programs that one session runs.
const A_SESSION: u64 = 100;
/// Longer than the task budget, in virtual time.
const FOR_EVER_NS: u64 = 1_000_000;

struct Troubled {
    streams: Vec<Stream>,
    events: Vec<Event>,
    /// How often something was done to each stream that it may be told of.
    troubles: Vec<u32>,
    submitted: Vec<u64>,
}

impl Troubled {
    fn new(session: &Session, random: &mut Random) -> Self {
        let choices = [OnFailure::Continue, OnFailure::Stop, OnFailure::StopAll];
        let stream = |random: &mut Random| {
            let on_failure = choices[usize::try_from(random.below(3)).unwrap()];
            let priority = u8::try_from(random.below(8)).unwrap();
            let options = StreamOptions { on_failure, priority, ..StreamOptions::default() };
            session.stream_with(options).unwrap()
        };
        Self {
            streams: (0..3).map(|_| stream(random)).collect(),
            events: (0..2).map(|_| session.event().unwrap()).collect(),
            troubles: vec![0; 3],
            submitted: vec![0; 3],
        }
    }

    /// A stream that has stopped refuses the command, and says so.
    fn submit(&mut self, at: usize, result: Result<u64, SessionError>) {
        match result {
            Ok(number) => self.submitted[at] = number,
            Err(SessionError::Stopped { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn add_command(&mut self, session: &Session, random: &mut Random, word: pto_host::abi::GmAddr) {
        let at = usize::try_from(random.below(3)).unwrap();
        let event = self.events[usize::try_from(random.below(2)).unwrap()].clone();
        let is_virtual = session.with_device(pto_host::Device::has_virtual_clock);
        let stream = &self.streams[at];
        let result = match random.below(14) {
            0..=3 => stream.launch(func::EMPTY_AIV, &[]),
            4 => stream.launch_blocks(func::EMPTY_AIC, 3, &[]),
            5 => stream.record(&event),
            6 => stream.wait(&event),
            7 => stream.write_value(word, random.below(9)),
            8 => stream.fill(word, 7, 8),
            9 => {
                self.troubles[at] += 1;
                let silent: Box<dyn std::any::Any + Send> = Box::new("on purpose");
                stream.call(move || std::panic::resume_unwind(silent))
            }
            11 | 12 => replay(stream, &event, random),
            10 if is_virtual => {
                // A fault of the run: a launch of another stream may be interrupted by it.
                self.troubles.iter_mut().for_each(|troubles| *troubles += 1);
                stream.launch(func::SPIN_AIV, &[FOR_EVER_NS])
            }
            _ => {
                self.troubles[at] += 1;
                stream.abort();
                return;
            }
        };
        self.submit(at, result);
    }

    /// Waits for every stream; what it is told must fit what was done.
    fn check(&self, what: &str) {
        let any_trouble = self.troubles.iter().any(|troubles| *troubles > 0);
        for (at, stream) in self.streams.iter().enumerate() {
            match stream.synchronize() {
                Ok(()) => {}
                Err(SessionError::Aborted { .. }) => assert!(self.troubles[at] > 0, "{what}"),
                Err(SessionError::Failed(failure)) => {
                    assert!(any_trouble, "{what}: {failure}");
                    assert!(
                        !matches!(failure.cause, Cause::Deadlock(_) | Cause::Defect(_)),
                        "{what}: {failure}"
                    );
                }
                Err(error) => panic!("{what}: {error}"),
            }
            assert_eq!(stream.completed(), self.submitted[at], "{what}, stream {at}");
        }
    }

    /// Nothing of the troubles is left.
    fn check_reset(&self, session: &Session, what: &str) {
        session.reset().unwrap();
        for (at, stream) in self.streams.iter().enumerate() {
            let number = stream.launch(func::EMPTY_AIV, &[]);
            let number = number.unwrap_or_else(|error| panic!("{what}: {error}"));
            stream.synchronize().unwrap_or_else(|error| panic!("{what}, stream {at}: {error}"));
            assert_eq!((stream.completed(), number), (self.submitted[at] + 1, number), "{what}");
        }
    }
}

/// A recording is captured and launched: a chain, or a fork over another stream of the session that is joined again.
fn replay(stream: &Stream, event: &Event, random: &mut Random) -> Result<u64, SessionError> {
    stream.begin_capture()?;
    for _ in 0..=random.below(4) {
        stream.launch(func::EMPTY_AIV, &[])?;
    }
    if random.below(2) == 0 {
        stream.launch_blocks(func::EMPTY_AIC, 2, &[])?;
        stream.record(event)?;
        stream.launch(func::EMPTY_AIV, &[])?;
    }
    let recording = stream.end_capture()?;
    stream.launch_recording(&recording, &[])?;
    stream.launch_recording(&recording, &[])
}

fn campaign(hosting: impl Fn(u64) -> Hosting, task_budget: Duration, sessions: u64) {
    for seed in 0..sessions {
        let run = RunOptions { task_budget, ..options().run };
        let drive = Some(Drive::Stepped { seed });
        let options = SessionOptions { run, drive, ..options() };
        let session = device(hosting(seed)).session(options).unwrap();
        let word = session.zeroed::<u64>(1).unwrap();
        let free = || session.with_device(|device| device.describe().gm_free_bytes);
        let mut before = 0;
        for program in 0..A_SESSION {
            let what = format!("session {seed}, program {program}");
            let mut random = Random(seed << 32 | program);
            let mut troubled = Troubled::new(&session, &mut random);
            for _ in 0..12 {
                troubled.add_command(&session, &mut random, word.address());
            }
            troubled.check(&what);
            troubled.check_reset(&session, &what);
            drop(troubled);
            session.synchronize().unwrap();
            // The first one has made the arena of the runs.
            if program == 1 {
                before = free();
            }
        }
        drop(session.stream().unwrap());
        session.reset().unwrap();
        assert!(free() >= before.saturating_sub(1 << 20), "session {seed} keeps memory");
    }
}

fn sessions(usual: u64) -> u64 {
    let programs = std::env::var("PTO_SESSION_PROGRAMS").ok().and_then(|text| text.parse().ok());
    programs.unwrap_or(usual * A_SESSION).div_ceil(A_SESSION)
}

#[test]
fn troubles_in_every_order() {
    campaign(|_| pool(), Duration::from_secs(60), sessions(40));
}

#[test]
fn troubles_in_virtual_time() {
    campaign(virtual_time, Duration::from_micros(100), sessions(2));
}
