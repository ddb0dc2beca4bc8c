//! Arguments that cannot be, whatever the device is: a null pointer, a size of 0, a number beyond its range, a time limit that is none.
//! `checks.tsv` of `pto-acl-interface` lists them. What needs a handle's object, or the device, is checked below.

use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;

use pto_acl_interface::{ArgumentRule, CHECKED, Check};

use super::errors;
use super::refusing;
use super::row::EntryPoint;

/// A null pointer, a size of 0, an unknown kind or flag.
const BAD_ARGUMENT: i32 = 100_000;
/// A value that cannot be.
const BAD_VALUE: i32 = 107_000;

/// What a plug-in of this project does with a refusal: it keeps the message for the thread, counts the call, for those who ask for the n-th to fail, writes the
/// log, and notifies the validation layer. It returns the code of the call: that of the refusal, or of what comes before it.
pub(crate) type RefusalCallback = extern "C" fn(*const c_char, i32, *const c_char) -> i32;

static CALLBACK: OnceLock<RefusalCallback> = OnceLock::new();

/// From now on refusals are reported to a plug-in.
pub(crate) fn report_to(callback: RefusalCallback) {
    CALLBACK.get_or_init(|| callback);
}

/// Refuses a call: the first check that does not hold says why. A function that the plug-in lacks says that instead.
#[cold]
pub(crate) fn refuse(row: &EntryPoint, target: *mut c_void, words: &[usize; CHECKED]) -> i32 {
    if let Some(code) = refusing::code_of(target) {
        return code;
    }
    let broken = row.checks.iter().find(|check| !check.rule.holds(words[check.index]));
    // The entry point has found one.
    let Some(check) = broken else { return BAD_ARGUMENT };
    let (code, text) = reason(check, words[check.index]);
    let as_c = CString::new(&*text).unwrap_or_default();
    if let Some(callback) = CALLBACK.get() {
        return callback(row.name.as_ptr(), code, as_c.as_ptr());
    }
    errors::keep(row.name, code, &text);
    code
}

fn reason(check: &Check, word: usize) -> (i32, String) {
    let name = check.name;
    let low = word & 0xFFFF_FFFF;
    match check.rule {
        ArgumentRule::Set => (BAD_ARGUMENT, format!("{name} is null; pass a pointer or a handle")),
        ArgumentRule::Positive => (BAD_ARGUMENT, format!("{name} is 0; pass 1 at least")),
        ArgumentRule::To(0) => (BAD_ARGUMENT, format!("{name} is {low}, and reserved; pass 0")),
        ArgumentRule::To(most) => {
            (BAD_ARGUMENT, format!("there is no {name} {low}; there are 0 to {most}"))
        }
        ArgumentRule::Limit => {
            let limit = u32::try_from(low).unwrap_or_default().cast_signed();
            let text =
                format!("a limit of {limit} ms is none; pass -1 for no limit, or 1 and more");
            (BAD_VALUE, text)
        }
    }
}
