//! The structures that the vendor's functions take. Sizes and offsets: docs/how-to/hardware.md, "Structures".

use std::ffi::c_void;
use std::mem::offset_of;

/// A binary of AICore code.
#[repr(C)]
pub(super) struct DevBinary {
    pub(super) magic: u32,
    pub(super) version: u32,
    pub(super) code: *const c_void,
    pub(super) bytes: u64,
}

/// Arguments of an AICore launch.
#[repr(C)]
pub(super) struct ArgsEx {
    pub(super) args: *mut c_void,
    pub(super) host_inputs: *mut c_void,
    pub(super) bytes: u32,
    pub(super) tiling_address: u32,
    pub(super) tiling_offset: u32,
    pub(super) host_input_count: u16,
    pub(super) has_tiling: u8,
    pub(super) needs_no_copy: u8,
    pub(super) reserved: [u8; 8],
}

/// Arguments of an AICPU launch.
#[repr(C)]
pub(super) struct AicpuArgs {
    pub(super) args: *mut c_void,
    pub(super) host_inputs: *mut c_void,
    pub(super) kernel_offsets: *mut c_void,
    pub(super) bytes: u32,
    pub(super) host_input_count: u16,
    pub(super) kernel_offset_count: u16,
    pub(super) so_name: u32,
    pub(super) kernel_name: u32,
    pub(super) needs_no_copy: u8,
    pub(super) reserved: u8,
    pub(super) timeout: u16,
    pub(super) padding: [u8; 4],
}

/// Arguments of a launch of a registered AICPU function.
#[repr(C)]
pub(super) struct CpuKernelArgs {
    pub(super) base: AicpuArgs,
    pub(super) head_offset: usize,
    pub(super) reserved: [u32; 4],
}

/// How an AICore launch is scheduled.
#[repr(C)]
#[derive(Default)]
pub(super) struct TaskConfig {
    pub(super) qos: u8,
    pub(super) part: u8,
    pub(super) schedule_mode: u8,
    pub(super) crosses_dies: u8,
    pub(super) block_offset: u32,
    pub(super) reserved: u32,
    pub(super) local_bytes: u32,
}

/// Attributes of a launch; none.
#[repr(C)]
pub(super) struct LaunchConfig {
    pub(super) attributes: *const c_void,
    pub(super) count: usize,
}

/// An option of a binary that is loaded.
#[repr(C)]
pub(super) struct BinaryOption {
    pub(super) id: u32,
    pub(super) value: [u32; 4],
}

/// The options of a binary that is loaded.
#[repr(C)]
pub(super) struct BinaryConfig {
    pub(super) options: *const BinaryOption,
    pub(super) count: usize,
}

/// Which registers are to be mapped.
#[repr(C)]
pub(super) struct MapIn {
    pub(super) kind: u32,
    pub(super) device: u32,
}

/// Where they are.
#[repr(C)]
#[derive(Default)]
pub(super) struct MapOut {
    pub(super) address: u64,
    pub(super) bytes: u64,
}

const _: () = {
    assert!(size_of::<DevBinary>() == 24 && offset_of!(DevBinary, code) == 8);
    assert!(offset_of!(DevBinary, bytes) == 16);
    assert!(size_of::<ArgsEx>() == 40 && offset_of!(ArgsEx, bytes) == 16);
    assert!(offset_of!(ArgsEx, tiling_address) == 20 && offset_of!(ArgsEx, tiling_offset) == 24);
    assert!(offset_of!(ArgsEx, host_input_count) == 28 && offset_of!(ArgsEx, has_tiling) == 30);
    assert!(offset_of!(ArgsEx, needs_no_copy) == 31);
    assert!(size_of::<AicpuArgs>() == 48 && offset_of!(AicpuArgs, bytes) == 24);
    assert!(offset_of!(AicpuArgs, kernel_offsets) == 16);
    assert!(offset_of!(AicpuArgs, host_input_count) == 28);
    assert!(offset_of!(AicpuArgs, kernel_offset_count) == 30);
    assert!(offset_of!(AicpuArgs, so_name) == 32 && offset_of!(AicpuArgs, kernel_name) == 36);
    assert!(offset_of!(AicpuArgs, needs_no_copy) == 40 && offset_of!(AicpuArgs, timeout) == 42);
    assert!(size_of::<CpuKernelArgs>() == 72 && offset_of!(CpuKernelArgs, head_offset) == 48);
    assert!(size_of::<TaskConfig>() == 16 && offset_of!(TaskConfig, schedule_mode) == 2);
    assert!(offset_of!(TaskConfig, crosses_dies) == 3 && offset_of!(TaskConfig, block_offset) == 4);
    assert!(offset_of!(TaskConfig, local_bytes) == 12);
    assert!(size_of::<LaunchConfig>() == 16 && size_of::<BinaryConfig>() == 16);
    assert!(
        size_of::<BinaryOption>() == 20 && size_of::<MapIn>() == 8 && size_of::<MapOut>() == 16
    );
};

impl AicpuArgs {
    /// These bytes, which the call copies, and the offsets of the names of library and kernel in them.
    pub(super) fn of(args: &mut [u64], (so_name, kernel_name): (usize, usize)) -> Self {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            bytes: u32::try_from(size_of_val(args)).unwrap_or(u32::MAX),
            args: args.as_mut_ptr().cast(),
            host_inputs: std::ptr::null_mut(),
            kernel_offsets: std::ptr::null_mut(),
            host_input_count: 0,
            kernel_offset_count: 0,
            so_name: offset(so_name),
            kernel_name: offset(kernel_name),
            needs_no_copy: 0,
            reserved: 0,
            timeout: 0,
            padding: [0; 4],
        }
    }
}

impl ArgsEx {
    /// These bytes, which the call copies.
    pub(super) fn of(args: &mut [u64]) -> Self {
        Self {
            bytes: u32::try_from(size_of_val(args)).unwrap_or(u32::MAX),
            args: args.as_mut_ptr().cast(),
            host_inputs: std::ptr::null_mut(),
            tiling_address: 0,
            tiling_offset: 0,
            host_input_count: 0,
            has_tiling: 0,
            needs_no_copy: 0,
            reserved: [0; 8],
        }
    }
}
