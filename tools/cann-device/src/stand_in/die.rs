//! What the device has.

use std::env;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// The name of its processor. `PTO_STAND_IN_PROCESSOR` gives it another one: a host that looks at it takes the device for a real one.
pub(crate) fn processor() -> &'static CStr {
    static NAME: OnceLock<CString> = OnceLock::new();
    NAME.get_or_init(|| {
        let asked =
            env::var("PTO_STAND_IN_PROCESSOR").ok().and_then(|name| CString::new(name).ok());
        asked.unwrap_or_else(|| c"PtoStandIn".to_owned())
    })
}

/// Clusters in service; the second of the die is not.
pub(crate) fn clusters() -> u32 {
    let asked = env::var("PTO_STAND_IN_CLUSTERS").ok().and_then(|text| text.parse().ok());
    asked.filter(|count| (1..=24).contains(count)).unwrap_or(4)
}
