//! Copies: whose the addresses are decides how bytes go, whatever kind the caller names.

use pto_host::session::HostBuffer;

use super::lane::{Engine, Lane};
use super::memory_map::{self, Owner};
use super::open::gm;
use super::stream::Stream;
use super::waits;
use crate::common::argument::check_extent;
use crate::common::checks::{self, CallTrace};
use crate::common::order::{MemoryUse, Touch};
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::thread;

/// A copy of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    to: usize,
    from: usize,
    bytes: usize,
    /// Whose `to` and `from` are.
    owners: [Owner; 2],
}

/// The kinds that there are.
const KINDS: u32 = 8;

impl Transfer {
    /// Checks the arguments of a copy; `None`: there is nothing to do. It is inlined, as is what follows: a copy that passes through memory waits for its own stores.
    #[inline(always)]
    pub(crate) fn checked(
        to: usize,
        room: usize,
        from: usize,
        bytes: usize,
        kind: u32,
    ) -> Answer<Option<Self>> {
        require(kind < KINDS, || Refusal::argument(format!("there is no copy of kind {kind}")))?;
        if bytes == 0 {
            return Ok(None);
        }
        require(to != 0 && from != 0, || {
            Refusal::argument("an address is null; pass two addresses")
        })?;
        require(bytes <= room, || {
            Refusal::value(format!("{bytes} bytes do not fit the {room} of the target"))
        })?;
        if to == from {
            return Ok(None);
        }
        check_extent(to, bytes)?;
        check_extent(from, bytes)?;
        let owners = memory_map::owners_of([to, from], bytes)?;
        Ok(Some(Self { to, from, bytes, owners }))
    }

    /// Whether neither side is of a device.
    pub(crate) fn is_on_host(&self) -> bool {
        !self.owners.iter().any(|owner| matches!(owner, Owner::Device(_)))
    }

    /// Whether a side is memory of the host that is not pinned.
    pub(crate) fn is_pageable(&self) -> bool {
        self.owners.contains(&Owner::Host)
    }

    /// Copies now, in a call of the host.
    pub(crate) fn perform_on_host(&self) -> Answer {
        check_healthy(self.to, self.bytes)?;
        check_healthy(self.from, self.bytes)?;
        races::host_uses(&self.touches());
        if waits::are_virtual() {
            self.query();
        }
        self.perform();
        Ok(())
    }

    /// A thread that copies the same bytes of a device once more asks whether they have changed, which takes time.
    fn query(&self) {
        let read = matches!(self.owners[1], Owner::Device(_)).then_some((self.from, self.bytes));
        let before = thread::with(|thread| {
            std::mem::replace(&mut thread.last_read, read.unwrap_or_default())
        });
        if read == Some(before) {
            waits::query_takes_time();
        }
    }

    /// Copies now.
    pub(crate) fn perform(&self) {
        let to = std::ptr::with_exposed_provenance_mut::<u8>(self.to);
        let from = std::ptr::with_exposed_provenance::<u8>(self.from);
        // SAFETY: what is of a device was looked up; of host memory the caller of the interface says that it has so many bytes.
        unsafe { std::ptr::copy(from, to, self.bytes) };
    }

    /// The copy as a command.
    #[inline(always)]
    pub(crate) fn take(self, stream: &Stream) -> Answer {
        if checks::is_on() || stream.is_captured() {
            return self.take_watched(stream);
        }
        let work = move |lane: &Lane| self.submit(lane);
        stream.take_labelled(Engine::Copies, "copy", || self.label(), &[], work)
    }

    /// As `take`, if the memory that the copy uses must be known: races are looked for, or a graph is executed later.
    #[cold]
    fn take_watched(self, stream: &Stream) -> Answer {
        let work = move |lane: &Lane| self.submit(lane);
        stream.take_labelled(Engine::Copies, "copy", || self.label(), &self.touches(), work)
    }

    /// What timelines call it.
    fn label(&self) -> String {
        let is_device = self.owners.map(|owner| matches!(owner, Owner::Device(_)));
        let way = match is_device {
            [true, true] => "copy on device",
            [false, true] => "copy from device",
            [true, false] => "copy to device",
            [false, false] => "copy on host",
        };
        format!("{way}, {} bytes", self.bytes)
    }

    /// The bytes that it reads and writes.
    pub(crate) fn touches(&self) -> [Touch; 2] {
        [
            Touch::new(MemoryUse::Reads, self.from, self.bytes),
            Touch::new(MemoryUse::Writes, self.to, self.bytes),
        ]
    }

    /// With the validation layer: says when the source is not as it was, once the copy's turn has come.
    fn watch_source(&self, lane: &Lane) -> Answer {
        if !checks::is_on() {
            return Ok(());
        }
        let Self { from, bytes, .. } = *self;
        let (before, site) = (sum(from, bytes), CallTrace::here());
        lane.call(move || {
            if sum(from, bytes) != before {
                let made = checks::made(from);
                let text = format!(
                    "{bytes} bytes at {from:#x}{made} changed between the call of a copy and the copy"
                );
                checks::report_of(checks::CHANGED_SOURCE, &site, &text);
            }
            Ok(())
        })
    }

    #[inline]
    fn submit(&self, lane: &Lane) -> Answer {
        // The session refuses what is not allocated any more when a graph copies it.
        let own = Owner::Device(lane.open.index);
        let is_own = self.owners.map(|owner| match owner {
            Owner::Device(_) => Some(owner == own),
            Owner::Pinned | Owner::Host => None,
        });
        let overlap = self.to < self.from + self.bytes && self.from < self.to + self.bytes;
        match is_own {
            [Some(true), Some(true)] if !overlap => {
                lane.stream().copy_on_device(gm(self.from), gm(self.to), self.bytes as u64)?;
            }
            [Some(true), None] => {
                self.watch_source(lane)?;
                lane.stream().copy_to_device(gm(self.to), buffer(self.from, self.bytes))?;
            }
            [None, Some(true)] => {
                lane.stream().copy_from_device(gm(self.from), &buffer(self.to, self.bytes))?;
            }
            _ => {
                let copy = *self;
                lane.call(move || {
                    copy.perform();
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

/// Refuses bytes of a device that does nothing.
pub(crate) fn check_healthy(address: usize, bytes: usize) -> Answer {
    memory_map::device_of(address, bytes)?.map_or(Ok(()), |open| open.damage.check_healthy())
}

/// The bytes at an address, as one number. Other bytes have the same number in a chance of 2^-64: then a program's mistake goes without its note.
fn sum(address: usize, bytes: usize) -> u64 {
    let start = std::ptr::with_exposed_provenance::<u8>(address);
    let byte = |offset| {
        // SAFETY: the program keeps the source of a copy until the copy is over.
        let byte = unsafe { start.add(offset) };
        // SAFETY: as above. Volatile: the program may write it at the same time, which is what is looked for.
        u64::from(unsafe { byte.read_volatile() })
    };
    let mix = |sum: u64, byte: u64| (sum ^ byte).wrapping_mul(0x0100_0000_01B3);
    (0..bytes).map(byte).fold(0xCBF2_9CE4_8422_2325, mix)
}

/// Memory of the program as a stream reaches it.
fn buffer(address: usize, bytes: usize) -> HostBuffer {
    // SAFETY: the program keeps pinned memory until the copy is over; for other memory the call waits.
    unsafe { HostBuffer::foreign(std::ptr::with_exposed_provenance_mut(address), bytes as u64) }
}

/// Fills bytes now.
pub(crate) fn fill(address: usize, byte: u8, bytes: usize) {
    // SAFETY: as for `Transfer::perform`.
    unsafe {
        std::ptr::write_bytes(std::ptr::with_exposed_provenance_mut::<u8>(address), byte, bytes)
    };
}
