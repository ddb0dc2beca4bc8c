//! Finds programs in other languages that follow addresses of the device's memory as pointers.
//!
//! On the simulator such a pointer works, because the memory is this process's own. On a device it reads what a cache happens to hold, or
//! ends the process. While programs are watched, they get other addresses than those of the device: those of a [`Decoy`], which may not be touched. Addresses that
//! they pass back are translated to the device's (`crate::foreign::Alias`), and a pointer that is followed raises a signal, whose address says which
//! byte of which buffer it was meant to be.

use std::ffi::c_void;
use std::io;
use std::ptr;

use crate::foreign::Alias;
use pto_host::DeviceMemory;

use crate::failure::{Failure, FailureKind};
use crate::guard::{self, Call, ForeignFn};

/// The environment variable that has programs watched: `1`, or `0` as without it.
const VARIABLE: &str = "PTO_CHECK_RAW_ACCESS";

/// Addresses that programs get instead of those of a device's memory, and that may not be touched.
#[derive(Debug)]
pub struct Decoy {
    alias: Alias,
    start: usize,
    bytes: usize,
}

impl Decoy {
    /// One for the memory of a device.
    ///
    /// # Errors
    /// `MAP_GM`: this process has no such range of addresses left.
    pub fn of(memory: &DeviceMemory) -> Result<Self, Failure> {
        let (bytes, _) = memory.size();
        let refused = |why: io::Error| {
            let message = format!("{bytes} addresses to use instead of the device's memory: {why}");
            Failure::new(FailureKind::MAP_GM, message)
        };
        let length =
            usize::try_from(bytes).map_err(|_| refused(io::ErrorKind::OutOfMemory.into()))?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(refused(io::Error::last_os_error()));
        }
        let alias = Alias::new(memory.address(), start.addr() as u64, bytes);
        Ok(Self { alias, start: start.expose_provenance(), bytes: length })
    }

    /// One, if the environment asks for it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: the variable has another value than 0 or 1; `MAP_GM`.
    pub fn from_environment(memory: &DeviceMemory) -> Result<Option<Self>, Failure> {
        match std::env::var(VARIABLE).as_deref() {
            Err(_) | Ok("" | "0") => Ok(None),
            Ok("1") => Self::of(memory).map(Some),
            Ok(other) => {
                let message =
                    format!("{VARIABLE} is {other:?}. Set it to 1 to find raw access, or to 0.");
                Err(Failure::new(FailureKind::INVALID_ARGUMENT, message))
            }
        }
    }

    /// The translation between its addresses and the device's.
    #[must_use]
    pub const fn alias(&self) -> Alias {
        self.alias
    }

    /// The failure of `name`, which accessed `pointer`; `words` are its arguments. `None`: the pointer is none of the decoy's.
    #[must_use]
    pub fn explain(
        &self,
        name: &str,
        pointer: usize,
        words: &[u64],
        memory: &DeviceMemory,
    ) -> Option<Failure> {
        let address = self.alias.followed(pointer as u64)?;
        let target = match memory.allocation(address) {
            Some((start, bytes)) => {
                let is_in =
                    |word: &u64| (start.0..start.0 + bytes).contains(&self.alias.device(*word));
                let word = words.iter().position(is_in);
                let word = word.map(|word| format!(", to which word {word} points"));
                let offset = address.0 - start.0;
                format!(
                    "byte {offset} of the buffer of {bytes} bytes at {start}{}",
                    word.unwrap_or_default()
                )
            }
            None => "no live buffer".to_owned(),
        };
        let message = format!(
            "{name} followed {address}, an address of the device's memory, as a pointer: {target}. \
             On a device it would read what a cache happens to hold."
        );
        Some(Failure::new(FailureKind::RAW_ACCESS, message))
    }
}

/// A builder program that is watched.
#[derive(Debug)]
pub struct Watched {
    decoy: Decoy,
    memory: DeviceMemory,
    /// What messages call it.
    name: String,
}

impl Watched {
    /// The builder program `name` of a device, if the environment asks for it.
    ///
    /// # Errors
    /// Those of [`Decoy::from_environment`].
    pub fn from_environment(memory: &DeviceMemory, name: &str) -> Result<Option<Self>, Failure> {
        let decoy = Decoy::from_environment(memory)?;
        let name = format!("the builder program `{name}`");
        Ok(decoy.map(|decoy| Self { decoy, memory: memory.clone(), name }))
    }

    /// Which addresses it sees.
    #[must_use]
    pub const fn alias(&self) -> Alias {
        self.decoy.alias()
    }

    /// Calls it, with a pointer of the caller's and one of its own; `words` are those of the run.
    ///
    /// # Errors
    /// `RAW_ACCESS`; `BUILDER_SIGNAL`: it raised another signal.
    ///
    /// # Safety
    /// As [`call_guarded`](crate::call_guarded).
    pub unsafe fn call(
        &self,
        function: ForeignFn,
        (first, second): (*mut c_void, *mut u64),
        words: &[u64],
    ) -> Result<i32, Failure> {
        let call = Call { function, runtime: first, args: second, count: 0 };
        // SAFETY: the caller vouches for the function.
        unsafe { guard::call(call, &self.name) }.map_err(|signal| {
            let found = self.decoy.explain(&self.name, signal.address, words, &self.memory);
            let other = || format!("{} raised {}", self.name, signal.name());
            found.unwrap_or_else(|| Failure::new(FailureKind::BUILDER_SIGNAL, other()))
        })
    }
}

impl Drop for Decoy {
    fn drop(&mut self) {
        let start = ptr::with_exposed_provenance_mut(self.start);
        // SAFETY: `of` made this mapping of exactly this length; no pages of it are accessible.
        let result = unsafe { libc::munmap(start, self.bytes) };
        debug_assert_eq!(result, 0, "munmap: {}", io::Error::last_os_error());
    }
}
