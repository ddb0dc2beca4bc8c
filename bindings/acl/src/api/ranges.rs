//! Ranges and marks of the program in timelines: `aclprofPush`, `aclprofRangeStart` and their neighbours.

use crate::common::argument::{In, Out, Text};
use crate::common::entry::{api, give, values};
use crate::common::notes::{self, Pointee};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::{current, ranges};

/// `aclprofEventAttributes`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attributes {
    version: u16,
    bytes: u16,
    kind: u32,
    operator: usize,
}

impl Pointee for Attributes {}

const _: () = assert!(size_of::<Attributes>() == 16);

/// Words of `aclprofTensorInfo`: the name and the type of an operator as `aclprofStr2Id` gave them, two numbers each of which the second counts (tensors, then
/// blocks), the stream and the tensors.
const OPERATOR_WORDS: usize = 6;

/// The most bytes of a message.
const MAX_MESSAGE: usize = 4096;

values! {
    fn aclprofCreateStamp() -> Handle, 0, {
        Ok(ranges::create_stamp())
    }

    fn aclprofCreateStepInfo() -> Handle, 0, {
        Ok(ranges::create_step())
    }

    fn aclprofStr2Id(message: Text) -> u64, u64::MAX, {
        // FNV-1a: the same number for the same text, in every process.
        let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        let text = message.read("message")?;
        let number = text.bytes().fold(0xCBF2_9CE4_8422_2325, mix);
        ranges::name(number, text);
        Ok(number)
    }
}

/// Destroys a stamp.
// SAFETY: the interface defines this name, and no other function here has the same name.
#[unsafe(no_mangle)]
extern "C" fn aclprofDestroyStamp(stamp: Handle) {
    give("aclprofDestroyStamp", (), || ranges::destroy_stamp(checked(stamp)?));
}

/// Destroys a step.
// SAFETY: the interface defines this name, and no other function here has the same name.
#[unsafe(no_mangle)]
extern "C" fn aclprofDestroyStepInfo(step: Handle) {
    give("aclprofDestroyStepInfo", (), || ranges::destroy_step(step));
}

api! {
    fn aclprofSetStampTraceMessage(stamp: Handle, message: In<u8>, bytes: u32) {
        let text = text(&message, bytes as usize)?;
        ranges::set_message(checked(stamp)?, text)
    }

    fn aclprofMark(stamp: Handle) {
        ranges::mark(checked(stamp)?)
    }

    fn aclprofMarkEx(message: In<u8>, bytes: usize, stream: Handle) {
        let text = text(&message, bytes)?;
        ranges::mark_in(&*current::submitting(stream)?, text)
    }

    fn aclprofPush(stamp: Handle) {
        ranges::push(checked(stamp)?)
    }

    fn aclprofPop() {
        ranges::pop()
    }

    fn aclprofRangePushEx(attributes: In<Attributes>) {
        let Attributes { version, bytes, kind, operator } = attributes.get("attributes")?;
        require(version >= 1 && bytes as usize >= size_of::<Attributes>(), || {
            Refusal::argument(format!(
                "the attributes have version {version} and {bytes} bytes; set version 1 and sizeof(aclprofEventAttributes)"
            ))
        })?;
        require(kind == 0, || {
            Refusal::argument(format!("there is no message of type {kind}; there is 0 (tensors of an operator)"))
        })?;
        // Another structure has the address of this one. The system reads it, so that one that was never filled in ends nothing.
        let bytes = notes::look(operator as u64, 8 * OPERATOR_WORDS);
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        let [name, kind, tensors, blocks, ..] = words[..] else {
            return Err(Refusal::argument("tensorInfo is null or no memory; pass an aclprofTensorInfo"));
        };
        ranges::push_operator(name, kind, tensors >> 32, blocks >> 32)
    }

    fn aclprofRangePop() {
        ranges::pop()
    }

    fn aclprofRangeStart(stamp: Handle, range: Out<u32>) {
        let output = range.required("range")?;
        output.set(ranges::start(checked(stamp)?)?);
        Ok(())
    }

    fn aclprofRangeStop(range: u32) {
        ranges::stop(range)
    }

    fn aclprofGetStepTimestamp(step: Handle, tag: u32, stream: Handle) {
        ranges::check_step(step)?;
        let what = match tag {
            0 => "step begins",
            1 => "step ends",
            _ => return Err(Refusal::argument(format!("there is no tag {tag} of a step; there are 0 (start) and 1 (end)"))),
        };
        ranges::mark_in(&*current::submitting(stream)?, what.to_owned())
    }
}

fn checked(stamp: Handle) -> Answer<Handle> {
    require(stamp != 0, || Refusal::argument("stamp is null; pass what aclprofCreateStamp gave"))?;
    Ok(stamp)
}

/// The first `bytes` bytes of a message, or those before a zero.
fn text(message: &In<u8>, bytes: usize) -> Answer<String> {
    require(bytes <= MAX_MESSAGE, || {
        Refusal::argument(format!(
            "a message of {bytes} bytes; a message has {MAX_MESSAGE} at most"
        ))
    })?;
    let bytes = message.list("message", bytes)?;
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}
