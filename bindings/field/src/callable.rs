//! A program: its orchestration and its kernels, loaded.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pto_host::abi::CoreKind;
use pto_native::{Failure, FailureKind, SharedObject};
use sha2::{Digest, Sha256};

use crate::calls::OPS;
use crate::core::{SIM_TABLE, SimTable};
use crate::loaded::{DUMMY, LoadedCallable, LoadedKernel, ON_DEVICE};
use crate::wire::Ops;

/// Machine code, linked as a shared object.
#[derive(Clone, Copy, Debug)]
pub enum ObjectCode<'a> {
    /// A file.
    Path(&'a Path),
    /// Its bytes; the name is what messages call them.
    Bytes(&'a [u8]),
    /// Of a kernel: what the device has, in the image that it was opened with, under the same func id and name. It does not run on the simulator.
    OnDevice,
}

impl ObjectCode<'_> {
    /// Whether it is the same file, or the same bytes at the same address.
    fn is_same(self, other: ObjectCode<'_>) -> bool {
        match (self, other) {
            (Self::Path(one), ObjectCode::Path(other)) => one == other,
            (Self::Bytes(one), ObjectCode::Bytes(other)) => std::ptr::eq(one, other),
            _ => false,
        }
    }
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
    /// The name of the kernel's function, `kernel_entry` by convention.
    pub symbol: &'a str,
    /// The kernel's code.
    pub code: ObjectCode<'a>,
}

/// What a program is loaded from.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSource<'a> {
    /// The orchestration.
    pub orchestration: ObjectCode<'a>,
    /// The name of the program's entry, `aicpu_orchestration_entry` by convention.
    pub entry: &'a str,
    /// The function that says how many arguments it expects; one that is not there is not asked.
    pub config: Option<&'a str>,
    /// The kernels that the program calls.
    pub kernels: &'a [KernelCode<'a>],
}

/// A program that can be run, again and again.
#[derive(Clone)]
pub struct Callable(pub(crate) Arc<LoadedCallable>);

impl Callable {
    /// Loads a program. Its constructors run, and it is trusted as any code of this process.
    ///
    /// # Errors
    /// `LOAD_FAILED`, `SYMBOL_MISSING`; `INVALID_ARGUMENT` for a func id that is above 1022 or used twice.
    pub fn load(source: &ProgramSource<'_>) -> Result<Self, Failure> {
        static SERIALS: AtomicU64 = AtomicU64::new(1);
        let (bytes, name) = read(source.orchestration, "the orchestration")?;
        let orchestration = SharedObject::from_bytes(&bytes, &name)?;
        bind_orchestration(&orchestration)?;
        let entry = orchestration.function(source.entry)?;
        let enter = orchestration.function("pto_field_enter")?;
        let config = source.config.and_then(|name| orchestration.symbol(name));
        let expected = orchestration.symbol("pto_field_expected").zip(config);
        let mut kernels = BTreeMap::new();
        let mut objects = Vec::new();
        for kernel in source.kernels {
            add(&mut kernels, &mut objects, kernel)?;
        }
        let loaded = LoadedCallable {
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            enter,
            entry,
            expected,
            name: format!("`{}` of {}", source.entry, orchestration.name()),
            kernels,
            _orchestration: orchestration,
        };
        Ok(Self(Arc::new(loaded)))
    }
}

/// The bytes of an object, and what messages call it.
fn read<'a>(code: ObjectCode<'a>, what: &str) -> Result<(Cow<'a, [u8]>, String), Failure> {
    match code {
        ObjectCode::OnDevice => {
            let message = format!("{what} has no code: only kernels can be on a device");
            Err(Failure::new(FailureKind::INVALID_ARGUMENT, message))
        }
        ObjectCode::Bytes(bytes) => Ok((Cow::Borrowed(bytes), what.to_owned())),
        ObjectCode::Path(path) => {
            let bytes = std::fs::read(path).map_err(|error| {
                let message = format!("{} cannot be read: {error}", path.display());
                Failure::new(FailureKind::LOAD_FAILED, message)
            })?;
            Ok((Cow::Owned(bytes), path.display().to_string()))
        }
    }
}

/// Loads the object of a kernel, once for its content. A core that did not come back may still be in it: it stays loaded.
fn kernel_object(code: ObjectCode<'_>, what: &str) -> Result<&'static SharedObject, Failure> {
    static LOADED: Mutex<BTreeMap<[u8; 32], &'static SharedObject>> = Mutex::new(BTreeMap::new());
    let (bytes, name) = read(code, what)?;
    let key = Sha256::digest(&bytes).into();
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(held) = loaded.get(&key) {
        return Ok(*held);
    }
    let object: &'static SharedObject =
        Box::leak(Box::new(SharedObject::from_bytes(&bytes, &name)?));
    if let Some(pointer) = object.symbol("pto_field_sim_table") {
        // SAFETY: the prelude defines this symbol as a pointer to the table.
        unsafe { pointer.cast::<*const SimTable>().write(&raw const SIM_TABLE) };
    }
    loaded.insert(key, object);
    Ok(object)
}

fn bind_orchestration(object: &SharedObject) -> Result<(), Failure> {
    let Some(pointer) = object.symbol("pto_field_ops") else {
        let message = format!("{} does not include pto_orchestration_api.h", object.name());
        return Err(Failure::new(FailureKind::SYMBOL_MISSING, message));
    };
    // SAFETY: the header defines this symbol as a pointer to the table.
    unsafe { pointer.cast::<*const Ops>().write(&raw const OPS) };
    Ok(())
}

/// Loads a kernel.
fn add<'a>(
    kernels: &mut BTreeMap<u32, LoadedKernel>,
    objects: &mut Vec<(ObjectCode<'a>, &'static SharedObject)>,
    kernel: &KernelCode<'a>,
) -> Result<(), Failure> {
    let refused = |why: &str| {
        let message = format!("kernel {} ({}): {why}", kernel.func_id, kernel.name);
        Failure::new(FailureKind::INVALID_ARGUMENT, message)
    };
    if kernel.func_id >= DUMMY.0.into() {
        return Err(refused("a func id is 0 to 1022"));
    }
    if matches!(kernel.code, ObjectCode::OnDevice) {
        return insert(kernels, kernel, ON_DEVICE).ok_or_else(|| refused(TWICE));
    }
    let held = match objects.iter().find(|(code, _)| code.is_same(kernel.code)) {
        Some((_, held)) => *held,
        None => {
            let held = kernel_object(kernel.code, kernel.name)?;
            objects.push((kernel.code, held));
            held
        }
    };
    let entry = held.function(kernel.symbol)?.as_ptr().expose_provenance();
    insert(kernels, kernel, entry).ok_or_else(|| refused(TWICE))
}

/// Why a kernel is refused that is not the first one of its func id.
const TWICE: &str = "another kernel has the same func id";

/// `None`: another kernel has its func id.
fn insert(
    kernels: &mut BTreeMap<u32, LoadedKernel>,
    kernel: &KernelCode<'_>,
    entry: usize,
) -> Option<()> {
    let loaded = LoadedKernel { name: kernel.name.to_owned(), kind: kernel.kind, entry };
    kernels.insert(kernel.func_id, loaded).is_none().then_some(())
}
