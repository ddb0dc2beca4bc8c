//! Writes a record of the calls, which `pto compat cann replay` makes again: `PTO_ACL_RECORD` names its file, and `%p` in it is replaced by the number of
//! the process. `pto_acl_interface` defines the lines, and `notes` the form of each argument.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};

use pto_acl_interface::{ArgumentValue, Call, HEADER, Memory, NamedArgument};

use super::notes::{Note, count, look, memory, value};
use super::thread;

const VARIABLE: &str = "PTO_ACL_RECORD";
/// A structure of two words that names an array has at most this many elements, of this many bytes.
const MOST_NESTED: u64 = 64;
const NESTED_BYTES: usize = 64;
/// What the attributes of a range point to.
const OPERATOR_BYTES: u64 = 48;

/// A call that has begun.
pub(crate) struct Begun {
    call: Call,
    notes: Vec<(&'static str, Note)>,
}

/// The file, and what the record has to know.
struct Record {
    file: Option<File>,
    moment: u64,
    /// Memory of devices: its start, and its bytes.
    blocks: BTreeMap<usize, usize>,
}

fn record() -> Option<&'static Mutex<Record>> {
    static RECORD: OnceLock<Option<Mutex<Record>>> = OnceLock::new();
    RECORD
        .get_or_init(|| {
            let name = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty())?;
            let name = name.replace("%p", &std::process::id().to_string());
            let made = File::create(&name).and_then(|mut file| {
                writeln!(file, "{HEADER}")?;
                Ok(file)
            });
            match made {
                Ok(file) => {
                    let file = Some(file);
                    Some(Mutex::new(Record { file, moment: 0, blocks: BTreeMap::new() }))
                }
                Err(error) => {
                    eprintln!(
                        "pto cann: there is no record of calls: {name} cannot be written: {error}"
                    );
                    None
                }
            }
        })
        .as_ref()
}

/// Whether calls are recorded.
pub(crate) fn are_recorded() -> bool {
    record().is_some()
}

/// A call begins. `None` if calls are not recorded.
#[cold]
pub(crate) fn begin(function: &str, notes: &[(&'static str, Note)]) -> Option<Box<Begun>> {
    let mut record = record()?.lock().unwrap_or_else(PoisonError::into_inner);
    record.file.as_ref()?;
    let count = count(notes);
    let arguments = notes
        .iter()
        .map(|(name, note)| NamedArgument { name: (*name).to_owned(), value: value(*note, count) });
    let mut call = Call {
        begin: record.next(),
        end: 0,
        thread: thread::number(),
        function: function.to_owned(),
        result: 0,
        arguments: arguments.collect(),
        reads: Vec::new(),
        writes: Vec::new(),
    };
    call.reads = record.reads(&call, notes);
    Some(Box::new(Begun { call, notes: notes.to_vec() }))
}

/// A call is over, with this result.
pub(crate) fn end(begun: Option<Box<Begun>>, result: u64) {
    if let Some(begun) = begun {
        finish(*begun, result);
    }
}

#[cold]
fn finish(begun: Begun, result: u64) {
    let Begun { mut call, notes } = begun;
    let Some(record) = record() else { return };
    let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
    call.result = result;
    for argument in &mut call.arguments {
        if let ArgumentValue::Out(before, after) | ArgumentValue::OutAddress(before, after) =
            &mut argument.value
        {
            *after = look(before.address, before.bytes.len());
        }
    }
    call.end = record.next();
    record.allocated(&call);
    call.writes = record.writes(&call, &notes);
    let mut line = String::new();
    // Text in memory can be written.
    let _ = writeln!(line, "{call}");
    let written = record.file.as_mut().map_or(Ok(()), |file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        eprintln!("pto cann: the record of calls ends before {}: {error}", call.function);
        record.file = None;
    }
}

impl Record {
    fn next(&mut self) -> u64 {
        self.moment += 1;
        self.moment - 1
    }

    fn is_of_device(&self, at: u64) -> bool {
        let at = usize::try_from(at).unwrap_or(0);
        let below = self.blocks.range(..=at).next_back();
        below.is_some_and(|(start, bytes)| at - start < *bytes)
    }

    /// Keeps where memory of devices is.
    fn allocated(&mut self, call: &Call) {
        let name = call.function.as_str();
        let is_device = name.starts_with("aclrtMalloc") && !name.contains("Host")
            || name == "aclrtReserveMemAddress";
        if call.result != 0 || !is_device {
            return;
        }
        let address = call.arguments.iter().find_map(|argument| match &argument.value {
            ArgumentValue::OutAddress(_, after) => {
                Some(usize::from_ne_bytes(after.as_slice().try_into().ok()?))
            }
            _ => None,
        });
        if let Some(address) = address {
            self.blocks.insert(address, usize::try_from(word(call, "bytes")).unwrap_or(0));
        }
    }

    /// Memory of the host that a call reads through its arguments.
    fn reads(&self, call: &Call, notes: &[(&'static str, Note)]) -> Vec<Memory> {
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        for (name, note) in notes {
            if let (&"from", Note::Address(at)) = (name, note) {
                pieces.push((*at as u64, copied(call, "from_pitch")));
            }
        }
        let list = |wanted: &str| {
            let found = call.arguments.iter().find(|argument| argument.name == wanted);
            match found.map(|argument| &argument.value) {
                Some(ArgumentValue::In(memory)) => numbers(&memory.bytes),
                _ => Vec::new(),
            }
        };
        if call.function.starts_with("aclrtMemcpyBatch") {
            pieces.extend(list("from").into_iter().zip(list("sizes")));
        }
        if call.function == "aclprofRangePushEx"
            && let Some(&[_, operator]) = list("attributes").first_chunk()
        {
            pieces.push((operator, OPERATOR_BYTES));
        }
        for argument in &call.arguments {
            // A structure of an array and its length.
            if let ArgumentValue::In(memory) = &argument.value
                && let [array, count @ 1..=MOST_NESTED] = numbers(&memory.bytes)[..]
                && memory.bytes.len() == 16
                && array != 0
            {
                pieces.push((array, count * NESTED_BYTES as u64));
            }
        }
        self.pieces(pieces)
    }

    /// Memory of the host that a call has written when it returns.
    fn writes(&self, call: &Call, notes: &[(&'static str, Note)]) -> Vec<Memory> {
        if call.result != 0 || !matches!(&*call.function, "aclrtMemcpy") {
            return Vec::new();
        }
        let to = notes.iter().find_map(|(name, note)| match note {
            Note::Address(at) if *name == "to" => Some(*at as u64),
            _ => None,
        });
        self.pieces(to.map(|to| (to, copied(call, "to_pitch"))))
    }

    fn pieces(&self, pieces: impl IntoIterator<Item = (u64, u64)>) -> Vec<Memory> {
        let held = pieces.into_iter().filter(|(at, bytes)| *bytes > 0 && !self.is_of_device(*at));
        held.map(|(address, bytes)| memory(address, bytes)).collect()
    }
}

/// The bytes from the first to the last that a copy reaches.
fn copied(call: &Call, pitch: &str) -> u64 {
    match (word(call, "height"), word(call, pitch)) {
        (0, _) => word(call, "bytes"),
        (rows, pitch) => (rows - 1).saturating_mul(pitch).saturating_add(word(call, "width")),
    }
}

fn word(call: &Call, name: &str) -> u64 {
    let found = call.arguments.iter().find(|argument| argument.name == name);
    match found.map(|argument| &argument.value) {
        Some(ArgumentValue::Word(word)) => *word,
        _ => 0,
    }
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks_exact(8)
        .map(|chunk| u64::from_ne_bytes(chunk.try_into().unwrap_or_default()))
        .collect()
}
