//! Core limits of devices, streams and threads, and time limits of operators.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::time::seconds;
use crate::common::argument::Out;
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::common::thread;
use crate::device::stream::STREAMS;
use crate::device::{current, fleet};

/// The limits that are set on devices.
static DEVICES: Mutex<BTreeMap<i32, [Option<u32>; 2]>> = Mutex::new(BTreeMap::new());

/// The longest time of an operator, in microseconds.
const LONGEST_US: u64 = 547 * 1_000_000;
/// Times of operators are rounded up to this many microseconds.
const STEP_US: u64 = 1000;

static TIMES: Mutex<(u64, u32)> = Mutex::new((LONGEST_US, 0));

api! {
    fn aclrtGetDeviceResLimit(device: i32, kind: u32, value: Out<u32>) {
        let place = value.place("value")?;
        place.set(of_device(device, index(kind)?)?);
        Ok(())
    }

    fn aclrtSetDeviceResLimit(device: i32, kind: u32, value: u32) {
        let kind = index(kind)?;
        check(value, fleet::open(device)?.cores()[kind])?;
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        devices.entry(device).or_default()[kind] = Some(value);
        Ok(())
    }

    fn aclrtResetDeviceResLimit(device: i32) {
        fleet::check(device)?;
        DEVICES.lock().unwrap_or_else(PoisonError::into_inner).remove(&device);
        Ok(())
    }

    fn aclrtGetStreamResLimit(stream: Handle, kind: u32, value: Out<u32>) {
        let place = value.place("value")?;
        let kind = index(kind)?;
        let stream = current::asked(stream)?;
        let own = stream.attributes().limits[kind];
        place.set(own.map_or_else(|| of_device(stream.context.open.index, kind), Ok)?);
        Ok(())
    }

    fn aclrtSetStreamResLimit(stream: Handle, kind: u32, value: u32) {
        let kind = index(kind)?;
        let stream = current::submitting(stream)?;
        check(value, stream.context.open.cores()[kind])?;
        stream.attributes().limits[kind] = Some(value);
        Ok(())
    }

    fn aclrtResetStreamResLimit(stream: Handle) {
        current::submitting(stream)?.attributes().limits = [None; 2];
        Ok(())
    }

    fn aclrtUseStreamResInCurrentThread(stream: Handle) {
        let stream = current::submitting(stream)?.handle;
        thread::with(|thread| thread.limits_of = Some(stream));
        Ok(())
    }

    fn aclrtUnuseStreamResInCurrentThread(stream: Handle) {
        current::submitting(stream)?;
        thread::with(|thread| thread.limits_of = None);
        Ok(())
    }

    fn aclrtGetResInCurrentThread(kind: u32, value: Out<u32>) {
        let place = value.place("value")?;
        let kind = index(kind)?;
        let context = current::context()?;
        let used = thread::with(|thread| thread.limits_of).and_then(|stream| STREAMS.find(stream));
        let own = used.and_then(|stream| stream.attributes().limits[kind]);
        place.set(own.map_or_else(|| of_device(context.open.index, kind), Ok)?);
        Ok(())
    }

    fn aclrtSetOpExecuteTimeOutV2(microseconds: u64, real: Out<u64>) {
        let place = real.place("real")?;
        let set = if microseconds == 0 { LONGEST_US } else { microseconds.min(LONGEST_US) };
        let set = set.next_multiple_of(STEP_US);
        TIMES.lock().unwrap_or_else(PoisonError::into_inner).0 = set;
        place.set(set);
        Ok(())
    }

    fn aclrtSetOpExecuteTimeOut(seconds: u32) {
        let wanted = if seconds == 0 { LONGEST_US } else { u64::from(seconds) * 1_000_000 };
        TIMES.lock().unwrap_or_else(PoisonError::into_inner).0 = wanted.min(LONGEST_US);
        Ok(())
    }

    fn aclrtSetOpExecuteTimeOutWithMs(milliseconds: u32) {
        let wanted = if milliseconds == 0 { LONGEST_US } else { u64::from(milliseconds) * 1000 };
        TIMES.lock().unwrap_or_else(PoisonError::into_inner).0 = wanted.min(LONGEST_US);
        Ok(())
    }

    fn aclrtGetOpExecuteTimeout(milliseconds: Out<u32>) {
        let set = TIMES.lock().unwrap_or_else(PoisonError::into_inner).0;
        milliseconds.put("milliseconds", u32::try_from(set / 1000).unwrap_or(u32::MAX))
    }

    fn aclrtGetOpTimeOutInterval(microseconds: Out<u64>) {
        microseconds.put("microseconds", STEP_US)
    }

    fn aclrtSetOpWaitTimeout(seconds: u32) {
        TIMES.lock().unwrap_or_else(PoisonError::into_inner).1 = seconds;
        Ok(())
    }
}

/// How long a stream waits for an event where the call names no limit: as `aclrtSetOpWaitTimeout` says.
pub(super) fn of_waits() -> Option<Duration> {
    seconds(TIMES.lock().unwrap_or_else(PoisonError::into_inner).1)
}

fn index(kind: u32) -> Answer<usize> {
    require(kind <= 1, || {
        Refusal::argument(format!(
            "there is no kind {kind} of cores; there are 0 (cube) and 1 (vector)"
        ))
    })?;
    Ok(kind as usize)
}

fn check(value: u32, cores: u32) -> Answer {
    require((1..=cores).contains(&value), || {
        Refusal::value(format!("{value} cores are no limit; the device has {cores}"))
    })
}

fn of_device(device: i32, kind: usize) -> Answer<u32> {
    let cores = fleet::open(device)?.cores()[kind];
    let devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(devices.get(&device).and_then(|limits| limits[kind]).unwrap_or(cores))
}
