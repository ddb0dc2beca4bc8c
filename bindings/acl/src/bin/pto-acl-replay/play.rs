//! Makes the calls.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fmt;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use pto_acl_interface::{ArgumentValue, Call, Memory};

use super::addresses::AddressMap;
use super::library::{AclLibrary, MOST_ARGUMENTS};

/// Bytes at an address whose length no argument gives.
const SOME_BYTES: u64 = 4096;
/// Room after a structure, for libraries that read beyond its end.
const ROOM: usize = 64;

/// Why a record cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplayError(String);

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReplayError {}

/// A call that ended otherwise than in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The line of the record.
    pub(crate) line: usize,
    /// The function.
    pub(crate) function: String,
    /// What is otherwise.
    pub(crate) what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {}", self.line, self.function, self.what)
    }
}

/// How a replay ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplayResult {
    /// The calls that were made.
    pub(crate) calls: usize,
    /// Those that ended otherwise, in the order of the record.
    pub(crate) differences: Vec<Difference>,
}

/// Makes the calls of the record in `file` again.
///
/// # Errors
/// [`ReplayError`]: the record cannot be read, it has a call that no replay can make, or the library cannot be loaded. Nothing was called then.
pub(crate) fn replay(file: &Path) -> Result<ReplayResult, ReplayError> {
    let text = std::fs::read_to_string(file).map_err(|error| ReplayError(error.to_string()))?;
    let calls = pto_acl_interface::read(&text).map_err(|error| ReplayError(error.to_string()))?;
    let mut calls: Vec<(usize, Call)> =
        calls.into_iter().enumerate().map(|(index, call)| (index + 2, call)).collect();
    for (line, call) in &calls {
        check(call).map_err(|why| ReplayError(format!("line {line}: {}: {why}", call.function)))?;
    }
    calls.sort_by_key(|(_, call)| call.begin);
    let names: BTreeSet<&str> = calls.iter().map(|(_, call)| call.function.as_str()).collect();
    let functions = pto_acl_interface::all().chain(pto_acl_interface::runtime());
    let with_code =
        functions.filter(|function| function.has_code).map(|function| function.name).collect();
    let stage = Replayer {
        library: AclLibrary::load(names.into_iter()).map_err(ReplayError)?,
        with_code,
        state: Mutex::default(),
        turn: Condvar::new(),
    };
    Ok(stage.play(&calls))
}

/// Refuses what no replay can do.
fn check(call: &Call) -> Result<(), String> {
    let is_kernel = call.function == "ptoAclKernelFromFunction" && call.result == 0;
    if is_kernel {
        return Err("the kernel is a function of the program; load kernels from an object (aclrtBinaryLoadFromFile) for a record".to_owned());
    }
    if call.arguments.iter().any(|argument| argument.value == ArgumentValue::Foreign) {
        return Err(
            "it opens what another process has made, which is not there in a replay".to_owned()
        );
    }
    let has_lists = call.function == "aclopCompileAndExecute"
        || call.function.starts_with("ptoAclGraph") && call.function != "ptoAclGraphDestroy";
    if has_lists {
        return Err(
            "it passes lists of handles or of texts, which a record does not follow; build the models before, and load them from files".to_owned()
        );
    }
    let of_arguments = call.arguments.iter().filter_map(|argument| match &argument.value {
        ArgumentValue::In(memory)
        | ArgumentValue::Out(memory, _)
        | ArgumentValue::OutAddress(memory, _) => Some(memory),
        _ => None,
    });
    let mut all = of_arguments.chain(&call.reads).chain(&call.writes);
    if let Some(memory) = all.find(|memory| memory.left_out > 0) {
        return Err(format!(
            "the record has left out {} bytes of the memory at {:#x} and holds {}; record again with PTO_ACL_RECORD_BYTES={} or more",
            memory.left_out,
            memory.address,
            memory.bytes.len(),
            memory.left_out.saturating_add(memory.bytes.len() as u64)
        ));
    }
    if call.arguments.len() > MOST_ARGUMENTS {
        return Err(format!("it has more than {MOST_ARGUMENTS} arguments"));
    }
    Ok(())
}

/// Where the calls are made.
struct Replayer {
    library: AclLibrary,
    with_code: BTreeSet<&'static str>,
    state: Mutex<State>,
    turn: Condvar,
}

#[derive(Default)]
struct State {
    addresses: AddressMap,
    /// Threads of the record that have one here.
    threads: usize,
    /// Begins of the calls that are made, and those of them that are not over: all before the first are over.
    waiting: BTreeMap<u64, u64>,
    differences: Vec<Difference>,
}

extern "C" fn nothing() {}

impl Replayer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn play(&self, calls: &[(usize, Call)]) -> ReplayResult {
        let mut threads: BTreeMap<u64, Vec<&(usize, Call)>> = BTreeMap::new();
        for call in calls {
            threads.entry(call.1.thread).or_default().push(call);
        }
        self.state().waiting = calls.iter().map(|(_, call)| (call.end, call.begin)).collect();
        let count = threads.len();
        std::thread::scope(|scope| {
            for (thread, calls) in &threads {
                scope.spawn(move || self.play_thread(*thread, count, calls));
            }
        });
        let mut differences = std::mem::take(&mut self.state().differences);
        differences.sort_by_key(|difference| difference.line);
        ReplayResult { calls: calls.len(), differences }
    }

    fn play_thread(&self, thread: u64, count: usize, calls: &[&(usize, Call)]) {
        // SAFETY: the call has no preconditions.
        let here = unsafe { libc::pthread_self() };
        let mut state = self.state();
        state.addresses.put(thread, 1, here);
        state.threads += 1;
        self.turn.notify_all();
        // Calls name threads: each has its number before the first call.
        while state.threads < count {
            state = self.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        for (line, call) in calls {
            let mut state = self.state();
            // The first call that is not over ended after this one began.
            while state.waiting.first_key_value().is_some_and(|(end, _)| *end < call.begin) {
                state = self.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            let what = self.make(call);
            let mut state = self.state();
            state.waiting.remove(&call.end);
            if let Err(what) = what {
                let function = call.function.clone();
                state.differences.push(Difference { line: *line, function, what });
            }
            self.turn.notify_all();
        }
    }

    /// Makes a call; what is otherwise.
    fn make(&self, call: &Call) -> Result<(), String> {
        let mut prepared = Prepared::of(call, &mut self.state().addresses)?;
        let result = self.library.call(&call.function, &prepared.words, prepared.number);
        let has_code = self.with_code.contains(call.function.as_str());
        let mut state = self.state();
        if has_code {
            let (then, now) = (low(call.result), low(result));
            if then != now {
                let message = self.library.message();
                let why = if message.is_empty() { String::new() } else { format!(": {message}") };
                return Err(format!("the record has {then}, and it gives {now}{why}"));
            }
        } else if call.result >> 48 != 0 || call.function.contains("Create") {
            state.addresses.put(call.result, 1, result);
        }
        prepared.take_results(call, &mut state.addresses);
        let is_equal = |memory: &&Memory| {
            let here = state.addresses.word(memory.address);
            read(here, memory.bytes.len()) != memory.bytes
        };
        match call.writes.iter().find(is_equal) {
            Some(memory) => Err(format!(
                "the {} bytes that it copies to the host are not those of the record",
                memory.bytes.len()
            )),
            None => Ok(()),
        }
    }
}

/// The code of a call: the lower half of the register.
fn low(register: u64) -> i32 {
    let [a, b, c, d, ..] = register.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// The words of a call, and the memory that they point to.
struct Prepared {
    words: Vec<u64>,
    number: f64,
    structures: Vec<(usize, Vec<u64>)>,
    _texts: Vec<CString>,
}

impl Prepared {
    fn of(call: &Call, addresses: &mut AddressMap) -> Result<Self, String> {
        // First the room for all that the call may reach: memory that has to become larger is made anew, and is empty then.
        addresses.reserve(call.arguments.iter().filter_map(|argument| match argument.value {
            ArgumentValue::Address(there) => Some((there, length(call))),
            _ => None,
        }))?;
        for memory in &call.reads {
            let here = addresses.address(memory.address, memory.bytes.len() as u64)?;
            write(here, &memory.bytes);
        }
        let mut prepared =
            Self { words: Vec::new(), number: 0.0, structures: Vec::new(), _texts: Vec::new() };
        for argument in &call.arguments {
            let word = match &argument.value {
                ArgumentValue::Word(word) => addresses.word(*word),
                ArgumentValue::Address(there) => addresses.address(*there, length(call))?,
                ArgumentValue::Text(None) | ArgumentValue::Foreign | ArgumentValue::Function(0) => {
                    0
                }
                ArgumentValue::Text(Some(text)) => {
                    let text = CString::new(text.clone())
                        .map_err(|_| "a text has a zero within".to_owned())?;
                    let at = text.as_ptr().expose_provenance() as u64;
                    prepared._texts.push(text);
                    at
                }
                ArgumentValue::Function(_) => nothing as *const () as u64,
                ArgumentValue::Double(bits) => {
                    prepared.number = f64::from_bits(*bits);
                    continue;
                }
                ArgumentValue::In(memory)
                | ArgumentValue::Out(memory, _)
                | ArgumentValue::OutAddress(memory, _)
                    if memory.address == 0 =>
                {
                    0
                }
                ArgumentValue::In(memory)
                | ArgumentValue::Out(memory, _)
                | ArgumentValue::OutAddress(memory, _) => {
                    let index = prepared.words.len();
                    prepared.structure(index, &addresses.translated(&memory.bytes))
                }
            };
            prepared.words.push(word);
        }
        Ok(prepared)
    }

    /// A structure with room after it, aligned to eight bytes.
    fn structure(&mut self, index: usize, bytes: &[u8]) -> u64 {
        let mut held = vec![0_u64; bytes.len().div_ceil(8) + ROOM];
        for (word, chunk) in held.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_ne_bytes(whole);
        }
        let at = held.as_mut_ptr().expose_provenance() as u64;
        self.structures.push((index, held));
        at
    }

    /// Handles and addresses that the call gave.
    fn take_results(&mut self, call: &Call, addresses: &mut AddressMap) {
        let arguments: Vec<&ArgumentValue> = call
            .arguments
            .iter()
            .map(|argument| &argument.value)
            .filter(|value| !matches!(value, ArgumentValue::Double(_)))
            .collect();
        for (index, _) in &self.structures {
            let (after, bytes) = match arguments.get(*index) {
                Some(ArgumentValue::Out(_, after)) => (after, 1),
                Some(ArgumentValue::OutAddress(_, after)) => (after, length(call)),
                _ => continue,
            };
            let Ok(there) = <[u8; 8]>::try_from(after.as_slice()) else { continue };
            let there = u64::from_ne_bytes(there);
            let is_address = matches!(arguments.get(*index), Some(ArgumentValue::OutAddress(..)));
            if is_address || there >> 48 != 0 {
                let here = read(self.words[*index], 8);
                addresses.put(
                    there,
                    bytes,
                    u64::from_ne_bytes(here.try_into().unwrap_or_default()),
                );
            }
        }
    }
}

/// The bytes that a call accesses at an address.
fn length(call: &Call) -> u64 {
    let word = |name: &str| {
        let found = call.arguments.iter().find(|argument| argument.name == name);
        match found.map(|argument| &argument.value) {
            Some(ArgumentValue::Word(word)) => *word,
            _ => 0,
        }
    };
    let pitch = word("to_pitch").max(word("from_pitch"));
    let rows = pitch.saturating_mul(word("height"));
    [word("bytes"), word("room"), word("count"), rows, SOME_BYTES]
        .into_iter()
        .max()
        .unwrap_or(SOME_BYTES)
}

fn write(here: u64, bytes: &[u8]) {
    let pointer = std::ptr::with_exposed_provenance_mut::<u8>(usize::try_from(here).unwrap_or(0));
    // SAFETY: `AddressMap::address` has given as many bytes, of memory of this run that lives on.
    unsafe { pointer.copy_from(bytes.as_ptr(), bytes.len()) };
}

fn read(here: u64, bytes: usize) -> Vec<u8> {
    let pointer = std::ptr::with_exposed_provenance::<u8>(usize::try_from(here).unwrap_or(0));
    let mut held = vec![0; bytes];
    // SAFETY: a call has just written as many bytes there, or memory of this run has them.
    unsafe { pointer.copy_to(held.as_mut_ptr(), bytes) };
    held
}

#[cfg(test)]
mod tests {
    use pto_acl_interface::{ArgumentValue, Call, Memory, NamedArgument};

    use super::super::addresses::AddressMap;
    use super::{Prepared, check, read};

    #[test]
    fn what_a_record_has_left_out_is_not_replayed() {
        let read = |left_out| Memory { address: 0x7F00, bytes: vec![7; 64], left_out };
        let with = |reads, arguments| Call {
            begin: 0,
            end: 1,
            thread: 1,
            function: "aclrtMemcpy".to_owned(),
            result: 0,
            arguments,
            reads,
            writes: Vec::new(),
        };
        assert_eq!(check(&with(vec![read(0)], Vec::new())), Ok(()));
        let in_argument =
            NamedArgument { name: "from".to_owned(), value: ArgumentValue::In(read(36)) };
        for call in [with(vec![read(36)], Vec::new()), with(Vec::new(), vec![in_argument])] {
            let why = check(&call).expect_err("it lacks bytes");
            let sentence = "left out 36 bytes of the memory at 0x7f00 and holds 64; record again with PTO_ACL_RECORD_BYTES=100";
            assert!(why.contains(sentence), "{why}");
        }
    }

    #[test]
    fn a_call_reads_its_bytes_at_its_argument() {
        copies(0x7F00_1234_5110, 0x7F00_1234_5150);
        copies(0x7F00_1234_5150, 0x7F00_1234_5110);
    }

    fn copies(from: u64, to: u64) {
        let argument = |name: &str, value| NamedArgument { name: name.to_owned(), value };
        let call = Call {
            begin: 0,
            end: 1,
            thread: 1,
            function: "aclrtMemcpy".to_owned(),
            result: 0,
            arguments: vec![
                argument("to", ArgumentValue::Address(to)),
                argument("room", ArgumentValue::Word(64)),
                argument("from", ArgumentValue::Address(from)),
                argument("bytes", ArgumentValue::Word(64)),
            ],
            reads: vec![Memory { address: from, bytes: vec![7; 64], left_out: 0 }],
            writes: Vec::new(),
        };
        let mut addresses = AddressMap::default();
        let prepared = Prepared::of(&call, &mut addresses).expect("memory");
        assert_eq!(read(prepared.words[2], 64), [7; 64]);
        // Pieces that were neighbours are neighbours.
        assert_eq!(prepared.words[0].wrapping_sub(prepared.words[2]), to.wrapping_sub(from));
    }
}
