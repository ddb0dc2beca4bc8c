//! Time limits as programs pass them.

use std::time::Duration;

use crate::common::refusal::{Answer, Refusal, require};

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
