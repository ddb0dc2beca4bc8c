//! Configurations of streams, which programs hold by their addresses.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::common::codes;
use crate::common::notes::Pointee;
use crate::common::refusal::{Answer, Refusal, require};

/// `aclrtStreamConfigHandle`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct StreamConfig {
    pub(crate) work: usize,
    pub(crate) work_bytes: usize,
    pub(crate) flags: usize,
    pub(crate) priority: u32,
}

impl Pointee for StreamConfig {}

const _: () = assert!(size_of::<StreamConfig>() == 32);

/// The addresses of the configurations that were made and not destroyed.
static CONFIGS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

fn configs() -> MutexGuard<'static, BTreeSet<usize>> {
    CONFIGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A configuration with its defaults.
pub(crate) fn create() -> *mut StreamConfig {
    let config: *mut StreamConfig = Box::into_raw(Box::default());
    configs().insert(config.expose_provenance());
    config
}

/// Frees a configuration that `create` made.
pub(crate) fn destroy(config: *mut StreamConfig) -> Answer {
    require(configs().remove(&config.expose_provenance()), || {
        let text = format!(
            "{config:p} is no configuration of aclrtCreateStreamConfigHandle, or was destroyed"
        );
        Refusal::new(codes::BAD_HANDLE, text)
    })?;
    // SAFETY: `create` made it of a box, and its address was in the list until now.
    drop(unsafe { Box::from_raw(config) });
    Ok(())
}
