//! Which kernels a device has, for those that check calls while it runs: sessions, and builder programs of this process.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pto_abi::limits::MAX_FUNC_ID;
use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_aicore_kernels::{LIBRARY, LibraryKernel};

use crate::kernel::Kernel;

/// Which kernels are registered, and what each expects, without asking the device, which may be busy.
///
/// A word is the core kind, from 1, in the low byte, and from bit 8 on the func id of the kernel in the library, from 1. Zero: there is no kernel.
pub(crate) struct KernelKinds {
    words: Vec<AtomicU32>,
    /// Where the code of each is.
    code: Vec<AtomicU64>,
}

impl Default for KernelKinds {
    fn default() -> Self {
        Self {
            words: (0..MAX_FUNC_ID).map(|_| AtomicU32::new(0)).collect(),
            code: (0..MAX_FUNC_ID).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl KernelKinds {
    /// Takes over what is registered now. A kernel that stays registered can be launched meanwhile.
    pub(crate) fn read<'k>(&self, kernels: impl Iterator<Item = (FuncId, &'k Kernel)>) {
        let mut kinds = [0; MAX_FUNC_ID];
        for (func_id, kernel) in kernels {
            kinds[func_id.index()] = word_of(kernel);
        }
        for (word, kind) in self.words.iter().zip(kinds) {
            word.store(kind, Ordering::Relaxed);
        }
    }

    /// A kernel has come, with the address of its code, or gone.
    pub(crate) fn set(&self, func_id: FuncId, kernel: Option<(&Kernel, GmAddr)>) {
        let at = func_id.index();
        if let Some((word, code)) = self.words.get(at).zip(self.code.get(at)) {
            word.store(kernel.map_or(0, |(kernel, _)| word_of(kernel)), Ordering::Relaxed);
            code.store(kernel.map_or(0, |(_, code)| code.0), Ordering::Relaxed);
        }
    }

    /// Refuses the address of a task's code where no kernel is: a core would begin there.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check_code(&self, func_id: FuncId, code: GmAddr) -> Result<(), String> {
        let is_there = |known: &AtomicU64| known.load(Ordering::Relaxed) == code.0;
        // It mostly is that of the func id.
        let is_known = self.code.get(func_id.index()).is_some_and(is_there);
        match is_known || self.code.iter().any(is_there) {
            true => Ok(()),
            false => Err(format!(
                "no kernel that is registered has its code at {code}: register the kernel, and leave the address out"
            )),
        }
    }

    /// The core kind of a kernel, and the kernel of the library that it is; `None`: it is not registered, or the device has no such cores.
    #[inline]
    pub(crate) fn of(&self, func_id: FuncId) -> Option<(CoreKind, Option<&'static LibraryKernel>)> {
        let word = self.words.get(func_id.index())?.load(Ordering::Relaxed);
        let [kind, ..] = word.to_le_bytes();
        let library = (word >> 8).checked_sub(1).and_then(|id| LIBRARY.get(id as usize));
        Some((CoreKind::try_from(kind.checked_sub(1)?).ok()?, library))
    }
}

fn word_of(kernel: &Kernel) -> u32 {
    let library = kernel.as_library().map_or(0, |library| library.func_id + 1);
    library << 8 | u32::from(kernel.kind().get() + 1)
}
