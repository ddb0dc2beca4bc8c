//! The entry points: each checks those of its arguments that no device has to be asked about, and jumps to what the table has for it. So it needs to
//! know neither all arguments nor the result.

use pto_acl_interface::CHECKED;

use super::checks;
use super::table::{ROWS, TABLE, target};

/// Where a call goes whose arguments cannot be.
extern "C" fn refused<const INDEX: usize>(
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
    sixth: usize,
) -> i32 {
    let words: [usize; CHECKED] = [first, second, third, fourth, fifth, sixth];
    checks::refuse(&ROWS[INDEX], target(INDEX), &words)
}

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    ($index:literal $($line:literal),*) => {
        // r11 is free at the begin of a function.
        std::arch::naked_asm!(
            $($line,)*
            "mov r11, qword ptr [rip + {table} + {offset}]",
            "jmp r11",
            "2:",
            "jmp {refused}",
            table = sym TABLE,
            offset = const 8 * $index,
            refused = sym refused::<$index>,
        )
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    ($index:literal $($line:literal),*) => {
        // x16 is free at the begin of a function.
        std::arch::naked_asm!(
            $($line,)*
            "adrp x16, {table}",
            "add x16, x16, :lo12:{table}",
            "ldr x16, [x16, {offset}]",
            "br x16",
            "2:",
            "b {refused}",
            table = sym TABLE,
            offset = const 8 * $index,
            refused = sym refused::<$index>,
        )
    };
}

macro_rules! entries {
    ($($index:literal $name:ident [$($line:literal),*],)*) => {$(
        // SAFETY: the name is that of the interface, and no other function here has it. The body leaves arguments and stack as they are,
        // and what it jumps to has the type that the caller means.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        extern "C" fn $name() {
            jump!($index $($line),*)
        }
    )*};
}

include!(concat!(env!("OUT_DIR"), "/entries.rs"));
