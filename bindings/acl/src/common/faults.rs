//! Faults that a user asks for: `PTO_ACL_FAIL` is a list of `FUNCTION:N:CODE`, for the N-th call of a function, and of `FAULT:N`, for the
//! N-th command of a stream. A list that cannot be read fails every call, so that no test passes without its fault.
//! `PTO_ACL_HAPPENED` names a file that gets a line with each fault when it happens: `pto compat cann run` fails a program whose faults did not.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use pto_acl_interface::{Fault, Strike, list};

use super::refusal::{Answer, Refusal};

const VARIABLE: &str = "PTO_ACL_FAIL";
const HAPPENED: &str = "PTO_ACL_HAPPENED";

/// A fault that is asked for, and how often what it waits for has happened.
struct ArmedFault {
    fault: Fault,
    seen: AtomicU64,
}

impl ArmedFault {
    /// What the fault waits for happens; whether it is the time that is meant.
    fn comes(&self, number: u64) -> bool {
        // Relaxed: it only counts.
        let comes = self.seen.fetch_add(1, Ordering::Relaxed) + 1 == number;
        if comes {
            self.note();
        }
        comes
    }

    /// Says in the file of `PTO_ACL_HAPPENED` that the fault happens. At once, because a program may end without the handlers of its end.
    fn note(&self) {
        let Some(path) = std::env::var_os(HAPPENED) else { return };
        let line = format!("{}\n", self.fault);
        let file = OpenOptions::new().append(true).create(true).open(&path);
        if let Err(why) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
            eprintln!("pto cann: {HAPPENED}: cannot write {}: {why}", path.display());
        }
    }
}

/// The faults; or why the list cannot be read.
fn faults() -> &'static Result<Vec<ArmedFault>, String> {
    static FAULTS: OnceLock<Result<Vec<ArmedFault>, String>> = OnceLock::new();
    FAULTS.get_or_init(|| {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        let asked = |fault| ArmedFault { fault, seen: AtomicU64::new(0) };
        match list(&text) {
            Ok(faults) => {
                if !faults.is_empty() {
                    PROCESS.get_or_init(std::process::id);
                    // SAFETY: the function may be called at the end of the process.
                    unsafe { libc::atexit(at_exit) };
                }
                Ok(faults.into_iter().map(asked).collect())
            }
            Err(why) => {
                let text = format!("{VARIABLE} cannot be read, and every call fails: {why}");
                eprintln!("pto cann: {text}");
                Err(text)
            }
        }
    })
}

/// Whether a user asks for any.
pub(crate) fn are_asked_for() -> bool {
    faults().as_ref().map_or(true, |faults| !faults.is_empty())
}

/// Refuses the call if a fault asks for that.
pub(crate) fn check(call: &str) -> Answer {
    let faults = faults().as_ref().map_err(Refusal::value)?;
    let mut answer = Ok(());
    // Each counts, also after one that happens.
    for asked in faults {
        let Fault::Call { function, number, code } = asked.fault else { continue };
        if function == call && asked.comes(number) {
            let text = format!("call {number} fails because {VARIABLE} asks for it");
            answer = answer.and(Err(Refusal::new(code, text)));
        }
    }
    answer
}

/// A command of a stream is submitted, one for the cores or another one: what strikes it.
pub(crate) fn strike(is_for_cores: bool) -> Option<Strike> {
    let mut struck = None;
    for asked in faults().as_ref().ok()? {
        let Fault::Command { strike, number } = asked.fault else { continue };
        if (is_for_cores || !strike.needs_cores()) && asked.comes(number) {
            struck = struck.or(Some(strike));
        }
    }
    struck
}

/// The process that the faults are asked for in: a child of `fork` has not tried them.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Reports the faults that did not happen.
extern "C" fn at_exit() {
    let is_child = PROCESS.get() != Some(&std::process::id());
    for asked in faults().as_ref().ok().filter(|_| !is_child).into_iter().flatten() {
        // Relaxed: the process ends.
        let seen = asked.seen.load(Ordering::Relaxed);
        let (number, what) = match asked.fault {
            Fault::Call { function, number, .. } => (number, format!("calls of {function}")),
            Fault::Command { strike, number } if strike.needs_cores() => {
                (number, "kernels and models".to_owned())
            }
            Fault::Command { number, .. } => (number, "commands".to_owned()),
        };
        if seen < number {
            eprintln!(
                "pto cann: the fault {} did not happen: there were {seen} {what}",
                asked.fault
            );
        }
    }
}
