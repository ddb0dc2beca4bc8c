//! Operands with guards, a seeded generator, error bounds, and the call itself.

/// The unit roundoff of `f32`.
pub(crate) const U: f64 = 1.0 / (1 << 24) as f64;
/// The smallest subnormal `f32`: an absolute error that underflow may add.
pub(crate) const TINY: f64 = 1.401_298_464_324_817e-45;
/// Lengths around the widths of groups and tiles.
pub(crate) const LENGTHS: [usize; 12] = [0, 1, 3, 7, 8, 9, 15, 16, 17, 33, 64, 100];

/// A NaN with a payload that no arithmetic produces.
const GUARD: u32 = 0x7fc0_dead;
const MARGIN: usize = 5;

/// The relative error of `n` roundings.
pub(crate) fn gamma(n: usize) -> f64 {
    let nu = n as f64 * U;
    nu / (1.0 - nu)
}

#[track_caller]
pub(crate) fn assert_close(actual: f32, expected: f64, tolerance: f64, what: impl Fn() -> String) {
    let error = (f64::from(actual) - expected).abs();
    // Not `error > tolerance`: NaN must fail.
    assert!(
        error <= tolerance,
        "{}: {actual:e} is not {expected:e}: error {error:e}, tolerance {tolerance:e}",
        what()
    );
}

/// Calls a kernel with these arguments, followed by a block context that it does not look at.
pub(crate) fn call(name: &str, args: &[u64]) {
    call_with(name, args, u64::MAX);
}

/// Calls a kernel with these arguments, followed by this block context.
pub(crate) fn call_with(name: &str, args: &[u64], context: u64) {
    let kernel = pto_aicore_kernels::by_name(name).expect("a library kernel");
    assert_eq!(args.len(), kernel.args.len(), "{name}");
    let mut words = args.to_vec();
    words.push(context);
    // SAFETY: the tests pass operands of the sizes that they name, in the order of `kernel.args`.
    unsafe { (kernel.entry)(words.as_ptr()) }
}

/// xorshift64*: not the generator of the code under test.
pub(crate) struct XorShift64(u64);

impl XorShift64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Uniform in `-limit .. limit`.
    pub(crate) fn within(&mut self, limit: f64) -> f32 {
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        round((2.0 * unit - 1.0) * limit)
    }
}

/// The nearest `f32`.
#[expect(clippy::cast_possible_truncation, reason = "rounding is the purpose")]
pub(crate) fn round(value: f64) -> f32 {
    value as f32
}

/// A strided matrix in memory of its own, with guards before, after and between the rows.
#[derive(Clone)]
pub(crate) struct GuardedMatrix {
    memory: Vec<f32>,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) ld: usize,
}

impl GuardedMatrix {
    /// `f(row, col)` everywhere; `gap` guard elements between rows.
    pub(crate) fn new(
        (rows, cols): (usize, usize),
        gap: usize,
        mut f: impl FnMut(usize, usize) -> f32,
    ) -> Self {
        let ld = cols + gap;
        let mut operand = Self::unset((rows, cols), gap);
        for row in 0..rows {
            for col in 0..cols {
                operand.memory[MARGIN + row * ld + col] = f(row, col);
            }
        }
        operand
    }

    pub(crate) fn random(
        shape: (usize, usize),
        gap: usize,
        limit: f64,
        rng: &mut XorShift64,
    ) -> Self {
        Self::new(shape, gap, |_, _| rng.within(limit))
    }

    pub(crate) fn vector(elements: &[f32]) -> Self {
        Self::new((1, elements.len()), 0, |_, col| elements[col])
    }

    /// Guards everywhere: an output that must not be read.
    pub(crate) fn unset((rows, cols): (usize, usize), gap: usize) -> Self {
        let ld = cols + gap;
        Self { memory: vec![f32::from_bits(GUARD); rows * ld + 2 * MARGIN], rows, cols, ld }
    }

    /// The argument word: the address of the first element.
    pub(crate) fn address(&mut self) -> u64 {
        self.memory[MARGIN..].as_mut_ptr().expose_provenance() as u64
    }

    /// The stride as an argument word.
    pub(crate) fn stride(&self) -> u64 {
        self.ld as u64
    }

    pub(crate) fn at(&self, row: usize, col: usize) -> f32 {
        assert!(row < self.rows && col < self.cols);
        self.memory[MARGIN + row * self.ld + col]
    }

    pub(crate) fn f64_at(&self, row: usize, col: usize) -> f64 {
        f64::from(self.at(row, col))
    }

    pub(crate) fn row(&self, row: usize) -> &[f32] {
        &self.memory[MARGIN + row * self.ld..][..self.cols]
    }

    pub(crate) fn bits(&self) -> Vec<u32> {
        self.memory.iter().map(|element| element.to_bits()).collect()
    }

    /// Nothing outside the rows has been written.
    #[track_caller]
    pub(crate) fn assert_guards(&self) {
        for (i, element) in self.memory.iter().enumerate() {
            let inside = i
                .checked_sub(MARGIN)
                .is_some_and(|i| self.ld > 0 && i / self.ld < self.rows && i % self.ld < self.cols);
            assert!(inside || element.to_bits() == GUARD, "wrote outside: element {i}: {element}");
        }
    }
}
