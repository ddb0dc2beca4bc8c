//! What builder programs in C hand to the streaming runtime. Plain structures, of which nothing is proved.

use bytemuck::{Pod, Zeroable};

use crate::closed_set;
use crate::ids::GmAddr;
use crate::limits::MAX_RANK;
use crate::shared_struct::shared_struct;

closed_set! {
    /// What an argument is to its task.
    pub struct ArgKind(u32) {
        /// The task reads the tensor.
        IN = 0, "in";
        /// The task overwrites the tensor.
        OUT = 1, "out";
        /// The task reads and writes the tensor.
        INOUT = 2, "inout";
        /// The tensor's address, and no access.
        NO_DEP = 3, "no-dep";
        /// A word.
        SCALAR = 4, "scalar";
        /// In a recording: the word that a replay binds; the scalar's word is the index of the binding.
        BOUND_SCALAR = 5, "bound-scalar";
    }
}

shared_struct! {
    /// A strided part of a tensor, as a builder in C states it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
    pub struct StreamTensor [size = 104, align = 8] {
        /// First byte of the tensor: what it is known by.
        0 => base: GmAddr,
        /// Size of the tensor in bytes.
        8 => bytes: u64,
        /// Elements from the tensor's first one to the view's first one.
        16 => offset: u64,
        /// Distances in elements, one for each extent.
        24 => strides: [u64; MAX_RANK],
        /// Extents.
        64 => shape: [u32; MAX_RANK],
        /// How many dimensions it has.
        84 => rank: u32,
        /// An `ElementType`.
        88 => element: u32,
        /// Depth of the scope whose heap it is on, counted from 1; 0: it is not on the heap.
        92 => heap_depth: u32,
        /// Serial number of that scope.
        96 => heap_serial: u64,
    }
}

shared_struct! {
    /// An argument of a task.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
    pub struct StreamArg [size = 120, align = 8] {
        /// An `ArgKind`.
        0 => kind: u32,
        /// Not used; zero.
        4 => reserved: u32,
        /// The word of a scalar.
        8 => scalar: u64,
        /// The tensor of what is no scalar.
        16 => tensor: StreamTensor,
    }
}

shared_struct! {
    /// A task with tensors. Later releases append fields: fields that a firmware does not know must be zero.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
    pub struct StreamTask [size = 184, align = 8] {
        /// `sizeof(pto_stream_task)` where the builder was compiled.
        0 => struct_size: u32,
        /// Which kernel.
        4 => func_id: u32,
        /// A `CoreKind`.
        8 => core_type: u32,
        /// Not used; zero.
        12 => reserved: u32,
        /// How many blocks; 0: one.
        16 => blocks: u32,
        /// A `StartMode`.
        20 => start: u32,
        /// A `Priority` plus 1; 0: normal.
        24 => priority: u32,
        /// How many kernels run on vector cores in addition to the task's own one: up to two.
        28 => vector_count: u32,
        /// Their func ids.
        32 => vectors: [u32; 2],
        /// 1: the task has a predicate; 0: it runs in any case.
        40 => has_predicate: u32,
        /// A `Comparison`: of the element with the value.
        44 => comparison: u32,
        /// Where the element is in `element_of`.
        48 => index: [u32; MAX_RANK],
        /// How many numbers the index has.
        68 => index_rank: u32,
        /// With what the element is compared, in the low bits.
        72 => value: u64,
        /// The tensor that the element is of.
        80 => element_of: StreamTensor,
    }
}

/// Bytes of a [`StreamTask`] before there were block shapes: the least that `struct_size` may be.
pub const STREAM_TASK_BYTES: usize = 16;

shared_struct! {
    /// A part of a program that was recorded.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
    pub struct StreamRecording [size = 16, align = 4] {
        /// The run that it was made in.
        0 => run: u32,
        /// Where the builder keeps it.
        4 => at: u32,
        /// How many tasks it has.
        8 => tasks: u32,
        /// Not used; zero.
        12 => reserved: u32,
    }
}

shared_struct! {
    /// A scope that was opened.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
    pub struct StreamScope [size = 16, align = 8] {
        /// How many scopes are around it.
        0 => depth: u32,
        /// Not used; zero.
        4 => reserved: u32,
        /// Its number in the run.
        8 => serial: u64,
    }
}
