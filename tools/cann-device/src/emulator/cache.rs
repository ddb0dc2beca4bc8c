//! The cache of an AICore, which nobody keeps coherent: the core sees old bytes until it makes a line fresh, loses what it does not write back, and writes
//! whole lines. The tests of the worker loop use it as well (`aicore-kernels/tests/aicore`).

use std::collections::BTreeMap;

/// Bytes of a line.
pub(crate) const LINE: u64 = 64;

/// A line.
pub(crate) type Line = [u8; LINE as usize];

/// The lines that a core has, by their addresses. It may keep each for as long as it likes: here it keeps them all.
pub(crate) struct Cache {
    lines: BTreeMap<u64, Line>,
}

/// The address of the line that has this byte.
pub(crate) const fn line_of(address: u64) -> u64 {
    address & !(LINE - 1)
}

impl Cache {
    /// A cache that has these lines already, from before the launch.
    pub(crate) fn of(lines: impl Iterator<Item = (u64, Line)>) -> Self {
        Self { lines: lines.collect() }
    }

    fn line(&mut self, address: u64, read: impl FnOnce(u64) -> Line) -> &mut Line {
        let line = line_of(address);
        self.lines.entry(line).or_insert_with(|| read(line))
    }

    /// Loads up to 8 bytes of a line; `read` brings the line where the cache has it not.
    pub(crate) fn load(&mut self, address: u64, bytes: u64, read: impl FnOnce(u64) -> Line) -> u64 {
        let at = (address % LINE) as usize;
        let line = self.line(address, read);
        let bytes = line.iter().skip(at).take(bytes as usize);
        bytes.rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    /// Stores up to 8 bytes into a line, in the cache alone.
    pub(crate) fn store(
        &mut self,
        address: u64,
        bytes: u64,
        value: u64,
        read: impl FnOnce(u64) -> Line,
    ) {
        let at = (address % LINE) as usize;
        let line = self.line(address, read);
        let words = value.to_le_bytes();
        line.iter_mut()
            .skip(at)
            .zip(words.iter().take(bytes as usize))
            .for_each(|(to, byte)| *to = *byte);
    }

    /// Lets a line go: the next load sees GM, and stores that were not written back are lost.
    pub(crate) fn fresh(&mut self, address: u64) {
        self.lines.remove(&line_of(address));
    }

    /// Lets a line go, and gives it to be written to GM, whole; `None`: the cache has it not.
    pub(crate) fn write_back(&mut self, address: u64) -> Option<Line> {
        self.lines.remove(&line_of(address))
    }

    /// Lets every line go.
    pub(crate) fn drop_all(&mut self) {
        self.lines.clear();
    }
}
