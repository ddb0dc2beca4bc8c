//! The differences between two programs.

use super::block_shape::describe_block_shape;
use super::content::{Program, ProgramBody};
use super::description::TensorDescription;

/// One difference between two programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it is.
    pub what: String,
    /// In the first program; `None`: the first one does not have it.
    pub first: Option<String>,
    /// In the second one.
    pub second: Option<String>,
    /// Whether the person who runs the program has to know: tensors, symbols, target.
    pub is_interface: bool,
}

/// In what two programs differ, those things first that the person who runs them has to know.
#[must_use]
pub fn differences(first: &Program, second: &Program) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut compare = |what: &str, is_interface, sides: [Option<String>; 2]| {
        let [first, second] = sides;
        if first != second {
            found.push(Difference { what: what.to_owned(), first, second, is_interface });
        }
    };
    let both = [first, second];
    compare("target", true, both.map(|of| Some(of.target().to_owned())));
    for name in names(both.map(tensor_names)) {
        let shown = |of: &Program| of.tensor(&name).ok().map(TensorDescription::to_string);
        compare(&format!("tensor {name}"), true, both.map(shown));
    }
    for name in names(both.map(symbol_names)) {
        let shown = |of: &Program| symbol(of, &name);
        compare(&format!("symbol {name}"), true, both.map(shown));
    }
    compare("name", false, both.map(|of| Some(of.name().to_owned())));
    compare("producer", false, both.map(|of| Some(of.producer().to_owned())));
    compare("body", false, both.map(|of| Some(body(of))));
    for name in names(both.map(kernel_names)) {
        let shown = |of: &Program| kernel(of, &name);
        compare(&format!("kernel {name}"), false, both.map(shown));
    }
    for number in 0..task_count(first).max(task_count(second)) {
        compare(&format!("shape of task {number}"), false, both.map(|of| shape(of, number)));
    }
    for (number, tensor) in first.tensors().iter().enumerate() {
        let other = second.tensors().iter().position(|other| other.name == tensor.name);
        let of = [first.constant(number), other.and_then(|other| second.constant(other))];
        let shown = of.map(|elements| {
            Some(super::format::hex(&super::format::short_hash(elements?).to_be_bytes()))
        });
        compare(&format!("elements of constant {}", tensor.name), false, shown);
    }
    for name in names(both.map(processors)) {
        compare(&format!("native kernels for {name}"), false, both.map(|of| object(of, &name)));
    }
    compare("source", false, both.map(|of| of.source().map(ToOwned::to_owned)));
    found
}

/// All names of both, each once, those of the first one first.
fn names([mut first, second]: [Vec<String>; 2]) -> Vec<String> {
    let more: Vec<_> = second.into_iter().filter(|name| !first.contains(name)).collect();
    first.extend(more);
    first
}

fn tensor_names(program: &Program) -> Vec<String> {
    program.tensors().iter().map(|tensor| tensor.name.clone()).collect()
}

fn symbol_names(program: &Program) -> Vec<String> {
    program.symbols().iter().map(|(name, _)| name.clone()).collect()
}

fn processors(program: &Program) -> Vec<String> {
    program.needs().processors
}

/// The native kernels for a processor, in a line that is another one for others.
fn object(program: &Program, processor: &str) -> Option<String> {
    let native = program.native()?;
    let code = &native.object(program.name(), processor).ok()?.code;
    let kernels: Vec<_> =
        native.kernels().iter().map(|one| format!("{} ({})", one.name, one.kind)).collect();
    Some(format!("{}, hash {:#018x}", kernels.join(", "), super::format::short_hash(code)))
}

fn symbol(program: &Program, name: &str) -> Option<String> {
    let found = program.symbols().iter().find(|(known, _)| known == name)?;
    Some(format!("{:?}", found.1))
}

fn task_count(program: &Program) -> usize {
    match program.body() {
        ProgramBody::Plan(_) | ProgramBody::Builder(_) => 0,
        ProgramBody::Graph(tasks) => tasks.len(),
    }
}

/// What a task is beyond one kernel on one core; `None`: nothing.
fn shape(program: &Program, number: usize) -> Option<String> {
    let ProgramBody::Graph(tasks) = program.body() else { return None };
    describe_block_shape(&tasks.get(number)?.block_shape, program.tensors())
}

fn kernel_names(program: &Program) -> Vec<String> {
    match program.body() {
        ProgramBody::Plan(compiled) => {
            compiled.tile_kernels().iter().map(|kernel| kernel.name().to_owned()).collect()
        }
        ProgramBody::Graph(_) | ProgramBody::Builder(_) => Vec::new(),
    }
}

fn kernel(program: &Program, name: &str) -> Option<String> {
    let ProgramBody::Plan(compiled) = program.body() else { return None };
    compiled.tile_kernels().iter().find(|kernel| kernel.name() == name).map(ToString::to_string)
}

/// What a body is, in a line that is another one for another body.
fn body(program: &Program) -> String {
    let (bytes, what) = match program.body() {
        ProgramBody::Plan(compiled) => {
            let words = compiled.words();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            (bytes, format!("plan of {} words", words.len()))
        }
        ProgramBody::Graph(tasks) => {
            (super::graph::write(tasks), format!("graph of {} tasks", tasks.len()))
        }
        ProgramBody::Builder(reference) => {
            (super::builder::write(reference), format!("reference to builder {}", reference.name))
        }
    };
    format!("{what}, hash {:#018x}", super::format::short_hash(&bytes))
}
