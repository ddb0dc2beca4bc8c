//! Devices: set, reset, waited for.

use std::time::Duration;

use crate::common::argument::Out;
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::device::{current, fleet};

api! {
    fn aclrtSetDevice(device: i32) {
        current::set_device(device)
    }

    fn aclrtResetDevice(device: i32) {
        current::reset_device(device)
    }

    fn aclrtResetDeviceForce(device: i32) {
        current::reset_device_by_force(device)
    }

    fn aclrtGetDevice(device: Out<i32>) {
        let place = device.place("device")?;
        place.set(current::context()?.open.index);
        Ok(())
    }

    fn aclrtSynchronizeDeviceWithTimeout(milliseconds: i32) {
        super::stream::synchronize_device(limit(milliseconds)?)
    }

    fn aclrtGetPrimaryCtxState(device: i32, flags: Out<u32>, active: Out<i32>) {
        let is_active = fleet::with_primary(device, |primary| primary.context.is_some())?;
        if let Some(place) = flags.optional() {
            place.set(0);
        }
        active.put("active", i32::from(is_active))
    }
}

/// A limit in milliseconds: -1 is none; 0 and everything else below is refused.
pub(super) fn limit(milliseconds: i32) -> Answer<Option<Duration>> {
    require(milliseconds == -1 || milliseconds > 0, || {
        Refusal::value(format!(
            "a limit of {milliseconds} ms is none; pass -1 for no limit, or 1 and more"
        ))
    })?;
    Ok(u64::try_from(milliseconds).ok().map(Duration::from_millis))
}

/// A limit in seconds: 0 is none.
pub(super) fn seconds(seconds: u32) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}
