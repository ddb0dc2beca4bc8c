//! What programs ask of a device: names, numbers of cores, sizes, states.

use std::ffi::c_char;

use crate::common::argument::Out;
use crate::common::entry::{api, values};
use crate::common::notes::Pointee;
use crate::common::refusal::{Answer, Refusal, require};
use crate::device::open::Open;
use crate::device::settings::settings;
use crate::device::{current, fleet};

/// The system on chip that the devices are like.
pub(super) const SOC: &str = "Ascend910B1";

values! {
    // The name of the system on chip.
    fn aclrtGetSocName() -> *const c_char, std::ptr::null(), { Ok(c"Ascend910B1".as_ptr()) }
}

const L2_BYTES: i64 = 192 << 20;

api! {
    fn aclrtGetDeviceCount(count: Out<u32>) {
        count.put("count", u32::try_from(fleet::count()).unwrap_or(u32::MAX))
    }

    fn aclrtGetRunMode(mode: Out<u32>) {
        mode.put("mode", 1)
    }

    fn aclrtGetDeviceInfo(device: u32, attribute: u32, value: Out<i64>) {
        let open = opened(device)?;
        value.put("value", self::attribute(&open, attribute)?)
    }

    fn aclGetDeviceCapability(device: u32, what: i32, value: Out<i64>) {
        let open = opened(device)?;
        let [cube, vector] = open.cores().map(i64::from);
        let of = [cube, vector, L2_BYTES];
        let found = usize::try_from(what).ok().and_then(|what| of.get(what));
        let found = found.ok_or_else(|| Refusal::argument(format!("there is no device information {what}")))?;
        value.put("value", *found)
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
        let index = fleet::check(device)?;
        let number = settings().devices[index].to_be_bytes();
        let mut bytes = *b"pto-runtime\0....";
        bytes[12..].copy_from_slice(&number);
        uuid.put("uuid", bytes)
    }

    fn aclrtDeviceGetBareTgid(process: Out<i32>) {
        process.put("process", std::process::id().cast_signed())
    }

    fn aclrtDeviceGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        least.put("least", 7)?;
        greatest.put("greatest", 0)
    }

    fn aclrtGetLogicDevIdByUserDevId(user: i32, logic: Out<i32>) {
        logic.put("logic", physical(user)?)
    }

    fn aclrtGetPhyDevIdByLogicDevId(logic: i32, found: Out<i32>) {
        found.put("physical", known(logic)?)
    }

    fn aclrtGetPhyDevIdByUserDevId(user: i32, found: Out<i32>) {
        found.put("physical", physical(user)?)
    }

    fn aclrtGetLogicDevIdByPhyDevId(found: i32, logic: Out<i32>) {
        logic.put("logic", known(found)?)
    }

    fn aclrtGetUserDevIdByLogicDevId(logic: i32, user: Out<i32>) {
        user.put("user", seen(logic)?)
    }

    fn aclrtGetUserDevIdByPhyDevId(found: i32, user: Out<i32>) {
        user.put("user", seen(found)?)
    }

    fn aclrtGetErrorVerbose(device: i32, error: Out<ErrorInfo>) {
        fleet::check(device)?;
        error.put("error", ErrorInfo { words: [0; 322] })
    }

    fn aclGetCannAttributeList(list: Out<*const i32>, count: Out<usize>) {
        static LIST: [i32; 2] = [0, 1];
        list.put("list", LIST.as_ptr())?;
        count.put("count", LIST.len())
    }

    fn aclGetCannAttribute(attribute: i32, value: Out<i32>) {
        require((0..=2).contains(&attribute), || {
            Refusal::argument(format!("there is no attribute {attribute} of the library"))
        })?;
        value.put("value", i32::from(attribute < 2))
    }

    fn aclrtSynchronizeDevice() {
        super::stream::synchronize_device(None)
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

fn opened(device: u32) -> Answer<std::sync::Arc<Open>> {
    fleet::open(i32::try_from(device).unwrap_or(-1))
}

fn attribute(open: &Open, attribute: u32) -> Answer<i64> {
    let [cube, vector] = open.cores().map(i64::from);
    Ok(match attribute {
        1 => 6,
        101 | 102 => cube,
        201 => vector,
        204 => 192 << 10,
        301 => i64::try_from(settings().memory).unwrap_or(i64::MAX),
        302 => L2_BYTES,
        402 => i64::from(settings().devices[fleet::check(open.index)?]),
        501 => 1,
        202 | 203 | 205..=212 | 401 | 403..=409 | 601 => {
            return Err(Refusal::unsupported(format!(
                "the devices here do not know attribute {attribute}"
            )));
        }
        _ => {
            return Err(Refusal::argument(format!(
                "there is no attribute {attribute} of a device"
            )));
        }
    })
}

/// The number of a device that the program sees.
fn physical(user: i32) -> Answer<i32> {
    let index = fleet::check(user)?;
    Ok(settings().devices[index].cast_signed())
}

fn known(number: i32) -> Answer<i32> {
    let all = &settings().devices;
    let is = |held: &&u32| held.cast_signed() == number;
    require(all.iter().any(|held| is(&held)), || {
        Refusal::new(
            crate::common::codes::BAD_DEVICE,
            format!("this process sees no device {number}"),
        )
    })?;
    Ok(number)
}

fn seen(number: i32) -> Answer<i32> {
    known(number)?;
    let all = &settings().devices;
    let index = all.iter().position(|held| held.cast_signed() == number).unwrap_or_default();
    Ok(i32::try_from(index).unwrap_or_default())
}

/// The device of the current context.
pub(super) fn current_open() -> Answer<std::sync::Arc<Open>> {
    Ok(std::sync::Arc::clone(&current::context()?.open))
}
