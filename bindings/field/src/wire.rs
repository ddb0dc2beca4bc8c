//! The bytes that orchestrations, kernels and this crate share: the Rust side of `include/tensor.h` and
//! `include/pto_field_calls.h`. Both sides assert the same sizes and offsets, and every program of the tests passes through them.

use std::ffi::{CStr, c_char, c_void};

pub use pto_native::foreign::field::{
    ChipTensor, GlobalContext, LocalContext, MAX_DIMS, NO_TASK, element_of,
};

/// Tensors of a task.
pub const MAX_TENSORS: usize = 32;
/// Scalars of a task.
pub const MAX_SCALARS: usize = 16;

/// A tensor that a submission makes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CreateInfo {
    /// The bits of every element, if `has_initial`.
    pub initial: u64,
    /// Dimensions.
    pub ndims: u32,
    /// Extents.
    pub shapes: [u32; MAX_DIMS],
    /// A [`dtype`](element_of).
    pub dtype: u8,
    /// As in a tensor.
    pub manual_dep: u8,
    /// 1: the elements begin as `initial`.
    pub has_initial: u8,
    /// Nothing.
    pub reserved: [u8; 5],
}

/// Where in the program a call is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SourceLocation {
    /// The file; null: not known.
    pub file: *const c_char,
    /// The line.
    pub line: i32,
    /// Nothing.
    pub reserved: i32,
}

impl SourceLocation {
    /// The location as text.
    #[must_use]
    pub fn describe(&self) -> String {
        if self.file.is_null() {
            return "the orchestration".to_owned();
        }
        // SAFETY: the header passes the name of a source file, a constant of the program.
        let file = unsafe { CStr::from_ptr(self.file) }.to_string_lossy();
        format!("{file}:{}", self.line)
    }
}

/// One argument of a task.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TaskArgument {
    /// A [`ChipTensor`]; a [`CreateInfo`] where the tag is [`tag::OUTPUT`].
    pub what: *const c_void,
    /// A [`tag`].
    pub tag: u64,
}

/// What a task does to an argument.
pub mod tag {
    /// It reads it.
    pub const INPUT: u64 = 0;
    /// The runtime makes it, and the task writes it.
    pub const OUTPUT: u64 = 1;
    /// It reads and writes it.
    pub const INOUT: u64 = 2;
    /// It writes it.
    pub const OUTPUT_EXISTING: u64 = 3;
    /// Nothing that makes an edge.
    pub const NO_DEP: u64 = 4;
}

/// A task, as orchestrations submit it.
#[repr(C)]
#[derive(Debug)]
pub struct Task {
    /// Arguments.
    pub tensors: *const TaskArgument,
    /// Words.
    pub scalars: *const u64,
    /// Tasks to wait for.
    pub dependencies: *const u64,
    /// How; null: all wait and retain.
    pub dependency_kinds: *const u8,
    /// Null: none.
    pub predicate: *const ChipTensor,
    /// What was wrong before the submission; null: nothing.
    pub error: *const c_char,
    /// Of `tensors`.
    pub tensor_count: u32,
    /// Of `scalars`.
    pub scalar_count: u32,
    /// Of `dependencies`.
    pub dependency_count: u32,
    /// Of `predicate_indices`.
    pub predicate_ndims: u32,
    /// The element.
    pub predicate_indices: [u32; MAX_DIMS],
    /// 1 to 6: EQ, NE, GT, LT, GE, LE.
    pub predicate_op: u32,
    /// With what it is compared.
    pub predicate_target: i64,
    /// AIC, AIV 0, AIV 1; negative: none.
    pub kernels: [i32; 3],
    /// Blocks.
    pub blocks: i32,
    /// Negative: none.
    pub timing_slot: i32,
    /// [`SYNC_START`].
    pub flags: u32,
    /// A bit for each argument.
    pub dump: u64,
    /// Where it is submitted.
    pub location: SourceLocation,
    /// A bit for each word of the kernel's arguments that is a scalar; 0: the scalars follow the tensors.
    pub scalar_words: u32,
    /// Nothing.
    pub reserved: u32,
}

/// All blocks start at once.
pub const SYNC_START: u32 = 1;

/// What a submission gives back.
#[repr(C)]
#[derive(Debug)]
pub struct Outputs {
    /// The task's id.
    pub task: u64,
    /// What it made.
    pub tensors: *const ChipTensor,
    /// How many.
    pub count: u64,
}

impl Outputs {
    /// After a fatal error.
    pub const NONE: Self = Self { task: NO_TASK, tensors: std::ptr::null(), count: 0 };
}

/// The functions that orchestrations call.
#[repr(C)]
#[derive(Debug)]
pub struct Ops {
    /// Of this table.
    pub version: u32,
    /// Messages above it are not written.
    pub log_level: i32,
    /// Submits a task.
    pub submit: unsafe extern "C" fn(*const Task, *mut Outputs),
    /// Makes tensors.
    pub alloc: unsafe extern "C" fn(*const TaskArgument, u32, SourceLocation, *mut Outputs),
    /// Opens a scope.
    pub scope_begin: unsafe extern "C" fn(i32, SourceLocation),
    /// Closes it.
    pub scope_end: unsafe extern "C" fn(),
    /// Reads an element.
    pub get: unsafe extern "C" fn(*const ChipTensor, u32, *const u32, SourceLocation) -> u64,
    /// Writes an element.
    pub set: unsafe extern "C" fn(*const ChipTensor, u32, *const u32, u64, SourceLocation),
    /// Clusters or vector cores.
    pub available: unsafe extern "C" fn(i32) -> i32,
    /// Whether the run has failed.
    pub is_fatal: unsafe extern "C" fn() -> i32,
    /// Fails it.
    pub fatal: unsafe extern "C" fn(i32, *const c_char, SourceLocation),
    /// Writes a message.
    pub log: unsafe extern "C" fn(i32, *const c_char, SourceLocation),
    /// A graph begins.
    pub graph_begin: unsafe extern "C" fn(u64, *const Task) -> u64,
    /// A graph ends.
    pub graph_end: unsafe extern "C" fn(u64) -> u64,
    /// The clock.
    pub ticks: unsafe extern "C" fn() -> u64,
}

const _: () = assert!(size_of::<CreateInfo>() == 40);
const _: () = assert!(size_of::<Task>() == 152);
const _: () = assert!(size_of::<Ops>() == 112);

/// A word that is a pointer of this process.
#[inline]
pub(crate) const fn pointer_word(word: u64) -> usize {
    const { assert!(size_of::<usize>() == 8) };
    usize::from_ne_bytes(word.to_ne_bytes())
}
