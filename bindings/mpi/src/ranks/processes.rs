//! The processes of the other ranks on this host: the kernel says at once when one of them ends, sooner than any silence is noticed.

use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// Which process a rank is, and in which name space its number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessId {
    /// Its number.
    pub(crate) process: u32,
    /// Of the machine's start and the name space: equal where numbers mean the same processes.
    pub(crate) space: u64,
}

impl ProcessId {
    /// This process.
    pub(crate) fn own() -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let space = fs::metadata("/proc/self/ns/pid").map_or(0, |space| space.ino());
        // FNV-1a: any hash that all ranks compute alike. Two machines have the same one in a chance of 2^-64.
        let hash =
            boot.bytes().chain(space.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        Self { process: std::process::id(), space: hash }
    }
}

/// Those that are watched.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    watched: Vec<(u32, u32, OwnedFd)>,
}

impl Processes {
    /// Watches the process of a rank, if it is one of this host.
    pub(crate) fn watch(&mut self, rank: u32, identity: ProcessId) {
        if identity.space != ProcessId::own().space {
            return;
        }
        // SAFETY: the call takes two numbers, and gives a descriptor or an error.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, identity.process, 0) };
        let Ok(descriptor @ 0..) = i32::try_from(descriptor) else {
            log::debug!("rank {rank}, process {}, cannot be watched", identity.process);
            return;
        };
        // SAFETY: the descriptor has just been opened, and has no other owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        self.watched.push((rank, identity.process, descriptor));
    }

    /// The first rank whose process has ended, with its number. Each process is reported once.
    pub(crate) fn ended(&mut self) -> Option<(u32, u32)> {
        let events = libc::POLLIN;
        let mut polled: Vec<_> = self
            .watched
            .iter()
            .map(|(.., fd)| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 })
            .collect();
        // SAFETY: the array has so many entries, and the call does not wait.
        let count = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) };
        if count <= 0 {
            return None;
        }
        let at = polled.iter().position(|one| one.revents & events != 0)?;
        let (rank, process, _) = self.watched.swap_remove(at);
        Some((rank, process))
    }
}

#[cfg(test)]
mod tests {
    use super::{ProcessId, Processes};
    use std::process::Command;

    #[test]
    fn a_process_that_ends_is_reported_with_its_rank() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut processes = Processes::default();
        let identity = ProcessId { process: child.id(), ..ProcessId::own() };
        processes.watch(3, identity);
        processes.watch(4, ProcessId { space: identity.space ^ 1, ..identity });
        assert_eq!(processes.ended(), None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(processes.ended(), Some((3, child.id())));
        assert_eq!(processes.ended(), None);
    }
}
