//! Images of one folder are built and sealed one after the other.
//!
//! Whatever features it builds with, cargo puts a program at the same path, and lets go of its own lock before anybody can read what is there. Two
//! processes that build variants of one image would read each other's.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::cargo::Job;
use super::error::BuildError;
use super::request::Request;

/// A turn to build in a folder of cargo's, until it is dropped, or its process ends.
#[must_use]
pub(crate) struct Turn {
    _lock: File,
}

/// Waits for the turn of a job in cargo's folder `target`; tells `say` that it waits.
pub(crate) fn take(
    job: &Job,
    (request, target): (&Request, &Path),
    say: &dyn Fn(&str),
) -> Result<Turn, BuildError> {
    let (profile, ..) = job.profile(request.machine);
    Turn::of_file(target, &format!("{}-{profile}.lock", request.triple()), say)
}

/// Waits for the turn to write and build the source tree in `folder`.
pub(crate) fn of_tree(folder: &Path, say: &dyn Fn(&str)) -> Result<Turn, BuildError> {
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    Turn::of_file(above.unwrap_or(Path::new(".")), &format!("{name}.lock"), say)
}

impl Turn {
    fn of_file(folder: &Path, name: &str, say: &dyn Fn(&str)) -> Result<Self, BuildError> {
        let path = folder.join(name);
        let failed = |source| BuildError::File { path: path.clone(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let lock = File::create(&path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                say(&format!("waiting for another build of images in '{}'", folder.display()));
                lock.lock().map_err(failed)?;
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        Ok(Self { _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::Turn;

    #[test]
    fn a_second_build_waits_for_the_first_and_says_so() {
        let folder = std::env::temp_dir().join(format!("pto-turn-{}", std::process::id()));
        let nothing = |sentence: &str| panic!("{sentence}");
        let first = Turn::of_file(&folder, "a.lock", &nothing).unwrap();
        // Another profile's folder is another one's turn.
        let _other = Turn::of_file(&folder, "b.lock", &nothing).unwrap();
        let (waits, is_waiting) = channel();
        let second = thread::spawn({
            let folder = folder.clone();
            move || {
                let say = |sentence: &str| waits.send(sentence.to_owned()).unwrap();
                Turn::of_file(&folder, "a.lock", &say).map(|_| ()).unwrap();
            }
        });
        let said = is_waiting.recv().unwrap();
        assert!(said.starts_with("waiting for another build of images in"), "{said}");
        assert!(!second.is_finished());
        drop(first);
        second.join().unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    }
}
