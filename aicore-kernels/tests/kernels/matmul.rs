//! matmul, `matmul_acc`, `matmul_add`, `attention_pv`, `attention_qk`: within `gamma` of the number
//! of roundings, relative to the sum of the magnitudes of the products.

use crate::support::{GuardedMatrix, XorShift64, assert_close, call, gamma};

const SIZES: [usize; 8] = [0, 1, 3, 4, 7, 8, 13, 33];

fn shapes() -> impl Iterator<Item = (usize, usize, usize)> {
    let all = SIZES
        .into_iter()
        .flat_map(|m| SIZES.into_iter().flat_map(move |n| SIZES.map(|k| (m, n, k))));
    all.chain([(16, 16, 16), (15, 100, 17), (100, 31, 64), (5, 12, 1000)])
}

struct ProductCase {
    m: usize,
    n: usize,
    k: usize,
    a: GuardedMatrix,
    b: GuardedMatrix,
    d: GuardedMatrix,
}

fn cases(b_transposed: bool) -> impl Iterator<Item = ProductCase> {
    let mut rng = XorShift64::new(5);
    shapes().map(move |(m, n, k)| {
        let gap = (m + n + k) % 3 * 2;
        let b_shape = if b_transposed { (n, k) } else { (k, n) };
        ProductCase {
            m,
            n,
            k,
            a: GuardedMatrix::random((m, k), gap, 2.0, &mut rng),
            b: GuardedMatrix::random(b_shape, gap / 2, 2.0, &mut rng),
            d: GuardedMatrix::random((m, n), gap + 1, 2.0, &mut rng),
        }
    })
}

impl ProductCase {
    fn args(&mut self, c: &mut GuardedMatrix) -> [u64; 9] {
        let (m, n, k) = (self.m as u64, self.n as u64, self.k as u64);
        let strides = [self.a.stride(), self.b.stride(), c.stride()];
        let addresses = [self.a.address(), self.b.address(), c.address()];
        let [a, b, c] = addresses;
        [a, b, c, m, n, k, strides[0], strides[1], strides[2]]
    }

    /// Checks `c = a @ b (+ d)`; `roundings` on the way of one product into its element.
    fn check(
        &self,
        c: &GuardedMatrix,
        b: impl Fn(usize, usize) -> f64,
        d: Option<&GuardedMatrix>,
        roundings: usize,
    ) {
        c.assert_guards();
        for row in 0..self.m {
            for col in 0..self.n {
                let product = |p| self.a.f64_at(row, p) * b(p, col);
                let d = d.map_or(0.0, |d| d.f64_at(row, col));
                let exact = (0..self.k).map(product).sum::<f64>() + d;
                let magnitude = (0..self.k).map(|p| product(p).abs()).sum::<f64>() + d.abs();
                let tolerance = gamma(roundings) * magnitude;
                let what = || format!("{} x {} x {} at {row}, {col}", self.m, self.n, self.k);
                assert_close(c.at(row, col), exact, tolerance, what);
            }
        }
    }
}

#[test]
fn matmul_is_within_its_bound_and_does_not_read_c() {
    for mut case in cases(false) {
        let mut c = GuardedMatrix::unset((case.m, case.n), 3);
        call("matmul", &case.args(&mut c));
        case.check(&c, |p, col| case.b.f64_at(p, col), None, case.k);
        if case.k == 0 {
            assert!((0..case.m).all(|row| c.row(row).iter().all(|&c| c == 0.0)));
        }
    }
}

#[test]
fn matmul_acc_is_within_its_bound() {
    for mut case in cases(false) {
        let mut c = case.d.clone();
        call("matmul_acc", &case.args(&mut c));
        case.check(&c, |p, col| case.b.f64_at(p, col), Some(&case.d), case.k + 1);
        if case.k == 0 {
            assert_eq!(c.bits(), case.d.bits());
        }
    }
}

#[test]
fn matmul_add_is_within_its_bound_and_d_may_be_c() {
    for mut case in cases(false) {
        let mut c = GuardedMatrix::unset((case.m, case.n), 2);
        let [a, b, c_address, m, n, k, a_ld, b_ld, c_ld] = case.args(&mut c);
        let (d, d_ld) = (case.d.address(), case.d.stride());
        call("matmul_add", &[a, b, d, c_address, m, n, k, a_ld, b_ld, d_ld, c_ld]);
        case.check(&c, |p, col| case.b.f64_at(p, col), Some(&case.d), case.k + 1);
        let mut in_place = case.d.clone();
        let d = in_place.address();
        call("matmul_add", &[a, b, d, d, m, n, k, a_ld, b_ld, d_ld, d_ld]);
        assert!((0..case.m).all(|row| in_place.row(row) == c.row(row)));
    }
}

#[test]
fn attention_pv_is_the_same_product() {
    for mut case in cases(false) {
        let mut c = GuardedMatrix::unset((case.m, case.n), 3);
        // rows, cols, head_dim of the kernel are m, k, n of the product.
        let [p, v, o, rows, head_dim, cols, p_ld, v_ld, o_ld] = case.args(&mut c);
        call("attention_pv", &[p, v, o, rows, cols, head_dim, p_ld, v_ld, o_ld]);
        case.check(&c, |p, col| case.b.f64_at(p, col), None, case.k);
    }
}

#[test]
fn attention_qk_is_within_its_bound_and_does_not_read_s() {
    for mut case in cases(true) {
        let mut s = GuardedMatrix::unset((case.m, case.n), 3);
        // A product, a quarter of the additions in its lane, two to add the lanes.
        call("attention_qk", &case.args(&mut s));
        case.check(&s, |p, col| case.b.f64_at(col, p), None, case.k.div_ceil(4) + 3);
    }
}

/// An element does not depend on the tile that it falls into: cutting a product is free of
/// differences.
#[test]
fn a_part_of_a_product_has_the_same_bits() {
    let mut rng = XorShift64::new(6);
    let mut a = GuardedMatrix::random((13, 37), 1, 2.0, &mut rng);
    let mut b = GuardedMatrix::random((37, 29), 2, 2.0, &mut rng);
    let (mut whole, (a_ld, b_ld)) = (GuardedMatrix::unset((13, 29), 0), (a.stride(), b.stride()));
    let (a, b) = (a.address(), b.address());
    call("matmul", &[a, b, whole.address(), 13, 29, 37, a_ld, b_ld, 29]);
    for (row, col) in (0..13).flat_map(|row| (0..29).map(move |col| (row, col))) {
        let mut one = GuardedMatrix::unset((1, 1), 0);
        let (a, b) = (a + row * a_ld * 4, b + col * 4);
        call("matmul", &[a, b, one.address(), 1, 1, 37, a_ld, b_ld, 1]);
        let (row, col) = (usize::try_from(row).unwrap(), usize::try_from(col).unwrap());
        assert_eq!(one.at(0, 0).to_bits(), whole.at(row, col).to_bits());
    }
}

#[test]
fn a_nan_reaches_its_row_and_its_column_only() {
    let mut a =
        GuardedMatrix::new((9, 9), 0, |row, p| if (row, p) == (4, 8) { f32::NAN } else { 1.0 });
    let mut b =
        GuardedMatrix::new((9, 9), 0, |p, col| if (p, col) == (0, 8) { f32::NAN } else { 1.0 });
    let mut c = GuardedMatrix::unset((9, 9), 0);
    call("matmul", &[a.address(), b.address(), c.address(), 9, 9, 9, 9, 9, 9]);
    for (row, col) in (0..9).flat_map(|row| (0..9).map(move |col| (row, col))) {
        assert_eq!(c.at(row, col).is_nan(), row == 4 || col == 8, "{row}, {col}");
    }
}
