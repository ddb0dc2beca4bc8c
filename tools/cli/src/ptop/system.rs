//! What a system has, as programs are checked against it: the simulator here, or what `pto program query` wrote elsewhere.

use std::path::Path;

use pto_abi::runtime::ABI_MAJOR;
use pto_aicore_kernels::LIBRARY;
use pto_examples::ExampleBuilders;
use pto_graph::BuilderSet as _;
use pto_graph::plan::layout::VERSION as PLAN_VERSION;
use pto_host::workloads::program::{MAJOR, MINOR};
use pto_host::{DeviceOptions, workloads::program::ANY_TARGET};
use serde::{Deserialize, Serialize};

use crate::errors::Failure;
use crate::input_file;

/// What a system has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct System {
    /// What it is called as the target of a program.
    pub(super) target: String,
    pub(super) aic: u32,
    pub(super) aiv: u32,
    /// Bytes of device memory.
    pub(super) gm_bytes: u64,
    pub(super) abi_major: u16,
    /// Of program files.
    pub(super) program_version: String,
    pub(super) plan_version: u32,
    /// The processor whose native kernels run there, as `std::env::consts::ARCH` calls it; empty: an older `pto` wrote the description.
    #[serde(default)]
    pub(super) processor: String,
    /// The kernels of the library.
    pub(super) kernels: Vec<String>,
    /// The builder programs that programs may name; none: an older `pto` wrote the description, or there are none.
    #[serde(default)]
    pub(super) builders: Vec<String>,
}

/// The builder programs of the simulator here, each once.
fn builders() -> Vec<String> {
    let (graphs, streams) =
        (ExampleBuilders {}.names().to_vec(), ExampleBuilders {}.stream_names().to_vec());
    let mut names: Vec<_> = graphs.into_iter().chain(streams).map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl System {
    /// The simulator, as it is opened without options.
    pub(super) fn here() -> Self {
        let device = DeviceOptions::default();
        Self {
            target: "a2a3".to_owned(),
            aic: device.aic,
            aiv: device.aiv,
            gm_bytes: device.gm_bytes,
            abi_major: ABI_MAJOR,
            program_version: format!("{MAJOR}.{MINOR}"),
            plan_version: PLAN_VERSION,
            processor: std::env::consts::ARCH.to_owned(),
            kernels: LIBRARY.iter().map(|kernel| kernel.name.to_owned()).collect(),
            builders: builders(),
        }
    }

    /// Reads what `pto program query` wrote.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = input_file::text(path)?;
        serde_json::from_str(&text).map_err(|error| {
            Failure::usage(format!(
                "'{shown}' is not a description of a system: {error}. `pto program query -o FILE` writes one."
            ))
        })
    }

    /// Whether a program for this target can run.
    pub(super) fn has_target(&self, target: &str) -> bool {
        target == ANY_TARGET || target == self.target
    }
}
