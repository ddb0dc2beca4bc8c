//! A `class Runtime` for a builder in C++: what it knows of the run, and its graph. It lives on the builder's stack.

use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use core::ptr::{null, null_mut};

use pto_abi::Fault;
use pto_abi::limits::{MAX_FUNC_ID, MAX_ORCH_ARGS};
use pto_abi::runtime::{RunConfig, Runtime};
use pto_graph::HostedBuilder;
use pto_native::foreign::Finder;
use pto_native::foreign::calls;
use pto_native::foreign::object::{
    AicpuBuildApi, DeviceAlloc, HostApi, RuntimeCalls, RuntimeObject, TaskView, TensorPair,
    function_name,
};
use pto_native::foreign::stream::StreamApi;

use crate::c_builder::build_slots::CurrentBuild;

static STREAM_API: StreamApi = StreamApi::of::<CurrentBuild>();

/// Memory is the host's: a builder on the device gets none.
static HOST_API: HostApi = HostApi { device_malloc, device_free, copy_to_device, copy_from_device };

/// What concerns the host is refused here; what gives something gives nothing.
static CALLS: RuntimeCalls = RuntimeCalls {
    add_task,
    add_successor: calls::add_successor::<CurrentBuild>,
    get_task,
    get_task_count,
    get_initial_ready_tasks,
    print_runtime,
    record_tensor_pair,
    get_tensor_pairs,
    get_tensor_pair_count: none,
    clear_tensor_pairs: refuse,
    record_device_alloc,
    get_device_allocs,
    get_device_alloc_count: none,
    clear_device_allocs: refuse,
    set_aicpu_orch_so,
    get_aicpu_orch_so_data,
    get_aicpu_orch_so_size,
};

/// The object for a graph that is built on a device; `None`: it is not.
pub(crate) fn of<G: HostedBuilder>(graph: &G) -> Option<RuntimeObject> {
    let arena = graph.arena()?;
    let config: RunConfig = arena.read(offset_of!(Runtime, config) as u64)?;
    let mut kernel_addrs = [0; MAX_FUNC_ID];
    let mut at = offset_of!(Runtime, kernel_addrs) as u64;
    for address in &mut kernel_addrs {
        *address = arena.read(at)?;
        at += 8;
    }
    let mut orch_args = [0; MAX_ORCH_ARGS];
    let words = graph.orch_args();
    for (to, from) in orch_args.iter_mut().zip(words) {
        *to = *from;
    }
    let count = |count: u32| c_int::try_from(count).unwrap_or(c_int::MAX);
    Some(RuntimeObject {
        worker_count: count(config.worker_count),
        sche_cpu_num: count(config.aicpu_instances),
        orch_argc: c_int::try_from(words.len()).unwrap_or(c_int::MAX),
        build_mode: count(config.build_mode),
        orch_args,
        kernel_addrs,
        aicpu_orch_func_name: function_name("build_graph_aicpu"),
        aicpu_build_api: AicpuBuildApi::of::<CurrentBuild>(&HOST_API),
        host_api: HOST_API,
        calls: &CALLS,
        state: null(),
        stream_api: &STREAM_API,
    })
}

unsafe extern "C" fn add_task(
    runtime: *mut c_void,
    args: *const u64,
    num_args: c_int,
    func_id: c_int,
    core_type: c_int,
) -> c_int {
    // SAFETY: the builder vouches for the words.
    unsafe { calls::add_task::<CurrentBuild>(runtime, args, num_args, func_id, core_type, 0) }
}

unsafe extern "C" fn get_task_count(runtime: *const c_void) -> c_int {
    CurrentBuild::find(runtime.cast_mut(), 0, |build| {
        c_int::try_from(build.tasks()).unwrap_or(c_int::MAX)
    })
}

unsafe extern "C" fn get_task(_: *mut c_void, _: c_int) -> *mut TaskView {
    null_mut()
}

unsafe extern "C" fn get_initial_ready_tasks(_: *mut c_void, _: *mut c_int) -> c_int {
    0
}

unsafe extern "C" fn none(_: *const c_void) -> c_int {
    0
}

unsafe extern "C" fn print_runtime(runtime: *const c_void) {
    let tasks = CurrentBuild::find(runtime.cast_mut(), 0, |build| build.tasks());
    log::info!("Runtime: {tasks} tasks so far");
}

/// The run fails with `BUILD_HOST_ONLY`.
unsafe extern "C" fn refuse(runtime: *mut c_void) {
    CurrentBuild::find(runtime, (), |build| {
        let _: Result<(), Fault> = build.call(|_| Err(Fault::BUILD_HOST_ONLY));
    });
}

unsafe extern "C" fn record_tensor_pair(
    runtime: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    _: usize,
) {
    // SAFETY: the runtime is compared, not followed.
    unsafe { refuse(runtime) };
}

unsafe extern "C" fn get_tensor_pairs(_: *mut c_void) -> *mut TensorPair {
    null_mut()
}

unsafe extern "C" fn record_device_alloc(runtime: *mut c_void, _: *mut c_void) {
    // SAFETY: as in `record_tensor_pair`.
    unsafe { refuse(runtime) };
}

unsafe extern "C" fn get_device_allocs(_: *mut c_void) -> *mut DeviceAlloc {
    null_mut()
}

unsafe extern "C" fn set_aicpu_orch_so(runtime: *mut c_void, _: *const c_void, _: usize) -> c_int {
    // SAFETY: as in `record_tensor_pair`.
    unsafe { refuse(runtime) };
    calls::FAILED
}

unsafe extern "C" fn get_aicpu_orch_so_data(_: *const c_void) -> *const c_void {
    null()
}

unsafe extern "C" fn get_aicpu_orch_so_size(_: *const c_void) -> usize {
    0
}

unsafe extern "C" fn device_malloc(_: usize) -> *mut c_void {
    null_mut()
}

unsafe extern "C" fn device_free(_: *mut c_void) {}

unsafe extern "C" fn copy_to_device(_: *mut c_void, _: *const c_void, _: usize) -> c_int {
    calls::FAILED
}

unsafe extern "C" fn copy_from_device(_: *mut c_void, _: *const c_void, _: usize) -> c_int {
    calls::FAILED
}
