//! Kernels as machine code: a function of this process, a shared object, a relocatable object.
//!
//! Code is loaded once for its content and stays loaded for as long as the process lives: a core that did not come
//! back may still be in it.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use pto_host::abi::CoreKind;
use pto_host::{Kernel, KernelFn};
use sha2::{Digest, Sha256};

use crate::failure::{Failure, FailureKind};
use crate::relocatable;
use crate::shared_object::SharedObject;

/// The function of a kernel, unless another name is given.
pub const KERNEL_SYMBOL: &str = "kernel_entry";

/// What a kernel's code is called and made for.
#[derive(Clone, Copy, Debug)]
pub struct KernelSource<'a> {
    /// What reports call it.
    pub name: &'a str,
    /// The function, [`KERNEL_SYMBOL`] by convention.
    pub symbol: &'a str,
    /// The cores that it runs on.
    pub kind: CoreKind,
}

/// Where the code of a content and symbol is, and what holds it.
struct CachedCode {
    entry: usize,
    _object: Option<SharedObject>,
}

/// By SHA-256 of the content, and symbol.
static CODE_CACHE: Mutex<BTreeMap<([u8; 32], String), CachedCode>> = Mutex::new(BTreeMap::new());

/// A kernel from the bytes of a shared or relocatable object.
///
/// # Errors
/// `OBJECT_FORMAT`, `LOAD_FAILED`, `SYMBOL_MISSING`, `OBJECT_RELOCATION`, `EXECUTABLE_MEMORY`.
pub fn from_bytes(bytes: &[u8], source: KernelSource<'_>) -> Result<Kernel, Failure> {
    let entry = entry_of(bytes, source)?;
    // SAFETY: what the object calls a kernel is one; its author vouches for it, as for any code that is loaded.
    Ok(unsafe { from_pointer(entry, source) })
}

/// The function of a kernel in the bytes of a shared or relocatable object.
///
/// # Errors
/// Those of [`from_bytes`].
pub fn entry_of(bytes: &[u8], source: KernelSource<'_>) -> Result<NonNull<c_void>, Failure> {
    let key = (Sha256::digest(bytes).into(), source.symbol.to_owned());
    let mut table = CODE_CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = match table.get(&key) {
        Some(held) => held.entry,
        None => {
            let held = load(bytes, source)?;
            table.entry(key).or_insert(held).entry
        }
    };
    let entry = NonNull::new(std::ptr::with_exposed_provenance_mut::<c_void>(entry));
    let missing = || Failure::new(FailureKind::SYMBOL_MISSING, "the kernel's function is null");
    entry.ok_or_else(missing)
}

/// A kernel from a file.
///
/// # Errors
/// `LOAD_FAILED` when it cannot be read; those of [`from_bytes`].
pub fn from_file(path: &Path, source: KernelSource<'_>) -> Result<Kernel, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        let message = format!("{} cannot be read: {error}", path.display());
        Failure::new(FailureKind::LOAD_FAILED, message)
    })?;
    from_bytes(&bytes, source)
}

/// A kernel from a function of this process; the symbol of `source` is not used.
///
/// # Safety
/// `entry` is a function `void entry(int64_t *args)` that stays loaded for as long as the process lives.
#[must_use]
pub unsafe fn from_pointer(entry: NonNull<c_void>, source: KernelSource<'_>) -> Kernel {
    // SAFETY: the caller says that it is such a function; a pointer to words is a pointer to words.
    let entry = unsafe { std::mem::transmute::<*mut c_void, KernelFn>(entry.as_ptr()) };
    Kernel::from_fn(source.name, source.kind, entry)
}

/// Whether a relocatable object could be loaded: lays it out and relocates it, and maps nothing that could run. A shared
/// object is loaded by the system, which has no such question.
///
/// # Errors
/// Those of [`from_bytes`]; `OBJECT_FORMAT` for what is no relocatable object.
pub fn check_relocatable(bytes: &[u8], source: KernelSource<'_>) -> Result<(), Failure> {
    relocatable::check(bytes, source.symbol, source.name)
}

fn load(bytes: &[u8], source: KernelSource<'_>) -> Result<CachedCode, Failure> {
    // The type of an ELF file: 1 relocatable, 3 shared.
    if bytes.get(..4) == Some(b"\x7FELF") && bytes.get(16) == Some(&1) {
        let entry = relocatable::load(bytes, source.symbol, source.name)?;
        return Ok(CachedCode { entry, _object: None });
    }
    let object = SharedObject::from_bytes(bytes, source.name)?;
    let entry = object.function(source.symbol)?.as_ptr().expose_provenance();
    Ok(CachedCode { entry, _object: Some(object) })
}
