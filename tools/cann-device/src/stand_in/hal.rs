//! `hal*`: which cores are in service, and where their registers are.

use std::ffi::c_void;

use crate::Code;
use crate::acl::{exports, give, on_device};
use crate::checks::{Expected, bytes_at, refuse};
use crate::die::clusters;
use crate::memory::REGISTERS;

/// A bit for each cluster of the die that is in service.
fn mask() -> u64 {
    let all = (1_u64 << (clusters() + 1)) - 1;
    all & !2
}

const AICPU: i32 = 1;
const AICORE: i32 = 4;
const OCCUPY: i32 = 8;

exports! {
    fn halGetDeviceInfo(device: u32, module: i32, which: i32, value: *mut i64) -> Code {
        on_device("halGetDeviceInfo", |_| match (device, module, which) {
            (0, AICPU, OCCUPY) => give(value, 0xFC),
            _ => refuse(format!("no fact {which} of module {module} of device {device}")),
        })
    }

    fn halGetDeviceInfoByBuff(device: u32, module: i32, which: i32, buffer: *mut c_void, bytes: *mut i32) -> Code {
        on_device("halGetDeviceInfoByBuff", |_| {
            let size = bytes_at("the size", bytes.cast(), 4)?;
            Expected::new("the size", 4).holds(0, &16_u32.to_le_bytes()).check(&size)?;
            if (device, module, which) != (0, AICORE, OCCUPY) {
                return refuse(format!("no fact {which} of module {module} of device {device}"));
            }
            give(buffer.cast::<[u64; 2]>(), [mask(), 0])
        })
    }

    fn halMemCtl(kind: i32, input: *mut c_void, bytes: usize, output: *mut c_void, written: *mut usize) -> Code {
        on_device("halMemCtl", |_| {
            if kind != 0 || bytes != 8 || !written.is_null() {
                return refuse(format!("kind {kind}, {bytes} bytes"));
            }
            // AddrMapInPara: what is to be mapped (2: the AICores' control registers), and the device.
            let asked = bytes_at("AddrMapInPara", input, 8)?;
            Expected::new("AddrMapInPara", 8).holds(0, &2_u32.to_le_bytes()).check(&asked)?;
            give(output.cast::<[u64; 2]>(), [REGISTERS, 25 * (8 << 20)])
        })
    }
}
