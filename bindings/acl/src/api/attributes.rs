//! What is set on a stream: failure mode, attributes, state callbacks.

use crate::common::argument::{Address, In, Out, Text};
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::callbacks::{self, OfStream};
use crate::device::current;
use crate::device::stream::{LAST_PRIORITY, Stream};

api! {
    fn aclrtSetStreamFailureMode(stream: Handle, mode: u64) {
        require(stream != 0, || Refusal::argument("stream is null; the default stream always continues"))?;
        set_failure_mode(&*current::submitting(stream)?, mode)
    }

    fn aclrtSetStreamAttribute(stream: Handle, attribute: u32, value: In<[u32; 4]>) {
        let value = value.get("value")?;
        let stream = current::submitting(stream)?;
        match attribute {
            1 => set_failure_mode(&stream, u64::from(value[0]) | u64::from(value[1]) << 32)?,
            2 => stream.attributes().overflow = flag(value[0])?,
            3 => stream.attributes().tag = value[0],
            4 => stream.attributes().keeps_names = flag(value[0])?,
            5 => return Err(Refusal::unsupported(format!("the priority of a stream cannot change; make one with a priority from 0 to {LAST_PRIORITY}"))),
            _ => return Err(unknown(attribute)),
        }
        Ok(())
    }

    fn aclrtGetStreamAttribute(stream: Handle, attribute: u32, value: Out<[u32; 4]>) {
        let output = value.required("value")?;
        let stream = current::asked(stream)?;
        let attributes = stream.attributes();
        let found = match attribute {
            1 => u32::try_from(attributes.failure_mode.unwrap_or(0)).unwrap_or(0),
            2 => attributes.overflow,
            3 => attributes.tag,
            4 => attributes.keeps_names,
            5 => stream.priority,
            _ => return Err(unknown(attribute)),
        };
        output.set([found, 0, 0, 0]);
        Ok(())
    }

    fn aclrtSetStreamOverflowSwitch(stream: Handle, value: u32) {
        current::submitting(stream)?.attributes().overflow = flag(value)?;
        Ok(())
    }

    fn aclrtGetStreamOverflowSwitch(stream: Handle, value: Out<u32>) {
        let output = value.required("value")?;
        output.set(current::asked(stream)?.attributes().overflow);
        Ok(())
    }

    fn aclrtRegStreamStateCallback(name: Text, function: Option<OfStream>, argument: Address) {
        let name = name.read("name")?;
        callbacks::watch_streams(name, function.map(|function| (function, argument.number())));
        Ok(())
    }
}

fn unknown(attribute: u32) -> Refusal {
    Refusal::argument(format!("there is no attribute {attribute} of a stream; there are 1 to 5"))
}

fn flag(value: u32) -> Answer<u32> {
    require(value <= 1, || Refusal::value(format!("{value} is no switch; pass 0 or 1")))?;
    Ok(value)
}

fn set_failure_mode(stream: &Stream, mode: u64) -> Answer {
    require(mode <= 1, || {
        Refusal::value(format!("there is no failure mode {mode}; there are 0 and 1"))
    })?;
    require(!stream.is_default(), || Refusal::value("the default stream always continues"))?;
    let mut attributes = stream.attributes();
    require(attributes.failure_mode.is_none(), || {
        Refusal::value("the failure mode of the stream was set; it can be set once")
    })?;
    if mode == 1 {
        stream.stop_on_failure()?;
    }
    attributes.failure_mode = Some(mode);
    Ok(())
}
