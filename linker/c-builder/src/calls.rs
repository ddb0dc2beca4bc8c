//! The functions that a builder in C calls, and what they do to a graph.

use core::ffi::c_void;

use pto_abi::graph::{GraphBuilder, TaskSpec};
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};

use crate::seat;

/// What a call returns when it fails.
const FAILED: i32 = -1;

/// A graph, as the functions below see it.
pub(crate) trait CGraph {
    fn add_task(&mut self, call: &AddTask<'_>) -> Result<i32, Fault>;
    fn add_edge(&mut self, producer: i32, consumer: i32) -> Result<(), Fault>;
    fn publish(&mut self, task: i32) -> Result<(), Fault>;
    /// The first failure, after which nothing is done any more.
    fn fault(&mut self) -> &mut Option<Fault>;
}

/// The arguments of `aicpu_runtime_add_task`.
pub(crate) struct AddTask<'a> {
    args: Option<&'a [u64]>,
    func_id: i32,
    core_type: i32,
    kernel: GmAddr,
}

/// The graph of one build.
pub(crate) struct Calls<'g, G> {
    pub(crate) graph: &'g mut G,
    pub(crate) generation: u32,
    pub(crate) fault: Option<Fault>,
}

impl<G> Calls<'_, G> {
    /// In C a task is its slot; a negative one is no task.
    fn task(&self, slot: i32) -> Result<TaskId, Fault> {
        let slot = u32::try_from(slot).map_err(|_| Fault::BUILD_UNKNOWN_TASK)?;
        Ok(TaskId { slot, generation: self.generation })
    }
}

impl<G: GraphBuilder> CGraph for Calls<'_, G> {
    fn add_task(&mut self, call: &AddTask<'_>) -> Result<i32, Fault> {
        let args = call.args.ok_or(Fault::BUILD_TOO_MANY_ARGS)?;
        let func_id = u16::try_from(call.func_id).map_err(|_| Fault::BUILD_UNKNOWN_FUNC)?;
        let kind = u8::try_from(call.core_type).ok().and_then(|kind| CoreKind::try_from(kind).ok());
        let kind = kind.ok_or(Fault::BUILD_UNKNOWN_KIND)?;
        let spec = TaskSpec { func_id: FuncId(func_id), kind, args, kernel: call.kernel };
        let id = self.graph.add_task(spec)?;
        // MAX_TASKS is far below the sign.
        i32::try_from(id.slot).map_err(|_| Fault::BUILD_TASKS_FULL)
    }

    fn add_edge(&mut self, producer: i32, consumer: i32) -> Result<(), Fault> {
        let (producer, consumer) = (self.task(producer)?, self.task(consumer)?);
        self.graph.add_edge(producer, consumer).map(|_| ())
    }

    fn publish(&mut self, task: i32) -> Result<(), Fault> {
        let task = self.task(task)?;
        self.graph.publish(task)
    }

    fn fault(&mut self) -> &mut Option<Fault> {
        &mut self.fault
    }
}

/// Calls `with` on the graph of `runtime`, unless an earlier call failed.
fn on_graph(runtime: *mut c_void, with: impl FnOnce(&mut dyn CGraph) -> Result<i32, Fault>) -> i32 {
    let act = |graph: &mut dyn CGraph| {
        if graph.fault().is_some() {
            return FAILED;
        }
        with(graph).unwrap_or_else(|fault| {
            *graph.fault() = Some(fault);
            FAILED
        })
    };
    // SAFETY: these functions are called by the builder that `CBuilder::build` called, on the same thread, one
    // after the other: nobody else has the graph now.
    unsafe { seat::on_graph(runtime.addr(), act) }.unwrap_or(FAILED)
}

/// See `include/pto_firmware.h`.
///
/// # Safety
/// `args` points to `num_args` words; the caller is the builder of this runtime.
// SAFETY: the name is that of the interface, and no other function here has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aicpu_runtime_add_task(
    runtime: *mut c_void,
    args: *const u64,
    num_args: i32,
    func_id: i32,
    core_type: i32,
    function_bin_addr: u64,
) -> i32 {
    let args = match usize::try_from(num_args) {
        Ok(0) => Some(&[][..]),
        Ok(count) if count <= pto_abi::limits::MAX_ARGS && !args.is_null() => {
            // SAFETY: the caller says that there are as many words.
            Some(unsafe { core::slice::from_raw_parts(args, count) })
        }
        _ => None,
    };
    let call = AddTask { args, func_id, core_type, kernel: GmAddr(function_bin_addr) };
    on_graph(runtime, |graph| graph.add_task(&call))
}

/// See `include/pto_firmware.h`.
///
/// # Safety
/// The caller is the builder of this runtime.
// SAFETY: as for `aicpu_runtime_add_task`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aicpu_runtime_add_successor_conditional(
    runtime: *mut c_void,
    from: i32,
    to: i32,
) -> i32 {
    on_graph(runtime, |graph| graph.add_edge(from, to).map(|()| 0))
}

/// See `include/pto_firmware.h`.
///
/// # Safety
/// The caller is the builder of this runtime.
// SAFETY: as for `aicpu_runtime_add_task`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aicpu_runtime_publish_task(
    runtime: *mut c_void,
    task_id: i32,
) -> i32 {
    on_graph(runtime, |graph| graph.publish(task_id).map(|()| 0))
}
