//! What is on its way: frames that go out and come in, and payloads with what is to be done when they are through.
//!
//! Frames come in through receives that stand ready, from any rank; MPI fills them in the order in which they stand, and so
//! [`Frames::next`] looks at the oldest only.

use std::collections::VecDeque;

use crate::group::Span;
use crate::message::FRAME_BYTES;
use crate::table::{Lane, MAX_MESSAGE_BYTES};
use crate::wire::{Request, Wire, WireError, span_of};

/// Receives that stand ready. A burst of more waits in MPI.
const READY: usize = 16;
/// The tag of all frames.
const FRAME_TAG: i32 = 1;

/// Frames that go out, and receives for those that come in.
#[derive(Default)]
pub(crate) struct Frames {
    outgoing: Vec<(Request, Box<[u8]>)>,
    ready: VecDeque<(Request, Box<[u8]>)>,
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
        self.ready.push_back((request, frame));
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

    /// The next frame that has come in, with its sender.
    pub(crate) fn next(
        &mut self,
        wire: &mut impl Wire,
    ) -> Result<Option<(u32, Vec<u8>)>, WireError> {
        let Some((request, _)) = self.ready.front() else { return Ok(None) };
        let Some(arrival) = wire.test(*request)? else { return Ok(None) };
        let Some((_, frame)) = self.ready.pop_front() else { return Ok(None) };
        let length = usize::try_from(arrival.bytes).unwrap_or(0).min(frame.len());
        let found = frame[..length].to_vec();
        self.stand_ready(wire, frame)?;
        Ok(Some((arrival.peer, found)))
    }

    /// Forgets frames that are through; whether all are.
    pub(crate) fn flush(&mut self, wire: &mut impl Wire) -> Result<bool, WireError> {
        let mut at = 0;
        while let Some((request, _)) = self.outgoing.get(at) {
            match wire.test(*request)? {
                Some(_) => drop(self.outgoing.swap_remove(at)),
                None => at += 1,
            }
        }
        Ok(self.outgoing.is_empty())
    }

    /// Nothing comes in any more.
    pub(crate) fn close(&mut self, wire: &mut impl Wire) {
        for (request, frame) in self.ready.drain(..) {
            wire.give_up(request);
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
        memory: Span,
        what: T,
    ) -> Result<(), WireError> {
        let (mut requests, mut offset) = (Vec::with_capacity(1), 0);
        while offset < memory.bytes {
            let bytes = (memory.bytes - offset).min(MAX_MESSAGE_BYTES as u64);
            let piece = Span { address: memory.address + offset, bytes };
            requests.push(match way {
                Way::To(peer) => wire.send(Lane::Payload, piece, peer, tag)?,
                Way::From(peer) => wire.receive(Lane::Payload, piece, Some(peer), tag)?,
            });
            offset += piece.bytes;
        }
        self.under_way.push((requests, what));
        Ok(())
    }

    /// The payloads that are through.
    pub(crate) fn through(&mut self, wire: &mut impl Wire) -> Result<Vec<T>, WireError> {
        let (mut through, mut at) = (Vec::new(), 0);
        while let Some((requests, _)) = self.under_way.get_mut(at) {
            while let Some(request) = requests.last() {
                if wire.test(*request)?.is_none() {
                    break;
                }
                requests.pop();
            }
            if requests.is_empty() {
                through.push(self.under_way.swap_remove(at).1);
            } else {
                at += 1;
            }
        }
        Ok(through)
    }

    /// Gives all of them up.
    pub(crate) fn give_up(&mut self, wire: &mut impl Wire) {
        for (requests, _) in self.under_way.drain(..) {
            requests.into_iter().for_each(|request| wire.give_up(request));
        }
    }
}
