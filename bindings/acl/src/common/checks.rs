//! The validation layer: what programs do wrong and the interface lets pass, or says with a bare code. `PTO_ACL_CHECK` switches it on:
//! `report` writes to standard error, `strict` lets the process end with 1 as well.
//!
//! Every object has the call that made it, and the call that ended it, each with its source location.

use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::codes;
use super::refusal::Refusal;
use super::thread;

/// What is done about misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckMode {
    Off,
    Report,
    Strict,
}

/// A rule that programs break: its name, and what to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MisuseRule {
    pub(super) name: &'static str,
    pub(super) remedy: &'static str,
}

pub(crate) const DEAD_HANDLE: MisuseRule = MisuseRule {
    name: "ACL-HANDLE-01",
    remedy: "use an object before it is destroyed, and destroy it once",
};
pub(crate) const NO_HANDLE: MisuseRule = MisuseRule {
    name: "ACL-HANDLE-02",
    remedy: "pass what the function that makes such an object gave",
};
pub(crate) const BAD_FREE: MisuseRule = MisuseRule {
    name: "ACL-MEMORY-01",
    remedy: "free what was allocated, with the function that belongs to it, once",
};
pub(crate) const CHANGED_SOURCE: MisuseRule = MisuseRule {
    name: "ACL-COPY-01",
    remedy: "leave the source of an asynchronous copy alone until an event or the stream says that the copy is over",
};
const WRONG_CONTEXT: MisuseRule = MisuseRule {
    name: "ACL-CONTEXT-01",
    remedy: "make the context of the stream the current one of the thread",
};
const RESET_TOO_OFTEN: MisuseRule =
    MisuseRule { name: "ACL-DEVICE-01", remedy: "reset a device as often as it was set" };
const ENDLESS_WAIT: MisuseRule = MisuseRule {
    name: "ACL-WAIT-01",
    remedy: "submit what a stream waits for before the wait, or on another stream",
};
const LEAK: MisuseRule =
    MisuseRule { name: "ACL-LEAK-01", remedy: "destroy or free what was made" };

/// A call of the program.
#[derive(Clone, Debug)]
pub(super) struct Site {
    call: &'static str,
    location: String,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.call, self.location)
    }
}

/// Objects and memory: what they are, and who made or ended them.
#[derive(Default)]
struct Register {
    alive: BTreeMap<usize, (String, Site)>,
    dead: BTreeMap<usize, (String, Site, Site)>,
}

static REGISTER: Mutex<Register> =
    Mutex::new(Register { alive: BTreeMap::new(), dead: BTreeMap::new() });
static REPORTS: AtomicU32 = AtomicU32::new(0);

fn register() -> MutexGuard<'static, Register> {
    REGISTER.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
fn mode() -> CheckMode {
    static MODE: OnceLock<CheckMode> = OnceLock::new();
    *MODE.get_or_init(|| {
        let mode = match std::env::var("PTO_ACL_CHECK").as_deref() {
            Err(_) | Ok("" | "0" | "off") => CheckMode::Off,
            Ok("strict") => CheckMode::Strict,
            Ok(_) => CheckMode::Report,
        };
        if mode != CheckMode::Off {
            // SAFETY: the function may be called at the end of the process.
            unsafe { libc::atexit(at_exit) };
        }
        mode
    })
}

/// Whether the layer is on.
#[inline]
pub(crate) fn is_on() -> bool {
    mode() != CheckMode::Off
}

/// The thread is in a call of the program.
pub(crate) fn enter(call: &'static str) {
    if is_on() {
        thread::with(|thread| thread.call = call);
    }
}

/// A call of the program whose location is looked up when it is reported: there is one for each command.
#[derive(Clone, Debug)]
pub(crate) struct CallTrace {
    call: &'static str,
    frames: Arc<Backtrace>,
}

impl CallTrace {
    /// The call that the thread is in.
    pub(crate) fn here() -> Self {
        let call = thread::with(|thread| thread.call);
        Self { call, frames: Arc::new(Backtrace::force_capture()) }
    }
}

impl fmt::Display for CallTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.call, locate(self.call, &self.frames))
    }
}

/// The call that the thread is in, and where the program makes it.
pub(super) fn here() -> Site {
    let call = thread::with(|thread| thread.call);
    Site { call, location: locate(call, &Backtrace::force_capture()) }
}

/// The function of the program that makes a call: the caller of the entry point on the stack.
fn locate(call: &str, frames: &Backtrace) -> String {
    let frames = frames.to_string();
    let mut names = frames.lines().map(str::trim).filter_map(|line| {
        let (number, name) = line.split_once(": ")?;
        number.parse::<u32>().is_ok().then_some(name)
    });
    let is_entry = |name: &&str| name.rsplit("::").next() == Some(call);
    match names.by_ref().find(is_entry).and_then(|_| names.next()) {
        Some(name) if !name.contains("<unknown>") => name.to_owned(),
        _ => "a function without a name".to_owned(),
    }
}

/// Something was made that the program is to end.
pub(crate) fn born(object: usize, what: impl fmt::Display) {
    if !is_on() {
        return;
    }
    let site = here();
    // Default streams and primary contexts end with their context and their device.
    let what = what.to_string();
    let is_own = match what.as_str() {
        "a stream" => site.call.contains("CreateStream"),
        "a context" => site.call == "aclrtCreateContext",
        // The interface has nothing that ends these.
        "a kernel function" | "kernel arguments" => false,
        _ => true,
    };
    if is_own {
        register().alive.insert(object, (what, site));
    }
}

/// Records that an object was destroyed.
pub(crate) fn died(object: usize) {
    if !is_on() {
        return;
    }
    let site = here();
    let mut register = register();
    if let Some((what, made)) = register.alive.remove(&object) {
        register.dead.insert(object, (what, made, site));
    }
}

/// Words for a message: who made an object. Nothing while the layer is off.
pub(crate) fn made(object: usize) -> String {
    if !is_on() {
        return String::new();
    }
    let register = register();
    let alive = register.alive.get(&object).map(|(_, made)| made);
    let made = alive.or_else(|| register.dead.get(&object).map(|(_, made, _)| made));
    made.map_or_else(String::new, |made| format!(", made by {made},"))
}

/// Reports the use of an object that does not exist.
pub(crate) fn misused(rule: MisuseRule, object: usize, text: &str) {
    if !is_on() {
        return;
    }
    let history = match register().dead.get(&object) {
        Some((what, made, ended)) => {
            format!("; {object:#x} was {what}, made by {made}, ended by {ended}")
        }
        None => String::new(),
    };
    report(rule, &format!("{text}{history}"));
}

/// Reports a refusal that is misuse, whatever the arguments are.
pub(crate) fn refused(refusal: &Refusal) {
    let rule = match refusal.code {
        codes::OTHER_CONTEXT => WRONG_CONTEXT,
        codes::CONTEXT_RELEASE => RESET_TOO_OFTEN,
        codes::WAIT_TIMEOUT => ENDLESS_WAIT,
        _ => return,
    };
    if is_on() {
        report(rule, &refusal.text);
    }
}

/// Writes a report of the call that the thread is in.
pub(crate) fn report(rule: MisuseRule, text: &str) {
    report_of(rule, &here(), text);
}

/// Writes a report of an earlier call.
pub(crate) fn report_of(rule: MisuseRule, site: &dyn fmt::Display, text: &str) {
    // Relaxed: it only counts.
    REPORTS.fetch_add(1, Ordering::Relaxed);
    eprintln!("pto cann: {}: {site}: {text}; {}", rule.name, rule.remedy);
}

/// What is left, and in mode strict the exit code.
extern "C" fn at_exit() {
    let left = std::mem::take(&mut register().alive);
    let mut groups: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (what, site) in left.into_values() {
        *groups.entry((what, site.to_string())).or_default() += 1;
    }
    for ((what, site), count) in &groups {
        // Relaxed: the process ends.
        REPORTS.fetch_add(1, Ordering::Relaxed);
        let times = if *count == 1 { String::new() } else { format!(", {count} times") };
        eprintln!(
            "pto cann: {}: {what} is left at the end, made by {site}{times}; {}",
            LEAK.name, LEAK.remedy
        );
    }
    // Relaxed: as above.
    if mode() == CheckMode::Strict && REPORTS.load(Ordering::Relaxed) > 0 {
        // SAFETY: null means every stream of the program.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        // SAFETY: the call has no preconditions.
        unsafe { libc::_exit(1) };
    }
}
