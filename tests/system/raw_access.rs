//! Programs in C++ that follow addresses of the device's memory as pointers are found on a2a3sim, and those that read through
//! `pto::Table` get the same bytes everywhere.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pto_host::abi::{Fault, GmAddr, RuntimeVariant};
use pto_host::{Device, DeviceOptions, RunControl, RunOptions};
use pto_native::field::FieldRuntime;
use pto_native::{Failure, FailureKind, HostedBuilders, SharedDevice};
use tempfile::TempDir;

use crate::plugins::{ORCHESTRATION_CPP, shared_object};

/// Words: a table of ten numbers, and what its elements `5 + i` are to be, for i in 0..3.
const READS: &str = r#"
#include "pto_table.hpp"
#include "pto_stream.hpp"

extern "C" int build_graph_aicpu(Runtime *runtime) {
    const uint64_t *words = runtime->orch_args;
    const pto::Table<uint16_t> table(runtime, words[0], 10);
    for (uint64_t i = 0; i < 3; i++) {
        if (table[5 + i] != words[1 + i]) { return 1; }
    }
    uint16_t all[10] = {};
    if (!table.read(0, 10, all) || all[5] != words[1] || all[9] != table[9]) { return 2; }
    pto::Table<uint8_t> bytes(runtime, table.address(5) + 1, 1);
    return bytes[0] == words[1] >> 8 ? 0 : 3;
}

// The table's address is a word of the orchestration, too.
extern "C" int outside(Runtime *runtime, uint64_t *words, int) {
    const pto::Table<uint16_t> table(runtime, words[0], 10);
    return table[5] == words[1] && table.is_good() ? 0 : 1;
}
"#;

/// Words: a table.
const FOLLOWS: &str = r#"
#include "runtime.h"

extern "C" int build_graph_aicpu(Runtime *runtime) {
    return *reinterpret_cast<const uint16_t *>(runtime->orch_args[0] + 10) == 7 ? 0 : 1;
}
extern "C" int outside(Runtime *runtime, uint64_t *words, int) {
    void *own = runtime->host_api.device_malloc(128);
    const auto *numbers = static_cast<const uint16_t *>(own);
    runtime->record_device_alloc(own);
    return runtime->host_api.copy_to_device(own, &words[1], 8) == 0 && numbers[3] == 0 ? 0 : 1;
}
"#;

/// Words: a table of one number that is not there.
const BEYOND: &str = r#"
#include "pto_table.hpp"

extern "C" int build_graph_aicpu(Runtime *runtime) {
    const pto::Table<uint32_t> table(runtime, runtime->orch_args[0], 2);
    return table[2] == 0 && !table.is_good() ? 0 : 1;
}
"#;

struct Rig {
    folder: TempDir,
    device: Arc<SharedDevice>,
    table: GmAddr,
}

impl Rig {
    /// A device with a table of the numbers 2 to 11.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let builders = HostedBuilders::default();
        let device = Device::open_sim(DeviceOptions::default(), builders.clone());
        let device = SharedDevice::over(device.expect("a device"), builders);
        let numbers: Vec<u8> = (2_u16..12).flat_map(u16::to_le_bytes).collect();
        let table = device.memory().alloc(numbers.len() as u64).expect("room");
        device.memory().copy_to_device(table, &numbers).expect("it fits");
        let rig = Self { folder, device, table };
        rig.compiled("orchestrate", ORCHESTRATION_CPP);
        rig
    }

    fn compiled(&self, name: &str, source: &str) -> PathBuf {
        let [from, to] = ["cpp", "so"].map(|end| self.folder.path().join(format!("{name}.{end}")));
        std::fs::write(&from, source).expect("a file");
        shared_object(&from, &to);
        to
    }

    fn runtime(&self, is_watched: bool) -> FieldRuntime {
        let options = RunOptions::default();
        let made = if is_watched {
            FieldRuntime::watched(&self.device, &options)
        } else {
            FieldRuntime::new(&self.device, &options)
        };
        made.expect("a runtime")
    }

    /// Runs the plugin's function on the table and the numbers that it is to find.
    fn run(&self, runtime: &mut FieldRuntime, plugin: &Path) -> Result<(), Failure> {
        let path = CString::new(plugin.as_os_str().as_encoded_bytes()).expect("a path");
        let mut words = vec![path.as_ptr().expose_provenance() as u64, self.table.0, 7, 8, 9];
        let orchestration = self.folder.path().join("orchestrate.so");
        // SAFETY: the function reads these words; the path lives until it returns.
        unsafe { runtime.orchestrate(&orchestration, "orchestrate", &mut words) }?;
        let variant = RuntimeVariant::AICPU_BUILD_GRAPH;
        runtime.run(variant, &RunOptions::default(), &RunControl::default()).map(drop)
    }

    /// Calls a function of an orchestration.
    fn call(&self, runtime: &mut FieldRuntime, object: &Path) -> Result<(), Failure> {
        // SAFETY: the function reads two words.
        unsafe { runtime.orchestrate(object, "outside", &mut [self.table.0, 7]) }
    }
}

#[test]
fn a_table_is_read_through_the_runtime_watched_or_not() {
    let rig = Rig::new();
    let reads = rig.compiled("reads", READS);
    for is_watched in [false, true] {
        rig.run(&mut rig.runtime(is_watched), &reads).unwrap_or_else(|failure| panic!("{failure}"));
        rig.call(&mut rig.runtime(is_watched), &reads)
            .unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
fn a_pointer_into_the_memory_of_the_device_is_found_with_its_buffer_and_its_word() {
    let rig = Rig::new();
    let follows = rig.compiled("follows", FOLLOWS);
    // The simulator's memory is that of the process.
    rig.run(&mut rig.runtime(false), &follows).unwrap_or_else(|failure| panic!("{failure}"));
    rig.call(&mut rig.runtime(false), &follows).unwrap_or_else(|failure| panic!("{failure}"));
    let found = rig.run(&mut rig.runtime(true), &follows).expect_err("it is found");
    assert!(found.is(FailureKind::RAW_ACCESS), "{found}");
    let location =
        format!("byte 10 of the buffer of 20 bytes at {}, to which word 0 points", rig.table);
    assert!(found.message.contains(&location), "{found}");
    assert!(found.message.contains("`build_graph_aicpu` followed"), "{found}");
    assert!(found.remedy.contains("pto::Table"), "{}", found.remedy);
    let found = rig.call(&mut rig.runtime(true), &follows).expect_err("it is found");
    assert!(found.is(FailureKind::RAW_ACCESS), "{found}");
    assert!(found.message.contains("byte 6 of the buffer of 128 bytes"), "{found}");
    // The device is as good as before.
    rig.run(&mut rig.runtime(false), &follows).unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn an_element_that_a_table_does_not_have_is_the_fault_of_the_run() {
    let rig = Rig::new();
    let beyond = rig.compiled("beyond", BEYOND);
    for is_watched in [false, true] {
        let found = rig.run(&mut rig.runtime(is_watched), &beyond).expect_err("it is found");
        assert_eq!(found.code, Fault::BUILD_GM_RANGE.code(), "{found}");
    }
}
