//! The frame of a program file: header, table of sections, seal.
//!
//! ```text
//! header (64 bytes)  'PTOPROG\n' | major, minor, sections | bytes of the file | SHA-256, computed with zeros here
//! table (24 bytes each)  kind, flags | offset | bytes
//! sections           each at a multiple of 8, in the order of the table, zeros between them
//! ```
//! Every number is little-endian. A reader refuses another major version. It refuses a section that it does not know if the
//! section's flag says that it is needed, and keeps a list of the others. A file has one form only: whatever is not said here is zero.

use std::ops::Range;

use sha2::{Digest, Sha256};

use super::error::ProgramError;
use super::version::{MAGIC, MAJOR, MINOR};

const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 24;
const CHECKSUM: Range<usize> = 24..56;
/// Sections of a file, at most.
const MOST_SECTIONS: usize = 64;
/// In the flags of a section: a reader has to know it.
const NEEDED: u32 = 1;

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Name, producer, target, versions, hash of the tensors.
    About,
    /// The descriptions of the tensors.
    Tensors,
    /// The symbols and arrays that are bound by name.
    Names,
    /// The words of a plan.
    Plan,
    /// The tile kernels of a plan.
    Kernels,
    /// Which words of a plan are which loop, kernel and argument.
    Places,
    /// The tasks of a graph.
    Graph,
    /// The elements of constant tensors.
    Constants,
    /// The text of the workload.
    Source,
    /// Kernels as machine code.
    Native,
    /// What tasks of a graph are beyond one kernel on one core.
    Shapes,
    /// The name of a builder program of the device, and its words.
    Builder,
    /// Types of inputs and outputs, and names of nodes, of the model that the program was made of.
    Model,
}

impl Kind {
    const ALL: [Self; 13] = [
        Self::About,
        Self::Tensors,
        Self::Names,
        Self::Plan,
        Self::Kernels,
        Self::Places,
        Self::Graph,
        Self::Constants,
        Self::Source,
        Self::Native,
        Self::Shapes,
        Self::Builder,
        Self::Model,
    ];

    const fn code(self) -> u32 {
        self as u32 + 1
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::About => "about",
            Self::Tensors => "tensors",
            Self::Names => "names",
            Self::Plan => "plan",
            Self::Kernels => "kernels",
            Self::Places => "places",
            Self::Graph => "graph",
            Self::Constants => "constants",
            Self::Source => "source",
            Self::Native => "native",
            Self::Shapes => "shapes",
            Self::Builder => "builder",
            Self::Model => "model",
        }
    }

    /// Whether a reader that does not know it may pass over it.
    const fn is_optional(self) -> bool {
        matches!(self, Self::Source | Self::Places | Self::Model)
    }

    const fn flags(self) -> u32 {
        if self.is_optional() { 0 } else { NEEDED }
    }
}

/// A section of a file, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The section's name; of one that this reader does not know, its number.
    pub name: String,
    /// Where it begins.
    pub offset: usize,
    /// The section's bytes.
    pub bytes: usize,
    /// Whether this reader knows what it holds.
    pub is_known: bool,
}

/// The sections of a file that was checked.
pub(super) struct Sections<'f> {
    known: Vec<(Kind, &'f [u8])>,
    pub(super) listed: Vec<Section>,
}

impl<'f> Sections<'f> {
    pub(super) fn get(&self, kind: Kind) -> Option<&'f [u8]> {
        self.known.iter().find(|(known, _)| *known == kind).map(|(_, content)| *content)
    }

    pub(super) fn need(&self, kind: Kind) -> Result<&'f [u8], ProgramError> {
        self.get(kind).ok_or(ProgramError::MissingSection { section: kind.name() })
    }
}

fn word<const N: usize>(file: &[u8], at: usize) -> [u8; N] {
    file.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

fn size(file: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_le_bytes(word(file, at))).unwrap_or(usize::MAX)
}

fn broken(at: usize, what: impl Into<String>) -> ProgramError {
    ProgramError::Section { section: "table of sections", at, what: what.into() }
}

/// Takes a file apart, and checks its frame completely.
pub(super) fn take_apart(file: &[u8]) -> Result<Sections<'_>, ProgramError> {
    if !file.starts_with(MAGIC) {
        let found = file.get(..8).unwrap_or(file).to_vec();
        return Err(ProgramError::NotAProgram { found });
    }
    let [major, minor] = [8, 10].map(|at| u16::from_le_bytes(word(file, at)));
    if major != MAJOR {
        return Err(ProgramError::Version { found: format!("{major}.{minor}") });
    }
    if size(file, 16) != file.len() || file.len() < HEADER_BYTES {
        let (said, found) = (size(file, 16), file.len());
        return Err(broken(16, format!("the file should have {said} bytes, and has {found}")));
    }
    let (sealed, found) = (file[CHECKSUM].to_vec(), digest(file));
    if sealed != found {
        let (sealed, found) = (hex(&sealed), hex(&found));
        return Err(ProgramError::Checksum { sealed, found });
    }
    let count = usize::try_from(u32::from_le_bytes(word(file, 12))).unwrap_or(usize::MAX);
    if count > MOST_SECTIONS || word::<8>(file, 56) != [0; 8] {
        return Err(broken(12, format!("{count} sections, of at most {MOST_SECTIONS}")));
    }
    let mut sections = Sections { known: Vec::new(), listed: Vec::new() };
    let mut end = HEADER_BYTES + count * ENTRY_BYTES;
    for entry in 0..count {
        end = take_section(file, entry, end, &mut sections)?;
    }
    if end == file.len() { Ok(sections) } else { Err(broken(0, "bytes after the last section")) }
}

/// Takes the section of an entry, after `end`; returns its end.
fn take_section<'f>(
    file: &'f [u8],
    entry: usize,
    end: usize,
    sections: &mut Sections<'f>,
) -> Result<usize, ProgramError> {
    let at = HEADER_BYTES + entry * ENTRY_BYTES;
    let [code, flags] = [at, at + 4].map(|at| u32::from_le_bytes(word(file, at)));
    let (offset, bytes) = (size(file, at + 8), size(file, at + 16));
    let content = offset.checked_add(bytes).and_then(|after| file.get(offset..after));
    let content = content.filter(|_| offset == end.next_multiple_of(8));
    let content = content.ok_or_else(|| broken(at, "a section that is not in the file"))?;
    let known = Kind::ALL.into_iter().find(|kind| kind.code() == code);
    let has_flags = known.map_or(flags & !NEEDED == 0, |kind| flags == kind.flags());
    if !has_flags || file[end..offset].iter().any(|byte| *byte != 0) {
        return Err(broken(at, "bits that have no meaning are set"));
    }
    match known {
        Some(kind) if sections.get(kind).is_some() => {
            return Err(broken(at, format!("section '{}' is there twice", kind.name())));
        }
        Some(kind) => sections.known.push((kind, content)),
        None if flags & NEEDED != 0 => return Err(ProgramError::UnknownSection { kind: code }),
        None => {}
    }
    let name = known.map_or_else(|| format!("section {code}"), |kind| kind.name().to_owned());
    sections.listed.push(Section { name, offset, bytes, is_known: known.is_some() });
    Ok(offset + bytes)
}

/// Puts sections together, and seals the file.
pub(super) fn put_together(sections: &[(Kind, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0; HEADER_BYTES + sections.len() * ENTRY_BYTES];
    file[..8].copy_from_slice(MAGIC);
    file[8..10].copy_from_slice(&MAJOR.to_le_bytes());
    file[10..12].copy_from_slice(&MINOR.to_le_bytes());
    let count = u32::try_from(sections.len()).unwrap_or(u32::MAX);
    file[12..16].copy_from_slice(&count.to_le_bytes());
    for (entry, (kind, content)) in sections.iter().enumerate() {
        file.resize(file.len().next_multiple_of(8), 0);
        let head = [u64::from(kind.code()) | u64::from(kind.flags()) << 32, file.len() as u64];
        let words = [head[0], head[1], content.len() as u64].map(u64::to_le_bytes);
        let at = HEADER_BYTES + entry * ENTRY_BYTES;
        file[at..at + ENTRY_BYTES].copy_from_slice(words.as_flattened());
        file.extend(content);
    }
    let bytes = file.len() as u64;
    file[16..24].copy_from_slice(&bytes.to_le_bytes());
    seal(&mut file);
    file
}

/// Writes the checksum of the content into a file; bytes that are too few for one stay as they are.
pub fn seal(file: &mut [u8]) {
    if file.len() >= HEADER_BYTES {
        let digest = digest(file);
        file[CHECKSUM].copy_from_slice(&digest);
    }
}

/// The SHA-256 of a file with zeros instead of its checksum.
fn digest(file: &[u8]) -> Vec<u8> {
    let (before, rest) = file.split_at(CHECKSUM.start);
    let after = rest.get(CHECKSUM.len()..).unwrap_or(&[]);
    let digest = Sha256::new().chain_update(before).chain_update([0; 32]).chain_update(after);
    digest.finalize().to_vec()
}

/// The first eight bytes of a SHA-256, as a number.
pub(super) fn short_hash(bytes: &[u8]) -> u64 {
    Sha256::digest(bytes).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Bytes as text.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The checksum in a sealed file, as text.
#[must_use]
pub fn checksum(file: &[u8]) -> String {
    hex(file.get(CHECKSUM).unwrap_or(&[]))
}

#[cfg(test)]
mod tests {
    use super::{ENTRY_BYTES, HEADER_BYTES, Kind, put_together, seal, take_apart};
    use crate::program::ProgramError;

    /// A file with a section whose kind this reader does not know.
    fn with_unknown(flags: u32) -> Vec<u8> {
        let sections = [(Kind::About, vec![1, 2, 3]), (Kind::Source, vec![4])];
        let mut file = put_together(&sections);
        let at = HEADER_BYTES + ENTRY_BYTES;
        file[at..at + 4].copy_from_slice(&77_u32.to_le_bytes());
        file[at + 4..at + 8].copy_from_slice(&flags.to_le_bytes());
        seal(&mut file);
        file
    }

    #[test]
    fn a_section_of_the_future_is_listed_or_refused() {
        let file = with_unknown(0);
        let sections = take_apart(&file).unwrap();
        assert_eq!(sections.get(Kind::About), Some(&[1, 2, 3][..]));
        let listed: Vec<_> =
            sections.listed.iter().map(|one| (one.name.as_str(), one.is_known)).collect();
        assert_eq!(listed, [("about", true), ("section 77", false)]);
        let refused = take_apart(&with_unknown(1)).err();
        assert_eq!(refused, Some(ProgramError::UnknownSection { kind: 77 }));
        let has_no_meaning = take_apart(&with_unknown(2)).err();
        assert!(matches!(has_no_meaning, Some(ProgramError::Section { .. })));
    }

    #[test]
    fn another_minor_version_is_read_and_another_major_one_is_not() {
        let mut file = put_together(&[(Kind::About, Vec::new())]);
        file[10] = 9;
        seal(&mut file);
        assert!(take_apart(&file).is_ok());
        file[8] = 2;
        seal(&mut file);
        let refused = take_apart(&file).err().unwrap().to_string();
        assert!(refused.contains("version 2.9") && refused.contains("wants 1.0"), "{refused}");
    }
}
