//! Copies and fills: at once, or as commands of streams.

use std::sync::Arc;

use crate::common::argument::{Address, check_extent};
use crate::common::codes;
use crate::common::entry::api;
use crate::common::order::{Touch, Use};
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::current;
use crate::device::lane::{Command, Engine, Work};
use crate::device::open::gm;
use crate::device::places;
use crate::device::transfer::{self, Transfer};

api! {
    fn aclrtMemcpy(to: Address, room: usize, from: Address, bytes: usize, kind: u32) {
        let copy = Transfer::checked(to.number(), room, from.number(), bytes, kind)?;
        current::context()?;
        current::check_uncaptured()?;
        copy.map_or(Ok(()), |copy| copy.perform_on_host())
    }

    fn aclrtMemcpyAsync(to: Address, room: usize, from: Address, bytes: usize, kind: u32, stream: Handle) {
        copy_async(Transfer::checked(to.number(), room, from.number(), bytes, kind)?, kind, stream)
    }

    fn aclrtMemcpyAsyncWithCondition(to: Address, room: usize, from: Address, bytes: usize, kind: u32, stream: Handle) {
        copy_async(Transfer::checked(to.number(), room, from.number(), bytes, kind)?, kind, stream)
    }

    fn aclrtMemset(address: Address, room: usize, value: i32, count: usize) {
        let at = checked(address, room, count)?;
        current::context()?;
        current::check_uncaptured()?;
        transfer::check_healthy(at, count)?;
        races::host_uses(&[Touch::new(Use::Writes, at, count)]);
        transfer::fill(at, value.to_le_bytes()[0], count);
        Ok(())
    }

    fn aclrtMemsetAsync(address: Address, room: usize, value: i32, count: usize, stream: Handle) {
        let at = checked(address, room, count)?;
        let stream = current::submitting(stream)?;
        let byte = value.to_le_bytes()[0];
        let is_device = places::device_of(at, count)?.is_some_and(|open| open.index == stream.context.open.index);
        let work: Work = Arc::new(move |lane| {
            if is_device {
                lane.stream().fill(gm(at), byte, count as u64)?;
                return Ok(());
            }
            lane.call(move || {
                transfer::fill(at, byte, count);
                Ok(())
            })
        });
        stream.submit(Command::new(Engine::Copies, "fill", work).using([Touch::new(Use::Writes, at, count)]))
    }

    fn aclrtMemsetD32(address: Address, room: usize, value: u32, count: usize) {
        let at = checked(address, room, count.saturating_mul(4))?;
        current::context()?;
        current::check_uncaptured()?;
        transfer::check_healthy(at, 4 * count)?;
        races::host_uses(&[Touch::new(Use::Writes, at, 4 * count)]);
        fill_words(at, value, count);
        Ok(())
    }

    fn aclrtMemsetD32Async(address: Address, room: usize, value: u32, count: usize, stream: Handle) {
        let at = checked(address, room, count.saturating_mul(4))?;
        let work: Work = Arc::new(move |lane| {
            lane.call(move || {
                fill_words(at, value, count);
                Ok(())
            })
        });
        let fill = Command::new(Engine::Copies, "fill", work).using([Touch::new(Use::Writes, at, 4 * count)]);
        current::submitting(stream)?.submit(fill)
    }

    fn aclrtMemcpy2d(to: Address, to_pitch: usize, from: Address, from_pitch: usize, width: usize, height: usize, kind: u32) {
        let rows = rows(to, to_pitch, from, from_pitch, width, height, kind)?;
        current::context()?;
        current::check_uncaptured()?;
        rows.iter().try_for_each(Transfer::perform_on_host)
    }

    fn aclrtMemcpy2dAsync(to: Address, to_pitch: usize, from: Address, from_pitch: usize, width: usize, height: usize, kind: u32, stream: Handle) {
        let rows = rows(to, to_pitch, from, from_pitch, width, height, kind)?;
        let stream = current::submitting(stream)?;
        let Some(first) = rows.first() else { return Ok(()) };
        let waits = first.is_pageable()?;
        check_pageable(waits, &stream)?;
        let touches: Vec<Touch> = rows.iter().flat_map(Transfer::touches).collect();
        let rows = Arc::new(rows);
        let work: Work = Arc::new(move |lane| {
            let rows = Arc::clone(&rows);
            lane.call(move || {
                rows.iter().for_each(Transfer::perform);
                Ok(())
            })
        });
        stream.submit(Command::new(Engine::Copies, "copy of rows", work).using(touches))?;
        if waits { stream.synchronize(None) } else { Ok(()) }
    }

    fn aclrtReduceAsync(to: Address, from: Address, bytes: u64, kind: u32, data: i32, stream: Handle, reserve: Address) {
        require(reserve.number() == 0, || Refusal::argument("reserve is not null; pass NULL"))?;
        require((10..=12).contains(&kind), || {
            Refusal::argument(format!("there is no reduction {kind}; there are SUM 10, MAX 11 and MIN 12"))
        })?;
        let (to, from) = (to.required("to")?, from.required("from")?);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        require(bytes > 0, || Refusal::argument("the size is 0; reduce one element at least"))?;
        let element = super::values::Element::of(data).filter(|element| element.reduces());
        let element = element.ok_or_else(|| Refusal::unsupported(format!("reductions of data type {data}")))?;
        require(bytes.is_multiple_of(element.bytes()), || {
            Refusal::value(format!("{bytes} bytes are no whole number of elements"))
        })?;
        for address in [to, from] {
            require(places::device_of(address, bytes)?.is_some(), || {
                Refusal::value(format!("{address:#x} is no address of a device"))
            })?;
        }
        let work: Work = Arc::new(move |lane| {
            lane.call(move || {
                element.reduce(to, from, bytes, kind);
                Ok(())
            })
        });
        let touches = [Touch::new(Use::Reads, from, bytes), Touch::new(Use::Writes, to, bytes)];
        current::submitting(stream)?.submit(Command::new(Engine::Copies, "reduction", work).using(touches))
    }
}

/// A copy as a command. Memory of the host that is not pinned may change once the call returns: then the call waits.
pub(super) fn copy_async(copy: Option<Transfer>, kind: u32, stream: Handle) -> Answer {
    let stream = current::submitting(stream)?;
    let Some(copy) = copy else { return Ok(()) };
    require(kind != 0 || !copy.is_on_host()?, || {
        Refusal::unsupported("asynchronous copies within the host; use aclrtMemcpy")
    })?;
    let waits = copy.is_pageable()?;
    check_pageable(waits, &stream)?;
    stream.submit(copy.command())?;
    if waits { stream.synchronize(None) } else { Ok(()) }
}

fn check_pageable(waits: bool, stream: &crate::device::stream::Stream) -> Answer {
    require(!waits || stream.capture().is_none(), || {
        let text = "the stream is captured, and memory of the host that is not pinned takes part; use aclrtMallocHost";
        Refusal::new(codes::BAD_VALUE, text)
    })
}

fn checked(address: Address, room: usize, count: usize) -> Answer<usize> {
    let at = address.required("address")?;
    require(count > 0, || Refusal::argument("the count is 0; fill one byte at least"))?;
    require(count <= room, || {
        Refusal::value(format!("{count} bytes do not fit the {room} of the target"))
    })?;
    check_extent(at, count)?;
    places::device_of(at, count)?;
    Ok(at)
}

fn fill_words(at: usize, value: u32, count: usize) {
    let bytes = value.to_le_bytes();
    for index in 0..4 * count {
        transfer::fill(at + index, bytes[index % 4], 1);
    }
}

fn rows(
    to: Address,
    to_pitch: usize,
    from: Address,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: u32,
) -> Answer<Vec<Transfer>> {
    let (to, from) = (to.required("to")?, from.required("from")?);
    require(width > 0 && height > 0, || {
        Refusal::argument("the width or the height is 0; copy one byte at least")
    })?;
    require(width <= to_pitch && width <= from_pitch, || {
        Refusal::value(format!(
            "the width {width} is more than a pitch ({to_pitch} and {from_pitch})"
        ))
    })?;
    for (at, pitch) in [(to, to_pitch), (from, from_pitch)] {
        check_extent(at, pitch.saturating_mul(height))?;
    }
    let row = |index| {
        Transfer::checked(to + index * to_pitch, to_pitch, from + index * from_pitch, width, kind)
    };
    (0..height).filter_map(|index| row(index).transpose()).collect()
}
