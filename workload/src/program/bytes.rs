//! The content of sections: numbers, texts and lists, written and read without trust.

use super::description::name_defect;
use super::error::ProgramError;

/// Writes the content of a section.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn number(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn count(&mut self, value: usize) {
        self.number(value as u64);
    }

    pub(super) fn bytes(&mut self, value: &[u8]) {
        self.count(value.len());
        self.0.extend(value);
    }

    pub(super) fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    pub(super) fn numbers(&mut self, values: &[u64]) {
        self.count(values.len());
        values.iter().for_each(|value| self.number(*value));
    }
}

/// Reads the content of a section.
pub(super) struct Reader<'s> {
    section: &'static str,
    content: &'s [u8],
    at: usize,
}

impl<'s> Reader<'s> {
    pub(super) const fn new(section: &'static str, content: &'s [u8]) -> Self {
        Self { section, content, at: 0 }
    }

    /// Makes an error at the position of the reader.
    pub(super) fn error(&self, what: impl Into<String>) -> ProgramError {
        ProgramError::Section { section: self.section, at: self.at, what: what.into() }
    }

    fn take(&mut self, bytes: usize) -> Result<&'s [u8], ProgramError> {
        let end = self.at.checked_add(bytes);
        let taken = end.and_then(|end| self.content.get(self.at..end));
        let taken = taken.ok_or_else(|| self.error(format!("{bytes} bytes are not there")))?;
        self.at += bytes;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ProgramError> {
        Ok(self.take(1)?.first().copied().unwrap_or(0))
    }

    pub(super) fn number(&mut self) -> Result<u64, ProgramError> {
        let taken = self.take(8)?;
        Ok(taken.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }

    /// A number that says how many of something follow, each of at least one byte.
    pub(super) fn count(&mut self) -> Result<usize, ProgramError> {
        let number = self.number()?;
        let left = self.content.len() - self.at;
        let count = usize::try_from(number).ok().filter(|count| *count <= left);
        count.ok_or_else(|| self.error(format!("{number} of something in {left} bytes")))
    }

    pub(super) fn bytes(&mut self) -> Result<&'s [u8], ProgramError> {
        let count = self.count()?;
        self.take(count)
    }

    pub(super) fn text(&mut self) -> Result<String, ProgramError> {
        let text = std::str::from_utf8(self.bytes()?).map(ToOwned::to_owned);
        text.map_err(|_| self.error("a text that is not UTF-8"))
    }

    pub(super) fn name(&mut self) -> Result<String, ProgramError> {
        let text = self.text()?;
        match name_defect(&text) {
            None => Ok(text),
            Some(what) => Err(self.error(format!("{text:?} {what}"))),
        }
    }

    pub(super) fn numbers(&mut self) -> Result<Vec<u64>, ProgramError> {
        (0..self.count()?).map(|_| self.number()).collect()
    }

    /// One of a closed set, by its code.
    pub(super) fn one_of<T: Copy>(&mut self, what: &str, all: &[T]) -> Result<T, ProgramError> {
        let code = self.byte()?;
        let found = all.get(usize::from(code)).copied();
        found.ok_or_else(|| self.error(format!("{what} {code}, which is not known")))
    }

    pub(super) fn truth(&mut self, what: &str) -> Result<bool, ProgramError> {
        self.one_of(what, &[false, true])
    }

    /// The end: everything was read.
    pub(super) fn end(self) -> Result<(), ProgramError> {
        if self.at == self.content.len() {
            Ok(())
        } else {
            Err(self.error("more than it should hold"))
        }
    }
}
