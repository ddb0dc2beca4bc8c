//! `TileKernelBuilder`: a tile kernel, instruction by instruction. Values are numbers, as they come.

use pto_workload::kernel::{KernelBuilder, KernelError, TileValue};
use pto_workload::tile::op::{Binary, Compare, Reduce, Spread, Unary};
use pto_workload::tile::{DType, Direction};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::failure::unknown;

/// Builds a kernel; every instruction is checked when it is added.
#[pyclass(module = "pto_runtime._native")]
pub(crate) struct TileKernelBuilder {
    /// `None` once it is finished.
    builder: Option<KernelBuilder>,
    /// The values, by the numbers that Python has for them.
    values: Vec<TileValue>,
}

type Outcome = Result<TileValue, KernelError>;

fn wrong(error: KernelError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn dtype(name: &str) -> PyResult<DType> {
    DType::from_name(name).ok_or_else(|| unknown("element type", name, "f16, f32, i32, .."))
}

fn direction(name: &str) -> PyResult<Direction> {
    let found = Direction::ALL.into_iter().find(|direction| direction.name() == name);
    found.ok_or_else(|| unknown("direction", name, "in, out, inout"))
}

fn spread(name: &str) -> PyResult<Spread> {
    Spread::from_name(name).ok_or_else(|| unknown("spread", name, "row, col, one"))
}

impl TileKernelBuilder {
    fn add(&mut self, add: impl FnOnce(&mut KernelBuilder) -> Outcome) -> PyResult<usize> {
        let finished = || PyValueError::new_err("The kernel is finished.");
        let found = add(self.builder.as_mut().ok_or_else(finished)?).map_err(wrong)?;
        self.values.push(found);
        Ok(self.values.len() - 1)
    }

    fn value(&self, number: usize) -> PyResult<TileValue> {
        let missing = || PyValueError::new_err(format!("The kernel has no value {number}."));
        self.values.get(number).copied().ok_or_else(missing)
    }

    fn mask(&self, number: Option<usize>) -> PyResult<Option<TileValue>> {
        number.map(|number| self.value(number)).transpose()
    }
}

#[pymethods]
impl TileKernelBuilder {
    #[new]
    fn new(name: &str) -> Self {
        Self { builder: Some(KernelBuilder::new(name)), values: Vec::new() }
    }

    fn tensor(&mut self, name: &str, way: &str, of: &str, shape: [u64; 2]) -> PyResult<usize> {
        let (way, of) = (direction(way)?, dtype(of)?);
        self.add(|builder| builder.tensor(name, way, of, shape))
    }

    fn scalar(&mut self, name: &str, of: &str) -> PyResult<usize> {
        let of = dtype(of)?;
        self.add(|builder| builder.scalar(name, of))
    }

    /// Element type, rows, columns, and whether it is a scalar.
    fn type_of(&self, value: usize) -> PyResult<(&'static str, u16, u16, bool)> {
        let value = self.value(value)?;
        let found = self.builder.as_ref().map(|builder| builder.type_of(value));
        let found = found.ok_or_else(|| PyValueError::new_err("The kernel is finished."))?;
        Ok((found.dtype.name(), found.rows, found.cols, found.is_scalar))
    }

    #[pyo3(signature = (tensor, offset, mask=None))]
    fn load(&mut self, tensor: usize, offset: [u16; 2], mask: Option<usize>) -> PyResult<usize> {
        let (tensor, mask) = (self.value(tensor)?, self.mask(mask)?);
        self.add(|builder| builder.load(tensor, offset, mask))
    }

    #[pyo3(signature = (tensor, source, offset, mask=None))]
    fn store(
        &mut self,
        tensor: usize,
        source: usize,
        offset: [u16; 2],
        mask: Option<usize>,
    ) -> PyResult<()> {
        let (tensor, source, mask) = (self.value(tensor)?, self.value(source)?, self.mask(mask)?);
        self.add(|builder| builder.store(tensor, source, offset, mask).map(|()| source)).map(drop)
    }

    fn constant(&mut self, value: f64, of: &str) -> PyResult<usize> {
        let of = dtype(of)?;
        self.add(|builder| builder.constant(value, of))
    }

    fn constant_bits(&mut self, bits: u64, of: &str) -> PyResult<usize> {
        let of = dtype(of)?;
        self.add(|builder| builder.constant_bits(bits, of))
    }

    fn zeros(&mut self, of: &str, shape: [u16; 2]) -> PyResult<usize> {
        let of = dtype(of)?;
        self.add(|builder| builder.zeros(of, shape))
    }

    fn iota(&mut self, of: &str, cols: u16) -> PyResult<usize> {
        let of = dtype(of)?;
        self.add(|builder| builder.iota(of, cols))
    }

    fn unary(&mut self, function: &str, x: usize) -> PyResult<usize> {
        let x = self.value(x)?;
        let found = Unary::from_name(function);
        let found = found.ok_or_else(|| unknown("function", function, "exp, sqrt, .."))?;
        self.add(|builder| builder.unary(found, x))
    }

    /// `by` is `row`, `col` or `one` where the shapes do not say it.
    #[pyo3(signature = (function, a, b, by=None))]
    fn binary(&mut self, function: &str, a: usize, b: usize, by: Option<&str>) -> PyResult<usize> {
        let (a, b, by) = (self.value(a)?, self.value(b)?, by.map(spread).transpose()?);
        if let Some(found) = Compare::from_name(function) {
            return self.add(|builder| builder.compare(found, a, b));
        }
        let found = Binary::from_name(function);
        let found = found.ok_or_else(|| unknown("function", function, "add, mul, less, .."))?;
        self.add(|builder| match by {
            Some(by) => builder.spread(found, a, b, by),
            None => builder.binary(found, a, b),
        })
    }

    fn select(&mut self, mask: usize, a: usize, b: usize) -> PyResult<usize> {
        let (mask, a, b) = (self.value(mask)?, self.value(a)?, self.value(b)?);
        self.add(|builder| builder.select(mask, a, b))
    }

    fn reduce(&mut self, function: &str, x: usize) -> PyResult<usize> {
        let x = self.value(x)?;
        let found = Reduce::from_name(function);
        let found = found.ok_or_else(|| unknown("reduction", function, "rowsum, colmax, .."))?;
        self.add(|builder| builder.reduce(found, x))
    }

    fn convert(&mut self, of: &str, x: usize) -> PyResult<usize> {
        let (of, x) = (dtype(of)?, self.value(x)?);
        self.add(|builder| builder.convert(of, x))
    }

    #[pyo3(signature = (a, b, acc=None))]
    fn matmul(&mut self, a: usize, b: usize, acc: Option<usize>) -> PyResult<usize> {
        let (a, b, acc) = (self.value(a)?, self.value(b)?, self.mask(acc)?);
        self.add(|builder| builder.matmul(a, b, acc))
    }

    /// Every second column, from the column `first` (0 or 1) on.
    fn slice(&mut self, x: usize, first: u8) -> PyResult<usize> {
        let x = self.value(x)?;
        self.add(|builder| builder.slice(x, first == 1))
    }

    fn interleave(&mut self, a: usize, b: usize) -> PyResult<usize> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        self.add(|builder| builder.interleave(a, b))
    }

    fn broadcast(&mut self, x: usize, shape: [u16; 2]) -> PyResult<usize> {
        let x = self.value(x)?;
        self.add(|builder| builder.broadcast(x, shape))
    }

    fn sort32(&mut self, scores: usize, indices: usize) -> PyResult<usize> {
        let (scores, indices) = (self.value(scores)?, self.value(indices)?);
        self.add(|builder| builder.sort32(scores, indices))
    }

    fn topk(&mut self, pairs: usize, k: u16) -> PyResult<usize> {
        let pairs = self.value(pairs)?;
        self.add(|builder| builder.topk(pairs, k))
    }

    fn add_cycles(&mut self, x: usize) -> PyResult<()> {
        let x = self.value(x)?;
        self.add(|builder| builder.add_cycles(x).map(|()| x)).map(drop)
    }

    /// The kernel in its textual form.
    fn finish(&mut self) -> PyResult<String> {
        let finished = || PyValueError::new_err("The kernel is finished.");
        let kernel = self.builder.take().ok_or_else(finished)?.finish().map_err(wrong)?;
        Ok(kernel.to_string())
    }
}
