//! Whether a file is a whole shared object. Every load of one checks here first (the library `libascendcl.so` compiles this file as well): the system's loader maps what the headers
//! say, and the first read after the end of a file that was cut off ends the process with SIGBUS.

use std::ffi::CString;
use std::path::Path;

use object::elf::{ET_DYN, ET_REL, PT_LOAD};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, elf::FileHeader64};

/// Checks the bytes of a shared object; the error ends a sentence that begins with its name.
///
/// # Errors
/// They are no ELF file of 64 bits, one of another type, or not all of one.
pub fn check_shared_object(bytes: &[u8]) -> Result<(), String> {
    let file = ElfFile64::<Endianness>::parse(bytes)
        .map_err(|error| format!("is no shared object: {error}"))?;
    let (header, endian): (&FileHeader64<Endianness>, _) = (file.elf_header(), file.endian());
    match header.e_type(endian) {
        ET_DYN => {}
        ET_REL => {
            let hint = "is a relocatable object; link it: cc -shared -o kernels.so kernels.o";
            return Err(hint.to_owned());
        }
        kind => return Err(format!("is no shared object: its ELF type is {kind}")),
    }
    let loaded = file.elf_program_headers().iter().filter(|part| part.p_type(endian) == PT_LOAD);
    let ends = loaded.map(|part| part.p_offset(endian).saturating_add(part.p_filesz(endian)));
    match ends.max() {
        None => Err("is no shared object: it has nothing to load".to_owned()),
        Some(end) if end > bytes.len() as u64 => Err(format!(
            "is no whole shared object: it has {} bytes, and its headers speak of {end}",
            bytes.len()
        )),
        Some(_) => Ok(()),
    }
}

/// Checks the file of a shared object, and gives its path as the system's loader takes it.
///
/// # Errors
/// Those of [`check_shared_object`]; the file cannot be read; its name has a zero byte.
pub fn checked_shared_object(path: &Path) -> Result<CString, String> {
    let name = CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|_| "has a zero byte in its name".to_owned())?;
    let bytes = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    check_shared_object(&bytes)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::check_shared_object;
    use std::path::PathBuf;

    /// A shared object that every process here has: the C library.
    fn libc() -> PathBuf {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("the kernel has it");
        let line = maps.lines().find(|line| line.ends_with("/libc.so.6")).expect("it is loaded");
        line.split_whitespace().next_back().expect("its path").into()
    }

    #[test]
    fn whole_objects_pass_and_no_part_of_one_does() {
        let whole = std::fs::read(libc()).expect("a file");
        assert_eq!(check_shared_object(&whole), Ok(()));
        for length in [0, 3, 16, 63, 64, 200, 9000, whole.len() / 2, whole.len() - 1] {
            let error = check_shared_object(&whole[..length]).expect_err("it is cut off");
            assert!(error.starts_with("is no "), "{length}: {error}");
        }
    }

    /// Without section headers the end of the loaded segments decides.
    #[test]
    fn a_part_without_section_headers_does_not_pass() {
        let mut whole = std::fs::read(libc()).expect("a file");
        for field in [0x28..0x30, 0x3C..0x3E, 0x3E..0x40] {
            whole[field].fill(0);
        }
        assert_eq!(check_shared_object(&whole), Ok(()));
        let error = check_shared_object(&whole[..9000]).expect_err("it is cut off");
        assert!(error.contains("it has 9000 bytes, and its headers speak of "), "{error}");
    }
}
