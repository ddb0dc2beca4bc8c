//! The host side of `cholesky`.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use pto_aicore_kernels::func;
use pto_host::{Device, DeviceBuffer, Error as DeviceError};

use crate::args::Size;
use crate::cholesky::graph::{Args, CHAINED, CHANGED};
use crate::cholesky::reference::{expected, factor, product};
use crate::host::check::{Expected, Verdict, compare};
use crate::host::job::{Check, GraphSize, Prepared, check_room, index};
use crate::host::random::Rng;
use crate::host::tensor::count;
use crate::host::{
    Error, Example, ExampleDescription, Inputs, ParamSpec, Params, Program, Tensor, TensorSpec,
    TestSizes,
};
use crate::streaming::{LINE, WIDTH};

/// See [`crate::cholesky`].
pub struct Cholesky;

/// What the matrices that are drawn have on their diagonal, in addition to the random part. That has its eigenvalues between about -1.2
/// and 1.2, whatever the size.
const DIAGONAL: f64 = 3.0;

pub(crate) static PARAMS: &[ParamSpec] = &[
    ParamSpec { name: "n", default: 1024, min: 1, max: 16_384, help: "rows of the matrix" },
    ParamSpec { name: "tile", default: 64, min: 1, max: 16_384, help: "rows of a tile" },
    ParamSpec::seed("of the random matrix"),
];

static INPUTS: &[TensorSpec] = &[TensorSpec::f32(
    "a",
    &["n", "n"],
    "a symmetric positive definite matrix, of which the lower triangle is read",
)];

static OUTPUTS: &[TensorSpec] =
    &[TensorSpec::f32("l", &["n", "n"], "its factor: lower triangular, l @ l^T = a")];

impl Example for Cholesky {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "cholesky",
            summary: "the factor of a positive definite matrix, in tiles, in place; both kinds of cores",
            program: Program::Graph,
            params: PARAMS,
            sizes: TestSizes {
                whole: &[("n", "100"), ("tile", "16")],
                little: &[("n", "50"), ("tile", "16")],
            },
            inputs: INPUTS,
            outputs: OUTPUTS,
        }
    }

    fn prepare(
        &self,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        let (n, tile) = (params.extent("n")?, params.extent("tile")?);
        let (columns, chained) = (n.get().div_ceil(tile.get()), chained(device, tile));
        let size = room(columns, chained.get());
        check_room(device, &[count(&[n.get(); 2]), columns * LINE], &size)?;
        let a = match inputs.f32("a") {
            Some(values) => values.to_vec(),
            None => drawn(n, params.get("seed")),
        };
        let matrix = device.upload(&a)?;
        let status = device.zeroed::<i32>(index(columns * LINE))?;
        let args = Args { matrix: matrix.address(), status: status.address(), n, tile, chained };
        let (words, n) = (args.words().to_vec(), index(n.get()));
        let check = FactorCheck { a, n, matrix, status, expected: Vec::new() };
        Prepared::new(self.name(), (words, &Args::NAMES), size, Box::new(check))
    }
}

/// Argument words of each kernel.
const WORDS: KernelCounts = KernelCounts { potrf: 5, trsm: 6, syrk: 6, gemm: 9 };

/// Words of a chain of both products: a header, two links, their arguments, and what varies.
const WORDS_PER_CHAIN: u64 = 1 + (2 + WORDS.gemm + 2) + (2 + WORDS.syrk);

/// A number for each kernel.
struct KernelCounts {
    potrf: u64,
    trsm: u64,
    syrk: u64,
    gemm: u64,
}

/// Tasks of a matrix of so many columns of tiles.
const fn tasks(columns: u64) -> KernelCounts {
    // One potrf a column, one trsm and one syrk for each pair of columns, one gemm for each triple.
    let pairs = columns * columns.saturating_sub(1) / 2;
    let triples = pairs * columns.saturating_sub(2) / 3;
    KernelCounts { potrf: columns, trsm: pairs, syrk: pairs, gemm: triples }
}

/// The size of the graph of so many columns of tiles, each part of which has `part`. Where the program does not remember all rows and parts, there are more
/// edges: [`room`] has them.
pub(crate) fn graph_size(columns: u64, part: u64) -> GraphSize {
    let tasks = tasks(columns);
    // One to each factor but the first, from what has changed it.
    let mut edges = columns - 1;
    for column in 0..columns {
        let is_changed = u64::from(column > 0);
        for row in column + 1..columns {
            let (products, chains) = (row - column - 1, row / part - (column + 1) / part + 1);
            // Of the first part the solution has waited.
            let waited = u64::from((column + 1) / part == column / part);
            // A solution waits for the factor, a chain for both solutions of each product, of which it names that of its row once; a kernel of a chain
            // for the one before. Both wait for what has changed their tiles.
            edges += 1 + is_changed + chains + products + (products + 1 - chains);
            edges += is_changed * (chains - waited);
        }
    }
    GraphSize {
        tasks: tasks.potrf + tasks.trsm + tasks.syrk + tasks.gemm,
        arg_words: tasks.potrf * WORDS.potrf
            + tasks.trsm * WORDS.trsm
            + tasks.syrk * WORDS.syrk
            + tasks.gemm * WORDS.gemm,
        edges,
    }
}

/// Room for the graph, whether its builder has chains or not: a chain of few products takes more words than its tasks. Where the program does not remember
/// all rows, or all rows and parts, each solution, or each chain, may wait for one more, whose slot it takes.
pub(crate) fn room(columns: u64, part: u64) -> GraphSize {
    let size = graph_size(columns, part);
    let KernelCounts { potrf, trsm, .. } = tasks(columns);
    let parts = 1 + (columns - 1) / part;
    let chains = trsm * parts;
    let words = potrf * WORDS.potrf + trsm * WORDS.trsm + chains * WORDS_PER_CHAIN;
    let forgets_rows = columns > WIDTH as u64;
    let forgets_parts = columns * parts > CHANGED as u64;
    let more = u64::from(forgets_rows) * trsm + u64::from(forgets_parts) * chains;
    GraphSize { arg_words: size.arg_words.max(words), edges: size.edges + more, ..size }
}

/// Nanoseconds that a chain of products may take: a longer one keeps other cores waiting.
const CHAIN_NS: u64 = 25_000;

/// How many products of whole tiles a chain has: as many as fit [`CHAIN_NS`], at least one.
pub(crate) fn chained(device: &Device, tile: Size) -> Size {
    let tile = tile.get();
    let product = device.expected_kernel_ns(func::CHOLESKY_GEMM, &[0, 0, 0, tile, tile, tile]);
    let fit = CHAIN_NS.checked_div(product).unwrap_or(CHAINED as u64).clamp(1, CHAINED as u64);
    Size::new(fit).unwrap_or(Size::ONE)
}

/// A symmetric matrix with eigenvalues between about 1.8 and 4.2.
#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
pub(crate) fn drawn(n: Size, seed: u64) -> Vec<f32> {
    let (n, scale) = (index(n.get()), 1.0 / (n.get() as f64).sqrt());
    let mut random = Rng::new(seed, "a");
    let mut a = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let diagonal = if i == j { DIAGONAL } else { 0.0 };
            let element = (f64::from(random.unit()) * scale + diagonal) as f32;
            a[i * n + j] = element;
            a[j * n + i] = element;
        }
    }
    a
}

/// The matrix, which is overwritten, and what its factor should be.
struct FactorCheck {
    a: Vec<f32>,
    n: usize,
    matrix: DeviceBuffer<f32>,
    status: DeviceBuffer<i32>,
    /// Of the factor, once computed.
    expected: Vec<Expected>,
}

impl FactorCheck {
    /// The factor, with zeros above the diagonal, in the memory of the matrix.
    fn found(&self) -> Result<Vec<f32>, DeviceError> {
        let mut found = self.matrix.read()?;
        for (i, row) in found.chunks_mut(self.n).enumerate() {
            row[i + 1..].fill(0.0);
        }
        Ok(found)
    }

    fn shape(&self) -> Vec<u64> {
        vec![self.n as u64; 2]
    }

    /// The first row without a pivot, from 0, as the kernels report it.
    fn failed_row(&self) -> Result<Option<u64>, DeviceError> {
        let status = self.status.read()?;
        let rows = status.into_iter().step_by(index(LINE));
        let failed = rows.filter_map(|row| u64::try_from(row).ok()?.checked_sub(1));
        Ok(failed.min())
    }
}

impl Check for FactorCheck {
    fn reset(&mut self) -> Result<(), DeviceError> {
        self.status.write(&vec![-1; self.status.len()])?;
        self.matrix.write(&self.a)
    }

    fn verify(&mut self) -> Result<Verdict, Error> {
        if let Some(row) = self.failed_row()? {
            return Err(Error::NotDefinite { row });
        }
        if self.expected.is_empty() {
            let l = factor(&self.a, self.n);
            let l = l.map_err(|row| Error::NotDefinite { row: row as u64 })?;
            self.expected = expected(&l, self.n);
        }
        let found = self.found()?;
        let factor = compare("l", &self.shape(), &found, &self.expected);
        let mut a = self.a.clone();
        a.chunks_mut(self.n).enumerate().for_each(|(i, row)| row[i + 1..].fill(0.0));
        let product = compare("a", &self.shape(), &a, &product(&found, self.n));
        // Of both the lower triangle.
        let elements = (self.n * (self.n + 1)) as u64;
        Ok(Verdict { checked: elements, ..factor.and(product) })
    }

    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError> {
        Ok(vec![("l", Tensor::f32(self.shape(), self.found()?))])
    }
}
