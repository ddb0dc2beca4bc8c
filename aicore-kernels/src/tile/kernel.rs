//! A kernel that was accepted: what holding a [`Kernel`] proves.
//!
//! - Each instruction is typed, and reads only values that an instruction before it defines.
//! - Each value has a slot in the frame that no other live value shares.
//! - The numbers of parameters, instructions and elements are within [`limits`].

use bytemuck::Pod;
use heapless::Vec;

use super::bytes::{self, Header, OpBytes, ParamBytes};
use super::frame;
#[cfg(target_arch = "x86_64")]
use super::in_place;
use super::infer::{Mistake, infer};
use super::op::{Op, TileType};
use super::param::{Name, Param};
use super::step::{FrameSlot, FrameValue, Step, limits};

/// Why bytes are no kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// They are shorter than the header, or than the header says, or longer.
    Length {
        /// What the header says, or what a header needs.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// They do not begin with the mark of a kernel.
    Magic(u32),
    /// They are of another version.
    Version(u16),
    /// The name is none.
    KernelName,
    /// There are too many parameters.
    Params(usize),
    /// There are too many instructions, or none.
    Ops(usize),
    /// The parameter with this number is none.
    Param(usize),
    /// Two parameters have the same name; the later one has this number.
    ParamTwice(usize),
    /// The instruction with this number is none.
    Op(usize),
    /// The instruction with this number is wrong.
    Wrong(usize, Mistake),
    /// The value that the instruction with this number defines has too many elements.
    Elements(usize, usize),
    /// All tiles together are too large for a frame.
    Frame(usize),
}

impl core::fmt::Display for Rejected {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Length { needed, found } => {
                write!(f, "A kernel of {needed} bytes was announced, and there are {found} bytes.")
            }
            Self::Magic(magic) => write!(f, "The bytes begin with {magic:#010x}: no tile kernel."),
            Self::Version(version) => {
                let ours = bytes::VERSION;
                write!(
                    f,
                    "The kernel has version {version}, and this reader knows version {ours}. Encode it again."
                )
            }
            Self::KernelName => f.write_str("The kernel has no proper name."),
            Self::Params(count) => {
                write!(f, "The kernel has {count} parameters. The limit is {}.", limits::PARAMS)
            }
            Self::Ops(count) => {
                write!(f, "The kernel has {count} instructions. It needs 1 to {}.", limits::OPS)
            }
            Self::Param(number) => write!(f, "The bytes of parameter {number} are not valid."),
            Self::ParamTwice(number) => {
                write!(f, "Parameter {number} has the name of another one. Rename it.")
            }
            Self::Op(number) => write!(f, "The bytes of instruction {number} are not valid."),
            Self::Wrong(number, mistake) => write!(f, "Instruction {number} is wrong. {mistake}"),
            Self::Elements(number, count) => {
                let limit = limits::ELEMENTS;
                write!(
                    f,
                    "Instruction {number} gives a tile of {count} elements. The limit is {limit}. Use smaller tiles."
                )
            }
            Self::Frame(words) => {
                let limit = limits::FRAME_WORDS;
                write!(
                    f,
                    "The tiles of the kernel take {words} words. The limit is {limit}. Use smaller tiles."
                )
            }
        }
    }
}

impl core::error::Error for Rejected {}

/// An accepted kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    name: Name,
    params: Vec<Param, { limits::PARAMS }>,
    steps: Vec<Step, { limits::OPS }>,
    values: Vec<FrameValue, { limits::OPS }>,
    frame_words: usize,
    work_words: usize,
}

impl Kernel {
    /// Accepts the byte form: checks every field.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn accept(bytes: &[u8]) -> Result<Self, Rejected> {
        let header = read_header(bytes)?;
        let (params, ops) = (usize::from(header.params), usize::from(header.ops));
        let name = bytes::read_name(&header.name, header.name_bytes).ok_or(Rejected::KernelName)?;
        let mut rest = bytes.get(size_of::<Header>()..).unwrap_or(&[]);
        let mut kernel = Self::empty(name);
        for number in 0..params {
            let found: ParamBytes = take(&mut rest).ok_or(Rejected::Param(number))?;
            let param = bytes::read_param(&found).ok_or(Rejected::Param(number))?;
            kernel.push_param(param)?;
        }
        for number in 0..ops {
            let found: OpBytes = take(&mut rest).ok_or(Rejected::Op(number))?;
            kernel.push_op(bytes::read_op(&found).ok_or(Rejected::Op(number))?)?;
        }
        kernel.finish()
    }

    /// Checks a kernel that is there as instructions.
    ///
    /// # Errors
    /// As [`Self::accept`].
    pub fn check(name: Name, params: &[Param], ops: &[Op]) -> Result<Self, Rejected> {
        let mut kernel = Self::empty(name);
        for param in params {
            kernel.push_param(*param)?;
        }
        for op in ops {
            kernel.push_op(*op)?;
        }
        kernel.finish()
    }

    fn empty(name: Name) -> Self {
        let (params, steps, values) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, params, steps, values, frame_words: 0, work_words: 0 }
    }

    fn push_param(&mut self, param: Param) -> Result<(), Rejected> {
        let number = self.params.len();
        if self.params.iter().any(|other| other.name == param.name) {
            return Err(Rejected::ParamTwice(number));
        }
        let elements = param.tensor().map_or(0, |(_, tile)| tile.elements());
        if elements == 0 && param.tensor().is_some() {
            return Err(Rejected::Param(number));
        }
        self.params.push(param).map_err(|_| Rejected::Params(number + 1))
    }

    fn push_op(&mut self, op: Op) -> Result<(), Rejected> {
        let number = self.steps.len();
        let mut types: Vec<TileType, { limits::OPS }> = Vec::new();
        for value in &self.values {
            // There is room for as many as there are values. `extend` would hold a panic.
            let _ = types.push(value.tile);
        }
        let wrong = |mistake| Rejected::Wrong(number, mistake);
        let given = infer(&op, &types, &self.params).map_err(wrong)?;
        let mut result = None;
        if let Some(tile) = given {
            if tile.elements() > limits::ELEMENTS {
                return Err(Rejected::Elements(number, tile.elements()));
            }
            result = u16::try_from(self.values.len()).ok();
            let value = FrameValue {
                tile,
                slot: FrameSlot::default(),
                #[cfg(target_arch = "x86_64")]
                source: None,
            };
            self.values.push(value).map_err(|_| Rejected::Ops(number + 1))?;
        }
        self.steps.push(Step { op, result }).map_err(|_| Rejected::Ops(number + 1))
    }

    fn finish(mut self) -> Result<Self, Rejected> {
        if self.steps.is_empty() {
            return Err(Rejected::Ops(0));
        }
        self.frame_words = frame::allocate(&self.steps, &mut self.values);
        self.work_words = frame::work_words(&self.steps, &self.values);
        #[cfg(target_arch = "x86_64")]
        in_place::mark(&self.steps, &mut self.values);
        let words = self.scratch_words();
        if words > limits::FRAME_WORDS { Err(Rejected::Frame(words)) } else { Ok(self) }
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// The parameters.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The instructions.
    pub fn ops(&self) -> impl ExactSizeIterator<Item = &Op> {
        self.steps.iter().map(|step| &step.op)
    }

    /// The types of the values, in their order.
    pub fn types(&self) -> impl ExactSizeIterator<Item = TileType> {
        self.values.iter().map(|value| value.tile)
    }

    /// The 64-bit words that [`Interpreter::run`](super::Interpreter::run) needs for this kernel.
    #[must_use]
    pub const fn scratch_words(&self) -> usize {
        self.frame_words + self.work_words
    }

    pub(super) const fn frame_words(&self) -> usize {
        self.frame_words
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn values(&self) -> &[FrameValue] {
        &self.values
    }
}

fn read_header(bytes: &[u8]) -> Result<Header, Rejected> {
    let found = bytes.len();
    let mut rest = bytes;
    let needed = size_of::<Header>();
    let header: Header = take(&mut rest).ok_or(Rejected::Length { needed, found })?;
    if header.magic != bytes::MAGIC {
        return Err(Rejected::Magic(header.magic));
    }
    if header.version != bytes::VERSION {
        return Err(Rejected::Version(header.version));
    }
    let (params, ops) = (usize::from(header.params), usize::from(header.ops));
    if params > limits::PARAMS {
        return Err(Rejected::Params(params));
    }
    if ops == 0 || ops > limits::OPS {
        return Err(Rejected::Ops(ops));
    }
    let needed = bytes::bytes_of(params, ops);
    let announced = usize::try_from(header.total_bytes).unwrap_or(usize::MAX);
    if announced != needed || found != needed {
        return Err(Rejected::Length {
            needed,
            found: if found == needed { announced } else { found },
        });
    }
    Ok(header)
}

/// The next bytes, at any alignment.
fn take<T: Pod>(rest: &mut &[u8]) -> Option<T> {
    let (head, tail) = rest.split_at_checked(size_of::<T>())?;
    *rest = tail;
    bytemuck::try_pod_read_unaligned(head).ok()
}
