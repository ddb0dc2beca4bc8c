//! The names of a plan: what has to be bound, by number.

use crate::tree::Expr;

/// What a symbol is in a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolUse {
    /// The size of a dynamic axis, and its default.
    Size(Option<u64>),
    /// A number: of rows, or in an expression.
    Number,
    /// A number of type `f32`, for a scalar parameter.
    Float,
}

impl SymbolUse {
    /// Whether both are bound by the same name in the same scope.
    const fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Size(a), Self::Size(b)) => {
                matches!((a, b), (None, None)) || matches!((a, b), (Some(a), Some(b)) if a == b)
            }
            (Self::Number, Self::Number) | (Self::Float, Self::Float) => true,
            _ => false,
        }
    }
}

/// The names, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct SymbolTable {
    pub(super) symbols: Vec<(String, SymbolUse)>,
    pub(super) arrays: Vec<String>,
    /// The loop variables in scope.
    pub(super) vars: Vec<String>,
    /// The axes of the task whose key or priority is written.
    pub(super) params: Vec<Expr>,
    /// An argument that a key or a priority reads, and that is no axis.
    pub(super) missing: Option<u16>,
}

impl SymbolTable {
    /// The number of a symbol.
    pub(super) fn symbol(&mut self, name: &str, used: SymbolUse) -> u32 {
        let found =
            self.symbols.iter().position(|(known, other)| known == name && used.is_same(*other));
        let index = found.unwrap_or_else(|| {
            self.symbols.push((name.to_owned(), used));
            self.symbols.len() - 1
        });
        number(index)
    }

    /// The number of an array.
    pub(super) fn array(&mut self, name: &str) -> u32 {
        let found = self.arrays.iter().position(|known| known == name);
        let index = found.unwrap_or_else(|| {
            self.arrays.push(name.to_owned());
            self.arrays.len() - 1
        });
        number(index)
    }

    /// The number of a loop variable; a workload that was checked names only those in scope.
    pub(super) fn var(&self, name: &str) -> u32 {
        number(self.vars.iter().rposition(|known| known == name).unwrap_or(usize::MAX))
    }
}

/// An index as a number of a plan. What is too large for it, the reader of plans refuses.
pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX >> 8).min(u32::MAX >> 8)
}

/// Zero, as an index.
pub(super) const ZERO: Expr = Expr::Int(0);
