//! The words of a plan and of its bindings: codes, indices and limits. The writer is `pto_workload::plan`.
//!
//! ```text
//! header | tensors | kernels | root node                         words of 32 bits
//! node        code, 24 bits of an operand; what belongs to the code; the nodes inside
//! expression  code, 24 bits of an operand; the operands, which are expressions
//! view        tensor, indices, which dimension is rows, which is columns; for each index a code and its expressions
//! ```
//! Every part is written in front of the parts that it has, so that both the check and the walk read from left to right. What
//! may be left out (a branch, a body, a second operand) has its length in front.

/// The first word of a plan: `PLAN` in ASCII.
pub const MAGIC: u32 = 0x4E41_4C50;
/// The version of the words.
pub const VERSION: u32 = 1;

/// Words of the header.
pub const HEADER_WORDS: usize = 8;

/// The indices of the header's words.
pub mod header {
    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// [`VERSION`](super::VERSION).
    pub const VERSION: usize = 1;
    /// Words of the plan.
    pub const WORDS: usize = 2;
    /// Tensors.
    pub const TENSORS: usize = 3;
    /// Kernels.
    pub const KERNELS: usize = 4;
    /// Symbols.
    pub const SYMBOLS: usize = 5;
    /// Arrays.
    pub const ARRAYS: usize = 6;
    /// Where the root node begins.
    pub const ROOT: usize = 7;
}

/// What a plan may have at most.
pub mod limits {
    /// Words.
    pub const WORDS: usize = 2048;
    /// Tensors.
    pub const TENSORS: usize = 32;
    /// Kernels.
    pub const KERNELS: usize = 32;
    /// Symbols.
    pub const SYMBOLS: usize = 64;
    /// Arrays.
    pub const ARRAYS: usize = 32;
    /// Loop variables in scope.
    pub const VARS: usize = 48;
    /// Slots.
    pub const SLOTS: u32 = 256;
    /// Nodes inside of each other.
    pub const NODE_DEPTH: u32 = 32;
    /// Expressions inside of each other.
    pub const EXPRESSION_DEPTH: u32 = 24;
    /// Parameters of a kernel.
    pub const PARAMS: usize = 32;
    /// Lanes of a schedule.
    pub const LANES: usize = 128;
    /// Tasks that are held back together: a batch, or those before the first one starts.
    pub const HELD: usize = 256;
    /// Turns of loops without a task between them: a second or two of a device.
    pub const IDLE_TURNS: u64 = 1 << 26;
    /// Processes of a pipeline.
    pub const PROCESSES: usize = 16;
    /// Channels of a pipeline.
    pub const CHANNELS: usize = 16;
    /// Places for tokens in all channels together. A channel of depth 0 has one for each process.
    pub const TOKENS: usize = 128;
    /// Tiles that a token brings along to another rank.
    pub const CARRIED: usize = 4;
    /// Nodes inside of each other in a process.
    pub const PROCESS_DEPTH: u32 = 12;
    /// Dimensions of a tensor.
    pub const RANK: usize = pto_abi::limits::MAX_RANK;
}

/// The bit at which the rank of a process begins, in the word of the channels that it sends to.
pub const RANK_SHIFT: u32 = 16;

/// The codes of nodes.
pub mod node {
    /// A node without content.
    pub const EMPTY: u32 = 1;
    /// As many nodes as the operand says, one after the other.
    pub const BLOCK: u32 = 2;
    /// A loop. Operand: first variable, how many (1 or 3) above 8 bits, [`axis`](super::axis) above 16. Then the words of the body, the axis, the body.
    pub const LOOP: u32 = 3;
    /// One of two. Operand: words of the first. Then the words of the second, the predicate, the first, the second.
    pub const COND: u32 = 4;
    /// A task. Operand: the kernel. Then two words: [`form`](super::form)s of the scalars; an argument for each parameter.
    pub const TASK: u32 = 5;
    /// A slot gets a value. Operand: the slot. Then an expression.
    pub const SLOT_SET: u32 = 6;
    /// A slot gets an element. Operand: the slot; the tensor above 8 bits. Then an expression for each dimension.
    pub const SLOT_LOAD: u32 = 7;
    /// The schedule, which comes before the root where there is one. Operand: [`schedule`](super::schedule) flags. Then lanes;
    /// tasks of a batch; tasks before the first one starts. A task has one expression more for each of the flags
    /// [`KEY`](super::schedule::KEY) and [`PRIORITY`](super::schedule::PRIORITY), in this order.
    pub const SCHEDULE: u32 = 8;
    /// Processes that communicate; only as the root. Operand: how many; channels above 8 bits. Then the depth of each channel; the
    /// cycles of each kernel on the `v9` clock, in two words; and each process: the words of its body; the channels that it sends to, a bit
    /// for each, and from [`RANK_SHIFT`](super::RANK_SHIFT) on its rank; the body.
    pub const PIPELINE: u32 = 9;
    /// A task, and then a token. Operand: the channel. Then the token, an expression; the [`TASK`].
    pub const SEND: u32 = 10;
    /// The body for each token. Operand: the variable; the channel above 8 bits. Then the words of the body, the body.
    pub const CONSUME: u32 = 11;
    /// An exchange of a tensor with other ranks. Operand: an [`ExchangeKind`](crate::group::ExchangeKind); the tensor above 8 bits. Then a
    /// [`Reduction`](crate::group::Reduction); the other rank and the tag, two expressions. Not in a pipeline.
    pub const EXCHANGE: u32 = 12;
}

/// The flags of a schedule.
pub mod schedule {
    /// A task says which lane it goes to; without it, lanes come in turn.
    pub const KEY: u32 = 1;
    /// A task says its priority: 0 and below, 1, 2, or 3 and above, the first ones first.
    pub const PRIORITY: u32 = 2;
    /// The tasks of a lane run one after the other.
    pub const IN_ORDER: u32 = 4;
    /// All flags.
    pub const ALL: u32 = 7;
}

/// The codes of axes.
pub mod axis {
    /// A size of 64 bits.
    pub const DENSE: u32 = 0;
    /// A symbol.
    pub const DYNAMIC: u32 = 1;
    /// A symbol, an array of lengths.
    pub const RAGGED: u32 = 2;
    /// A symbol, an array of beginnings, an array of indices.
    pub const SPARSE: u32 = 3;
    /// Flag: the program has the iterations one after another. Tiles order tasks, and this does not.
    pub const IN_ORDER: u32 = 0x80;
}

/// The codes of expressions. From [`EQUAL`](expression::EQUAL) on there are two operands; their own operand is 1 where they are unsigned.
pub mod expression {
    /// A constant of 24 bits, signed.
    pub const CONSTANT: u32 = 1;
    /// A constant of 64 bits, in two words.
    pub const WIDE: u32 = 2;
    /// A loop variable.
    pub const VAR: u32 = 3;
    /// A symbol.
    pub const SYMBOL: u32 = 4;
    /// A slot.
    pub const SLOT: u32 = 5;
    /// A truth value.
    pub const TRUTH: u32 = 6;
    /// Operand: words of the second. Then the words of the third, the condition, the second, the third.
    pub const CHOICE: u32 = 7;
    /// Operand: words of the second.
    pub const AND: u32 = 8;
    /// Operand: words of the second.
    pub const OR: u32 = 9;
    /// The negation of a truth value.
    pub const NOT: u32 = 10;
    /// The negation of a number.
    pub const NEGATE: u32 = 11;
    /// The bitwise complement of a number.
    pub const COMPLEMENT: u32 = 12;
    /// Anything as a truth value.
    pub const TO_TRUTH: u32 = 13;
    /// Anything as a number.
    pub const TO_NUMBER: u32 = 14;
    /// Two of the same type.
    pub const EQUAL: u32 = 16;
    /// Two of the same type.
    pub const NOT_EQUAL: u32 = 17;
    /// `<`
    pub const LESS: u32 = 18;
    /// `<=`
    pub const LESS_EQUAL: u32 = 19;
    /// `>`
    pub const GREATER: u32 = 20;
    /// `>=`
    pub const GREATER_EQUAL: u32 = 21;
    /// `|`
    pub const BIT_OR: u32 = 22;
    /// `^`
    pub const BIT_XOR: u32 = 23;
    /// `&`
    pub const BIT_AND: u32 = 24;
    /// `<<`; the count is taken modulo 64.
    pub const SHIFT_LEFT: u32 = 25;
    /// `>>`; the count is taken modulo 64.
    pub const SHIFT_RIGHT: u32 = 26;
    /// `+`
    pub const ADD: u32 = 27;
    /// `-`
    pub const SUB: u32 = 28;
    /// `*`
    pub const MUL: u32 = 29;
    /// `/`
    pub const DIV: u32 = 30;
    /// `%`
    pub const REMAINDER: u32 = 31;
}

/// The codes of indices.
pub mod index {
    /// One index: an expression.
    pub const AT: u32 = 0;
    /// A start and a length: two expressions.
    pub const RANGE: u32 = 1;
}

/// Instead of a dimension: the tile has no dimension for this side.
pub const NO_DIMENSION: u32 = 0xFF;

/// Words of a tensor: element type and rank above 8 bits; then an extent for each of [`limits::RANK`] dimensions.
pub const TENSOR_WORDS: usize = 1 + limits::RANK;

/// Words of a kernel before its parameters: func id, core kind above 16 bits, parameters above 24; first byte of its code; bytes.
pub const KERNEL_WORDS: usize = 3;

/// Words of a parameter: what it is (see [`param`]); rows and columns of its tile; rows and columns that an access may lie
/// beyond what counts of the tile.
pub const PARAM_WORDS: usize = 3;

/// What a parameter is: a direction, an element type above 8 bits, flags above 16.
pub mod param {
    /// A tensor that is read.
    pub const IN: u32 = 0;
    /// A tensor that is overwritten.
    pub const OUT: u32 = 1;
    /// A tensor that is read and written.
    pub const IN_OUT: u32 = 2;
    /// A scalar.
    pub const SCALAR: u32 = 3;
    /// Flag: masks or offsets decide which elements are touched, so that the tile may leave the tensor.
    pub const LOOSE: u32 = 1;
}

/// What the word of a scalar is before the kernel makes an element of it; two bits for each parameter.
pub mod form {
    /// The bits of the element.
    pub const BITS: u64 = 0;
    /// A signed integer.
    pub const SIGNED: u64 = 1;
    /// An unsigned integer.
    pub const UNSIGNED: u64 = 2;
    /// The bits of an `f32`.
    pub const F32: u64 = 3;
}

/// The words of the bindings, 64 bits each: a head, a word for each symbol, two for each array, a descriptor for each tensor, and a word
/// for each kernel: the nanoseconds that it takes on a core, 0 if unknown.
pub mod binding {
    /// Where the kernels' code is.
    pub const CODE: usize = 0;
    /// Bytes of the code.
    pub const CODE_BYTES: usize = 1;
    /// Where the [epitaph](super::super::epitaph) is.
    pub const EPITAPH: usize = 2;
    /// Where the scratch memory of the cores is.
    pub const SCRATCH: usize = 3;
    /// Symbols, arrays above 16 bits, tensors above 32, kernels above 48.
    pub const COUNTS: usize = 4;
    /// Cores of the device.
    pub const CORES: usize = 5;
    /// How many tasks one dispatch has at most: 1 puts none together; 0 leaves the choice to the expansion.
    pub const GRAIN: usize = 6;
    /// Words of the head. It and the descriptors are whole lines.
    pub const HEAD: usize = 8;
    /// Words of an array: where its elements of type `i32` are, and how many.
    pub const ARRAY: usize = 2;
    /// Words of a [descriptor](super::super::task::descriptor).
    pub const TENSOR: usize = 8;

    /// Words of everything.
    #[must_use]
    pub const fn words([symbols, arrays, tensors, kernels]: [usize; 4]) -> usize {
        costs_at([symbols, arrays, tensors]) + kernels
    }

    /// Where the costs of the kernels begin.
    #[must_use]
    pub const fn costs_at([symbols, arrays, tensors]: [usize; 3]) -> usize {
        tensors_at(symbols, arrays) + tensors * TENSOR
    }

    /// Where the arrays begin.
    #[must_use]
    pub const fn arrays_at(symbols: usize) -> usize {
        HEAD + symbols
    }

    /// Where the descriptors begin.
    #[must_use]
    pub const fn tensors_at(symbols: usize, arrays: usize) -> usize {
        (arrays_at(symbols) + arrays * ARRAY).next_multiple_of(TENSOR)
    }
}
