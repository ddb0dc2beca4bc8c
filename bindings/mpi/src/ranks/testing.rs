//! A network within one process, for tests: messages are copied when both sides are there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::ranks::group::ByteRange;
use crate::ranks::wire::{Arrival, Request, Wire, WireError, copied, fill};
use crate::table::Lane;

#[derive(Clone, Copy)]
struct Message {
    number: u64,
    lane: Lane,
    span: ByteRange,
    from: Option<u32>,
    to: u32,
    tag: i32,
}

#[derive(Default)]
struct Net {
    next: u64,
    sent: Vec<Message>,
    wanted: Vec<Message>,
    complete: HashMap<u64, Arrival>,
}

impl Net {
    /// Brings together what belongs together, in the order of sending and of wanting.
    fn settle(&mut self) {
        let mut at = 0;
        while let Some(wanted) = self.wanted.get(at).copied() {
            let fits = |sent: &Message| {
                (sent.lane, sent.to, sent.tag) == (wanted.lane, wanted.to, wanted.tag)
                    && wanted.from.is_none_or(|from| sent.from == Some(from))
            };
            let Some(found) = self.sent.iter().position(fits) else {
                at += 1;
                continue;
            };
            let sent = self.sent.remove(found);
            self.wanted.remove(at);
            fill(wanted.span, &copied(sent.span));
            let peer = sent.from.unwrap_or(u32::MAX);
            let arrival = Arrival { peer, bytes: sent.span.bytes };
            self.complete.insert(sent.number, arrival);
            self.complete.insert(wanted.number, arrival);
        }
    }
}

/// One rank's end of it.
pub(crate) struct LocalWire {
    rank: u32,
    net: Arc<Mutex<Net>>,
}

/// So many ranks.
pub(crate) fn wires(ranks: u32) -> Vec<LocalWire> {
    let net = Arc::new(Mutex::new(Net::default()));
    (0..ranks).map(|rank| LocalWire { rank, net: Arc::clone(&net) }).collect()
}

impl LocalWire {
    fn add(&self, message: Message, is_sent: bool) -> Request {
        let mut net = self.net.lock().unwrap();
        net.next += 1;
        let message = Message { number: net.next, ..message };
        if is_sent {
            net.sent.push(message)
        } else {
            net.wanted.push(message)
        }
        net.settle();
        Request(message.number)
    }
}

impl Wire for LocalWire {
    fn send(
        &mut self,
        lane: Lane,
        span: ByteRange,
        to: u32,
        tag: i32,
    ) -> Result<Request, WireError> {
        Ok(self.add(Message { number: 0, lane, span, from: Some(self.rank), to, tag }, true))
    }

    fn receive(
        &mut self,
        lane: Lane,
        span: ByteRange,
        from: Option<u32>,
        tag: i32,
    ) -> Result<Request, WireError> {
        Ok(self.add(Message { number: 0, lane, span, from, to: self.rank, tag }, false))
    }

    fn test(
        &mut self,
        requests: &[Request],
        told: &mut Vec<Option<Arrival>>,
    ) -> Result<(), WireError> {
        let mut net = self.net.lock().unwrap();
        told.clear();
        told.extend(requests.iter().map(|request| net.complete.remove(&request.0)));
        Ok(())
    }

    fn give_up(&mut self, request: Request) {
        let mut net = self.net.lock().unwrap();
        net.sent.retain(|message| message.number != request.0);
        net.wanted.retain(|message| message.number != request.0);
    }

    fn finish(&mut self) -> Result<(), WireError> {
        Ok(())
    }

    fn all_reduce_sum(&mut self, _: &[f32], _: &mut [f32]) -> Result<(), WireError> {
        Err(WireError("this network has no collectives".to_owned()))
    }

    fn barrier(&mut self) -> Result<(), WireError> {
        Err(WireError("this network has no collectives".to_owned()))
    }
}
