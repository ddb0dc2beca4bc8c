//! Tile kernels: built by a [`KernelBuilder`] or read from text, checked, printed, encoded.

mod builder;
mod encode;
mod lower;
pub(crate) mod parse;
mod text;

pub use builder::{KernelBuilder, KernelError, Operand};

use crate::ParseError;
use crate::tile::{Kernel, Op, Param};

/// A kernel that was checked.
#[derive(Clone, Debug)]
pub struct TileKernel {
    code: Kernel,
}

impl PartialEq for TileKernel {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.code, &other.code);
        ours.name() == theirs.name()
            && ours.params() == theirs.params()
            && ours.ops().eq(theirs.ops())
    }
}

impl TileKernel {
    /// A kernel that was accepted elsewhere.
    #[must_use]
    pub const fn new(code: Kernel) -> Self {
        Self { code }
    }

    /// Reads the textual form.
    ///
    /// # Errors
    /// Where the text is not a kernel, or the kernel is wrong.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::kernel_alone(text)
    }

    pub(crate) fn parse_from(lexer: &mut crate::lexer::Lexer) -> Result<Self, ParseError> {
        parse::kernel(lexer)
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.code.name().as_str()
    }

    /// The parameters.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        self.code.params()
    }

    /// The instructions.
    pub fn ops(&self) -> impl ExactSizeIterator<Item = &Op> {
        self.code.ops()
    }

    /// What the tile machine runs.
    #[must_use]
    pub const fn code(&self) -> &Kernel {
        &self.code
    }

    /// The byte form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode::encode(&self.code)
    }
}

impl std::fmt::Display for TileKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text::kernel(&self.code, f)
    }
}
