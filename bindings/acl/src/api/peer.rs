//! Access between devices. Devices of one process reach each other's memory; the interface has it switched on all the same.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::common::argument::Out;
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::device::{current, fleet};

/// The pairs (from, to) that are switched on.
static ENABLED: Mutex<BTreeSet<(i32, i32)>> = Mutex::new(BTreeSet::new());

api! {
    fn aclrtDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        let place = can.place("can")?;
        check(device, peer)?;
        place.set(1);
        Ok(())
    }

    fn aclrtDeviceEnablePeerAccess(peer: i32, flags: u32) {
        require(flags == 0, || Refusal::argument("flags are reserved; pass 0"))?;
        let device = current::context()?.open.index;
        check(device, peer)?;
        fleet::open(peer)?;
        ENABLED.lock().unwrap_or_else(PoisonError::into_inner).insert((device, peer));
        Ok(())
    }

    fn aclrtDeviceDisablePeerAccess(peer: i32) {
        let device = current::context()?.open.index;
        check(device, peer)?;
        let was = ENABLED.lock().unwrap_or_else(PoisonError::into_inner).remove(&(device, peer));
        require(was, || Refusal::value(format!("access to device {peer} is not enabled; enable it first")))
    }

    fn aclrtDevicePeerAccessStatus(device: i32, peer: i32, status: Out<i32>) {
        let place = status.place("status")?;
        check(device, peer)?;
        let enabled = ENABLED.lock().unwrap_or_else(PoisonError::into_inner);
        place.set(i32::from(enabled.contains(&(device, peer))));
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
