//! What ends a kernel: named causes, with kernel, instruction, parameter and index.

use pto_abi::numbers::Counted;

use super::op::Spread;
use super::param::Name;

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultCause {
    /// The call has another number of tensors than the kernel.
    Tensors {
        /// What the kernel has.
        needed: usize,
        /// What the call gives.
        found: usize,
    },
    /// The call has another number of scalars than the kernel.
    Scalars {
        /// What the kernel has.
        needed: usize,
        /// What the call gives.
        found: usize,
    },
    /// The scratch memory is too small.
    Scratch {
        /// Words that the kernel needs.
        needed: usize,
        /// Words that there are.
        found: usize,
    },
    /// The memory of a tensor does not begin at a multiple of the size of an element.
    Misaligned,
    /// A view is larger than the parameter's tile.
    ViewTooLarge {
        /// The view.
        view: [u16; 2],
        /// The tile.
        tile: [u16; 2],
    },
    /// An element of the tile lies outside the tensor.
    OutOfTensor {
        /// Its row and column in the tile.
        at: [u32; 2],
        /// Its index, in elements from the beginning of the tensor.
        element: i64,
        /// How many elements the tensor has.
        elements: usize,
    },
    /// The partial tiles of two operands do not go together.
    Remainders {
        /// The rows and columns of the first operand that count.
        a: [u16; 2],
        /// The rows and columns of the second operand that count.
        b: [u16; 2],
    },
    /// What is stored is smaller than where it goes.
    StoreTooSmall {
        /// What is stored.
        source: [u16; 2],
        /// Where it goes.
        view: [u16; 2],
    },
    /// An integer was divided by zero.
    DivisionByZero {
        /// The divisor's row and column.
        at: [u32; 2],
        /// How the divisor meets the dividend.
        spread: Spread,
    },
    /// The pairs hold a number that is no index.
    NoIndex {
        /// Which pair.
        at: u32,
    },
    /// A kernel that was accepted does not hold what acceptance proves: an error of this crate.
    Broken,
}

/// A fault: where a kernel ended, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileFault {
    /// The kernel.
    pub kernel: Name,
    /// The number of the instruction; `None` before the first.
    pub instruction: Option<u16>,
    /// What the instruction is called.
    pub name: &'static str,
    /// The parameter that the instruction reads or writes.
    pub param: Option<Name>,
    /// The cause.
    pub cause: FaultCause,
}

impl core::fmt::Display for TileFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Kernel {}", self.kernel)?;
        if let Some(instruction) = self.instruction {
            write!(f, ", instruction {instruction} ({})", self.name)?;
        }
        if let Some(param) = self.param {
            write!(f, ", operand {param}")?;
        }
        write!(f, ": {}", self.cause)
    }
}

impl core::error::Error for TileFault {}

impl core::fmt::Display for FaultCause {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Tensors { needed, found } => {
                let needed = Counted(*needed as u64, "tensor");
                write!(f, "the kernel has {needed}, and the call gives {found}.")
            }
            Self::Scalars { needed, found } => {
                let needed = Counted(*needed as u64, "scalar");
                write!(f, "the kernel has {needed}, and the call gives {found}.")
            }
            Self::Scratch { needed, found } => {
                write!(f, "the kernel needs {needed} words of scratch memory, and has {found}.")
            }
            Self::Misaligned => {
                f.write_str("the memory of the tensor is not aligned to its elements.")
            }
            Self::ViewTooLarge { view: [r, c], tile: [rows, cols] } => {
                let (r, c) = (Counted(u64::from(*r), "row"), Counted(u64::from(*c), "column"));
                write!(f, "the view has {r} and {c}, and the tile {rows} and {cols}.")
            }
            Self::OutOfTensor { at: [row, col], element, elements } => write!(
                f,
                "the tile leaves its tensor at row {row}, column {col}: that is element {element} of {elements}. \
                 Give the view a remainder, or choose another tile."
            ),
            Self::Remainders { a: [ar, ac], b: [br, bc] } => write!(
                f,
                "the partial tiles of {ar} x {ac} and {br} x {bc} elements do not go together."
            ),
            Self::StoreTooSmall { source: [sr, sc], view: [vr, vc] } => write!(
                f,
                "the tile of {sr} x {sc} elements does not fill the view of {vr} x {vc}. \
                 Give the view the same remainder."
            ),
            Self::DivisionByZero { at: [row, col], .. } => {
                write!(f, "the divisor is zero at row {row}, column {col}.")
            }
            Self::NoIndex { at } => write!(f, "pair {at} holds no index."),
            Self::Broken => f.write_str("the kernel breaks a rule that acceptance checks."),
        }
    }
}
