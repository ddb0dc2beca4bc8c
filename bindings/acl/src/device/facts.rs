//! What devices say of themselves: cores, sizes, numbers.

use std::sync::Arc;

use super::fleet;
use super::open::Open;
use super::settings::settings;
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};

/// The system on chip that the devices are like.
pub(crate) const SOC: &str = "Ascend910B1";

const L2_BYTES: i64 = 192 << 20;

/// Cube cores, vector cores, or bytes of the second cache.
pub(crate) fn capability(device: u32, what: i32) -> Answer<i64> {
    let [cube, vector] = opened(device)?.cores().map(i64::from);
    let of = [cube, vector, L2_BYTES];
    let found = usize::try_from(what).ok().and_then(|what| of.get(what));
    found
        .copied()
        .ok_or_else(|| Refusal::argument(format!("there is no device information {what}")))
}

/// A number of a device that no other one has.
pub(crate) fn uuid(device: i32) -> Answer<[u8; 16]> {
    let number = settings().devices[fleet::check(device)?].to_be_bytes();
    let mut bytes = *b"pto-runtime\0....";
    bytes[12..].copy_from_slice(&number);
    Ok(bytes)
}

fn opened(device: u32) -> Answer<Arc<Open>> {
    fleet::open(i32::try_from(device).unwrap_or(-1))
}

/// What a device says of itself under a number of the interface.
pub(crate) fn attribute(device: u32, attribute: u32) -> Answer<i64> {
    let open = opened(device)?;
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
pub(crate) fn physical(user: i32) -> Answer<i32> {
    let index = fleet::check(user)?;
    Ok(settings().devices[index].cast_signed())
}

/// A number of a device, where the program sees the device.
pub(crate) fn known(number: i32) -> Answer<i32> {
    let all = &settings().devices;
    let is = |held: &&u32| held.cast_signed() == number;
    require(all.iter().any(|held| is(&held)), || {
        Refusal::new(codes::BAD_DEVICE, format!("this process sees no device {number}"))
    })?;
    Ok(number)
}

/// The number that the program has for a device.
pub(crate) fn seen(number: i32) -> Answer<i32> {
    known(number)?;
    let all = &settings().devices;
    let index = all.iter().position(|held| held.cast_signed() == number).unwrap_or_default();
    Ok(i32::try_from(index).unwrap_or_default())
}
