//! Constants that a shared or relocatable object has, read from the bytes of its file: nothing of the object is loaded, and it may be for another machine.

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};

use crate::failure::{Failure, FailureKind};

/// The words of 32 bits of the array `symbol`. `None`: the object has no such symbol.
///
/// # Errors
/// `OBJECT_FORMAT`: the bytes are no object, or the array is not in its file as whole words.
pub fn words(bytes: &[u8], symbol: &str) -> Result<Option<Vec<u32>>, Failure> {
    let broken = |why: String| Failure::new(FailureKind::OBJECT_FORMAT, why);
    let file = ElfFile64::<Endianness>::parse(bytes)
        .map_err(|error| broken(format!("it is no object file: {error}")))?;
    let mut symbols = file.symbols().chain(file.dynamic_symbols());
    let found = symbols.find(|held| held.is_definition() && held.name() == Ok(symbol));
    let Some(found) = found else { return Ok(None) };
    let section = found.section_index().and_then(|index| file.section_by_index(index).ok());
    let data = section
        .and_then(|section| section.data_range(found.address(), found.size()).ok().flatten());
    let (words, rest) = data.unwrap_or_default().as_chunks::<4>();
    if words.is_empty() || !rest.is_empty() {
        return Err(broken(format!(
            "`{symbol}` is no array of constants of 32 bits in the file: declare it as `const uint32_t {symbol}[] = {{ .. }}`"
        )));
    }
    let word = |bytes: &[u8; 4]| match file.endian() {
        Endianness::Little => u32::from_le_bytes(*bytes),
        Endianness::Big => u32::from_be_bytes(*bytes),
    };
    Ok(Some(words.iter().map(word).collect()))
}
