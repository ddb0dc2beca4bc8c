//! Pages that several addresses and several processes share: a file in memory, mapped over a part of GM.
//!
//! A file has a page of its own behind its bytes, where the process that made it says which processes may map it. Another process finds the
//! file under `/proc/PID/fd/FD`, so that nothing is left behind when both are gone.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::fs::FileExt as _;

use super::settings::{Machine, settings};
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
/// Processes that a file can name.
const MAX_READERS: usize = 64;
const MAGIC: u64 = 0x5054_4f41_434c_0001;

/// `bytes`, up to whole pages.
pub(crate) fn pages(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE)
}

/// A file in memory.
#[derive(Debug)]
pub(crate) struct Shared {
    file: File,
    /// The process that made the file, and its number there.
    origin: (u32, i32),
    bytes: usize,
}

impl Shared {
    /// A file of zeros, at least `bytes` long.
    pub(crate) fn new(bytes: usize) -> Answer<Self> {
        let bytes = pages(bytes);
        // SAFETY: the name is a string with a zero at its end.
        let fd = unsafe { libc::memfd_create(c"pto-acl".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(refused("a file in memory", &io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is new, and nobody else has it.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len((bytes + PAGE) as u64).map_err(|error| refused("shared pages", &error))?;
        let shared = Self { file, origin: (std::process::id(), fd), bytes };
        let head = [MAGIC, bytes as u64, 0, 0];
        shared.write_words(0, &head)?;
        Ok(shared)
    }

    /// The file of another process, or of this one.
    pub(crate) fn open(origin: (u32, i32)) -> Answer<Self> {
        let (process, number) = origin;
        let path = format!("/proc/{process}/fd/{number}");
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(|error| {
            let text = format!("process {process} does not share these pages ({error}); export them before the import, and keep the exporter alive");
            Refusal::new(codes::IPC, text)
        })?;
        let mut head = [0; 16];
        let read = file.read_exact_at(&mut head, file_end(&file)?);
        let words = read.map(|()| (word(&head, 0), word(&head, 1)));
        let bytes = match words {
            Ok((MAGIC, bytes)) => usize::try_from(bytes).unwrap_or(0),
            _ => return Err(Refusal::new(codes::IPC, "the key names no shared pages")),
        };
        Ok(Self { file, origin, bytes })
    }

    pub(crate) fn origin(&self) -> (u32, i32) {
        self.origin
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether another process made it.
    pub(crate) fn is_foreign(&self) -> bool {
        self.origin.0 != std::process::id()
    }

    /// Anybody may map it from now on (`processes` is `None`), or these processes.
    pub(crate) fn allow(&self, processes: Option<&[i32]>) -> Answer {
        let Some(processes) = processes else { return self.write_words(2, &[1]) };
        let known = self.words()?;
        let count = usize::try_from(known[3]).unwrap_or(0);
        require(count + processes.len() <= MAX_READERS, || {
            Refusal::value(format!("pages can be shared with {MAX_READERS} processes"))
        })?;
        let ids: Vec<u64> = processes.iter().map(|id| u64::from(id.cast_unsigned())).collect();
        self.write_words(4 + count, &ids)?;
        self.write_words(3, &[(count + ids.len()) as u64])
    }

    /// Refuses unless this process may map it.
    pub(crate) fn check_allowed(&self) -> Answer {
        let words = self.words()?;
        let count = usize::try_from(words[3]).unwrap_or(0).min(MAX_READERS);
        let own = u64::from(std::process::id());
        require(words[2] == 1 || words[4..4 + count].contains(&own), || {
            let text = format!(
                "process {own} may not import this; the exporter names it, or exports without a check of processes"
            );
            Refusal::new(codes::NO_PERMISSION, text)
        })
    }

    /// Maps the pages at `address`, in place of what is there.
    pub(crate) fn map_at(&self, address: usize, offset: usize, bytes: usize) -> Answer {
        check_supported()?;
        map(address, bytes, libc::MAP_SHARED, self.file.as_raw_fd(), offset)
    }

    /// Copies the bytes at `address` into the file.
    pub(crate) fn fill_from(&self, address: usize, bytes: usize) -> Answer {
        let start = std::ptr::with_exposed_provenance::<u8>(address);
        // SAFETY: the caller has looked up that a live block of GM has these bytes.
        let held = unsafe { std::slice::from_raw_parts(start, bytes) };
        self.file.write_all_at(held, 0).map_err(|error| refused("shared pages", &error))
    }

    fn words(&self) -> Answer<[u64; 4 + MAX_READERS]> {
        let mut bytes = [0; 8 * (4 + MAX_READERS)];
        let read = self.file.read_exact_at(&mut bytes, self.bytes as u64);
        read.map_err(|error| refused("shared pages", &error))?;
        Ok(std::array::from_fn(|index| word(&bytes, index)))
    }

    fn write_words(&self, at: usize, words: &[u64]) -> Answer {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let written = self.file.write_all_at(&bytes, (self.bytes + 8 * at) as u64);
        written.map_err(|error| refused("shared pages", &error))
    }
}

/// Refuses on devices whose memory is not of this process alone: an emulated machine would not see other pages in its place.
pub(crate) fn check_supported() -> Answer {
    require(settings().machine == Machine::Simulator, || {
        let text = "the device virt has its memory in a machine, which sees no pages that are mapped over it: there is no virtual memory and no memory between processes; use the device a2a3sim";
        Refusal::unsupported(text)
    })
}

/// Where the page behind the bytes begins.
fn file_end(file: &File) -> Answer<u64> {
    let length = file.metadata().map_err(|error| refused("shared pages", &error))?.len();
    Ok(length.saturating_sub(PAGE as u64))
}

fn word(bytes: &[u8], index: usize) -> u64 {
    let part = bytes.get(8 * index..8 * index + 8).and_then(|part| part.try_into().ok());
    part.map_or(0, u64::from_ne_bytes)
}

/// Puts fresh zeros in place of what is mapped at `address`.
pub(crate) fn restore(address: usize, bytes: usize) -> Answer {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map(address, bytes, flags, -1, 0)
}

fn map(address: usize, bytes: usize, flags: i32, fd: i32, offset: usize) -> Answer {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let place = std::ptr::with_exposed_provenance_mut(address);
    let offset = libc::off_t::try_from(offset).unwrap_or(libc::off_t::MAX);
    // SAFETY: the pages are whole pages of a block of GM that the caller owns; what replaces them can be read and written as before,
    // and everybody reaches GM through raw pointers.
    let mapped =
        unsafe { libc::mmap(place, bytes, protection, flags | libc::MAP_FIXED, fd, offset) };
    require(mapped != libc::MAP_FAILED, || refused("pages", &io::Error::last_os_error()))
}

fn refused(what: &str, error: &io::Error) -> Refusal {
    Refusal::new(codes::NO_RESOURCE, format!("the system gives no {what}: {error}"))
}
