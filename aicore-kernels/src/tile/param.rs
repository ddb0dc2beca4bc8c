//! Parameters of a kernel: tensors, of which a call gives views, and scalars.

use super::dtype::DType;
use super::op::TileType;

/// A name of at most [`Name::LIMIT`] bytes: letters, digits and underscores, not first a digit.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name {
    bytes: [u8; Self::LIMIT],
    length: u8,
}

impl Name {
    /// The longest name.
    pub const LIMIT: usize = 47;

    /// A name; `None` if the text is none.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_letter = |letter: u8| letter == b'_' || letter.is_ascii_alphabetic();
        let is_first = text.bytes().next().is_some_and(is_letter);
        let is_name = text.bytes().all(|letter| is_letter(letter) || letter.is_ascii_digit());
        let length = u8::try_from(text.len()).ok().filter(|_| is_first && is_name)?;
        let mut bytes = [0; Self::LIMIT];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { bytes, length })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let text = self.bytes.get(..usize::from(self.length)).unwrap_or(&[]);
        core::str::from_utf8(text).unwrap_or("")
    }
}

impl core::fmt::Debug for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a kernel does with a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Direction {
    /// It reads.
    In,
    /// It writes.
    Out,
    /// It reads and writes.
    InOut,
}

impl Direction {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 3] = [Self::In, Self::Out, Self::InOut];

    /// The name in texts and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::InOut => "inout",
        }
    }

    /// Whether the kernel may read.
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::In | Self::InOut)
    }

    /// Whether the kernel may write.
    #[must_use]
    pub const fn is_written(self) -> bool {
        matches!(self, Self::Out | Self::InOut)
    }
}

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// A tile of a tensor.
    Tensor {
        /// What the kernel does with it.
        direction: Direction,
        /// The tile's type and extents.
        tile: TileType,
    },
    /// A scalar.
    Scalar(DType),
}

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// The parameter's name.
    pub name: Name,
    /// What it is.
    pub kind: ParamKind,
}

impl Param {
    /// The tile and what the kernel does with it, of a tensor.
    #[must_use]
    pub const fn tensor(&self) -> Option<(Direction, TileType)> {
        match self.kind {
            ParamKind::Tensor { direction, tile } => Some((direction, tile)),
            ParamKind::Scalar(_) => None,
        }
    }
}
