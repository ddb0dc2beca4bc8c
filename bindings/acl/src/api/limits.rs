//! Core limits of devices, streams and threads, and time limits of operators.

use std::time::Duration;

use crate::common::argument::Out;
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::common::thread;
use crate::device::stream::STREAMS;
use crate::device::{current, fleet, limits};

api! {
    fn aclrtGetDeviceResLimit(device: i32, kind: u32, value: Out<u32>) {
        let output = value.required("value")?;
        output.set(of_device(device, index(kind)?)?);
        Ok(())
    }

    fn aclrtSetDeviceResLimit(device: i32, kind: u32, value: u32) {
        let kind = index(kind)?;
        check(value, fleet::open(device)?.cores()[kind])?;
        limits::set_cores(device, kind, value);
        Ok(())
    }

    fn aclrtResetDeviceResLimit(device: i32) {
        fleet::check(device)?;
        limits::reset_cores(device);
        Ok(())
    }

    fn aclrtGetStreamResLimit(stream: Handle, kind: u32, value: Out<u32>) {
        let output = value.required("value")?;
        let kind = index(kind)?;
        let stream = current::asked(stream)?;
        let own = stream.attributes().limits[kind];
        output.set(own.map_or_else(|| of_device(stream.context.open.index, kind), Ok)?);
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
        let output = value.required("value")?;
        let kind = index(kind)?;
        let context = current::context()?;
        let used = thread::with(|thread| thread.limits_of).and_then(|stream| STREAMS.find(stream));
        let own = used.and_then(|stream| stream.attributes().limits[kind]);
        output.set(own.map_or_else(|| of_device(context.open.index, kind), Ok)?);
        Ok(())
    }

    fn aclrtSetOpExecuteTimeOutV2(microseconds: u64, real: Out<u64>) {
        let output = real.required("real")?;
        let held = limits::set_operator_time(Duration::from_micros(microseconds));
        output.set(u64::try_from(held.as_micros()).unwrap_or(u64::MAX));
        Ok(())
    }

    fn aclrtSetOpExecuteTimeOut(seconds: u32) {
        limits::set_operator_time(Duration::from_secs(seconds.into()));
        Ok(())
    }

    fn aclrtSetOpExecuteTimeOutWithMs(milliseconds: u32) {
        limits::set_operator_time(Duration::from_millis(milliseconds.into()));
        Ok(())
    }

    fn aclrtGetOpExecuteTimeout(milliseconds: Out<u32>) {
        let held = limits::operator_us() / 1000;
        milliseconds.put("milliseconds", u32::try_from(held).unwrap_or(u32::MAX))
    }

    fn aclrtGetOpTimeOutInterval(microseconds: Out<u64>) {
        microseconds.put("microseconds", u64::try_from(limits::STEP.as_micros()).unwrap_or(0))
    }

    fn aclrtSetOpWaitTimeout(seconds: u32) {
        limits::set_wait_seconds(seconds);
        Ok(())
    }
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
    Ok(limits::cores(device, kind).unwrap_or(cores))
}
