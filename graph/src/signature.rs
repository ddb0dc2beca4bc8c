//! What a kernel expects of a call, and the one check of calls.
//!
//! ```text
//! words of a task, allocations of a device --.
//! views of a graph file, its tensors --------+--> Arguments --> Signature::check --> Defect, which tells itself
//! arguments of a program file, its tensors --'
//! ```
//! Each interface has calls in a form of its own. [`Arguments`] is what the check has to know of such a form.

use core::fmt;

use pto_abi::block::BlockContext;
use pto_abi::kinds::CoreKind;
use pto_abi::numbers::Counted;

/// What a kernel does to a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads it.
    In,
    /// Overwrites it.
    Out,
    /// Reads and writes it.
    InOut,
}

/// Which elements of a tensor a call touches; elements are `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extents {
    /// A vector of this many elements.
    Vector(u64),
    /// So many rows and columns, and the distance between two rows.
    Matrix([u64; 3]),
}

impl Extents {
    /// Bytes of an element.
    pub const ELEMENT: u64 = 4;

    /// Rows, columns and the distance between rows: a vector is one row.
    #[must_use]
    pub const fn matrix(self) -> [u64; 3] {
        match self {
            Self::Vector(n) => [1, n, n],
            Self::Matrix(extents) => extents,
        }
    }

    /// Bytes from the first element to the end of the last one; `None`: the number exceeds 64 bits.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        let [rows, cols, distance] = self.matrix();
        if rows == 0 || cols == 0 {
            return Some(0);
        }
        (rows - 1).checked_mul(distance)?.checked_add(cols)?.checked_mul(Self::ELEMENT)
    }
}

/// What a call reaches of elements that are no `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements {
    /// The largest number of bytes that the call reaches, from the address on.
    pub bytes: u64,
    /// Bytes of an element: it begins at a multiple of them.
    pub element: u64,
}

/// What a call does to one of its tensors. Without extents and without elements, the extent that the kernel reaches is in memory, which
/// only the kernel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Whether it reads or writes the tensor.
    pub access: Access,
    /// Which elements it touches, where these are `f32`.
    pub extents: Option<Extents>,
    /// How far it reaches, where they are something else.
    pub elements: Option<Elements>,
}

impl Footprint {
    /// Bytes that have to be there, from the address on; `None`: more than 64 bits count.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        match (self.extents, self.elements) {
            (Some(extents), _) => extents.bytes(),
            (None, Some(elements)) => Some(elements.bytes),
            (None, None) => Some(1),
        }
    }

    /// Whether the extent that the kernel reaches is in memory.
    #[must_use]
    pub const fn follows_memory(&self) -> bool {
        self.extents.is_none() && self.elements.is_none()
    }

    /// The address is a multiple of these bytes.
    fn alignment(&self) -> u64 {
        let of_elements = self.elements.map_or(1, |elements| elements.element.max(1));
        self.extents.map_or(of_elements, |_| Extents::ELEMENT)
    }

    /// Rows or columns that cost a kernel time, and no memory; `None`: too few to matter, or each has memory of its own.
    fn weightless(&self) -> Option<u64> {
        let [rows, cols, distance] = self.extents?.matrix();
        let count = match (rows, cols, distance) {
            (0, cols, _) => cols,
            (rows, 0, _) | (rows, _, 0) => rows,
            _ => 0,
        };
        (count > MOST_WEIGHTLESS).then_some(count)
    }
}

/// Rows that are the same row, or rows and columns without elements: so many are let through. A kernel would go through 2^64 of them for centuries.
const MOST_WEIGHTLESS: u64 = 1 << 20;

/// What a call with these words, in this many blocks, does to the tensor of argument `at`; `None`: that is no tensor, or words are missing.
pub type FootprintFn = fn(words: &[u64], blocks: u32, at: usize) -> Option<Footprint>;

/// What a kernel expects of a call.
#[derive(Clone, Copy, Debug)]
pub struct Signature<'k> {
    /// The name of the kernel.
    pub name: &'k str,
    /// The cores that it runs on.
    pub kind: CoreKind,
    /// The names of its arguments, in order; `None`: only its author knows them.
    pub args: Option<&'k [&'k str]>,
    /// Whether more arguments may follow these.
    pub takes_more: bool,
    /// What it does to its tensors; `None`: only its author knows it.
    pub footprint: Option<FootprintFn>,
}

/// The argument that is given where a kernel wants an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentMemory {
    /// Nothing that a kernel may touch.
    Nowhere,
    /// This byte of memory that has so many bytes.
    Memory {
        /// The byte.
        offset: u64,
        /// How many bytes the memory has.
        bytes: u64,
    },
}

/// The arguments of a call, in the form of some interface.
pub trait Arguments {
    /// The arguments as words. The words of a view are not examined.
    fn words(&self) -> &[u64];

    /// In how many blocks the call runs.
    fn blocks(&self) -> u32 {
        1
    }

    /// What argument `at` is the address of.
    fn memory_of(&self, at: usize) -> ArgumentMemory;

    /// Whether argument `at` is a view, and no word.
    fn is_view(&self, at: usize) -> bool {
        let _ = at;
        false
    }

    /// Whether the kernel's sizes are known: those that a replay binds are not.
    fn has_sizes(&self) -> bool {
        true
    }

    /// Whether the numbers in memory that bound a kernel's accesses are trusted: the authors of the program vouch for them.
    fn is_vouched_for(&self) -> bool {
        false
    }

    /// Writes why argument `at` is no address, and what to give; the text continues "is an address, and ".
    ///
    /// # Errors
    /// Those of `to`.
    fn describe_nowhere(&self, at: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Writes the name of the memory that argument `at` is an address of.
    ///
    /// # Errors
    /// Those of `to`.
    fn describe_memory(&self, at: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// Why a kernel does not take a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The kernel runs on cores of another kind.
    Kind(CoreKind),
    /// It takes another number of arguments.
    Count(usize),
    /// This argument is an address, and what is given is none.
    Nowhere(usize),
    /// This argument is a number, and what is given is a view.
    View(usize),
    /// This argument reaches to this byte; `None`: beyond 64 bits.
    Reach(usize, Option<u64>),
    /// This argument begins at this byte, which is none where an element of this many bytes begins.
    Misaligned(usize, u64, u64),
    /// This argument has so many rows or columns that take no memory.
    Weightless(usize, u64),
    /// The extent that the kernel reaches from this argument is in memory.
    InMemory(usize),
}

impl<'k> Signature<'k> {
    /// A kernel of which only its author knows what it does to its tensors; `args` are the names of its arguments, if they are known.
    #[must_use]
    pub const fn own(name: &'k str, kind: CoreKind, args: Option<&'k [&'k str]>) -> Self {
        Self { name, kind, args, takes_more: false, footprint: None }
    }

    /// Whether a task with this many arguments, for cores of this kind, can run the kernel.
    ///
    /// # Errors
    /// `Kind`, `Count`.
    pub fn check_form(&self, kind: CoreKind, count: usize) -> Result<(), Defect> {
        if self.kind != kind {
            return Err(Defect::Kind(kind));
        }
        let fits = self.args.is_none_or(|args| {
            let needed = args.len();
            if self.takes_more { needed <= count } else { needed == count }
        });
        if fits { Ok(()) } else { Err(Defect::Count(count)) }
    }

    /// Whether the kernel takes a call: its cores, its arguments, and what it does to them. The context of a block may follow the
    /// arguments.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, kind: CoreKind, call: &impl Arguments) -> Result<(), Defect> {
        let (words, blocks) = match (self.args, call.words().split_last()) {
            (Some(args), Some((last, words))) if words.len() == args.len() => {
                let context = BlockContext::of(*last);
                let is_context = context.blocks > 1 && context.block < context.blocks;
                if is_context { (words, context.blocks) } else { (call.words(), call.blocks()) }
            }
            _ => (call.words(), call.blocks()),
        };
        self.check_form(kind, words.len())?;
        let (Some(args), Some(footprint)) = (self.args, self.footprint) else { return Ok(()) };
        for at in 0..args.len() {
            match footprint(words, blocks, at) {
                Some(footprint) => {
                    check_memory(&footprint, at, call)?;
                    if footprint.follows_memory() && !call.is_vouched_for() {
                        return Err(Defect::InMemory(at));
                    }
                }
                None if call.is_view(at) => return Err(Defect::View(at)),
                None => {}
            }
        }
        Ok(())
    }
}

fn check_memory(footprint: &Footprint, at: usize, call: &impl Arguments) -> Result<(), Defect> {
    if let Some(count) = footprint.weightless().filter(|_| call.has_sizes()) {
        return Err(Defect::Weightless(at, count));
    }
    let needed = footprint.bytes().filter(|_| call.has_sizes());
    if needed == Some(0) {
        return Ok(());
    }
    let ArgumentMemory::Memory { offset, bytes } = call.memory_of(at) else {
        return Err(Defect::Nowhere(at));
    };
    if !call.has_sizes() {
        return Ok(());
    }
    let end = needed.and_then(|needed| offset.checked_add(needed));
    if end.is_none_or(|end| end > bytes) {
        return Err(Defect::Reach(at, end));
    }
    let alignment = footprint.alignment();
    if offset.is_multiple_of(alignment) {
        Ok(())
    } else {
        Err(Defect::Misaligned(at, offset, alignment))
    }
}

impl Defect {
    /// The defect as a text that follows the name of the task.
    #[must_use]
    pub const fn describe<'d>(
        self,
        kernel: &'d Signature<'d>,
        call: &'d dyn Arguments,
    ) -> impl fmt::Display + 'd {
        Telling { defect: self, kernel, call: Some(call) }
    }

    /// As [`Defect::describe`], of a defect that [`Signature::check_form`] found.
    #[must_use]
    pub const fn describe_form<'d>(self, kernel: &'d Signature<'d>) -> impl fmt::Display + 'd {
        Telling { defect: self, kernel, call: None }
    }
}

/// A defect and what it is a defect of.
struct Telling<'d> {
    defect: Defect,
    kernel: &'d Signature<'d>,
    call: Option<&'d dyn Arguments>,
}

impl fmt::Display for Telling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Signature { name, kind, args, takes_more, .. } = *self.kernel;
        let args = args.unwrap_or(&[]);
        let argument = |f: &mut fmt::Formatter<'_>, at: usize| {
            write!(f, "{name}: argument {at}, {}, ", args.get(at).copied().unwrap_or("unnamed"))
        };
        let memory = |f: &mut fmt::Formatter<'_>, at: usize| match self.call {
            Some(call) => call.describe_memory(at, f),
            None => f.write_str("its memory"),
        };
        match self.defect {
            Defect::Kind(found) => write!(
                f,
                "{name} runs on {kind} cores, and the task is for {found}; change the kind, or the kernel"
            ),
            Defect::Count(found) if args.is_empty() => {
                write!(f, "{name} takes no arguments, and the task has {found}; leave them out")
            }
            Defect::Count(found) => {
                let at_least = if takes_more { "at least " } else { "" };
                write!(f, "{name} takes {at_least}{} (", Counted(args.len() as u64, "argument"))?;
                for (at, arg) in args.iter().enumerate() {
                    write!(f, "{}{arg}", if at > 0 { ", " } else { "" })?;
                }
                write!(f, "), and the task has {found}; give exactly these")
            }
            Defect::Nowhere(at) => {
                argument(f, at)?;
                f.write_str("is an address, and ")?;
                self.call.map_or(Ok(()), |call| call.describe_nowhere(at, f))
            }
            Defect::View(at) => {
                argument(f, at)?;
                f.write_str("is a number, and a tensor is given; give the number")
            }
            Defect::Reach(at, end) => {
                argument(f, at)?;
                match end {
                    Some(end) => write!(f, "reaches to byte {end} of ")?,
                    None => f.write_str("reaches to byte more than 2^64 of ")?,
                }
                memory(f, at)?;
                let bytes = match self.call.map(|call| call.memory_of(at)) {
                    Some(ArgumentMemory::Memory { bytes, .. }) => bytes,
                    _ => 0,
                };
                write!(f, ", which has {bytes}; check the sizes that the task gives")
            }
            Defect::Misaligned(at, offset, alignment) => {
                argument(f, at)?;
                write!(f, "begins at byte {offset} of ")?;
                memory(f, at)?;
                write!(f, "; begin at a multiple of {alignment}, where an element begins")
            }
            Defect::Weightless(at, count) => {
                argument(f, at)?;
                write!(
                    f,
                    "has {count} rows or columns that take no memory; give at most {MOST_WEIGHTLESS}"
                )
            }
            Defect::InMemory(at) => {
                argument(f, at)?;
                f.write_str(
                    "is used as far as numbers in memory say, and nobody checks those; submit the kernel from a builder program, which vouches for them",
                )
            }
        }
    }
}
