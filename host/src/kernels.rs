//! Kernels that a device knows: func id -> name, core kind, address.

use std::collections::BTreeMap;
use std::sync::Arc;

use pto_abi::limits::MAX_FUNC_ID;
use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_graph::signature::Signature;

use crate::backend::Backend;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::kernel_kinds::KernelKinds;

/// A registered kernel, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelDescription {
    /// The kernel's func id.
    pub func_id: FuncId,
    /// The kernel's name.
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
    kinds: Arc<KernelKinds>,
}

impl KernelTable {
    /// No kernels; those who check calls read `kinds`.
    pub(crate) fn new(kinds: Arc<KernelKinds>) -> Self {
        Self {
            version: 0,
            addresses: Box::new([0; MAX_FUNC_ID]),
            registered: BTreeMap::new(),
            kinds,
        }
    }

    /// A number that another one follows whenever a kernel comes or goes.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Which there are, for those that check calls.
    pub(crate) fn kinds(&self) -> &KernelKinds {
        &self.kinds
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

    /// All kernels with their func ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = (FuncId, &Kernel)> {
        self.registered.iter().map(|(func_id, kernel)| (*func_id, kernel))
    }

    /// The kernel of `func_id`.
    pub(crate) fn get(&self, func_id: FuncId) -> Option<&Kernel> {
        self.registered.get(&func_id)
    }

    /// What the kernel of `func_id` expects of a call.
    pub(crate) fn signature(&self, func_id: FuncId) -> Option<Signature<'_>> {
        self.registered.get(&func_id).map(Kernel::signature)
    }

    /// The func id under which the same kernel is registered.
    pub(crate) fn id_of(&self, kernel: &Kernel) -> Option<FuncId> {
        let mut registered = self.registered.iter();
        registered.find(|(_, held)| held.is_same(kernel)).map(|(func_id, _)| *func_id)
    }

    /// The highest func id without a kernel: those that programs choose are low.
    pub(crate) fn free_id(&self) -> Option<FuncId> {
        let mut ids = (0..MAX_FUNC_ID).rev().filter_map(|id| u16::try_from(id).ok()).map(FuncId);
        ids.find(|func_id| !self.registered.contains_key(func_id))
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
                refused: kernel.name().to_owned(),
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
        let Some(entry) = self.addresses.get_mut(func_id.index()) else {
            return Err(Error::FuncIdLimit { func_id });
        };
        *entry = address.0;
        self.version += 1;
        backend.name_kernel(address, func_id, &kernel);
        self.kinds.set(func_id, Some((&kernel, address)));
        self.registered.insert(func_id, kernel);
        Ok(())
    }

    pub(crate) fn remove(&mut self, func_id: FuncId) -> Result<(), Error> {
        self.registered.remove(&func_id).ok_or(Error::FuncIdNotRegistered { func_id })?;
        self.kinds.set(func_id, None);
        self.version += 1;
        if let Some(entry) = self.addresses.get_mut(func_id.index()) {
            *entry = 0;
        }
        Ok(())
    }

    pub(crate) fn describe(&self) -> Vec<KernelDescription> {
        let describe = |(&func_id, kernel): (&FuncId, &Kernel)| KernelDescription {
            func_id,
            name: kernel.name().to_owned(),
            kind: kernel.kind(),
            address: self.address(func_id),
        };
        self.registered.iter().map(describe).collect()
    }
}
