//! What a command asks of an example: its parameters and inputs, and the runtime that it is built for.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pto_abi::RuntimeVariant;
use pto_examples::host::{self, Example, Inputs, Params};

use crate::errors::Failure;
use crate::npy;

/// Parameters and inputs, read and checked against each other.
pub(crate) fn request(
    example: &dyn Example,
    given: &[(String, String)],
    files: &[(String, PathBuf)],
) -> Result<(Params, Inputs), Failure> {
    let mut params = Params::defaults(example.params());
    check_unique("--param", given.iter().map(|(name, _)| name))?;
    for (name, value) in given {
        match (example.number(name, value), value.parse()) {
            (Some(number), Ok(meant)) => params.set_meaning(name, &number, meant)?,
            _ => params.set(name, value)?,
        }
    }
    check_unique("--input", files.iter().map(|(name, _)| name))?;
    for (name, _) in files {
        if !example.inputs().iter().any(|spec| spec.name == name) {
            let known = example.inputs().iter().map(|spec| spec.name);
            return Err(host::Error::unknown("input", name, known).into());
        }
    }
    let mut inputs = Inputs::default();
    for (name, path) in files {
        inputs.insert(name, npy::read(path)?);
    }
    host::resolve(example, &mut params, &inputs)
        .map_err(|error| Failure::usage(with_files(&error.to_string(), files)))?;
    Ok((params, inputs))
}

/// A message about inputs, with the files that they come from.
fn with_files(message: &str, inputs: &[(String, PathBuf)]) -> String {
    let named = inputs.iter().filter(|(name, _)| message.contains(&format!("input '{name}'")));
    let files: Vec<_> =
        named.map(|(name, path)| format!("{name} is '{}'", path.display())).collect();
    if files.is_empty() { message.to_owned() } else { format!("{message} ({})", files.join(", ")) }
}

/// Refuses an option that is given twice for one name.
pub(crate) fn check_unique<'a>(
    option: &str,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Failure::usage(format!("{option} {name}=.. is given twice; give it once")));
        }
    }
    Ok(())
}

/// The runtime that was asked for, or the one that the example is for.
pub(crate) fn variant_of(
    example: &dyn Example,
    given: Option<RuntimeVariant>,
) -> Result<RuntimeVariant, Failure> {
    let variants = example.program().variants();
    let preferred = variants.first().copied().unwrap_or(RuntimeVariant::AICPU_BUILD_GRAPH);
    match given {
        Some(variant) if !variants.contains(&variant) => Err(Failure::usage(format!(
            "'{}' submits tasks with tensors, which {variant} does not take; use --runtime {preferred}, or leave it out",
            example.name()
        ))),
        given => Ok(given.unwrap_or(preferred)),
    }
}

#[cfg(test)]
mod tests {
    use super::with_files;

    #[test]
    fn a_message_about_an_input_names_its_file() {
        let inputs = [("q".into(), "a/q.npy".into()), ("k".into(), "k.npy".into())];
        let message = with_files("input 'q' has the shape [1]", &inputs);
        assert_eq!(message, "input 'q' has the shape [1] (q is 'a/q.npy')");
        assert_eq!(with_files("something else", &inputs), "something else");
    }
}
