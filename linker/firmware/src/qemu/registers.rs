//! System registers of AArch64: reading and writing them by name. The names are those of the architecture.

/// Reads a system register.
macro_rules! read_register {
    ($name:literal) => {{
        let value: u64;
        // SAFETY: reading a system register at EL1 changes nothing.
        unsafe {
            core::arch::asm!(
                concat!("mrs {}, ", $name), out(reg) value,
                options(nomem, nostack, preserves_flags)
            );
        }
        value
    }};
}

/// Writes a system register, followed by an instruction barrier, so that it holds for what follows.
macro_rules! write_register {
    ($name:literal, $value:expr) => {{
        let value: u64 = $value;
        // SAFETY: the call site writes a register of its own device at EL1; what the value means is stated
        // there.
        unsafe {
            core::arch::asm!(
                concat!("msr ", $name, ", {}"), "isb", in(reg) value,
                options(nostack, preserves_flags)
            );
        }
    }};
}
