//! The inputs that are in the repository.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// An input of the corpus.
#[derive(Clone, Debug)]
pub struct Seed {
    /// The file's name.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// Where the inputs of the target `name` stand.
#[must_use]
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

/// The inputs of the target `name`, in the order of their names.
///
/// # Errors
/// The folder or a file of it cannot be read.
pub fn of(name: &str) -> io::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for entry in fs::read_dir(folder(name))? {
        let path = entry?.path();
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        seeds.push(Seed { name, bytes: fs::read(&path)? });
    }
    seeds.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(seeds)
}
