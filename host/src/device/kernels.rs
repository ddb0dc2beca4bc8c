//! Which kernels a device has, and which it knows by func id.

use pto_abi::FuncId;
use pto_aicore_kernels::LIBRARY;

use super::Device;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::kernels::KernelTable;

/// Kernels.
impl Device {
    /// Makes `kernel` the one that `func_id` runs.
    ///
    /// # Errors
    /// `FuncIdLimit`, `DuplicateFuncId`, `KernelNotForDevice`.
    pub fn register_kernel(&mut self, func_id: FuncId, kernel: Kernel) -> Result<(), Error> {
        self.kernels.insert(func_id, kernel, &*self.backend)
    }

    /// The func id of a kernel that is called by its name only: the one that it has, or the highest that is free.
    ///
    /// # Errors
    /// `NoFuncId`, `KernelNotForDevice`, `KernelNotFlashed`.
    pub fn func_id_of(&mut self, kernel: Kernel) -> Result<FuncId, Error> {
        if let Some(func_id) = self.kernels.id_of(&kernel) {
            return Ok(func_id);
        }
        let none = || Error::NoFuncId { name: kernel.name().to_owned() };
        let func_id = self.kernels.free_id().ok_or_else(none)?;
        self.register_kernel(func_id, kernel)?;
        Ok(func_id)
    }

    /// Takes the kernel of `func_id` away.
    ///
    /// # Errors
    /// `FuncIdNotRegistered`.
    pub fn unregister_kernel(&mut self, func_id: FuncId) -> Result<(), Error> {
        self.kernels.remove(func_id)
    }

    /// Registers every library kernel under its own func id; all of them or none. A program for AICores has the kernels that are written in C++: the
    /// others are not registered, and a run that asks for one of them ends with the fault of a kernel that is missing.
    ///
    /// # Errors
    /// `DuplicateFuncId`; `KernelNotFlashed`: the device has a blob of kernels without those of the library.
    pub fn register_library(&mut self) -> Result<(), Error> {
        let kernels = self.library();
        self.register_all(kernels)
    }

    /// The kernels of the library, as far as the device can have them.
    fn library(&self) -> Vec<(FuncId, Kernel)> {
        // The library numbers its kernels far below the limit; `check_free` refuses others.
        let func_id = |id: u32| FuncId(u16::try_from(id).unwrap_or(u16::MAX));
        let kernels = LIBRARY.iter().map(|one| (func_id(one.func_id), Kernel::of_library(one)));
        if !self.backend.has_part_of_library() {
            return kernels.collect();
        }
        let is_there = |(_, kernel): &(FuncId, Kernel)| {
            let found = self.backend.kernel_address(kernel);
            if let Err(error) = &found {
                log::info!("{error}");
            }
            found.is_ok()
        };
        kernels.filter(is_there).collect()
    }

    /// Registers every library kernel that the device does not have under its own func id already; all of them or none.
    ///
    /// # Errors
    /// `DuplicateFuncId`: a func id of the library has another kernel; `KernelNotFlashed`.
    pub fn register_missing_library(&mut self) -> Result<(), Error> {
        let is_missing = |(id, kernel): &(FuncId, Kernel)| {
            self.kernels.get(*id).is_none_or(|held| !held.is_same_of_library(kernel))
        };
        let kernels = self.library();
        self.register_all(kernels.into_iter().filter(is_missing).collect())
    }

    /// The kernels of the blob that was flashed to the device, with their func ids in it: a user's own among them.
    /// Each can be registered under another func id as well.
    #[must_use]
    pub fn flashed_kernels(&self) -> Vec<(FuncId, Kernel)> {
        self.backend.flashed_kernels()
    }

    /// Registers every flashed kernel under its own func id; all of them or none.
    ///
    /// # Errors
    /// `DuplicateFuncId`; `NothingFlashed`: the simulator runs functions of this process.
    pub fn register_flashed(&mut self) -> Result<(), Error> {
        let kernels = self.flashed_kernels();
        if kernels.is_empty() {
            return Err(Error::NothingFlashed { device: self.name().to_owned() });
        }
        self.register_all(kernels)
    }

    fn register_all(&mut self, kernels: Vec<(FuncId, Kernel)>) -> Result<(), Error> {
        for (func_id, kernel) in &kernels {
            self.kernels.check_free(*func_id, kernel)?;
            self.backend.kernel_address(kernel)?;
        }
        for (func_id, kernel) in kernels {
            self.register_kernel(func_id, kernel)?;
        }
        Ok(())
    }

    /// Those that it has cores for.
    pub(crate) fn runnable_kernels(&self) -> impl Iterator<Item = (FuncId, &Kernel)> {
        self.kernels.all().filter(|(_, kernel)| self.cores(kernel.kind()) > 0)
    }

    pub(crate) fn kernel_table(&self) -> &KernelTable {
        &self.kernels
    }
}
