//! Graphs of the graph compiler: ONNX models that a program hands over in memory, and the programs that are built of them.
//!
//! ```text
//! bytes --parse--> ModelGraph --build(input_shape=x:1,3,48,192)--> bytes of a program file --aclmdlLoadFromMem--> a model
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use pto_models::{Extent, Given, Model, ModelError};
use pto_operators::{LowerOptions, Lowered};

use super::model;
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, HandleTable, Kind};

static GRAPHS: HandleTable<ModelGraph> = HandleTable::new(Kind::ModelGraph);

/// The option with the extents of the inputs.
const INPUT_SHAPE: &str = "input_shape";
/// Options of a build that change nothing here: tensors are dense, and nothing is written to a log of the compiler.
const NEUTRAL: &[(&str, &[&str])] =
    &[("input_format", &["ND", "NCHW"]), ("log", &["debug", "info", "warning", "error", "null"])];
/// Options of the compiler that it takes: the name of the chip, and wishes about precision. Operators compute in the element types of the model.
const OF_COMPILER: &[&str] = &[
    "ge.socVersion",
    "ge.exec.precision_mode",
    "ge.exec.precision_mode_v2",
    "ge.opSelectImplmode",
    "ge.optypelistForImplmode",
];
/// The end of the name of a file with a built model.
const SUFFIX: &str = "om";

/// A parsed model.
struct ModelGraph(Model);

/// Options by their names.
pub(crate) type Options = BTreeMap<String, String>;

/// Takes the options of the compiler.
pub(crate) fn begin(options: &Options) -> Answer {
    match options.keys().find(|name| !OF_COMPILER.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Refusal::unsupported(format!(
            "the graph compiler has no option {name}; it takes {}",
            OF_COMPILER.join(", ")
        ))),
    }
}

/// Parses a model; its handle is returned.
pub(crate) fn parse(bytes: &[u8], options: &Options) -> Answer<Handle> {
    if let Some(name) = options.keys().next() {
        return Err(Refusal::unsupported(format!("the parser has no option {name}; leave it out")));
    }
    let model = Model::from_bytes(bytes).map_err(|error| refused(&error, "the model"))?;
    Ok(GRAPHS.open(ModelGraph(model)))
}

/// Forgets a graph.
pub(crate) fn destroy(graph: Handle) -> Answer {
    GRAPHS.take(graph).map(drop)
}

/// Builds the program of a graph for these options: the bytes of its file.
pub(crate) fn build(graph: Handle, options: &Options) -> Answer<Vec<u8>> {
    require(graph != 0, || Refusal::argument("the graph has no model; parse one first"))?;
    let graph = GRAPHS.get(graph)?;
    let mut given = Given::default();
    for (name, value) in options {
        match NEUTRAL.iter().find(|(known, _)| known == name) {
            _ if name == INPUT_SHAPE => given.shapes = shapes(&graph.0, value)?,
            Some((_, values)) if values.contains(&value.as_str()) => {}
            Some((_, values)) => {
                return Err(Refusal::unsupported(format!(
                    "the option {name} is {value}; it can be {}",
                    values.join(", ")
                )));
            }
            None => {
                return Err(Refusal::unsupported(format!(
                    "a build has no option {name}={value}; it takes {INPUT_SHAPE}, input_format and log"
                )));
            }
        }
    }
    Ok(lowered(&graph.0, &given)?.program.to_bytes())
}

/// The program of a model. Its kernels have the names of operators: a session has room for a thousand, and a process for many models.
pub(super) fn lowered(model: &Model, given: &Given) -> Answer<Lowered> {
    let name = format!("the model {}", model.name());
    let built = model.build(given).map_err(|error| refused(&error, &name))?;
    let options = LowerOptions { most_names: 0, ..LowerOptions::default() };
    built.lower(&options).map_err(|error| refused(&error, &name))
}

fn refused(error: &ModelError, model: &str) -> Refusal {
    let code = match error {
        ModelError::File(_) => codes::MODEL_FORMAT,
        ModelError::Input { .. } => codes::BAD_VALUE,
        ModelError::Nodes(_) | ModelError::Lower(_) => codes::GRAPH_COMPILER,
        ModelError::Device(_) => codes::INTERNAL,
    };
    Refusal::new(code, format!("{model}: {error}"))
}

/// The extents in `x:1,3,48,192;y:2`. A scalar has its name alone.
fn shapes(model: &Model, text: &str) -> Answer<BTreeMap<String, Vec<usize>>> {
    let mut shapes = BTreeMap::new();
    for part in text.split(';').filter(|part| !part.is_empty()) {
        let is_input = |name: &str| model.inputs().iter().any(|input| input.name == name);
        // A name may have colons itself.
        let (name, extents) = match part.rsplit_once(':') {
            Some((name, extents)) if is_input(name) || !is_input(part) => (name, extents),
            _ => (part, ""),
        };
        require(is_input(name), || {
            let known: Vec<_> = model.inputs().iter().map(|input| input.name.as_str()).collect();
            Refusal::value(format!(
                "{INPUT_SHAPE} names an input {name}, and the model {} has {}",
                model.name(),
                known.join(", ")
            ))
        })?;
        let extent = |word: &str| {
            word.trim().parse::<usize>().map_err(|_| {
                Refusal::value(format!(
                    "{INPUT_SHAPE} gives {name} an extent of \"{word}\"; a build needs whole numbers from 0 on"
                ))
            })
        };
        let extents = extents.split(',').filter(|word| !word.trim().is_empty());
        shapes.insert(name.to_owned(), extents.map(extent).collect::<Answer<Vec<_>>>()?);
    }
    let open = model.inputs().iter().find(|input| {
        let is_fixed =
            |shape: &Vec<Extent>| shape.iter().all(|extent| matches!(extent, Extent::Fixed(_)));
        !shapes.contains_key(&input.name) && !input.shape.as_ref().is_some_and(is_fixed)
    });
    match open {
        None => Ok(shapes),
        Some(input) => Err(Refusal::value(format!(
            "{INPUT_SHAPE} does not say the extents of {}, and the model does not either",
            input.name
        ))),
    }
}

/// Writes a built model to a file: `path`, with `.om` behind it.
pub(crate) fn save(path: &str, bytes: &[u8]) -> Answer {
    // What is saved can be loaded.
    model::read(bytes, "the model")?;
    let mut file = PathBuf::from(path);
    if file.extension().is_none_or(|extension| extension != SUFFIX) {
        file.as_mut_os_string().push(format!(".{SUFFIX}"));
    }
    std::fs::write(&file, bytes).map_err(|error| {
        Refusal::new(codes::WRITE_FILE, format!("{} cannot be written: {error}", file.display()))
    })
}
