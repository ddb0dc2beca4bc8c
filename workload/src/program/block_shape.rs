//! What a task of a graph is beyond one kernel on one core. The section `shapes` holds it for the tasks that are more than that, so
//! that a program without such tasks has the bytes that it had before there were any, and an older reader refuses the others.

use pto_abi::CoreKind;
use pto_abi::limits::MAX_BLOCKS;
use pto_graph::owned::{OwnedBlockShape, OwnedPredicate};
use pto_graph::{Comparison, ElementType, Priority, StartMode};

use super::bytes::{Reader, Writer};
use super::description::TensorDescription;
use super::error::ProgramError;

/// An element of a tensor of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorElement {
    /// The number of the tensor.
    pub tensor: usize,
    /// The first byte of the element.
    pub offset: u64,
    /// The element's type.
    pub element: ElementType,
}

/// What a task of a program is beyond one kernel on one core; kernels have names.
pub type BlockShape = OwnedBlockShape<String, TensorElement>;

/// What is wrong with the block shape of a task; `None`: nothing.
pub(super) fn defect(
    shape: &BlockShape,
    kind: CoreKind,
    tensors: &[TensorDescription],
) -> Option<String> {
    let most = if kind == CoreKind::AIC { 2 } else { 1 };
    if shape.mix.len() > most {
        let found = shape.mix.len();
        return Some(format!(
            "has {found} kernels on vector cores beside its own, and {most} are the limit"
        ));
    }
    if !(1..=MAX_BLOCKS).contains(&shape.blocks) {
        return Some(format!("has {} blocks, and it can have 1 to {MAX_BLOCKS}", shape.blocks));
    }
    let TensorElement { tensor, offset, element } = shape.when?.element;
    let bytes = element.bytes();
    let Some(of) = tensors.get(tensor) else {
        return Some(format!("has a predicate on tensor {tensor} of {}", tensors.len()));
    };
    let ends = offset.checked_add(bytes).filter(|end| *end <= of.bytes());
    (ends.is_none() || !offset.is_multiple_of(bytes)).then(|| {
        format!(
            "has a predicate on an element of {bytes} bytes at byte {offset} of tensor {}, which has {}",
            of.name,
            of.bytes()
        )
    })
}

/// A block shape as text; the predicate's tensor has the name that it has among `tensors`. `None`: it is one kernel on one core.
#[must_use]
pub fn describe_block_shape(shape: &BlockShape, tensors: &[TensorDescription]) -> Option<String> {
    let OwnedBlockShape { mix, blocks, start, priority, when } = shape;
    let mix = (!mix.is_empty()).then(|| format!("mix with {}", mix.join(" and ")));
    let blocks = (*blocks != 1).then(|| format!("{blocks} blocks"));
    let start = (*start != StartMode::SPREAD).then(|| format!("start {start}"));
    let priority = (*priority != Priority::NORMAL).then(|| format!("priority {priority}"));
    let when = when.map(|OwnedPredicate { element: at, comparison, value }| {
        let name = tensors.get(at.tensor).map_or("?", |of| of.name.as_str());
        let TensorElement { offset, element, .. } = at;
        format!("when the {element} at byte {offset} of {name} {comparison} {value:#x}")
    });
    let parts: Vec<_> = [mix, blocks, start, priority, when].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

const SECTION: &str = "shapes";

/// The section of all tasks of a graph; `None`: every task is one kernel on one core.
pub(super) fn write<'s>(shapes: impl Iterator<Item = &'s BlockShape>) -> Option<Vec<u8>> {
    let shaped: Vec<_> = shapes.enumerate().filter(|(_, shape)| !shape.is_plain()).collect();
    let mut writer = Writer::default();
    writer.count(shaped.len());
    for (number, shape) in &shaped {
        writer.count(*number);
        writer.count(shape.mix.len());
        shape.mix.iter().for_each(|name| writer.text(name));
        writer.number(shape.blocks.into());
        writer.byte(shape.start.get());
        writer.byte(shape.priority.get());
        writer.byte(shape.when.is_some().into());
        if let Some(when) = &shape.when {
            writer.count(when.element.tensor);
            writer.number(when.element.offset);
            writer.byte(when.element.element.get());
            writer.byte(when.comparison.get());
            writer.number(when.value);
        }
    }
    (!shaped.is_empty()).then_some(writer.0)
}

/// Gives the tasks of a graph the shapes of the section.
pub(super) fn read(content: &[u8], shapes: &mut [&mut BlockShape]) -> Result<(), ProgramError> {
    let mut reader = Reader::new(SECTION, content);
    let count = reader.count()?;
    if count == 0 {
        return Err(reader.error("no task has a shape, and then there is no such section"));
    }
    let mut next = 0;
    for _ in 0..count {
        let number = usize::try_from(reader.number()?).unwrap_or(usize::MAX);
        let tasks = shapes.len();
        let place = shapes.get_mut(number).filter(|_| number >= next);
        let place = place.ok_or_else(|| {
            reader.error(format!("task {number} of {tasks}, at least {next} is wanted"))
        })?;
        **place = shape(&mut reader)?;
        if place.is_plain() {
            return Err(reader.error(format!("task {number} is one kernel on one core")));
        }
        next = number + 1;
    }
    reader.end()
}

fn shape(reader: &mut Reader<'_>) -> Result<BlockShape, ProgramError> {
    let mix = (0..reader.count()?).map(|_| reader.name()).collect::<Result<_, _>>()?;
    let blocks = u32::try_from(reader.number()?);
    let blocks = blocks.map_err(|_| reader.error("a number of blocks beyond 32 bits"))?;
    let start = reader.one_of("a start of blocks", StartMode::ALL)?;
    let priority = reader.one_of("a priority", Priority::ALL)?;
    let when = reader.truth("whether there is a predicate")?;
    let when = when.then(|| condition(reader)).transpose()?;
    Ok(OwnedBlockShape { mix, blocks, start, priority, when })
}

fn condition(reader: &mut Reader<'_>) -> Result<OwnedPredicate<TensorElement>, ProgramError> {
    let tensor = usize::try_from(reader.number()?).unwrap_or(usize::MAX);
    let offset = reader.number()?;
    let code = reader.byte()?;
    let element = ElementType::try_from(code);
    let element = element.map_err(|_| reader.error(format!("an element type {code}")))?;
    let code = reader.byte()?;
    let comparison = Comparison::try_from(code);
    let comparison = comparison.map_err(|_| reader.error(format!("a comparison {code}")))?;
    let element = TensorElement { tensor, offset, element };
    Ok(OwnedPredicate { element, comparison, value: reader.number()? })
}
