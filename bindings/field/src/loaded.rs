//! A program in memory: the functions of its orchestration, and its kernels.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::NonNull;

use pto_host::Kernel;
use pto_host::abi::limits::MAX_FUNC_ID;
use pto_host::abi::{CoreKind, FuncId};
use pto_native::SharedObject;

use crate::core::{on_cube, on_vector};

/// The func id of tasks without a kernel.
pub(crate) const DUMMY: FuncId = FuncId(1023);
const _: () = assert!(MAX_FUNC_ID > 1023);

/// What that is called, on every device.
const NO_KERNEL: &str = "(no kernel)";
/// The entry of a kernel whose code is not in this process.
pub(crate) const ON_DEVICE: usize = usize::MAX;

/// A kernel that is loaded.
pub(crate) struct LoadedKernel {
    pub(crate) name: String,
    pub(crate) kind: CoreKind,
    pub(crate) entry: usize,
}

/// The functions of an orchestration, and what keeps them loaded.
pub(crate) struct LoadedCallable {
    /// Different for each program.
    pub(crate) serial: u64,
    pub(crate) enter: NonNull<c_void>,
    pub(crate) entry: NonNull<c_void>,
    /// `pto_field_expected` of the header, and the program's function that it calls.
    pub(crate) expected: Option<(NonNull<c_void>, NonNull<c_void>)>,
    pub(crate) name: String,
    pub(crate) kernels: BTreeMap<u32, LoadedKernel>,
    pub(crate) _orchestration: SharedObject,
}

// SAFETY: the pointers are functions of objects that stay loaded; any thread may call them.
unsafe impl Send for LoadedCallable {}
// SAFETY: as for Send.
unsafe impl Sync for LoadedCallable {}

impl LoadedCallable {
    /// The kernel that a program submits as `number` for cores of `kind`, or why it cannot.
    pub(crate) fn kernel(&self, number: i32, kind: CoreKind) -> Result<usize, String> {
        let kernel = u32::try_from(number).ok().and_then(|number| self.kernels.get(&number));
        match kernel {
            None => Err(format!("there is no kernel with func id {number}; {}", self.listed())),
            Some(kernel) if kernel.kind != kind => Err(format!(
                "kernel {number} ({}) is compiled for {}, and the task submits it for {kind}",
                kernel.name, kernel.kind
            )),
            Some(kernel) => Ok(kernel.entry),
        }
    }

    /// The code of a kernel that is there.
    pub(crate) fn entry(&self, id: FuncId) -> usize {
        self.kernels.get(&u32::from(id.0)).map_or(0, |kernel| kernel.entry)
    }

    fn listed(&self) -> String {
        let ids: Vec<_> = self.kernels.keys().map(ToString::to_string).collect();
        format!(
            "the program has {}",
            if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
        )
    }

    /// Cores for tasks without a kernel: those that are there.
    pub(crate) fn dummy_kind(&self) -> CoreKind {
        CoreKind::AIV
    }

    /// Func id, name and kind of each kernel, and of what tasks without a kernel have.
    pub(crate) fn needed(&self) -> impl Iterator<Item = (FuncId, &str, CoreKind)> {
        let own = self.kernels.iter().map(|(number, kernel)| {
            let id = FuncId(u16::try_from(*number).unwrap_or(u16::MAX));
            (id, kernel.name.as_str(), kernel.kind)
        });
        own.chain([(DUMMY, NO_KERNEL, CoreKind::AIV)])
    }

    /// A kernel whose code this process does not have.
    pub(crate) fn of_a_machine(&self) -> Option<&str> {
        let mut kernels = self.kernels.values();
        kernels.find(|kernel| kernel.entry == ON_DEVICE).map(|kernel| kernel.name.as_str())
    }

    /// What a device registers.
    pub(crate) fn registered(&self) -> Vec<(FuncId, Kernel)> {
        let own = self.kernels.iter().map(|(number, kernel)| {
            let trampoline = if kernel.kind == CoreKind::AIC { on_cube } else { on_vector };
            (
                FuncId(u16::try_from(*number).unwrap_or(u16::MAX)),
                Kernel::from_fn(kernel.name.clone(), kernel.kind, trampoline),
            )
        });
        let dummy = (DUMMY, Kernel::from_fn(NO_KERNEL, CoreKind::AIV, on_vector));
        own.chain([dummy]).collect()
    }
}
