//! A description of a builder program (`.json`) as a program: which builder of the device, its tensors, the words that it reads.

use std::path::Path;

use pto_host::abi::RuntimeVariant;
use pto_host::workloads::program::{
    BuilderReference, GraphArgument, Program, ProgramBody, TensorDescription,
};
use serde::Deserialize;

use crate::errors::Failure;
use crate::input_file;

/// The description.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BuilderDescription {
    format: String,
    version: u32,
    name: String,
    builder: String,
    variant: String,
    tensors: Vec<Tensor>,
    words: Vec<BuilderWord>,
}

/// A tensor of the program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tensor {
    name: String,
    role: String,
    element: String,
    shape: Vec<u64>,
    layout: Option<String>,
}

/// A word of the builder.
#[derive(Deserialize)]
#[serde(untagged)]
enum BuilderWord {
    Number(u64),
    Float(OfFloat),
    Tensor(OfTensor),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfFloat {
    f32: f32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfTensor {
    tensor: String,
    #[serde(default)]
    byte: u64,
}

const FORMAT: &str = "pto-builder";
const VERSION: u32 = 1;

/// The program of a description.
pub(super) fn program_of(path: &Path) -> Result<Program, Failure> {
    let shown = path.display();
    let text = input_file::text(path)?;
    let refused = |what: &dyn std::fmt::Display| {
        Failure::usage(format!("'{shown}' cannot become a program: {what}"))
    };
    let of_file: BuilderDescription = serde_json::from_str(&text)
        .map_err(|error| refused(&format!("it is no description of a builder: {error}")))?;
    if (of_file.format.as_str(), of_file.version) != (FORMAT, VERSION) {
        return Err(refused(&format!(
            "it has the format '{}' in version {}, and '{FORMAT}' in version {VERSION} is wanted",
            of_file.format, of_file.version
        )));
    }
    build(&of_file).map_err(|what| refused(&what))
}

fn build(of_file: &BuilderDescription) -> Result<Program, String> {
    let variants: Vec<_> =
        RuntimeVariant::ALL.iter().filter(|variant| variant.has_builder()).collect();
    let variant = variants.iter().find(|variant| variant.to_string() == of_file.variant);
    let variant = **variant.ok_or_else(|| {
        let known: Vec<_> = variants.iter().map(ToString::to_string).collect();
        format!("'{}' is no variant with builders; use {}", of_file.variant, known.join(" or "))
    })?;
    let tensor = |tensor: &Tensor| {
        let Tensor { name, role, element, shape, layout } = tensor;
        let layout = layout.as_deref().unwrap_or("row-major");
        TensorDescription::of_texts(name, role, element, shape, layout)
            .map_err(|what| format!("tensor {name}: {what}"))
    };
    let tensors = of_file.tensors.iter().map(tensor).collect::<Result<Vec<_>, _>>()?;
    let word = |word: &BuilderWord| match word {
        BuilderWord::Number(word) => Ok(GraphArgument::Word(*word)),
        BuilderWord::Float(OfFloat { f32 }) => Ok(GraphArgument::Word(f32.to_bits().into())),
        BuilderWord::Tensor(OfTensor { tensor, byte }) => {
            let found = tensors.iter().position(|known| known.name == *tensor);
            let number = found
                .ok_or_else(|| format!("a word names tensor {tensor}, which it does not have"))?;
            Ok(GraphArgument::Tensor { tensor: number, offset: *byte })
        }
    };
    let words = of_file.words.iter().map(word).collect::<Result<Vec<_>, String>>()?;
    let reference = BuilderReference { name: of_file.builder.clone(), variant, words };
    Program::new(&of_file.name, ProgramBody::Builder(reference), tensors)
        .map_err(|error| error.to_string())
}
