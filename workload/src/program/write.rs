//! Writing a program file.

use pto_abi::runtime::ABI_MAJOR;

use super::block_shape;
use super::builder;
use super::bytes::Writer;
use super::content::{Program, ProgramBody};
use super::description::{Role, TensorDescription};
use super::format::{Kind, put_together, short_hash};
use super::graph;
use super::layout::{Format, MemorySpace};
use crate::plan::{Compiled, SymbolUse};

impl Program {
    /// The bytes of the sealed file. The same program gives the same bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let tensors = tensors(&self.tensors);
        let mut sections =
            vec![(Kind::About, self.about(short_hash(&tensors))), (Kind::Tensors, tensors)];
        match &self.body {
            ProgramBody::Plan(compiled) => sections.extend([
                (Kind::Names, names(compiled)),
                (Kind::Plan, compiled.words().iter().flat_map(|word| word.to_le_bytes()).collect()),
                (Kind::Kernels, compiled.code().to_vec()),
                (Kind::Places, places(compiled)),
            ]),
            ProgramBody::Graph(tasks) => {
                sections.push((Kind::Graph, graph::write(tasks)));
                let shapes = block_shape::write(tasks.iter().map(|task| &task.block_shape));
                sections.extend(shapes.map(|content| (Kind::Shapes, content)));
            }
            ProgramBody::Builder(reference) => {
                sections.push((Kind::Builder, builder::write(reference)));
            }
        }
        if self.constants.iter().any(Option::is_some) {
            sections.push((Kind::Constants, self.constants_section()));
        }
        sections.extend(self.source.as_ref().map(|text| (Kind::Source, text.clone().into_bytes())));
        sections.extend(self.native.as_ref().map(|native| (Kind::Native, native.write())));
        sections.extend(self.model.as_ref().map(|model| (Kind::Model, model.write())));
        put_together(&sections)
    }

    /// The hash of the tensors: programs with the same one take and give the same tensors.
    #[must_use]
    pub fn interface_hash(&self) -> u64 {
        short_hash(&tensors(&self.tensors))
    }

    fn about(&self, interface: u64) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.text(&self.name);
        writer.text(&self.producer);
        writer.text(&self.target);
        writer.number(ABI_MAJOR.into());
        writer.number(interface);
        writer.0
    }

    fn constants_section(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        let there = self.constants.iter().enumerate();
        let there: Vec<_> =
            there.filter_map(|(number, one)| Some((number, one.as_ref()?))).collect();
        writer.count(there.len());
        for (number, elements) in there {
            writer.count(number);
            writer.bytes(elements);
        }
        writer.0
    }
}

fn tensors(tensors: &[TensorDescription]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.count(tensors.len());
    for tensor in tensors {
        writer.text(&tensor.name);
        writer.byte(code(&Role::ALL, tensor.role));
        writer.byte(tensor.dtype.code());
        writer.byte(tensor.begins_with_zeros.into());
        writer.numbers(&tensor.shape);
        writer.byte(code(&MemorySpace::ALL, tensor.layout.memory));
        let (format, words) = match &tensor.layout.format {
            Format::RowMajor => (0, Vec::new()),
            Format::Strided(strides) => (1, strides.clone()),
            Format::Tiles { rows, cols } => (2, vec![(*rows).into(), (*cols).into()]),
        };
        writer.byte(format);
        writer.numbers(&words);
        writer.number(tensor.layout.padding);
    }
    writer.0
}

fn code<T: PartialEq>(all: &[T], one: T) -> u8 {
    all.iter()
        .position(|other| *other == one)
        .and_then(|at| u8::try_from(at).ok())
        .unwrap_or(u8::MAX)
}

fn names(compiled: &Compiled) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.count(compiled.symbols().len());
    for (name, used) in compiled.symbols() {
        writer.text(name);
        let (code, default) = match used {
            SymbolUse::Size(None) => (0, 0),
            SymbolUse::Size(Some(size)) => (1, *size),
            SymbolUse::Number => (2, 0),
            SymbolUse::Float => (3, 0),
        };
        writer.byte(code);
        writer.number(default);
    }
    writer.count(compiled.arrays().len());
    compiled.arrays().iter().for_each(|name| writer.text(name));
    writer.number(compiled.task_window().tasks);
    writer.0
}

fn places(compiled: &Compiled) -> Vec<u8> {
    let mut writer = Writer::default();
    let parts: Vec<_> = compiled.places().parts().collect();
    writer.count(parts.len());
    for (start, text, vars) in parts {
        writer.count(start);
        writer.text(text);
        writer.count(vars.len());
        vars.iter().for_each(|var| writer.text(var));
    }
    writer.0
}
