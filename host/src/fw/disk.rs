//! Writes files completely or not at all: to a temporary file in the target's folder, which is flushed and then renamed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// How bytes get into a file; tests replace it.
pub(crate) type Writer = fn(&mut File, &[u8]) -> io::Result<()>;

/// The ordinary way.
pub(crate) fn write_all(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)
}

/// Replaces `path`; when this fails, or is interrupted, the old file is still there.
pub(crate) fn replace(path: &Path, bytes: &[u8], write: Writer) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = folder.join(name);
    let result = put(&beside, bytes, write).and_then(|()| fs::rename(&beside, path));
    if result.is_err() {
        // What cannot be removed is removed by the next flash; see `sweep`.
        let _ = fs::remove_file(&beside);
        return result;
    }
    // The rename itself is on the disk when its folder is.
    File::open(folder)?.sync_all()
}

fn put(path: &Path, bytes: &[u8], write: Writer) -> io::Result<()> {
    let mut file = File::create(path)?;
    write(&mut file, bytes)?;
    file.sync_all()
}

/// Removes what interrupted writes left in a folder.
pub(crate) fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().ends_with(".new") {
            // It costs a little room, no more.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether others may hold a lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Readers.
    Shared,
    /// One writer.
    Exclusive,
}

/// A lock on a folder, held until this is dropped or the process ends.
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock goes with the descriptor")] File);

impl Lock {
    /// Waits for the lock.
    pub(crate) fn take(path: &Path, sharing: Sharing) -> io::Result<Self> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        let operation = match sharing {
            Sharing::Shared => libc::LOCK_SH,
            Sharing::Exclusive => libc::LOCK_EX,
        };
        // SAFETY: locks a file that is open here; touches no memory.
        while unsafe { libc::flock(file.as_raw_fd(), operation) } != 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(Self(file))
    }
}
