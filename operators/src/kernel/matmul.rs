//! `MatMul` and `Gemm`: batches of products, with an addend and a function behind them. A unit is a block of rows and columns of one product.

use super::memory::{In, Out};
use super::product::{Packed, Sum, converted};
use crate::element::with_type;
use crate::infer::strides_of;
use crate::operator::{Epilogue, Operator};
use crate::tensor::TensorType;

/// Rows of a unit.
const ROWS: usize = 64;
/// Columns of a unit.
const COLS: usize = 128;

/// A batch of products.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) trans_a: bool,
    pub(crate) trans_b: bool,
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    /// Outer extents of the result.
    pub(crate) outer: Vec<usize>,
    /// How far the matrices of `a` and `b` are apart, for each outer dimension; 0 where one serves all.
    pub(crate) a_steps: Vec<usize>,
    pub(crate) b_steps: Vec<usize>,
}

impl Batch {
    /// The batch of a `MatMul` of these extents.
    pub(crate) fn of_matmul(a: &[usize], b: &[usize]) -> Self {
        let (m, k) = match a {
            [.., m, k] => (*m, *k),
            other => (1, other[0]),
        };
        let n = if b.len() > 1 { b[b.len() - 1] } else { 1 };
        let outer_of = |shape: &[usize]| shape[..shape.len().saturating_sub(2)].to_vec();
        let outer = crate::infer::broadcast(&outer_of(a), &outer_of(b)).unwrap_or_default();
        let steps = |shape: &[usize], matrix: usize| {
            let own = outer_of(shape);
            let strides = strides_of(&own);
            let missing = outer.len() - own.len();
            let step = |at: usize| match at.checked_sub(missing) {
                Some(at) if own[at] != 1 => strides[at] * matrix,
                _ => 0,
            };
            (0..outer.len()).map(step).collect()
        };
        let (a_steps, b_steps) = (steps(a, m * k), steps(b, k * n));
        Self {
            m,
            n,
            k,
            trans_a: false,
            trans_b: false,
            alpha: 1.0,
            beta: 1.0,
            outer,
            a_steps,
            b_steps,
        }
    }

    /// The batch of a `Gemm`, with its epilogue; `None`: the operator is another one.
    pub(crate) fn of_gemm<'o>(
        operator: &'o Operator,
        a: &TensorType,
        output: &[usize],
    ) -> Option<(Self, &'o Epilogue)> {
        let Operator::Gemm { alpha, beta, trans_a, trans_b, epilogue } = operator else {
            return None;
        };
        let k = a.shape[usize::from(!trans_a)];
        let batch = Self {
            m: output[0],
            n: output[1],
            k,
            trans_a: *trans_a,
            trans_b: *trans_b,
            alpha: *alpha,
            beta: *beta,
            outer: Vec::new(),
            a_steps: Vec::new(),
            b_steps: Vec::new(),
        };
        Some((batch, epilogue))
    }

    pub(crate) fn row_blocks(&self) -> usize {
        self.m.div_ceil(ROWS)
    }

    pub(crate) fn col_blocks(&self) -> usize {
        self.n.div_ceil(COLS)
    }

    /// Blocks of one product.
    pub(crate) fn blocks(&self) -> usize {
        self.row_blocks() * self.col_blocks()
    }

    pub(crate) fn units(&self) -> usize {
        self.outer.iter().product::<usize>() * self.blocks()
    }

    fn firsts(&self, mut batch: usize) -> (usize, usize) {
        let (mut a, mut b) = (0, 0);
        for at in (0..self.outer.len()).rev() {
            let index = batch % self.outer[at];
            batch /= self.outer[at];
            a += index * self.a_steps[at];
            b += index * self.b_steps[at];
        }
        (a, b)
    }
}

/// Runs units of a batch. `added` is broadcast to the result.
pub(crate) fn run(
    batch: &Batch,
    [a, b, added]: [Option<&In<'_>>; 3],
    epilogue: &Epilogue,
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    let (Some(a), Some(b)) = (a, b) else { return };
    match output.ty.dtype {
        crate::DType::F16 | crate::DType::BF16 | crate::DType::F32 => {
            typed::<f32>(batch, (a, b, added), epilogue, output, units);
        }
        crate::DType::F64 => typed::<f64>(batch, (a, b, added), epilogue, output, units),
        _ => typed::<i64>(batch, (a, b, added), epilogue, output, units),
    }
}

fn typed<S: Sum>(
    batch: &Batch,
    (a, b, added): (&In<'_>, &In<'_>, Option<&In<'_>>),
    epilogue: &Epilogue,
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    let Batch { m, n, k, .. } = *batch;
    let (a, b) = (converted::<S>(a), converted::<S>(b));
    let added_values = added.map(|added| converted::<S>(added));
    let added_rows = added.map(|added| added_steps(&added.ty.shape, &output.ty.shape, batch));
    let (mut sums, mut own_rows) = (Vec::new(), Vec::new());
    let mut packed: Option<((usize, usize), Packed<S>)> = None;
    for unit in units.0..units.0 + units.1 {
        // Row blocks are inner, so that packed columns serve several.
        let (number, block) = (unit / batch.blocks(), unit % batch.blocks());
        let (column_block, row_block) = (block / batch.row_blocks(), block % batch.row_blocks());
        let (row, col) = (row_block * ROWS, column_block * COLS);
        let (rows, cols) = (ROWS.min(m - row), COLS.min(n - col));
        let (a_first, b_first) = batch.firsts(number);
        let (a, b) = (&a[a_first..a_first + m * k], &b[b_first..b_first + k * n]);
        let left: &[S] = if batch.trans_a {
            own_rows.clear();
            own_rows.extend((row..row + rows).flat_map(|row| (0..k).map(move |k| a[k * m + row])));
            &own_rows
        } else {
            &a[row * k..(row + rows) * k]
        };
        let stride;
        if m <= 4 && !batch.trans_b {
            stride = cols;
            few_rows((left, rows, k), (b, col, n), cols, &mut sums);
        } else {
            if packed.as_ref().is_none_or(|(of, _)| *of != (number, column_block)) {
                packed = Some(((number, column_block), pack(b, (batch.trans_b, k, n), col, cols)));
            }
            let Some((_, packed)) = &packed else { return };
            packed.times(left, rows, k, &mut sums);
            stride = packed.stride();
        }
        for r in 0..rows {
            let sums = &mut sums[r * stride..r * stride + cols];
            if batch.alpha != 1.0 {
                let alpha = S::factor(batch.alpha);
                sums.iter_mut().for_each(|sum| *sum = sum.mul(alpha));
            }
            if let (Some(added), Some(steps)) = (&added_values, &added_rows) {
                let beta = S::factor(batch.beta);
                let first = steps.first(number, row + r);
                for (at, sum) in sums.iter_mut().enumerate() {
                    let x = added[first + (col + at) * steps.column];
                    *sum = sum.add(if batch.beta == 1.0 { x } else { x.mul(beta) });
                }
            }
            S::finish(epilogue, sums);
            let to = (number * m + row + r) * n + col;
            with_type!(output.ty.dtype, T => {
                output.elements::<T>(to, cols).iter_mut().zip(sums.iter()).for_each(|(to, sum)| *to = sum.to());
            });
        }
    }
}

/// Few rows: each element of `b` is read once, in order.
fn few_rows<S: Sum>(
    (a, rows, k): (&[S], usize, usize),
    (b, col, n): (&[S], usize, usize),
    cols: usize,
    sums: &mut Vec<S>,
) {
    sums.clear();
    sums.resize(rows * cols, S::default());
    for at in 0..k {
        let b = &b[at * n + col..at * n + col + cols];
        for (row, sums) in sums.chunks_exact_mut(cols).enumerate() {
            let x = a[row * k + at];
            sums.iter_mut().zip(b).for_each(|(sum, b)| *sum = sum.add(x.mul(*b)));
        }
    }
}

fn pack<S: Sum>(
    b: &[S],
    (transposed, k, n): (bool, usize, usize),
    col: usize,
    cols: usize,
) -> Packed<S> {
    let mut packed = Packed::new(k, cols);
    if !transposed {
        (0..k).for_each(|at| packed.put(at, &b[at * n + col..at * n + col + cols]));
        return packed;
    }
    let mut row = vec![S::default(); cols];
    for at in 0..k {
        row.iter_mut().enumerate().for_each(|(column, x)| *x = b[(col + column) * k + at]);
        packed.put(at, &row);
    }
    packed
}

/// Where the addend of an element is.
struct AddedSteps {
    outer: Vec<(usize, usize)>,
    row: usize,
    column: usize,
}

impl AddedSteps {
    fn first(&self, mut batch: usize, row: usize) -> usize {
        let mut at = row * self.row;
        for (extent, step) in self.outer.iter().rev() {
            at += batch % extent * step;
            batch /= extent;
        }
        at
    }
}

fn added_steps(shape: &[usize], output: &[usize], batch: &Batch) -> AddedSteps {
    let own = strides_of(shape);
    let missing = output.len() - shape.len();
    let step = |at: usize| match at.checked_sub(missing) {
        Some(at) if shape[at] != 1 => own[at],
        _ => 0,
    };
    let outer = batch.outer.len();
    // The result of a vector has no rows or no columns.
    let inner: Vec<_> = (outer..output.len()).map(step).collect();
    let (row, column) = match (inner.as_slice(), batch.n) {
        ([row, column], _) => (*row, *column),
        ([one], 1) if output[outer] == batch.m => (*one, 0),
        ([one], _) => (0, *one),
        _ => (0, 0),
    };
    AddedSteps { outer: (0..outer).map(|at| (output[at], step(at))).collect(), row, column }
}
