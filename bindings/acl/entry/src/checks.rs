//! Arguments that cannot be, whatever the device is: a null pointer, a size of 0, a number beyond its range, a time limit that is none.
//! `checks.tsv` of `pto-acl-interface` lists them. What needs a handle's object, or the device, is checked below.

use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;

use pto_acl_interface::{CHECKED, Check, Rule};

use super::errors;
use super::refusing;
use super::row::Row;

/// A null pointer, a size of 0, an unknown kind or flag.
const BAD_ARGUMENT: i32 = 100_000;
/// A value that cannot be.
const BAD_VALUE: i32 = 107_000;

/// What a plug-in of this project does with a refusal: it keeps the message for the thread, counts the call, for those who ask for the n-th to fail, writes the
/// log, and tells the validation layer. It returns the code of the call: that of the refusal, or of what comes before it.
pub(crate) type Told = extern "C" fn(*const c_char, i32, *const c_char) -> i32;

static TELL: OnceLock<Told> = OnceLock::new();

/// From now on refusals are told to a plug-in.
pub(crate) fn tell(told: Told) {
    TELL.get_or_init(|| told);
}

/// Refuses a call: the first check that does not hold says why. A function that the plug-in lacks says that instead.
#[cold]
pub(crate) fn refuse(row: &Row, target: *mut c_void, words: &[usize; CHECKED]) -> i32 {
    if let Some(code) = refusing::code_of(target) {
        return code;
    }
    let broken = row.checks.iter().find(|check| !check.rule.holds(words[check.place]));
    // The entry point has found one.
    let Some(check) = broken else { return BAD_ARGUMENT };
    let (code, text) = reason(check, words[check.place]);
    let as_c = CString::new(&*text).unwrap_or_default();
    if let Some(told) = TELL.get() {
        return told(row.name.as_ptr(), code, as_c.as_ptr());
    }
    errors::keep(row.name, code, &text);
    code
}

fn reason(check: &Check, word: usize) -> (i32, String) {
    let name = check.name;
    let low = word & 0xFFFF_FFFF;
    match check.rule {
        Rule::Set => (BAD_ARGUMENT, format!("{name} is null; pass a pointer or a handle")),
        Rule::Positive => (BAD_ARGUMENT, format!("{name} is 0; pass 1 at least")),
        Rule::To(0) => (BAD_ARGUMENT, format!("{name} is {low}, and reserved; pass 0")),
        Rule::To(most) => {
            (BAD_ARGUMENT, format!("there is no {name} {low}; there are 0 to {most}"))
        }
        Rule::Limit => {
            let limit = u32::try_from(low).unwrap_or_default().cast_signed();
            let text =
                format!("a limit of {limit} ms is none; pass -1 for no limit, or 1 and more");
            (BAD_VALUE, text)
        }
    }
}
