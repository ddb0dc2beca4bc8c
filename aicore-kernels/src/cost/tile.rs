//! What a tile kernel costs on a core for which it was compiled: each of its instructions on whole tiles, one after another.
//!
//! A kernel with a product runs on a cube core: its tiles come through L1. An instruction that the device does not have is the few that
//! it takes there: a sigmoid is an exponential, a sum and a quotient. A partial tile costs as much as a whole one.

use super::{
    GM_TO_L1, GM_TO_UB, L0C_TO_GM, L1_TO_L0A, L1_TO_L0B, UB_TO_GM, V_ADD, V_CADD, V_CGMAX, V_CONV,
    V_COPY, V_DIV, V_EXP, V_MAX, V_MUL, V_MULS, V_SEL, V_SQRT, V_SUB, Vector, product,
    transfer_bytes, vector_bytes,
};
use crate::tile::{Binary, Kernel, Op, ParamKind, Reduce, Spread, TileType, Unary, ValueId};

/// Picoseconds of a run of the kernel.
#[must_use]
pub fn tile_kernel(kernel: &Kernel) -> u64 {
    let is_cube = kernel.ops().any(|op| matches!(op, Op::Matmul { .. }));
    kernel.ops().map(|op| instruction(kernel, op, is_cube)).sum()
}

/// What a transfer between a core and the fast region of a device takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnChip {
    /// Before its first byte.
    pub start_ns: u64,
    /// 1 MiB.
    pub mib_ns: u64,
}

impl OnChip {
    /// Picoseconds of a transfer of this many bytes.
    #[must_use]
    pub const fn transfer(self, bytes: u64) -> u64 {
        self.start_ns * 1_000 + (bytes * self.mib_ns * 1_000).div_ceil(1 << 20)
    }
}

/// As [`tile_kernel`], where the tensors of these parameters are in the fast region. Through it, a transfer takes at most as long as from memory.
#[must_use]
pub fn tile_kernel_on_chip(kernel: &Kernel, params: &[usize], on_chip: OnChip) -> u64 {
    let is_cube = kernel.ops().any(|op| matches!(op, Op::Matmul { .. }));
    let cost = |op: &Op| {
        let from_memory = instruction(kernel, op, is_cube);
        match moved(kernel, op) {
            Some((param, bytes)) if params.contains(&param) => {
                from_memory.min(on_chip.transfer(bytes))
            }
            _ => from_memory,
        }
    };
    kernel.ops().map(cost).sum()
}

/// The parameter whose tile an instruction moves, and how many bytes; `None`: it moves none.
fn moved(kernel: &Kernel, op: &Op) -> Option<(usize, u64)> {
    match *op {
        Op::Load { param, .. } => {
            let param = usize::from(param);
            let ParamKind::Tensor { tile, .. } = kernel.params().get(param)?.kind else {
                return None;
            };
            Some((param, bytes(tile)))
        }
        Op::Store { param, source, .. } => {
            Some((usize::from(param), type_of(kernel, source).map_or(0, bytes)))
        }
        _ => None,
    }
}

/// Bytes of a tile.
const fn bytes(of: TileType) -> u64 {
    of.elements() as u64 * of.dtype.bytes() as u64
}

/// The type of a value. Each value of a kernel that was accepted has one.
fn type_of(kernel: &Kernel, value: ValueId) -> Option<TileType> {
    kernel.types().nth(usize::from(value.0))
}

fn instruction(kernel: &Kernel, op: &Op, is_cube: bool) -> u64 {
    let bytes_of = |value: ValueId| type_of(kernel, value).map_or(0, bytes);
    match *op {
        Op::Load { .. } => {
            let bytes = moved(kernel, op).map_or(0, |(_, bytes)| bytes);
            transfer_bytes(bytes, if is_cube { GM_TO_L1 } else { GM_TO_UB })
        }
        Op::Store { source, .. } => {
            transfer_bytes(bytes_of(source), if is_cube { L0C_TO_GM } else { UB_TO_GM })
        }
        Op::Scalar { .. } | Op::Constant { .. } | Op::AddCycles { .. } => 0,
        Op::Zeros { dtype, shape: [rows, cols] } => {
            vector_bytes(&V_COPY, bytes(TileType::tile(dtype, rows, cols)))
        }
        Op::Iota { dtype, cols } => vector_bytes(&V_COPY, bytes(TileType::tile(dtype, 1, cols))),
        Op::Unary { function, x } => unary(function, bytes_of(x)),
        Op::Binary { function, a, b, spread } => {
            vector_bytes(binary(function, spread), bytes_of(a).max(bytes_of(b)))
        }
        Op::Compare { a, b, .. } => vector_bytes(&V_ADD, bytes_of(a).max(bytes_of(b))),
        Op::Select { a, .. } => vector_bytes(&V_SEL, bytes_of(a)),
        Op::Reduce { function, x } => reduce(function, bytes_of(x)),
        Op::Convert { x, .. } => vector_bytes(&V_CONV, bytes_of(x)),
        Op::Matmul { a, b, .. } => {
            let types = [a, b].map(|value| type_of(kernel, value));
            let [Some(a), Some(b)] = types else { return 0 };
            let extents = [a.rows, a.cols, b.cols].map(u64::from);
            transfer_bytes(bytes(a), L1_TO_L0A)
                + transfer_bytes(bytes(b), L1_TO_L0B)
                + product(extents, a.dtype.bytes() as u64)
        }
        Op::SliceEven { x } | Op::SliceOdd { x } => vector_bytes(&V_COPY, bytes_of(x)),
        Op::Interleave { a, b } => vector_bytes(&V_COPY, bytes_of(a) + bytes_of(b)),
        Op::Broadcast { x, shape: [rows, cols] } => {
            let dtype = type_of(kernel, x).map(|found| found.dtype);
            dtype.map_or(0, |dtype| vector_bytes(&V_COPY, bytes(TileType::tile(dtype, rows, cols))))
        }
        // Five passes over scores and indices.
        Op::Sort32 { scores, .. } => 5 * vector_bytes(&V_MAX, 2 * bytes_of(scores)),
        Op::TopK { pairs, .. } => vector_bytes(&V_COPY, bytes_of(pairs)),
    }
}

/// A function of each element, as the instructions that it takes.
#[must_use]
pub fn unary(function: Unary, bytes: u64) -> u64 {
    let all = |of: &[&Vector]| of.iter().map(|of| vector_bytes(of, bytes)).sum();
    match function {
        Unary::Copy => all(&[&V_COPY]),
        Unary::Exp | Unary::Log => all(&[&V_EXP]),
        Unary::Sqrt => all(&[&V_SQRT]),
        Unary::Rsqrt => all(&[&V_SQRT, &V_DIV]),
        Unary::Relu | Unary::Abs => all(&[&V_MAX]),
        Unary::Neg => all(&[&V_MULS]),
        Unary::Sigmoid => all(&[&V_EXP, &V_ADD, &V_DIV]),
        Unary::Silu | Unary::Tanh => all(&[&V_EXP, &V_ADD, &V_DIV, &V_MUL]),
        Unary::Gelu => all(&[&V_MUL, &V_MUL, &V_ADD, &V_EXP, &V_ADD, &V_DIV, &V_MUL]),
        // The remainder of a turn, and a polynomial of five terms.
        Unary::Sin | Unary::Cos => {
            all(&[&V_MULS, &V_CONV, &V_SUB]) + 5 * all(&[&V_MUL]) + 5 * all(&[&V_ADD])
        }
    }
}

const fn binary(function: Binary, spread: Spread) -> &'static Vector {
    match (function, spread) {
        (Binary::Mul, Spread::One | Spread::FirstOne) => &V_MULS,
        (Binary::Add, _) => &V_ADD,
        (Binary::Sub, _) => &V_SUB,
        (Binary::Mul, _) => &V_MUL,
        (Binary::Div, _) => &V_DIV,
        (Binary::Max | Binary::Min, _) => &V_MAX,
    }
}

fn reduce(function: Reduce, bytes: u64) -> u64 {
    match function {
        Reduce::RowSum => vector_bytes(&V_CADD, bytes),
        Reduce::RowMax => vector_bytes(&V_CGMAX, bytes),
        Reduce::RowMean => vector_bytes(&V_CADD, bytes) + vector_bytes(&V_MULS, 0),
        Reduce::ColSum => vector_bytes(&V_ADD, bytes),
        Reduce::ColMax => vector_bytes(&V_MAX, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::tile_kernel;
    use crate::cost::{
        CYCLE_PS, GM_TO_L1, GM_TO_UB, L0C_TO_GM, L1_TO_L0A, L1_TO_L0B, UB_TO_GM, cube,
        transfer_bytes,
    };
    use crate::tile::op::Moves;
    use crate::tile::{
        Binary, DType, Direction, Kernel, Name, Op, Param, ParamKind, Spread, TileType, Unary,
        ValueId,
    };

    fn kernel(dtype: DType, side: u16, ops: &[Op]) -> Kernel {
        let name = |text: &str| Name::new(text).expect("it is short");
        let kind = ParamKind::Tensor {
            direction: Direction::InOut,
            tile: TileType::tile(dtype, side, side),
        };
        Kernel::check(name("k"), &[Param { name: name("x"), kind }], ops).expect("it is a kernel")
    }

    const LOAD: Op = Op::Load { param: 0, offset: [0; 2], mask: None };

    const fn store(source: u16) -> Op {
        Op::Store { param: 0, source: ValueId(source), offset: [0; 2], mask: None }
    }

    /// A transfer through the fast region takes its time where it is shorter, and only for the parameters that are there.
    #[test]
    fn tensors_in_the_fast_region_cost_less() {
        use crate::cost::{OnChip, tile_kernel_on_chip};

        let copy = kernel(DType::F32, 64, &[LOAD, store(0)]);
        let bytes = 64 * 64 * 4;
        let from_memory = transfer_bytes(bytes, GM_TO_UB) + transfer_bytes(bytes, UB_TO_GM);
        let fast = OnChip { start_ns: 5, mib_ns: 1024 };
        assert_eq!(tile_kernel_on_chip(&copy, &[], fast), from_memory);
        // 16 KiB of 1 MiB are 16 ns.
        assert_eq!(tile_kernel_on_chip(&copy, &[0], fast), 2 * 21_000);
        let slow = OnChip { start_ns: 1 << 30, mib_ns: 0 };
        assert_eq!(tile_kernel_on_chip(&copy, &[0], slow), from_memory, "memory is there as well");
    }

    #[test]
    fn a_kernel_costs_its_instructions() {
        let (a, b) = (ValueId(0), ValueId(1));
        let add = Op::Binary { function: Binary::Add, a, b, spread: Spread::Same };
        for (dtype, bytes) in [(DType::F32, 4 * 64 * 64), (DType::F16, 2 * 64 * 64)] {
            let exp = Op::Unary { function: Unary::Exp, x: a };
            let found = tile_kernel(&kernel(dtype, 64, &[LOAD, exp, add, store(2)]));
            let repeats = bytes / 256;
            let cycles = 13 + 24 + 4 * repeats + 6 + 2 * repeats;
            let moved = transfer_bytes(bytes, GM_TO_UB) + transfer_bytes(bytes, UB_TO_GM);
            assert_eq!(found, moved + cycles * CYCLE_PS, "{dtype}");
        }
    }

    #[test]
    fn a_product_runs_on_a_cube_core() {
        let (a, b) = (ValueId(0), ValueId(1));
        let product = Op::Matmul { a, b, acc: None, moves: Moves::default() };
        let found =
            |dtype, side| tile_kernel(&kernel(dtype, side, &[LOAD, LOAD, product, store(2)]));
        assert_eq!(found(DType::F32, 64), cube(64, 64, 64), "as the library's kernel");
        let bytes = 16 * 16 * 4;
        let moves = 2 * transfer_bytes(bytes, GM_TO_L1)
            + transfer_bytes(bytes, L1_TO_L0A)
            + transfer_bytes(bytes, L1_TO_L0B);
        let back = transfer_bytes(bytes, L0C_TO_GM);
        assert_eq!(found(DType::F32, 16), moves + (6 + 2 * 2) * CYCLE_PS + back);
    }
}
