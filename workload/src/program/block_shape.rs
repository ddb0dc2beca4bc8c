//! What a task of a graph is beyond one kernel on one core. The section `shapes` holds it for the tasks that are more than that, so
//! that a program without such tasks has the bytes that it had before there were any, and an older reader refuses the others.

use pto_abi::CoreKind;
use pto_abi::limits::MAX_BLOCKS;
use pto_graph::{Comparison, ElementType, Priority, StartMode};

use super::bytes::{Reader, Writer};
use super::description::TensorDescription;
use super::error::ProgramError;

/// What a task is beyond one kernel on one core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedBlockShape {
    /// The names of kernels that run on vector cores of the same cluster.
    pub mix: Vec<String>,
    /// How many blocks.
    pub blocks: u32,
    /// How they start.
    pub start: StartMode,
    /// Which of several ready tasks goes first.
    pub priority: Priority,
    /// What it depends on whether the task runs.
    pub when: Option<GraphCondition>,
}

/// An element of a tensor, compared with a value when the task becomes ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphCondition {
    /// The number of the tensor.
    pub tensor: usize,
    /// The first byte of the element.
    pub offset: u64,
    /// Its type.
    pub element: ElementType,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what, in the low bits.
    pub value: u64,
}

impl Default for OwnedBlockShape {
    fn default() -> Self {
        let (start, priority) = (StartMode::SPREAD, Priority::NORMAL);
        Self { mix: Vec::new(), blocks: 1, start, priority, when: None }
    }
}

impl OwnedBlockShape {
    /// Whether it is one kernel on one core.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn defect(&self, kind: CoreKind, tensors: &[TensorDescription]) -> Option<String> {
        let most = if kind == CoreKind::AIC { 2 } else { 1 };
        if self.mix.len() > most {
            let found = self.mix.len();
            return Some(format!(
                "has {found} kernels on vector cores beside its own, and {most} are the limit"
            ));
        }
        if !(1..=MAX_BLOCKS).contains(&self.blocks) {
            return Some(format!("has {} blocks, and it can have 1 to {MAX_BLOCKS}", self.blocks));
        }
        let when = self.when?;
        let bytes = when.element.bytes();
        let Some(of) = tensors.get(when.tensor) else {
            return Some(format!("has a predicate on tensor {} of {}", when.tensor, tensors.len()));
        };
        let ends = when.offset.checked_add(bytes).filter(|end| *end <= of.bytes());
        (ends.is_none() || !when.offset.is_multiple_of(bytes)).then(|| {
            format!(
                "has a predicate on an element of {bytes} bytes at byte {} of tensor {}, which has {}",
                when.offset,
                of.name,
                of.bytes()
            )
        })
    }

    /// In words; the predicate's tensor has the name that it has among `tensors`. `None`: it is one kernel on one core.
    #[must_use]
    pub fn told(&self, tensors: &[TensorDescription]) -> Option<String> {
        let Self { mix, blocks, start, priority, when } = self;
        let mix = (!mix.is_empty()).then(|| format!("mix with {}", mix.join(" and ")));
        let blocks = (*blocks != 1).then(|| format!("{blocks} blocks"));
        let start = (*start != StartMode::SPREAD).then(|| format!("start {start}"));
        let priority = (*priority != Priority::NORMAL).then(|| format!("priority {priority}"));
        let when = when.map(|when| {
            let name = tensors.get(when.tensor).map_or("?", |of| of.name.as_str());
            let GraphCondition { offset, element, comparison, value, .. } = when;
            format!("when the {element} at byte {offset} of {name} {comparison} {value:#x}")
        });
        let parts: Vec<_> = [mix, blocks, start, priority, when].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

const SECTION: &str = "shapes";

/// The section of all tasks of a graph; `None`: every task is one kernel on one core.
pub(super) fn write<'s>(shapes: impl Iterator<Item = &'s OwnedBlockShape>) -> Option<Vec<u8>> {
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
            writer.count(when.tensor);
            writer.number(when.offset);
            writer.byte(when.element.get());
            writer.byte(when.comparison.get());
            writer.number(when.value);
        }
    }
    (!shaped.is_empty()).then_some(writer.0)
}

/// Gives the tasks of a graph the shapes of the section.
pub(super) fn read(
    content: &[u8],
    shapes: &mut [&mut OwnedBlockShape],
) -> Result<(), ProgramError> {
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

fn shape(reader: &mut Reader<'_>) -> Result<OwnedBlockShape, ProgramError> {
    let mix = (0..reader.count()?).map(|_| reader.name()).collect::<Result<_, _>>()?;
    let blocks = u32::try_from(reader.number()?);
    let blocks = blocks.map_err(|_| reader.error("a number of blocks beyond 32 bits"))?;
    let start = reader.one_of("a start of blocks", StartMode::ALL)?;
    let priority = reader.one_of("a priority", Priority::ALL)?;
    let when = reader.truth("whether there is a predicate")?;
    let when = when.then(|| condition(reader)).transpose()?;
    Ok(OwnedBlockShape { mix, blocks, start, priority, when })
}

fn condition(reader: &mut Reader<'_>) -> Result<GraphCondition, ProgramError> {
    let tensor = usize::try_from(reader.number()?).unwrap_or(usize::MAX);
    let offset = reader.number()?;
    let code = reader.byte()?;
    let element = ElementType::try_from(code);
    let element = element.map_err(|_| reader.error(format!("an element type {code}")))?;
    let code = reader.byte()?;
    let comparison = Comparison::try_from(code);
    let comparison = comparison.map_err(|_| reader.error(format!("a comparison {code}")))?;
    Ok(GraphCondition { tensor, offset, element, comparison, value: reader.number()? })
}
