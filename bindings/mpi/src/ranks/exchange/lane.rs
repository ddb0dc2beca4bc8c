//! What is on its way: frames that go out and come in, and payloads with what is to be done when they are through.
//!
//! Frames come in through receives that stand ready, from any rank. MPI fills them in the order in which they stand, and so
//! [`Frames::next`] takes them in that order.
//!
//! A step asks for all requests at once: `watched` names them, and `note` takes the answers in the same order.

use std::collections::VecDeque;

use crate::ranks::group::ByteRange;
use crate::ranks::message::FRAME_BYTES;
use crate::ranks::wire::{Arrival, Request, Wire, WireError, span_of};
use crate::table::{Lane, MAX_MESSAGE_BYTES};

/// Receives that stand ready. A burst of more waits in MPI.
const READY: usize = 16;
/// Of these, those that a step asks for: each takes a little of every step.
const WATCHED: usize = 4;
/// The tag of all frames.
const FRAME_TAG: i32 = 1;

/// A receive that stands ready, and what has come to it.
struct Ready {
    request: Request,
    frame: Box<[u8]>,
    arrival: Option<Arrival>,
}

/// Frames that go out, and receives for those that come in.
#[derive(Default)]
pub(crate) struct Frames {
    outgoing: Vec<(Request, Box<[u8]>)>,
    ready: VecDeque<Ready>,
}

impl Frames {
    /// Has receives stand ready.
    pub(crate) fn open(&mut self, wire: &mut impl Wire) -> Result<(), WireError> {
        while self.ready.len() < READY {
            self.stand_ready(wire, vec![0; FRAME_BYTES].into())?;
        }
        Ok(())
    }

    fn stand_ready(&mut self, wire: &mut impl Wire, mut frame: Box<[u8]>) -> Result<(), WireError> {
        let request = wire.receive(Lane::Control, span_of(&mut frame), None, FRAME_TAG)?;
        self.ready.push_back(Ready { request, frame, arrival: None });
        Ok(())
    }

    /// Sends a frame.
    pub(crate) fn send(
        &mut self,
        wire: &mut impl Wire,
        to: u32,
        mut frame: Box<[u8]>,
    ) -> Result<(), WireError> {
        let request = wire.send(Lane::Control, span_of(&mut frame), to, FRAME_TAG)?;
        self.outgoing.push((request, frame));
        Ok(())
    }

    /// Adds the requests under way: of frames that go out, and of the next ones that come in.
    pub(super) fn watched(&self, requests: &mut Vec<Request>) {
        requests.extend(self.outgoing.iter().map(|(request, _)| *request));
        let next = self.ready.iter().take(WATCHED).filter(|ready| ready.arrival.is_none());
        requests.extend(next.map(|ready| ready.request));
    }

    /// Takes what [`watched`](Self::watched) has asked for: forgets frames that are through, and keeps those that have come.
    pub(super) fn note(&mut self, told: &[Option<Arrival>]) {
        let mut told = told.iter().copied();
        self.outgoing.retain(|_| told.next().flatten().is_none());
        let next = self.ready.iter_mut().take(WATCHED).filter(|ready| ready.arrival.is_none());
        next.zip(told).for_each(|(ready, told)| ready.arrival = told);
    }

    /// The next frame that has come in, with its sender.
    pub(crate) fn next(
        &mut self,
        wire: &mut impl Wire,
    ) -> Result<Option<(u32, Vec<u8>)>, WireError> {
        let Some(arrival) = self.ready.front().and_then(|ready| ready.arrival) else {
            return Ok(None);
        };
        let Some(Ready { frame, .. }) = self.ready.pop_front() else { return Ok(None) };
        let length = usize::try_from(arrival.bytes).unwrap_or(0).min(frame.len());
        let found = frame[..length].to_vec();
        self.stand_ready(wire, frame)?;
        Ok(Some((arrival.peer, found)))
    }

    /// Whether all frames are on their way.
    pub(super) fn are_sent(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Nothing comes in any more.
    pub(crate) fn close(&mut self, wire: &mut impl Wire) {
        for Ready { request, frame, arrival } in self.ready.drain(..) {
            if arrival.is_none() {
                wire.give_up(request);
            }
            // MPI may hold on to the bytes until it ends.
            Box::leak(frame);
        }
    }
}

/// Payloads under way, each with what it is for.
pub(crate) struct Payloads<T> {
    under_way: Vec<(Vec<Request>, T)>,
}

impl<T> Default for Payloads<T> {
    fn default() -> Self {
        Self { under_way: Vec::new() }
    }
}

/// Which way a payload goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    To(u32),
    From(u32),
}

impl<T> Payloads<T> {
    /// Begins a payload, in pieces where one message cannot hold it.
    pub(crate) fn begin(
        &mut self,
        wire: &mut impl Wire,
        (way, tag): (Way, i32),
        memory: ByteRange,
        what: T,
    ) -> Result<(), WireError> {
        let (mut requests, mut offset) = (Vec::with_capacity(1), 0);
        while offset < memory.bytes {
            let bytes = (memory.bytes - offset).min(MAX_MESSAGE_BYTES as u64);
            let piece = ByteRange { address: memory.address + offset, bytes };
            requests.push(match way {
                Way::To(peer) => wire.send(Lane::Payload, piece, peer, tag)?,
                Way::From(peer) => wire.receive(Lane::Payload, piece, Some(peer), tag)?,
            });
            offset += piece.bytes;
        }
        self.under_way.push((requests, what));
        Ok(())
    }

    /// Adds the requests under way.
    pub(super) fn watched(&self, requests: &mut Vec<Request>) {
        self.under_way.iter().for_each(|(of_one, _)| requests.extend(of_one));
    }

    /// Takes what [`watched`](Self::watched) has asked for; the payloads that are through.
    pub(super) fn note(&mut self, told: &[Option<Arrival>]) -> Vec<T> {
        let mut told = told.iter().copied();
        for (requests, _) in &mut self.under_way {
            requests.retain(|_| told.next().flatten().is_none());
        }
        let through = self.under_way.extract_if(.., |(requests, _)| requests.is_empty());
        through.map(|(_, what)| what).collect()
    }

    /// Gives all of them up.
    pub(crate) fn give_up(&mut self, wire: &mut impl Wire) {
        for (requests, _) in self.under_way.drain(..) {
            requests.into_iter().for_each(|request| wire.give_up(request));
        }
    }
}
