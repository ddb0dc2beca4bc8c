//! The bytes of `class Runtime` (`include/runtime.h` asserts the same offsets), and the tables of functions in it.
#![expect(missing_docs, reason = "the fields are those of include/runtime.h, which documents them")]

use core::ffi::{c_char, c_int, c_void};

use pto_abi::limits::{MAX_ARGS, MAX_FUNC_ID, MAX_ORCH_ARGS};

use crate::foreign::build::Finder;
use crate::foreign::calls;
use crate::foreign::stream::StreamApi;

/// `RUNTIME_MAX_TASKS`: sources declare arrays of this many ids.
pub const MAX_TASKS: usize = 131_072;
/// `RUNTIME_MAX_AICPU_ORCH_SO_SIZE`.
pub const MAX_PLUGIN_BYTES: usize = 4 << 20;
/// Bytes of `aicpu_orch_func_name`, with the zero at its end.
pub const NAME_BYTES: usize = 64;

/// `struct HostApi`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostApi {
    pub device_malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    pub device_free: unsafe extern "C" fn(*mut c_void),
    pub copy_to_device: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    pub copy_from_device: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
}

/// `struct AicpuBuildApi`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AicpuBuildApi {
    pub add_task: unsafe extern "C" fn(*mut c_void, *const u64, c_int, c_int, c_int, u64) -> c_int,
    pub add_successor_conditional: unsafe extern "C" fn(*mut c_void, c_int, c_int),
    pub publish_task: unsafe extern "C" fn(*mut c_void, c_int),
    pub device_malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    pub device_free: unsafe extern "C" fn(*mut c_void),
}

/// `struct pto_runtime_calls`: what the methods of the class call.
#[repr(C)]
pub struct RuntimeCalls {
    pub add_task: unsafe extern "C" fn(*mut c_void, *const u64, c_int, c_int, c_int) -> c_int,
    pub add_successor: unsafe extern "C" fn(*mut c_void, c_int, c_int),
    pub get_task: unsafe extern "C" fn(*mut c_void, c_int) -> *mut TaskView,
    pub get_task_count: unsafe extern "C" fn(*const c_void) -> c_int,
    pub get_initial_ready_tasks: unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int,
    pub print_runtime: unsafe extern "C" fn(*const c_void),
    pub record_tensor_pair: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, usize),
    pub get_tensor_pairs: unsafe extern "C" fn(*mut c_void) -> *mut TensorPair,
    pub get_tensor_pair_count: unsafe extern "C" fn(*const c_void) -> c_int,
    pub clear_tensor_pairs: unsafe extern "C" fn(*mut c_void),
    pub record_device_alloc: unsafe extern "C" fn(*mut c_void, *mut c_void),
    pub get_device_allocs: unsafe extern "C" fn(*mut c_void) -> *mut DeviceAlloc,
    pub get_device_alloc_count: unsafe extern "C" fn(*const c_void) -> c_int,
    pub clear_device_allocs: unsafe extern "C" fn(*mut c_void),
    pub set_aicpu_orch_so: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    pub get_aicpu_orch_so_data: unsafe extern "C" fn(*const c_void) -> *const c_void,
    pub get_aicpu_orch_so_size: unsafe extern "C" fn(*const c_void) -> usize,
}

/// `struct TensorPair`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TensorPair {
    pub host_ptr: *mut c_void,
    pub dev_ptr: *mut c_void,
    pub size: usize,
}

/// `struct DeviceAlloc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceAlloc {
    pub dev_ptr: *mut c_void,
}

/// `struct Task`: made when it is asked for; what is written into it counts.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TaskView {
    pub task_id: c_int,
    pub func_id: c_int,
    pub args: [u64; MAX_ARGS],
    pub num_args: c_int,
    pub reserved: c_int,
    pub function_bin_addr: u64,
    pub core_type: c_int,
    pub fanin: c_int,
    pub fanout: *const c_int,
    pub fanout_count: c_int,
    pub published: c_int,
    pub completed: c_int,
    pub reserved2: c_int,
    pub start_time: u64,
    pub end_time: u64,
}

/// `class Runtime`.
#[repr(C)]
pub struct RuntimeObject {
    pub worker_count: c_int,
    pub sche_cpu_num: c_int,
    pub orch_argc: c_int,
    pub build_mode: c_int,
    pub orch_args: [u64; MAX_ORCH_ARGS],
    pub kernel_addrs: [u64; MAX_FUNC_ID],
    pub aicpu_orch_func_name: [c_char; NAME_BYTES],
    pub aicpu_build_api: AicpuBuildApi,
    pub host_api: HostApi,
    pub calls: &'static RuntimeCalls,
    pub state: *const c_void,
    pub stream_api: &'static StreamApi,
}

impl AicpuBuildApi {
    /// The table for a platform, with its memory.
    #[must_use]
    pub const fn of<F: Finder>(memory: &HostApi) -> Self {
        Self {
            add_task: calls::add_task::<F>,
            add_successor_conditional: calls::add_successor::<F>,
            publish_task: calls::publish_task::<F>,
            device_malloc: memory.device_malloc,
            device_free: memory.device_free,
        }
    }
}

/// `aicpu_orch_func_name` with this name, cut where it does not fit.
#[must_use]
pub fn function_name(name: &str) -> [c_char; NAME_BYTES] {
    let mut to = [0; NAME_BYTES];
    // The last byte stays zero.
    for (to, from) in to.iter_mut().take(NAME_BYTES - 1).zip(name.bytes()) {
        *to = c_char::from_ne_bytes([from]);
    }
    to
}

/// A field of an object that foreign code may write: `field::<c_int>(object, offset_of!(RuntimeObject, orch_argc))`.
///
/// # Safety
/// The object lives, the field at the offset has this type, and no foreign code writes it now.
pub unsafe fn field<T: Copy>(object: *const RuntimeObject, offset: usize) -> T {
    // SAFETY: as the caller says.
    unsafe { object.wrapping_byte_add(offset).cast::<T>().read() }
}

// `include/runtime.h` asserts the same numbers.
const _: () = {
    assert!(size_of::<RuntimeObject>() == 9392);
    assert!(core::mem::offset_of!(RuntimeObject, orch_argc) == 8);
    assert!(core::mem::offset_of!(RuntimeObject, build_mode) == 12);
    assert!(core::mem::offset_of!(RuntimeObject, orch_args) == 16);
    assert!(core::mem::offset_of!(RuntimeObject, kernel_addrs) == 1040);
    assert!(core::mem::offset_of!(RuntimeObject, aicpu_orch_func_name) == 9232);
    assert!(core::mem::offset_of!(RuntimeObject, aicpu_build_api) == 9296);
    assert!(core::mem::offset_of!(RuntimeObject, host_api) == 9336);
    assert!(core::mem::offset_of!(RuntimeObject, calls) == 9368);
    assert!(core::mem::offset_of!(RuntimeObject, state) == 9376);
    assert!(core::mem::offset_of!(RuntimeObject, stream_api) == 9384);
    assert!(size_of::<TaskView>() == 1096);
    assert!(core::mem::offset_of!(TaskView, args) == 8);
    assert!(core::mem::offset_of!(TaskView, num_args) == 1032);
    assert!(core::mem::offset_of!(TaskView, function_bin_addr) == 1040);
    assert!(core::mem::offset_of!(TaskView, fanin) == 1052);
    assert!(core::mem::offset_of!(TaskView, fanout) == 1056);
    assert!(size_of::<RuntimeCalls>() == 17 * 8);
};
