//! The tasks of a graph, whose arguments name tensors of the program instead of addresses.

use std::fmt;

use pto_abi::CoreKind;
use pto_abi::limits::MAX_ARGS;
use pto_aicore_kernels::library;
use pto_graph::owned::OwnedTask;
use pto_graph::signature::{ArgumentMemory, Arguments};

use super::block_shape::{self, TensorElement};
use super::bytes::{Reader, Writer};
use super::description::TensorDescription;
use super::error::ProgramError;

/// An argument of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphArgument {
    /// The address of a byte of a tensor.
    Tensor {
        /// The number of the tensor.
        tensor: usize,
        /// The byte.
        offset: u64,
    },
    /// A word.
    Word(u64),
}

impl GraphArgument {
    /// The number that it is; a tensor is none.
    const fn number(&self) -> u64 {
        match *self {
            Self::Word(word) => word,
            Self::Tensor { .. } => 0,
        }
    }

    /// The defect as a text that follows the name of its owner; `None`: there is no defect.
    pub(super) fn defect(self, tensors: &[TensorDescription]) -> Option<String> {
        let Self::Tensor { tensor, offset } = self else { return None };
        match tensors.get(tensor) {
            None => Some(format!("names tensor {tensor} of {}", tensors.len())),
            Some(of) if offset >= of.bytes() => Some(format!(
                "begins at byte {offset} of tensor {}, which has {}",
                of.name,
                of.bytes()
            )),
            Some(_) => None,
        }
    }
}

/// A task of a program. Its kernels have names, native ones or those of the library: names stay the same between versions of the library, and numbers
/// may not. Each task follows its producers.
pub type GraphTask = OwnedTask<String, GraphArgument, TensorElement>;

const KINDS: &[CoreKind] = CoreKind::ALL;

/// The first thing that is wrong with the tasks; `None`: nothing.
pub(super) fn defect(tasks: &[GraphTask], tensors: &[TensorDescription]) -> Option<String> {
    tasks.iter().enumerate().find_map(|(number, task)| {
        let what = task_defect(task, number, tensors)?;
        Some(format!("task {number} ({}) {what}", task.kernel))
    })
}

fn task_defect(task: &GraphTask, number: usize, tensors: &[TensorDescription]) -> Option<String> {
    if task.args.len() > MAX_ARGS {
        return Some(format!("has {} arguments, and {MAX_ARGS} are the limit", task.args.len()));
    }
    if let Some(later) = task.producers.iter().find(|producer| **producer >= number) {
        return Some(format!("waits for task {later}, which does not stand in front of it"));
    }
    if let Some(what) = block_shape::defect(&task.block_shape, task.kind, tensors) {
        return Some(what);
    }
    if let Some(what) = task.args.iter().find_map(|arg| arg.defect(tensors)) {
        return Some(what);
    }
    task.kernels().find_map(|(kernel, kind)| call_defect(task, (kernel, kind), tensors))
}

/// What is wrong with the call of a kernel of the library; a kernel of another name is a native one.
fn call_defect(
    task: &GraphTask,
    (kernel, kind): (&str, CoreKind),
    tensors: &[TensorDescription],
) -> Option<String> {
    let signature = library::by_name(kernel)?.signature();
    let words: Vec<u64> = task.args.iter().map(GraphArgument::number).collect();
    let call = ProgramCall { task, words, tensors };
    let defect = signature.check(kind, &call).err()?;
    Some(format!("cannot run: {}", defect.describe(&signature, &call)))
}

/// A task of a program.
struct ProgramCall<'p> {
    task: &'p GraphTask,
    words: Vec<u64>,
    tensors: &'p [TensorDescription],
}

impl ProgramCall<'_> {
    fn tensor(&self, at: usize) -> Option<(&TensorDescription, u64)> {
        match *self.task.args.get(at)? {
            GraphArgument::Tensor { tensor, offset } => Some((self.tensors.get(tensor)?, offset)),
            GraphArgument::Word(_) => None,
        }
    }
}

impl Arguments for ProgramCall<'_> {
    fn words(&self) -> &[u64] {
        &self.words
    }

    fn blocks(&self) -> u32 {
        self.task.block_shape.blocks
    }

    fn memory_of(&self, at: usize) -> ArgumentMemory {
        let memory = |(tensor, offset): (&TensorDescription, u64)| ArgumentMemory::Memory {
            offset,
            bytes: tensor.bytes(),
        };
        self.tensor(at).map_or(ArgumentMemory::Nowhere, memory)
    }

    fn is_view(&self, at: usize) -> bool {
        self.tensor(at).is_some()
    }

    fn describe_nowhere(&self, at: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.words.get(at).copied().unwrap_or(0);
        write!(to, "the program has the number {word} there; name a tensor")
    }

    fn describe_memory(&self, at: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.tensor(at).map_or("?", |(tensor, _)| tensor.name.as_str());
        write!(to, "tensor {name}")
    }
}

pub(super) fn write(tasks: &[GraphTask]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.count(tasks.len());
    for task in tasks {
        writer.text(&task.kernel);
        let kind = KINDS.iter().position(|kind| *kind == task.kind).unwrap_or(usize::MAX);
        writer.byte(u8::try_from(kind).unwrap_or(u8::MAX));
        write_arguments(&mut writer, &task.args);
        writer.count(task.producers.len());
        task.producers.iter().for_each(|producer| writer.count(*producer));
    }
    writer.0
}

pub(super) fn write_arguments(writer: &mut Writer, args: &[GraphArgument]) {
    writer.count(args.len());
    for arg in args {
        let (code, words) = match *arg {
            GraphArgument::Word(word) => (0, [word, 0]),
            GraphArgument::Tensor { tensor, offset } => (1, [tensor as u64, offset]),
        };
        writer.byte(code);
        words[..1 + usize::from(code)].iter().for_each(|word| writer.number(*word));
    }
}

pub(super) fn read_arguments(reader: &mut Reader<'_>) -> Result<Vec<GraphArgument>, ProgramError> {
    (0..reader.count()?).map(|_| argument(reader)).collect()
}

pub(super) fn read(content: &[u8]) -> Result<Vec<GraphTask>, ProgramError> {
    let mut reader = Reader::new("graph", content);
    let tasks = (0..reader.count()?).map(|_| task(&mut reader)).collect::<Result<_, _>>()?;
    reader.end()?;
    Ok(tasks)
}

fn task(reader: &mut Reader<'_>) -> Result<GraphTask, ProgramError> {
    let kernel = reader.name()?;
    let kind = reader.one_of("a kind of core", KINDS)?;
    let args = read_arguments(reader)?;
    let producer = |reader: &mut Reader<'_>| -> Result<usize, ProgramError> {
        Ok(usize::try_from(reader.number()?).unwrap_or(usize::MAX))
    };
    let producers = (0..reader.count()?).map(|_| producer(reader)).collect::<Result<_, _>>()?;
    Ok(GraphTask { args, producers, ..GraphTask::new(kernel, kind) })
}

fn argument(reader: &mut Reader<'_>) -> Result<GraphArgument, ProgramError> {
    if reader.truth("a kind of argument")? {
        let tensor = usize::try_from(reader.number()?).unwrap_or(usize::MAX);
        return Ok(GraphArgument::Tensor { tensor, offset: reader.number()? });
    }
    Ok(GraphArgument::Word(reader.number()?))
}
