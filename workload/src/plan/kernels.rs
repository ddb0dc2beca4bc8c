//! The kernels of a plan: their signatures as words, and their code.

use pto_abi::CoreKind;
use pto_aicore_kernels::func;
use pto_graph::ElementType;
use pto_graph::plan::layout::param;

use crate::kernel::TileKernel;
use pto_aicore_kernels::tile::{DType, Direction, Op, Param, ParamKind};

use super::names::number;

/// Code begins at multiples of this.
const ALIGN: usize = 8;

/// Whether a kernel needs the cube core.
fn is_product(kernel: &TileKernel) -> bool {
    kernel.ops().any(|op| matches!(op, Op::Matmul { .. }))
}

/// The kernel of the library that executes a kernel.
pub(super) fn executor(kernel: &TileKernel) -> &'static str {
    if is_product(kernel) { "tile_aic" } else { "tile_aiv" }
}

/// Appends a kernel, and its code to that of all.
pub(super) fn write(kernel: &TileKernel, words: &mut Vec<u32>, code: &mut Vec<u8>) {
    let (func, kind) = match is_product(kernel) {
        true => (func::TILE_AIC, CoreKind::AIC),
        false => (func::TILE_AIV, CoreKind::AIV),
    };
    code.resize(code.len().next_multiple_of(ALIGN), 0);
    let (start, encoded) = (code.len(), kernel.encode());
    code.extend(&encoded);
    let params = number(kernel.params().len());
    words.push(u32::from(func.0) | u32::from(kind.get()) << 16 | params << 24);
    words.extend([number(start), number(encoded.len())]);
    for (number, param) in kernel.params().iter().enumerate() {
        words.extend(param_words(param, number, kernel));
    }
}

fn param_words(param: &Param, index: usize, kernel: &TileKernel) -> [u32; 3] {
    let pair = |[a, b]: [u16; 2]| u32::from(a) | u32::from(b) << 16;
    match param.kind {
        ParamKind::Scalar(dtype) => [param::SCALAR | u32::from(element(dtype).get()) << 8, 0, 0],
        ParamKind::Tensor { direction, tile } => {
            let role = match direction {
                Direction::In => param::IN,
                Direction::Out => param::OUT,
                Direction::InOut => param::IN_OUT,
            };
            let accesses = Accesses::of(index, kernel);
            let flags = if accesses.is_loose { param::LOOSE } else { 0 };
            let first = role | u32::from(element(tile.dtype).get()) << 8 | flags << 16;
            [first, pair([tile.rows, tile.cols]), pair(accesses.reach)]
        }
    }
}

/// What a kernel touches of a parameter beyond its tile.
struct Accesses {
    /// Rows and columns.
    reach: [u16; 2],
    /// Whether anything but the tile decides what is touched: a mask, an offset, or nothing at all.
    is_loose: bool,
}

impl Accesses {
    fn of(index: usize, kernel: &TileKernel) -> Self {
        let found = kernel.ops().filter_map(|op| match op {
            Op::Load { param, offset, mask } | Op::Store { param, offset, mask, .. } => {
                (usize::from(*param) == index).then_some((*offset, mask.is_some()))
            }
            _ => None,
        });
        let (mut reach, mut is_loose, mut is_used) = ([0; 2], false, false);
        for ([rows, cols], is_masked) in found {
            reach = [reach[0].max(rows), reach[1].max(cols)];
            (is_loose, is_used) = (is_loose || is_masked, true);
        }
        Self { reach, is_loose: is_loose || !is_used || reach != [0; 2] }
    }
}

/// The element type of a tensor in GM.
pub(super) const fn element(dtype: DType) -> ElementType {
    match dtype {
        DType::F16 => ElementType::F16,
        DType::BF16 => ElementType::BF16,
        DType::F32 => ElementType::F32,
        DType::F64 => ElementType::F64,
        DType::I8 => ElementType::I8,
        DType::I16 => ElementType::I16,
        DType::I32 => ElementType::I32,
        DType::I64 => ElementType::I64,
        DType::U8 => ElementType::U8,
        DType::U16 => ElementType::U16,
        DType::U32 => ElementType::U32,
        DType::U64 => ElementType::U64,
    }
}
