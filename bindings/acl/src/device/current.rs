//! The current context, device and default stream of the calling thread, and how contexts are made and destroyed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::capture::{self, CaptureMode};
use super::context::{CONTEXTS, Context};
use super::event::EVENTS;
use super::open::Open;
use super::stream::{STREAMS, Stream};
use super::{
    callbacks, defaults, fleet, graph, memory_map, model, operator_cache, tile, virtual_memory,
};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Found, Handle};
use crate::common::thread::{self, ThreadRef};
use crate::common::{checks, codes};

/// The current context.
pub(crate) fn context() -> Answer<Found<'static, Context>> {
    let handle = thread::with(|thread| thread.context);
    fleet::context(handle.map_or_else(default_context, Ok)?)
}

/// The context of a thread that has set none: as if it had set the device that the configuration names.
#[cold]
fn default_context() -> Answer<Handle> {
    if let Some(device) = defaults::device() {
        set_device(device)?;
    }
    thread::with(|thread| thread.context).ok_or_else(|| {
        let text =
            "this thread has no context; call aclrtSetDevice or aclrtSetCurrentContext first";
        Refusal::new(codes::NO_CONTEXT, text)
    })
}

/// A stream that this thread submits to: NULL is the default one; one of another context is refused.
#[inline]
pub(crate) fn submitting(stream: Handle) -> Answer<Found<'static, Stream>> {
    submitting_from(&thread::own(), stream)
}

/// As [`submitting`], for a call that looks at its thread again.
#[inline]
pub(crate) fn submitting_from(own: &ThreadRef, stream: Handle) -> Answer<Found<'static, Stream>> {
    if stream != 0
        && let Some(stream) = of_current(own, stream)
    {
        return Ok(stream);
    }
    let context = context()?;
    if stream == 0 {
        return STREAMS.look(context.default_stream());
    }
    let handle = stream;
    let stream = STREAMS.look(handle)?;
    require(stream.context.handle == context.handle, || {
        let text = format!(
            "the stream {handle:#x}{} belongs to another context than the current one; set its context first",
            checks::made(handle)
        );
        Refusal::new(codes::OTHER_CONTEXT, text)
    })?;
    Ok(stream)
}

/// A stream that this thread waits for or asks about: of any context.
pub(crate) fn asked(stream: Handle) -> Answer<Found<'static, Stream>> {
    if stream != 0
        && let Some(stream) = of_current(&thread::own(), stream)
    {
        return Ok(stream);
    }
    let context = context()?;
    STREAMS.look(if stream == 0 { context.default_stream() } else { stream })
}

/// The stream, where it belongs to the current context and that lives: what most calls ask for, with one look into one table.
#[inline]
fn of_current(own: &ThreadRef, stream: Handle) -> Option<Found<'static, Stream>> {
    let current = own.with(|thread| thread.context)?;
    STREAMS
        .find(stream)
        .filter(|stream| stream.context.handle == current && !stream.context.is_destroyed())
}

/// Refuses a call that is no command of a stream while a capture forbids it.
pub(crate) fn check_uncaptured() -> Answer {
    let mode = CaptureMode::of(thread::with(|thread| thread.capture_mode))?;
    capture::check_allowed(mode)
}

/// Makes a context with its default stream.
pub(crate) fn make_context(device: i32, is_primary: bool) -> Answer<Arc<Context>> {
    let context = Context::new(fleet::open(device)?, is_primary);
    let stream = Stream::new(&context, 0, 0)?;
    context.set_default_stream(stream.handle);
    callbacks::stream_made(stream.handle);
    Ok(context)
}

/// Makes a context the current one.
pub(crate) fn set(context: &Context) {
    thread::with(|thread| thread.context = Some(context.handle));
}

/// Destroys a context with its streams, its captures and its graphs; what was submitted still runs.
pub(crate) fn destroy(context: &Arc<Context>) {
    context.mark_destroyed();
    for (handle, stream) in STREAMS.all() {
        if stream.context.handle == context.handle {
            callbacks::stream_ends(handle);
            // Another thread destroys it at the same moment: then it is gone as well.
            STREAMS.forget(handle);
            stream.leave_capture();
        }
    }
    graph::forget_of(context.handle);
    CONTEXTS.forget(context.handle);
    thread::with(|thread| {
        if thread.context == Some(context.handle) {
            thread.context = None;
        }
    });
}

/// `aclrtSetDevice`: the primary context counts one more, and becomes the current one.
pub(crate) fn set_device(device: i32) -> Answer {
    fleet::check(device)?;
    let held = fleet::with_primary(device, |primary| primary.context.clone())?;
    let made = match held {
        Some(context) => context,
        None => make_context(device, true)?,
    };
    let context = fleet::with_primary(device, |primary| {
        primary.count += 1;
        Arc::clone(primary.context.get_or_insert(made))
    })?;
    set(&context);
    Ok(())
}

/// `aclrtResetDevice`: the primary context counts one less; the last time the device is waited for and released.
pub(crate) fn reset_device(device: i32) -> Answer {
    let (count, context) = fleet::with_primary(device, |primary| {
        let before = primary.count;
        primary.count = before.saturating_sub(1);
        let ends = before == 1;
        (before, if ends { primary.context.take() } else { None })
    })?;
    require(count > 0, || {
        let text = format!("device {device} is not set; reset it as often as it was set");
        Refusal::new(codes::CONTEXT_RELEASE, text)
    })?;
    let Some(context) = context else { return Ok(()) };
    // No call is left that could return these failures.
    context.open.drain().unwrap_or_default();
    destroy(&context);
    let left = CONTEXTS.all().iter().any(|(_, other)| other.open.index == device);
    if !left {
        forget_all(&context.open);
    }
    Ok(())
}

/// Forgets what the program has on a device that is reset.
fn forget_all(open: &Open) {
    model::forget_all(open.index);
    operator_cache::forget_all(open.index);
    tile::forget_all(open.index);
    virtual_memory::forget_all(open);
    memory_map::free_all(open.index);
}

/// `aclrtResetDeviceForce`: everything of the device goes at once.
pub(crate) fn reset_device_by_force(device: i32) -> Answer {
    let count = fleet::with_primary(device, |primary| {
        primary.context = None;
        std::mem::take(&mut primary.count)
    })?;
    require(count > 0, || {
        let text = format!("device {device} is not set; reset it as often as it was set");
        Refusal::new(codes::CONTEXT_RELEASE, text)
    })?;
    let open = fleet::opened(device);
    if let Some(open) = &open {
        open.reset()?;
    }
    for (_, context) in CONTEXTS.all() {
        if context.open.index == device {
            destroy(&context);
        }
    }
    for (handle, event) in EVENTS.all() {
        if event.open.index == device {
            EVENTS.forget(handle);
        }
    }
    if let Some(open) = &open {
        forget_all(open);
    }
    Ok(())
}

/// Waits for every stream of the current context's device.
pub(crate) fn synchronize_device(limit: Option<Duration>) -> Answer {
    let context = context()?;
    let start = Instant::now();
    for (_, stream) in STREAMS.all() {
        if stream.context.open.index == context.open.index {
            let left = limit.map(|limit| limit.saturating_sub(start.elapsed()));
            stream.synchronize(left)?;
        }
    }
    Ok(())
}

/// The device of the current context.
pub(crate) fn open() -> Answer<Arc<Open>> {
    Ok(Arc::clone(&context()?.open))
}
