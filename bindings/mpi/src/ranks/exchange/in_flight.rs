//! Messages in flight: frames that go out and come in, and payloads with the step that follows their completion.
//!
//! Frames come in through posted receives, from any rank. MPI fills them in the order in which they were posted, and so
//! [`Frames::next`] takes them in that order.
//!
//! A step asks for all requests at once: `watched` names them, and `note` takes the answers in the same order.

use std::collections::VecDeque;

use crate::ranks::group::ByteRange;
use crate::ranks::message::FRAME_BYTES;
use crate::ranks::wire::{Arrival, RequestId, Wire, WireError, span_of};
use crate::table::{Channel, MAX_MESSAGE_BYTES};

/// Posted receives. A burst of more waits in MPI.
const READY: usize = 16;
/// Of these, those that a step asks for: each takes a little of every step.
const WATCHED: usize = 4;
/// The tag of all frames.
const FRAME_TAG: i32 = 1;

/// A posted receive, and the message that has come to it.
struct PostedReceive {
    request: RequestId,
    frame: Box<[u8]>,
    arrival: Option<Arrival>,
}

/// Frames that go out, and receives for those that come in.
#[derive(Default)]
pub(crate) struct Frames {
    outgoing: Vec<(RequestId, Box<[u8]>)>,
    ready: VecDeque<PostedReceive>,
}

impl Frames {
    /// Posts the receives.
    pub(crate) fn open(&mut self, wire: &mut impl Wire) -> Result<(), WireError> {
        while self.ready.len() < READY {
            self.post(wire, vec![0; FRAME_BYTES].into())?;
        }
        Ok(())
    }

    fn post(&mut self, wire: &mut impl Wire, mut frame: Box<[u8]>) -> Result<(), WireError> {
        let request = wire.receive(Channel::Control, span_of(&mut frame), None, FRAME_TAG)?;
        self.ready.push_back(PostedReceive { request, frame, arrival: None });
        Ok(())
    }

    /// Sends a frame.
    pub(crate) fn send(
        &mut self,
        wire: &mut impl Wire,
        to: u32,
        mut frame: Box<[u8]>,
    ) -> Result<(), WireError> {
        let request = wire.send(Channel::Control, span_of(&mut frame), to, FRAME_TAG)?;
        self.outgoing.push((request, frame));
        Ok(())
    }

    /// Adds the requests in flight: of frames that go out, and of the next ones that come in.
    pub(super) fn watched(&self, requests: &mut Vec<RequestId>) {
        requests.extend(self.outgoing.iter().map(|(request, _)| *request));
        let next = self.ready.iter().take(WATCHED).filter(|ready| ready.arrival.is_none());
        requests.extend(next.map(|ready| ready.request));
    }

    /// Takes the answers for [`watched`](Self::watched): forgets frames that are through, and keeps those that have come.
    pub(super) fn note(&mut self, answers: &[Option<Arrival>]) {
        let mut answers = answers.iter().copied();
        self.outgoing.retain(|_| answers.next().flatten().is_none());
        let next = self.ready.iter_mut().take(WATCHED).filter(|ready| ready.arrival.is_none());
        next.zip(answers).for_each(|(ready, answer)| ready.arrival = answer);
    }

    /// The next frame that has come in, with its sender.
    pub(crate) fn next(
        &mut self,
        wire: &mut impl Wire,
    ) -> Result<Option<(u32, Vec<u8>)>, WireError> {
        let Some(arrival) = self.ready.front().and_then(|ready| ready.arrival) else {
            return Ok(None);
        };
        let Some(PostedReceive { frame, .. }) = self.ready.pop_front() else { return Ok(None) };
        let length = usize::try_from(arrival.bytes).unwrap_or(0).min(frame.len());
        let found = frame[..length].to_vec();
        self.post(wire, frame)?;
        Ok(Some((arrival.peer, found)))
    }

    /// Whether all frames are in flight.
    pub(super) fn are_sent(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Nothing comes in any more.
    pub(crate) fn close(&mut self, wire: &mut impl Wire) {
        for PostedReceive { request, frame, arrival } in self.ready.drain(..) {
            if arrival.is_none() {
                wire.give_up(request);
            }
            // MPI may hold on to the bytes until it ends.
            Box::leak(frame);
        }
    }
}

/// Payloads in flight, each with what it is for.
pub(crate) struct Payloads<T> {
    in_flight: Vec<(Vec<RequestId>, T)>,
}

impl<T> Default for Payloads<T> {
    fn default() -> Self {
        Self { in_flight: Vec::new() }
    }
}

/// Whether a payload goes out or comes in, and the other rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    To(u32),
    From(u32),
}

impl<T> Payloads<T> {
    /// Begins a payload, in pieces where one message cannot hold it.
    pub(crate) fn begin(
        &mut self,
        wire: &mut impl Wire,
        (direction, tag): (Direction, i32),
        memory: ByteRange,
        what: T,
    ) -> Result<(), WireError> {
        let (mut requests, mut offset) = (Vec::with_capacity(1), 0);
        while offset < memory.bytes {
            let bytes = (memory.bytes - offset).min(MAX_MESSAGE_BYTES as u64);
            let piece = ByteRange { address: memory.address + offset, bytes };
            requests.push(match direction {
                Direction::To(peer) => wire.send(Channel::Payload, piece, peer, tag)?,
                Direction::From(peer) => wire.receive(Channel::Payload, piece, Some(peer), tag)?,
            });
            offset += piece.bytes;
        }
        self.in_flight.push((requests, what));
        Ok(())
    }

    /// Adds the requests in flight.
    pub(super) fn watched(&self, requests: &mut Vec<RequestId>) {
        self.in_flight.iter().for_each(|(of_one, _)| requests.extend(of_one));
    }

    /// Takes the answers for [`watched`](Self::watched); returns the payloads that are through.
    pub(super) fn note(&mut self, answers: &[Option<Arrival>]) -> Vec<T> {
        let mut answers = answers.iter().copied();
        for (requests, _) in &mut self.in_flight {
            requests.retain(|_| answers.next().flatten().is_none());
        }
        let through = self.in_flight.extract_if(.., |(requests, _)| requests.is_empty());
        through.map(|(_, what)| what).collect()
    }

    /// Gives all of them up.
    pub(crate) fn give_up(&mut self, wire: &mut impl Wire) {
        for (requests, _) in self.in_flight.drain(..) {
            requests.into_iter().for_each(|request| wire.give_up(request));
        }
    }
}
