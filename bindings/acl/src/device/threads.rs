//! What the other threads of the program can do while a thread waits in virtual time, where the devices work only while a thread waits.
//!
//! A thread can act unless it waits in this library without a time limit, or sleeps until another thread wakes it. The system shows that for each
//! thread under `/proc/self/task`. Where it does not, no thread is expected to act after a second in which nothing has happened.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// For how long all threads have to be asleep: they are not looked at at the same moment.
const ASLEEP: Duration = Duration::from_millis(10);
/// For how long all threads have to be silent, where the system does not report what threads do.
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

/// For how long the other threads have to stay as they are before none is expected to act; `None`: one of them may act.
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
    /// The thread belongs to the runtime, or has ended.
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
