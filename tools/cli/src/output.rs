//! Standard output: a command makes one text, or one JSON value, and writes it once.

use std::io::{self, ErrorKind, Write};

use serde_json::Value;

use crate::errors::Failure;

/// In which form a command answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// One JSON value, for programs.
    Json,
}

impl From<bool> for Form {
    /// From the flag `--json`.
    fn from(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// Answers in the form that was asked for.
pub(crate) fn answer(
    form: Form,
    text: impl FnOnce() -> String,
    json: impl FnOnce() -> Value,
) -> Result<(), Failure> {
    let mut answer = match form {
        Form::Text => text(),
        Form::Json => format!("{:#}", json()),
    };
    if !answer.ends_with('\n') {
        answer.push('\n');
    }
    write(&mut io::stdout().lock(), answer.as_bytes())
}

fn write(to: &mut impl Write, bytes: &[u8]) -> Result<(), Failure> {
    match to.write_all(bytes).and_then(|()| to.flush()) {
        // The reader has seen enough, as in `pto list | head`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| Failure::internal(format!("standard output: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::write;
    use std::io::{Error, ErrorKind, Result, Write};

    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> Result<usize> {
            Err(Error::from(self.0))
        }
        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is() {
        assert!(write(&mut Broken(ErrorKind::BrokenPipe), b"x").is_ok());
        assert!(write(&mut Broken(ErrorKind::StorageFull), b"x").is_err());
    }
}
