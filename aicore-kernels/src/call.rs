//! The call of a kernel by its address.

use core::ptr;

use pto_abi::handshake::Dispatch;

use crate::args::size;
use crate::library::KernelFn;

/// Runs the kernel of a dispatch.
///
/// # Safety
/// `dispatch.kernel` is the address of a function of type [`KernelFn`] that this core can execute, and is not null;
/// `dispatch.args` is the address of the task's words, of which the kernel's [argument contract](crate::args)
/// holds. The firmware dispatches only kernels from `kernel_addrs`, where the host wrote where it put such
/// functions, or addresses that a builder vouches for.
#[inline]
pub unsafe fn call(dispatch: &Dispatch) {
    let code = ptr::with_exposed_provenance::<()>(size(dispatch.kernel));
    // SAFETY: the caller promises that it is such a function.
    let kernel = unsafe { core::mem::transmute::<*const (), KernelFn>(code) };
    // SAFETY: the caller promises that the words are there, and what they mean.
    unsafe { kernel(ptr::with_exposed_provenance(size(dispatch.args))) };
}
