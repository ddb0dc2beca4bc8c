//! A network within one process, for tests: messages are copied when both sides are there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::ranks::group::ByteRange;
use crate::ranks::wire::{Arrival, RequestId, Wire, WireError, copied, fill};
use crate::table::Channel;

#[derive(Clone, Copy)]
struct PostedMessage {
    number: u64,
    channel: Channel,
    span: ByteRange,
    from: Option<u32>,
    to: u32,
    tag: i32,
}

#[derive(Default)]
struct Net {
    next: u64,
    sent: Vec<PostedMessage>,
    wanted: Vec<PostedMessage>,
    complete: HashMap<u64, Arrival>,
}

impl Net {
    /// Brings together what belongs together, in the order of sending and of wanting.
    fn settle(&mut self) {
        let mut at = 0;
        while let Some(wanted) = self.wanted.get(at).copied() {
            let fits = |sent: &PostedMessage| {
                (sent.channel, sent.to, sent.tag) == (wanted.channel, wanted.to, wanted.tag)
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
    fn add(&self, message: PostedMessage, is_sent: bool) -> RequestId {
        let mut net = self.net.lock().unwrap();
        net.next += 1;
        let message = PostedMessage { number: net.next, ..message };
        if is_sent {
            net.sent.push(message)
        } else {
            net.wanted.push(message)
        }
        net.settle();
        RequestId(message.number)
    }
}

impl Wire for LocalWire {
    fn send(
        &mut self,
        channel: Channel,
        span: ByteRange,
        to: u32,
        tag: i32,
    ) -> Result<RequestId, WireError> {
        Ok(self
            .add(PostedMessage { number: 0, channel, span, from: Some(self.rank), to, tag }, true))
    }

    fn receive(
        &mut self,
        channel: Channel,
        span: ByteRange,
        from: Option<u32>,
        tag: i32,
    ) -> Result<RequestId, WireError> {
        Ok(self.add(PostedMessage { number: 0, channel, span, from, to: self.rank, tag }, false))
    }

    fn test(
        &mut self,
        requests: &[RequestId],
        answers: &mut Vec<Option<Arrival>>,
    ) -> Result<(), WireError> {
        let mut net = self.net.lock().unwrap();
        answers.clear();
        answers.extend(requests.iter().map(|request| net.complete.remove(&request.0)));
        Ok(())
    }

    fn give_up(&mut self, request: RequestId) {
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
