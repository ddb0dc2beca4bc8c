//! The host side of `cholesky`.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use pto_aicore_kernels::func;
use pto_host::{Device, DeviceBuffer, Error as DeviceError};

use crate::args::Size;
use crate::cholesky::reference::{expected, factor, product};
use crate::cholesky::stream::{Args, tasks};
use crate::host::check::{Expected, Verdict, compare};
use crate::host::job::{Check, GraphSize, Prepared, check_room, index};
use crate::host::random::Random;
use crate::host::tensor::count;
use crate::host::{
    Description, Error, Example, Inputs, ParamSpec, Params, Program, Sizes, Tensor, TensorSpec,
};
use crate::streaming::LINE;

/// See [`crate::cholesky`].
pub struct Cholesky;

/// What the matrices that are drawn have on their diagonal, beside the random part. That has its eigenvalues between about -1.2
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
    fn description(&self) -> Description {
        Description {
            name: "cholesky",
            summary: "the factor of a positive definite matrix, in tiles, in place; both kinds of cores",
            program: Program::Tensors,
            params: PARAMS,
            sizes: Sizes {
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
        let columns = n.get().div_ceil(tile.get());
        let size = GraphSize::streamed(tasks(columns));
        check_room(device, &[count(&[n.get(); 2]), columns * LINE], &size)?;
        let a = match inputs.f32("a") {
            Some(values) => values.to_vec(),
            None => drawn(n, params.get("seed")),
        };
        let matrix = device.upload(&a)?;
        let status = device.zeroed::<i32>(index(columns * LINE))?;
        let chained = chained(device, tile);
        let args = Args { matrix: matrix.address(), status: status.address(), n, tile, chained };
        let (words, n) = (args.words().to_vec(), index(n.get()));
        let check = FactorCheck { a, n, matrix, status, expected: Vec::new() };
        Prepared::new(self.name(), (words, &Args::NAMES), size, Box::new(check))
    }
}

/// Products that one core runs in one dispatch at most.
const CHAINED: u64 = 16;

/// Nanoseconds that a chain of products may take: a longer one keeps other cores waiting.
const CHAIN_NS: u64 = 25_000;

/// How many products of whole tiles a chain has: as many as fit [`CHAIN_NS`], at least one.
pub(crate) fn chained(device: &Device, tile: Size) -> Size {
    let tile = tile.get();
    let product = device.expected_kernel_ns(func::CHOLESKY_GEMM, &[0, 0, 0, tile, tile, tile]);
    let fit = CHAIN_NS.checked_div(product).unwrap_or(CHAINED).clamp(1, CHAINED);
    Size::new(fit).unwrap_or(Size::ONE)
}

/// A symmetric matrix with eigenvalues between about 1.8 and 4.2.
#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
pub(crate) fn drawn(n: Size, seed: u64) -> Vec<f32> {
    let (n, scale) = (index(n.get()), 1.0 / (n.get() as f64).sqrt());
    let mut random = Random::new(seed, "a");
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
    /// The factor, with zeros above the diagonal, where the matrix still stands.
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
