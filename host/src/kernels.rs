//! Kernels that a device knows: func id -> name, core kind, address.

use std::collections::BTreeMap;
use std::fmt;

use pto_abi::limits::MAX_FUNC_ID;
use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_aicore_kernels::{KernelFn, LibraryKernel, by_name};

use crate::Error;
use crate::backend::Backend;

/// A kernel that can be registered.
#[derive(Clone, Debug)]
pub struct Kernel {
    name: String,
    kind: CoreKind,
    code: KernelCode,
}

/// Where a kernel's code comes from.
#[derive(Clone, Copy)]
pub(crate) enum KernelCode {
    /// The kernel library, which is part of every device image.
    Library(&'static LibraryKernel),
    /// A function of this process.
    Function(KernelFn),
    /// The flashed kernel of the same name.
    Flashed,
}

impl fmt::Debug for KernelCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Library(_) => "library",
            Self::Function(_) => "function",
            Self::Flashed => "flashed",
        })
    }
}

impl Kernel {
    /// The library kernel of this name.
    ///
    /// # Errors
    /// `UnknownKernel`, with the names that there are.
    pub fn library(name: &str) -> Result<Self, Error> {
        let unknown = || Error::UnknownKernel { name: name.to_owned() };
        by_name(name).map(Self::of_library).ok_or_else(unknown)
    }

    /// A function of this process, for cores of `kind`. Runs on the simulator only.
    ///
    /// The function is called with the words of its task, and it is trusted with them: a device does not
    /// protect memory from kernels, and the simulator does not protect this process.
    #[must_use]
    pub fn from_fn(name: impl Into<String>, kind: CoreKind, entry: KernelFn) -> Self {
        Self { name: name.into(), kind, code: KernelCode::Function(entry) }
    }

    /// A kernel of the blob that the device has, for cores of `kind`; see `Device::flashed_kernels`.
    pub(crate) fn flashed(name: String, kind: CoreKind) -> Self {
        Self { name, kind, code: KernelCode::Flashed }
    }

    pub(crate) fn of_library(kernel: &'static LibraryKernel) -> Self {
        let name = kernel.name.to_owned();
        Self { name, kind: kernel.kind, code: KernelCode::Library(kernel) }
    }

    /// The name that reports use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The core kind that it is written for.
    #[must_use]
    pub fn kind(&self) -> CoreKind {
        self.kind
    }

    pub(crate) fn code(&self) -> KernelCode {
        self.code
    }
}

/// A registered kernel, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelDescription {
    /// Its func id.
    pub func_id: FuncId,
    /// Its name.
    pub name: String,
    /// The core kind that it is written for.
    pub kind: CoreKind,
    /// Where its code is.
    pub address: GmAddr,
}

/// The kernels of one device.
pub(crate) struct KernelTable {
    /// Changes with the table.
    version: u64,
    addresses: Box<[u64; MAX_FUNC_ID]>,
    registered: BTreeMap<FuncId, Kernel>,
}

impl KernelTable {
    pub(crate) fn new() -> Self {
        Self { version: 0, addresses: Box::new([0; MAX_FUNC_ID]), registered: BTreeMap::new() }
    }

    /// A number that another one follows whenever a kernel comes or goes.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// What travels to the device.
    pub(crate) fn addresses(&self) -> &[u64; MAX_FUNC_ID] {
        &self.addresses
    }

    /// Where the code of `func_id` is; null: not registered.
    pub(crate) fn address(&self, func_id: FuncId) -> GmAddr {
        self.addresses.get(func_id.index()).map_or(GmAddr::NULL, |address| GmAddr(*address))
    }

    /// The name of `func_id`.
    pub(crate) fn name(&self, func_id: FuncId) -> Option<&str> {
        self.registered.get(&func_id).map(Kernel::name)
    }

    /// Fails where `insert` would.
    pub(crate) fn check_free(&self, func_id: FuncId, kernel: &Kernel) -> Result<(), Error> {
        if func_id.index() >= MAX_FUNC_ID {
            return Err(Error::FuncIdLimit { func_id });
        }
        match self.name(func_id) {
            Some(registered) => Err(Error::DuplicateFuncId {
                func_id,
                registered: registered.to_owned(),
                refused: kernel.name.clone(),
            }),
            None => Ok(()),
        }
    }

    pub(crate) fn insert(
        &mut self,
        func_id: FuncId,
        kernel: Kernel,
        backend: &dyn Backend,
    ) -> Result<(), Error> {
        self.check_free(func_id, &kernel)?;
        let address = backend.kernel_address(&kernel)?;
        let Some(place) = self.addresses.get_mut(func_id.index()) else {
            return Err(Error::FuncIdLimit { func_id });
        };
        *place = address.0;
        self.version += 1;
        self.registered.insert(func_id, kernel);
        Ok(())
    }

    pub(crate) fn remove(&mut self, func_id: FuncId) -> Result<(), Error> {
        self.registered.remove(&func_id).ok_or(Error::FuncIdNotRegistered { func_id })?;
        self.version += 1;
        if let Some(place) = self.addresses.get_mut(func_id.index()) {
            *place = 0;
        }
        Ok(())
    }

    pub(crate) fn describe(&self) -> Vec<KernelDescription> {
        let describe = |(&func_id, kernel): (&FuncId, &Kernel)| KernelDescription {
            func_id,
            name: kernel.name.clone(),
            kind: kernel.kind,
            address: self.address(func_id),
        };
        self.registered.iter().map(describe).collect()
    }
}
