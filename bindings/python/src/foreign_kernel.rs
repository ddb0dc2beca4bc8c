//! Tile kernels on the simulator whose bodies are C++: from the words of a task to the structure that such a body takes.
//!
//! ```text
//! core --words--> pto_wsp_entry (compiled with the body) --pto_wsp_call, which is call--> body(KernelTaskDesc, nothing)
//! ```
//!
//! Why it is so: `docs/decisions/pto-wsp.md`.

use std::ffi::c_void;

use pto_host::KernelFn;
use pto_host::workload::run_body;
use pto_workload::tile::{Call, FaultCause, Kernel, ParamKind};
use pyo3::pyfunction;

/// `KernelTaskDesc` of the shim header.
#[repr(C)]
struct TaskDescription {
    kernel_id: u32,
    task_id: u32,
    num_args: u32,
    num_axis_args: u32,
    num_tensors: u32,
    reserved: u32,
    args: *const u64,
    tensor_ptrs: *const usize,
    tensor_strides: *const i64,
}

type Body = unsafe extern "C" fn(*const TaskDescription, *mut c_void) -> u64;
type Counter = unsafe extern "C" fn() -> u64;

/// The address of [`call`], which a compiled body reaches through a pointer.
#[pyfunction]
pub(crate) fn foreign_call() -> usize {
    call as *const () as usize
}

/// The function at an address; `None`: it is null.
///
/// # Safety
/// There is such a function, for as long as this process lives.
pub(crate) unsafe fn entry_at(address: usize) -> Option<KernelFn> {
    let address = std::ptr::with_exposed_provenance::<()>(address);
    // SAFETY: a null pointer is no function, and `None` is how a null pointer is represented. The caller promises the rest.
    unsafe { std::mem::transmute::<*const (), Option<KernelFn>>(address) }
}

/// Calls a body with what the words of its task say. The last scalars of the kernel, `axes` of them, are the axes of the task.
unsafe extern "C" fn call(words: *const u64, body: Body, counter: Counter, axes: u64) {
    let run = |kernel: &Kernel, call: &Call<'_>| described(kernel, call, axes, body, counter);
    // SAFETY: a core calls this with the words of a task of an expanded plan.
    unsafe { run_body(words.expose_provenance() as u64, run) }
}

fn described(
    kernel: &Kernel,
    call: &Call<'_>,
    axes: u64,
    body: Body,
    counter: Counter,
) -> Result<u64, FaultCause> {
    let tensors = kernel.params().iter().filter_map(|param| match param.kind {
        ParamKind::Tensor { tile, .. } => Some(tile.dtype),
        ParamKind::Scalar(_) => None,
    });
    let pairs = tensors.zip(call.tensors);
    let addresses: Vec<usize> =
        pairs.map(|(dtype, view)| view.address(dtype)).collect::<Result<_, _>>()?;
    let own = call.scalars.len().saturating_sub(usize::try_from(axes).unwrap_or(usize::MAX));
    let (scalars, axes) = call.scalars.split_at(own);
    let counted = call.tensors.iter().flat_map(|view| view.extents().map(u64::from));
    let args: Vec<u64> =
        axes.iter().copied().chain(counted).chain(scalars.iter().copied()).collect();
    let strides: Vec<i64> = call.tensors.iter().flat_map(|view| view.strides()).collect();
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let task = TaskDescription {
        kernel_id: 0,
        task_id: 0,
        num_args: count(args.len()),
        num_axis_args: count(axes.len() + 2 * addresses.len()),
        num_tensors: count(addresses.len()),
        reserved: 0,
        args: args.as_ptr(),
        tensor_ptrs: addresses.as_ptr(),
        tensor_strides: strides.as_ptr(),
    };
    // SAFETY: the counter is that of the body's library, and belongs to this thread.
    unsafe { counter() };
    // SAFETY: the structure and what it points to live until the body returns; what the body does with the tensors is the user's affair.
    let said = unsafe { body(&raw const task, std::ptr::null_mut()) };
    // SAFETY: as above.
    let cycles = unsafe { counter() };
    Ok(if said == 0 { cycles } else { said })
}
