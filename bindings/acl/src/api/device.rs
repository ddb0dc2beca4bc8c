//! Devices: set, reset, waited for.

use crate::common::argument::Out;
use crate::common::entry::api;
use crate::device::{current, fleet, profiler};

use super::time::limit;

api! {
    fn aclrtSetDevice(device: i32) {
        profiler::trace_program();
        current::set_device(device)
    }

    fn aclrtResetDevice(device: i32) {
        current::reset_device(device)
    }

    fn aclrtResetDeviceForce(device: i32) {
        current::reset_device_by_force(device)
    }

    fn aclrtGetDevice(device: Out<i32>) {
        let output = device.required("device")?;
        output.set(current::context()?.open.index);
        Ok(())
    }

    fn aclrtSynchronizeDeviceWithTimeout(milliseconds: i32) {
        current::synchronize_device(limit(milliseconds)?)
    }

    fn aclrtGetPrimaryCtxState(device: i32, flags: Out<u32>, active: Out<i32>) {
        let is_active = fleet::with_primary(device, |primary| primary.context.is_some())?;
        if let Some(output) = flags.optional() {
            output.set(0);
        }
        active.put("active", i32::from(is_active))
    }
}
