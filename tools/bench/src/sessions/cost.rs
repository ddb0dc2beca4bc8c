//! What is measured of sessions, and on which device.

use pto_host::graph::NoBuilders;
use pto_host::session::{SessionError, SessionOptions};
use pto_host::{Device, DeviceOptions, Hosting, RunOptions, Session};

/// What something of a session costs, and its target.
#[derive(Clone, Debug)]
pub struct SessionCost {
    /// What it is about.
    pub what: String,
    /// The target: at most this.
    pub bound: f64,
    /// What was measured: a median.
    pub found: f64,
}

/// A session on a small device, with the kernels of the library.
pub(super) fn open(hosting: Hosting) -> Result<Session, SessionError> {
    let options = DeviceOptions { aic: 2, aiv: 4, gm_bytes: 256 << 20, hosting };
    let mut device = Device::open_sim(options, NoBuilders)?;
    device.register_library()?;
    let run = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    device.session(SessionOptions { run, ..SessionOptions::default() })
}
