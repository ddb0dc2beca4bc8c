//! A blob of kernels, as it is copied into GM.

use bytemuck::pod_read_unaligned;
use pto_abi::CoreKind;
use pto_abi::fw_image::{KernelBlobEntry, KernelBlobHeader};
use pto_abi::limits::MAX_FUNC_ID;

use super::elf::Elf;
use crate::fw::error::ImageError;
use crate::fw::kind::Machine;

/// A blob is below this; more is a damaged file.
const MAX_BLOB_BYTES: u64 = 64 << 20;

/// One kernel of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobKernel {
    /// The kernel's name.
    pub name: String,
    /// The kernel's func id.
    pub func_id: u32,
    /// The core kind that it is for.
    pub kind: CoreKind,
    /// Where its code is, from the start of the blob.
    pub offset: u64,
}

/// Position-independent code for GM, to be copied to a page.
#[derive(Clone, Debug)]
pub struct KernelBlob {
    /// The blob's bytes.
    pub bytes: Vec<u8>,
    /// The blob's kernels.
    pub kernels: Vec<BlobKernel>,
}

/// The loaded segments, from address 0; empty where they do not make a blob.
pub(crate) fn flat(elf: &Elf<'_>) -> Vec<u8> {
    let mut flat = Vec::new();
    for part in elf.loaded() {
        let end = part.address.saturating_add(part.file_bytes);
        if end > MAX_BLOB_BYTES {
            return Vec::new();
        }
        let place = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let source =
            elf.bytes.get(place(part.offset)..).and_then(|tail| tail.get(..place(part.file_bytes)));
        flat.resize(flat.len().max(place(end)), 0);
        if let (Some(source), Some(to)) = (source, flat.get_mut(place(part.address)..place(end))) {
            to.copy_from_slice(source);
        }
    }
    // The linker script counts whole lines.
    flat.resize(flat.len().next_multiple_of(64), 0);
    flat
}

/// The table of kernels of a blob.
pub(crate) fn kernels(
    machine: Machine,
    header: &KernelBlobHeader,
    blob: &[u8],
) -> Result<Vec<BlobKernel>, ImageError> {
    let damaged = |what: String| ImageError::Identity { what };
    if header.total_bytes != blob.len() as u64 {
        let (says, has) = (header.total_bytes, blob.len());
        return Err(damaged(format!("KernelBlobHeader.total_bytes is {says}, the blob has {has}")));
    }
    if header.reserved != [0; 4] {
        return Err(damaged("KernelBlobHeader.reserved is not zero".to_owned()));
    }
    let count = header.kernel_count as usize;
    if count > MAX_FUNC_ID {
        return Err(damaged(format!("KernelBlobHeader.kernel_count is {count}")));
    }
    let table_end = size_of::<KernelBlobHeader>() + count * size_of::<KernelBlobEntry>();
    let read = |index: usize| {
        let kernel = entry(machine, blob, index, table_end as u64);
        kernel.ok_or_else(|| damaged(format!("entry {index} of its table of kernels")))
    };
    let kernels: Vec<_> = (0..count).map(read).collect::<Result<_, _>>()?;
    let mut seen = std::collections::BTreeSet::new();
    match kernels.iter().find(|kernel| !seen.insert(kernel.func_id)) {
        Some(twice) => Err(damaged(format!("func id {} is there twice", twice.func_id))),
        None => Ok(kernels),
    }
}

fn entry(machine: Machine, blob: &[u8], index: usize, table_end: u64) -> Option<BlobKernel> {
    // Where an instruction may begin.
    let step = match machine {
        Machine::Aarch64 => 4,
        Machine::X86_64 => 1,
        Machine::DavC220 => 64,
    };
    let at = size_of::<KernelBlobHeader>() + index * size_of::<KernelBlobEntry>();
    let bytes = blob.get(at..)?.get(..size_of::<KernelBlobEntry>())?;
    let entry: KernelBlobEntry = pod_read_unaligned(bytes);
    let end = entry.name.iter().position(|byte| *byte == 0)?;
    let (name, padding) = entry.name.split_at(end);
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    let offset = (at as u64).checked_add(entry.distance)?;
    let is_code = (table_end..blob.len() as u64).contains(&offset) && offset.is_multiple_of(step);
    let is_whole = is_code && padding.iter().all(|byte| *byte == 0);
    let kind = u8::try_from(entry.kind).ok().and_then(|kind| CoreKind::try_from(kind).ok())?;
    let is_known = usize::try_from(entry.func_id).is_ok_and(|func_id| func_id < MAX_FUNC_ID);
    (is_whole && is_known).then(|| BlobKernel {
        name: name.to_owned(),
        func_id: entry.func_id,
        kind,
        offset,
    })
}
