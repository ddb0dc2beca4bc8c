//! The functions that a builder in C calls by name: `include/pto_firmware.h` documents them, `pto_native::foreign` does them.

use core::ffi::{c_int, c_void};

use pto_abi::foreign::{StreamArg, StreamRecording, StreamScope, StreamTask, StreamTensor};
use pto_native::foreign::range::{RangeOfTasks, StreamVariation};
use pto_native::foreign::{calls, range, stream};

use crate::c_builder::build_slots::CurrentBuild;

macro_rules! functions {
    ($( $name:ident = $call:path; ($($arg:ident: $ty:ty),*) -> $result:ty; )+) => {
        $(
            /// See `include/pto_firmware.h`.
            ///
            /// # Safety
            /// The pointers are null, or hold what the header says; the caller is the builder of this runtime.
            // SAFETY: the name is that of the interface, and no other function here has it.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(runtime: *mut c_void, $($arg: $ty),*) -> $result {
                // SAFETY: as the caller says.
                unsafe { $call(runtime, $($arg),*) }
            }
        )+
    };
}

functions! {
    aicpu_runtime_add_task = calls::add_task::<CurrentBuild>;
        (args: *const u64, num_args: c_int, func_id: c_int, core_type: c_int, function_bin_addr: u64) -> c_int;
    aicpu_runtime_add_successor_conditional = calls::add_edge::<CurrentBuild>; (from: c_int, to: c_int) -> c_int;
    aicpu_runtime_publish_task = calls::publish::<CurrentBuild>; (task_id: c_int) -> c_int;
    pto_read = calls::read::<CurrentBuild>; (address: u64, to: *mut c_void, bytes: u64) -> c_int;
    pto_submit_range = range::submit_task_range::<CurrentBuild>; (tasks: *const RangeOfTasks) -> i64;
    pto_stream_submit = stream::submit::<CurrentBuild>;
        (task: *const StreamTask, args: *const StreamArg, arg_count: u32, after: *const i64, after_count: u32) -> i64;
    pto_stream_submit_range = stream::submit_range::<CurrentBuild>;
        (task: *const StreamTask, args: *const StreamArg, arg_count: u32, after: *const i64, after_count: u32, tasks: u32,
         variations: *const StreamVariation, variation_count: u32) -> i64;
    pto_stream_add = stream::add::<CurrentBuild>;
        (task: *const StreamTask, args: *const StreamArg, arg_count: u32, after: *const i64, after_count: u32) -> i64;
    pto_stream_open_scope = stream::open_scope::<CurrentBuild>; (mode: u32, scope: *mut StreamScope) -> c_int;
    pto_stream_close_scope = stream::close_scope::<CurrentBuild>; (scope: *const StreamScope) -> c_int;
    pto_stream_alloc = stream::alloc::<CurrentBuild>;
        (element: u32, shape: *const u32, rank: u32, tensor: *mut StreamTensor) -> c_int;
    pto_stream_get = stream::get::<CurrentBuild>;
        (tensor: *const StreamTensor, index: *const u32, rank: u32, word: *mut u64) -> c_int;
    pto_stream_set = stream::set::<CurrentBuild>;
        (tensor: *const StreamTensor, index: *const u32, rank: u32, word: u64) -> c_int;
    pto_stream_begin_recording = stream::begin_recording::<CurrentBuild>;
        (shapes: *const StreamTensor, count: u32, bound: *mut StreamTensor) -> c_int;
    pto_stream_end_recording = stream::end_recording::<CurrentBuild>; (recording: *mut StreamRecording) -> c_int;
    pto_stream_replay = stream::replay::<CurrentBuild>;
        (recording: *const StreamRecording, tensors: *const StreamTensor, tensor_count: u32, scalars: *const u64, scalar_count: u32) -> c_int;
}
