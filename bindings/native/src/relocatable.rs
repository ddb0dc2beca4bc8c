//! Relocatable objects: their sections are laid out and relocated in an image, which this process then maps.
//!
//! ```text
//! [ text, stubs ] [ read-only data, address table ] [ data, zeros ]     three groups of pages: RX, R, RW
//! ```
//! x86-64 only, as `gcc -c -fPIC` makes them. What another object must provide is looked up in this process (the C
//! library, the mathematical library); a call to it goes through a stub. The memory is never given back: a core may
//! be in it for as long as the process lives.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;
use std::{fs, io, ptr};

use object::read::elf::{ElfFile64, FileHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SectionIndex, elf};
use object::{RelocationTarget, SectionFlags, SymbolIndex};

use crate::failure::{Failure, FailureKind};

type File<'b> = ElfFile64<'b, Endianness>;

const PAGE: usize = 4096;
/// `jmp *address(%rip)`, and the padding to 16 bytes.
const STUB_BYTES: usize = 16;

/// The groups of pages, in the order of the memory.
const TEXT: usize = 0;
const CONSTANTS: usize = 1;
const DATA: usize = 2;

/// Loads an object; gives the address of the function `symbol`. `name` is what messages call it.
pub(crate) fn load(bytes: &[u8], symbol: &str, name: &str) -> Result<usize, Failure> {
    let object = lay_out(bytes, symbol, name)?;
    object.memory.show(&object.image, &object.plan).map_err(|why| no_memory(name, &why))?;
    object.memory.keep();
    Ok(object.entry)
}

/// Whether an object could be loaded: does what [`load`] does, but for the memory that runs.
pub(crate) fn check(bytes: &[u8], symbol: &str, name: &str) -> Result<(), Failure> {
    lay_out(bytes, symbol, name).map(|_| ())
}

fn no_memory(name: &str, why: &str) -> Failure {
    let message = format!("{name} gets no executable memory: {why}");
    Failure::new(FailureKind::EXECUTABLE_MEMORY, message)
}

/// An object, relocated for the addresses that it was given.
struct LaidOut {
    plan: Plan,
    memory: Memory,
    image: Vec<u8>,
    /// Where its function is.
    entry: usize,
}

fn lay_out(bytes: &[u8], symbol: &str, name: &str) -> Result<LaidOut, Failure> {
    let file = parse(bytes).map_err(|why| {
        Failure::new(FailureKind::OBJECT_FORMAT, format!("{name} is no object file: {why}"))
    })?;
    let unloadable = |why: String| {
        Failure::new(FailureKind::OBJECT_RELOCATION, format!("{name} cannot be loaded: {why}"))
    };
    let entry = file.symbols().find(|held| held.is_definition() && held.name() == Ok(symbol));
    let entry = entry.map(|entry| entry.index()).ok_or_else(|| {
        let message = format!("{name} has no function `{symbol}`");
        Failure::new(FailureKind::SYMBOL_MISSING, message)
    })?;
    let plan = Plan::new(&file).map_err(unloadable)?;
    let memory = Memory::reserve(plan.bytes).map_err(|why| no_memory(name, &why))?;
    let layout = ObjectImage { file: &file, plan: &plan, base: memory.start.expose_provenance() };
    let image = layout.image().map_err(unloadable)?;
    let entry = layout.function(entry).map_err(unloadable)?;
    Ok(LaidOut { plan, memory, image, entry })
}

fn parse(bytes: &[u8]) -> Result<File<'_>, String> {
    let file = File::parse(bytes).map_err(|error| error.to_string())?;
    let header = file.elf_header();
    let (kind, machine) = (header.e_type(file.endian()), header.e_machine(file.endian()));
    if !cfg!(target_arch = "x86_64") || machine != elf::EM_X86_64 {
        return Err(format!("machine {machine} cannot be loaded here; use a shared object"));
    }
    if kind != elf::ET_REL {
        return Err(format!("its type is {kind}, and that of a relocatable object is 1"));
    }
    Ok(file)
}

/// Where a section goes in the memory.
#[derive(Clone, Copy)]
struct SectionRange {
    at: usize,
    bytes: usize,
    group: usize,
}

impl SectionRange {
    /// The first of `bytes` bytes at an offset of the section, if they lie in it.
    fn within(self, offset: u64, bytes: usize) -> Option<usize> {
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes).then(|| self.at + offset)
    }
}

/// Where everything goes, from the start of the memory.
struct Plan {
    sections: HashMap<SectionIndex, SectionRange>,
    /// Symbols that others provide: their entry in the address table, and their stub.
    foreign: HashMap<SymbolIndex, (usize, usize)>,
    /// Entries of the address table for symbols of the object itself.
    own: HashMap<SymbolIndex, usize>,
    /// Where each group begins.
    groups: [usize; 3],
    bytes: usize,
}

impl Plan {
    fn new(file: &File<'_>) -> Result<Self, String> {
        let mut plan = Self {
            sections: HashMap::new(),
            foreign: HashMap::new(),
            own: HashMap::new(),
            groups: [0; 3],
            bytes: 0,
        };
        let (foreign, own) = table_symbols(file)?;
        for group in [TEXT, CONSTANTS, DATA] {
            plan.groups[group] = plan.bytes.next_multiple_of(PAGE);
            plan.bytes = plan.groups[group];
            plan.lay_out_sections(file, group)?;
            match group {
                TEXT => {
                    for symbol in &foreign {
                        let stub = plan.take(STUB_BYTES, STUB_BYTES)?;
                        plan.foreign.insert(*symbol, (0, stub));
                    }
                }
                CONSTANTS => {
                    for symbol in &foreign {
                        let entry = plan.take(8, 8)?;
                        plan.foreign.entry(*symbol).and_modify(|held| held.0 = entry);
                    }
                    for symbol in &own {
                        let entry = plan.take(8, 8)?;
                        plan.own.insert(*symbol, entry);
                    }
                }
                _ => {}
            }
        }
        plan.bytes = plan.bytes.next_multiple_of(PAGE).max(PAGE);
        Ok(plan)
    }

    fn lay_out_sections(&mut self, file: &File<'_>, group: usize) -> Result<(), String> {
        for section in file.sections() {
            if group_of(&section)? == Some(group) {
                let too_large = |_| "it is too large".to_owned();
                let bytes = usize::try_from(section.size()).map_err(too_large)?;
                let align = usize::try_from(section.align()).map_err(too_large)?.max(1);
                if align > PAGE {
                    return Err(format!("a section is aligned to {align} bytes"));
                }
                let at = self.take(bytes, align)?;
                self.sections.insert(section.index(), SectionRange { at, bytes, group });
            }
        }
        Ok(())
    }

    fn take(&mut self, bytes: usize, align: usize) -> Result<usize, String> {
        let at = self.bytes.next_multiple_of(align);
        // A relocation reaches 2 GiB.
        let end = at.checked_add(bytes).filter(|end| *end < 1 << 30);
        self.bytes = end.ok_or("it is larger than 1 GiB")?;
        Ok(at)
    }
}

/// The group that a section goes to; `None`: it is not loaded.
fn group_of<'b>(section: &impl object::ObjectSection<'b>) -> Result<Option<usize>, String> {
    let SectionFlags::Elf { sh_flags } = section.flags() else { return Ok(None) };
    let name = section.name().unwrap_or("?");
    let flags = u32::try_from(sh_flags & 0xFFFF_FFFF).unwrap_or(0);
    // Unwinding tables are for exceptions, which end at a kernel's edge anyway.
    if flags & elf::SHF_ALLOC == 0 || name.starts_with(".eh_frame") || name.starts_with(".note") {
        return Ok(None);
    }
    if flags & elf::SHF_TLS != 0 {
        return Err(format!("section {name} holds thread-local variables"));
    }
    if name.starts_with(".init_array") || name.starts_with(".ctors") {
        return Err(format!("section {name} holds constructors of global objects"));
    }
    Ok(Some(match (flags & elf::SHF_EXECINSTR != 0, flags & elf::SHF_WRITE != 0) {
        (true, _) => TEXT,
        (false, false) => CONSTANTS,
        (false, true) => DATA,
    }))
}

/// The symbols that others provide, and those of the object that are reached through the address table.
fn table_symbols(file: &File<'_>) -> Result<(Vec<SymbolIndex>, Vec<SymbolIndex>), String> {
    let (mut foreign, mut own) = (Vec::new(), Vec::new());
    for section in file.sections() {
        if group_of(&section)?.is_none() {
            continue;
        }
        for (_, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            let symbol = file.symbol_by_index(index).map_err(|error| error.to_string())?;
            let kind = relocation_type(&relocation);
            if symbol.is_undefined() {
                foreign.push(index);
            } else if is_table_relative(kind) {
                own.push(index);
            }
        }
    }
    for list in [&mut foreign, &mut own] {
        list.sort_unstable_by_key(|index| index.0);
        list.dedup();
    }
    Ok((foreign, own))
}

fn relocation_type(relocation: &object::Relocation) -> u32 {
    match relocation.flags() {
        object::RelocationFlags::Elf { r_type } => r_type,
        _ => elf::R_X86_64_NONE,
    }
}

fn is_table_relative(kind: u32) -> bool {
    matches!(kind, elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX)
}

/// How many bytes a relocation writes.
fn relocated_bytes(relocation: &object::Relocation) -> Result<usize, String> {
    if relocation.has_implicit_addend() {
        return Err("a relocation has its addend in the code; x86-64 has none of these".to_owned());
    }
    match relocation_type(relocation) {
        elf::R_X86_64_NONE => Ok(0),
        elf::R_X86_64_64 | elf::R_X86_64_PC64 => Ok(8),
        elf::R_X86_64_32 | elf::R_X86_64_32S | elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => Ok(4),
        kind if is_table_relative(kind) => Ok(4),
        kind => Err(format!("relocation type {kind} is not known here")),
    }
}

/// An object as it will be at its address.
struct ObjectImage<'f, 'b> {
    file: &'f File<'b>,
    plan: &'f Plan,
    base: usize,
}

impl ObjectImage<'_, '_> {
    /// The bytes of the whole memory, relocated.
    fn image(&self) -> Result<Vec<u8>, String> {
        let mut image = vec![0; self.plan.bytes];
        for section in self.file.sections() {
            if let Some(range) = self.plan.sections.get(&section.index()) {
                // Sections of zeros have no bytes in the file.
                write(&mut image, range.at, section.data().map_err(|error| error.to_string())?)?;
            }
        }
        for (symbol, (entry, stub)) in &self.plan.foreign {
            let address = self.lookup(*symbol)? as u64;
            write(&mut image, *entry, &address.to_le_bytes())?;
            let distance = entry.wrapping_sub(stub + 6);
            let distance = i32::try_from(distance.cast_signed()).map_err(|e| e.to_string())?;
            write(&mut image, *stub, &[0xFF, 0x25])?;
            write(&mut image, stub + 2, &distance.to_le_bytes())?;
        }
        for (symbol, entry) in &self.plan.own {
            let address = self.address(*symbol)? as u64;
            write(&mut image, *entry, &address.to_le_bytes())?;
        }
        for section in self.file.sections() {
            let Some(range) = self.plan.sections.get(&section.index()) else { continue };
            for (offset, relocation) in section.relocations() {
                let outside = || {
                    let name = section.name().unwrap_or("?");
                    format!("the relocation at byte {offset} of section {name} is not within it")
                };
                let bytes = relocated_bytes(&relocation)?;
                let at = range.within(offset, bytes).ok_or_else(outside)?;
                self.relocate(&mut image, at, &relocation)?;
            }
        }
        Ok(image)
    }

    fn relocate(
        &self,
        image: &mut [u8],
        at: usize,
        relocation: &object::Relocation,
    ) -> Result<(), String> {
        let RelocationTarget::Symbol(symbol) = relocation.target() else {
            return Err("a relocation names no symbol".to_owned());
        };
        let kind = relocation_type(relocation);
        let target = match (self.plan.foreign.get(&symbol), self.plan.own.get(&symbol)) {
            (Some((entry, _)), _) if is_table_relative(kind) => self.at(*entry),
            (_, Some(entry)) if is_table_relative(kind) => self.at(*entry),
            (Some((_, stub)), _) if kind != elf::R_X86_64_64 => self.at(*stub),
            (Some(_), _) => self.lookup(symbol)?,
            (None, _) => self.address(symbol)?,
        };
        let value = (target as u64).wrapping_add(relocation.addend().cast_unsigned());
        let relative = value.wrapping_sub(self.at(at) as u64).cast_signed();
        let far = |_| format!("{} is out of reach: compile with -fPIC", self.symbol_name(symbol));
        match kind {
            elf::R_X86_64_NONE => Ok(()),
            elf::R_X86_64_64 => write(image, at, &value.to_le_bytes()),
            elf::R_X86_64_PC64 => write(image, at, &relative.to_le_bytes()),
            elf::R_X86_64_32 => write(image, at, &u32::try_from(value).map_err(far)?.to_le_bytes()),
            elf::R_X86_64_32S => {
                let value = i32::try_from(value.cast_signed()).map_err(far)?;
                write(image, at, &value.to_le_bytes())
            }
            // Those that are left are relative, and have four bytes.
            _ => write(image, at, &i32::try_from(relative).map_err(far)?.to_le_bytes()),
        }
    }

    /// Where a symbol of the object is in memory.
    fn address(&self, symbol: SymbolIndex) -> Result<usize, String> {
        let held = self.file.symbol_by_index(symbol).map_err(|error| error.to_string())?;
        let section = held.section_index().and_then(|index| self.plan.sections.get(&index));
        let section = section
            .ok_or_else(|| format!("{} is in no loaded section", self.symbol_name(symbol)))?;
        // The end of a section may have a name.
        let outside = || format!("{} is not within its section", self.symbol_name(symbol));
        section.within(held.address(), 0).map(|at| self.at(at)).ok_or_else(outside)
    }

    /// Where a function of the object is in memory.
    fn function(&self, symbol: SymbolIndex) -> Result<usize, String> {
        let held = self.file.symbol_by_index(symbol).map_err(|error| error.to_string())?;
        let section = held.section_index().and_then(|index| self.plan.sections.get(&index));
        let runs = section.is_some_and(|section| {
            section.group == TEXT && section.within(held.address(), 1).is_some()
        });
        if !runs {
            return Err(format!("{} is no function of it", self.symbol_name(symbol)));
        }
        self.address(symbol)
    }

    /// Where a symbol of another object is in this process.
    fn lookup(&self, symbol: SymbolIndex) -> Result<usize, String> {
        let held = self.file.symbol_by_index(symbol).map_err(|error| error.to_string())?;
        let name = held.name().map_err(|error| error.to_string())?;
        let c_name = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: the name is a C string.
        let mut found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c_name.as_ptr()) };
        if found.is_null() {
            // SAFETY: as above; the mathematical library stays loaded, and a null handle searches the program.
            found = unsafe { libc::dlsym(mathematics(), c_name.as_ptr()) };
        }
        if found.is_null() && !held.is_weak() {
            return Err(format!("it uses `{name}`, which this process does not have"));
        }
        Ok(found.expose_provenance())
    }

    fn symbol_name(&self, symbol: SymbolIndex) -> String {
        let held = self.file.symbol_by_index(symbol).ok();
        held.and_then(|held| held.name().ok().map(str::to_owned)).unwrap_or_default()
    }

    fn at(&self, offset: usize) -> usize {
        self.base + offset
    }
}

/// Writes bytes into the image. They lie within it, unless the object is damaged.
fn write(image: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), String> {
    let end = at.checked_add(bytes.len());
    let target = end.and_then(|end| image.get_mut(at..end));
    let target = target.ok_or_else(|| format!("bytes at {at} are not within the object"))?;
    target.copy_from_slice(bytes);
    Ok(())
}

/// The mathematical library, which a process may be without until a kernel needs it.
fn mathematics() -> *mut libc::c_void {
    static HANDLE: OnceLock<usize> = OnceLock::new();
    let open = || {
        // SAFETY: the name is a C string; the library's constructors do nothing.
        let handle = unsafe { libc::dlopen(c"libm.so.6".as_ptr(), libc::RTLD_NOW) };
        handle.expose_provenance()
    };
    ptr::with_exposed_provenance_mut(*HANDLE.get_or_init(open))
}

/// Addresses of this process, given back on drop unless they are kept.
struct Memory {
    start: *mut u8,
    bytes: usize,
}

impl Memory {
    /// Takes addresses that hold nothing yet. The error says which call was refused.
    fn reserve(bytes: usize) -> Result<Self, String> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(refused(&format!("mmap of {bytes} bytes")));
        }
        Ok(Self { start: start.cast(), bytes })
    }

    /// Maps the image here, each group with its protection, from a file without a name: as a shared object is loaded,
    /// for a system may refuse to make written memory executable. Errors: as `reserve`.
    fn show(&self, image: &[u8], plan: &Plan) -> Result<(), String> {
        // SAFETY: the name is a C string.
        let descriptor = unsafe { libc::memfd_create(c"pto-kernel".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(refused("memfd_create"));
        }
        // SAFETY: the descriptor was just made, and has no other owner.
        let file = fs::File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        // The zeros of the end stay a hole.
        let written = image.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        file.set_len(image.len() as u64)
            .and_then(|()| file.write_all_at(&image[..written], 0))
            .map_err(|error| format!("a file of {} bytes in memory: {error}", image.len()))?;
        let [text, constants, data] = plan.groups;
        let groups = [
            (text, constants, libc::PROT_READ | libc::PROT_EXEC),
            (constants, data, libc::PROT_READ),
            (data, self.bytes, libc::PROT_READ | libc::PROT_WRITE),
        ];
        for (from, to, protection) in groups.into_iter().filter(|(from, to, _)| from < to) {
            let (address, bytes) = (self.start.wrapping_add(from), to - from);
            let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
            let offset = from.cast_signed() as libc::off_t;
            // SAFETY: this replaces whole pages of this mapping, which is not in use yet.
            let shown = unsafe {
                libc::mmap(address.cast(), bytes, protection, flags, file.as_raw_fd(), offset)
            };
            if shown == libc::MAP_FAILED {
                let call = format!("mmap({protection:#x}) of {bytes} bytes at {from} of a file");
                return Err(refused(&call));
            }
        }
        Ok(())
    }

    /// Leaves the mapping to the process.
    fn keep(self) {
        std::mem::forget(self);
    }
}

fn refused(call: &str) -> String {
    format!("{call}: {}", io::Error::last_os_error())
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `reserve` made this mapping, and nothing uses it.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    /// `kernel_entry` calls `expf`, and reaches the variable `shared_counter` through the address table.
    const OBJECT: &[u8] = include_bytes!("../../../tools/fuzz/corpus/relocatable_object/tables.o");
    /// Where the relocations of `.text` begin in it.
    const RELOCATIONS: usize = 0x210;

    #[test]
    fn a_relocation_outside_of_its_section_is_refused() {
        assert!(check(OBJECT, "kernel_entry", "k").is_ok());
        let mut damaged = OBJECT.to_vec();
        damaged[RELOCATIONS + 3] = 0x7F;
        let refused = check(&damaged, "kernel_entry", "k").unwrap_err().to_string();
        assert!(refused.contains("byte 2130706474 of section .text is not within it"), "{refused}");
    }

    #[test]
    fn a_kernel_is_a_function() {
        let refused = check(OBJECT, "shared_counter", "k").unwrap_err().to_string();
        assert!(refused.contains("shared_counter is no function of it"), "{refused}");
    }
}
