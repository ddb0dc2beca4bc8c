//! Reads and writes the NumPy files that a user names. `pto_examples::host::npy` knows the format.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use pto_examples::host::Tensor;
use pto_examples::host::npy::{self, Problem};

use crate::errors::Failure;
use crate::output_file;

/// Reads a tensor of `f32` or `i32`.
pub(crate) fn read(path: &Path) -> Result<Tensor, Failure> {
    let file = File::open(path).map_err(|error| cannot("open", path, &error))?;
    let bytes = file.metadata().map_err(|error| cannot("read", path, &error))?.len();
    npy::read(BufReader::new(file), bytes).map_err(|problem| match problem {
        Problem::Content(what) => Failure::usage(format!("'{}' {what}", path.display())),
        Problem::Io(error) => cannot("read", path, &error),
    })
}

/// Writes a tensor.
pub(crate) fn write(path: &Path, tensor: &Tensor) -> Result<(), Failure> {
    output_file::write(path, |to| npy::write(to, tensor))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::internal(format!("cannot {what} '{}': {error}", path.display()))
}
