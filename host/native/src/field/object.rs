//! The bytes of `class Runtime` (`include/runtime.h` asserts the same offsets), and the tables of functions in it.

use std::ffi::{c_char, c_int, c_void};

use pto_host::abi::limits::{MAX_ARGS, MAX_FUNC_ID, MAX_ORCH_ARGS};

use super::state::State;

/// `RUNTIME_MAX_TASKS`: sources declare arrays of this many ids.
pub const MAX_TASKS: usize = 131_072;
/// `RUNTIME_MAX_AICPU_ORCH_SO_SIZE`.
pub const MAX_PLUGIN_BYTES: usize = 4 << 20;
/// Bytes of `aicpu_orch_func_name`, with the zero at its end.
pub(super) const NAME_BYTES: usize = 64;

/// `struct HostApi`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct HostApi {
    pub(super) device_malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    pub(super) device_free: unsafe extern "C" fn(*mut c_void),
    pub(super) copy_to_device: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    pub(super) copy_from_device: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
}

/// `struct AicpuBuildApi`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct AicpuBuildApi {
    pub(super) add_task:
        unsafe extern "C" fn(*mut RuntimeObject, *const u64, c_int, c_int, c_int, u64) -> c_int,
    pub(super) add_successor_conditional: unsafe extern "C" fn(*mut RuntimeObject, c_int, c_int),
    pub(super) publish_task: unsafe extern "C" fn(*mut RuntimeObject, c_int),
    pub(super) device_malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    pub(super) device_free: unsafe extern "C" fn(*mut c_void),
}

/// `struct pto_runtime_calls`: what the methods of the class call.
#[repr(C)]
pub(super) struct Calls {
    pub(super) add_task:
        unsafe extern "C" fn(*mut RuntimeObject, *const u64, c_int, c_int, c_int) -> c_int,
    pub(super) add_successor: unsafe extern "C" fn(*mut RuntimeObject, c_int, c_int),
    pub(super) get_task: unsafe extern "C" fn(*mut RuntimeObject, c_int) -> *mut TaskView,
    pub(super) get_task_count: unsafe extern "C" fn(*const RuntimeObject) -> c_int,
    pub(super) get_initial_ready_tasks:
        unsafe extern "C" fn(*mut RuntimeObject, *mut c_int) -> c_int,
    pub(super) print_runtime: unsafe extern "C" fn(*const RuntimeObject),
    pub(super) record_tensor_pair:
        unsafe extern "C" fn(*mut RuntimeObject, *mut c_void, *mut c_void, usize),
    pub(super) get_tensor_pairs: unsafe extern "C" fn(*mut RuntimeObject) -> *mut TensorPair,
    pub(super) get_tensor_pair_count: unsafe extern "C" fn(*const RuntimeObject) -> c_int,
    pub(super) clear_tensor_pairs: unsafe extern "C" fn(*mut RuntimeObject),
    pub(super) record_device_alloc: unsafe extern "C" fn(*mut RuntimeObject, *mut c_void),
    pub(super) get_device_allocs: unsafe extern "C" fn(*mut RuntimeObject) -> *mut DeviceAlloc,
    pub(super) get_device_alloc_count: unsafe extern "C" fn(*const RuntimeObject) -> c_int,
    pub(super) clear_device_allocs: unsafe extern "C" fn(*mut RuntimeObject),
    pub(super) set_aicpu_orch_so:
        unsafe extern "C" fn(*mut RuntimeObject, *const c_void, usize) -> c_int,
    pub(super) get_aicpu_orch_so_data: unsafe extern "C" fn(*const RuntimeObject) -> *const c_void,
    pub(super) get_aicpu_orch_so_size: unsafe extern "C" fn(*const RuntimeObject) -> usize,
}

/// `struct TensorPair`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct TensorPair {
    pub(super) host_ptr: *mut c_void,
    pub(super) dev_ptr: *mut c_void,
    pub(super) size: usize,
}

/// `struct DeviceAlloc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceAlloc {
    pub(super) dev_ptr: *mut c_void,
}

/// `struct Task`: made when it is asked for; what is written into it counts.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskView {
    pub(super) task_id: c_int,
    pub(super) func_id: c_int,
    pub(super) args: [u64; MAX_ARGS],
    pub(super) num_args: c_int,
    pub(super) reserved: c_int,
    pub(super) function_bin_addr: u64,
    pub(super) core_type: c_int,
    pub(super) fanin: c_int,
    pub(super) fanout: *const c_int,
    pub(super) fanout_count: c_int,
    pub(super) published: c_int,
    pub(super) completed: c_int,
    pub(super) reserved2: c_int,
    pub(super) start_time: u64,
    pub(super) end_time: u64,
}

/// `class Runtime`.
#[repr(C)]
pub(super) struct RuntimeObject {
    pub(super) worker_count: c_int,
    pub(super) sche_cpu_num: c_int,
    pub(super) orch_argc: c_int,
    pub(super) build_mode: c_int,
    pub(super) orch_args: [u64; MAX_ORCH_ARGS],
    pub(super) kernel_addrs: [u64; MAX_FUNC_ID],
    pub(super) aicpu_orch_func_name: [c_char; NAME_BYTES],
    pub(super) aicpu_build_api: AicpuBuildApi,
    pub(super) host_api: HostApi,
    pub(super) calls: &'static Calls,
    pub(super) state: *const State,
}

/// A field of an object that foreign code may write: `field::<c_int>(object, offset_of!(RuntimeObject, orch_argc))`.
///
/// # Safety
/// The object lives, the field at the offset has this type, and no foreign code writes it now.
pub(super) unsafe fn field<T: Copy>(object: *const RuntimeObject, offset: usize) -> T {
    // SAFETY: as the caller says.
    unsafe { object.wrapping_byte_add(offset).cast::<T>().read() }
}

// `include/runtime.h` asserts the same numbers.
const _: () = {
    assert!(size_of::<RuntimeObject>() == 9384);
    assert!(std::mem::offset_of!(RuntimeObject, orch_argc) == 8);
    assert!(std::mem::offset_of!(RuntimeObject, build_mode) == 12);
    assert!(std::mem::offset_of!(RuntimeObject, orch_args) == 16);
    assert!(std::mem::offset_of!(RuntimeObject, kernel_addrs) == 1040);
    assert!(std::mem::offset_of!(RuntimeObject, aicpu_orch_func_name) == 9232);
    assert!(std::mem::offset_of!(RuntimeObject, aicpu_build_api) == 9296);
    assert!(std::mem::offset_of!(RuntimeObject, host_api) == 9336);
    assert!(std::mem::offset_of!(RuntimeObject, calls) == 9368);
    assert!(std::mem::offset_of!(RuntimeObject, state) == 9376);
    assert!(size_of::<TaskView>() == 1096);
    assert!(std::mem::offset_of!(TaskView, args) == 8);
    assert!(std::mem::offset_of!(TaskView, num_args) == 1032);
    assert!(std::mem::offset_of!(TaskView, function_bin_addr) == 1040);
    assert!(std::mem::offset_of!(TaskView, fanin) == 1052);
    assert!(std::mem::offset_of!(TaskView, fanout) == 1056);
    assert!(size_of::<Calls>() == 17 * 8);
};
