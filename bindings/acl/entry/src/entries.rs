//! The entry points: each jumps to what the table has for it. So it needs to know neither the arguments nor the result.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::refusing;
use super::row::Row;

/// Where the calls go, in the order of `ROWS`. Before a plug-in is loaded they are refused.
static TABLE: [AtomicPtr<c_void>; ROWS.len()] =
    [const { AtomicPtr::new(refusing::NO_PLUGIN) }; ROWS.len()];

/// Lets a function go there from now on.
pub(crate) fn set(index: usize, target: *mut c_void) {
    // Release: the entry points load the place as the machine does; whoever finds the target finds what was written before.
    TABLE[index].store(target, Ordering::Release);
}

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    ($index:literal) => {
        // r11 is free at the begin of a function.
        std::arch::naked_asm!(
            "mov r11, qword ptr [rip + {table} + {offset}]",
            "jmp r11",
            table = sym TABLE,
            offset = const 8 * $index,
        )
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    ($index:literal) => {
        // x16 is free at the begin of a function.
        std::arch::naked_asm!(
            "adrp x16, {table}",
            "add x16, x16, :lo12:{table}",
            "ldr x16, [x16, {offset}]",
            "br x16",
            table = sym TABLE,
            offset = const 8 * $index,
        )
    };
}

macro_rules! entries {
    ($($index:literal $name:ident,)*) => {$(
        // SAFETY: the name is that of the interface, and no other function here has it. The body leaves arguments and stack as they are,
        // and what it jumps to has the type that the caller means.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        extern "C" fn $name() {
            jump!($index)
        }
    )*};
}

include!(concat!(env!("OUT_DIR"), "/entries.rs"));
