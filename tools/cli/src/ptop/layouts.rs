//! Layouts as a user writes them.

use pto_host::workloads::program::{Format, Layout, TensorDescription};

/// Gives a tensor the layout of this text; what is wrong with the text otherwise.
pub(super) fn set_layout(tensor: &mut TensorDescription, text: &str) -> Result<(), String> {
    let (format, extents) = match text.split_once(':') {
        Some((format, extents)) => (format, Some(extents)),
        None => (text, None),
    };
    if let Some(extents) = extents {
        tensor.shape = pair(extents)
            .map(|(rows, cols)| vec![rows, cols])
            .ok_or_else(|| format!("'{extents}' is no matrix; write ROWSxCOLS"))?;
    }
    let format = match (format, format.strip_prefix("tiles ")) {
        ("row-major", _) => Format::RowMajor,
        ("column-major", _) => Format::column_major(&tensor.shape),
        ("nz", _) => Format::nz(tensor.dtype.bytes()),
        (_, Some(tile)) => tiles(tile).ok_or_else(|| unknown(text))?,
        _ => return Err(unknown(text)),
    };
    if matches!(format, Format::Tiles { .. }) && extents.is_none() {
        return Err(format!(
            "'{text}' does not say the extents of the matrix; write '{text}:ROWSxCOLS'"
        ));
    }
    tensor.layout = Layout { format, ..tensor.layout.clone() };
    Ok(())
}

fn unknown(text: &str) -> String {
    format!(
        "'{text}' is no layout; write row-major, column-major, nz:ROWSxCOLS or 'tiles RxC:ROWSxCOLS'"
    )
}

fn tiles(text: &str) -> Option<Format> {
    let (rows, cols) = pair(text)?;
    let (rows, cols) = (u16::try_from(rows).ok()?, u16::try_from(cols).ok()?);
    (rows > 0 && cols > 0).then_some(Format::Tiles { rows, cols })
}

fn pair(text: &str) -> Option<(u64, u64)> {
    let (rows, cols) = text.split_once('x')?;
    Some((rows.parse().ok()?, cols.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::set_layout;
    use pto_host::workloads::program::{Format, Layout, Role, TensorDescription};
    use pto_host::workloads::tile::DType;

    fn set(text: &str) -> Result<TensorDescription, String> {
        let mut tensor = TensorDescription {
            name: "w".to_owned(),
            role: Role::Input,
            dtype: DType::BF16,
            shape: vec![4, 6],
            layout: Layout::device(),
            begins_with_zeros: false,
        };
        set_layout(&mut tensor, text).map(|()| tensor)
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
        assert!(set("nz").unwrap_err().contains("write 'nz:ROWSxCOLS'"));
        assert!(set("fractal").unwrap_err().contains("no layout"));
        assert!(set("tiles 0x8:4x4").is_err() && set("nz:4").is_err());
    }
}
