//! Writing a graph file.

use std::io::{self, Write};

use pto_graph::{Priority, StartMode};
use serde::Serialize;

use super::{
    AllocLine, ArgLine, BoundLine, ByteLine, EdgeLine, EndLine, FORMAT, GetLine, HeaderLine,
    LinkLine, PartLine, PublishLine, RecordingLine, ReplayLine, ScopeLine, SetLine, TaskLine,
    TensorLine, VERSION, VaryLine, ViewLine, WhenLine,
};
use crate::program::{
    Action, Argument, ChainLink, Location, Program, Publish, Task, TensorByte, Use, View, Way,
    row_major,
};

/// Writes a program: the header, the tensors of the host's, then its steps.
///
/// # Errors
/// Those of `to`.
pub fn write(program: &Program, to: &mut impl Write) -> io::Result<()> {
    let mut writer = Writer { program, to, open: Vec::new() };
    writer.line(&HeaderLine {
        format: FORMAT.to_owned(),
        version: VERSION,
        name: program.name.clone(),
        variant: program.variant.name().to_owned(),
    })?;
    for tensor in &program.tensors {
        if let Location::Host(base) = tensor.location {
            let is_whole = tensor.shape.is_some();
            writer.line(&TensorLine {
                tensor: tensor.id,
                name: tensor.name.clone(),
                base: base.map(|base| base.to_string()),
                bytes: (!is_whole).then_some(tensor.bytes),
                element: Some(tensor.element.name().to_owned()),
                shape: tensor.shape.clone(),
            })?;
        }
    }
    program.steps.iter().try_for_each(|step| writer.step(&step.action))?;
    to.flush()
}

struct Writer<'p, W> {
    program: &'p Program,
    to: &'p mut W,
    open: Vec<&'static str>,
}

impl<W: Write> Writer<'_, W> {
    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut *self.to, line)?;
        self.to.write_all(b"\n")
    }

    fn step(&mut self, action: &Action) -> io::Result<()> {
        match action {
            Action::OpenScope(mode) => {
                self.open.push("scope");
                self.line(&ScopeLine { scope: mode.name().to_owned() })
            }
            Action::CloseScope | Action::EndRecording => {
                let end = if *action == Action::EndRecording { "record" } else { "scope" };
                self.line(&EndLine { end: end.to_owned() })
            }
            Action::Allocate(index) => {
                let tensor = &self.program.tensors[*index];
                self.line(&AllocLine {
                    alloc: tensor.id,
                    name: tensor.name.clone(),
                    element: tensor.element.name().to_owned(),
                    shape: tensor.shape.clone().unwrap_or_default(),
                })
            }
            Action::Add(index) => {
                let line = self.task(&self.program.tasks[*index]);
                self.line(&line)
            }
            Action::Edge { producer, consumer } => {
                self.line(&EdgeLine { edge: [*producer, *consumer] })
            }
            Action::Publish(publish) => self.line(&PublishLine { publish: *publish }),
            Action::Get(view) => {
                let get = self.view(view);
                self.line(&GetLine { get })
            }
            Action::Set(view, value) => {
                let (set, value) = (self.view(view), *value);
                self.line(&SetLine { set, value })
            }
            Action::BeginRecording { record, tensors } => {
                let tensors = tensors.iter().map(|(index, view)| BoundLine {
                    tensor: self.program.tensors[*index].id,
                    element: view.element.name().to_owned(),
                    shape: view.shape().to_vec(),
                    strides: strides(view),
                });
                let tensors = tensors.collect();
                self.line(&RecordingLine { record: *record, tensors })
            }
            Action::Replay { record, tensors, scalars } => {
                let tensors = tensors.iter().map(|view| self.view(view)).collect();
                let scalars = scalars.clone();
                self.line(&ReplayLine { replay: *record, tensors, scalars })
            }
        }
    }

    fn task(&self, task: &Task) -> TaskLine<ArgLine, ViewLine> {
        let shape = &task.block_shape;
        let when = shape.when.as_ref().map(|when| WhenLine {
            element: self.view(&when.element),
            is: when.comparison.name().to_owned(),
            value: when.value,
        });
        TaskLine {
            task: task.id,
            name: task.name.clone(),
            func: (!task.is_chain()).then_some(task.func),
            kind: task.kind.name().to_owned(),
            args: self.arguments(&task.args),
            chain: task.links.iter().map(|link| self.link(link)).collect(),
            after: task.after.clone(),
            publish: (task.publish == Publish::Later).then(|| "later".to_owned()),
            mix: shape.mix.clone(),
            blocks: (shape.blocks != 1).then_some(shape.blocks),
            start: (shape.start != StartMode::SPREAD).then(|| shape.start.name().to_owned()),
            priority: (shape.priority != Priority::NORMAL)
                .then(|| shape.priority.name().to_owned()),
            when,
        }
    }

    fn arguments(&self, args: &[Argument]) -> Vec<ArgLine> {
        args.iter().map(|arg| self.argument(arg)).collect()
    }

    fn link(&self, link: &ChainLink) -> LinkLine<ArgLine> {
        let vary = link.vary.iter().map(|vary| {
            let (every, within) = vary.turns.parts();
            let line = VaryLine { every, within, ..VaryLine::of(vary.arg) };
            match &vary.way {
                Way::By(step) => VaryLine { by: Some(*step), ..line },
                Way::Of(words) => VaryLine { of: Some(words.clone()), ..line },
                Way::At(bytes) => {
                    let id = |index: usize| self.program.tensors[index].id;
                    let byte = |at: &TensorByte| ByteLine { tensor: id(at.tensor), byte: at.byte };
                    VaryLine { at: Some(bytes.iter().map(byte).collect()), ..line }
                }
            }
        });
        LinkLine {
            func: link.func,
            args: self.arguments(&link.args),
            times: link.times,
            with_next: link.with_next,
            vary: vary.collect(),
            uses: link.uses.iter().map(|uses| self.arguments(uses)).collect(),
        }
    }

    fn argument(&self, arg: &Argument) -> ArgLine {
        match arg {
            Argument::In(view) => ArgLine::In { view: self.view(view) },
            Argument::Out(view) => ArgLine::Out { out: self.view(view) },
            Argument::InOut(view) => ArgLine::InOut { inout: self.view(view) },
            Argument::NoDep(view, used) => {
                let used = match used {
                    Use::Unknown => None,
                    Use::Read => Some("read"),
                    Use::Write => Some("write"),
                    Use::None => Some("none"),
                };
                ArgLine::NoDep { nodep: self.view(view), used }
            }
            Argument::Scalar(word) => ArgLine::Word(*word),
            Argument::BoundScalar(bound) => ArgLine::Bound { bound: *bound },
        }
    }

    fn view(&self, view: &View) -> ViewLine {
        let tensor = &self.program.tensors[view.tensor];
        let strides = strides(view);
        let is_of_type = view.element == tensor.element;
        let is_whole = tensor.shape.as_deref() == Some(view.shape());
        if is_of_type && is_whole && view.offset == 0 && strides.is_none() {
            return ViewLine::Whole(tensor.id);
        }
        ViewLine::Part(PartLine {
            tensor: tensor.id,
            element: (!is_of_type).then(|| view.element.name().to_owned()),
            offset: view.offset,
            shape: Some(view.shape().to_vec()),
            strides,
        })
    }
}

/// The strides of a view, if they are not those of its shape.
fn strides(view: &View) -> Option<Vec<u64>> {
    (view.strides() != row_major(view.shape())).then(|| view.strides().to_vec())
}
