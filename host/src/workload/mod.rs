//! Workloads on a device: what was compiled is put into its memory once, bound to tensors, and run.
//!
//! ```text
//! Compiled + WorkloadBindings --WorkloadRun::bind--> plan, code, bindings, record, scratch memory in GM
//!     run(&mut device) --> Work::Stream "workload" --> RunReport | WorkloadError, which names loop, kernel and argument
//! ```
//! Another size, symbol or tensor is another binding: nothing is compiled again.

mod bindings;
mod run;

pub use pto_aicore_kernels::tile_task::run_body;

pub use bindings::{ArrayBinding, BindingError, TensorBinding, WorkloadBindings};
pub use run::{WorkloadError, WorkloadRun};
pub(crate) use run::{for_plans, plan_part};
