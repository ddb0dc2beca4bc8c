//! Memory that a program says is a tensor, where the runtime itself reads or writes it: for a report, or an element for the program. There may be none at the
//! address, as for a kernel, whose signal ends the run with an error. So it is here.

use std::fmt;

use pto_native::copy_guarded;

use crate::wire::pointer_word;

/// The process has no memory at an address, or none that it may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory {
    /// Where the copy began.
    address: u64,
}

impl fmt::Display for NoMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "this process cannot use the memory at {:#x}", self.address)
    }
}

/// Reads bytes that the program says are a tensor's.
pub(crate) fn read(address: u64, into: &mut [u8]) -> Result<(), NoMemory> {
    let from = std::ptr::with_exposed_provenance(pointer_word(address));
    // SAFETY: `into` is ours. The memory at the address is the program's, which says that the runtime may read it as its kernels do.
    let copied = unsafe { copy_guarded(from, into.as_mut_ptr(), into.len()) };
    copied.map_err(|_signal| NoMemory { address })
}

/// Writes bytes that the program says are a tensor's, which nothing else uses now.
pub(crate) fn write(address: u64, bytes: &[u8]) -> Result<(), NoMemory> {
    let to = std::ptr::with_exposed_provenance_mut(pointer_word(address));
    // SAFETY: `bytes` is ours. The program says that the runtime may write the memory at the address, as its kernels do.
    let copied = unsafe { copy_guarded(bytes.as_ptr(), to, bytes.len()) };
    copied.map_err(|_signal| NoMemory { address })
}

/// Appends bytes as [`read`] reads them. Memory is taken as far as there are bytes to fill it.
pub(crate) fn append(all: &mut Vec<u8>, address: u64, bytes: usize) -> Result<(), NoMemory> {
    let no_memory = NoMemory { address };
    all.try_reserve(bytes).map_err(|_too_many| no_memory)?;
    let from = std::ptr::with_exposed_provenance(pointer_word(address));
    let to = all.spare_capacity_mut().as_mut_ptr().cast();
    // SAFETY: there is room for this many. The memory at the address is as in `read`.
    unsafe { copy_guarded(from, to, bytes) }.map_err(|_signal| no_memory)?;
    // SAFETY: the copy has written so many bytes after the last one.
    unsafe { all.set_len(all.len() + bytes) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{NoMemory, append, read, write};

    #[test]
    fn mapped_memory_is_copied_and_unmapped_memory_is_an_error() {
        let mut own = [1_u8, 2, 3, 4];
        let address = own.as_mut_ptr().expose_provenance() as u64;
        assert_eq!(write(address + 1, &[7, 8]), Ok(()));
        let mut found = [0; 4];
        assert_eq!((read(address, &mut found), found), (Ok(()), [1, 7, 8, 4]));
        let mut all = vec![9];
        assert_eq!(append(&mut all, address, 2), Ok(()));
        for bytes in [1, 1 << 40, usize::MAX] {
            assert_eq!(append(&mut all, 0xA00, bytes), Err(NoMemory { address: 0xA00 }));
        }
        assert_eq!(all, [9, 1, 7]);
        assert_eq!(read(0xA00, &mut found), Err(NoMemory { address: 0xA00 }));
        assert_eq!(write(0xA00, &found), Err(NoMemory { address: 0xA00 }));
        static CONSTANT: [u8; 4] = [5; 4];
        let address = CONSTANT.as_ptr().expose_provenance() as u64;
        assert!(write(address, &found).is_err(), "it can be read, and not written");
    }
}
