//! Streams: made, destroyed, waited for.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::time::limit;
use crate::common::argument::{In, Out};
use crate::common::codes;
use crate::common::entry::{api, give};
use crate::common::notes::Pointee;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::stream::{STREAMS, Stream};
use crate::device::{callbacks, current};

/// `aclrtStreamConfigHandle`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct StreamConfig {
    work: usize,
    work_bytes: usize,
    flags: usize,
    priority: u32,
}

impl Pointee for StreamConfig {}

const _: () = assert!(size_of::<StreamConfig>() == 32);

/// The addresses of the configurations that were made and not destroyed.
static CONFIGS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

fn configs() -> MutexGuard<'static, BTreeSet<usize>> {
    CONFIGS.lock().unwrap_or_else(PoisonError::into_inner)
}

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
        let stream = own(stream)?;
        stream.check_uncaptured()?;
        // What failed is told to nobody any more.
        stream.lane.synchronize(None).unwrap_or_default();
        destroy(&stream)
    }

    fn aclrtDestroyStreamForce(stream: Handle) {
        let stream = own(stream)?;
        stream.check_uncaptured()?;
        stream.lane.abort();
        destroy(&stream)
    }

    fn aclrtSynchronizeStream(stream: Handle) {
        current::asked(stream)?.synchronize(None)
    }

    fn aclrtSynchronizeStreamWithTimeout(stream: Handle, milliseconds: i32) {
        let limit = limit(milliseconds)?;
        current::asked(stream)?.synchronize(limit)
    }

    fn aclrtStreamQuery(stream: Handle, status: Out<u32>) {
        let place = status.place("status")?;
        let stream = current::asked(stream)?;
        stream.check_uncaptured()?;
        place.set(u32::from(!stream.lane.is_idle()?));
        Ok(())
    }

    fn aclrtStreamAbort(stream: Handle) {
        require(stream != 0, || Refusal::argument("stream is null; the default stream cannot be aborted"))?;
        let stream = current::submitting(stream)?;
        stream.check_uncaptured()?;
        stream.lane.abort();
        Ok(())
    }

    fn aclrtStreamStop(stream: Handle) {
        require(stream != 0, || Refusal::argument("stream is null; the default stream cannot be stopped"))?;
        let stream = current::submitting(stream)?;
        stream.check_uncaptured()?;
        stream.lane.abort();
        Ok(())
    }

    fn aclrtStreamGetId(stream: Handle, id: Out<i32>) {
        let place = id.place("id")?;
        place.set(current::asked(stream)?.id);
        Ok(())
    }

    fn aclrtStreamGetPriority(stream: Handle, priority: Out<u32>) {
        let place = priority.place("priority")?;
        place.set(current::asked(stream)?.priority);
        Ok(())
    }

    fn aclrtStreamGetFlags(stream: Handle, flags: Out<u32>) {
        let place = flags.place("flags")?;
        place.set(current::asked(stream)?.flags);
        Ok(())
    }

    fn aclrtSetStreamConfigOpt(config: Out<StreamConfig>, attribute: u32, value: In<u8>, bytes: usize) {
        let place = config.place("config")?;
        require(bytes <= 8, || Refusal::value(format!("a value has {bytes} bytes; pass 4 or 8")))?;
        let value = number(&value.list("value", bytes)?)?;
        let mut config = place.read();
        match (attribute, bytes) {
            (0, 8) => config.work = value,
            (1, 8) => config.work_bytes = value,
            (2, 4 | 8) => config.flags = value,
            (3, 4) => config.priority = u32::try_from(value).unwrap_or(u32::MAX),
            (0..=3, _) => return Err(Refusal::value(format!("{bytes} bytes are no value of attribute {attribute}"))),
            _ => return Err(Refusal::argument(format!("there is no attribute {attribute} of a stream's configuration"))),
        }
        place.set(config);
        Ok(())
    }

    fn aclrtDestroyStreamConfigHandle(config: *mut StreamConfig) {
        require(!config.is_null(), || Refusal::argument("config is null; pass a configuration"))?;
        require(configs().remove(&config.expose_provenance()), || {
            let text = format!("{config:p} is no configuration of aclrtCreateStreamConfigHandle, or was destroyed");
            Refusal::new(codes::BAD_HANDLE, text)
        })?;
        // SAFETY: the caller has it from `aclrtCreateStreamConfigHandle`, and destroys it once.
        drop(unsafe { Box::from_raw(config) });
        Ok(())
    }
}

/// A configuration with its defaults.
// SAFETY: the name is that of the interface, and no other function here has it.
#[unsafe(no_mangle)]
extern "C" fn aclrtCreateStreamConfigHandle() -> *mut StreamConfig {
    give("aclrtCreateStreamConfigHandle", std::ptr::null_mut(), || {
        let config: *mut StreamConfig = Box::into_raw(Box::default());
        configs().insert(config.expose_provenance());
        Ok(config)
    })
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
    let place = stream.place("stream")?;
    let made = Stream::new(&*current::context()?, priority, flags)?;
    callbacks::stream_made(made.handle);
    place.set(made.handle);
    Ok(())
}

/// A stream that is to be destroyed.
fn own(stream: Handle) -> Answer<std::sync::Arc<Stream>> {
    require(stream != 0, || {
        Refusal::argument("stream is null; the default stream cannot be destroyed")
    })?;
    let stream = current::submitting(stream)?;
    require(!stream.is_default(), || {
        Refusal::new(
            codes::BAD_VALUE,
            "the stream is the default one of its context; it goes with the context",
        )
    })?;
    Ok(std::sync::Arc::clone(&stream))
}

fn destroy(stream: &Stream) -> Answer {
    callbacks::stream_ends(stream.handle);
    STREAMS.take(stream.handle).map(drop)
}

/// Waits for every stream of the current context's device.
pub(super) fn synchronize_device(limit: Option<Duration>) -> Answer {
    let context = current::context()?;
    let start = std::time::Instant::now();
    for (_, stream) in STREAMS.all() {
        if stream.context.open.index == context.open.index {
            let left = limit.map(|limit| limit.saturating_sub(start.elapsed()));
            stream.synchronize(left)?;
        }
    }
    Ok(())
}
