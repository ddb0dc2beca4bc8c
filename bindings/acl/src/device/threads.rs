//! What the other threads of the program can do while a thread waits in virtual time, where the devices work only while somebody waits.
//!
//! A thread can act unless it waits in this library without a time limit, or sleeps until another thread wakes it. The system tells that of each
//! thread under `/proc/self/task`. Where it does not, nobody is expected to act after a second in which nothing has happened.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// For how long all threads have to be asleep: they are not looked at at the same moment.
const ASLEEP: Duration = Duration::from_millis(10);
/// The same, where the system does not say what threads do.
const UNKNOWN: Duration = Duration::from_millis(900);
/// What the names of threads of the runtime's own begin with: they act for who waits.
const OWN_NAMES: &str = "pto-";

/// Threads that wait in the library without a time limit.
static WAITING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn waiting() -> MutexGuard<'static, BTreeSet<i32>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread waits without a time limit as long as this lives.
pub(crate) struct Waits(i32);

impl Waits {
    pub(crate) fn begin() -> Self {
        let own = this_thread();
        waiting().insert(own);
        Self(own)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        waiting().remove(&self.0);
    }
}

/// For how long the other threads have to stay as they are before nobody is expected to act; `None`: one of them may act.
pub(crate) fn quiet() -> Option<Duration> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Some(UNKNOWN) };
    let (own, waiting) = (this_thread(), waiting().clone());
    let numbers = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let mut needed = Duration::ZERO;
    for number in numbers.filter(|number| *number != own) {
        let can = if waiting.contains(&number) { Can::Nothing } else { of_thread(number) };
        needed = needed.max(match can {
            Can::Act => return None,
            Can::Nothing => ASLEEP,
            Can::Unknown => UNKNOWN,
            Can::NotCount => Duration::ZERO,
        });
    }
    Some(needed)
}

/// What another thread of the process can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Can {
    Act,
    Nothing,
    Unknown,
    /// It is one of the runtime's, or has ended.
    NotCount,
}

/// What a thread can do.
fn of_thread(number: i32) -> Can {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/self/task/{number}/{file}"));
    match read("comm") {
        Ok(name) if !name.starts_with(OWN_NAMES) => {}
        _ => return Can::NotCount,
    }
    read("syscall").map_or(Can::Unknown, |call| of_call(&call))
}

/// What a thread can do that is in this system call: its number and its arguments, as the system writes them.
fn of_call(call: &str) -> Can {
    const OPERATION: u64 = 0x7F;
    let mut words = call.split_ascii_whitespace();
    let is_futex = words.next().and_then(|number| number.parse().ok()) == Some(libc::SYS_futex);
    let words: Vec<u64> = words
        .map_while(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok())
        .collect();
    let [_, operation, _, limit, ..] = words[..] else { return Can::Act };
    let waits = [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET, libc::FUTEX_LOCK_PI];
    let is_wait = waits.iter().any(|wait| operation & OPERATION == u64::from(wait.unsigned_abs()));
    if is_futex && is_wait && limit == 0 { Can::Nothing } else { Can::Act }
}

fn this_thread() -> i32 {
    // SAFETY: the call has no preconditions.
    unsafe { libc::gettid() }
}

#[cfg(test)]
mod tests {
    use super::{Can, of_call, of_thread, this_thread};
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    #[test]
    fn a_thread_that_only_another_one_wakes_can_do_nothing() {
        let futex = libc::SYS_futex;
        for (call, can) in [
            (format!("{futex} 0x7f 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f33\n"), Can::Nothing),
            (format!("{futex} 0x7f 0x189 0x2 0x0 0x0 0xffffffff 0x7ffe 0x7f33\n"), Can::Nothing),
            (format!("{futex} 0x7f 0x189 0x2 0x7ffe10 0x0 0x0 0x7ffe 0x7f33\n"), Can::Act),
            (format!("{futex} 0x7f 0x81 0x1 0x0 0x0 0x0 0x7ffe 0x7f33\n"), Can::Act),
            ("230 0x0 0x0 0x7ffe 0x0 0x0 0x0 0x7ffe 0x7f33\n".to_owned(), Can::Act),
            ("running\n".to_owned(), Can::Act),
            ("-1 0x7ffe 0x7f33\n".to_owned(), Can::Act),
        ] {
            assert_eq!(of_call(&call), can, "{call}");
        }
    }

    #[test]
    fn a_thread_that_receives_is_asleep_and_one_that_sleeps_for_a_time_is_not() {
        let (go, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let told_too = tell.clone();
        let named = std::thread::Builder::new().name("asleep".to_owned());
        let asleep = named.spawn(move || {
            tell.send(this_thread()).unwrap_or_default();
            wait.recv()
        });
        let asleep = asleep.expect("a thread");
        let number = told.recv().expect("a thread");
        let start = Instant::now();
        while of_thread(number) == Can::Act && start.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        // A system that does not say what threads do is told so.
        assert!(matches!(of_thread(number), Can::Nothing | Can::Unknown));
        drop(go);
        assert!(asleep.join().expect("a thread").is_err());
        let named = std::thread::Builder::new().name("for a time".to_owned());
        let sleeps = move || {
            told_too.send(this_thread()).unwrap_or_default();
            std::thread::sleep(Duration::from_secs(600));
        };
        named.spawn(sleeps).expect("a thread");
        let number = told.recv().expect("a thread");
        assert!(matches!(of_thread(number), Can::Act | Can::Unknown));
    }
}
