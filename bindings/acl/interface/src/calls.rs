//! A record of calls, as `PTO_ACL_RECORD` writes it and `pto compat cann replay` reads it: a line for each call, with tabs between its fields.
//!
//! ```text
//! begin  end  thread  function  result  name=VALUE ..  from@MEMORY ..
//!
//! w1F              a word: a number or a handle        a7F00..         an address
//! t                no text    t=68656C6C6F   text      f55..           a function of the program
//! i7F..:0100..     a structure that the call reads     o7F..:00..:0A.. a result: its bytes before and after the call
//! q7F..:00..:0A..  a result that is an address        d3FF..          a number of type double
//! x                a structure that no replay can pass
//! ..:0100..+F00    of memory: so many bytes more, which the record has left out
//! <7F..:0100..     memory that the call read           >7F..:0100..    memory of the host that the call wrote
//! ```
//! Numbers are hexadecimal; `begin` and `end` count the begins and ends of all calls.

use std::fmt;

/// The first line.
pub const HEADER: &str = "pto-acl-calls 1";

/// Bytes of the process that made the record, at the address that they had there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Where they were.
    pub address: u64,
    /// What they were.
    pub bytes: Vec<u8>,
    /// How many more there were, which the record does not hold.
    pub left_out: u64,
}

/// The value of an argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentValue {
    /// A number or a handle.
    Word(u64),
    /// An address.
    Address(u64),
    /// Text.
    Text(Option<Vec<u8>>),
    /// A function of the program; 0: none.
    Function(u64),
    /// The bits of a number of type `double`.
    Double(u64),
    /// A structure, or an array.
    In(Memory),
    /// Memory for a result, and its bytes after the call.
    Out(Memory, Vec<u8>),
    /// As `Out`, for an address.
    OutAddress(Memory, Vec<u8>),
    /// A structure that is passed by value.
    Foreign,
}

/// A parameter with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedArgument {
    /// The name.
    pub name: String,
    /// The value.
    pub value: ArgumentValue,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// How many calls had begun or ended before it began.
    pub begin: u64,
    /// As `begin`, when it ended.
    pub end: u64,
    /// The thread, as `pthread_self` names it.
    pub thread: u64,
    /// The function.
    pub function: String,
    /// Its code, or what it gave.
    pub result: u64,
    /// The arguments.
    pub arguments: Vec<NamedArgument>,
    /// Memory of the host that it read.
    pub reads: Vec<Memory>,
    /// Memory of the host that it wrote.
    pub writes: Vec<Memory>,
}

/// Why a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The line, from 1 on.
    pub line: usize,
    /// What is wrong there.
    pub why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for Unreadable {}

/// Reads a record. Without its last line it is that of a process that was ended within a call; half a line is refused.
///
/// # Errors
/// [`Unreadable`]: the first line that is not as above.
pub fn read(text: &str) -> Result<Vec<Call>, Unreadable> {
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        let why = format!("this is no record of calls: \"{HEADER}\" is expected");
        return Err(Unreadable { line: 1, why });
    }
    let read =
        |(line, text): (usize, &str)| parse(text).map_err(|why| Unreadable { line: line + 2, why });
    lines.enumerate().map(read).collect()
}

fn parse(line: &str) -> Result<Call, String> {
    let mut fields = line.split('\t');
    let mut field = |what: &str| fields.next().ok_or_else(|| format!("the {what} is missing"));
    let begin = number(field("begin")?)?;
    let end = number(field("end")?)?;
    let thread = number(field("thread")?)?;
    let function = field("function")?.to_owned();
    let result = number(field("result")?)?;
    let mut call = Call {
        begin,
        end,
        thread,
        function,
        result,
        arguments: Vec::new(),
        reads: Vec::new(),
        writes: Vec::new(),
    };
    for field in fields {
        if let Some(rest) = field.strip_prefix('<') {
            call.reads.push(memory(rest)?);
        } else if let Some(rest) = field.strip_prefix('>') {
            call.writes.push(memory(rest)?);
        } else {
            let (name, value) =
                field.split_once('=').ok_or_else(|| format!("\"{field}\" has no name"))?;
            call.arguments
                .push(NamedArgument { name: name.to_owned(), value: parse_value(value)? });
        }
    }
    Ok(call)
}

fn parse_value(text: &str) -> Result<ArgumentValue, String> {
    let kind = text.chars().next().ok_or("a value is empty")?;
    let rest = &text[kind.len_utf8()..];
    Ok(match kind {
        'w' => ArgumentValue::Word(number(rest)?),
        'a' => ArgumentValue::Address(number(rest)?),
        'f' => ArgumentValue::Function(number(rest)?),
        'd' => ArgumentValue::Double(number(rest)?),
        't' => ArgumentValue::Text(rest.strip_prefix('=').map(bytes).transpose()?),
        'i' => ArgumentValue::In(memory(rest)?),
        'o' | 'q' => {
            let (before, after) = rest.rsplit_once(':').ok_or("an output has no result")?;
            let (before, after) = (memory(before)?, bytes(after)?);
            if kind == 'o' {
                ArgumentValue::Out(before, after)
            } else {
                ArgumentValue::OutAddress(before, after)
            }
        }
        'x' => ArgumentValue::Foreign,
        other => return Err(format!("there is no kind '{other}' of values")),
    })
}

fn number(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|_| format!("\"{text}\" is no hexadecimal number"))
}

fn memory(text: &str) -> Result<Memory, String> {
    let (address, held) = text.split_once(':').ok_or("memory has no bytes")?;
    let (held, left_out) = held.split_once('+').unwrap_or((held, "0"));
    Ok(Memory { address: number(address)?, bytes: bytes(held)?, left_out: number(left_out)? })
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    };
    let held: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
    held.ok_or_else(|| "bytes are not pairs of hexadecimal digits".to_owned())
}

/// Bytes as pairs of digits.
struct Hex<'b>(&'b [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let digit = |four: u8| char::from(DIGITS[usize::from(four & 15)]);
        // In pieces: a line may hold megabytes.
        self.0.chunks(1024).try_for_each(|piece| {
            let text: String =
                piece.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect();
            f.write_str(&text)
        })
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}:{}", self.address, Hex(&self.bytes))?;
        if self.left_out > 0 { write!(f, "+{:X}", self.left_out) } else { Ok(()) }
    }
}

impl fmt::Display for ArgumentValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(f, "w{word:X}"),
            Self::Address(address) => write!(f, "a{address:X}"),
            Self::Text(None) => f.write_str("t"),
            Self::Text(Some(text)) => write!(f, "t={}", Hex(text)),
            Self::Function(address) => write!(f, "f{address:X}"),
            Self::Double(bits) => write!(f, "d{bits:X}"),
            Self::In(memory) => write!(f, "i{memory}"),
            Self::Out(before, after) => write!(f, "o{before}:{}", Hex(after)),
            Self::OutAddress(before, after) => write!(f, "q{before}:{}", Hex(after)),
            Self::Foreign => f.write_str("x"),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { begin, end, thread, function, result, .. } = self;
        write!(f, "{begin:X}\t{end:X}\t{thread:X}\t{function}\t{result:X}")?;
        for NamedArgument { name, value } in &self.arguments {
            write!(f, "\t{name}={value}")?;
        }
        self.reads.iter().try_for_each(|memory| write!(f, "\t<{memory}"))?;
        self.writes.iter().try_for_each(|memory| write!(f, "\t>{memory}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{ArgumentValue, Call, HEADER, Memory, NamedArgument, read};

    #[test]
    fn a_call_is_read_as_it_was_written() {
        let memory = |address, bytes: &[u8]| Memory { address, bytes: bytes.to_vec(), left_out: 0 };
        let values = [
            ArgumentValue::Word(0x5A00),
            ArgumentValue::Address(7),
            ArgumentValue::Text(None),
            ArgumentValue::Text(Some(b"a\tb".to_vec())),
            ArgumentValue::Function(0),
            ArgumentValue::Double(1.5_f64.to_bits()),
            ArgumentValue::In(memory(9, &[1, 0xFF])),
            ArgumentValue::Out(memory(9, &[]), vec![3]),
            ArgumentValue::OutAddress(memory(9, &[1]), vec![]),
            ArgumentValue::Foreign,
        ];
        let arguments = values.map(|value| NamedArgument { name: "value".to_owned(), value });
        let call = Call {
            begin: 10,
            end: 11,
            thread: 0x7F00,
            function: "aclrtMalloc".to_owned(),
            result: 0,
            arguments: arguments.to_vec(),
            reads: vec![memory(1, &[2])],
            writes: vec![Memory { left_out: 0x1_0000, ..memory(3, &[4, 5]) }],
        };
        assert_eq!(read(&format!("{HEADER}\n{call}\n")), Ok(vec![call]));
    }

    #[test]
    fn what_is_no_record_is_refused_with_its_line() {
        let cases = [
            ("", "line 1: this is no record"),
            ("0\t1\t2\taclInit", "line 2: the result is missing"),
            ("0\t1\t2\taclInit\tz", "line 2: \"z\" is no hexadecimal number"),
            ("0\t1\t2\taclInit\t0\tpath", "\"path\" has no name"),
            ("0\t1\t2\taclInit\t0\tpath=y1", "no kind 'y'"),
            ("0\t1\t2\taclInit\t0\tpath=t=123", "pairs of hexadecimal digits"),
            ("0\t1\t2\taclInit\t0\tpath=", "a value is empty"),
            ("0\t1\t2\taclInit\t0\t<7F:00+x", "\"x\" is no hexadecimal number"),
        ];
        for (line, why) in cases {
            let text = if line.is_empty() { String::new() } else { format!("{HEADER}\n{line}\n") };
            let said = read(&text).expect_err("no record").to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
