//! Scalar expressions: of loop variables, symbols, slots and the arguments of a task.
//!
//! They are evaluated as C does on 64 bits: one unsigned operand makes both unsigned, integers wrap. Beyond C: a division by
//! zero is a fault, and the count of a shift is taken modulo 64.

/// Slots of a run.
pub const SLOTS: usize = 256;

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarType {
    /// True or false.
    Bool,
    /// A signed integer of 64 bits.
    I64,
    /// An unsigned integer of 64 bits.
    U64,
}

impl ScalarType {
    /// The name in texts and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I64 => "i64",
            Self::U64 => "u64",
        }
    }

    /// The type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Bool, Self::I64, Self::U64].into_iter().find(|found| found.name() == name)
    }
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `!`, of a truth value.
    Not,
    /// `-`, of an integer.
    Negate,
    /// `~`, of an integer.
    Complement,
}

impl UnaryOp {
    /// The mark in texts.
    #[must_use]
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Not => "!",
            Self::Negate => "-",
            Self::Complement => "~",
        }
    }
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `&`
    BitAnd,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Remainder,
}

impl BinaryOp {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Or,
        Self::And,
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessEqual,
        Self::Greater,
        Self::GreaterEqual,
        Self::BitOr,
        Self::BitXor,
        Self::BitAnd,
        Self::ShiftLeft,
        Self::ShiftRight,
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::Div,
        Self::Remainder,
    ];

    /// The mark in texts.
    #[must_use]
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Or => "||",
            Self::And => "&&",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::BitOr => "|",
            Self::BitXor => "^",
            Self::BitAnd => "&",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Remainder => "%",
        }
    }

    /// Whether the result is a truth value that compares two integers or two truth values.
    #[must_use]
    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::NotEqual
                | Self::Less
                | Self::LessEqual
                | Self::Greater
                | Self::GreaterEqual
        )
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A loop variable, signed.
    Var(String),
    /// A symbol, unsigned.
    Symbol(String),
    /// A slot, of a type of its reader's choice.
    Slot(u16, ScalarType),
    /// An argument of the task, signed: only where tasks are dispatched. It counts axes, the rows and columns that count of each
    /// tensor, and scalars, as one list.
    Param(u16),
    /// Applies an operator to one operand.
    Unary(UnaryOp, Box<Self>),
    /// Applies an operator to two operands.
    Binary(BinaryOp, Box<(Self, Self)>),
    /// The second where the first is true, else the third.
    Choice(Box<(Self, Self, Self)>),
    /// Converts an expression to another type.
    Cast(ScalarType, Box<Self>),
}

impl Expr {
    /// A loop variable.
    #[must_use]
    pub fn var(name: &str) -> Self {
        Self::Var(name.to_owned())
    }

    /// A symbol.
    #[must_use]
    pub fn symbol(name: &str) -> Self {
        Self::Symbol(name.to_owned())
    }

    /// Applies an operator to one operand.
    #[must_use]
    pub fn unary(op: UnaryOp, x: Self) -> Self {
        Self::Unary(op, Box::new(x))
    }

    /// Applies an operator to two operands.
    #[must_use]
    pub fn binary(op: BinaryOp, a: Self, b: Self) -> Self {
        Self::Binary(op, Box::new((a, b)))
    }

    /// `then` where the condition is true, else `otherwise`.
    #[must_use]
    pub fn choice(condition: Self, then: Self, otherwise: Self) -> Self {
        Self::Choice(Box::new((condition, then, otherwise)))
    }

    /// Converts `x` to type `to`.
    #[must_use]
    pub fn cast(to: ScalarType, x: Self) -> Self {
        Self::Cast(to, Box::new(x))
    }
}
