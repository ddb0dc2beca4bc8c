//! Functions on events.

use std::time::Duration;

use super::time::{limit, seconds};
use crate::common::argument::Out;
use crate::common::codes;
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Found, Handle};
use crate::device::current;
use crate::device::event::{EVENTS, Event, SYNC, Style, TIME_LINE};
use crate::device::limits;

api! {
    fn aclrtCreateEvent(event: Out<Handle>) {
        make(event, Style::Plain, SYNC | TIME_LINE)
    }

    fn aclrtCreateEventWithFlag(event: Out<Handle>, flags: u32) {
        make(event, Style::Flagged, flags)
    }

    fn aclrtCreateEventExWithFlag(event: Out<Handle>, flags: u32) {
        make(event, Style::New, flags)
    }

    fn aclrtDestroyEvent(event: Handle) {
        checked(event)?;
        EVENTS.take(event).map(drop)
    }

    fn aclrtRecordEvent(event: Handle, stream: Handle) {
        record(event, stream, false)
    }

    fn aclrtRecordEventWithFlag(event: Handle, stream: Handle, flag: u32) {
        let external = external(flag)?;
        let stream = current::submitting(stream)?;
        check_captured(external, &stream)?;
        checked(event)?.record(&stream, external)
    }

    fn aclrtResetEvent(event: Handle, stream: Handle) {
        let event = checked(event)?;
        event.reset(&*current::submitting(stream)?)
    }

    fn aclrtStreamWaitEvent(stream: Handle, event: Handle) {
        wait(stream, event, false, seconds(limits::wait_seconds()))
    }

    fn aclrtStreamWaitEventWithTimeout(stream: Handle, event: Handle, timeout: i32) {
        let seconds_left = u32::try_from(timeout).ok().filter(|seconds| *seconds > 0);
        require(timeout == -1 || seconds_left.is_some(), || {
            Refusal::value(format!("a limit of {timeout} s is none; pass -1 for no limit, or 1 and more"))
        })?;
        wait(stream, event, false, seconds_left.and_then(seconds))
    }

    fn aclrtStreamWaitEventWithFlag(stream: Handle, event: Handle, timeout: u32, flag: u32) {
        let external = external(flag)?;
        check_captured(external, &*current::submitting(stream)?)?;
        wait(stream, event, external, seconds(timeout))
    }

    fn aclrtQueryEventStatus(event: Handle, status: Out<u32>) {
        let output = status.required("status")?;
        output.set(u32::from(checked(event)?.is_complete()?));
        Ok(())
    }

    fn aclrtQueryEvent(event: Handle, status: Out<u32>) {
        let output = status.required("status")?;
        output.set(u32::from(!checked(event)?.is_complete()?));
        Ok(())
    }

    fn aclrtQueryEventWaitStatus(event: Handle, status: Out<u32>) {
        let output = status.required("status")?;
        output.set(u32::from(!checked(event)?.was_waited_for()));
        Ok(())
    }

    fn aclrtSynchronizeEvent(event: Handle) {
        checked(event)?.synchronize(None)
    }

    fn aclrtSynchronizeEventWithTimeout(event: Handle, milliseconds: i32) {
        let limit = limit(milliseconds)?;
        checked(event)?.synchronize(limit)
    }

    fn aclrtEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle) {
        let output = milliseconds.required("milliseconds")?;
        let (start, end) = (checked(start)?.time()?, checked(end)?.time()?);
        let elapsed = end.as_secs_f64() - start.as_secs_f64();
        #[expect(clippy::cast_possible_truncation, reason = "the interface has a float")]
        output.set((1000.0 * elapsed) as f32);
        Ok(())
    }

    fn aclrtEventGetTimestamp(event: Handle, microseconds: Out<u64>) {
        let output = microseconds.required("microseconds")?;
        let time: Duration = checked(event)?.time()?;
        output.set(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        Ok(())
    }
}

fn make(event: Out<Handle>, style: Style, flags: u32) -> Answer {
    let output = event.required("event")?;
    output.set(Event::open(&current::context()?.open, style, flags, None)?);
    Ok(())
}

/// The event of a handle.
pub(super) fn checked(event: Handle) -> Answer<Found<'static, Event>> {
    require(event != 0, || Refusal::argument("event is null; pass an event"))?;
    EVENTS.look(event)
}

fn record(event: Handle, stream: Handle, external: bool) -> Answer {
    let event = checked(event)?;
    event.record(&*current::submitting(stream)?, external)
}

fn wait(stream: Handle, event: Handle, external: bool, limit: Option<Duration>) -> Answer {
    let event = checked(event)?;
    event.wait(&*current::submitting(stream)?, external, limit)
}

fn external(flag: u32) -> Answer<bool> {
    require(flag <= 1, || {
        Refusal::value(format!("there is no flag {flag}; there are 0 and 1 (external)"))
    })?;
    Ok(flag == 1)
}

fn check_captured(external: bool, stream: &crate::device::stream::Stream) -> Answer {
    require(!external || stream.capture().is_some(), || {
        let text = "the flag EXTERNAL is for streams that are captured, and this one is not";
        Refusal::new(codes::NOT_CAPTURED, text)
    })
}
