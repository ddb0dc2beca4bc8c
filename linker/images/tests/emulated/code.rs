//! What can be proved of an image's code without running it.

use std::collections::BTreeMap;

use object::{Object, ObjectSection, ObjectSymbol, SectionIndex, SectionKind};

/// Names of the panic machinery, as they stand in mangled symbols.
const PANIC_NAMES: &[&str] = &[
    "panicking",
    "rust_begin_unwind",
    "panic_fmt",
    "panic_bounds_check",
    "unwrap_failed",
    "expect_failed",
    "slice_index_fail",
    "slice_error_fail",
    "panic_const",
];

/// Sizes of an image, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Code.
    pub(crate) text: u64,
    /// Constants and notes.
    pub(crate) rodata: u64,
    /// Initialised variables.
    pub(crate) data: u64,
    /// Other variables.
    pub(crate) bss: u64,
}

/// The functions of the panic machinery that are in the image.
///
/// Method: the image is linked with `--gc-sections`, so that a function is in it only if something refers to
/// it. Every panic ends in the panic handler, which is then there under its name; with none of these
/// names in the symbol table no panic is reachable.
///
/// # Errors
/// When the file is none, or has no symbols to look at.
pub(crate) fn panic_symbols(elf: &[u8]) -> Result<Vec<String>, String> {
    let file = object::File::parse(elf).map_err(|error| error.to_string())?;
    let mut count = 0;
    let mut found = Vec::new();
    for symbol in file.symbols() {
        let name = symbol.name().map_err(|error| error.to_string())?;
        count += 1;
        if PANIC_NAMES.iter().any(|part| name.contains(part)) {
            found.push(name.to_owned());
        }
    }
    if count < 10 { Err("the image is stripped".to_owned()) } else { Ok(found) }
}

/// The sizes of an image.
///
/// # Errors
/// When the file is none.
pub(crate) fn sizes(elf: &[u8]) -> Result<Sizes, String> {
    let file = object::File::parse(elf).map_err(|error| error.to_string())?;
    let mut sizes = Sizes::default();
    for section in file.sections() {
        match section.kind() {
            SectionKind::Text => sizes.text += section.size(),
            SectionKind::ReadOnlyData | SectionKind::ReadOnlyString | SectionKind::Note => {
                sizes.rodata += section.size();
            }
            SectionKind::Data => sizes.data += section.size(),
            SectionKind::UninitializedData => sizes.bss += section.size(),
            _ => {}
        }
    }
    Ok(sizes)
}

/// The instructions of an image that `is_one` picks, with their addresses. What the image marks as data (`$d`, the ELF for the Arm 64-bit
/// architecture, mapping symbols) is none.
///
/// # Errors
/// When the file is none, or marks no instructions.
pub(crate) fn instructions(elf: &[u8], is_one: fn(u32) -> bool) -> Result<Vec<(u64, u32)>, String> {
    let file = object::File::parse(elf).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let code = section.data().map_err(|error| error.to_string())?;
        let marks = marks(&file, section.index())?;
        if !marks.values().any(|&is_code| is_code) {
            return Err("the image marks no instructions".to_owned());
        }
        for (address, bytes) in (section.address()..).step_by(4).zip(code.chunks_exact(4)) {
            let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            // A word that a constant begins in is data as a whole.
            let is_code = marks.range(..address + 4).next_back().is_some_and(|(_, &mark)| mark);
            if is_code && is_one(word) {
                found.push((address, word));
            }
        }
    }
    Ok(found)
}

/// Where instructions (true) and data (false) begin in a section.
fn marks(file: &object::File<'_>, section: SectionIndex) -> Result<BTreeMap<u64, bool>, String> {
    let mut marks = BTreeMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.section_index() == Some(section)) {
        let name = symbol.name().map_err(|error| error.to_string())?;
        match name.split('.').next() {
            Some("$x") => {
                marks.insert(symbol.address(), true);
            }
            // An empty object may end where code begins.
            Some("$d") => {
                marks.entry(symbol.address()).or_insert(false);
            }
            _ => {}
        }
    }
    Ok(marks)
}

/// `BRK`: what an abort or an unreachable panic becomes.
#[must_use]
pub(crate) const fn is_breakpoint(word: u32) -> bool {
    word & 0xFFE0_001F == 0xD420_0000
}

/// Scalar floating-point arithmetic, comparison and conversion; not the moves that copy memory.
#[must_use]
pub(crate) const fn is_floating_point(word: u32) -> bool {
    let scalar = word & 0x5F20_0000 == 0x1E20_0000 || word & 0x5F00_0000 == 0x1F00_0000;
    // FMOV between general and vector registers, or of a register, computes nothing.
    let moves = word & 0x5F36_FC00 == 0x1E26_0000 || word & 0x5F3F_FC00 == 0x1E20_4000;
    scalar && !moves
}
