//! The kernels of a shared object that says which they are: the array `pto_kernels` of `include/pto_kernels.h`.
//!
//! The array is as long as its symbol says. Its contents are checked before they are used; that its strings end and its
//! functions are kernels is the author's word, as for any code that is loaded.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr::NonNull;

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSymbol as _, elf};
use pto_host::abi::CoreKind;
use pto_host::abi::limits::MAX_FUNC_ID;
use pto_host::{Kernel, KernelFn, check_shared_object};

use crate::failure::{Failure, FailureKind};
use crate::shared_object::SharedObject;

type Object<'b> = ElfFile64<'b, Endianness>;

/// The array that an object exports.
pub const TABLE_SYMBOL: &str = "pto_kernels";

/// `struct pto_kernel`.
#[repr(C)]
struct KernelEntry {
    func: u32,
    kind: u32,
    name: *const c_char,
    args: *const c_char,
    entry: Option<KernelFn>,
}

const _: () = assert!(size_of::<KernelEntry>() == 32, "include/pto_kernels.h states the layout");

/// A kernel, and what the object says of it.
#[derive(Clone, Debug)]
pub struct ListedKernel {
    /// The kernel's func id.
    pub func: u16,
    /// What its arguments are called, in order.
    pub args: Vec<String>,
    /// Name, kind of cores, code.
    pub kernel: Kernel,
}

/// The kernels that a shared object lists. The object stays loaded for as long as the process lives.
///
/// # Errors
/// `LOAD_FAILED`, `OBJECT_FORMAT`, `SYMBOL_MISSING`; `INVALID_ARGUMENT` for an entry that cannot be a kernel.
pub fn read(path: &Path) -> Result<Vec<ListedKernel>, Failure> {
    let shown = path.display();
    let unreadable = |error| {
        Failure::new(FailureKind::LOAD_FAILED, format!("'{shown}' cannot be read: {error}"))
    };
    of_bytes(&std::fs::read(path).map_err(unreadable)?, &shown.to_string())
}

/// As [`read`], of a shared object in memory; `shown` is what messages call it.
///
/// # Errors
/// Those of [`read`].
pub fn of_bytes(bytes: &[u8], shown: &str) -> Result<Vec<ListedKernel>, Failure> {
    let count = parsed(bytes)
        .and_then(|file| count(&file))
        .map_err(|why| Failure::new(FailureKind::OBJECT_FORMAT, format!("'{shown}' {why}")))?;
    let object = SharedObject::from_bytes(bytes, shown)?;
    let Some(table) = count.zip(object.symbol(TABLE_SYMBOL)) else {
        return Err(no_table(shown));
    };
    // Kernels are functions of the object, and devices keep them.
    std::mem::forget(object);
    let mut kernels = Vec::new();
    let mut taken = BTreeSet::new();
    for number in 0..table.0 {
        let kernel =
            entry(table.1.cast(), number).and_then(|kernel| match taken.insert(kernel.func) {
                true => Ok(kernel),
                false => Err(format!(
                    "func {} is that of an entry above; give each its own",
                    kernel.func
                )),
            });
        kernels.push(kernel.map_err(|why| {
            let message = format!("'{shown}', {TABLE_SYMBOL}[{number}]: {why}");
            Failure::new(FailureKind::INVALID_ARGUMENT, message)
        })?);
    }
    Ok(kernels)
}

/// The processor that a shared object with kernels is for, as `std::env::consts::ARCH` calls it. The object is not loaded.
///
/// # Errors
/// `OBJECT_FORMAT`: it is no shared object, or for an unknown processor; `SYMBOL_MISSING`: it lists no kernels.
pub fn processor(bytes: &[u8], shown: &str) -> Result<&'static str, Failure> {
    let wrong = |why: String| Failure::new(FailureKind::OBJECT_FORMAT, format!("'{shown}' {why}"));
    let file = parsed(bytes).map_err(wrong)?;
    count(&file).map_err(wrong)?.ok_or_else(|| no_table(shown))?;
    match file.elf_header().e_machine.get(file.endian()) {
        elf::EM_X86_64 => Ok("x86_64"),
        elf::EM_AARCH64 => Ok("aarch64"),
        machine => Err(wrong(format!("is for machine {machine}; x86_64 and aarch64 are known"))),
    }
}

fn no_table(shown: &str) -> Failure {
    let message = format!(
        "'{shown}' exports no array `{TABLE_SYMBOL}`; define it as pto_kernels.h says (in C++ as extern \"C\"), and do not hide it"
    );
    Failure::new(FailureKind::SYMBOL_MISSING, message)
}

fn parsed(bytes: &[u8]) -> Result<Object<'_>, String> {
    check_shared_object(bytes)?;
    ElfFile64::parse(bytes).map_err(|error| format!("is no shared object: {error}"))
}

/// How many entries the array of an object has; `None`: there is no such array.
fn count(file: &Object<'_>) -> Result<Option<usize>, String> {
    let mut symbols = file.dynamic_symbols();
    let table = symbols.find(|symbol| symbol.is_definition() && symbol.name() == Ok(TABLE_SYMBOL));
    let Some(table) = table else { return Ok(None) };
    let (size, each) = (table.size(), size_of::<KernelEntry>() as u64);
    if size == 0 || !size.is_multiple_of(each) {
        return Err(format!(
            "has {size} bytes in `{TABLE_SYMBOL}`, and an entry of pto_kernels.h has {each}; compile it with that header"
        ));
    }
    Ok(usize::try_from(size / each).ok())
}

/// The entry of this number as a kernel; else what is wrong with it.
fn entry(table: NonNull<KernelEntry>, number: usize) -> Result<ListedKernel, String> {
    // SAFETY: the symbol's size says that there are more than `number` entries; the object stays loaded.
    let entry = unsafe { table.add(number) };
    // SAFETY: as above; any bytes are a `KernelEntry`, for zero is an entry without a function.
    let entry = unsafe { entry.read_unaligned() };
    let func = u16::try_from(entry.func).ok().filter(|func| usize::from(*func) < MAX_FUNC_ID);
    let func = func.ok_or_else(|| format!("func is {}; it is below {MAX_FUNC_ID}", entry.func))?;
    let kind = u8::try_from(entry.kind).ok().and_then(|kind| CoreKind::try_from(kind).ok());
    let kind =
        kind.ok_or_else(|| format!("kind is {}; it is PTO_AIC (0) or PTO_AIV (1)", entry.kind))?;
    let name = text(entry.name, "name")?.filter(|name| !name.is_empty());
    let name = name.ok_or("it has no name; reports call the kernel by it")?;
    let args = text(entry.args, "args")?.unwrap_or_default();
    let args = args.split(',').map(str::trim).filter(|arg| !arg.is_empty());
    let args = args.map(str::to_owned).collect();
    let code = entry.entry.ok_or_else(|| format!("{name} has no function"))?;
    Ok(ListedKernel { func, args, kernel: Kernel::from_fn(name, kind, code) })
}

/// A string of an entry; `None`: the pointer is null.
fn text(pointer: *const c_char, field: &str) -> Result<Option<String>, String> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the author of the object says that it is a string that ends; the object stays loaded.
    let text = unsafe { CStr::from_ptr(pointer) };
    let text = text.to_str().map_err(|_| format!("{field} is not UTF-8"))?;
    Ok(Some(text.to_owned()))
}
