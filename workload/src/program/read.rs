//! Reading a program file. Nothing in it is trusted: a file that is accepted is one that the writer could have written, but for sections
//! that only a newer reader knows.

use pto_abi::runtime::ABI_MAJOR;

use super::block_shape;
use super::builder;
use super::bytes::Reader;
use super::content::{Program, ProgramBody};
use super::description::{Role, TensorDescription};
use super::error::ProgramError;
use super::format::{Kind, Sections, short_hash, take_apart};
use super::graph;
use super::layout::{Format, MemorySpace, TensorLayout};
use super::model::ModelDescription;
use super::native::NativeKernels;
use crate::plan::{Compiled, SourceMap, Stored, SymbolUse};
use pto_aicore_kernels::tile::DType;

impl Program {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it, where, and what is wanted.
    pub fn from_bytes(file: &[u8]) -> Result<Self, ProgramError> {
        let sections = take_apart(file)?;
        let tensors_section = sections.need(Kind::Tensors)?;
        let mut about = Reader::new(Kind::About.name(), sections.need(Kind::About)?);
        let (name, producer, target) = (about.name()?, about.name()?, about.name()?);
        let (abi, stated) = (about.number()?, about.number()?);
        about.end()?;
        if abi != u64::from(ABI_MAJOR) {
            let wanted = ABI_MAJOR.into();
            return Err(ProgramError::Part { what: "interface to the device", found: abi, wanted });
        }
        let found = short_hash(tensors_section);
        if found != stated {
            return Err(ProgramError::Interface { stated, found });
        }
        let tensors = tensors(tensors_section)?;
        let body = body(&name, &sections, &tensors)?;
        let constants = constants(&sections, tensors.len())?;
        let source = source(&sections)?;
        let native = sections.get(Kind::Native).map(NativeKernels::read).transpose()?;
        let model = sections.get(Kind::Model).map(ModelDescription::read).transpose()?;
        let program = Self {
            name,
            producer,
            target,
            tensors,
            body,
            constants,
            source,
            native,
            model,
            sections: sections.listed,
        };
        program.check_tensors()?;
        program.check_native()?;
        program.check_constants()?;
        program.check_model()?;
        Ok(program)
    }
}

fn tensors(content: &[u8]) -> Result<Vec<TensorDescription>, ProgramError> {
    let mut reader = Reader::new(Kind::Tensors.name(), content);
    let tensors = (0..reader.count()?).map(|_| tensor(&mut reader)).collect::<Result<_, _>>()?;
    reader.end()?;
    Ok(tensors)
}

fn tensor(reader: &mut Reader<'_>) -> Result<TensorDescription, ProgramError> {
    let name = reader.name()?;
    let role = reader.one_of("role", &Role::ALL)?;
    let dtype = reader.one_of("element type", &DType::ALL)?;
    let begins_with_zeros = reader.truth("a truth value")?;
    let shape = reader.numbers()?;
    let memory = reader.one_of("memory space", &MemorySpace::ALL)?;
    let format = reader.one_of("format", &[0, 1, 2])?;
    let words = reader.numbers()?;
    let padding = reader.number()?;
    let format = match (format, words.as_slice()) {
        (0, []) => Format::RowMajor,
        (1, _) => Format::Strided(words),
        (2, &[rows, cols]) => match (u16::try_from(rows), u16::try_from(cols)) {
            (Ok(rows @ 1..), Ok(cols @ 1..)) => Format::Tiles { rows, cols },
            _ => return Err(reader.error(format!("tiles of {rows} x {cols}"))),
        },
        _ => return Err(reader.error("a format with another number of words than it has")),
    };
    if format.clone().normal(&shape) != format {
        return Err(reader.error("strides that are row-major, and should be said so"));
    }
    let layout = TensorLayout { memory, format, padding };
    Ok(TensorDescription { name, role, dtype, shape, layout, begins_with_zeros })
}

fn body(
    name: &str,
    sections: &Sections<'_>,
    tensors: &[TensorDescription],
) -> Result<ProgramBody, ProgramError> {
    let refuse_others = |kind: Kind, others: &[Kind]| match others
        .iter()
        .find(|other| sections.get(**other).is_some())
    {
        None => Ok(()),
        Some(other) => {
            let what = format!("a program that also has a section '{}'", other.name());
            Err(ProgramError::Section { section: kind.name(), at: 0, what })
        }
    };
    let of_plan = [Kind::Plan, Kind::Names, Kind::Kernels, Kind::Places];
    if let Some(content) = sections.get(Kind::Builder) {
        refuse_others(Kind::Builder, &of_plan)?;
        refuse_others(Kind::Builder, &[Kind::Graph, Kind::Shapes])?;
        return Ok(ProgramBody::Builder(builder::read(content)?));
    }
    if let Some(content) = sections.get(Kind::Graph) {
        refuse_others(Kind::Graph, &of_plan)?;
        let mut tasks = graph::read(content)?;
        if let Some(content) = sections.get(Kind::Shapes) {
            let mut shapes: Vec<_> = tasks.iter_mut().map(|task| &mut task.block_shape).collect();
            block_shape::read(content, &mut shapes)?;
        }
        return Ok(ProgramBody::Graph(tasks));
    }
    if sections.get(Kind::Shapes).is_some() {
        let what = "a program with a plan that also has shapes of tasks".to_owned();
        return Err(ProgramError::Section { section: Kind::Shapes.name(), at: 0, what });
    }
    let content = sections.need(Kind::Plan)?;
    let (words, rest) = content.as_chunks::<4>();
    if !rest.is_empty() {
        let what = "the plan ends in the middle of a word".to_owned();
        return Err(ProgramError::Section {
            section: Kind::Plan.name(),
            at: 4 * words.len(),
            what,
        });
    }
    let RunBindings { symbols, arrays, window } = names(sections.need(Kind::Names)?)?;
    let stored = Stored {
        name: name.to_owned(),
        words: words.iter().map(|word| u32::from_le_bytes(*word)).collect(),
        code: sections.need(Kind::Kernels)?.to_vec(),
        tensors: tensors.iter().map(|tensor| tensor.name.clone()).collect(),
        symbols,
        arrays,
        window,
        places: sections.get(Kind::Places).map_or(Ok(SourceMap::default()), places)?,
    };
    let compiled = Compiled::restore(stored);
    let compiled = compiled.map_err(|(at, what)| ProgramError::Section {
        section: Kind::Plan.name(),
        at: 4 * at,
        what,
    })?;
    Ok(ProgramBody::Plan(Box::new(compiled)))
}

/// What is bound for a run, and the window of the schedule.
struct RunBindings {
    symbols: Vec<(String, SymbolUse)>,
    arrays: Vec<String>,
    window: u64,
}

fn names(content: &[u8]) -> Result<RunBindings, ProgramError> {
    let mut reader = Reader::new(Kind::Names.name(), content);
    let symbols = (0..reader.count()?).map(|_| symbol(&mut reader)).collect::<Result<_, _>>()?;
    let arrays = (0..reader.count()?).map(|_| reader.name()).collect::<Result<_, _>>()?;
    let window = reader.number()?;
    reader.end()?;
    Ok(RunBindings { symbols, arrays, window })
}

fn symbol(reader: &mut Reader<'_>) -> Result<(String, SymbolUse), ProgramError> {
    let name = reader.name()?;
    let code = reader.one_of("use of a symbol", &[0, 1, 2, 3])?;
    let default = reader.number()?;
    let used = match (code, default) {
        (0, 0) => SymbolUse::Size(None),
        (1, size) => SymbolUse::Size(Some(size)),
        (2, 0) => SymbolUse::Number,
        (3, 0) => SymbolUse::Float,
        _ => return Err(reader.error("a default of a symbol that has none")),
    };
    Ok((name, used))
}

fn places(content: &[u8]) -> Result<SourceMap, ProgramError> {
    let mut reader = Reader::new(Kind::Places.name(), content);
    let mut parts: Vec<(usize, String, Vec<String>)> = Vec::new();
    for _ in 0..reader.count()? {
        let start = usize::try_from(reader.number()?).unwrap_or(usize::MAX);
        if parts.last().is_some_and(|(before, ..)| *before > start) {
            return Err(reader.error("places that are not in order"));
        }
        let text = reader.text()?;
        let vars = (0..reader.count()?).map(|_| reader.text()).collect::<Result<_, _>>()?;
        parts.push((start, text, vars));
    }
    reader.end()?;
    Ok(SourceMap::of_parts(parts))
}

fn constants(
    sections: &Sections<'_>,
    tensors: usize,
) -> Result<Vec<Option<Vec<u8>>>, ProgramError> {
    let mut constants = vec![None; tensors];
    let Some(content) = sections.get(Kind::Constants) else { return Ok(constants) };
    let mut reader = Reader::new(Kind::Constants.name(), content);
    let mut next = 0;
    for _ in 0..reader.count()? {
        let number = usize::try_from(reader.number()?).unwrap_or(usize::MAX);
        let elements = reader.bytes()?.to_vec();
        if number < next || number >= tensors {
            return Err(reader.error(format!("constant {number} of {tensors} tensors")));
        }
        constants[number] = Some(elements);
        next = number + 1;
    }
    if next == 0 {
        return Err(reader.error("no constants"));
    }
    reader.end()?;
    Ok(constants)
}

fn source(sections: &Sections<'_>) -> Result<Option<String>, ProgramError> {
    let Some(content) = sections.get(Kind::Source) else { return Ok(None) };
    let text = std::str::from_utf8(content).map(|text| Some(text.to_owned()));
    text.map_err(|error| ProgramError::Section {
        section: Kind::Source.name(),
        at: error.valid_up_to(),
        what: "a text that is not UTF-8".to_owned(),
    })
}
