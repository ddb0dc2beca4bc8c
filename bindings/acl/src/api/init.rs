//! Start and end of the library, and its versions.

use std::ffi::c_char;

use crate::common::argument::{Out, Text, put_text};
use crate::common::entry::api;
use crate::common::log;
use crate::device::facts;
use crate::device::starts::{self, Configuration};

const VERSION: [i32; 3] = [1, 17, 0];

api! {
    fn aclInit(config: Text) {
        let path = config.optional().filter(|path| !path.is_empty());
        let configuration = path.map(|path| Configuration::read(&path)).transpose()?;
        starts::initialise(configuration.unwrap_or_default())
    }

    fn aclFinalize() {
        starts::finalise()
    }

    fn aclFinalizeReference(left: Out<u64>) {
        let count = starts::finalise_once()?;
        if let Some(output) = left.optional() {
            output.set(count);
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
        put_text(&version.required("version")?, 128, env!("CARGO_PKG_VERSION"))
    }

    fn aclsysGetVersionNum(package: Text, version: Out<i32>) {
        package.read("package")?;
        version.put("version", number(env!("CARGO_PKG_VERSION")))
    }

    fn aclrtCheckArchCompatibility(arch: Text, fits: Out<i32>) {
        let arch = arch.read("arch")?;
        fits.put("fits", i32::from(facts::SOC.starts_with(&arch) || arch.starts_with(facts::SOC)))
    }
}

/// A version as one number: two digits a part.
fn number(version: &str) -> i32 {
    let parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    parts.fold(0, |sum: i32, part: i32| sum * 100 + part)
}

/// Writes a line of the program's log to standard error. It does not go through `common/entry.rs`: it returns nothing, and a child of
/// `fork` has a log as well. No fault can be asked for.
// SAFETY: the interface defines this name, and no other function here has the same name.
// It takes further arguments in C, which are not read.
#[unsafe(no_mangle)]
extern "C" fn aclAppLog(
    level: u32,
    function: *const c_char,
    file: *const c_char,
    line: u32,
    text: *const c_char,
) {
    let [function, file, text] = [function, file, text].map(super::values::said);
    log::of_program(level, [&function, &file, &text], line);
}
