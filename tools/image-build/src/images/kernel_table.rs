//! The kernels that a source in C or C++ lists in the array of `pto_kernels.h`. The source is compiled for the device, and the array is read from the
//! object: nothing of it runs here.

use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{
    Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionIndex,
    SymbolKind,
};
use pto_host::abi::CoreKind;

use super::cargo::sources;
use super::{BuildError, KernelSource};
use crate::sources::{TABLE, compile_table};

/// `struct pto_kernel`: func, kind, then the addresses of name, names of arguments, function.
const ENTRY_BYTES: usize = 32;
const NAME: u64 = 8;
const FUNCTION: u64 = 24;

type Object<'b> = ElfFile64<'b, Endianness>;

/// The kernels of a file, as a blob has them. `includes` are folders of headers, besides ours and its own.
pub(super) fn of_file(path: &Path, includes: &[PathBuf]) -> Result<Vec<KernelSource>, BuildError> {
    let wrong = |what: String| BuildError::Kernel(format!("'{}' {what}", path.display()));
    let folder =
        tempfile::tempdir().map_err(|error| wrong(format!("cannot be compiled: {error}")))?;
    let object = folder.path().join("kernels.o");
    let ours = sources().join("bindings/include");
    let includes: Vec<_> = includes.iter().cloned().chain([ours]).collect();
    compile_table(path, &includes, &object)
        .map_err(|refused| BuildError::Kernel(refused.to_string()))?;
    let bytes = std::fs::read(&object)
        .map_err(|source| BuildError::File { path: object.clone(), source })?;
    let file = Object::parse(&*bytes).map_err(|error| wrong(error.to_string()))?;
    entries(&file, path).map_err(wrong)
}

fn entries(file: &Object<'_>, path: &Path) -> Result<Vec<KernelSource>, String> {
    let table = file.symbols().find(|symbol| symbol.name() == Ok(TABLE) && symbol.is_definition());
    let table = table.ok_or_else(|| {
        format!("has no array `{TABLE}`: define it with PTO_KERNELS, as pto_kernels.h says")
    })?;
    let section = table.section_index().and_then(|index| file.section_by_index(index).ok());
    let section = section.ok_or_else(|| format!("has `{TABLE}` in no section"))?;
    let data = section.data().map_err(|error| error.to_string())?;
    let begin = usize::try_from(table.address()).unwrap_or(usize::MAX);
    let size = usize::try_from(table.size()).unwrap_or(usize::MAX);
    let bytes = data.get(begin..).and_then(|rest| rest.get(..size));
    let bytes = bytes.ok_or_else(|| format!("has `{TABLE}` without contents"))?;
    if size == 0 || !size.is_multiple_of(ENTRY_BYTES) {
        return Err(format!(
            "has {size} bytes in `{TABLE}`, and an entry of pto_kernels.h has {ENTRY_BYTES}"
        ));
    }
    let mut kernels = Vec::new();
    for (number, entry) in bytes.chunks_exact(ENTRY_BYTES).enumerate() {
        let at = table.address() + (number * ENTRY_BYTES) as u64;
        let said = |what: &str| format!("has no {what} in {TABLE}[{number}]");
        let target = |field: u64| {
            section.relocations().find(|(place, _)| *place == at + field).and_then(|(_, one)| {
                let (section, base) = match one.target() {
                    RelocationTarget::Section(index) => (index, 0),
                    RelocationTarget::Symbol(index) => {
                        let symbol = file.symbol_by_index(index).ok()?;
                        (symbol.section_index()?, symbol.address())
                    }
                    _ => return None,
                };
                Some((section, base.checked_add_signed(one.addend())?))
            })
        };
        let word = |from: usize| {
            entry
                .get(from..from + 4)
                .and_then(|word| Some(u32::from_le_bytes(word.try_into().ok()?)))
        };
        let (func_id, kind) = word(0).zip(word(4)).ok_or_else(|| said("numbers"))?;
        let kind = u8::try_from(kind).ok().and_then(|kind| CoreKind::try_from(kind).ok());
        let name = target(NAME).and_then(|place| text(file, place));
        kernels.push(KernelSource {
            func_id,
            kind: kind.ok_or_else(|| said("kind that is PTO_AIC or PTO_AIV"))?,
            name: name.ok_or_else(|| said("name"))?,
            function: target(FUNCTION)
                .and_then(|place| function(file, place))
                .ok_or_else(|| said("function of this file"))?,
            path: path.to_path_buf(),
        });
    }
    Ok(kernels)
}

/// The text at a place of a section, up to its zero.
fn text(file: &Object<'_>, (section, place): (SectionIndex, u64)) -> Option<String> {
    let data = file.section_by_index(section).ok()?.data().ok()?;
    let rest = data.get(usize::try_from(place).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    String::from_utf8(rest.get(..end)?.to_vec()).ok()
}

/// The name of the function that begins at a place of a section.
fn function(file: &Object<'_>, (section, place): (SectionIndex, u64)) -> Option<String> {
    let is_it = |symbol: &object::read::elf::ElfSymbol64<'_, '_, Endianness>| {
        symbol.kind() == SymbolKind::Text
            && symbol.section_index() == Some(section)
            && symbol.address() == place
    };
    file.symbols().find(is_it).and_then(|symbol| Some(symbol.name().ok()?.to_owned()))
}
