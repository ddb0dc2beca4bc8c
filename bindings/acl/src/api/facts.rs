//! What programs ask of a device: names, numbers of cores, sizes, states.

use std::ffi::c_char;

use crate::common::argument::Out;
use crate::common::entry::{api, values};
use crate::common::notes::Pointee;
use crate::common::refusal::{Refusal, require};
use crate::device::{current, facts, fleet};

/// What the library can do, by the numbers of the interface.
const ATTRIBUTES: &[i32] = &[0, 1];

values! {
    // The name of the system on chip.
    fn aclrtGetSocName() -> *const c_char, std::ptr::null(), { Ok(c"Ascend910B1".as_ptr()) }
}

api! {
    fn aclrtGetDeviceCount(count: Out<u32>) {
        count.put("count", u32::try_from(fleet::count()).unwrap_or(u32::MAX))
    }

    fn aclrtGetRunMode(mode: Out<u32>) {
        mode.put("mode", 1)
    }

    fn aclrtGetDeviceInfo(device: u32, attribute: u32, value: Out<i64>) {
        value.put("value", facts::attribute(device, attribute)?)
    }

    fn aclGetDeviceCapability(device: u32, what: i32, value: Out<i64>) {
        value.put("value", facts::capability(device, what)?)
    }

    fn aclrtGetDeviceCapability(device: i32, feature: u32, value: Out<i32>) {
        fleet::check(device)?;
        require(matches!(feature, 1 | 21), || Refusal::argument(format!("there is no feature {feature}")))?;
        value.put("value", 0)
    }

    fn aclrtQueryDeviceStatus(device: i32, status: Out<u32>) {
        fleet::check(device)?;
        status.put("status", 0)
    }

    fn aclrtGetDeviceUtilizationRate(device: i32, rates: Out<Utilization>) {
        fleet::check(device)?;
        rates.put("rates", Utilization { rates: [-1; 4], extend: 0 })
    }

    fn aclrtDeviceGetUuid(device: i32, uuid: Out<[u8; 16]>) {
        uuid.put("uuid", facts::uuid(device)?)
    }

    fn aclrtDeviceGetBareTgid(process: Out<i32>) {
        process.put("process", std::process::id().cast_signed())
    }

    fn aclrtDeviceGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        least.put("least", 7)?;
        greatest.put("greatest", 0)
    }

    fn aclrtGetLogicDevIdByUserDevId(user: i32, logic: Out<i32>) {
        logic.put("logic", facts::physical(user)?)
    }

    fn aclrtGetPhyDevIdByLogicDevId(logic: i32, found: Out<i32>) {
        found.put("physical", facts::known(logic)?)
    }

    fn aclrtGetPhyDevIdByUserDevId(user: i32, found: Out<i32>) {
        found.put("physical", facts::physical(user)?)
    }

    fn aclrtGetLogicDevIdByPhyDevId(found: i32, logic: Out<i32>) {
        logic.put("logic", facts::known(found)?)
    }

    fn aclrtGetUserDevIdByLogicDevId(logic: i32, user: Out<i32>) {
        user.put("user", facts::seen(logic)?)
    }

    fn aclrtGetUserDevIdByPhyDevId(found: i32, user: Out<i32>) {
        user.put("user", facts::seen(found)?)
    }

    fn aclrtGetErrorVerbose(device: i32, error: Out<ErrorInfo>) {
        fleet::check(device)?;
        error.put("error", ErrorInfo { words: [0; 322] })
    }

    fn aclGetCannAttributeList(list: Out<*const i32>, count: Out<usize>) {
        list.put("list", ATTRIBUTES.as_ptr())?;
        count.put("count", ATTRIBUTES.len())
    }

    fn aclGetCannAttribute(attribute: i32, value: Out<i32>) {
        require((0..=2).contains(&attribute), || {
            Refusal::argument(format!("there is no attribute {attribute} of the library"))
        })?;
        value.put("value", i32::from(attribute < 2))
    }

    fn aclrtSynchronizeDevice() {
        current::synchronize_device(None)
    }
}

/// `aclrtUtilizationInfo`: -1 is not known.
#[repr(C)]
struct Utilization {
    rates: [i32; 4],
    extend: usize,
}

impl Pointee for Utilization {}

/// `aclrtErrorInfo`: all zero, there is none.
#[repr(C)]
struct ErrorInfo {
    words: [u64; 322],
}

impl Pointee for ErrorInfo {}

const _: () = assert!(size_of::<Utilization>() == 24 && size_of::<ErrorInfo>() == 2576);
