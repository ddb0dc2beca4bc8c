//! Launching a recording: the firmware begins one that consists of launches as one command. One that has other commands as well is submitted piece by piece, with
//! nothing of anybody else between the pieces.

use std::sync::Arc;

use pto_abi::GmAddr;
use pto_abi::session::{CommandHead, CommandKind};

use super::capture::{Piece, Recording};
use super::captured::{Bindings, CapturedCommand};
use super::command_object::{CommandObject, RunCommand, RunWork};
use super::error::SessionError;
use super::owned_work::RunTicket;
use super::stream::Stream;
use super::stream_core::Submitting;
use super::submitted::Submitted;
use crate::buffer::DeviceBuffer;

/// What is submitted of a recording.
struct ReplayCommand {
    kind: CommandKind,
    words: CommandWords,
    object: Option<CommandObject>,
}

/// The result of a submission.
enum Attempt {
    /// The commands are in the ring; this is the last one.
    Done(Submitted),
    /// Nothing was submitted: the ring has no room for this many entries.
    NeedsRoom(u64),
}

/// The words of a command.
enum CommandWords {
    /// The address of the words of a recording, and their number.
    InGm([u64; 2]),
    Owned(Vec<u64>),
}

impl std::ops::Deref for CommandWords {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match self {
            Self::InGm(words) => words,
            Self::Owned(words) => words,
        }
    }
}

impl Stream {
    /// Launches a recording. Where an argument of a launch, an address of another command or a word of a builder is the first address of a pair of
    /// `bindings`, the second one replaces it. The firmware runs the launches concurrently with those of other streams; if more than five launches follow
    /// one directly, they are run as a graph, as by [`Stream::run`]. A recording of launches is one command; one with other commands is several, with nothing else of this stream between them.
    /// The number of the last command is returned. In a captured stream the recording becomes part of the capture.
    ///
    /// # Errors
    /// `Argument`: the recording does not name the first address of a pair, or has more commands than fit the ring. `Device`: the recording does not fit GM (`OutOfMemory`), or what it copies or fills is
    /// not there any more (`CopyOutOfRange`). Those of every call that submits.
    pub fn launch_recording(
        &self,
        recording: &Recording,
        bindings: &[(GmAddr, GmAddr)],
    ) -> Result<Submitted, SessionError> {
        if let Some((unbound, _)) = bindings.iter().find(|(from, _)| !recording.has_argument(*from))
        {
            return Err(SessionError::Argument {
                what: "launch_recording: a binding",
                found: format!("the recording does not name {unbound}"),
                allowed: "an address that was an argument while the stream was captured",
            });
        }
        let mut side = self.submitting();
        loop {
            if let Some(capture) = &side.capture {
                capture.nest(self.id(), recording, bindings);
                return Ok(Submitted::Captured);
            }
            let pieces = recording.pieces();
            let submitted = if pieces.is_empty() {
                // One command, for which nothing is allocated if the recording is in GM.
                let one = self.launches(&mut side, recording, bindings)?;
                self.submit_all(&side, [one])?
            } else {
                let mut submissions = Vec::with_capacity(pieces.len());
                for piece in pieces {
                    submissions.push(match piece {
                        Piece::Launches(launches) => {
                            self.launches(&mut side, launches, bindings)?
                        }
                        Piece::Command(command) => self.command(command, bindings)?,
                    });
                }
                self.submit_all(&side, submissions)?
            };
            match submitted {
                Attempt::Done(submitted) => return Ok(submitted),
                Attempt::NeedsRoom(entries) => {
                    drop(side);
                    side = self.await_room(entries)?;
                }
            }
        }
    }

    /// Submits them, if there is room for all.
    fn submit_all<S>(&self, side: &Submitting, submissions: S) -> Result<Attempt, SessionError>
    where
        S: AsRef<[ReplayCommand]> + IntoIterator<Item = ReplayCommand>,
    {
        let entries = |one: &ReplayCommand| CommandHead::entries_of(one.words.len());
        let entries: u64 = submissions.as_ref().iter().map(entries).sum();
        let most = self.ring_entries();
        if entries > most {
            return Err(SessionError::Argument {
                what: "launch_recording: the commands",
                found: format!("{entries} entries of the ring, which has {most}"),
                allowed: "a recording that fits the ring; open the session with more ring_entries",
            });
        }
        if !self.has_room(entries) {
            return Ok(Attempt::NeedsRoom(entries));
        }
        // There is one at least.
        let mut last = Submitted::Captured;
        for ReplayCommand { kind, words, object } in submissions {
            last = self.submit(side, kind, &words, object)?;
        }
        Ok(Attempt::Done(last))
    }

    fn launches(
        &self,
        side: &mut Submitting,
        launches: &Recording,
        bindings: Bindings<'_>,
    ) -> Result<ReplayCommand, SessionError> {
        let Some(words) = self.words_of(side, launches, bindings)? else {
            let work = RunWork::Recording(launches.clone(), bindings.to_vec());
            let options = self.options_of_runs();
            let command = RunCommand { work, options, ticket: RunTicket::default() };
            let object = Some(CommandObject::Run(Box::new(command)));
            return Ok(ReplayCommand {
                kind: CommandKind::RUN,
                words: CommandWords::Owned(Vec::new()),
                object,
            });
        };
        let words_in_gm = CommandWords::InGm([words.address().0, words.len() as u64]);
        let object = Some(CommandObject::Recorded(words));
        Ok(ReplayCommand { kind: CommandKind::REPLAY, words: words_in_gm, object })
    }

    fn command(
        &self,
        command: &CapturedCommand,
        bindings: Bindings<'_>,
    ) -> Result<ReplayCommand, SessionError> {
        let bound = command.bound(bindings);
        match bound.ranges().as_slice() {
            [(at, _)] if bound.is_of_word() => self.check_word(*at)?,
            [(from, bytes), (to, _)] => self.check_apart(*from, *to, *bytes)?,
            ranges => {
                for (at, bytes) in ranges {
                    self.check_range(*at, *bytes)?;
                }
            }
        }
        Ok(ReplayCommand {
            kind: bound.kind,
            object: CommandObject::of(&bound.object),
            words: CommandWords::Owned(bound.words),
        })
    }

    /// The words of a recording in GM; `None`: the firmware does not begin it.
    fn words_of(
        &self,
        side: &mut Submitting,
        recording: &Recording,
        bindings: Bindings<'_>,
    ) -> Result<Option<Arc<DeviceBuffer<u64>>>, SessionError> {
        let known = side.recorded.find(|known| known.is_same(recording), bindings);
        if known.is_some() {
            return Ok(known);
        }
        let Some(words) = recording.words(bindings) else { return Ok(None) };
        for call in recording.calls(bindings) {
            self.check_call(&call)?;
        }
        let words = Arc::new(DeviceBuffer::upload(self.memory(), &words)?);
        side.recorded.keep(recording.clone(), bindings, &words);
        Ok(Some(words))
    }
}
