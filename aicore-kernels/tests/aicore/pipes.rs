//! A model of a core's pipes: which instruction is over before which other one begins.
//!
//! Each pipe does its instructions in order, and pipes run in parallel. An instruction of one pipe is known to be over to another pipe by a flag that was
//! set after it and waited for, or by a barrier. The vector pipe begins an instruction before the one before it is over: there it takes a barrier as well.
//! Two instructions that touch the same bytes, of which one writes them, and that nothing orders, are an error.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

/// As `pipe_t`.
const NAMES: [&str; 8] = ["S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"];
const VECTOR: usize = 1;
const ALL: usize = 7;
/// As `pto_space`: names, and how many bytes each local memory has.
pub(crate) const SPACES: [(&str, u64); 6] = [
    ("GM", u64::MAX),
    ("UB", 192 << 10),
    ("L1", 512 << 10),
    ("L0A", 64 << 10),
    ("L0B", 64 << 10),
    ("L0C", 128 << 10),
];

/// How many instructions of each pipe are over.
type PipeClock = [u32; 7];

/// An access of an instruction.
#[derive(Clone, Copy)]
struct PipeAccess {
    start: u64,
    end: u64,
    pipe: usize,
    number: u32,
    is_write: bool,
    line: u32,
}

/// The pipes of one core, from the begin of a kernel.
#[derive(Default)]
pub(crate) struct PipeModel {
    /// Instructions that were begun.
    begun: PipeClock,
    /// What each pipe knows to be over before its next instruction.
    known: [PipeClock; 7],
    flags: BTreeMap<(u32, u32, u32), VecDeque<PipeClock>>,
    accesses: [Vec<PipeAccess>; 6],
    now: (usize, u32),
    /// Bytes used of each local memory.
    pub(crate) used: [u64; 6],
    pub(crate) instructions: u32,
    pub(crate) errors: Vec<String>,
}

impl PipeModel {
    fn begin(&mut self, pipe: u32, line: u32) {
        let pipe = pipe as usize;
        self.begun[pipe] += 1;
        self.instructions += 1;
        self.now = (pipe, line);
        if pipe != VECTOR {
            self.known[pipe][pipe] = self.begun[pipe] - 1;
        }
    }

    fn access(&mut self, space: u32, start: u64, bytes: u64, is_write: bool) {
        let (pipe, line) = self.now;
        let (name, room) = SPACES[space as usize];
        let end = start + bytes;
        if space > 0 {
            self.used[space as usize] = self.used[space as usize].max(end);
            if end > room || !start.is_multiple_of(32) {
                self.errors.push(format!(
                    "line {line}: bytes {start:#x} to {end:#x} of {name}, which has {room}"
                ));
            }
        }
        let is_unordered = |other: &&PipeAccess| {
            let meets = other.start < end && start < other.end && (is_write || other.is_write);
            let is_same = other.pipe == pipe && other.number == self.begun[pipe];
            meets && !is_same && self.known[pipe][other.pipe] < other.number
        };
        if let Some(other) = self.accesses[space as usize].iter().find(is_unordered) {
            let (before, after) = (NAMES[other.pipe], NAMES[pipe]);
            self.errors.push(format!(
                "nothing orders line {} ({before}) before line {line} ({after}): both touch {name} at {start:#x}",
                other.line
            ));
        }
        let number = self.begun[pipe];
        self.accesses[space as usize].push(PipeAccess { start, end, pipe, number, is_write, line });
    }

    fn set(&mut self, from: u32, to: u32, event: u32) {
        let mut known = self.known[from as usize];
        known[from as usize] = self.begun[from as usize];
        self.flags.entry((from, to, event)).or_default().push_back(known);
        if self.flags[&(from, to, event)].len() > 1 {
            self.errors.push(format!("{} is set twice", Self::flag((from, to, event))));
        }
    }

    fn wait(&mut self, from: u32, to: u32, event: u32, line: u32) {
        let flag = self.flags.entry((from, to, event)).or_default().pop_front();
        let Some(known) = flag else {
            let flag = Self::flag((from, to, event));
            return self.errors.push(format!("line {line} waits for {flag}, which is not set"));
        };
        let own = &mut self.known[to as usize];
        for (own, known) in own.iter_mut().zip(known) {
            *own = (*own).max(known);
        }
    }

    fn barrier(&mut self, pipe: u32) {
        let pipe = pipe as usize;
        if pipe == ALL {
            self.known = [self.begun; 7];
            self.accesses.iter_mut().for_each(Vec::clear);
        } else {
            self.known[pipe][pipe] = self.begun[pipe];
        }
    }

    /// A flag for other cores goes up when the instructions of a pipe are over: what other pipes write must be over as well.
    fn raise(&mut self, pipe: u32, line: u32) {
        let known = self.known[pipe as usize];
        let is_late = |access: &&PipeAccess| {
            let is_own = access.pipe == pipe as usize;
            access.is_write && !is_own && known[access.pipe] < access.number
        };
        if let Some(late) = self.accesses[0].iter().find(is_late) {
            let (before, after) = (NAMES[late.pipe], NAMES[pipe as usize]);
            self.errors.push(format!(
                "line {line} raises a flag for other cores behind {after}, and nothing orders line {} ({before}), which writes GM at {:#x}, before it",
                late.line, late.start
            ));
        }
    }

    fn flag((from, to, event): (u32, u32, u32)) -> String {
        format!("flag {event} of {} to {}", NAMES[from as usize], NAMES[to as usize])
    }

    /// What is wrong at the end of the kernel.
    fn finish(mut self) -> Self {
        for (flag, left) in &self.flags {
            if !left.is_empty() {
                self.errors.push(format!("{} is set, and nothing waits for it", Self::flag(*flag)));
            }
        }
        self
    }
}

thread_local! {
    static PIPES: RefCell<PipeModel> = RefCell::default();
}

/// Runs a kernel whose calls go to [`CALLS`], and gives what its pipes did.
pub(crate) fn watch(kernel: impl FnOnce()) -> PipeModel {
    PIPES.with(|pipes| pipes.replace(PipeModel::default()));
    kernel();
    PIPES.with(|pipes| pipes.take()).finish()
}

fn with(act: impl FnOnce(&mut PipeModel)) {
    PIPES.with(|pipes| act(&mut pipes.borrow_mut()));
}

/// The table of `pipes.cpp`.
#[repr(C)]
pub(crate) struct PipeCalls {
    begin: extern "C" fn(u32, u32),
    access: extern "C" fn(u32, u64, u64, u32),
    set: extern "C" fn(u32, u32, u32, u32),
    wait: extern "C" fn(u32, u32, u32, u32),
    barrier: extern "C" fn(u32, u32),
    raise: extern "C" fn(u32, u32),
}

extern "C" fn begin(pipe: u32, line: u32) {
    with(|pipes| pipes.begin(pipe, line));
}
extern "C" fn access(space: u32, address: u64, bytes: u64, is_write: u32) {
    with(|pipes| pipes.access(space, address, bytes, is_write != 0));
}
extern "C" fn set(from: u32, to: u32, event: u32, _: u32) {
    with(|pipes| pipes.set(from, to, event));
}
extern "C" fn wait(from: u32, to: u32, event: u32, line: u32) {
    with(|pipes| pipes.wait(from, to, event, line));
}
extern "C" fn barrier(pipe: u32, _: u32) {
    with(|pipes| pipes.barrier(pipe));
}

extern "C" fn raise(pipe: u32, line: u32) {
    with(|pipes| pipes.raise(pipe, line));
}

/// The calls of a kernel.
pub(crate) static PIPE_CALLS: PipeCalls = PipeCalls { begin, access, set, wait, barrier, raise };
