//! Channels, in time, by the rule of [`pto_graph::plan::turns`]. A token carries the time of its send; it is taken at
//! `max(t, time + latency)`.

use std::collections::VecDeque;

use pto_graph::plan::turns::Traffic;

/// A send that waits for room.
#[derive(Clone, Copy, Debug)]
struct Pending {
    process: usize,
    token: i64,
    begun: u64,
}

/// A token in the channel.
#[derive(Clone, Copy, Debug)]
struct Sent {
    token: i64,
    time: u64,
    /// The sender, where it waits for the receiver.
    waits: Option<usize>,
}

/// A send that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendezvous {
    /// The process that sent.
    pub process: usize,
    /// When the send completed.
    pub time: u64,
}

/// A channel.
#[derive(Debug)]
pub(super) struct ChannelState {
    traffic: Traffic,
    latency: u64,
    /// When each token was taken.
    pops: Vec<u64>,
    tokens: VecDeque<Sent>,
    pending: VecDeque<Pending>,
    /// Processes that may still send.
    senders: usize,
}

impl ChannelState {
    pub(super) fn new(depth: u64, latency: u64, senders: usize) -> Self {
        let (tokens, pending) = (VecDeque::new(), VecDeque::new());
        let traffic = Traffic::new(depth);
        Self { traffic, latency, pops: Vec::new(), tokens, pending, senders }
    }

    /// Begins a send; the ones that complete now.
    pub(super) fn send(&mut self, process: usize, token: i64, begun: u64) -> Vec<Rendezvous> {
        self.pending.push_back(Pending { process, token, begun });
        self.admit()
    }

    /// Lets sends that wait into the channel, in the order in which they were begun.
    fn admit(&mut self) -> Vec<Rendezvous> {
        let mut completed = Vec::new();
        while let Some(Pending { process, token, begun }) = self.pending.front().copied() {
            if !self.traffic.has_room() {
                break;
            }
            let time = begun.max(self.room());
            let waits = self.traffic.meets().then_some(process);
            self.tokens.push_back(Sent { token, time, waits });
            self.traffic.enter();
            self.pending.pop_front();
            completed.extend(waits.is_none().then_some(Rendezvous { process, time }));
        }
        completed
    }

    /// Since when there is the room that the next send has.
    fn room(&self) -> u64 {
        let before = self.traffic.follows().and_then(|before| usize::try_from(before).ok());
        before.and_then(|before| self.pops.get(before)).copied().unwrap_or(0)
    }

    /// When a receiver that is there since `since` could take a token.
    pub(super) fn next_at(&self, since: u64) -> Option<u64> {
        self.tokens.front().map(|sent| since.max(sent.time.saturating_add(self.latency)))
    }

    /// Takes a token at `time`; the token, and the sends that complete by that.
    pub(super) fn take(&mut self, time: u64) -> Option<(i64, Vec<Rendezvous>)> {
        let sent = self.tokens.pop_front()?;
        self.traffic.leave();
        self.pops.push(time);
        let met = sent.waits.map(|process| Rendezvous { process, time: time.max(sent.time) });
        let mut completed: Vec<Rendezvous> = met.into_iter().collect();
        completed.extend(self.admit());
        Some((sent.token, completed))
    }

    /// A process will send no more.
    pub(super) fn close_one(&mut self) {
        self.senders = self.senders.saturating_sub(1);
    }

    /// Whether no token is there and none will come.
    pub(super) fn is_finished(&self) -> bool {
        self.senders == 0 && self.tokens.is_empty() && self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::ChannelState;

    /// A sender and a receiver with a cost for each token; when the last of them is done.
    fn total(sender: &[u64], receiver: &[u64], depth: u64, latency: u64) -> u64 {
        let mut channel = ChannelState::new(depth, latency, 1);
        let (mut sends, mut takes) = (0, 0);
        let mut sent = 0;
        for (token, (send, take)) in (0..).zip(sender.iter().zip(receiver)) {
            sends += send;
            let mut completed = channel.send(0, token, sends);
            if completed.is_empty() && depth > 0 {
                panic!("the receiver has taken all tokens before this one");
            }
            takes = channel.next_at(takes).unwrap();
            let (found, more) = channel.take(takes).unwrap();
            completed.extend(more);
            assert_eq!((found, completed.len()), (token, 1));
            sends = sends.max(completed[0].time);
            takes += take;
            sent += 1;
        }
        assert_eq!(sent, sender.len());
        sends.max(takes)
    }

    /// A program that has the known answers: ten tokens, the first four cheap for the sender.
    #[test]
    fn known_answers_of_a_program_with_two_stages() {
        let sender: Vec<u64> = (0..10).map(|k| if k < 4 { 32 } else { 16_384 }).collect();
        let receiver: Vec<u64> = (0..10).map(|k| if k < 1 { 16_384 } else { 8192 }).collect();
        let of_depth = |depth| total(&sender, &receiver, depth, 0);
        assert_eq!([of_depth(1), of_depth(2), of_depth(0)], [131_104, 122_912, 139_296]);
    }

    #[test]
    fn latency_is_part_of_the_way_of_a_token() {
        assert_eq!(total(&[100; 4], &[50; 4], 2, 0), 450);
        assert_eq!(total(&[100; 4], &[50; 4], 2, 7), 457);
        assert_eq!(total(&[10; 4], &[50; 4], 4, 1000), 1010 + 200);
    }
}
