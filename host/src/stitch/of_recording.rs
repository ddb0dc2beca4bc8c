//! A recording as a program: what was captured of a stream can be shipped in a file, and run on other tensors.
//!
//! ```text
//! Recording: launches on addresses --the tensors that stand there--> tasks on tensors: Program
//! ```
//! Which arguments are addresses, the library says of its kernels. The kernels of others say it of nothing, and are refused.

use pto_abi::GmAddr;
use pto_aicore_kernels::library::{self, LibraryKernel};
use pto_workload::program::{
    Body, GraphArgument, GraphTask, OwnedBlockShape, Program, TensorDescription,
};

use super::error::StitchError;
use crate::kernels::KernelDescription;
use crate::session::{RecordedTask, Recording};

/// The program of a recording, on tensors that stood at these addresses while it was captured.
pub(super) fn program(
    name: &str,
    recording: &Recording,
    tensors: &[(TensorDescription, GmAddr)],
    registered: &[KernelDescription],
) -> Result<Program, StitchError> {
    let task = |(number, task): (usize, &RecordedTask)| {
        let told = |what| StitchError::Recording { program: name.to_owned(), task: number, what };
        let kernel = kernel(task, registered).map_err(told)?;
        let args = task.args.iter().enumerate();
        let args = args.map(|(at, word)| argument((kernel, at), (task, *word), tensors));
        Ok(GraphTask {
            kernel: kernel.name.to_owned(),
            kind: task.kind,
            args: args.collect::<Result<_, _>>().map_err(told)?,
            producers: task.after.clone(),
            block_shape: OwnedBlockShape::default(),
        })
    };
    let tasks = recording.tasks(&[]);
    let tasks = tasks.iter().enumerate().map(task).collect::<Result<_, StitchError>>()?;
    let described = tensors.iter().map(|(tensor, _)| tensor.clone()).collect();
    Ok(Program::new(name, Body::Graph(tasks), described)?)
}

/// The kernel of the library that a task runs.
fn kernel(
    task: &RecordedTask,
    registered: &[KernelDescription],
) -> Result<&'static LibraryKernel, String> {
    let named = registered.iter().find(|kernel| kernel.func_id == task.func_id);
    let named = named.map_or("that is not registered any more", |kernel| kernel.name.as_str());
    library::by_name(named).filter(|kernel| kernel.kind == task.kind).ok_or_else(|| {
        format!(
            "runs kernel {named} (func id {}), which is none of the library; a recording can become a program if all of its kernels are",
            task.func_id
        )
    })
}

fn argument(
    (kernel, at): (&LibraryKernel, usize),
    (task, word): (&RecordedTask, u64),
    tensors: &[(TensorDescription, GmAddr)],
) -> Result<GraphArgument, String> {
    let is_context = task.is_block && at + 1 == task.args.len();
    // Words behind those that the table names may be anything.
    let is_address = kernel.addresses.get(at).copied().unwrap_or(kernel.takes_more);
    if is_context || !is_address {
        return Ok(GraphArgument::Word(word));
    }
    let found = tensors.iter().enumerate().find_map(|(tensor, (described, address))| {
        let offset = word.checked_sub(address.0)?;
        (offset < described.bytes()).then_some(GraphArgument::Tensor { tensor, offset })
    });
    match found {
        Some(argument) => Ok(argument),
        None if at >= kernel.addresses.len() => Ok(GraphArgument::Word(word)),
        None => Err(format!(
            "has {} as argument {} of {}, which is in none of the tensors that were given; give the tensor that stands there",
            GmAddr(word),
            kernel.args.get(at).unwrap_or(&"?"),
            kernel.name
        )),
    }
}
