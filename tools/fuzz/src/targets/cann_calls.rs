//! Records of calls, as `pto compat cann replay` reads them, and faults, as `pto compat cann run --fail` does: both accept or refuse any text. What they accept is
//! written and read again as the same.

use pto_acl_interface::{Fault, HEADER};

/// Reads the bytes as a text; invalid text is read with replacement characters.
pub(super) fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(calls) = pto_acl_interface::read(&text) {
        let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
        let again = pto_acl_interface::read(&format!("{HEADER}\n{lines}"));
        assert_eq!(again, Ok(calls), "a record changes when it is written");
    }
    for line in text.lines() {
        let Ok(fault) = line.parse::<Fault>() else { continue };
        let again = fault.to_string().parse::<Fault>();
        assert_eq!(again.as_ref(), Ok(&fault), "a fault changes when it is written");
    }
}
