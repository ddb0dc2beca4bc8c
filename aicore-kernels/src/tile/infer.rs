//! The rules of types: what an instruction gives, and what is wrong with one.
//!
//! The builder on the host and the acceptance of bytes use the same function, so that they cannot disagree.

use super::dtype::DType;
use super::op::{Op, Reduce, Spread, TileType, Unary, ValueId};
use super::param::{Direction, Param, ParamKind};

/// What is wrong with an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// No instruction before this one defines the value.
    UnknownValue(ValueId),
    /// The kernel has no such parameter.
    UnknownParam(u8),
    /// The parameter is a scalar where a tensor is needed, or the other way round.
    ParamKind(u8),
    /// The kernel reads a parameter that it declares as written only, or writes one that it only reads.
    Direction(u8, Direction),
    /// The function is not defined for elements of this type.
    WrongType(ValueId, DType),
    /// The element type of the operand is not the one that is needed.
    NeedsType(ValueId, DType),
    /// The two types differ and have to be the same.
    TypesDiffer(TileType, TileType),
    /// The two shapes do not go together.
    ShapesDiffer(TileType, TileType),
    /// The operand does not meet the other one in the way that the instruction says.
    Spread(Spread),
    /// A scalar is given where a tile is needed.
    NeedsTile(ValueId),
    /// A tile is given where a scalar is needed.
    NeedsScalar(ValueId),
    /// An extent or count is zero, odd where it must be even, or too large.
    Extent(u32),
    /// A constant has bits beyond its type.
    Bits(u64),
}

impl core::fmt::Display for Mistake {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::UnknownValue(id) => {
                write!(f, "No instruction before this one defines the value {id}.")
            }
            Self::UnknownParam(number) => write!(f, "The kernel has no parameter {number}."),
            Self::ParamKind(number) => {
                write!(
                    f,
                    "Parameter {number} is a scalar where a tensor is needed, or the other way round."
                )
            }
            Self::Direction(number, direction) => {
                let (is, does) = match direction {
                    Direction::In => ("in", "writes"),
                    _ => ("out", "reads"),
                };
                write!(
                    f,
                    "Parameter {number} is `{is}` and the kernel {does} it. Declare it `inout`."
                )
            }
            Self::WrongType(id, dtype) => {
                write!(f, "The function is not defined for {dtype}, the type of {id}.")
            }
            Self::NeedsType(id, dtype) => {
                write!(f, "The operand {id} must be of type {dtype}. Convert it first.")
            }
            Self::TypesDiffer(a, b) => {
                write!(f, "The element types of {a} and {b} differ. Convert one of them.")
            }
            Self::ShapesDiffer(a, b) => write!(f, "The shapes of {a} and {b} do not go together."),
            Self::Spread(spread) => {
                write!(
                    f,
                    "The shapes do not allow the second operand to be taken by `{}`.",
                    spread.name()
                )
            }
            Self::NeedsTile(id) => write!(f, "The operand {id} is a scalar and must be a tile."),
            Self::NeedsScalar(id) => write!(f, "The operand {id} is a tile and must be a scalar."),
            Self::Extent(extent) => write!(f, "The extent or count {extent} is not allowed here."),
            Self::Bits(bits) => write!(f, "The constant {bits:#x} has bits beyond its type."),
        }
    }
}

impl core::error::Error for Mistake {}

/// How `b` meets `a`, if it does. On a square tile a vector goes by rows, whichever way it lies.
#[must_use]
pub fn spread(a: TileType, b: TileType) -> Option<Spread> {
    [Spread::Same, Spread::One, Spread::FirstOne, Spread::Row, Spread::Col]
        .into_iter()
        .find(|spread| meets(*spread, a, b))
}

/// Whether the shapes allow this spread.
fn meets(spread: Spread, a: TileType, b: TileType) -> bool {
    let is_vector = b.rows == 1 || b.cols == 1;
    match spread {
        Spread::Same => a.has_shape_of(b) && a.is_scalar == b.is_scalar,
        Spread::One => b.elements() == 1 && (b.is_scalar || !a.is_scalar),
        Spread::FirstOne => a.is_scalar && !b.is_scalar,
        Spread::Row => is_vector && !b.is_scalar && b.elements() == usize::from(a.rows),
        Spread::Col => is_vector && !b.is_scalar && b.elements() == usize::from(a.cols),
    }
}

/// The type of the result of `op`; `None` if it has none.
///
/// # Errors
/// What is wrong with the instruction.
pub fn infer(op: &Op, types: &[TileType], params: &[Param]) -> Result<Option<TileType>, Mistake> {
    let rules = Rules { types, params };
    Ok(match *op {
        Op::Load { param, mask, .. } => Some(rules.load(param, mask)?),
        Op::Store { param, source, mask, .. } => {
            rules.store(param, source, mask)?;
            None
        }
        Op::Scalar { param } => Some(rules.scalar(param)?),
        Op::Constant { dtype, bits } => Some(constant(dtype, bits)?),
        Op::Zeros { dtype, shape } => Some(tile(dtype, shape)?),
        Op::Iota { dtype, cols } => Some(tile(dtype, [1, cols])?),
        Op::Unary { function, x } => Some(rules.unary(function, x)?),
        Op::Binary { .. } => Some(rules.pair(op)?),
        Op::Compare { .. } => Some(rules.pair(op)?.with(DType::U8)),
        Op::Select { mask, a, b } => Some(rules.select(mask, a, b)?),
        Op::Reduce { function, x } => Some(rules.reduce(function, x)?),
        Op::Convert { dtype, x } => Some(rules.value(x)?.with(dtype)),
        Op::Matmul { a, b, acc, .. } => Some(rules.matmul(a, b, acc)?),
        Op::SliceEven { x } | Op::SliceOdd { x } => Some(rules.half(x)?),
        Op::Interleave { a, b } => Some(rules.interleave(a, b)?),
        Op::Broadcast { x, shape } => Some(rules.broadcast(x, shape)?),
        Op::Sort32 { scores, indices } => Some(rules.sort32(scores, indices)?),
        Op::TopK { pairs, k } => Some(rules.topk(pairs, k)?),
        Op::AddCycles { x } => {
            rules.add_cycles(x)?;
            None
        }
    })
}

/// A tile with these extents, which must not be zero.
fn tile(dtype: DType, [rows, cols]: [u16; 2]) -> Result<TileType, Mistake> {
    if rows == 0 || cols == 0 {
        return Err(Mistake::Extent(0));
    }
    Ok(TileType::tile(dtype, rows, cols))
}

fn constant(dtype: DType, bits: u64) -> Result<TileType, Mistake> {
    let width = dtype.bytes() * 8;
    let fits = width == 64 || bits >> width == 0;
    if fits { Ok(TileType::scalar(dtype)) } else { Err(Mistake::Bits(bits)) }
}

/// The values and parameters that an instruction may name.
struct Rules<'a> {
    types: &'a [TileType],
    params: &'a [Param],
}

impl Rules<'_> {
    fn value(&self, id: ValueId) -> Result<TileType, Mistake> {
        self.types.get(usize::from(id.0)).copied().ok_or(Mistake::UnknownValue(id))
    }

    fn tile(&self, id: ValueId) -> Result<TileType, Mistake> {
        let found = self.value(id)?;
        if found.is_scalar { Err(Mistake::NeedsTile(id)) } else { Ok(found) }
    }

    fn needs(&self, id: ValueId, needed: TileType) -> Result<(), Mistake> {
        let found = self.tile(id)?;
        if found.dtype != needed.dtype {
            return Err(Mistake::NeedsType(id, needed.dtype));
        }
        same_shape(needed, found)
    }

    fn param(&self, number: u8) -> Result<ParamKind, Mistake> {
        let found = self.params.get(usize::from(number));
        found.map(|param| param.kind).ok_or(Mistake::UnknownParam(number))
    }

    fn tensor(&self, number: u8) -> Result<(Direction, TileType), Mistake> {
        match self.param(number)? {
            ParamKind::Tensor { direction, tile } => Ok((direction, tile)),
            ParamKind::Scalar(_) => Err(Mistake::ParamKind(number)),
        }
    }

    fn load(&self, number: u8, mask: Option<ValueId>) -> Result<TileType, Mistake> {
        let (direction, tile) = self.tensor(number)?;
        if !direction.is_read() {
            return Err(Mistake::Direction(number, direction));
        }
        self.mask(mask, tile)?;
        Ok(tile)
    }

    fn store(&self, number: u8, source: ValueId, mask: Option<ValueId>) -> Result<(), Mistake> {
        let (direction, tile) = self.tensor(number)?;
        if !direction.is_written() {
            return Err(Mistake::Direction(number, direction));
        }
        self.needs(source, tile)?;
        self.mask(mask, tile)
    }

    fn mask(&self, mask: Option<ValueId>, tile: TileType) -> Result<(), Mistake> {
        mask.map_or(Ok(()), |mask| self.needs(mask, tile.with(DType::U8)))
    }

    fn scalar(&self, number: u8) -> Result<TileType, Mistake> {
        match self.param(number)? {
            ParamKind::Scalar(dtype) => Ok(TileType::scalar(dtype)),
            ParamKind::Tensor { .. } => Err(Mistake::ParamKind(number)),
        }
    }

    fn unary(&self, function: Unary, x: ValueId) -> Result<TileType, Mistake> {
        let found = self.value(x)?;
        let is_defined = match function {
            Unary::Copy | Unary::Abs | Unary::Relu => true,
            Unary::Neg => !found.dtype.is_unsigned(),
            _ => found.dtype.is_float(),
        };
        if is_defined { Ok(found) } else { Err(Mistake::WrongType(x, found.dtype)) }
    }

    /// A binary instruction or a comparison.
    fn pair(&self, op: &Op) -> Result<TileType, Mistake> {
        let (Op::Binary { a, b, spread, .. } | Op::Compare { a, b, spread, .. }) = *op else {
            return Err(Mistake::Extent(0));
        };
        let (a, b) = (self.value(a)?, self.value(b)?);
        if a.dtype != b.dtype {
            return Err(Mistake::TypesDiffer(a, b));
        }
        if !meets(spread, a, b) {
            return Err(Mistake::Spread(spread));
        }
        Ok(if spread == Spread::FirstOne { b } else { a })
    }

    fn select(&self, mask: ValueId, a: ValueId, b: ValueId) -> Result<TileType, Mistake> {
        let (mask_type, a, b) = (self.value(mask)?, self.value(a)?, self.value(b)?);
        if mask_type.dtype != DType::U8 {
            return Err(Mistake::NeedsType(mask, DType::U8));
        }
        if a.dtype != b.dtype {
            return Err(Mistake::TypesDiffer(a, b));
        }
        same_shape(a, b)?;
        same_shape(a, mask_type)?;
        Ok(a)
    }

    fn reduce(&self, function: Reduce, x: ValueId) -> Result<TileType, Mistake> {
        let TileType { dtype, rows, cols, .. } = self.tile(x)?;
        Ok(match function {
            Reduce::RowSum | Reduce::RowMean => TileType::tile(dtype.sum(), rows, 1),
            Reduce::RowMax => TileType::tile(dtype.maximum(), rows, 1),
            Reduce::ColSum => TileType::tile(dtype.sum(), 1, cols),
            Reduce::ColMax => TileType::tile(dtype.maximum(), 1, cols),
        })
    }

    fn matmul(&self, a: ValueId, b: ValueId, acc: Option<ValueId>) -> Result<TileType, Mistake> {
        let (a, b) = (self.tile(a)?, self.tile(b)?);
        if a.dtype != b.dtype {
            return Err(Mistake::TypesDiffer(a, b));
        }
        if a.cols != b.rows {
            return Err(Mistake::ShapesDiffer(a, b));
        }
        let product = TileType::tile(a.dtype.sum(), a.rows, b.cols);
        acc.map_or(Ok(()), |acc| self.needs(acc, product))?;
        Ok(product)
    }

    fn half(&self, x: ValueId) -> Result<TileType, Mistake> {
        let found = self.tile(x)?;
        if found.cols % 2 != 0 {
            return Err(Mistake::Extent(u32::from(found.cols)));
        }
        Ok(TileType { cols: found.cols / 2, ..found })
    }

    fn interleave(&self, a: ValueId, b: ValueId) -> Result<TileType, Mistake> {
        let (a, b) = (self.tile(a)?, self.tile(b)?);
        if a.dtype != b.dtype {
            return Err(Mistake::TypesDiffer(a, b));
        }
        same_shape(a, b)?;
        let cols = a.cols.checked_mul(2).ok_or(Mistake::Extent(u32::from(a.cols)))?;
        Ok(TileType { cols, ..a })
    }

    fn broadcast(&self, x: ValueId, shape: [u16; 2]) -> Result<TileType, Mistake> {
        let found = self.value(x)?;
        let wanted = tile(found.dtype, shape)?;
        let fits = |from: u16, to: u16| from == to || from == 1;
        if fits(found.rows, wanted.rows) && fits(found.cols, wanted.cols) {
            return Ok(wanted);
        }
        Err(Mistake::ShapesDiffer(found, wanted))
    }

    fn sort32(&self, scores: ValueId, indices: ValueId) -> Result<TileType, Mistake> {
        self.needs(scores, TileType::tile(DType::F32, 1, 32))?;
        self.needs(indices, TileType::tile(DType::U32, 1, 32))?;
        Ok(TileType::tile(DType::F32, 1, 64))
    }

    fn topk(&self, pairs: ValueId, k: u16) -> Result<TileType, Mistake> {
        self.needs(pairs, TileType::tile(DType::F32, 1, 64))?;
        if k == 0 || k > 32 {
            return Err(Mistake::Extent(u32::from(k)));
        }
        Ok(TileType::tile(DType::I32, 1, k))
    }

    fn add_cycles(&self, x: ValueId) -> Result<(), Mistake> {
        let found = self.value(x)?;
        if !found.is_scalar {
            return Err(Mistake::NeedsScalar(x));
        }
        if found.dtype.is_float() { Err(Mistake::WrongType(x, found.dtype)) } else { Ok(()) }
    }
}

fn same_shape(needed: TileType, found: TileType) -> Result<(), Mistake> {
    if needed.has_shape_of(found) { Ok(()) } else { Err(Mistake::ShapesDiffer(needed, found)) }
}
