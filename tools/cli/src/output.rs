//! Standard output: a command makes one text, or one JSON value, and writes it once.

use std::io::{self, ErrorKind, Write};

use serde_json::Value;

use crate::errors::{Exit, Failure};
use crate::fold::folded;
use crate::form::Form;
use crate::text::{plain, plain_json};

/// Answers in the form that was asked for; the code to exit with, which is in every JSON object.
pub(crate) fn answer(
    form: Form,
    exit: Exit,
    text: impl FnOnce() -> String,
    json: impl FnOnce() -> Value,
) -> Result<Exit, Failure> {
    answer_with_failures(form, exit, &[], text, json)
}

/// The same, where a further step failed, such as a file that could not be written: standard error says so, and every JSON
/// object.
pub(crate) fn answer_with_failures(
    form: Form,
    exit: Exit,
    failures: &[&Failure],
    text: impl FnOnce() -> String,
    json: impl FnOnce() -> Value,
) -> Result<Exit, Failure> {
    let messages =
        || failures.iter().map(|failure| failure.message()).collect::<Vec<_>>().join("\n");
    let error = (!failures.is_empty()).then(messages);
    let answer = match form {
        Form::Text => match terminal_columns() {
            Some(columns) => folded(&plain(&text()), columns),
            None => plain(&text()),
        },
        Form::Json => plain_json(&format!("{:#}", with_exit(json(), exit, error))),
    };
    write_lines(answer)?;
    failures.iter().for_each(|failure| failure.tell());
    Ok(exit)
}

/// Answers with text alone, whose lines stay as they are.
pub(crate) fn say(text: String) -> Result<Exit, Failure> {
    write_lines(plain(&text))?;
    Ok(Exit::Pass)
}

/// How wide the terminal is; `None`: standard output is none.
pub(crate) fn terminal_columns() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into())
}

fn with_exit(mut object: Value, exit: Exit, error: Option<String>) -> Value {
    object["exit_code"] = (exit as u8).into();
    object["error"] = error.into();
    object
}

fn write_lines(mut text: String) -> Result<(), Failure> {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    write(&mut io::stdout().lock(), text.as_bytes())
}

fn write(to: &mut impl Write, bytes: &[u8]) -> Result<(), Failure> {
    match to.write_all(bytes).and_then(|()| to.flush()) {
        // The reader has seen enough, as in `pto info | head`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| {
            Failure::internal(format!("cannot write to standard output: {error}"))
        }),
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
