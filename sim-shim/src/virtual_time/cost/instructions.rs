//! What instructions and transfers of a core cost: the numbers and formulas that all kernels are made of.

/// Picoseconds of one cycle at 1.85 GHz.
pub(super) const CYCLE_PS: u64 = 541;
/// Bytes of one vector repeat.
pub(super) const REPEAT_BYTES: u64 = 256;
pub(super) const F32: u64 = 4;

/// Head, slope, tail of a vector instruction, in cycles.
pub(super) struct Vector(u64, u64, u64);
pub(super) const V_ADD: Vector = Vector(6, 2, 0);
pub(super) const V_ADDS: Vector = Vector(6, 2, 0);
pub(super) const V_MUL: Vector = Vector(13, 2, 19);
pub(super) const V_MULS: Vector = Vector(14, 1, 19);
pub(super) const V_SUB: Vector = Vector(13, 2, 18);
pub(super) const V_MAX: Vector = Vector(14, 2, 16);
pub(super) const V_DIV: Vector = Vector(13, 8, 25);
pub(super) const V_EXP: Vector = Vector(13, 4, 24);
pub(super) const V_SQRT: Vector = Vector(14, 2, 25);
pub(super) const V_COPY: Vector = Vector(11, 1, 13);
pub(super) const V_CADD: Vector = Vector(14, 7, 32);
pub(super) const V_CGMAX: Vector = Vector(14, 1, 17);

/// Bandwidths in MB/s.
pub(super) const GM_TO_UB: u64 = 100_900;
pub(super) const UB_TO_GM: u64 = 188_460;
pub(super) const GM_TO_L1: u64 = 135_000;
pub(super) const L1_TO_L0A: u64 = 441_000;
pub(super) const L1_TO_L0B: u64 = 220_500;
pub(super) const L0C_TO_GM: u64 = 70_000;

/// An instruction over `n` floats, in picoseconds.
pub(super) const fn vector(of: &Vector, n: u64) -> u64 {
    let repeats = (n * F32).div_ceil(REPEAT_BYTES);
    (of.0 + of.2 + of.1 * repeats) * CYCLE_PS
}

/// The same instruction on each of `rows` rows of `n` floats.
pub(super) const fn rows_of(of: &Vector, rows: u64, n: u64) -> u64 {
    let repeats = (n * F32).div_ceil(REPEAT_BYTES) * rows;
    (of.0 + of.2 + of.1 * repeats) * CYCLE_PS
}

/// A transfer of `floats`, in picoseconds.
pub(super) const fn transfer(floats: u64, megabytes_per_s: u64) -> u64 {
    // Bytes over MB/s are microseconds: thousands of picoseconds first, so that it fits.
    floats * F32 * 1_000 / (megabytes_per_s / 100) * 10
}

/// `c[m, n] (+)= a[m, k] @ b[k, n]` in f32, in picoseconds.
pub(super) const fn cube(m: u64, k: u64, n: u64) -> u64 {
    let (a, b) = (m * k, k * n);
    let blocks = m.div_ceil(16) * k.div_ceil(8) * n.div_ceil(16);
    let product = (6 + 2 * blocks) * CYCLE_PS;
    transfer(a, GM_TO_L1)
        + transfer(b, GM_TO_L1)
        + transfer(a, L1_TO_L0A)
        + transfer(b, L1_TO_L0B)
        + product
        + transfer(m * n, L0C_TO_GM)
}
