//! Copies and fills: at once, or as commands of streams.

use crate::common::argument::{Address, check_extent};
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::copies::{self, FillPattern};
use crate::device::element::Element;
use crate::device::transfer::Transfer;
use crate::device::{current, memory_map};

api! {
    fn aclrtMemcpy(to: Address, room: usize, from: Address, bytes: usize, kind: u32) {
        let copy = Transfer::checked(to.number(), room, from.number(), bytes, kind)?;
        copies::copy_now(&copy)
    }

    fn aclrtMemcpyAsync(to: Address, room: usize, from: Address, bytes: usize, kind: u32, stream: Handle) {
        let copy = Transfer::checked(to.number(), room, from.number(), bytes, kind)?;
        copies::copy(&*current::submitting(stream)?, copy, kind)
    }

    fn aclrtMemcpyAsyncWithCondition(to: Address, room: usize, from: Address, bytes: usize, kind: u32, stream: Handle) {
        let copy = Transfer::checked(to.number(), room, from.number(), bytes, kind)?;
        copies::copy(&*current::submitting(stream)?, copy, kind)
    }

    fn aclrtMemset(address: Address, room: usize, value: i32, count: usize) {
        let at = checked(address, room, count)?;
        copies::fill_now(at, FillPattern::Byte(value.to_le_bytes()[0]), count)
    }

    fn aclrtMemsetAsync(address: Address, room: usize, value: i32, count: usize, stream: Handle) {
        let at = checked(address, room, count)?;
        copies::fill(&*current::submitting(stream)?, at, FillPattern::Byte(value.to_le_bytes()[0]), count)
    }

    fn aclrtMemsetD32(address: Address, room: usize, value: u32, count: usize) {
        let at = checked(address, room, count.saturating_mul(4))?;
        copies::fill_now(at, FillPattern::Word(value), 4 * count)
    }

    fn aclrtMemsetD32Async(address: Address, room: usize, value: u32, count: usize, stream: Handle) {
        let at = checked(address, room, count.saturating_mul(4))?;
        copies::fill(&*current::submitting(stream)?, at, FillPattern::Word(value), 4 * count)
    }

    fn aclrtMemcpy2d(to: Address, to_pitch: usize, from: Address, from_pitch: usize, width: usize, height: usize, kind: u32) {
        let rows = rows(to, to_pitch, from, from_pitch, width, height, kind)?;
        copies::copy_now(&rows)
    }

    fn aclrtMemcpy2dAsync(to: Address, to_pitch: usize, from: Address, from_pitch: usize, width: usize, height: usize, kind: u32, stream: Handle) {
        let rows = rows(to, to_pitch, from, from_pitch, width, height, kind)?;
        copies::copy_rows(&*current::submitting(stream)?, rows)
    }

    fn aclrtReduceAsync(to: Address, from: Address, bytes: u64, kind: u32, data: i32, stream: Handle, reserve: Address) {
        require(reserve.number() == 0, || Refusal::argument("reserve is not null; pass NULL"))?;
        require((10..=12).contains(&kind), || {
            Refusal::argument(format!("there is no reduction {kind}; there are SUM 10, MAX 11 and MIN 12"))
        })?;
        let (to, from) = (to.required("to")?, from.required("from")?);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        require(bytes > 0, || Refusal::argument("the size is 0; reduce one element at least"))?;
        let element = Element::of(data).filter(|element| element.reduces());
        let element = element.ok_or_else(|| Refusal::unsupported(format!("reductions of data type {data}")))?;
        require(bytes.is_multiple_of(element.bytes()), || {
            Refusal::value(format!("{bytes} bytes are no whole number of elements"))
        })?;
        for address in [to, from] {
            require(memory_map::device_of(address, bytes)?.is_some(), || {
                Refusal::value(format!("{address:#x} is no address of a device"))
            })?;
        }
        copies::reduce(&*current::submitting(stream)?, element, [to, from], bytes, kind)
    }
}

fn checked(address: Address, room: usize, count: usize) -> Answer<usize> {
    let at = address.required("address")?;
    require(count > 0, || Refusal::argument("the count is 0; fill one byte at least"))?;
    require(count <= room, || {
        Refusal::value(format!("{count} bytes do not fit the {room} of the target"))
    })?;
    check_extent(at, count)?;
    memory_map::device_of(at, count)?;
    Ok(at)
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
