//! Layouts and roles as a user writes them: in commands, in Python and in C.
//!
//! A layout is read in the form in which it is shown: `device, row-major`, `on-chip, tiles 16x8`, `device, strides [1, 32]`. The memory may be left
//! out, and `nz` and `column-major` are short for what they are of a given tensor.

use super::content::Program;
use super::description::{Role, TensorDescription};
use super::error::ProgramError;
use super::layout::{Format, MemorySpace, TensorLayout};
use pto_aicore_kernels::tile::DType;

impl TensorLayout {
    /// Reads a layout of a tensor of this element type and these extents; what is wrong with the text otherwise.
    ///
    /// # Errors
    /// The text is no layout.
    pub fn parse(text: &str, dtype: DType, shape: &[u64]) -> Result<Self, String> {
        let (memory, rest) = match text.split_once(", ") {
            Some((memory, rest)) if MemorySpace::from_name(memory).is_some() => {
                (MemorySpace::from_name(memory).unwrap_or_default(), rest)
            }
            _ => (MemorySpace::Device, text),
        };
        let (format, padding) = match rest.split_once(", padding bits ") {
            Some((format, bits)) => (format, padding_bits(bits).ok_or_else(|| unknown(text))?),
            None => (rest, 0),
        };
        let format = format_of(format, dtype, shape).ok_or_else(|| unknown(text))?;
        Ok(Self { memory, format: format.normal(shape), padding })
    }
}

fn padding_bits(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn format_of(text: &str, dtype: DType, shape: &[u64]) -> Option<Format> {
    match text {
        "row-major" => Some(Format::RowMajor),
        "column-major" => Some(Format::column_major(shape)),
        "nz" => Some(Format::nz(dtype.bytes())),
        _ => match (text.strip_prefix("tiles "), text.strip_prefix("strides ")) {
            (Some(tile), _) => tiles(tile),
            (_, Some(list)) => strides(list, shape.len()),
            _ => None,
        },
    }
}

fn tiles(text: &str) -> Option<Format> {
    let (rows, cols) = pair(text)?;
    let (rows, cols) = (u16::try_from(rows).ok()?, u16::try_from(cols).ok()?);
    (rows > 0 && cols > 0).then_some(Format::Tiles { rows, cols })
}

fn strides(text: &str, rank: usize) -> Option<Format> {
    let list = text.strip_prefix('[')?.strip_suffix(']')?;
    let strides: Option<Vec<u64>> = list.split(", ").map(|one| one.parse().ok()).collect();
    strides.filter(|strides| strides.len() == rank).map(Format::Strided)
}

fn pair(text: &str) -> Option<(u64, u64)> {
    let (rows, cols) = text.split_once('x')?;
    Some((rows.parse().ok()?, cols.parse().ok()?))
}

fn unknown(text: &str) -> String {
    format!(
        "'{text}' is no layout; write row-major, column-major, nz, 'tiles RxC' or 'strides [..]', with a memory in front of it where it is not \
         the device ('on-chip, row-major'); of a matrix in tiles also its extents ('nz:ROWSxCOLS')"
    )
}

impl TensorDescription {
    /// Gives the tensor the layout of this text. Where the plan uses the tiles as they lie in memory, the text ends with the extents of
    /// the matrix: `nz:500x300`.
    ///
    /// # Errors
    /// The text is no layout; tiles without the extents of the matrix.
    pub fn set_layout(&mut self, text: &str) -> Result<(), String> {
        let (layout, extents) = match text.split_once(':') {
            Some((layout, extents)) => (layout, Some(extents)),
            None => (text, None),
        };
        let shape = match extents.map(|extents| (extents, pair(extents))) {
            None => self.shape.clone(),
            Some((_, Some((rows, cols)))) => vec![rows, cols],
            Some((extents, None)) => {
                return Err(format!("'{extents}' is no matrix; write ROWSxCOLS"));
            }
        };
        let layout = TensorLayout::parse(layout, self.dtype, &shape)?;
        if matches!(layout.format, Format::Tiles { .. }) && extents.is_none() {
            return Err(format!(
                "'{text}' does not say the extents of the matrix; write '{text}:ROWSxCOLS'"
            ));
        }
        (self.shape, self.layout) = (shape, layout);
        Ok(())
    }
}

impl TensorDescription {
    /// The description of a tensor as texts: its role (`input`, `output`, `updated`, `temporary`), its element type, its layout. Of an output no one
    /// knows which elements a kernel writes, so that it begins with zeros. What is wrong with a text otherwise.
    ///
    /// # Errors
    /// A text is not what it should be.
    pub fn of_texts(
        name: &str,
        role: &str,
        element: &str,
        shape: &[u64],
        layout: &str,
    ) -> Result<Self, String> {
        let dtype = DType::from_name(element).ok_or_else(|| {
            let known: Vec<_> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            format!("'{element}' is no element type; there are {}", known.join(", "))
        })?;
        let known = Role::from_name(role).filter(|role| *role != Role::Constant);
        let role = known.ok_or_else(|| {
            format!("'{role}' is no role here; use input, output, updated or temporary")
        })?;
        Ok(Self {
            name: name.to_owned(),
            role,
            dtype,
            shape: shape.to_vec(),
            layout: TensorLayout::parse(layout, dtype, shape)?,
            begins_with_zeros: role == Role::Output,
        })
    }
}

impl Program {
    /// The program with the layout of this text for a tensor.
    ///
    /// # Errors
    /// There is no such tensor; the text is no layout; the plan does not have the extents that the layout takes in memory.
    pub fn with_layout_text(self, name: &str, text: &str) -> Result<Self, ProgramError> {
        let mut wrong = None;
        let program = self.with_tensor(name, |tensor| wrong = tensor.set_layout(text).err())?;
        match wrong {
            None => Ok(program),
            Some(what) => {
                let what = format!("cannot have this layout: {what}");
                Err(ProgramError::Tensor { name: name.to_owned(), what })
            }
        }
    }

    /// The program with another role for a tensor that its tasks write: output, updated or temporary.
    ///
    /// # Errors
    /// There is no such tensor; no task writes it; the role is another one.
    pub fn with_role(self, name: &str, role: Role) -> Result<Self, ProgramError> {
        let refused =
            |what: &str| Err(ProgramError::Tensor { name: name.to_owned(), what: what.to_owned() });
        if !matches!(role, Role::Output | Role::Updated | Role::Temporary) {
            return refused("cannot have this role; use output, updated or temporary");
        }
        if matches!(self.tensor(name)?.role, Role::Input | Role::Constant) {
            return refused("cannot have another role, because no task writes it");
        }
        self.with_tensor(name, |tensor| {
            tensor.begins_with_zeros &= role == Role::Temporary;
            tensor.role = role;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Format, MemorySpace, Role, TensorDescription, TensorLayout};
    use pto_aicore_kernels::tile::DType;

    fn set(text: &str) -> Result<TensorDescription, String> {
        let mut tensor = TensorDescription {
            name: "w".to_owned(),
            role: Role::Input,
            dtype: DType::BF16,
            shape: vec![4, 6],
            layout: TensorLayout::device(),
            begins_with_zeros: false,
        };
        tensor.set_layout(text).map(|()| tensor)
    }

    #[test]
    fn layouts_are_read() {
        let nz = set("nz:500x300").unwrap();
        assert_eq!(
            (nz.layout.format, nz.shape),
            (Format::Tiles { rows: 16, cols: 16 }, vec![500, 300])
        );
        assert_eq!(
            set("tiles 8x32:9x9").unwrap().layout.format,
            Format::Tiles { rows: 8, cols: 32 }
        );
        assert_eq!(set("column-major").unwrap().layout.format, Format::Strided(vec![1, 4]));
        assert_eq!(set("on-chip, row-major").unwrap().layout.memory, MemorySpace::OnChip);
        assert!(set("nz").unwrap_err().contains("write 'nz:ROWSxCOLS'"));
        assert!(set("fractal").unwrap_err().contains("no layout"));
        assert!(set("tiles 0x8:4x4").is_err() && set("nz:4").is_err());
        assert!(set("strides [1]").is_err() && set("moon, row-major").is_err());
    }

    #[test]
    fn what_is_shown_is_read_again() {
        for memory in MemorySpace::ALL {
            let strided = Format::Strided(vec![1, 9]);
            for format in [Format::RowMajor, strided, Format::Tiles { rows: 16, cols: 8 }] {
                for padding in [0, 0x7fc0] {
                    let layout = TensorLayout { memory, format: format.clone(), padding };
                    let read = TensorLayout::parse(&layout.to_string(), DType::F32, &[9, 5]);
                    assert_eq!(read.as_ref(), Ok(&layout));
                }
            }
        }
    }
}
