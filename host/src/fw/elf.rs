//! The ELF container, checked field by field: nothing of it is believed before it has been compared with the
//! size of the file.

use object::elf::{
    ELFCLASS64, ELFDATA2LSB, ELFMAG, ELFOSABI_GNU, EM_AARCH64, EM_NONE, EM_X86_64, ET_DYN, ET_EXEC,
    EV_CURRENT, FileHeader64, NT_GNU_BUILD_ID, PF_X, PT_LOAD, ProgramHeader64, SHF_ALLOC,
    SHF_EXECINSTR, SHF_WRITE, SHT_NOBITS, SHT_NOTE, SHT_NULL, SectionHeader64,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, pod};

use crate::fw::error::ImageError;
use crate::fw::kind::Machine;

type Header = FileHeader64<LittleEndian>;
type Segment = ProgramHeader64<LittleEndian>;
const LE: LittleEndian = LittleEndian;

/// A section of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The section's name.
    pub name: String,
    /// Where it is loaded; 0: nowhere.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// The offset in the file.
    pub offset: u64,
    /// What it holds.
    pub content: Content,
}

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Code.
    Text,
    /// Constants, and what else is only read.
    Constants,
    /// Variables with a value.
    Data,
    /// Variables that begin as zero; nothing in the file.
    Bss,
    /// Not for the device: symbols, debug information.
    NotLoaded,
}

/// Sizes of what is loaded, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Code.
    pub text: u64,
    /// Constants and notes.
    pub rodata: u64,
    /// Variables with a value.
    pub data: u64,
    /// Variables that begin as zero.
    pub bss: u64,
}

/// An ELF file whose headers hold together.
pub(crate) struct Elf<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) entry: u64,
    pub(crate) machine: Machine,
    /// `ET_EXEC` or `ET_DYN`.
    pub(crate) file_type: u16,
    pub(crate) sections: Vec<Section>,
    segments: &'a [Segment],
    pub(crate) build_id: Vec<u8>,
}

impl<'a> Elf<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, ImageError> {
        if !bytes.starts_with(&ELFMAG) {
            return Err(ImageError::NotElf { found: bytes.iter().take(4).copied().collect() });
        }
        let cut = |what: &str, end| truncated(what, end, bytes);
        let (header, _) = pod::from_bytes::<Header>(bytes)
            .map_err(|()| cut("the ELF header", size_of::<Header>() as u64))?;
        let machine = check_header(header)?;
        let segments =
            table::<Segment>(bytes, header.e_phoff(LE), header.e_phnum(LE)).ok_or_else(|| {
                cut("the program headers", end(header.e_phoff(LE), header.e_phnum(LE), 56))
            })?;
        let headers: &[SectionHeader64<LittleEndian>] =
            table(bytes, header.e_shoff(LE), header.e_shnum(LE)).ok_or_else(|| {
                cut("the section headers", end(header.e_shoff(LE), header.e_shnum(LE), 64))
            })?;
        segments.iter().try_for_each(|segment| check_segment(segment, bytes))?;
        check_entry(header, segments)?;
        let names = names_of(header, headers, bytes)?;
        let mut sections = Vec::new();
        let mut build_id = Vec::new();
        for section in headers.iter().filter(|section| section.sh_type(LE) != SHT_NULL) {
            let read = read_section(section, names, bytes)?;
            if section.sh_type(LE) == SHT_NOTE {
                build_id.extend(find_build_id(section, bytes));
            }
            sections.push(read);
        }
        let (entry, file_type) = (header.e_entry(LE), header.e_type(LE));
        Ok(Self { bytes, entry, machine, file_type, sections, segments, build_id })
    }

    pub(crate) fn section(&self, name: &str) -> Option<(&Section, &'a [u8])> {
        let section = self.sections.iter().find(|section| section.name == name)?;
        let (start, size) = (usize::try_from(section.offset), usize::try_from(section.bytes));
        Some((section, self.bytes.get(start.ok()?..)?.get(..size.ok()?)?))
    }

    /// The loaded parts: address, offset in the file, bytes in the file, bytes in memory.
    pub(crate) fn loaded(&self) -> impl Iterator<Item = Loaded> + '_ {
        let segments = self.segments.iter().filter(|segment| segment.p_type(LE) == PT_LOAD);
        segments.map(|segment| Loaded {
            address: segment.p_vaddr(LE),
            offset: segment.p_offset(LE),
            file_bytes: segment.p_filesz(LE),
            memory_bytes: segment.p_memsz(LE),
        })
    }

    pub(crate) fn sizes(&self) -> Sizes {
        let mut sizes = Sizes::default();
        for section in &self.sections {
            match section.content {
                Content::Text => sizes.text += section.bytes,
                Content::Constants => sizes.rodata += section.bytes,
                Content::Data => sizes.data += section.bytes,
                Content::Bss => sizes.bss += section.bytes,
                Content::NotLoaded => {}
            }
        }
        sizes
    }
}

/// A segment that is loaded.
pub(crate) struct Loaded {
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) file_bytes: u64,
    pub(crate) memory_bytes: u64,
}

fn truncated(what: &str, end: u64, bytes: &[u8]) -> ImageError {
    ImageError::Truncated { what: what.to_owned(), end, bytes: bytes.len() as u64 }
}

/// Where a table ends.
fn end(offset: u64, count: u16, each: u64) -> u64 {
    offset.saturating_add(u64::from(count) * each)
}

fn table<T: object::pod::Pod>(bytes: &[u8], offset: u64, count: u16) -> Option<&[T]> {
    let tail = bytes.get(usize::try_from(offset).ok()?..)?;
    pod::slice_from_bytes(tail, count.into()).ok().map(|(table, _)| table)
}

/// Every field of the header that an image of ours has only one value for.
fn check_header(header: &Header) -> Result<Machine, ImageError> {
    let ident = header.e_ident();
    let number = header.e_machine(LE);
    let machine = match number {
        EM_AARCH64 => Some(Machine::Aarch64),
        EM_X86_64 => Some(Machine::X86_64),
        // The number of an AICore is the vendor's own: the identity says what the file is for.
        EM_NONE => Some(Machine::DavC220),
        _ => None,
    };
    if ident.class == ELFCLASS64 && ident.data == ELFDATA2LSB && machine.is_none() {
        return Err(ImageError::Machine { found: machine_name(number) });
    }
    let fields = [
        ("e_ident[EI_CLASS]", ident.class.into(), ELFCLASS64.into(), "2: 64 bits"),
        ("e_ident[EI_DATA]", ident.data.into(), ELFDATA2LSB.into(), "1: little-endian"),
        ("e_ident[EI_VERSION]", ident.version.into(), EV_CURRENT.into(), "1"),
        ("e_ident[EI_ABIVERSION]", ident.abi_version.into(), 0, "0"),
        ("e_ident[EI_PAD]", ident.padding.iter().map(|byte| u64::from(*byte)).sum(), 0, "0"),
        ("e_version", header.e_version(LE).into(), EV_CURRENT.into(), "1"),
        ("e_flags", header.e_flags(LE).into(), 0, "0"),
        ("e_ehsize", header.e_ehsize(LE).into(), size_of::<Header>() as u64, "64"),
        ("e_phentsize", header.e_phentsize(LE).into(), size_of::<Segment>() as u64, "56"),
        ("e_shentsize", header.e_shentsize(LE).into(), 64, "64"),
    ];
    for (field, found, expected, words) in fields {
        must(found == expected, field, found, words)?;
    }
    let os_abi = ident.os_abi;
    must([0, ELFOSABI_GNU].contains(&os_abi), "e_ident[EI_OSABI]", os_abi.into(), "0 or 3")?;
    let file_type = header.e_type(LE);
    must([ET_EXEC, ET_DYN].contains(&file_type), "e_type", file_type.into(), "2 or 3")?;
    must(header.e_phnum(LE) > 0, "e_phnum", 0, "above 0")?;
    must(header.e_shnum(LE) > 0, "e_shnum", 0, "above 0")?;
    machine.ok_or_else(|| ImageError::Machine { found: machine_name(number) })
}

fn must(
    holds: bool,
    field: &'static str,
    found: u64,
    expected: impl Into<String>,
) -> Result<(), ImageError> {
    if holds { Ok(()) } else { Err(ImageError::Field { field, found, expected: expected.into() }) }
}

fn machine_name(machine: u16) -> String {
    let name = match machine {
        3 => "i386",
        40 => "Arm (32 bits)",
        243 => "RISC-V",
        _ => return machine.to_string(),
    };
    format!("{name} ({machine})")
}

fn check_segment(segment: &Segment, bytes: &[u8]) -> Result<(), ImageError> {
    let (offset, in_file) = (segment.p_offset(LE), segment.p_filesz(LE));
    let in_memory = segment.p_memsz(LE);
    let end = offset.checked_add(in_file);
    must(end.is_some(), "p_filesz", in_file, "within the file")?;
    let end = end.unwrap_or(u64::MAX);
    if in_file > 0 && end > bytes.len() as u64 {
        return Err(truncated("the segments", end, bytes));
    }
    if segment.p_type(LE) == PT_LOAD {
        must(in_memory >= in_file, "p_memsz", in_memory, "at least p_filesz")?;
        let address = segment.p_vaddr(LE);
        must(address.checked_add(in_memory).is_some(), "p_vaddr", address, "within 64 bits")?;
        let align = segment.p_align(LE);
        must(align == 0 || align.is_power_of_two(), "p_align", align, "a power of two")?;
    }
    Ok(())
}

/// Checks that the entry is in code. A shared object or a blob has no entry.
fn check_entry(header: &Header, segments: &[Segment]) -> Result<(), ImageError> {
    let entry = header.e_entry(LE);
    let holds = |segment: &Segment| {
        let start = segment.p_vaddr(LE);
        segment.p_type(LE) == PT_LOAD
            && segment.p_flags(LE) & PF_X != 0
            && (start..start.saturating_add(segment.p_memsz(LE))).contains(&entry)
    };
    let stands = entry == 0 || segments.iter().any(holds);
    must(stands, "e_entry", entry, "within an executable segment")
}

fn names_of<'a>(
    header: &Header,
    headers: &[SectionHeader64<LittleEndian>],
    bytes: &'a [u8],
) -> Result<&'a [u8], ImageError> {
    let index = header.e_shstrndx(LE);
    let section = headers.get(usize::from(index));
    let names = section.and_then(|section| section.data(LE, bytes).ok());
    let names = names.filter(|names| names.first() == Some(&0));
    let wrong = || ImageError::Field {
        field: "e_shstrndx",
        found: index.into(),
        expected: "the section of names".to_owned(),
    };
    names.ok_or_else(wrong)
}

fn read_section(
    section: &SectionHeader64<LittleEndian>,
    names: &[u8],
    bytes: &[u8],
) -> Result<Section, ImageError> {
    let at = usize::try_from(section.sh_name(LE)).unwrap_or(usize::MAX);
    let name = names.get(at..).and_then(|tail| tail.split(|byte| *byte == 0).next());
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    let wrong = || ImageError::Field {
        field: "sh_name",
        found: section.sh_name(LE).into(),
        expected: "the place of a name".to_owned(),
    };
    let name = name.ok_or_else(wrong)?.to_owned();
    let (offset, size) = (section.sh_offset(LE), section.sh_size(LE));
    let end = offset.saturating_add(size);
    if section.sh_type(LE) != SHT_NOBITS && end > bytes.len() as u64 {
        return Err(truncated(&format!("section {name}"), end, bytes));
    }
    let content = content_of(section);
    Ok(Section { name, address: section.sh_addr(LE), bytes: size, offset, content })
}

fn content_of(section: &SectionHeader64<LittleEndian>) -> Content {
    let flags = section.sh_flags(LE);
    let has = |flag: u32| flags & u64::from(flag) != 0;
    match section.sh_type(LE) {
        _ if !has(SHF_ALLOC) => Content::NotLoaded,
        SHT_NOBITS => Content::Bss,
        _ if has(SHF_EXECINSTR) => Content::Text,
        _ if has(SHF_WRITE) => Content::Data,
        _ => Content::Constants,
    }
}

fn find_build_id(section: &SectionHeader64<LittleEndian>, bytes: &[u8]) -> Vec<u8> {
    let Ok(Some(mut notes)) = section.notes(LE, bytes) else { return Vec::new() };
    while let Ok(Some(note)) = notes.next() {
        if note.name() == b"GNU" && note.n_type(LE) == NT_GNU_BUILD_ID {
            return note.desc().to_vec();
        }
    }
    Vec::new()
}
