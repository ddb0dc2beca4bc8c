//! Serves the frames of other ranks.

use crate::ranks::group::{NO_SLOT, TransferError, TransferSide};
use crate::ranks::message::{Header, Kind};
use crate::ranks::processes::ProcessId;
use crate::ranks::wire::{Wire, WireError, fill};

use super::in_flight::Direction;
use super::matching::Announced;
use super::windows::WindowError;
use super::{RankExchange, Then, tag};

impl<W: Wire> RankExchange<W> {
    pub(super) fn serve(&mut self, from: u32, frame: &[u8]) -> Result<(), WireError> {
        let Some((header, contents)) = Header::read(frame) else {
            return Err(WireError(format!("rank {from} sends what is no frame of pto")));
        };
        match header.kind {
            Kind::Hello => self.serve_hello(from, &header, contents),
            Kind::Meet => drop(self.meetings.insert((header.number, from), header.value)),
            Kind::Beat => {}
            Kind::Ended => self.serve_ended(from, &header),
            Kind::Failed => self.serve_failed(from, &header, contents),
            Kind::Leave => self.left += 1,
            Kind::Send => return self.serve_send(from, &header, contents),
            Kind::Put => return self.serve_put(from, &header, contents),
            Kind::Get => return self.serve_get(from, &header),
            Kind::Signal => return self.serve_signal(&header),
            Kind::Ask => return self.serve_ask(from, &header),
            Kind::Waits => self.serve_waits(from, &header),
            Kind::Done => self.close(header.number, Ok(())),
            Kind::Refused => {
                let refusal = WindowError::of(header.value).unwrap_or(WindowError::NoWindow);
                self.refused(header.number, refusal);
            }
        }
        Ok(())
    }

    fn serve_hello(&mut self, from: u32, header: &Header, contents: &[u8]) {
        let process = u32::try_from(header.value).unwrap_or(0);
        // The sender of a Hello has put a number of 64 bits there.
        let space = u64::try_from(header.stamp).unwrap_or(0);
        let identity = ProcessId { process, space };
        self.ranks.introduce(from, &String::from_utf8_lossy(contents), identity);
    }

    fn serve_failed(&mut self, from: u32, header: &Header, contents: &[u8]) {
        let root = u32::try_from(header.value).unwrap_or(from);
        let cause = String::from_utf8_lossy(contents).into_owned();
        let cause = if root == from { cause } else { format!("rank {from} says: {cause}") };
        let host = self.ranks.host(root).to_owned();
        self.fail(TransferError::PeerFailed { rank: root, host, cause });
    }

    fn serve_send(&mut self, from: u32, header: &Header, contents: &[u8]) -> Result<(), WireError> {
        if header.run != self.run {
            return Ok(());
        }
        let Header { bytes, stamp, payload, .. } = *header;
        self.note_call(header.tag, TransferSide { rank: from, bytes, stamp });
        let announced = Announced { bytes, stamp, payload, contents: contents.to_vec() };
        match self.matching.announce(from, header.tag, announced) {
            Some((posted, announced)) => self.fetch((from, header.tag), posted, announced),
            None => Ok(()),
        }
    }

    fn serve_put(&mut self, from: u32, header: &Header, contents: &[u8]) -> Result<(), WireError> {
        let Header { run, number, window_slot: (window, slot), .. } = *header;
        let Header { offset, bytes, payload, value, .. } = *header;
        let to = match self.windows.part(window, offset, bytes) {
            Ok(to) => to,
            Err(refusal) => return self.refuse(from, number, refusal),
        };
        if payload == 0 {
            fill(to, contents);
            return self.acknowledge((from, number), run, (slot, value));
        }
        let then = Then::Put { from: (from, number), run, signal: (slot, value) };
        self.payloads.begin(&mut self.wire, (Direction::From(from), tag(payload)), to, then)
    }

    fn serve_get(&mut self, from: u32, header: &Header) -> Result<(), WireError> {
        let Header { number, window_slot: (window, _), offset, bytes, payload, .. } = *header;
        match self.windows.part(window, offset, bytes) {
            Ok(part) => {
                let direction = (Direction::To(from), tag(payload));
                self.payloads.begin(&mut self.wire, direction, part, Then::Nothing)
            }
            Err(refusal) => self.refuse(from, number, refusal),
        }
    }

    fn serve_signal(&mut self, header: &Header) -> Result<(), WireError> {
        let (_, slot) = header.window_slot;
        // The sender has seen that there is such a slot.
        self.add(header.run, slot, header.value);
        Ok(())
    }

    /// The bytes of a put are here: adds to its slot, and sends Done to its rank.
    pub(super) fn acknowledge(
        &mut self,
        (from, number): (u32, u64),
        run: u64,
        (slot, value): (u32, u64),
    ) -> Result<(), WireError> {
        if slot != NO_SLOT && !self.add(run, slot, value) {
            return self.refuse(from, number, WindowError::NoSlot);
        }
        let done = Header { number, ..Header::new(Kind::Done) };
        self.frames.send(&mut self.wire, from, done.frame(&[]))
    }

    /// Adds to a slot, if the signal is of the run that this rank is in. Whether there is such a slot.
    fn add(&mut self, run: u64, slot: u32, value: u64) -> bool {
        if run != self.run {
            return true;
        }
        let Some(over) = self.slots.add(slot, value) else { return false };
        over.into_iter().for_each(|number| self.close(number, Ok(())));
        true
    }

    /// A rank has ended its run: all that it has sent in it is here.
    fn serve_ended(&mut self, from: u32, header: &Header) {
        if header.run == self.run {
            self.ended.push(from);
            self.miss_message(from);
        }
    }

    /// A rank whose run has failed asks what this one waits for.
    fn serve_ask(&mut self, from: u32, header: &Header) -> Result<(), WireError> {
        let own = self.waits_in_call().filter(|_| header.run == self.run);
        let waits = own.map_or(Header::new(Kind::Waits), |(tag, side)| Header {
            tag,
            bytes: side.bytes,
            stamp: side.stamp,
            ..Header::new(Kind::Waits)
        });
        self.frames.send(&mut self.wire, from, Header { run: header.run, ..waits }.frame(&[]))
    }

    fn serve_waits(&mut self, from: u32, header: &Header) {
        let Header { run, tag, bytes, stamp, .. } = *header;
        if run == self.run {
            self.note_call(tag, TransferSide { rank: from, bytes, stamp });
            self.answers.push((tag, TransferSide { rank: from, bytes, stamp }));
        }
    }

    fn refuse(&mut self, from: u32, number: u64, refusal: WindowError) -> Result<(), WireError> {
        let header = Header { number, value: refusal as u64, ..Header::new(Kind::Refused) };
        self.frames.send(&mut self.wire, from, header.frame(&[]))
    }
}
