//! Reading a graph file: everything is checked, and what is wrong is said with its line and field.

use std::collections::HashMap;
use std::io::{self, BufRead};

use pto_abi::limits::{MAX_ARGS, MAX_FUNC_ID};
use pto_abi::{GmAddr, RuntimeVariant};
use pto_graph::ElementType;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::args::{
    self, Tensors, Wrong, argument, comparison, core_kind, defect, element, mode, priority, start,
    variant, view,
};
use super::links;
use super::{
    AllocLine, BoundLine, EdgeLine, EndLine, FORMAT, GetLine, HeaderLine, PublishLine,
    RecordingLine, ReplayLine, ScopeLine, SetLine, TaskLine, TensorLine, VERSION,
};
use crate::memory_map::{HIGHEST, MOST_BYTES};
use crate::program::{
    Action, Condition, Location, OwnedBlockShape, Program, Publish, Step, Task, Tensor, View,
    row_major,
};
use crate::recorder::whole;
use crate::submit::tensor_view;

/// Why a file is no graph file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A line is wrong.
    #[error("line {line}: {what}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// Which field, what is wrong, what to do.
        what: String,
    },
}

/// Reads a program.
///
/// # Errors
/// See [`ReadError`]; the first line that is wrong.
pub fn read(from: impl BufRead) -> Result<Program, ReadError> {
    let mut reader: Option<Reader> = None;
    let mut last = 0;
    for (line, text) in (1..).zip(from.lines()) {
        last = line;
        let text = text.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => wrong(line, "it is not UTF-8 text"),
            _ => error.into(),
        })?;
        // Some editors write a byte order mark before the first line.
        let text = if line == 1 { text.trim_start_matches(BYTE_ORDER_MARK) } else { &text };
        if text.trim().is_empty() {
            continue;
        }
        let object: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| wrong(line, not_json(&error)))?;
        match &mut reader {
            None => reader = Some(header(object).map_err(|what| wrong(line, what))?),
            Some(reader) => reader.line(line, object).map_err(|what| wrong(line, what))?,
        }
    }
    let reader =
        reader.ok_or_else(|| wrong(1, "the file is empty; the first line names the format"))?;
    if let Some(record) = reader.open_recording {
        let what = format!("record {record} does not end; add {{\"end\": \"record\"}}");
        return Err(wrong(last, what));
    }
    Ok(reader.program)
}

const BYTE_ORDER_MARK: char = '\u{FEFF}';

fn wrong(line: usize, what: impl Into<String>) -> ReadError {
    ReadError::Line { line, what: what.into() }
}

fn not_json(error: &serde_json::Error) -> String {
    // The line that serde_json knows is always the first one.
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    format!("column {}: {text}; each line is one JSON object", error.column())
}

fn parse<T: DeserializeOwned>(object: Map<String, Value>) -> Result<T, Wrong> {
    let object = Value::Object(object);
    T::deserialize(&object).map_err(|error| with_field::<T>(object, &error.to_string()))
}

/// What is wrong with an object, after the name of the field that it is wrong with: the one without which something else would be wrong.
fn with_field<T: DeserializeOwned>(object: Value, what: &str) -> Wrong {
    let Value::Object(object) = object else { return what.to_owned() };
    if ["missing field", "unknown field"].iter().any(|named| what.starts_with(named)) {
        return what.to_owned();
    }
    let is_wrong = |name: &&String| {
        let mut others = object.clone();
        others.remove(*name);
        let others = serde_json::from_value::<T>(Value::Object(others));
        others.err().is_none_or(|other| other.to_string() != what)
    };
    match object.keys().find(is_wrong) {
        Some(name) => format!("{name}: {what}"),
        None => what.to_owned(),
    }
}

fn header(object: Map<String, Value>) -> Result<Reader, Wrong> {
    if object.get("format").and_then(Value::as_str) != Some(FORMAT) {
        return Err(format!(
            "this is no graph file: the first line is to be {{\"format\": \"{FORMAT}\", \"version\": {VERSION}, \
             \"variant\": \"{}\"}}",
            RuntimeVariant::TENSORMAP_AND_RINGBUFFER
        ));
    }
    if let Some(version) = object.get("version").and_then(Value::as_u64)
        && version != u64::from(VERSION)
    {
        return Err(format!(
            "version: {version} is not known to this release, which reads version {VERSION}; take a newer pto"
        ));
    }
    let header: HeaderLine = parse(object)?;
    let variant = variant("variant", &header.variant)?;
    Ok(Reader { program: Program::new(header.name, variant), ..Reader::default() })
}

/// The kinds of lines, by the field that only they have.
const KINDS: [&str; 11] = [
    "task", "alloc", "scope", "end", "record", "replay", "edge", "get", "set", "tensor", "publish",
];

struct Reader {
    program: Program,
    /// Places of tensors, by id.
    tensors: HashMap<u32, usize>,
    /// The lines of tasks, by id.
    tasks: HashMap<u32, usize>,
    /// The lines of recordings, by id.
    recordings: HashMap<u32, usize>,
    open_recording: Option<u32>,
    scopes: usize,
    /// Bytes of tensors without an address.
    bytes: u64,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            program: Program::new("", RuntimeVariant::TENSORMAP_AND_RINGBUFFER),
            tensors: HashMap::new(),
            tasks: HashMap::new(),
            recordings: HashMap::new(),
            open_recording: None,
            scopes: 0,
            bytes: 0,
        }
    }
}

impl Tensors for Reader {
    fn tensor(&self, id: u32) -> Option<(usize, &Tensor)> {
        let position = *self.tensors.get(&id)?;
        Some((position, &self.program.tensors[position]))
    }
}

impl links::TensorBytes for Reader {
    fn bytes(&self, position: usize) -> u64 {
        self.program.tensors.get(position).map_or(0, |tensor| tensor.bytes)
    }
}

impl Reader {
    fn line(&mut self, line: usize, object: Map<String, Value>) -> Result<(), Wrong> {
        let Some(kind) = KINDS.iter().find(|kind| object.contains_key(**kind)) else {
            return Err(format!("a line has one of the fields {}", KINDS.join(", ")));
        };
        let is_graph = matches!(*kind, "task" | "tensor" | "edge" | "publish");
        if !self.program.streams() && !is_graph {
            return Err(format!(
                "{kind}: a program of {} has tensors, tasks, edges and publishes only",
                self.program.variant
            ));
        }
        let action = match *kind {
            "task" => self.task(line, parse(object)?)?,
            "alloc" => self.alloc(parse(object)?)?,
            "scope" => {
                let scope: ScopeLine = parse(object)?;
                self.scopes += 1;
                Action::OpenScope(mode("scope", &scope.scope)?)
            }
            "end" => self.end(parse(object)?)?,
            "record" => self.record(line, parse(object)?)?,
            "replay" => self.replay(parse(object)?)?,
            "edge" => {
                let EdgeLine { edge: [producer, consumer] } = parse(object)?;
                Action::Edge { producer, consumer }
            }
            "get" => Action::Get(self.element("get", &parse::<GetLine<Value>>(object)?.get)?),
            "set" => {
                let SetLine { set, value } = parse::<SetLine<Value>>(object)?;
                Action::Set(self.element("set", &set)?, value)
            }
            "tensor" => return self.host_tensor(parse(object)?),
            _ => {
                let PublishLine { publish } = parse(object)?;
                if !self.tasks.contains_key(&publish) {
                    return Err(format!("publish: no task {publish} is known here; add it above"));
                }
                Action::Publish(publish)
            }
        };
        self.program.steps.push(Step { action, line });
        Ok(())
    }

    fn put_tensor(&mut self, tensor: Tensor) -> Result<usize, Wrong> {
        let position = self.program.tensors.len();
        if self.tensors.insert(tensor.id, position).is_some() {
            return Err(format!("there is a tensor {} already; give each its own id", tensor.id));
        }
        self.program.tensors.push(tensor);
        Ok(position)
    }

    fn host_tensor(&mut self, line: TensorLine) -> Result<(), Wrong> {
        let element_type = match &line.element {
            Some(name) => element("element", name)?,
            None if line.shape.is_none() => ElementType::U8,
            None => return Err("shape: a tensor with a shape has an \"element\" as well".into()),
        };
        let from_shape = line.shape.as_deref().map(|shape| bytes_of(element_type, shape));
        let bytes = match (line.bytes, from_shape.transpose()?) {
            (Some(bytes), Some(least)) if bytes < least => {
                return Err(format!("bytes: {bytes} are fewer than the shape has, {least}"));
            }
            (Some(bytes), _) | (None, Some(bytes)) => bytes,
            (None, None) => {
                return Err("a tensor has \"bytes\", or \"element\" and \"shape\"".into());
            }
        };
        let base = line.base.as_deref().map(|base| address(base, bytes)).transpose()?;
        if base.is_none() {
            // At most: each has a line of its own.
            self.bytes = self.bytes.saturating_add(bytes).saturating_add(64);
            if self.bytes > MOST_BYTES {
                return Err(format!("bytes: tensors have at most {MOST_BYTES} bytes together"));
            }
        }
        self.put_tensor(Tensor {
            id: line.tensor,
            name: line.name,
            bytes,
            element: element_type,
            shape: line.shape,
            location: Location::Host(base),
        })?;
        Ok(())
    }

    fn alloc(&mut self, line: AllocLine) -> Result<Action, Wrong> {
        let element = element("element", &line.element)?;
        let bytes = bytes_of(element, &line.shape)?;
        let shape = Some(line.shape);
        let (id, name) = (line.alloc, line.name);
        let tensor = Tensor { id, name, bytes, element, shape, location: Location::Heap };
        Ok(Action::Allocate(self.put_tensor(tensor)?))
    }

    fn end(&mut self, line: EndLine) -> Result<Action, Wrong> {
        match line.end.as_str() {
            "scope" => match self.scopes.checked_sub(1) {
                Some(left) => {
                    self.scopes = left;
                    Ok(Action::CloseScope)
                }
                None => Err("end: no scope is open".into()),
            },
            "record" => match self.open_recording.take() {
                Some(_) => Ok(Action::EndRecording),
                None => Err("end: no record is open".into()),
            },
            other => Err(format!("end: '{other}' is neither \"scope\" nor \"record\"")),
        }
    }

    fn task(&mut self, at: usize, line: TaskLine<Value, Value>) -> Result<Action, Wrong> {
        if let Some(first) = self.tasks.insert(line.task, at) {
            return Err(format!(
                "task: {} is the id of the task on line {first} already; give each its own id",
                line.task
            ));
        }
        let links = links::read(self, &line)?;
        let func = match (line.func, links.first()) {
            (Some(func), None) => func,
            (None, Some(first)) => first.func,
            (None, None) => {
                return Err("func: a task names its kernel; or, as \"chain\", several".into());
            }
            (Some(_), Some(_)) => {
                return Err("func: each kernel of a \"chain\" names its own; leave it out".into());
            }
        };
        if usize::from(func) >= MAX_FUNC_ID {
            return Err(format!("func: {func} is not below {MAX_FUNC_ID}"));
        }
        if line.args.len() > MAX_ARGS {
            return Err(format!("args: {} are more than {MAX_ARGS}", line.args.len()));
        }
        let args = line.args.iter().enumerate();
        let args = args.map(|(at, arg)| argument(self, &format!("args[{at}]"), arg));
        let args = args.collect::<Result<_, _>>()?;
        let publish = match line.publish.as_deref() {
            None => Publish::Now,
            Some("later") => Publish::Later,
            Some(other) => {
                return Err(format!(
                    "publish: '{other}'; tasks are published as they are added, or \"later\" by a line of their own"
                ));
            }
        };
        let shape = self.shape(&line)?;
        if !self.program.streams() && shape != OwnedBlockShape::default() {
            return Err(format!(
                "mix, blocks, start, priority and when are not for {}",
                self.program.variant
            ));
        }
        let kind = core_kind("kind", &line.kind)?;
        let TaskLine { task: id, name, after, .. } = line;
        self.program.tasks.push(Task {
            id,
            name,
            func,
            kind,
            args,
            after,
            publish,
            block_shape: shape,
            links,
        });
        Ok(Action::Add(self.program.tasks.len() - 1))
    }

    fn shape(&self, line: &TaskLine<Value, Value>) -> Result<OwnedBlockShape, Wrong> {
        let mut shape = OwnedBlockShape { mix: line.mix.clone(), ..OwnedBlockShape::default() };
        shape.blocks = line.blocks.unwrap_or(1);
        if let Some(name) = &line.start {
            shape.start = start("start", name)?;
        }
        if let Some(name) = &line.priority {
            shape.priority = priority("priority", name)?;
        }
        if let Some(when) = &line.when {
            shape.when = Some(Condition {
                element: self.element("when.element", &when.element)?,
                comparison: comparison("when.is", &when.is)?,
                value: when.value,
            });
        }
        Ok(shape)
    }

    /// A view of one element.
    fn element(&self, field: &str, value: &Value) -> Result<View, Wrong> {
        let view = view(self, field, value)?;
        match view.shape().iter().all(|extent| *extent == 1) {
            true => Ok(view),
            false => Err(format!("{field}: it is one element; give a \"shape\" of ones")),
        }
    }

    fn record(&mut self, at: usize, line: RecordingLine) -> Result<Action, Wrong> {
        let record = line.record;
        if let Some(open) = self.open_recording {
            return Err(format!("record: record {open} is open; end it first"));
        }
        if let Some(first) = self.recordings.insert(record, at) {
            return Err(format!("record: {record} is that on line {first} already"));
        }
        let mut tensors = Vec::new();
        for (index, bound) in line.tensors.into_iter().enumerate() {
            let field = format!("tensors[{index}]");
            let bound = self.bound(index, bound).map_err(|what| format!("{field}: {what}"))?;
            tensors.push(bound);
        }
        self.open_recording = Some(record);
        Ok(Action::BeginRecording { record, tensors })
    }

    fn bound(&mut self, index: usize, line: BoundLine) -> Result<(usize, View), Wrong> {
        let element = element("element", &line.element)?;
        let strides = line.strides.unwrap_or_else(|| row_major(&line.shape));
        let position = self.program.tensors.len();
        let view = View::new(position, element, 0, (&line.shape, &strides));
        let view = view.ok_or("there are as many strides as extents, and at most 5")?;
        let last = line.shape.iter().zip(&strides).try_fold(0_u64, |last, (extent, stride)| {
            last.checked_add(u64::from(extent.checked_sub(1)?).checked_mul(*stride)?)
        });
        let bytes = last.and_then(|last| last.checked_add(1)?.checked_mul(element.bytes()));
        let bytes = bytes.ok_or("it has no element, or more than any tensor has")?;
        if let Some(found) = tensor_view(&view, GmAddr::NULL, bytes).defect() {
            return Err(args::defect(found).to_owned());
        }
        let shape = strides.eq(&row_major(&line.shape)).then_some(line.shape);
        let location = Location::Bound(index);
        let tensor = Tensor { id: line.tensor, name: None, bytes, element, shape, location };
        Ok((self.put_tensor(tensor)?, view))
    }

    fn replay(&self, line: ReplayLine<Value>) -> Result<Action, Wrong> {
        let record = line.replay;
        if !self.recordings.contains_key(&record) || self.open_recording == Some(record) {
            return Err(format!("replay: no record {record} has ended above"));
        }
        let tensors = line.tensors.iter().enumerate();
        let tensors = tensors.map(|(at, value)| view(self, &format!("tensors[{at}]"), value));
        let tensors = tensors.collect::<Result<_, _>>()?;
        Ok(Action::Replay { record, tensors, scalars: line.scalars })
    }
}

/// Bytes of a whole tensor.
fn bytes_of(element: ElementType, shape: &[u32]) -> Result<u64, Wrong> {
    let wrong = |found| format!("shape: {}", defect(found));
    let elements = shape.iter().try_fold(element.bytes(), |bytes, extent| {
        bytes.checked_mul(u64::from(*extent)).filter(|bytes| *bytes > 0)
    });
    let bytes = elements.ok_or_else(|| "shape: it has no element, or too many".to_owned())?;
    if shape.len() > pto_abi::limits::MAX_RANK {
        return Err(wrong(pto_graph::ViewDefect::Rank));
    }
    match tensor_view(&whole(0, element, shape), GmAddr::NULL, bytes).defect() {
        Some(found) => Err(wrong(found)),
        None => Ok(bytes),
    }
}

/// An address, written as `0x` and hexadecimal digits.
fn address(text: &str, bytes: u64) -> Result<GmAddr, Wrong> {
    let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
    let base = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let base =
        base.ok_or_else(|| format!("base: '{text}' is no address such as \"0x7f0000001000\""))?;
    match base.checked_add(bytes) {
        Some(end) if end <= HIGHEST && base > 0 => Ok(GmAddr(base)),
        _ => Err(format!("base: {text} with {bytes} bytes is not between 1 and {HIGHEST:#x}")),
    }
}
