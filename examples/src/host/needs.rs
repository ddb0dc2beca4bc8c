//! What a run of an example needs of a device, and whether a device has it. Asked before anything is built or run.

use std::string::String;
use std::vec::Vec;

use pto_abi::CoreKind;
use pto_host::Device;

use crate::host::error::{Error, invalid};

/// What a run of an example needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The kinds of cores that its tasks run on.
    pub kinds: &'static [CoreKind],
    /// Whether kernels wait for kernels on other cores.
    pub cores: Together,
}

/// How the cores of a device must run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// One core may run after the other.
    NotNeeded,
    /// All of them at once: a kernel waits for what another one does meanwhile.
    Needed,
}

impl Needs {
    /// Both kinds of cores, which may run one after the other.
    pub const USUAL: Self = Self { kinds: CoreKind::ALL, cores: Together::NotNeeded };

    /// Checks that the device has cores of every kind that is needed; `example` is the name of the one that needs them.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it has none of some kind.
    pub fn check_kinds(&self, example: &str, device: &Device) -> Result<(), Error> {
        let kinds = self.kinds;
        let missing = kinds.iter().find(|kind| device.cores(**kind) == 0);
        let Some(missing) = missing else { return Ok(()) };
        let names: Vec<String> = kinds.iter().map(|kind| upper(*kind)).collect();
        let (kinds, missing) = (names.join(" and "), upper(*missing));
        Err(invalid!(
            "'{example}' has tasks for {kinds} cores, and the device has no {missing} core; give it at least one"
        ))
    }

    /// Checks that the device's cores run as `example` needs it.
    ///
    /// # Errors
    /// [`Error::Invalid`]: kernels would wait for kernels that do not run.
    pub fn check_together(&self, example: &str, device: &Device) -> Result<(), Error> {
        if self.cores == Together::NotNeeded || device.runs_cores_at_once() {
            return Ok(());
        }
        Err(invalid!(
            "with these parameters kernels of '{example}' wait for each other while they run, and this device runs one \
             after the other; use --hosting threads or --device qemu"
        ))
    }
}

fn upper(kind: CoreKind) -> String {
    kind.name().to_uppercase()
}
