//! Which plug-in takes the calls.
//!
//! | `PTO_ACL_DEVICE` | what is loaded |
//! |---|---|
//! | `a2a3sim`, and without it | `libpto_acl.so` next to this library: the simulator, in real or in virtual time |
//! | `qemu` | the same file: an emulated AArch64 machine |
//! | `a2a3` | the vendor's `libacl_rt.so` or `libascendcl.so` in `$ASCEND_HOME_PATH/lib64`, by its absolute path |
//! | another name | `libpto_acl_NAME.so` next to this library |
//!
//! Where nothing can be loaded, every call fails with 507000, and `aclGetRecentErrMsg` says why.

use std::ffi::c_void;
use std::path::{Path, PathBuf};

use pto_acl_interface::PLUGIN_VERSION;

use super::checks;
use super::loader::{LoadedLibrary, SymbolScope, is_own, own_file};
use super::refusing;
use super::row::EntryPoint;
use super::table::{self, ROWS};
use super::tile_code;

const DEVICE: &str = "PTO_ACL_DEVICE";
const HOME: &str = "ASCEND_HOME_PATH";
/// The line about missing functions of the vendor's library names at most so many.
const MOST_NAMES: usize = 8;

/// Loads the plug-in of the device that the environment names.
pub(crate) extern "C" fn load() {
    // No panic may leave a function that the loader calls.
    let loaded = std::panic::catch_unwind(|| {
        let device = std::env::var(DEVICE).ok().filter(|name| !name.is_empty());
        match device.as_deref().unwrap_or("a2a3sim") {
            "a2a3" => vendor(),
            name => own(name),
        }
    });
    let why = match loaded {
        Ok(Ok(())) => return,
        Ok(Err(why)) => why,
        Err(_) => "the library panicked while it loaded a plug-in; report it".to_owned(),
    };
    eprintln!("pto cann: every call fails: {why}");
    refusing::keep(&why);
    fill(refusing::without_plugin);
}

fn fill(target: impl Fn(&EntryPoint) -> *mut c_void) {
    for (index, row) in ROWS.iter().enumerate() {
        table::set(index, target(row));
    }
}

/// A plug-in of this project, which has every function.
fn own(name: &str) -> Result<(), String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.chars().all(is_name) {
        return Err(format!(
            "{DEVICE} is \"{name}\", which is no name of a device; use a2a3sim, qemu or a2a3"
        ));
    }
    let own = own_file().ok_or("the folder of libascendcl.so cannot be found")?;
    let (file, package) = match name {
        "a2a3sim" | "qemu" | "virt" => ("libpto_acl.so".to_owned(), "pto-acl".to_owned()),
        other => (format!("libpto_acl_{other}.so"), format!("pto-acl-{other}")),
    };
    let file = own.with_file_name(file);
    let library = LoadedLibrary::open(&file, SymbolScope::OfProcess).map_err(|why| {
        format!("the plug-in of the device {name} cannot be loaded: {why}; build it (`cargo build -p {package}`), or set {DEVICE}")
    })?;
    let version = library.symbol(c"ptoAclPlugin").map(|function| {
        // SAFETY: a plug-in has a function of this type under this name.
        let version =
            unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> u32>(function) };
        version()
    });
    if version != Some(PLUGIN_VERSION) {
        let found = version.map_or("none".to_owned(), |version| version.to_string());
        return Err(format!(
            "{} has version {found} of the table of functions, and this library version {PLUGIN_VERSION}; build both from the same source",
            file.display()
        ));
    }
    let lacks = ROWS.iter().find(|row| library.symbol(row.name).is_none());
    if let Some(row) = lacks {
        return Err(format!(
            "{} lacks the function {}",
            file.display(),
            row.name.to_string_lossy()
        ));
    }
    let callback = library
        .symbol(c"ptoAclRefused")
        .ok_or_else(|| format!("{} lacks the function ptoAclRefused", file.display()))?;
    // SAFETY: a plug-in of this version has a function of this type under this name.
    checks::report_to(unsafe {
        std::mem::transmute::<*mut c_void, checks::RefusalCallback>(callback)
    });
    fill(|row| library.symbol(row.name).unwrap_or_else(|| refusing::without_plugin(row)));
    Ok(())
}

/// The vendor's library. It has the names of ours: files and symbols. So it looks for names in its own files first, and is named by its path. It is
/// loaded once, and stays.
fn vendor() -> Result<(), String> {
    let home = std::env::var_os(HOME).map(PathBuf::from).filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| {
        format!("the device a2a3 needs the vendor's libraries; set {HOME} to the absolute path of the folder that has lib64")
    })?;
    let mut tried = Vec::new();
    for name in ["libacl_rt.so", "libascendcl.so"] {
        let file = home.join("lib64").join(name);
        match open_vendor(&file) {
            Ok(library) => {
                report_missing(&library, &file);
                let vendors = |row: &EntryPoint| {
                    library.symbol(row.name).unwrap_or_else(|| refusing::lacking(row))
                };
                fill(|row| tile_code::watch(row, vendors(row)));
                return Ok(());
            }
            Err(why) => tried.push(why),
        }
    }
    Err(format!("no library of the vendor's can be loaded: {}", tried.join("; ")))
}

fn open_vendor(file: &Path) -> Result<LoadedLibrary, String> {
    let is_this_file = file.canonicalize().ok().is_some_and(|file| own_file() == Some(file));
    if is_this_file {
        return Err(format!("{} is this library itself", file.display()));
    }
    let library = LoadedLibrary::open(file, SymbolScope::OfItsOwn)?;
    let is_foreign = |found: *mut c_void| !is_own(found);
    if library.symbol(c"ptoAclLaunch").is_some_and(is_foreign) {
        return Err(format!("{} is a copy of this library", file.display()));
    }
    if library.symbol(c"aclInit").is_none() {
        return Err(format!("{} lacks the function aclInit", file.display()));
    }
    let is_ours = |row: &&EntryPoint| library.symbol(row.name).is_some_and(|found| is_own(found));
    if let Some(row) = ROWS.iter().find(is_ours) {
        return Err(format!(
            "{} needs a library whose name this library has been loaded by, so that its {} would be ours; link the program with -lascendcl alone",
            file.display(),
            row.name.to_string_lossy()
        ));
    }
    Ok(library)
}

/// Says once what is not there.
fn report_missing(library: &LoadedLibrary, file: &Path) {
    let is_missing = |row: &&EntryPoint| library.symbol(row.name).is_none();
    let missing: Vec<_> =
        ROWS.iter().filter(is_missing).map(|row| row.name.to_string_lossy()).collect();
    if missing.is_empty() {
        return;
    }
    let named = missing.iter().take(MOST_NAMES).map(AsRef::as_ref).collect::<Vec<&str>>();
    let more = if missing.len() > MOST_NAMES { ", .." } else { "" };
    eprintln!(
        "pto cann: {} lacks {} functions, which return 207000: {}{more}",
        file.display(),
        missing.len(),
        named.join(", ")
    );
}
