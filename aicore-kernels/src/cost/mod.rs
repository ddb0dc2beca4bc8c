//! What instructions and transfers of a core cost on the device: the numbers and formulas that all kernels are made of.
//!
//! They follow the PTO-ISA cost model (public pto-isa project, include/pto/costmodel, a2a3, 1.85 GHz). The machine in virtual time takes its
//! costs of library kernels from here, and [`tile_kernel`] gives those of tile kernels. All costs are in picoseconds.

mod tile;

pub use tile::{OnChip, tile_kernel, tile_kernel_on_chip, unary};

/// Picoseconds of one cycle at 1.85 GHz.
pub const CYCLE_PS: u64 = 541;
/// Bytes of one vector repeat.
pub const REPEAT_BYTES: u64 = 256;
/// Bytes of an `f32`.
pub const F32: u64 = 4;

/// Head, slope, tail of a vector instruction, in cycles.
#[derive(Clone, Copy, Debug)]
pub struct Vector(u64, u64, u64);

/// A sum; what has no numbers of its own costs the same.
pub const V_ADD: Vector = Vector(6, 2, 0);
/// A sum with a scalar.
pub const V_ADDS: Vector = Vector(6, 2, 0);
/// A product.
pub const V_MUL: Vector = Vector(13, 2, 19);
/// A product with a scalar.
pub const V_MULS: Vector = Vector(14, 1, 19);
/// A difference.
pub const V_SUB: Vector = Vector(13, 2, 18);
/// A maximum or minimum.
pub const V_MAX: Vector = Vector(14, 2, 16);
/// A quotient.
pub const V_DIV: Vector = Vector(13, 8, 25);
/// An exponential.
pub const V_EXP: Vector = Vector(13, 4, 24);
/// A square root.
pub const V_SQRT: Vector = Vector(14, 2, 25);
/// A copy, or a constant.
pub const V_COPY: Vector = Vector(11, 1, 13);
/// The sum of a row.
pub const V_CADD: Vector = Vector(14, 7, 32);
/// The maximum of a row.
pub const V_CGMAX: Vector = Vector(14, 1, 17);
/// A choice between two elements.
pub const V_SEL: Vector = Vector(13, 2, 14);
/// A conversion to another element type.
pub const V_CONV: Vector = Vector(14, 2, 18);

// Bandwidths are in MB/s.

/// From global memory to a vector core.
pub const GM_TO_UB: u64 = 100_900;
/// From a vector core to global memory.
pub const UB_TO_GM: u64 = 188_460;
/// From global memory to a cube core.
pub const GM_TO_L1: u64 = 135_000;
/// To the left side of the matrix unit.
pub const L1_TO_L0A: u64 = 441_000;
/// To the right side of the matrix unit.
pub const L1_TO_L0B: u64 = 220_500;
/// From the matrix unit to global memory.
pub const L0C_TO_GM: u64 = 70_000;

/// An instruction over so many bytes.
#[must_use]
pub const fn vector_bytes(of: &Vector, bytes: u64) -> u64 {
    (of.0 + of.2 + of.1 * bytes.div_ceil(REPEAT_BYTES)) * CYCLE_PS
}

/// An instruction over `n` floats.
#[must_use]
pub const fn vector(of: &Vector, n: u64) -> u64 {
    vector_bytes(of, n * F32)
}

/// A vector instruction on each of `rows` rows of `n` floats.
#[must_use]
pub const fn rows_of(of: &Vector, rows: u64, n: u64) -> u64 {
    let repeats = (n * F32).div_ceil(REPEAT_BYTES) * rows;
    (of.0 + of.2 + of.1 * repeats) * CYCLE_PS
}

/// A transfer of this many bytes.
#[must_use]
pub const fn transfer_bytes(bytes: u64, megabytes_per_s: u64) -> u64 {
    // Bytes over MB/s are microseconds: thousands of picoseconds first, so that it fits.
    bytes * 1_000 / (megabytes_per_s / 100) * 10
}

/// A transfer of `floats`.
#[must_use]
pub const fn transfer(floats: u64, megabytes_per_s: u64) -> u64 {
    transfer_bytes(floats * F32, megabytes_per_s)
}

/// A product of this many rows, depth and columns in the matrix unit, of elements of this many bytes: what has been moved there before
/// does not count.
#[must_use]
pub const fn product([m, k, n]: [u64; 3], bytes: u64) -> u64 {
    let blocks = m.div_ceil(16) * (k * bytes).div_ceil(32) * n.div_ceil(16);
    let cycles_per_block = if bytes >= F32 { 2 } else { 1 };
    (6 + cycles_per_block * blocks) * CYCLE_PS
}

/// Rows of a result that the matrix unit holds at a time: 128 KiB are 128 x 256 sums of 32 bits.
const UNIT_ROWS: u64 = 128;
/// Columns of it.
const UNIT_COLS: u64 = 256;
/// Bytes of an operand that a cube core keeps at a time: half of its L1.
const KEPT_BYTES: u64 = 256 << 10;

/// A product of any extents on a cube core, without the result: what it moves from global memory, and what it takes on the core. `operands`: bytes of
/// both sides in global memory, of which the core keeps one in parts, and reads the other one once for each part.
#[must_use]
pub const fn large_product([m, k, n]: [u64; 3], bytes: u64, operands: [u64; 2]) -> [u64; 2] {
    let [a, b] = operands;
    let keep_a = a.saturating_add(b.saturating_mul(a.div_ceil(KEPT_BYTES)));
    let keep_b = b.saturating_add(a.saturating_mul(b.div_ceil(KEPT_BYTES)));
    let read = if keep_a < keep_b { keep_a } else { keep_b };
    let on_core = transfer_bytes(m * k * bytes * n.div_ceil(UNIT_COLS), L1_TO_L0A)
        + transfer_bytes(k * n * bytes * m.div_ceil(UNIT_ROWS), L1_TO_L0B)
        + product([m, k, n], bytes);
    [transfer_bytes(read, GM_TO_L1), on_core]
}

/// `c[m, n] (+)= a[m, k] @ b[k, n]` in f32.
#[must_use]
pub const fn cube(m: u64, k: u64, n: u64) -> u64 {
    let (a, b) = (m * k, k * n);
    transfer(a, GM_TO_L1)
        + transfer(b, GM_TO_L1)
        + transfer(a, L1_TO_L0A)
        + transfer(b, L1_TO_L0B)
        + product([m, k, n], F32)
        + transfer(m * n, L0C_TO_GM)
}
