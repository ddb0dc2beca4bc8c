//! The byte form of a kernel: what the host sends, and what is accepted without trust.
//!
//! ```text
//! Header | ParamBytes * params | OpBytes * ops      all little-endian, no padding, every unused field zero
//! ```
//!
//! Version 1. A reader accepts its own version only. [`write()`] and [`read_op`] are inverse to each other.

use bytemuck::{Pod, Zeroable};

use super::dtype::DType;
use super::op::{Binary, Compare, Moves, Op, Reduce, Spread, Unary, ValueId};
use super::param::{Direction, Name, Param, ParamKind};

/// "PTOT" in the order of the bytes.
pub const MAGIC: u32 = u32::from_le_bytes(*b"PTOT");
/// The version of the byte form.
pub const VERSION: u16 = 1;
/// No value.
const NONE: u16 = u16::MAX;

/// The first bytes of a kernel.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u32,
    /// [`VERSION`].
    pub version: u16,
    /// How many parameters.
    pub params: u16,
    /// How many instructions.
    pub ops: u16,
    /// The length of the name.
    pub name_bytes: u16,
    /// All bytes, this header included.
    pub total_bytes: u32,
    /// The name, padded with zeros.
    pub name: [u8; 48],
}

/// A parameter.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct ParamBytes {
    /// 0, 1, 2: a tensor, by direction; 3: a scalar.
    pub kind: u8,
    /// The code of the element type.
    pub dtype: u8,
    /// The length of the name.
    pub name_bytes: u16,
    /// Rows of a tensor's tile.
    pub rows: u16,
    /// Columns of a tensor's tile.
    pub cols: u16,
    /// The name, padded with zeros.
    pub name: [u8; 48],
}

/// An instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct OpBytes {
    /// Which instruction.
    pub opcode: u8,
    /// Which function.
    pub function: u8,
    /// The spread of a pair; the element type of what has one; the moves of a product; the number of a parameter.
    pub detail: u8,
    /// Zero.
    pub zero: u8,
    /// Operands; `NONE` where there is none.
    pub operands: [u16; 3],
    /// Extents, offsets or a count.
    pub extents: [u16; 2],
    /// Zero.
    pub zeros: [u16; 1],
    /// The bits of a constant.
    pub bits: u64,
}

const _: () = assert!(size_of::<Header>() == 64 && size_of::<ParamBytes>() == 56);
const _: () = assert!(size_of::<OpBytes>() == 24);

/// The bytes of a kernel with this many parameters and instructions.
#[must_use]
pub const fn bytes_of(params: usize, ops: usize) -> usize {
    size_of::<Header>() + params * size_of::<ParamBytes>() + ops * size_of::<OpBytes>()
}

impl OpBytes {
    fn new(opcode: u8, operands: [Option<ValueId>; 3]) -> Self {
        let operands = operands.map(|operand| operand.map_or(NONE, |id| id.0));
        Self { opcode, operands, ..Self::default() }
    }
}

/// Writes an instruction.
#[must_use]
pub fn write(op: &Op) -> OpBytes {
    let bytes = |opcode: u8| OpBytes::new(opcode, op.operands());
    match *op {
        Op::Load { param, offset, .. } => OpBytes { detail: param, extents: offset, ..bytes(0) },
        Op::Store { param, offset, .. } => OpBytes { detail: param, extents: offset, ..bytes(1) },
        Op::Scalar { param } => OpBytes { detail: param, ..bytes(2) },
        Op::Constant { dtype, bits } => OpBytes { detail: dtype.code(), bits, ..bytes(3) },
        Op::Zeros { dtype, shape } => OpBytes { detail: dtype.code(), extents: shape, ..bytes(4) },
        Op::Iota { dtype, cols } => {
            OpBytes { detail: dtype.code(), extents: [cols, 0], ..bytes(5) }
        }
        Op::Unary { function, .. } => OpBytes { function: function.code(), ..bytes(6) },
        Op::Binary { function, spread, .. } => {
            OpBytes { function: function.code(), detail: spread.code(), ..bytes(7) }
        }
        Op::Compare { function, spread, .. } => {
            OpBytes { function: function.code(), detail: spread.code(), ..bytes(8) }
        }
        Op::Select { .. } => bytes(9),
        Op::Reduce { function, .. } => OpBytes { function: function.code(), ..bytes(10) },
        Op::Convert { dtype, .. } => OpBytes { detail: dtype.code(), ..bytes(11) },
        Op::Matmul { moves, .. } => OpBytes { detail: moves_code(moves), ..bytes(12) },
        Op::SliceEven { .. } => bytes(13),
        Op::SliceOdd { .. } => bytes(14),
        Op::Interleave { .. } => bytes(15),
        Op::Broadcast { shape, .. } => OpBytes { extents: shape, ..bytes(16) },
        Op::Sort32 { .. } => bytes(17),
        Op::TopK { k, .. } => OpBytes { extents: [k, 0], ..bytes(18) },
        Op::AddCycles { .. } => bytes(19),
    }
}

/// Reads an instruction; `None` if the bytes are none, or not exactly what [`write()`] makes of the instruction.
#[must_use]
pub fn read_op(bytes: &OpBytes) -> Option<Op> {
    let op = decode(bytes)?;
    (write(&op) == *bytes).then_some(op)
}

fn decode(bytes: &OpBytes) -> Option<Op> {
    let OpBytes { function, detail, extents, bits, .. } = *bytes;
    let [a, b, c] = bytes.operands.map(|id| (id != NONE).then_some(ValueId(id)));
    let dtype = DType::from_code(detail);
    Some(match bytes.opcode {
        0 => Op::Load { param: detail, offset: extents, mask: a },
        1 => Op::Store { param: detail, source: a?, offset: extents, mask: b },
        2 => Op::Scalar { param: detail },
        3 => Op::Constant { dtype: dtype?, bits },
        4 => Op::Zeros { dtype: dtype?, shape: extents },
        5 => Op::Iota { dtype: dtype?, cols: extents[0] },
        6 => Op::Unary { function: Unary::from_code(function)?, x: a? },
        7 => {
            let (function, spread) = (Binary::from_code(function)?, Spread::from_code(detail)?);
            Op::Binary { function, a: a?, b: b?, spread }
        }
        8 => {
            let (function, spread) = (Compare::from_code(function)?, Spread::from_code(detail)?);
            Op::Compare { function, a: a?, b: b?, spread }
        }
        9 => Op::Select { mask: a?, a: b?, b: c? },
        10 => Op::Reduce { function: Reduce::from_code(function)?, x: a? },
        11 => Op::Convert { dtype: dtype?, x: a? },
        12 => Op::Matmul { a: a?, b: b?, acc: c, moves: moves_of(detail)? },
        13 => Op::SliceEven { x: a? },
        14 => Op::SliceOdd { x: a? },
        15 => Op::Interleave { a: a?, b: b? },
        16 => Op::Broadcast { x: a?, shape: extents },
        17 => Op::Sort32 { scores: a?, indices: b? },
        18 => Op::TopK { pairs: a?, k: extents[0] },
        19 => Op::AddCycles { x: a? },
        _ => return None,
    })
}

fn moves_code(moves: Moves) -> u8 {
    u8::from(moves.left) | u8::from(moves.right) << 1 | u8::from(moves.result) << 2
}

fn moves_of(code: u8) -> Option<Moves> {
    let has = |bit: u8| code & bit != 0;
    (code < 8).then(|| Moves { left: has(1), right: has(2), result: has(4) })
}

/// Writes a parameter.
#[must_use]
pub fn write_param(param: &Param) -> ParamBytes {
    let (name, name_bytes) = write_name(&param.name);
    let (kind, dtype, [rows, cols]) = match param.kind {
        ParamKind::Tensor { direction, tile } => {
            (direction as u8, tile.dtype, [tile.rows, tile.cols])
        }
        ParamKind::Scalar(dtype) => (SCALAR, dtype, [0, 0]),
    };
    ParamBytes { kind, dtype: dtype.code(), name_bytes, rows, cols, name }
}

/// The kind of a scalar in a [`ParamBytes`].
const SCALAR: u8 = 3;

/// Reads a parameter.
#[must_use]
pub fn read_param(bytes: &ParamBytes) -> Option<Param> {
    let name = read_name(&bytes.name, bytes.name_bytes)?;
    let dtype = DType::from_code(bytes.dtype)?;
    let kind = if bytes.kind == SCALAR {
        ((bytes.rows, bytes.cols) == (0, 0)).then_some(ParamKind::Scalar(dtype))?
    } else {
        let direction = *Direction::ALL.get(usize::from(bytes.kind))?;
        let has_extents = bytes.rows > 0 && bytes.cols > 0;
        let tile = super::op::TileType::tile(dtype, bytes.rows, bytes.cols);
        has_extents.then_some(ParamKind::Tensor { direction, tile })?
    };
    Some(Param { name, kind })
}

/// A name, padded with zeros, and its length.
#[must_use]
pub fn write_name(name: &Name) -> ([u8; 48], u16) {
    let mut bytes = [0; 48];
    let text = name.as_str().as_bytes();
    for (to, from) in bytes.iter_mut().zip(text) {
        *to = *from;
    }
    (bytes, u16::try_from(text.len()).unwrap_or(0))
}

/// Reads a name; `None` if it is none or its padding is not zero.
#[must_use]
pub fn read_name(bytes: &[u8; 48], length: u16) -> Option<Name> {
    let (text, rest) = bytes.split_at_checked(usize::from(length))?;
    let is_clean = rest.iter().all(|byte| *byte == 0);
    Name::new(core::str::from_utf8(text).ok()?).filter(|_| is_clean)
}
