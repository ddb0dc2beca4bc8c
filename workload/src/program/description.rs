//! What a program says of a tensor.

use pto_graph::plan::layout::limits;

use super::layout::TensorLayout;
use pto_aicore_kernels::tile::DType;

/// What a tensor is to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The program reads it.
    Input,
    /// The program writes it, and reads nothing of it that it has not written.
    Output,
    /// The program reads it and writes it.
    Updated,
    /// The program needs it between its tasks only.
    Temporary,
    /// The program reads it, and its elements are in the file.
    Constant,
}

impl Role {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 5] =
        [Self::Input, Self::Output, Self::Updated, Self::Temporary, Self::Constant];

    /// The name in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Updated => "updated",
            Self::Temporary => "temporary",
            Self::Constant => "constant",
        }
    }

    /// The role with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Whether the person who runs the program has to give the tensor.
    #[must_use]
    pub const fn is_given(self) -> bool {
        matches!(self, Self::Input | Self::Updated)
    }
}

/// A tensor of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorDescription {
    /// The tensor's name.
    pub name: String,
    /// What it is to the program.
    pub role: Role,
    /// The tensor's element type.
    pub dtype: DType,
    /// The tensor's extents; 1 to 5 of them, each at least 1.
    pub shape: Vec<u64>,
    /// The layout that the program needs.
    pub layout: TensorLayout,
    /// Of an output or a temporary: it has to hold zeros when the program begins.
    pub begins_with_zeros: bool,
}

/// Bytes of a name, at most.
const NAME_BYTES: usize = 128;
/// Bytes of a tensor, at most.
const TENSOR_BYTES: u64 = 1 << 48;

/// Why a file cannot hold a name, in words that follow it; `None`: it can. The writer asks as the reader does, so that what one
/// writes the other reads.
pub(super) fn name_defect(name: &str) -> Option<String> {
    if name.is_empty() || name.len() > NAME_BYTES {
        return Some(format!("has a name of {} bytes; use 1 to {NAME_BYTES}", name.len()));
    }
    let is_control = name.chars().any(char::is_control);
    is_control.then(|| "has a name with control characters; use others".to_owned())
}

impl TensorDescription {
    /// Bytes that it takes in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let elements = self.layout.elements(&self.shape).unwrap_or(u64::MAX);
        elements.saturating_mul(self.dtype.bytes() as u64)
    }

    /// What is wrong with it, in words that follow its name; `None`: nothing.
    #[must_use]
    pub fn defect(&self) -> Option<String> {
        if let Some(what) = name_defect(&self.name) {
            return Some(what);
        }
        if !(1..=limits::RANK).contains(&self.shape.len()) {
            let (found, most) = (self.shape.len(), limits::RANK);
            return Some(format!("has {found} dimensions; use 1 to {most}"));
        }
        let is_extent = |extent: &u64| (1..=u64::from(u32::MAX)).contains(extent);
        if let Some(extent) = self.shape.iter().find(|extent| !is_extent(extent)) {
            return Some(format!("has a dimension of {extent} places; use 1 to {}", u32::MAX));
        }
        if self.layout.elements(&self.shape).is_none() {
            return Some(format!(
                "cannot have the layout '{}' with the extents {:?}; tiles need two dimensions, and strides keep elements apart",
                self.layout, self.shape
            ));
        }
        let bits = 8 * self.dtype.bytes();
        if bits < 64 && self.layout.padding >> bits != 0 {
            return Some(format!(
                "is filled up with elements of the bits {:#x}, and an element of type {} has {bits} bits",
                self.layout.padding, self.dtype
            ));
        }
        let bytes = self.bytes();
        (bytes > TENSOR_BYTES).then(|| format!("takes {bytes} bytes; use at most {TENSOR_BYTES}"))
    }
}

impl std::fmt::Display for TensorDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, role, dtype, shape, layout, .. } = self;
        write!(f, "{} {name} : {dtype}{shape:?}, {layout}", role.name())
    }
}
