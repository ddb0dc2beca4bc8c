//! A program: its orchestration and its kernels, loaded.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object::{File, Object, ObjectSection};
use pto_host::Kernel;
use pto_host::abi::limits::MAX_FUNC_ID;
use pto_host::abi::{CoreKind, FuncId};
use pto_native::{Failure, FailureKind, SharedObject};

use crate::calls::OPS;
use crate::core::{SIM_TABLE, SimTable, on_cube, on_vector};
use crate::wire::Ops;

/// The func id of tasks without a kernel.
pub(crate) const DUMMY: FuncId = FuncId(1023);
const _: () = assert!(MAX_FUNC_ID > 1023);

/// Machine code, linked as a shared object.
#[derive(Clone, Copy, Debug)]
pub enum Code<'a> {
    /// A file.
    Path(&'a Path),
    /// Its bytes; the name is what messages call them.
    Bytes(&'a [u8]),
}

/// A kernel of a program.
#[derive(Clone, Copy, Debug)]
pub struct KernelCode<'a> {
    /// The number by which the program submits it: 0 to 1022.
    pub func_id: u32,
    /// The cores that it runs on.
    pub kind: CoreKind,
    /// What reports call it.
    pub name: &'a str,
    /// Its function, `kernel_entry` by convention.
    pub symbol: &'a str,
    /// Its code.
    pub code: Code<'a>,
}

/// What a program is loaded from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The orchestration.
    pub orchestration: Code<'a>,
    /// Its entry, `aicpu_orchestration_entry` by convention.
    pub entry: &'a str,
    /// The function that says how many arguments it expects; one that is not there is not asked.
    pub config: Option<&'a str>,
    /// Its kernels.
    pub kernels: &'a [KernelCode<'a>],
}

/// A kernel that is loaded.
struct LoadedKernel {
    name: String,
    kind: CoreKind,
    entry: usize,
}

/// The functions of an orchestration, and what keeps them loaded.
pub(crate) struct Loaded {
    /// Different for each program.
    pub(crate) serial: u64,
    pub(crate) enter: NonNull<c_void>,
    pub(crate) entry: NonNull<c_void>,
    pub(crate) expected: Option<(NonNull<c_void>, NonNull<c_void>)>,
    pub(crate) name: String,
    kernels: BTreeMap<u32, LoadedKernel>,
    uses_pipes: bool,
    _orchestration: SharedObject,
}

// SAFETY: the pointers are functions of objects that stay loaded; any thread may call them.
unsafe impl Send for Loaded {}
// SAFETY: as for Send.
unsafe impl Sync for Loaded {}

/// A program that can be run, again and again.
#[derive(Clone)]
pub struct Callable(pub(crate) Arc<Loaded>);

impl Callable {
    /// Loads a program. Its constructors run, and it is trusted as any code of this process.
    ///
    /// # Errors
    /// `LOAD_FAILED`, `SYMBOL_MISSING`; `INVALID_ARGUMENT` for a func id that is above 1022 or used twice.
    pub fn load(source: &Source<'_>) -> Result<Self, Failure> {
        static SERIALS: AtomicU64 = AtomicU64::new(1);
        let (orchestration, _) = open(source.orchestration, "the orchestration")?;
        bind_orchestration(&orchestration)?;
        let entry = orchestration.function(source.entry)?;
        let enter = orchestration.function("pto_field_enter")?;
        let config = source.config.and_then(|name| orchestration.symbol(name));
        let expected = config.zip(orchestration.symbol("pto_field_expected"));
        let mut kernels = BTreeMap::new();
        let mut uses_pipes = false;
        for kernel in source.kernels {
            uses_pipes |= add(&mut kernels, kernel)?;
        }
        let loaded = Loaded {
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            enter,
            entry,
            expected,
            name: format!("`{}` of {}", source.entry, orchestration.name()),
            kernels,
            uses_pipes,
            _orchestration: orchestration,
        };
        Ok(Self(Arc::new(loaded)))
    }

    /// Whether a kernel waits for others of its block, so that each core needs an OS thread of its own.
    #[must_use]
    pub fn needs_threads(&self) -> bool {
        self.0.uses_pipes
    }
}

impl Loaded {
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

    /// What a device registers.
    pub(crate) fn registered(&self) -> Vec<(FuncId, Kernel)> {
        let own = self.kernels.iter().map(|(number, kernel)| {
            let trampoline = if kernel.kind == CoreKind::AIC { on_cube } else { on_vector };
            (
                FuncId(u16::try_from(*number).unwrap_or(u16::MAX)),
                Kernel::from_fn(kernel.name.clone(), kernel.kind, trampoline),
            )
        });
        let dummy = (DUMMY, Kernel::from_fn("(no kernel)", CoreKind::AIV, on_vector));
        own.chain([dummy]).collect()
    }
}

/// Opens an object; also its bytes.
fn open(code: Code<'_>, what: &str) -> Result<(SharedObject, Vec<u8>), Failure> {
    match code {
        Code::Bytes(bytes) => Ok((SharedObject::from_bytes(bytes, what)?, bytes.to_vec())),
        Code::Path(path) => {
            let bytes = std::fs::read(path).map_err(|error| {
                let message = format!("{} cannot be read: {error}", path.display());
                Failure::new(FailureKind::LOAD_FAILED, message)
            })?;
            Ok((SharedObject::from_bytes(&bytes, &path.display().to_string())?, bytes))
        }
    }
}

fn bind_orchestration(object: &SharedObject) -> Result<(), Failure> {
    let Some(place) = object.symbol("pto_field_ops") else {
        let message = format!("{} does not include pto_orchestration_api.h", object.name());
        return Err(Failure::new(FailureKind::SYMBOL_MISSING, message));
    };
    // SAFETY: the header defines this symbol as a pointer to the table.
    unsafe { place.cast::<*const Ops>().write(&raw const OPS) };
    Ok(())
}

/// Loads a kernel; whether it uses the state that the kernels of a block share.
fn add(
    kernels: &mut BTreeMap<u32, LoadedKernel>,
    kernel: &KernelCode<'_>,
) -> Result<bool, Failure> {
    let refused = |why: &str| {
        let message = format!("kernel {} ({}): {why}", kernel.func_id, kernel.name);
        Failure::new(FailureKind::INVALID_ARGUMENT, message)
    };
    if kernel.func_id >= DUMMY.0.into() {
        return Err(refused("a func id is 0 to 1022"));
    }
    let (object, bytes) = open(kernel.code, kernel.name)?;
    let entry = object.function(kernel.symbol)?.as_ptr().expose_provenance();
    if let Some(place) = object.symbol("pto_field_sim_table") {
        // SAFETY: the prelude defines this symbol as a pointer to the table.
        unsafe { place.cast::<*const SimTable>().write(&raw const SIM_TABLE) };
    }
    // A core that did not come back may still be in it: kernels stay loaded.
    std::mem::forget(object);
    let loaded = LoadedKernel { name: kernel.name.to_owned(), kind: kernel.kind, entry };
    if kernels.insert(kernel.func_id, loaded).is_some() {
        return Err(refused("another kernel has the same func id"));
    }
    Ok(looks_for_pipes(&bytes))
}

/// Whether code looks for the state that the kernels of a block share: PTO-ISA's simulator does so by this name, which then
/// stands among the constants.
fn looks_for_pipes(bytes: &[u8]) -> bool {
    let name = b"pto_sim_get_pipe_shared_state\0";
    let Ok(file) = File::parse(bytes) else { return false };
    let constants = file
        .sections()
        .filter(|section| section.name().is_ok_and(|section| section.starts_with(".rodata")));
    let mut constants = constants.filter_map(|section| section.data().ok());
    constants.any(|bytes| bytes.windows(name.len()).any(|window| window == name))
}
