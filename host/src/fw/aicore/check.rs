//! What an object must be so that a core can run it. The hardware says none of this: a relocation that is left ends in an exception, or in wrong results.

use object::elf::{
    EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_X86_64, SHF_ALLOC, SHF_WRITE, SHT_NOTE, SHT_REL,
    SHT_RELA,
};
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::fw::kind::Machine;

/// The function at the start of a kernel.
const KERNEL_ENTRY: &str = "kernel_entry";
/// The entries of the worker: for cube and for vector cores.
const WORKER_ENTRIES: [&str; 2] = ["pto_worker_0_mix_aic", "pto_worker_0_mix_aiv"];
/// A kernel of more code is none: local memories are below 1 MiB, and a kernel is some loops over tiles.
const MAX_KERNEL_BYTES: u64 = 1 << 20;
/// The parts that the loader of a development machine needs in addition to the worker.
const OF_A_LOADER: [&str; 4] = [".dynamic", ".got", ".got.plt", ".pto_this_machine"];

const LE: LittleEndian = LittleEndian;
type File<'a> = ElfFile64<'a, LittleEndian>;

/// The code of a kernel: whose it is, and its bytes.
pub(super) struct KernelCode<'a> {
    pub(super) machine: Machine,
    pub(super) text: &'a [u8],
}

/// The code of a kernel, or why no core can run it.
pub(super) fn kernel(object: &[u8]) -> Result<KernelCode<'_>, String> {
    let file = parse(object)?;
    let entry = file.symbols().find(|one| one.name() == Ok(KERNEL_ENTRY) && one.is_definition());
    let entry = entry.ok_or_else(|| {
        format!("it has no function `{KERNEL_ENTRY}`: write the kernel with PTO_KERNEL of kernel.h")
    })?;
    nothing_undefined(&file)?;
    no_relocation(&file)?;
    let mut text = None;
    for section in loaded(&file) {
        let name = section.name().unwrap_or("a section without a name");
        if name == ".text" {
            text = Some(section);
        } else {
            return Err(format!(
                "{} bytes are in {name}, and only .text goes to GM: a kernel has no variables, and no constants beside its code",
                section.size()
            ));
        }
    }
    let text = text.ok_or("there is no code in .text")?;
    let (start, bytes) = (text.address(), text.size());
    if bytes > MAX_KERNEL_BYTES {
        return Err(format!(
            "it has {bytes} bytes of code, and at most {MAX_KERNEL_BYTES} are taken"
        ));
    }
    if entry.address() != start {
        let at = entry.address().wrapping_sub(start);
        return Err(format!(
            "`{KERNEL_ENTRY}` is {at} bytes behind the start of .text, where a core begins: everything that it calls must be inlined into it"
        ));
    }
    let code = text.data().map_err(|error| error.to_string())?;
    Ok(KernelCode { machine: machine(&file)?, text: code })
}

/// Bytes of code in the section `.text` of an object; `None`: it is no ELF file, or has no such section.
#[must_use]
pub fn text_bytes(object: &[u8]) -> Option<u64> {
    let file = parse(object).ok()?;
    file.section_by_name(".text").map(|section| section.size())
}

/// Whose code a worker is, or why the driver cannot load it.
pub(super) fn worker(object: &[u8]) -> Result<Machine, String> {
    let file = parse(object)?;
    let machine = machine(&file)?;
    nothing_undefined(&file)?;
    no_relocation(&file)?;
    let defined = |name: &str| {
        let mut all = file.symbols().chain(file.dynamic_symbols());
        all.any(|symbol| symbol.name() == Ok(name) && symbol.kind() == SymbolKind::Text)
    };
    if let Some(missing) = WORKER_ENTRIES.iter().find(|name| !defined(name)) {
        return Err(format!(
            "it has no entry `{missing}`: the worker is compiled once for each kind of core, and linked from both"
        ));
    }
    for section in loaded(&file).filter(|section| flags(section) & u64::from(SHF_WRITE) != 0) {
        let name = section.name().unwrap_or("a section without a name");
        if machine == Machine::DavC220 || !OF_A_LOADER.contains(&name) {
            return Err(format!(
                "{} bytes of variables are in {name}, and a worker has none",
                section.size()
            ));
        }
    }
    Ok(machine)
}

fn parse(object: &[u8]) -> Result<File<'_>, String> {
    File::parse(object)
        .map_err(|error| format!("it is no ELF file of 64 bits, little-endian: {error}"))
}

/// Whose code it is. The number of an AICore is the vendor's own; those of machines that an AICore is not are known.
fn machine(file: &File<'_>) -> Result<Machine, String> {
    match file.elf_header().e_machine(LE) {
        EM_X86_64 => Ok(Machine::X86_64),
        EM_AARCH64 => Ok(Machine::Aarch64),
        other @ (EM_386 | EM_ARM | EM_RISCV) => {
            Err(format!("it is code of another machine (e_machine is {other})"))
        }
        _ => Ok(Machine::DavC220),
    }
}

fn flags<'a>(section: &object::read::elf::ElfSection64<'a, '_, LittleEndian>) -> u64 {
    section.elf_section_header().sh_flags(LE)
}

/// What is loaded, notes of the linker left out.
fn loaded<'a, 'file>(
    file: &'file File<'a>,
) -> impl Iterator<Item = object::read::elf::ElfSection64<'a, 'file, LittleEndian>> {
    file.sections().filter(|section| {
        let is_note = section.elf_section_header().sh_type(LE) == SHT_NOTE;
        flags(section) & u64::from(SHF_ALLOC) != 0 && section.size() > 0 && !is_note
    })
}

fn no_relocation(file: &File<'_>) -> Result<(), String> {
    let relocations = file.sections().find(|section| {
        let kind = section.elf_section_header().sh_type(LE);
        [SHT_REL, SHT_RELA].contains(&kind) && section.size() > 0
    });
    let Some(section) = relocations else { return Ok(()) };
    let name = section.name().unwrap_or("a section without a name");
    let each = section.elf_section_header().sh_entsize(LE).max(1);
    Err(format!(
        "{} relocations are left in {name}, and nobody applies them on a core: link it with the flags of the source tree",
        section.size() / each
    ))
}

fn nothing_undefined(file: &File<'_>) -> Result<(), String> {
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let names = symbols.filter(|symbol| symbol.is_undefined()).filter_map(|one| one.name().ok());
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(format!("it needs what a core has not: {}", names.join(", ")))
}
