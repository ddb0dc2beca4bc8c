//! The channels of a pipeline, in time, by the rule of [`Traffic`].
//!
//! ```text
//! send --room--> token --take--> taken: what the send `d` later waits for
//!      --no room--> waits in its channel, after those that began before
//! ```
//! Time is the one of the `v9` clock, so that the order of tokens is the same in every run. What a device waits for are [`Mark`]s: tasks.
//! Invariants: a token is in exactly one channel, from its send until it is taken; a channel has as many slots as it is deep (of depth
//! 0: as there are processes, each of which waits with its token); sends are admitted in the order in which they were begun.
//!
//! Why it is so: `docs/decisions/pipelines.md`.

use pto_abi::ids::TaskId;

use super::layout::limits;
use super::turns::Traffic;

/// A task of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) process: u8,
    /// The rank whose task `id` is.
    pub(super) rank: u16,
    /// Counts the tasks of the pipeline.
    pub(super) number: u64,
    pub(super) id: TaskId,
}

/// Tasks that something waits for.
pub(super) type Marks = [Option<Mark>; 2];

/// Something that has a time on the `v9` clock, and tasks on a device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub(super) time: u64,
    pub(super) marks: Marks,
}

/// A token: its value, and its send.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Token {
    pub(super) value: i64,
    pub(super) sent: Moment,
}

/// A send that has completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completed {
    pub(super) process: u8,
    pub(super) at: Moment,
}

/// A channel. Its tokens are in the slots that all channels share.
#[derive(Debug)]
pub(super) struct Channel {
    traffic: Traffic,
    /// The first of its slots, and how many they are.
    slots: [u32; 2],
    /// Processes that wait with a token, in the order in which they began to.
    pending: heapless::Deque<u8, { limits::PROCESSES }>,
    /// Processes that may still send.
    pub(super) senders: u32,
}

/// The slots of all channels: a token, and who waits with it; after it was taken, when that was.
pub(super) type TokenSlots = [(Token, u8); limits::TOKENS];

impl Channel {
    pub(super) const fn new(depth: u32, slots: [u32; 2]) -> Self {
        let traffic = Traffic::new(depth as u64);
        Self { traffic, slots, pending: heapless::Deque::new(), senders: 0 }
    }

    /// Where the token of this number is.
    fn slot_of(&self, number: u64) -> usize {
        let [first, count] = self.slots;
        let within = number.checked_rem(u64::from(count)).unwrap_or(0);
        usize::try_from(u64::from(first) + within).unwrap_or(usize::MAX)
    }

    /// A process begins a send; [`admit`](Self::admit) says which sends complete now.
    pub(super) fn send(&mut self, process: u8) {
        // A process waits with one token at a time.
        let _ = self.pending.push_back(process);
    }

    /// Lets the send that has waited longest into the channel, if there is room: `Some`, with its completion where it does not wait for
    /// the receiver. `None`: nothing has changed. `sending` are the tokens with which processes wait.
    pub(super) fn admit(
        &mut self,
        sending: &[Token; limits::PROCESSES],
        slots: &mut TokenSlots,
    ) -> Option<Option<Completed>> {
        let process = *self.pending.front()?;
        let mut token = *sending.get(usize::from(process))?;
        if !self.traffic.has_room() {
            return None;
        }
        let slot = slots.get_mut(self.slot_of(self.traffic.entering()))?;
        let mut at = Moment { time: token.sent.time, marks: [None; 2] };
        if self.traffic.follows().is_some() {
            // The slot has the moment at which the token before it was taken.
            let taken = slot.0.sent;
            at = Moment { time: at.time.max(taken.time), ..taken };
        }
        token.sent.time = at.time;
        *slot = (token, process);
        self.traffic.enter();
        self.pending.pop_front();
        Some((!self.traffic.meets()).then_some(Completed { process, at }))
    }

    /// The process whose send has waited longest, and the slot that its token would get.
    pub(super) fn entering(&self) -> Option<(usize, usize)> {
        Some((usize::from(*self.pending.front()?), self.slot_of(self.traffic.entering())))
    }

    /// The slot of the token that is taken next.
    pub(super) fn leaving(&self) -> Option<usize> {
        self.traffic.leaving().map(|number| self.slot_of(number))
    }

    /// The token that is taken next.
    pub(super) fn first(&self, slots: &TokenSlots) -> Option<Token> {
        slots.get(self.slot_of(self.traffic.leaving()?)).map(|(token, _)| *token)
    }

    /// When a receiver that is there since `since` could take a token.
    pub(super) fn next_at(&self, since: u64, slots: &TokenSlots) -> Option<u64> {
        self.first(slots).map(|token| since.max(token.sent.time))
    }

    /// The [first](Self::first) token is taken at this moment; the send that completes by that, where its sender waits.
    pub(super) fn take(&mut self, taken: Moment, slots: &mut TokenSlots) -> Option<Completed> {
        let slot = slots.get_mut(self.slot_of(self.traffic.leaving()?))?;
        self.traffic.leave();
        slot.0.sent = taken;
        self.traffic.meets().then_some(Completed { process: slot.1, at: taken })
    }

    /// Whether no token is there and none will come.
    pub(super) fn is_finished(&self) -> bool {
        self.senders == 0 && self.traffic.leaving().is_none() && self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Channel, Completed, Moment, Token, TokenSlots};
    use crate::plan::layout::limits;

    const EMPTY: TokenSlots =
        [(Token { value: 0, sent: Moment { time: 0, marks: [None; 2] } }, 0); limits::TOKENS];

    const fn moment(time: u64) -> Moment {
        Moment { time, marks: [None; 2] }
    }

    /// A sender and a receiver with a cost for each token; when the last of them is done.
    fn total(sender: &[u64], receiver: &[u64], depth: u32) -> u64 {
        let mut slots = EMPTY;
        let mut channel = Channel::new(depth, [3, depth.max(1)]);
        let (mut sends, mut takes) = (0, 0);
        for (value, (send, take)) in (0..).zip(sender.iter().zip(receiver)) {
            sends += send;
            let token = Token { value, sent: moment(sends) };
            channel.send(0);
            let admitted = channel.admit(&[token; 16], &mut slots).expect("there is room for it");
            takes = channel.next_at(takes, &slots).expect("a token is there");
            let found = channel.first(&slots).expect("as was said");
            let met = channel.take(moment(takes), &mut slots);
            let Completed { process, at } = admitted.or(met).expect("one of both completes it");
            assert_eq!((found.value, process), (value, 0));
            sends = sends.max(at.time);
            takes += take;
        }
        sends.max(takes)
    }

    #[test]
    fn known_answers_of_a_program_with_two_stages() {
        let sender: [u64; 10] = core::array::from_fn(|k| if k < 4 { 32 } else { 16_384 });
        let receiver: [u64; 10] = core::array::from_fn(|k| if k < 1 { 16_384 } else { 8192 });
        let of_depth = |depth| total(&sender, &receiver, depth);
        assert_eq!([of_depth(1), of_depth(2), of_depth(0)], [131_104, 122_912, 139_296]);
    }

    #[test]
    fn no_token_of_two_senders_is_lost() {
        let mut slots = EMPTY;
        let mut channel = Channel::new(1, [0, 1]);
        channel.senders = 2;
        let mut taken = 0;
        for turn in 0..100 {
            // One of them waits, because the channel holds one token.
            let sending = core::array::from_fn(|process| {
                let value = 2 * turn + i64::try_from(process).unwrap_or(0);
                Token { value, sent: moment(0) }
            });
            channel.send(0);
            channel.send(1);
            while channel.admit(&sending, &mut slots).is_some() {}
            while let Some(token) = channel.first(&slots) {
                assert_eq!(token.value, taken, "in the order of the sends");
                channel.take(moment(0), &mut slots);
                taken += 1;
                while channel.admit(&sending, &mut slots).is_some() {}
            }
            assert!(!channel.is_finished());
        }
        channel.senders = 0;
        assert!(taken == 200 && channel.is_finished());
    }
}
