//! Access between devices.

use crate::common::argument::Out;
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::device::{current, fleet, peer as access};

api! {
    fn aclrtDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        let output = can.required("can")?;
        check(device, peer)?;
        output.set(1);
        Ok(())
    }

    fn aclrtDeviceEnablePeerAccess(peer: i32, flags: u32) {
        require(flags == 0, || Refusal::argument("flags are reserved; pass 0"))?;
        let device = current::context()?.open.index;
        check(device, peer)?;
        access::enable(device, peer)
    }

    fn aclrtDeviceDisablePeerAccess(peer: i32) {
        let device = current::context()?.open.index;
        check(device, peer)?;
        access::disable(device, peer)
    }

    fn aclrtDevicePeerAccessStatus(device: i32, peer: i32, status: Out<i32>) {
        let output = status.required("status")?;
        check(device, peer)?;
        output.set(i32::from(access::is_enabled(device, peer)));
        Ok(())
    }
}

fn check(device: i32, peer: i32) -> Answer {
    fleet::check(device)?;
    fleet::check(peer)?;
    require(device != peer, || {
        Refusal::value(format!("device {device} is its own peer; name another one"))
    })
}
