//! Which files are program files, and of which version.

/// The first bytes of a file.
pub const MAGIC: &[u8; 8] = b"PTOPROG\n";
/// The version of the format: another one is refused.
pub const MAJOR: u16 = 1;
/// What was added since: sections that older readers pass over.
pub const MINOR: u16 = 0;
