//! What kernels call by name: the functions of `pto_field_prelude.h`, as it declares them for a device.

use crate::cells;
use crate::core_registers;
use crate::running::RunningBlock;

/// The number of the core among the vector cores of its block.
#[unsafe(no_mangle)]
extern "C" fn pto_sim_get_subblock_id() -> u32 {
    RunningBlock::here().map_or(0, |running| u32::from(running.slot.saturating_sub(1)))
}

/// Memory that the kernels of a block find by a key.
#[unsafe(no_mangle)]
extern "C" fn pto_sim_get_pipe_shared_state(key: u64, bytes: usize) -> *mut u8 {
    RunningBlock::here().map_or(core::ptr::null_mut(), |running| cells::memory(running, key, bytes))
}

/// The clock, in ticks of 20 ns.
#[unsafe(no_mangle)]
extern "C" fn pto_field_device_ticks() -> u64 {
    core_registers::ticks()
}

/// Raises a flag.
#[unsafe(no_mangle)]
extern "C" fn pto_field_device_raise(mode: u32, flag: u32) {
    if let Some(running) = RunningBlock::here() {
        cells::raise(running, mode, flag);
    }
}

/// Waits for a flag.
#[unsafe(no_mangle)]
extern "C" fn pto_field_device_wait(flag: u32) {
    if let Some(running) = RunningBlock::here() {
        cells::wait(running, flag);
    }
}

/// A kernel that waits lets others run.
#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> i32 {
    core_registers::sleep();
    0
}
