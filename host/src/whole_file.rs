//! Files that are written whole or not at all. A file is written to the same folder and renamed, so that what was there before stays until the
//! new one is complete.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Result, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes a file: all that `body` writes, or nothing. A device or a pipe is written and not replaced.
///
/// # Errors
/// Those of `body` and of the operating system; a file that was there is as before then.
pub fn write_whole(
    path: &Path,
    body: impl FnOnce(&mut BufWriter<&mut File>) -> Result<()>,
) -> Result<()> {
    let target = target_of(path);
    if is_special(&target) {
        return fill(&mut File::options().write(true).open(&target)?, body);
    }
    let mut new = NewFile::next_to(&target)?;
    fill(&mut new.file, body)?;
    // A file that is there keeps who may read it.
    if let Ok(there) = fs::metadata(&target) {
        new.file.set_permissions(there.permissions())?;
    }
    fs::rename(&new.path, &target)?;
    new.is_renamed = true;
    Ok(())
}

/// Whether [`write_whole`] could begin; nothing stays of the trial.
///
/// # Errors
/// Those of the operating system.
pub fn check_whole(path: &Path) -> Result<()> {
    let target = target_of(path);
    match is_special(&target) {
        true => Ok(()),
        // Removed again at once.
        false => NewFile::next_to(&target).map(drop),
    }
}

fn fill(file: &mut File, body: impl FnOnce(&mut BufWriter<&mut File>) -> Result<()>) -> Result<()> {
    let mut to = BufWriter::new(file);
    body(&mut to)?;
    to.flush()
}

/// A new file in the folder of its target, which is removed unless it is renamed.
struct NewFile {
    file: File,
    path: PathBuf,
    is_renamed: bool,
}

impl NewFile {
    /// A file in the same folder, with the rights of a file that is simply created.
    fn next_to(target: &Path) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!(".pto-{}-{number}.new", std::process::id());
            let path = folder_of(target).join(name);
            match File::create_new(&path) {
                Ok(file) => return Ok(Self { file, path, is_renamed: false }),
                // Left by a process that ended, and had this number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_renamed {
            // What cannot be removed takes a little room, no more.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The folder that a file of this name is in.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The file itself, where the name is a link to it.
#[must_use]
pub fn target_of(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Whether something is there that is neither a file nor a folder.
fn is_special(target: &Path) -> bool {
    fs::metadata(target).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

#[cfg(test)]
mod tests {
    use super::{check_whole, write_whole};
    use std::fs;
    use std::io::{Error, ErrorKind, Write};
    use std::path::Path;

    #[test]
    fn a_file_is_there_whole_or_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        write_whole(&path, |to| to.write_all(b"first")).expect("it is written");
        let failed = write_whole(&path, |to| {
            to.write_all(b"second")?;
            to.flush()?;
            Err(Error::from(ErrorKind::StorageFull))
        });
        assert_eq!(failed.expect_err("it fails").kind(), ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).expect("it is there"), b"first");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        write_whole(&path, |to| to.write_all(b"third")).expect("it is written");
        assert_eq!(fs::read(&path).expect("it is there"), b"third");
    }

    /// Bytes that do not fit are an error, also if all of them wait in a buffer until the end.
    #[test]
    fn a_full_device_is_an_error() {
        let full = write_whole(Path::new("/dev/full"), |to| to.write_all(b"a few bytes"));
        assert_eq!(full.expect_err("it is full").kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn a_link_stays_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "old").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        write_whole(&link, |to| to.write_all(b"new")).expect("it is written");
        assert_eq!(fs::read(&file).expect("it is there"), b"new");
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
    }

    #[test]
    fn a_trial_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        check_whole(&folder.path().join("file")).expect("it can be written");
        check_whole(Path::new("/dev/null")).expect("it can be written");
        assert!(check_whole(&folder.path().join("no/file")).is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
