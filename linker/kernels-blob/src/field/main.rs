//! Kernels of the field in plain C++, as a blob for the emulated machine: `pto fw build --kernel`. The build script compiles them, and writes
//! the table.
//!
//! ```text
//! the engine --words of a task--> on_N of the table --> call.rs: frame -> 50 words of arguments --> the kernel
//! the kernel --functions of pto_field_prelude.h--> services.rs --> cells.rs: flags and shared state of its task
//! ```
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod call;
#[cfg(target_os = "none")]
mod cells;
#[cfg(target_os = "none")]
mod core_registers;
#[cfg(target_os = "none")]
mod math;
#[cfg(target_os = "none")]
mod running;
#[cfg(target_os = "none")]
mod services;
#[cfg(target_os = "none")]
mod table {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

/// Elsewhere there is nothing to load.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!(
        "pto-field-kernels is code for a device: build it with --target aarch64-unknown-none"
    );
    std::process::exit(2);
}
