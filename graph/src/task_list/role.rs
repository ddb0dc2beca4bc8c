//! What an argument of a list is, as the list has it.

/// An argument that is a word.
pub const WORD: u8 = 0;
/// An argument that is a view, which the task reads.
pub const IN: u8 = 1;
/// An argument that is a view, which the task writes.
pub const OUT: u8 = 2;
/// An argument that is a view, which the task reads and writes.
pub const IN_OUT: u8 = 3;
