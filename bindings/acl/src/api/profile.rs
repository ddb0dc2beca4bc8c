//! The profiler: `aclprof*`.

use std::path::PathBuf;

use crate::common::argument::In;
use crate::common::entry::{api, values};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::{fleet, profiler};

/// The most bytes of a path.
const MAX_PATH: usize = 4096;
/// The most bytes of a setting.
const MAX_SETTING: usize = 256;

api! {
    fn aclprofInit(path: In<u8>, length: usize) {
        let bytes = path.list("path", length.min(MAX_PATH))?;
        require((1..MAX_PATH).contains(&length), || {
            Refusal::argument(format!("a path of {length} bytes is none; pass 1 to {}", MAX_PATH - 1))
        })?;
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        profiler::initialise(PathBuf::from(String::from_utf8_lossy(text).into_owned()))
    }

    fn aclprofSetConfig(kind: u32, value: In<u8>, length: usize) {
        require((1..=MAX_SETTING).contains(&length), || {
            Refusal::argument(format!("a setting of {length} bytes is none; pass 1 to {MAX_SETTING}"))
        })?;
        let bytes = value.list("value", length)?;
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        profiler::set(kind, &String::from_utf8_lossy(text))
    }

    fn aclprofFinalize() {
        profiler::finalise()
    }

    fn aclprofDestroyConfig(config: Handle) {
        profiler::destroy(checked(config)?)
    }

    fn aclprofStart(config: Handle) {
        profiler::start(checked(config)?)
    }

    fn aclprofStop(config: Handle) {
        profiler::stop(checked(config)?)
    }
}

values! {
    fn aclprofCreateConfig(devices: In<u32>, count: u32, _metrics: u32, _events: usize, asked: u64) -> Handle, 0, {
        let named = devices.list("devices", (count as usize).min(fleet::count() + 1))?;
        require(count as usize <= fleet::count(), || {
            Refusal::argument(format!("{count} devices are named, and there are {}", fleet::count()))
        })?;
        profiler::create(&named, asked)
    }
}

fn checked(config: Handle) -> Answer<Handle> {
    require(config != 0, || {
        Refusal::argument("config is null; pass what aclprofCreateConfig gave")
    })?;
    Ok(config)
}
