//! Builder plugins in C++ that call kernels of the library with what the kernels do not take: on a2a3sim an error that names plugin, task and argument, before
//! the task runs. In C: `bindings/c/tests/c/builder_calls.c`.

use std::ffi::CString;

use pto_host::abi::RuntimeVariant;
use pto_host::{DeviceOptions, RunControl, RunOptions};
use pto_native::field::FieldRuntime;
use pto_native::{Failure, FailureKind, SharedDevice};

use crate::plugins::{ORCHESTRATION_CPP, shared_object};

/// Words: the case, and two tensors of 16 numbers.
const CALLS: &str = r#"
#include "pto_stream.hpp"

extern "C" int build_graph_aicpu(Runtime *runtime) {
    const uint64_t *words = runtime->orch_args;
    const int exp = 3;
    uint64_t args[3] = {words[1], words[2], words[0] == 1 ? 17u : 16u};
    if (words[0] < 2) {
        const int task = aicpu_runtime_add_task(runtime, args, 3, exp, CoreType::AIV, 0);
        aicpu_runtime_publish_task(runtime, task);
        return task;
    }
    pto::Stream stream(runtime);
    const pto::Tensor in = pto::dense(words[1], PTO_ELEMENT_TYPE_F32, {16}), out = pto::dense(words[2], PTO_ELEMENT_TYPE_F32, {16});
    stream.submit(exp, CoreType::AIV, {pto::in(in), pto::out(out), pto::scalar(16)});
    switch (words[0]) {
    case 2: break;
    case 3: stream.submit(exp, CoreType::AIV, {pto::in(in), pto::out(out), pto::scalar(17)}); break;
    case 4: stream.submit(exp, CoreType::AIC, {pto::in(in), pto::out(out), pto::scalar(16)}); break;
    case 5: stream.submit(exp, CoreType::AIV, {pto::in(in), pto::out(out)}); break;
    case 6: stream.submit(exp, CoreType::AIV, {pto::scalar(0), pto::out(out), pto::scalar(16)}); break;
    default: pto::submit_range(runtime, 2, exp, CoreType::AIV, {words[1], words[2], 16}, {pto::grows(1, 32)}); break;
    }
    return stream.status();
}
"#;

#[test]
fn calls_of_a_plugin_that_a_kernel_does_not_take_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let compiled = |name: &str, source: &str| {
        let [from, to] = ["cpp", "so"].map(|end| folder.path().join(format!("{name}.{end}")));
        std::fs::write(&from, source).expect("a file");
        shared_object(&from, &to);
        to
    };
    let (orchestration, plugin) =
        (compiled("orchestrate", ORCHESTRATION_CPP), compiled("calls", CALLS));
    let device = SharedDevice::open_sim(DeviceOptions::default()).expect("a device");
    device.with(|device| device.register_library()).expect("no run").expect("its own ids");
    let [input, output] = [(); 2].map(|()| device.memory().alloc(64).expect("room").0);
    device.memory().copy_to_device(pto_host::abi::GmAddr(input), &[0; 64]).expect("it fits");
    let path = CString::new(plugin.as_os_str().as_encoded_bytes()).expect("a path");
    let run = |case: u64, variant: RuntimeVariant, is_watched: bool| -> Result<(), Failure> {
        let options = RunOptions::default();
        let mut runtime = if is_watched {
            FieldRuntime::watched(&device, &options)?
        } else {
            FieldRuntime::new(&device, &options)?
        };
        let mut words = [path.as_ptr().expose_provenance() as u64, case, input, output];
        // SAFETY: the function reads these words; the path lives until it returns.
        unsafe { runtime.orchestrate(&orchestration, "orchestrate", &mut words) }?;
        runtime.run(variant, &options, &RunControl::default()).map(drop)
    };
    let (plain, streaming) =
        (RuntimeVariant::AICPU_BUILD_GRAPH, RuntimeVariant::TENSORMAP_AND_RINGBUFFER);
    let bad = [
        (1, plain, "task 0: exp: argument 0, a, reaches to byte 68 of the allocation at"),
        (1, streaming, "task 0: exp: argument 0, a, reaches to byte 68 of the allocation at"),
        (3, streaming, "task 1: exp: argument 0, a, reaches to byte 68 of the tensor at"),
        (4, streaming, "task 1: exp runs on aiv cores, and the task is for aic"),
        (5, streaming, "task 1: exp takes 3 arguments (a, out, n), and the task has 2"),
        (6, streaming, "task 1: exp: argument 0, a, is an address, and 0x0 lies in no allocation"),
        (7, streaming, "task 2: exp: argument 1, out, reaches to byte 96 of the allocation at"),
    ];
    for is_watched in [false, true] {
        for (case, variant, said) in bad {
            let failure = run(case, variant, is_watched).expect_err(said);
            assert!(failure.is(FailureKind::KERNEL_CALL), "{case}: {failure}");
            assert!(failure.message.contains("`build_graph_aicpu`"), "{case}: {failure}");
            assert!(failure.message.contains(said), "{case}: {failure}");
        }
        for (case, variant) in [(0, plain), (0, streaming), (2, streaming)] {
            run(case, variant, is_watched).unwrap_or_else(|failure| panic!("{case}: {failure}"));
        }
    }
}
