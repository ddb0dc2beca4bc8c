//! A scenario: what is tried, and the judge of it.

use pto_abi::Fault;

use crate::device::{Device, Outcome};
use crate::image::Image;

/// Its name, and what plays it: what happened, or why that is wrong.
pub(crate) type Scenario = (String, Box<dyn Fn(&Image) -> Result<String, String>>);

const FAST_PATH_CLOSED: u32 = 0xF;
/// The run ended well, by the protocol.
pub(crate) fn expect_success(outcome: &Outcome) -> Result<(), String> {
    if let Some(code) = outcome.codes.iter().find(|code| **code != 0) {
        let fault = u32::try_from(*code).ok().and_then(pto_abi::Fault::from_code);
        let epitaph = outcome.epitaph;
        return Err(format!(
            "an instance returned {code:#x}: {fault:?}, core {}, detail {:x?}",
            epitaph.core, epitaph.detail
        ));
    }
    if outcome.violations != 0 {
        return Err(format!("{} doorbells broke the protocol", outcome.violations));
    }
    Ok(())
}

/// All cores have left, and every fast path is closed.
pub(crate) fn expect_way_down(device: &Device) -> Result<(), String> {
    if !device.cores_are_gone() {
        return Err("a core is left in its loop".to_owned());
    }
    let paths = device.fast_paths();
    if paths.iter().any(|path| *path != FAST_PATH_CLOSED) {
        return Err(format!("FAST_PATH_ENABLE is {paths:x?}"));
    }
    Ok(())
}

/// The run ended with this fault: instances that had done their part before returned 0.
pub(crate) fn expect_fault(outcome: &Outcome, fault: Fault) -> Result<(), String> {
    let expected = i32::try_from(fault.code()).expect("codes are small");
    let others = outcome.codes.iter().any(|code| *code != expected && *code != 0);
    if others || !outcome.codes.contains(&expected) {
        return Err(format!("instances returned {:x?}, not {expected:x}", outcome.codes));
    }
    Ok(())
}
