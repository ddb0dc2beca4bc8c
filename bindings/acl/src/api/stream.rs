//! Streams: made, destroyed, waited for.

use super::time::limit;
use crate::common::argument::{In, Out};
use crate::common::entry::{api, give};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Found, Handle};
use crate::device::current;
use crate::device::stream::{self, Stream};
use crate::device::stream_config::{self, StreamConfig};

api! {
    fn aclrtCreateStream(stream: Out<Handle>) {
        make(stream, 0, 0)
    }

    fn aclrtCreateStreamWithConfig(stream: Out<Handle>, priority: u32, flags: u32) {
        make(stream, priority, flags)
    }

    fn aclrtCreateStreamV2(stream: Out<Handle>, config: In<StreamConfig>) {
        let config = config.get("config")?;
        make(stream, config.priority, u32::try_from(config.flags).unwrap_or(u32::MAX))
    }

    fn aclrtDestroyStream(stream: Handle) {
        stream::destroy(&*own(stream)?)
    }

    fn aclrtDestroyStreamForce(stream: Handle) {
        stream::destroy_by_force(&*own(stream)?)
    }

    fn aclrtSynchronizeStream(stream: Handle) {
        current::asked(stream)?.synchronize(None)
    }

    fn aclrtSynchronizeStreamWithTimeout(stream: Handle, milliseconds: i32) {
        let limit = limit(milliseconds)?;
        current::asked(stream)?.synchronize(limit)
    }

    fn aclrtStreamQuery(stream: Handle, status: Out<u32>) {
        let output = status.required("status")?;
        output.set(u32::from(!current::asked(stream)?.is_idle()?));
        Ok(())
    }

    fn aclrtStreamAbort(stream: Handle) {
        require(stream != 0, || Refusal::argument("stream is null; the default stream cannot be aborted"))?;
        current::submitting(stream)?.abort()
    }

    fn aclrtStreamStop(stream: Handle) {
        require(stream != 0, || Refusal::argument("stream is null; the default stream cannot be stopped"))?;
        current::submitting(stream)?.abort()
    }

    fn aclrtStreamGetId(stream: Handle, id: Out<i32>) {
        let output = id.required("id")?;
        output.set(current::asked(stream)?.id);
        Ok(())
    }

    fn aclrtStreamGetPriority(stream: Handle, priority: Out<u32>) {
        let output = priority.required("priority")?;
        output.set(current::asked(stream)?.priority);
        Ok(())
    }

    fn aclrtStreamGetFlags(stream: Handle, flags: Out<u32>) {
        let output = flags.required("flags")?;
        output.set(current::asked(stream)?.flags);
        Ok(())
    }

    fn aclrtSetStreamConfigOpt(config: Out<StreamConfig>, attribute: u32, value: In<u8>, bytes: usize) {
        let output = config.required("config")?;
        require(bytes <= 8, || Refusal::value(format!("a value has {bytes} bytes; pass 4 or 8")))?;
        let value = number(&value.list("value", bytes)?)?;
        let mut config = output.read();
        match (attribute, bytes) {
            (0, 8) => config.work = value,
            (1, 8) => config.work_bytes = value,
            (2, 4 | 8) => config.flags = value,
            (3, 4) => config.priority = u32::try_from(value).unwrap_or(u32::MAX),
            (0..=3, _) => return Err(Refusal::value(format!("{bytes} bytes are no value of attribute {attribute}"))),
            _ => return Err(Refusal::argument(format!("there is no attribute {attribute} of a stream's configuration"))),
        }
        output.set(config);
        Ok(())
    }

    fn aclrtDestroyStreamConfigHandle(config: *mut StreamConfig) {
        require(!config.is_null(), || Refusal::argument("config is null; pass a configuration"))?;
        stream_config::destroy(config)
    }
}

/// A configuration with its defaults.
// SAFETY: the interface defines this name, and no other function here has the same name.
#[unsafe(no_mangle)]
extern "C" fn aclrtCreateStreamConfigHandle() -> *mut StreamConfig {
    give("aclrtCreateStreamConfigHandle", std::ptr::null_mut(), || Ok(stream_config::create()))
}

fn number(bytes: &[u8]) -> Answer<usize> {
    require((1..=8).contains(&bytes.len()), || {
        Refusal::value(format!("a value has {} bytes; pass 4 or 8", bytes.len()))
    })?;
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    Ok(usize::from_ne_bytes(whole))
}

fn make(stream: Out<Handle>, priority: u32, flags: u32) -> Answer {
    let output = stream.required("stream")?;
    output.set(stream::make(&*current::context()?, priority, flags)?);
    Ok(())
}

/// A stream that is to be destroyed.
fn own(stream: Handle) -> Answer<Found<'static, Stream>> {
    require(stream != 0, || {
        Refusal::argument("stream is null; the default stream cannot be destroyed")
    })?;
    current::submitting(stream)
}
