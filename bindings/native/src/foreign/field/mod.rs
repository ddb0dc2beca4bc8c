//! What kernels of the field find of their tasks in memory, on the simulator and on a device.
//!
//! ```text
//! frame.rs       a task: its tensors (tensor.rs), its scalars, and the 50 words of its kernels' arguments
//! context.rs     what a kernel sees of its block and its core
//! completion.rs  what its task waits for when it has returned
//! run.rs         what all tasks of a run share on a device: flags, shared state, what went wrong
//! ```

mod completion;
mod context;
mod frame;
mod run;
mod tensor;

pub use completion::Conditions;
pub use context::{AsyncContext, Condition, GlobalContext, LocalContext};
pub use frame::{GLOBAL, LOCAL, TaskFrame, WORDS};
pub use run::{Cell, CellKind, KernelFault, POOL_BYTES, RunState};
pub use tensor::{ChipTensor, MAX_DIMS, NO_TASK, element_of};
