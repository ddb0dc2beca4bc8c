//! Faults that a user asks for: `PTO_ACL_FAIL` is a list of `FUNCTION:N:CODE`, and the N-th call of the function fails with the code.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::refusal::{Answer, Refusal};

/// A fault that is asked for.
struct Fault {
    function: String,
    call: u64,
    code: i32,
    calls: AtomicU64,
}

fn faults() -> &'static [Fault] {
    static FAULTS: OnceLock<Vec<Fault>> = OnceLock::new();
    FAULTS.get_or_init(|| {
        let list = std::env::var("PTO_ACL_FAIL").unwrap_or_default();
        let rows = list.split(',').filter(|row| !row.is_empty());
        rows.filter_map(|row| {
            let fault = parse(row);
            if fault.is_none() {
                eprintln!("pto acl: PTO_ACL_FAIL has \"{row}\", which is not FUNCTION:N:CODE; nothing fails for it");
            }
            fault
        })
        .collect()
    })
}

fn parse(row: &str) -> Option<Fault> {
    let (function, rest) = row.split_once(':')?;
    let (call, code) = rest.split_once(':')?;
    let call = call.parse().ok().filter(|call| *call > 0)?;
    let code = code.parse().ok().filter(|code| *code != 0)?;
    Some(Fault { function: function.to_owned(), call, code, calls: AtomicU64::new(0) })
}

/// Whether a user asks for any.
pub(crate) fn are_asked_for() -> bool {
    !faults().is_empty()
}

/// Refuses the call if somebody asked for that.
pub(crate) fn check(call: &str) -> Answer {
    for fault in faults().iter().filter(|fault| fault.function == call) {
        // Relaxed: it only counts.
        let number = fault.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if number == fault.call {
            let text = format!("call {number} fails because PTO_ACL_FAIL asks for it");
            return Err(Refusal::new(fault.code, text));
        }
    }
    Ok(())
}
