//! Layouts: the memory of a tensor, and the order of its elements.

use std::fmt;

/// The memory in which a tensor is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemorySpace {
    /// In memory of the host.
    Host,
    /// In memory of the host that the device can reach.
    Pinned,
    /// In the device's memory.
    #[default]
    Device,
    /// In the bounded fast region of the device.
    OnChip,
}

impl MemorySpace {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Host, Self::Pinned, Self::Device, Self::OnChip];

    /// The name in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Pinned => "pinned",
            Self::Device => "device",
            Self::OnChip => "on-chip",
        }
    }

    /// The memory with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|memory| memory.name() == name)
    }
}

/// The order of the elements in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Side by side, the last dimension the innermost one.
    #[default]
    RowMajor,
    /// At these distances, in elements, one for each dimension.
    Strided(Vec<u64>),
    /// A matrix in tiles: element (m, n) is at `[n / cols][m][n % cols]`, with as many rows as make whole tiles. Tiles of
    /// 16 rows and 32 bytes are the format NZ.
    Tiles {
        /// Rows of a tile.
        rows: u16,
        /// Columns of a tile.
        cols: u16,
    },
}

/// Bytes of a row of a tile in the format NZ.
const NZ_ROW_BYTES: usize = 32;
/// Rows of a tile in the format NZ.
const NZ_ROWS: u16 = 16;

impl Format {
    /// The format NZ for elements of this many bytes.
    #[must_use]
    pub fn nz(element_bytes: usize) -> Self {
        let cols = u16::try_from(NZ_ROW_BYTES / element_bytes.clamp(1, NZ_ROW_BYTES)).unwrap_or(1);
        Self::Tiles { rows: NZ_ROWS, cols }
    }

    /// A matrix whose columns are one after the other.
    #[must_use]
    pub fn column_major(shape: &[u64]) -> Self {
        let mut strides = Vec::with_capacity(shape.len());
        let mut stride = 1_u64;
        for extent in shape {
            strides.push(stride);
            stride = stride.saturating_mul(*extent);
        }
        Self::Strided(strides).normal(shape)
    }

    /// Returns row-major where this format is equivalent to it, else this format.
    #[must_use]
    pub fn normal(self, shape: &[u64]) -> Self {
        match self {
            Self::Strided(strides) if is_dense(&strides, shape) => Self::RowMajor,
            other => other,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RowMajor => f.write_str("row-major"),
            Self::Strided(strides) => write!(f, "strides {strides:?}"),
            Self::Tiles { rows, cols } => write!(f, "tiles {rows}x{cols}"),
        }
    }
}

/// The memory of a tensor, and the order of its elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorLayout {
    /// Where it is.
    pub memory: MemorySpace,
    /// The order of the elements.
    pub format: Format,
    /// The bits of the elements that only fill up tiles.
    pub padding: u64,
}

impl TensorLayout {
    /// In the device's memory, row-major.
    #[must_use]
    pub fn device() -> Self {
        Self::default()
    }

    /// Replaces the format of the layout.
    #[must_use]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Replaces the memory of the layout.
    #[must_use]
    pub fn with_memory(self, memory: MemorySpace) -> Self {
        Self { memory, ..self }
    }

    /// The extents in which the elements are in memory; of strides those of the tensor. `None`: the tensor has no such layout.
    #[must_use]
    pub fn storage_shape(&self, shape: &[u64]) -> Option<Vec<u64>> {
        match (&self.format, shape) {
            (Format::RowMajor, _) => Some(shape.to_vec()),
            (Format::Strided(strides), _) => keeps_apart(shape, strides).then(|| shape.to_vec()),
            (Format::Tiles { rows, cols }, [m, n]) if *rows > 0 && *cols > 0 => {
                let (rows, cols) = (u64::from(*rows), u64::from(*cols));
                Some(vec![n.div_ceil(cols), m.div_ceil(rows).checked_mul(rows)?, cols])
            }
            (Format::Tiles { .. }, _) => None,
        }
    }

    /// The distances of the elements in memory, one for each extent of [`storage_shape`](Self::storage_shape).
    #[must_use]
    pub fn strides(&self, shape: &[u64]) -> Option<Vec<u64>> {
        let stored = self.storage_shape(shape)?;
        match &self.format {
            Format::Strided(strides) => Some(strides.clone()),
            _ => Some(dense_strides(&stored)),
        }
    }

    /// Elements from the first one to after the last one, those that fill up tiles among them.
    #[must_use]
    pub fn elements(&self, shape: &[u64]) -> Option<u64> {
        let (stored, strides) = (self.storage_shape(shape)?, self.strides(shape)?);
        stored.iter().zip(strides).try_fold(1_u64, |last, (extent, stride)| {
            last.checked_add(extent.checked_sub(1)?.checked_mul(stride)?)
        })
    }

    /// Whether there are elements that no index of the tensor reaches.
    #[must_use]
    pub fn has_padding(&self, shape: &[u64]) -> bool {
        let reached: u64 = shape.iter().product();
        self.elements(shape).is_some_and(|elements| elements != reached)
    }
}

impl fmt::Display for TensorLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.memory.name(), self.format)?;
        if self.padding == 0 { Ok(()) } else { write!(f, ", padding bits {:#x}", self.padding) }
    }
}

/// The strides of contiguous elements.
#[must_use]
pub fn dense_strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1_u64; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim].saturating_mul(shape[dim]);
    }
    strides
}

/// Whether elements at these distances are contiguous. The distance of a dimension with one element does not matter.
fn is_dense(strides: &[u64], shape: &[u64]) -> bool {
    let dense = dense_strides(shape);
    let mut dims = strides.iter().zip(&dense).zip(shape);
    strides.len() == dense.len()
        && dims.all(|((found, dense), extent)| *extent < 2 || found == dense)
}

/// Whether no two indices are the same element: each distance is beyond all that the smaller ones reach.
fn keeps_apart(shape: &[u64], strides: &[u64]) -> bool {
    if shape.len() != strides.len() {
        return false;
    }
    let mut dims: Vec<_> = strides.iter().copied().zip(shape.iter().copied()).collect();
    dims.retain(|(_, extent)| *extent > 1);
    dims.sort_unstable();
    let mut reach = 0_u64;
    dims.into_iter().all(|(stride, extent)| {
        let is_beyond = stride > reach;
        reach = reach.saturating_add(stride.saturating_mul(extent - 1));
        is_beyond
    })
}

#[cfg(test)]
mod tests {
    use super::{Format, TensorLayout};

    #[test]
    fn nz_pads_to_whole_tiles() {
        let nz = TensorLayout::device().with_format(Format::nz(4));
        assert_eq!(nz.format, Format::Tiles { rows: 16, cols: 8 });
        assert_eq!(nz.storage_shape(&[20, 12]), Some(vec![2, 32, 8]));
        assert_eq!(nz.strides(&[20, 12]), Some(vec![256, 8, 1]));
        assert!(nz.has_padding(&[20, 12]) && !nz.has_padding(&[32, 16]));
        assert_eq!(nz.storage_shape(&[20]), None, "a vector has no tiles");
    }

    #[test]
    fn strides_that_overlap_are_no_layout() {
        let of = |strides: &[u64]| {
            TensorLayout::device().with_format(Format::Strided(strides.to_vec())).elements(&[4, 3])
        };
        assert_eq!(of(&[1, 4]), Some(12));
        assert_eq!(of(&[8, 1]), Some(27));
        assert_eq!(of(&[2, 1]), None);
        assert_eq!(of(&[0, 1]), None);
        assert_eq!(of(&[3]), None);
        assert_eq!(Format::column_major(&[4, 1]), Format::RowMajor.normal(&[4, 1]));
    }
}
