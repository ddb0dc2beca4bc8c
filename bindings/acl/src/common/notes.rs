//! Arguments of calls as a record holds them: what each type of an argument is, and the bytes that a pointer points to.
//!
//! What a call reads and writes is looked up by the system, so that a pointer to nothing does not end the process here.

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use pto_acl_interface::{ArgumentValue, Memory};

use super::argument::{Address, In, Out, Text};

/// The largest piece of memory that a line holds; `PTO_ACL_RECORD_BYTES` names another number.
fn most_bytes() -> u64 {
    const USUAL: u64 = 16 << 20;
    static MOST: OnceLock<u64> = OnceLock::new();
    *MOST.get_or_init(|| {
        let asked = std::env::var("PTO_ACL_RECORD_BYTES").ok().filter(|text| !text.is_empty());
        let Some(asked) = asked else { return USUAL };
        asked.parse().unwrap_or_else(|_| {
            eprintln!(
                "pto cann: PTO_ACL_RECORD_BYTES={asked} is no number of bytes; the largest piece of memory in a record has {USUAL}"
            );
            USUAL
        })
    })
}

/// A piece of memory as a line holds it. A program may name any size: of a piece that is too large the line has the beginning, and says
/// how many bytes it leaves out.
pub(super) fn memory(address: u64, bytes: u64) -> Memory {
    const BEGINNING: u64 = 64;
    let held = if bytes > most_bytes() { BEGINNING } else { bytes };
    let left_out = bytes - held.min(bytes);
    Memory { address, bytes: look(address, usize::try_from(held).unwrap_or(0)), left_out }
}

/// What an argument is, before the call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    Word(u64),
    Address(usize),
    Text(usize),
    Function(usize),
    Double(f64),
    /// Its address, and the bytes of an element.
    In(usize, usize),
    Out(usize, usize),
    OutAddress(usize),
    Foreign,
}

/// An argument that can be recorded.
pub(crate) trait Noted {
    /// What it is.
    fn note(&self) -> Note;
}

macro_rules! words {
    ($($type:ty: $word:expr),* $(,)?) => {$(
        impl Noted for $type {
            fn note(&self) -> Note {
                let word: fn($type) -> u64 = $word;
                Note::Word(word(*self))
            }
        }
    )*};
}

// Negative numbers are extended by their sign, as a register has them.
words! {
    i8: |number| i64::from(number).cast_unsigned(),
    i16: |number| i64::from(number).cast_unsigned(),
    i32: |number| i64::from(number).cast_unsigned(),
    i64: |number| number.cast_unsigned(),
    u8: u64::from,
    u16: u64::from,
    u32: u64::from,
    u64: |number| number,
    usize: |number| number as u64,
    bool: u64::from,
}

impl Noted for f64 {
    fn note(&self) -> Note {
        Note::Double(*self)
    }
}

/// The register of a number of single precision has its bits in the low half.
impl Noted for f32 {
    fn note(&self) -> Note {
        Note::Double(f64::from_bits(self.to_bits().into()))
    }
}

impl Noted for Address {
    fn note(&self) -> Note {
        Note::Address(self.number())
    }
}

impl Noted for Text {
    fn note(&self) -> Note {
        Note::Text(self.address())
    }
}

/// A type that a pointer of a program points to.
pub(crate) trait Pointee: Sized {
    /// The pointer, where a call reads it.
    fn read(at: usize) -> Note {
        Note::In(at, size_of::<Self>())
    }

    /// The pointer, where a call writes it.
    fn written(at: usize) -> Note {
        Note::Out(at, size_of::<Self>())
    }
}

/// A pointer to which the call writes an address.
impl Pointee for Address {
    fn written(at: usize) -> Note {
        Note::OutAddress(at)
    }
}

/// Text.
impl Pointee for c_char {
    fn read(at: usize) -> Note {
        Note::Text(at)
    }
}

macro_rules! pointees {
    ($($type:ty),* $(,)?) => {$( impl Pointee for $type {} )*};
}

pointees!(u8, i32, i64, u32, u64, usize, f32, c_void);

impl<T> Pointee for *const T {}

impl<T: Pointee, const N: usize> Pointee for [T; N] {}

impl<T: Pointee> Noted for In<T> {
    fn note(&self) -> Note {
        T::read(self.address())
    }
}

impl<T: Pointee> Noted for Out<T> {
    fn note(&self) -> Note {
        T::written(self.address())
    }
}

impl<T: Pointee> Noted for *const T {
    fn note(&self) -> Note {
        T::read(self.addr())
    }
}

impl<T: Pointee> Noted for *mut T {
    fn note(&self) -> Note {
        T::written(self.addr())
    }
}

impl<T> Noted for Option<extern "C" fn(T)> {
    fn note(&self) -> Note {
        Note::Function(self.map_or(0, |function| function as usize))
    }
}

impl<T, U, V> Noted for Option<extern "C" fn(T, U, V)> {
    fn note(&self) -> Note {
        Note::Function(self.map_or(0, |function| function as usize))
    }
}

/// The result of a function that returns no code.
pub(crate) trait ReturnValue: Copy {
    /// The value in the form of a register.
    fn number(self) -> u64;
}

macro_rules! numbers_given {
    ($($type:ty),*) => {$(
        impl ReturnValue for $type {
            fn number(self) -> u64 {
                match self.note() {
                    Note::Word(word) => word,
                    _ => 0,
                }
            }
        }
    )*};
}

numbers_given!(i32, u32, u64, usize);

impl ReturnValue for Address {
    fn number(self) -> u64 {
        Address::number(self) as u64
    }
}

impl<T> ReturnValue for *const T {
    fn number(self) -> u64 {
        self.expose_provenance() as u64
    }
}

impl<T> ReturnValue for *mut T {
    fn number(self) -> u64 {
        self.expose_provenance() as u64
    }
}

/// What the parameter of a call counts that says how long its arrays are.
#[derive(Clone, Copy)]
pub(super) enum Count {
    Elements(usize),
    Bytes(usize),
}

impl Count {
    /// How long an array of elements of this size is.
    fn bytes(self, element: usize) -> usize {
        // Bytes that may follow a structure that is no array.
        const MOST_AFTER: usize = 4096;
        match self {
            Self::Elements(count) => element.saturating_mul(count.max(1)),
            Self::Bytes(bytes) if element == 1 => bytes.max(1),
            // The bytes are those of something else, such as the memory that a structure describes.
            Self::Bytes(bytes) => element.max(bytes.min(MOST_AFTER)),
        }
    }
}

/// The parameter that counts.
pub(super) fn count(notes: &[(&'static str, Note)]) -> Count {
    let found = notes.iter().find_map(|(name, note)| match (*name, note) {
        ("count", Note::Word(word)) => usize::try_from(*word).ok().map(Count::Elements),
        ("bytes" | "length", Note::Word(word)) => usize::try_from(*word).ok().map(Count::Bytes),
        _ => None,
    });
    found.unwrap_or(Count::Elements(1))
}

pub(super) fn value(note: Note, count: Count) -> ArgumentValue {
    let memory = |at: usize, bytes: usize| memory(at as u64, bytes as u64);
    match note {
        Note::Word(word) => ArgumentValue::Word(word),
        Note::Address(at) => ArgumentValue::Address(at as u64),
        Note::Text(0) => ArgumentValue::Text(None),
        Note::Text(at) => text(at),
        Note::Function(at) => ArgumentValue::Function(at as u64),
        Note::Double(number) => ArgumentValue::Double(number.to_bits()),
        Note::In(at, element) => ArgumentValue::In(memory(at, count.bytes(element))),

        Note::Out(at, bytes) => ArgumentValue::Out(memory(at, bytes), Vec::new()),
        Note::OutAddress(at) => {
            ArgumentValue::OutAddress(memory(at, size_of::<usize>()), Vec::new())
        }
        Note::Foreign => ArgumentValue::Foreign,
    }
}

/// The bytes up to a zero; too many of them are no text.
fn text(at: usize) -> ArgumentValue {
    let mut held = Vec::new();
    loop {
        // A page at most, so that a text at the end of memory is found.
        let more = look((at + held.len()) as u64, 4096 - (at + held.len()) % 4096);
        let end = more.iter().position(|byte| *byte == 0);
        held.extend_from_slice(&more[..end.unwrap_or(more.len())]);
        if end.is_some() || more.is_empty() {
            return ArgumentValue::Text(Some(held));
        }
        if held.len() as u64 > most_bytes() {
            held.truncate(4096);
            return ArgumentValue::In(Memory { address: at as u64, bytes: held, left_out: 1 });
        }
    }
}

/// The bytes there, as far as there is memory.
pub(crate) fn look(at: u64, bytes: usize) -> Vec<u8> {
    let mut held = vec![0_u8; bytes];
    let to = libc::iovec { iov_base: held.as_mut_ptr().cast(), iov_len: held.len() };
    let address = usize::try_from(at).unwrap_or(0);
    let from = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut::<c_void>(address),
        iov_len: held.len(),
    };
    // SAFETY: the call has no preconditions.
    let process = unsafe { libc::getpid() };
    // SAFETY: the buffer is as long as is said; the system checks the other address.
    let read = unsafe { libc::process_vm_readv(process, &raw const to, 1, &raw const from, 1, 0) };
    held.truncate(usize::try_from(read).unwrap_or(0));
    held
}
