//! The textual form of a kernel, printed.
//!
//! ```text
//! kernel scale(x: in f32[8, 64], y: out f32[8, 64], s: f32) {
//!   %0 = load x : f32[8, 64]
//!   %1 = scalar s : f32
//!   %2 = mul %0, %1 by one : f32[8, 64]
//!   store y, %2
//! }
//! ```

use std::fmt::{Formatter, Result};

use pto_aicore_kernels::tile::element::Element;
use pto_aicore_kernels::tile::{DType, Kernel, Op, Param, ParamKind, Spread, TileType, ValueId};

use crate::kernel::tile_kernel::TileKernel;

impl std::fmt::Display for TileKernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        kernel(self.code(), f)
    }
}

/// Prints a kernel.
fn kernel(kernel: &Kernel, f: &mut Formatter<'_>) -> Result {
    write!(f, "kernel {}(", kernel.name())?;
    for (number, param) in kernel.params().iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        write!(f, "{comma}{}: ", param.name)?;
        match param.kind {
            ParamKind::Tensor { direction, tile } => write!(f, "{} {tile}", direction.name())?,
            ParamKind::Scalar(dtype) => write!(f, "{dtype}")?,
        }
    }
    writeln!(f, ") {{")?;
    let mut types = kernel.types().enumerate();
    for op in kernel.ops() {
        f.write_str("  ")?;
        let has_result = !matches!(op, Op::Store { .. } | Op::AddCycles { .. });
        match types.next_if(has_result) {
            Some((number, tile)) => {
                write!(f, "%{number} = ")?;
                operation(op, kernel.params(), f)?;
                writeln!(f, " : {}", typed(tile))?;
            }
            None => {
                operation(op, kernel.params(), f)?;
                writeln!(f)?;
            }
        }
    }
    f.write_str("}\n")
}

/// Takes the next item only where there is one to take.
trait NextIf: Iterator {
    fn next_if(&mut self, is_taken: bool) -> Option<Self::Item> {
        if is_taken { self.next() } else { None }
    }
}

impl<I: Iterator> NextIf for I {}

fn typed(tile: TileType) -> String {
    tile.to_string()
}

fn operation(op: &Op, params: &[Param], f: &mut Formatter<'_>) -> Result {
    let name = |param: u8| params[usize::from(param)].name;
    write!(f, "{}", op.name())?;
    match *op {
        Op::Load { param, offset, mask } => {
            write!(f, " {}", name(param))?;
            write_offset(offset, mask, f)
        }
        Op::Store { param, source, offset, mask } => {
            write!(f, " {}, {source}", name(param))?;
            write_offset(offset, mask, f)
        }
        Op::Scalar { param } => write!(f, " {}", name(param)),
        Op::Constant { dtype, bits } => write!(f, " {}", literal(bits, dtype)),
        Op::Zeros { .. } | Op::Iota { .. } => Ok(()),
        Op::Binary { a, b, spread, .. } | Op::Compare { a, b, spread, .. } => {
            write!(f, " {a}, {b}")?;
            match spread {
                Spread::Same => Ok(()),
                _ => write!(f, " by {}", spread.name()),
            }
        }
        Op::Matmul { a, b, acc, moves } => {
            write!(f, " {a}, {b}")?;
            acc.map_or(Ok(()), |acc| write!(f, " acc {acc}"))?;
            let all = [(moves.left, "left"), (moves.right, "right"), (moves.result, "result")];
            let all = all.into_iter().filter(|(is_moved, _)| *is_moved);
            all.map(|(_, name)| name).try_for_each(|name| write!(f, " move {name}"))
        }
        Op::TopK { pairs, k } => write!(f, " {pairs}, {k}"),
        _ => {
            let operands = op.operands().into_iter().flatten().map(|id| id.to_string());
            write!(f, " {}", operands.collect::<Vec<_>>().join(", "))
        }
    }
}

fn write_offset([row, col]: [u16; 2], mask: Option<ValueId>, f: &mut Formatter<'_>) -> Result {
    if [row, col] != [0, 0] {
        write!(f, " at [{row}, {col}]")?;
    }
    mask.map_or(Ok(()), |mask| write!(f, " mask {mask}"))
}

/// A number of a type as bits: converted as a conversion does.
pub(super) fn bits_of(value: f64, dtype: DType) -> u64 {
    use pto_aicore_kernels::tile::element::{bf16, f16};
    match dtype {
        DType::F16 => <f16 as Element>::from_f64(value).bits(),
        DType::BF16 => <bf16 as Element>::from_f64(value).bits(),
        DType::F32 => <f32 as Element>::from_f64(value).bits(),
        DType::F64 => value.bits(),
        DType::I8 => <i8 as Element>::from_f64(value).bits(),
        DType::I16 => <i16 as Element>::from_f64(value).bits(),
        DType::I32 => <i32 as Element>::from_f64(value).bits(),
        DType::I64 => <i64 as Element>::from_f64(value).bits(),
        DType::U8 => <u8 as Element>::from_f64(value).bits(),
        DType::U16 => <u16 as Element>::from_f64(value).bits(),
        DType::U32 => <u32 as Element>::from_f64(value).bits(),
        DType::U64 => <u64 as Element>::from_f64(value).bits(),
    }
}

/// A float by its bits.
fn float_of(bits: u64, dtype: DType) -> f64 {
    use pto_aicore_kernels::tile::element::{bf16, f16};
    match dtype {
        DType::F16 => <f16 as Element>::from_bits(bits).cast(),
        DType::BF16 => <bf16 as Element>::from_bits(bits).cast(),
        DType::F32 => <f32 as Element>::from_bits(bits).cast(),
        _ => f64::from_bits(bits),
    }
}

/// A constant: a number that reads as the same bits, or else the bits.
pub(super) fn literal(bits: u64, dtype: DType) -> String {
    if !dtype.is_float() {
        return integer_literal(bits, dtype);
    }
    let value = float_of(bits, dtype);
    if value.is_finite() && bits_of(value, dtype) == bits {
        return format!("{value:?}");
    }
    format!("bits {bits:#x}")
}

fn integer_literal(bits: u64, dtype: DType) -> String {
    if dtype.is_unsigned() {
        return bits.to_string();
    }
    let unused = 64 - 8 * u32::try_from(dtype.bytes()).unwrap_or(8);
    ((bits << unused).cast_signed() >> unused).to_string()
}

/// The bits of a literal; `None` if the type has no such number, or only infinity, which is written by its bits.
pub(super) fn literal_bits(text: &str, dtype: DType) -> Option<u64> {
    if dtype.is_float() {
        let bits = bits_of(text.parse().ok()?, dtype);
        return float_of(bits, dtype).is_finite().then_some(bits);
    }
    let value: i128 = text.parse().ok()?;
    let width = 8 * dtype.bytes();
    let (low, high) = if dtype.is_unsigned() {
        (0, (1i128 << width) - 1)
    } else {
        (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1)
    };
    let in_range = (low..=high).contains(&value);
    let mask = u64::MAX >> (64 - width);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was just seen to fit"
    )]
    in_range.then_some(value as u64 & mask)
}
