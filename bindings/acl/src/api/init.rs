//! Start and end of the library, and its versions.

use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};

use crate::common::argument::{Out, Text, put_text};
use crate::common::codes;
use crate::common::entry::{api, watch_forks};
use crate::common::refusal::{Refusal, require};

/// How often the library was initialised.
static COUNT: Mutex<u64> = Mutex::new(0);

const VERSION: [i32; 3] = [1, 17, 0];

api! {
    fn aclInit(config: Text) {
        if let Some(path) = config.optional().filter(|path| !path.is_empty()) {
            check_config(&path)?;
        }
        let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        if *count == 1 {
            watch_forks();
            super::profile::trace_program();
            return Ok(());
        }
        let text = "the library is initialised already; each call counts, and is to be finalised";
        Err(Refusal::new(codes::ALREADY_INITIALISED, text))
    }

    fn aclFinalize() {
        let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        let was = std::mem::take(&mut *count);
        require(was > 0, || {
            Refusal::new(codes::ALREADY_FINALISED, "the library is not initialised; finalise it once")
        })
    }

    fn aclFinalizeReference(left: Out<u64>) {
        let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        require(*count > 0, || {
            Refusal::new(codes::ALREADY_FINALISED, "the library is not initialised; finalise it as often as it was")
        })?;
        *count -= 1;
        if let Some(place) = left.optional() {
            place.set(*count);
        }
        Ok(())
    }

    fn aclrtGetVersion(major: Out<i32>, minor: Out<i32>, patch: Out<i32>) {
        major.put("major", VERSION[0])?;
        minor.put("minor", VERSION[1])?;
        patch.put("patch", VERSION[2])
    }

    fn aclsysGetVersionStr(package: Text, version: Out<u8>) {
        package.read("package")?;
        put_text(&version.place("version")?, 128, env!("CARGO_PKG_VERSION"))
    }

    fn aclsysGetVersionNum(package: Text, version: Out<i32>) {
        package.read("package")?;
        version.put("version", number(env!("CARGO_PKG_VERSION")))
    }

    fn aclrtCheckArchCompatibility(arch: Text, fits: Out<i32>) {
        let arch = arch.read("arch")?;
        fits.put("fits", i32::from(super::facts::SOC.starts_with(&arch) || arch.starts_with(super::facts::SOC)))
    }
}

/// A version as one number: two digits a part.
fn number(version: &str) -> i32 {
    let parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    parts.fold(0, |sum: i32, part: i32| sum * 100 + part)
}

/// A configuration is a file with a JSON object; the library takes its defaults whatever stands there.
fn check_config(path: &str) -> Result<(), Refusal> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Refusal::new(
            codes::INVALID_FILE,
            format!("the configuration {path} cannot be read: {error}"),
        )
    })?;
    require(text.trim_start().starts_with('{'), || {
        Refusal::new(codes::INVALID_FILE, format!("the configuration {path} is no JSON object"))
    })
}

/// Writes a line of the program's log to standard error. It does not go through `common/entry.rs`: it returns nothing, and a child of
/// `fork` has a log as well. No fault can be asked for.
// SAFETY: the name is that of the interface, and no other function here has it. It takes further arguments in C, which are not read.
#[unsafe(no_mangle)]
extern "C" fn aclAppLog(
    level: u32,
    function: *const c_char,
    file: *const c_char,
    line: u32,
    text: *const c_char,
) {
    let [function, file, text] = [function, file, text].map(super::values::said);
    let level = ["DEBUG", "INFO", "WARNING", "ERROR"].get(level as usize).unwrap_or(&"LOG");
    if std::env::var_os("ASCEND_SLOG_PRINT_TO_STDOUT").is_some() {
        println!("[{level}] {file}:{line} {function}: {text}");
    } else if *level == "ERROR" {
        eprintln!("[{level}] {file}:{line} {function}: {text}");
    }
}
