//! Pages that several addresses and several processes share: parts of a file in memory, mapped over a part of GM.
//!
//! ```text
//! file of a process:   page of the part, its bytes | page of the part, its bytes | ..
//! ```
//! A process has one such file, so that shared pages take one descriptor, however many there are. On the page in front of the bytes of a part that
//! is exported the process says which processes may map it. Another process finds the file by its name under `/proc/PID/fd`, and keeps it open as
//! long as it has a part of it: one descriptor for each process. Nothing is left when both are gone.
//!
//! A process that has a part of another one holds a lock on its first byte. The owner reuses a part when no process holds one.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::settings::{DeviceKind, settings};
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
/// Processes that a part can name.
const MAX_READERS: usize = 64;
const MAGIC: u64 = 0x5054_4f41_434c_0002;

/// `bytes`, up to whole pages.
pub(crate) fn pages(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE)
}

/// The process that made shared pages, and the page of its file where their part begins.
pub(crate) type Origin = (u32, u32);

/// The file of this process.
struct ProcessFile {
    file: File,
    parts: Mutex<FileSpace>,
}

/// Which parts of the file are free.
#[derive(Default)]
struct FileSpace {
    end: usize,
    /// Free ranges of the file: from the start of each range to its length.
    free: BTreeMap<usize, usize>,
    /// Parts that this process has let go of, and another process had when it was looked last.
    left: Vec<(usize, usize)>,
}

/// The file of another process.
struct Peer {
    file: File,
    /// How often this process has the part that begins there.
    held: Mutex<BTreeMap<usize, usize>>,
}

static OWN: Mutex<Option<Arc<ProcessFile>>> = Mutex::new(None);
static PEERS: Mutex<BTreeMap<u32, Weak<Peer>>> = Mutex::new(BTreeMap::new());
/// When something was exported last.
static EXPORTED: Mutex<Option<Instant>> = Mutex::new(None);
/// How long another process may take until it imports what was exported.
const IMPORTED_WITHIN: Duration = Duration::from_secs(30);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whose shared pages are.
enum Holder {
    /// This process's; they go with the value.
    Process(Arc<ProcessFile>),
    /// This process's; the value only looks at them.
    Looked(Arc<ProcessFile>),
    Other(Arc<Peer>),
}

/// Shared pages.
pub(crate) struct SharedPages {
    holder: Holder,
    process: u32,
    /// Where their part begins in the file.
    at: usize,
    bytes: usize,
    was_exported: AtomicBool,
}

impl SharedPages {
    /// Pages of zeros, at least `bytes` long.
    pub(crate) fn new(bytes: usize) -> Answer<Self> {
        let (own, bytes) = (own()?, pages(bytes));
        let at = own.take(PAGE + bytes)?;
        let (process, was_exported) = (std::process::id(), AtomicBool::new(false));
        Ok(Self { holder: Holder::Process(own), process, at, bytes, was_exported })
    }

    /// The pages of another process, or a look at those of this one.
    pub(crate) fn open((process, page): Origin) -> Answer<Self> {
        let at = page as usize * PAGE;
        let holder = if process == std::process::id() {
            Holder::Looked(own()?)
        } else {
            let peer = peer(process)?;
            peer.hold(at)?;
            Holder::Other(peer)
        };
        let mut shared =
            Self { holder, process, at, bytes: 0, was_exported: AtomicBool::new(true) };
        shared.bytes = match shared.words() {
            Ok([MAGIC, bytes, ..]) => usize::try_from(bytes).unwrap_or(0),
            _ => return Err(Refusal::new(codes::IPC, "the key names no shared pages")),
        };
        Ok(shared)
    }

    fn file(&self) -> &File {
        match &self.holder {
            Holder::Process(own) | Holder::Looked(own) => &own.file,
            Holder::Other(peer) => &peer.file,
        }
    }

    /// Where other processes find the pages, from now on.
    pub(crate) fn export(&self) -> Answer<Origin> {
        // Acquire: pairs with the Release store below. Two threads that export at once write the same words.
        if !self.was_exported.load(Ordering::Acquire) {
            self.write_words(0, &[MAGIC, self.bytes as u64])?;
            // Release: pairs with the Acquire load above.
            self.was_exported.store(true, Ordering::Release);
        }
        *lock(&EXPORTED) = Some(Instant::now());
        let page = u32::try_from(self.at / PAGE).map_err(|_| {
            Refusal::new(codes::NO_RESOURCE, "the process shares more pages than a key can name")
        })?;
        Ok((self.process, page))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether another process made it.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.holder, Holder::Other(_))
    }

    /// Anybody may map it from now on (`processes` is `None`), or these processes.
    pub(crate) fn allow(&self, processes: Option<&[i32]>) -> Answer {
        let Some(processes) = processes else { return self.write_words(2, &[1]) };
        let known = self.words()?;
        let count = usize::try_from(known[3]).unwrap_or(0);
        require(count.saturating_add(processes.len()) <= MAX_READERS, || {
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

    /// Maps all of the pages at `address`, over what is there.
    pub(crate) fn map_at(&self, address: usize) -> Answer {
        check_supported()?;
        map(address, self.bytes, libc::MAP_SHARED, self.file().as_raw_fd(), self.at + PAGE)
    }

    /// Copies the bytes at `address` into the file.
    pub(crate) fn fill_from(&self, address: usize) -> Answer {
        let start = std::ptr::with_exposed_provenance::<u8>(address);
        // SAFETY: the caller has looked up that a live block of GM has these bytes.
        let held = unsafe { std::slice::from_raw_parts(start, self.bytes) };
        let written = self.file().write_all_at(held, (self.at + PAGE) as u64);
        written.map_err(|error| refused("shared pages", &error))
    }

    fn words(&self) -> Answer<[u64; 4 + MAX_READERS]> {
        let mut bytes = [0; 8 * (4 + MAX_READERS)];
        let read = self.file().read_exact_at(&mut bytes, self.at as u64);
        read.map_err(|error| refused("shared pages", &error))?;
        let mut words = [0; 4 + MAX_READERS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        }
        Ok(words)
    }

    fn write_words(&self, at: usize, words: &[u64]) -> Answer {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let written = self.file().write_all_at(&bytes, (self.at + 8 * at) as u64);
        written.map_err(|error| refused("shared pages", &error))
    }
}

impl Drop for SharedPages {
    fn drop(&mut self) {
        match &self.holder {
            Holder::Process(own) => {
                let was_exported = self.was_exported.load(Ordering::Relaxed);
                // From here on it cannot be imported. Bytes that cannot be written stay in the file.
                if !was_exported || self.write_words(0, &[0]).is_ok() {
                    own.give_back(self.at, PAGE + self.bytes, was_exported);
                }
            }
            Holder::Looked(_) => {}
            Holder::Other(peer) => peer.let_go(self.at),
        }
    }
}

/// Whether another process may write memory that a stream of this process waits for. Such a process exported memory to this one, or
/// imported memory from it, or can still import it.
pub(crate) fn may_processes_act() -> bool {
    let is_there = |process: &u32| Path::new(&format!("/proc/{process}")).exists();
    let has_peers =
        lock(&PEERS).iter().any(|(process, peer)| peer.strong_count() > 0 && is_there(process));
    let is_new = |exported: Instant| exported.elapsed() < IMPORTED_WITHIN;
    has_peers
        || lock(&EXPORTED).is_some_and(is_new)
        || lock(&OWN)
            .as_ref()
            .is_some_and(|own| own.is_held_elsewhere(range(0, TO_THE_END, libc::F_WRLCK)))
}

/// The file of this process; it is made when the first part is asked for.
fn own() -> Answer<Arc<ProcessFile>> {
    let mut held = lock(&OWN);
    if let Some(own) = &*held {
        return Ok(Arc::clone(own));
    }
    let name = std::ffi::CString::new(name_of(std::process::id())).unwrap_or_default();
    // SAFETY: the name is a string with a zero at its end.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(refused("a file in memory", &io::Error::last_os_error()));
    }
    // SAFETY: the descriptor is new, and has no other owner.
    let file = unsafe { File::from_raw_fd(fd) };
    let own = Arc::new(ProcessFile { file, parts: Mutex::default() });
    Ok(Arc::clone(held.insert(own)))
}

/// The name of the file of a process.
fn name_of(process: u32) -> String {
    format!("pto-acl-{process}")
}

/// The file of another process.
fn peer(process: u32) -> Answer<Arc<Peer>> {
    let refuse = |why: &dyn std::fmt::Display| {
        let text = format!(
            "process {process} does not share these pages ({why}); export them before the import, and keep the exporter alive"
        );
        Refusal::new(codes::IPC, text)
    };
    let path = file_of(process).map_err(|error| refuse(&error))?;
    let path = path.ok_or_else(|| refuse(&"it shares none"))?;
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|error| refuse(&error))?;
    let number = |file: &File| file.metadata().map(|data| data.ino()).ok();
    let mut peers = lock(&PEERS);
    peers.retain(|_, peer| peer.strong_count() > 0);
    // Another process may have had this number before.
    let known = peers.get(&process).and_then(Weak::upgrade);
    if let Some(known) = known.filter(|known| number(&known.file) == number(&file)) {
        return Ok(known);
    }
    let peer = Arc::new(Peer { file, held: Mutex::default() });
    peers.insert(process, Arc::downgrade(&peer));
    Ok(peer)
}

/// Where the file of another process is.
fn file_of(process: u32) -> io::Result<Option<PathBuf>> {
    let name = format!("/memfd:{} (deleted)", name_of(process));
    let entries = std::fs::read_dir(format!("/proc/{process}/fd"))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.find(|path| std::fs::read_link(path).is_ok_and(|to| to.as_os_str() == name.as_str())))
}

impl ProcessFile {
    /// A part of this many bytes, with zeros: where it begins.
    fn take(&self, bytes: usize) -> Answer<usize> {
        let mut parts = lock(&self.parts);
        self.look_at_left(&mut parts);
        let found = parts.free.iter().find(|(_, length)| **length >= bytes);
        if let Some((at, length)) = found.map(|(at, length)| (*at, *length)) {
            parts.free.remove(&at);
            if length > bytes {
                parts.free.insert(at + bytes, length - bytes);
            }
            return Ok(at);
        }
        let (at, end) = (parts.end, parts.end.saturating_add(bytes));
        self.file.set_len(end as u64).map_err(|error| refused("shared pages", &error))?;
        parts.end = end;
        Ok(at)
    }

    /// A part is not needed here any more.
    fn give_back(&self, at: usize, bytes: usize, was_exported: bool) {
        let mut parts = lock(&self.parts);
        if was_exported {
            parts.left.push((at, bytes));
            self.look_at_left(&mut parts);
        } else {
            self.free(&mut parts, at, bytes);
        }
    }

    /// Parts that no other process has any more are free.
    fn look_at_left(&self, parts: &mut FileSpace) {
        for (at, bytes) in std::mem::take(&mut parts.left) {
            if self.is_held_elsewhere(range(at, 1, libc::F_WRLCK)) {
                parts.left.push((at, bytes));
            } else {
                self.free(parts, at, bytes);
            }
        }
    }

    /// Whether another process has a lock in a range.
    fn is_held_elsewhere(&self, range: libc::flock) -> bool {
        let mut range = range;
        // SAFETY: the descriptor is open, and the structure is writable.
        let asked =
            unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut range) };
        asked != 0 || i32::from(range.l_type) != libc::F_UNLCK
    }

    /// Makes zeros of a part, and joins it with its free neighbours. Where the system makes none, it stays as it is, and is not used again.
    fn free(&self, parts: &mut FileSpace, at: usize, bytes: usize) {
        let offset = |bytes: usize| libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the descriptor is open.
        let made =
            unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset(at), offset(bytes)) };
        if made != 0 {
            return;
        }
        let (mut at, mut bytes) = (at, bytes);
        if let Some((before, length)) = parts.free.range(..at).next_back()
            && before + length == at
        {
            (at, bytes) = (*before, bytes + length);
        }
        bytes += parts.free.remove(&(at + bytes)).unwrap_or(0);
        parts.free.insert(at, bytes);
    }
}

impl Peer {
    /// This process has a part of the file from now on.
    fn hold(&self, at: usize) -> Answer {
        let mut held = lock(&self.held);
        let count = held.entry(at).or_default();
        if *count == 0 {
            self.set_lock(at, libc::F_RDLCK).map_err(|error| refused("shared pages", &error))?;
        }
        *count += 1;
        Ok(())
    }

    fn let_go(&self, at: usize) {
        let mut held = lock(&self.held);
        if held.get(&at) == Some(&1) {
            held.remove(&at);
            // A lock that stays keeps the part from being used again.
            self.set_lock(at, libc::F_UNLCK).unwrap_or_default();
        } else if let Some(count) = held.get_mut(&at) {
            *count -= 1;
        }
    }

    fn set_lock(&self, at: usize, kind: i32) -> io::Result<()> {
        let range = range(at, 1, kind);
        // SAFETY: the descriptor is open, and the structure is readable.
        let set =
            unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
        if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// As the length of a range: to the end of the file, wherever that is.
const TO_THE_END: libc::off_t = 0;

/// Bytes of a file, for a lock.
fn range(at: usize, bytes: libc::off_t, kind: i32) -> libc::flock {
    libc::flock {
        l_type: libc::c_short::try_from(kind).unwrap_or_default(),
        l_whence: libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default(),
        l_start: libc::off_t::try_from(at).unwrap_or(libc::off_t::MAX),
        l_len: bytes,
        l_pid: 0,
    }
}

/// Refuses on devices whose memory is not of this process alone: an emulated machine would not see other pages at its addresses.
pub(crate) fn check_supported() -> Answer {
    require(settings().machine == DeviceKind::Simulator, || {
        let text = "the device qemu has its memory in a machine, which sees no pages that are mapped over it: there is no virtual memory and no memory between processes; use the device a2a3sim";
        Refusal::unsupported(text)
    })
}

/// Maps fresh zeros over what is mapped at `address`.
pub(crate) fn restore(address: usize, bytes: usize) -> Answer {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map(address, bytes, flags, -1, 0)
}

fn map(address: usize, bytes: usize, flags: i32, fd: i32, offset: usize) -> Answer {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let start = std::ptr::with_exposed_provenance_mut(address);
    let offset = libc::off_t::try_from(offset).unwrap_or(libc::off_t::MAX);
    // SAFETY: the pages are whole pages of a block of GM that the caller owns; what replaces them can be read and written as before,
    // and everybody reaches GM through raw pointers.
    let mapped =
        unsafe { libc::mmap(start, bytes, protection, flags | libc::MAP_FIXED, fd, offset) };
    require(mapped != libc::MAP_FAILED, || refused("pages", &io::Error::last_os_error()))
}

fn refused(what: &str, error: &io::Error) -> Refusal {
    Refusal::new(codes::NO_RESOURCE, format!("the system gives no {what}: {error}"))
}
