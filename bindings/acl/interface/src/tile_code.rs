//! The first bytes of a file with kernels in tile IR, by which loaders distinguish it from an object.

/// The file formats of kernels in tile IR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileCode {
    /// A program file.
    Program,
    /// A text.
    Text,
}

impl TileCode {
    /// The first bytes of a program file.
    pub const PROGRAM: &'static [u8; 8] = b"PTOPROG\n";

    /// What a file is that begins with these bytes; `None`: something else.
    #[must_use]
    pub fn of(first: &[u8]) -> Option<Self> {
        if first.starts_with(Self::PROGRAM) {
            return Some(Self::Program);
        }
        is_text(first).then_some(Self::Text)
    }
}

/// Whether the first line that is no comment begins with a kernel.
fn is_text(first: &[u8]) -> bool {
    let mut lines = first.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
    let line = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
    let rest = line.and_then(|line| line.strip_prefix(b"kernel"));
    rest.is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

#[cfg(test)]
mod tests {
    use super::TileCode;

    #[test]
    fn objects_and_other_texts_are_no_tile_code() {
        let of = |text: &str| TileCode::of(text.as_bytes());
        assert_eq!(of("PTOPROG\n\x01"), Some(TileCode::Program));
        assert_eq!(of("kernel k(x: inout f32[1, 8]) {"), Some(TileCode::Text));
        assert_eq!(of("# kernels\n\n  # more\n \tkernel k("), Some(TileCode::Text));
        for text in ["", "\x7fELF", "PTOPROG", "kernels are", "# kernel k(", "a\nkernel k("] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
