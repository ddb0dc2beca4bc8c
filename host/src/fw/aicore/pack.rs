//! Puts the worker and the kernels into one ELF file, which [`Image`](crate::fw::Image) reads.

use bytemuck::bytes_of;
use object::elf::{EM_AARCH64, EM_NONE, EM_X86_64};
use pto_abi::fw_image::{
    FW_MAGIC, FW_NOTE_OWNER, FW_NOTE_SECTION, FW_NOTE_TYPE, FwIdentity, KERNEL_BLOB_MAGIC,
    KERNEL_NAME_BYTES, KernelBlobEntry, KernelBlobHeader,
};
use pto_abi::layout::LAYOUT_HASH;
use pto_abi::limits::MAX_FUNC_ID;
use pto_abi::runtime::{ABI_MAJOR, ABI_MINOR};
use sha2::{Digest, Sha256};

use super::{AicoreKernel, AicoreWorker, KIND, WORKER_SECTION, check};
use crate::fw::error::ImageError;
use crate::fw::kind::Machine;
use crate::fw::seal::seal;

/// Where the code of a kernel begins in GM: the driver's allocations have this alignment as well.
const CODE_ALIGN: usize = 64;

/// An image of this worker and these kernels, sealed.
///
/// # Errors
/// `AicoreObject`: which file no core can run, and why.
pub fn pack_aicore(
    worker: &AicoreWorker<'_>,
    kernels: &[AicoreKernel<'_>],
) -> Result<Vec<u8>, ImageError> {
    let machine = check::worker(worker.object).map_err(|what| refused(worker.file, what))?;
    let blob = blob(machine, kernels)?;
    let mut file = elf(machine, &blob, worker.object);
    seal(&mut file)?;
    Ok(file)
}

fn refused(file: &str, what: impl Into<String>) -> ImageError {
    ImageError::AicoreObject { file: file.to_owned(), what: what.into() }
}

/// Header, table and code.
fn blob(machine: Machine, kernels: &[AicoreKernel<'_>]) -> Result<Vec<u8>, ImageError> {
    let mut code = Vec::new();
    let mut entries: Vec<KernelBlobEntry> = Vec::new();
    let table_end = size_of::<KernelBlobHeader>() + kernels.len() * size_of::<KernelBlobEntry>();
    for (index, kernel) in kernels.iter().enumerate() {
        let checked = check::kernel(kernel.object).map_err(|what| refused(kernel.file, what))?;
        if checked.machine != machine {
            let what = format!("it is {} code, and the worker is {machine} code", checked.machine);
            return Err(refused(kernel.file, what));
        }
        check_number(kernel, &entries)?;
        let at = size_of::<KernelBlobHeader>() + index * size_of::<KernelBlobEntry>();
        entries.push(KernelBlobEntry {
            distance: (table_end + code.len() - at) as u64,
            func_id: kernel.func_id,
            kind: u32::from(kernel.kind.get()),
            name: name_of(kernel)?,
        });
        code.extend_from_slice(checked.text);
        code.resize(code.len().next_multiple_of(CODE_ALIGN), 0);
    }
    let header = KernelBlobHeader {
        magic: KERNEL_BLOB_MAGIC,
        abi_major: ABI_MAJOR,
        abi_minor: ABI_MINOR,
        kernel_count: u32::try_from(kernels.len()).unwrap_or(u32::MAX),
        total_bytes: (table_end + code.len()) as u64,
        // That of the file is in the identity.
        checksum: 0,
        reserved: [0; 4],
    };
    let table: &[u8] = bytemuck::cast_slice(&entries);
    Ok([bytes_of(&header), table, &code].concat())
}

fn check_number(kernel: &AicoreKernel<'_>, others: &[KernelBlobEntry]) -> Result<(), ImageError> {
    let id = kernel.func_id;
    if usize::try_from(id).map_or(true, |id| id >= MAX_FUNC_ID) {
        return Err(refused(kernel.file, format!("its func id {id} is not below {MAX_FUNC_ID}")));
    }
    match others.iter().find(|other| other.func_id == id) {
        Some(_) => Err(refused(kernel.file, format!("another kernel has the func id {id}"))),
        None => Ok(()),
    }
}

fn name_of(kernel: &AicoreKernel<'_>) -> Result<[u8; KERNEL_NAME_BYTES], ImageError> {
    let mut name = [0; KERNEL_NAME_BYTES];
    // A zero ends it.
    let room = name.get_mut(..kernel.name.len()).filter(|room| room.len() < KERNEL_NAME_BYTES);
    match room.filter(|room| !room.is_empty() && !kernel.name.contains('\0')) {
        Some(room) => room.copy_from_slice(kernel.name.as_bytes()),
        None => {
            let most = KERNEL_NAME_BYTES - 1;
            let what = format!("its name '{}' has not 1 to {most} bytes", kernel.name);
            return Err(refused(kernel.file, what));
        }
    }
    Ok(name)
}

/// An ELF note.
fn note(owner: [u8; 4], kind: u32, body: &[u8]) -> Vec<u8> {
    let bytes = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let words = [4, bytes, kind].map(u32::to_le_bytes).concat();
    [&words[..], &owner, body].concat()
}

fn identity() -> Vec<u8> {
    let identity = FwIdentity {
        magic: FW_MAGIC,
        abi_major: ABI_MAJOR,
        abi_minor: ABI_MINOR,
        identity_bytes: u32::try_from(size_of::<FwIdentity>()).unwrap_or(u32::MAX),
        layout_hash: LAYOUT_HASH,
        kind: KIND,
        builder_count: 0,
        names_bytes: 0,
        checksum: 0,
        features: 0,
    };
    note(FW_NOTE_OWNER, FW_NOTE_TYPE, bytes_of(&identity))
}

/// A section: its name, what ELF calls its type, its flags, its bytes.
struct PackedSection<'a> {
    name: &'a str,
    kind: u32,
    flags: u64,
    bytes: &'a [u8],
}

/// Header, one segment with the blob, sections; everything at multiples of 64 bytes.
fn elf(machine: Machine, blob: &[u8], worker: &[u8]) -> Vec<u8> {
    const HEADER: usize = 64;
    const NT_GNU_BUILD_ID: u32 = 3;
    let hash = Sha256::new().chain_update(blob).chain_update(worker).finalize();
    let build_id = note(*b"GNU\0", NT_GNU_BUILD_ID, &hash[..20]);
    let identity = identity();
    let section = |name, kind, flags, bytes| PackedSection { name, kind, flags, bytes };
    // Allocated, of code.
    let mut sections = vec![
        section(FW_NOTE_SECTION, object::elf::SHT_NOTE, 0, identity.as_slice()),
        section(".note.gnu.build-id", object::elf::SHT_NOTE, 0, build_id.as_slice()),
        section(".blob", object::elf::SHT_PROGBITS, 6, blob),
        section(WORKER_SECTION, object::elf::SHT_PROGBITS, 0, worker),
    ];
    let mut names = vec![0];
    let named = sections.iter().map(|one| one.name).chain([".shstrtab"]);
    let places: Vec<usize> = named
        .map(|name| {
            let at = names.len();
            names.extend_from_slice(name.as_bytes());
            names.push(0);
            at
        })
        .collect();
    sections.push(section(".shstrtab", object::elf::SHT_STRTAB, 0, names.as_slice()));
    let mut file = vec![0; 2 * HEADER];
    let mut headers = vec![0; HEADER];
    let mut blob_at = 0;
    for (section, name) in sections.iter().zip(places) {
        file.resize(file.len().next_multiple_of(HEADER), 0);
        let at = file.len();
        file.extend_from_slice(section.bytes);
        blob_at = if section.name == ".blob" { at } else { blob_at };
        let words = [section.flags, 0, at as u64, section.bytes.len() as u64, 0, 64, 0];
        let ids = [u32::try_from(name).unwrap_or(u32::MAX), section.kind].map(u32::to_le_bytes);
        headers.extend(ids.as_flattened().iter().copied());
        headers.extend(words[..4].iter().flat_map(|word| word.to_le_bytes()));
        // Link and info.
        headers.extend([0; 8]);
        headers.extend(words[5..].iter().flat_map(|word| word.to_le_bytes()));
    }
    file.resize(file.len().next_multiple_of(HEADER), 0);
    let headers_at = file.len() as u64;
    file.extend_from_slice(&headers);
    let count = u16::try_from(sections.len()).unwrap_or(u16::MAX);
    write_head(&mut file, machine, headers_at, count);
    write_segment(&mut file, blob_at as u64, blob.len() as u64);
    file
}

fn write_head(file: &mut [u8], machine: Machine, headers_at: u64, sections: u16) {
    // Of an AICore the identity says what the file is for: its number is the vendor's own.
    let number = match machine {
        Machine::Aarch64 => EM_AARCH64,
        Machine::X86_64 => EM_X86_64,
        Machine::DavC220 => EM_NONE,
    };
    let halves = [object::elf::ET_DYN, number].map(u16::to_le_bytes);
    let sizes = [64, 56, 1, 64, sections + 1, sections].map(u16::to_le_bytes);
    // Entry, program headers, section headers.
    let places = [0, 64, headers_at].map(u64::to_le_bytes);
    let parts = [
        &b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..],
        halves.as_flattened(),
        &1_u32.to_le_bytes(),
        places.as_flattened(),
        &0_u32.to_le_bytes(),
        sizes.as_flattened(),
    ];
    put(file, 0, &parts.concat());
}

fn write_segment(file: &mut [u8], offset: u64, bytes: u64) {
    let flags = object::elf::PF_R | object::elf::PF_X;
    let ids = [object::elf::PT_LOAD, flags].map(u32::to_le_bytes);
    let words = [offset, 0, 0, bytes, bytes, 64].map(u64::to_le_bytes);
    put(file, 64, &[ids.as_flattened(), words.as_flattened()].concat());
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = file.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}
