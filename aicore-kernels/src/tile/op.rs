//! The instructions of a tile kernel, typed.
//!
//! A kernel is in single-assignment form: an instruction with a result defines the next value, so the values are numbered in
//! the order of their instructions, and a result needs no field. A scalar is a tile of one element that carries a mark: it
//! goes with tiles of every shape and costs no cycles.

use super::dtype::DType;

/// A value: the result of the instruction that defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u16);

impl core::fmt::Display for ValueId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// The type of a value: element type and extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TileType {
    /// The element type.
    pub dtype: DType,
    /// Rows, at least 1.
    pub rows: u16,
    /// Columns, at least 1.
    pub cols: u16,
    /// Whether this is a scalar: one element, which goes with every shape.
    pub is_scalar: bool,
}

impl TileType {
    /// A tile.
    #[must_use]
    pub const fn tile(dtype: DType, rows: u16, cols: u16) -> Self {
        Self { dtype, rows, cols, is_scalar: false }
    }

    /// A scalar.
    #[must_use]
    pub const fn scalar(dtype: DType) -> Self {
        Self { dtype, rows: 1, cols: 1, is_scalar: true }
    }

    /// This shape with another element type.
    #[must_use]
    pub const fn with(self, dtype: DType) -> Self {
        Self { dtype, ..self }
    }

    /// The number of elements.
    #[must_use]
    pub const fn elements(self) -> usize {
        self.rows as usize * self.cols as usize
    }

    /// Whether both have the same extents.
    #[must_use]
    pub const fn has_shape_of(self, other: Self) -> bool {
        self.rows == other.rows && self.cols == other.cols
    }
}

impl core::fmt::Display for TileType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.is_scalar {
            return write!(f, "{}", self.dtype);
        }
        write!(f, "{}[{}, {}]", self.dtype, self.rows, self.cols)
    }
}

/// Declares an enum of functions with codes from 0 and names.
macro_rules! functions {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// All of them, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The one with this code in the byte form.
            #[must_use]
            pub fn from_code(code: u8) -> Option<Self> {
                Self::ALL.get(usize::from(code)).copied()
            }

            /// The code in the byte form.
            #[must_use]
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// The one with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|found| found.name() == name)
            }

            /// The name in texts and errors.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }
    };
}

functions! {
    /// A function of one element.
    Unary {
        /// `e^x`.
        Exp = "exp",
        /// `1 / sqrt(x)`.
        Rsqrt = "rsqrt",
        /// The natural logarithm.
        Log = "log",
        /// The square root.
        Sqrt = "sqrt",
        /// The hyperbolic tangent.
        Tanh = "tanh",
        /// `1 / (1 + e^-x)`.
        Sigmoid = "sigmoid",
        /// `max(x, 0)`.
        Relu = "relu",
        /// `x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3))`: the approximation by `tanh`.
        Gelu = "gelu",
        /// `x sigmoid(x)`.
        Silu = "silu",
        /// `-x`; integers wrap.
        Neg = "neg",
        /// `|x|`; integers wrap.
        Abs = "abs",
        /// The sine.
        Sin = "sin",
        /// The cosine.
        Cos = "cos",
        /// The value itself: a copy.
        Copy = "copy",
    }
}

functions! {
    /// A function of two elements. Integers wrap; a NaN is never lost.
    Binary {
        /// `a + b`.
        Add = "add",
        /// `a - b`.
        Sub = "sub",
        /// `a * b`.
        Mul = "mul",
        /// `a / b`; of integers towards zero, and by zero a fault.
        Div = "div",
        /// The larger one.
        Max = "max",
        /// The smaller one.
        Min = "min",
    }
}

functions! {
    /// A comparison of two elements: 1 or 0 in `u8`.
    Compare {
        /// `a < b`.
        Less = "less",
        /// `a <= b`.
        LessEqual = "less_equal",
        /// `a > b`.
        Greater = "greater",
        /// `a >= b`.
        GreaterEqual = "greater_equal",
        /// `a == b`.
        Equal = "equal",
        /// `a != b`.
        NotEqual = "not_equal",
    }
}

functions! {
    /// A reduction along rows (`[rows, 1]`) or columns (`[1, cols]`).
    Reduce {
        /// The sum of each row.
        RowSum = "rowsum",
        /// The largest element of each row.
        RowMax = "rowmax",
        /// The mean of each row, which does not overflow where the sum does; of integers towards zero.
        RowMean = "rowmean",
        /// The sum of each column.
        ColSum = "colsum",
        /// The largest element of each column.
        ColMax = "colmax",
    }
}

functions! {
    /// How the second operand of a binary instruction meets the elements of the first.
    Spread {
        /// Element by element.
        Same = "same",
        /// One element for each row.
        Row = "row",
        /// One element for each column.
        Col = "col",
        /// One element for all.
        One = "one",
        /// The first operand is one element, for all of the second.
        FirstOne = "first",
    }
}

/// Moves that the `v9` clock counts and this machine has no need of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Moves {
    /// The left operand is a value of the kernel and goes to the matrix unit first.
    pub left: bool,
    /// So does the right operand.
    pub right: bool,
    /// An instruction that is neither a product nor a store takes the result.
    pub result: bool,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// A tile from a tensor, from an offset on. Where the mask is zero, the element is 0 and the tensor is not read.
    Load {
        /// The number of the parameter.
        param: u8,
        /// Rows and columns from the first element of the view.
        offset: [u16; 2],
        /// A tile of `u8` of the same shape.
        mask: Option<ValueId>,
    },
    /// A tile to a tensor. Where the mask is zero, the tensor keeps its element.
    Store {
        /// The number of the parameter.
        param: u8,
        /// What is stored.
        source: ValueId,
        /// Rows and columns from the first element of the view.
        offset: [u16; 2],
        /// A tile of `u8` of the same shape.
        mask: Option<ValueId>,
    },
    /// A scalar parameter.
    Scalar {
        /// The number of the parameter.
        param: u8,
    },
    /// A scalar constant: the bits of an element.
    Constant {
        /// Its type.
        dtype: DType,
        /// Its bits.
        bits: u64,
    },
    /// A tile of zeros.
    Zeros {
        /// Its type.
        dtype: DType,
        /// Its extents.
        shape: [u16; 2],
    },
    /// A row 0, 1, 2, ..
    Iota {
        /// Its type.
        dtype: DType,
        /// How many.
        cols: u16,
    },
    /// A function of each element.
    Unary {
        /// The function.
        function: Unary,
        /// The operand.
        x: ValueId,
    },
    /// A function of pairs of elements.
    Binary {
        /// The function.
        function: Binary,
        /// The first operand.
        a: ValueId,
        /// The second operand.
        b: ValueId,
        /// How they meet.
        spread: Spread,
    },
    /// A comparison of pairs of elements.
    Compare {
        /// The function.
        function: Compare,
        /// The first operand.
        a: ValueId,
        /// The second operand.
        b: ValueId,
        /// How they meet.
        spread: Spread,
    },
    /// `a` where the mask is not zero, `b` elsewhere.
    Select {
        /// A value of `u8` of the same shape.
        mask: ValueId,
        /// Taken where the mask is not zero.
        a: ValueId,
        /// Taken elsewhere.
        b: ValueId,
    },
    /// A reduction.
    Reduce {
        /// The function.
        function: Reduce,
        /// The operand.
        x: ValueId,
    },
    /// Another element type: floats round to nearest even, floats to integers saturate, integers wrap.
    Convert {
        /// The type of the result.
        dtype: DType,
        /// The operand.
        x: ValueId,
    },
    /// `a b`, plus `acc` if there is one.
    Matmul {
        /// `[m, k]`.
        a: ValueId,
        /// `[k, n]`.
        b: ValueId,
        /// `[m, n]`.
        acc: Option<ValueId>,
        /// What the `v9` clock counts besides.
        moves: Moves,
    },
    /// Columns 0, 2, 4, ..
    SliceEven {
        /// The operand.
        x: ValueId,
    },
    /// Columns 1, 3, 5, ..
    SliceOdd {
        /// The operand.
        x: ValueId,
    },
    /// Columns of `a` and `b` in turn.
    Interleave {
        /// The even columns.
        a: ValueId,
        /// The odd columns.
        b: ValueId,
    },
    /// A larger shape: extents of 1 are repeated.
    Broadcast {
        /// The operand.
        x: ValueId,
        /// The extents of the result.
        shape: [u16; 2],
    },
    /// Sorts 32 scores, descending; equal ones by index. The result has scores and indices in turn.
    Sort32 {
        /// `f32[1, 32]`.
        scores: ValueId,
        /// `u32[1, 32]`.
        indices: ValueId,
    },
    /// The indices of the first `k` pairs of a [`Op::Sort32`].
    TopK {
        /// The pairs.
        pairs: ValueId,
        /// How many.
        k: u16,
    },
    /// Adds a scalar to the cycles that the kernel reports on the `v9` clock.
    AddCycles {
        /// An integer.
        x: ValueId,
    },
}

impl Op {
    /// The values that this instruction reads.
    #[must_use]
    pub fn operands(&self) -> [Option<ValueId>; 3] {
        match *self {
            Self::Load { mask, .. } => [mask, None, None],
            Self::Store { source, mask, .. } => [Some(source), mask, None],
            Self::Scalar { .. }
            | Self::Constant { .. }
            | Self::Zeros { .. }
            | Self::Iota { .. } => [None; 3],
            Self::Unary { x, .. }
            | Self::Reduce { x, .. }
            | Self::Convert { x, .. }
            | Self::SliceEven { x }
            | Self::SliceOdd { x }
            | Self::Broadcast { x, .. }
            | Self::AddCycles { x } => [Some(x), None, None],
            Self::Binary { a, b, .. } | Self::Compare { a, b, .. } | Self::Interleave { a, b } => {
                [Some(a), Some(b), None]
            }
            Self::Select { mask, a, b } => [Some(mask), Some(a), Some(b)],
            Self::Matmul { a, b, acc, .. } => [Some(a), Some(b), acc],
            Self::Sort32 { scores, indices } => [Some(scores), Some(indices), None],
            Self::TopK { pairs, .. } => [Some(pairs), None, None],
        }
    }

    /// The name in texts and errors.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Load { .. } => "load",
            Self::Store { .. } => "store",
            Self::Scalar { .. } => "scalar",
            Self::Constant { .. } => "constant",
            Self::Zeros { .. } => "zeros",
            Self::Iota { .. } => "iota",
            Self::Unary { function, .. } => function.name(),
            Self::Binary { function, .. } => function.name(),
            Self::Compare { function, .. } => function.name(),
            Self::Select { .. } => "select",
            Self::Reduce { function, .. } => function.name(),
            Self::Convert { .. } => "convert",
            Self::Matmul { .. } => "matmul",
            Self::SliceEven { .. } => "slice_even",
            Self::SliceOdd { .. } => "slice_odd",
            Self::Interleave { .. } => "interleave",
            Self::Broadcast { .. } => "broadcast",
            Self::Sort32 { .. } => "sort32",
            Self::TopK { .. } => "topk",
            Self::AddCycles { .. } => "add_cycles",
        }
    }
}
