//! The plan's epitaph: what the host reads after a run that ended with a fault of a plan. 32 words of 64 bits in GM, zero before a
//! run.
//!
//! The first half belongs to the cores: the first tile kernel that faults takes it by exchanging [`STATE`], and every later
//! kernel of the run does nothing. The second half belongs to the builder.

/// [`FREE`], [`TAKEN`] or [`WRITTEN`].
pub const STATE: usize = 0;
/// The kernel's number in the plan; the instruction plus 1 above 32 bits; the parameter plus 1 above 48.
pub const KERNEL: usize = 1;
/// A number of the cause.
pub const CAUSE: usize = 2;
/// What the cause says, in five words.
pub const CAUSE_WORDS: usize = 3;
/// How many words a cause has.
pub const CAUSE_COUNT: usize = 5;

/// The code of the fault that the builder returned; zero: none.
pub const FAULT: u32 = 8;
/// The word of the plan.
pub const AT: u32 = 9;
/// What was found.
pub const FOUND: u32 = 10;
/// What was expected, or the limit.
pub const LIMIT: u32 = 11;
/// Loop variables in scope.
pub const VARS: u32 = 12;
/// The outermost of them.
pub const VAR_WORDS: u32 = 16;
/// How many of them are kept.
pub const VAR_COUNT: usize = 16;

/// Words of the epitaph.
pub const WORDS: u32 = 32;

/// No kernel has faulted.
pub const FREE: u64 = 0;
/// A kernel has faulted, and is writing why.
pub const TAKEN: u64 = 1;
/// The words say why.
pub const WRITTEN: u64 = 2;
