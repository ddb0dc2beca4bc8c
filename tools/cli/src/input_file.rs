//! Files that a command reads: by their name, or `-`, which is standard input.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::errors::Failure;

/// Standard input, once it was read: a command may look at its file several times.
static STANDARD_INPUT: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Some editors write a byte order mark before the text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether standard input is meant.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    [OsStr::new("-"), OsStr::new("/dev/stdin")].contains(&path.as_os_str())
}

/// What a file holds, without a byte order mark.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = if is_standard_input(path) { standard_input() } else { fs::read(path) };
    let mut bytes = read.map_err(|error| cannot_read(path, &error))?;
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(bytes)
}

/// The text in a file, without a byte order mark.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(bytes(path)?)
        .map_err(|_| Failure::usage(format!("'{}' holds no text: it is not UTF-8", path.display())))
}

fn standard_input() -> io::Result<Vec<u8>> {
    let mut held = STANDARD_INPUT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bytes) = &*held {
        return Ok(bytes.clone());
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(held.insert(bytes).clone())
}

/// The name of a file that is made of this one: with another extension.
pub(crate) fn sibling(path: &Path, extension: &str) -> PathBuf {
    if is_standard_input(path) { Path::new("stdin") } else { path }.with_extension(extension)
}

/// The file cannot be read.
pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::internal(format!("cannot read '{}': {error}", path.display()))
}
