//! Products and decompositions of matrices. Decompositions are computed in `f64`, whatever the type.

use pto_operators::{DType, Epilogue, Operator, elements};

use super::reduce::as_output;
use crate::call::{OperatorCall, TensorRef};
use crate::element::{ElementType, F64};
use crate::graph::CallGraph;
use crate::plan::CompiledCall;
use crate::refusal::{Checked, Rejection};
use crate::value::{Value, doubles};

/// (self, other, kind of arithmetic) or (self, other): the product, batches broadcast.
pub(crate) fn product(call: &OperatorCall) -> Checked<CompiledCall> {
    let (a, b, out) = (call.tensor(0)?, call.tensor(1)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let (a, b) = (graph.tensor(a), graph.tensor(b));
    let [a, b] = graph.promote(a, b);
    let [a, b] = [graph.numeric(a), graph.numeric(b)];
    let result = graph.one(Operator::MatMul { epilogue: Epilogue::None }, &[a, b])?;
    let result = as_output(&mut graph, result, out.shape())?;
    graph.finish(&[(result, out)])
}

/// An equation of Einstein's notation: the letters of each operand, and of the result.
struct Equation {
    operands: Vec<Vec<char>>,
    result: Vec<char>,
}

impl Equation {
    fn of(text: &str, ranks: &[usize]) -> Result<Self, String> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (text.as_str(), None),
        };
        let parts: Vec<&str> = left.split(',').collect();
        if parts.len() != ranks.len() {
            return Err(format!(
                "has {} operands, and there are {} tensors",
                parts.len(),
                ranks.len()
            ));
        }
        // Dimensions that dots stand for have upper letters beyond those of text.
        let dots = |count: usize| -> Vec<char> {
            (0..count)
                .rev()
                .filter_map(|at| char::from_u32(0x100 + u32::try_from(at).ok()?))
                .collect()
        };
        let expand = |part: &str, rank: usize| -> Result<Vec<char>, String> {
            let letters: Vec<char> = part.chars().filter(|c| *c != '.').collect();
            if letters.iter().any(|c| !c.is_ascii_alphabetic()) {
                return Err(format!("has the part {part}; use letters and ..."));
            }
            let Some((before, after)) = part.split_once("...") else {
                return if letters.len() == rank {
                    Ok(letters)
                } else {
                    Err(format!("has {} letters for a tensor of {rank} dimensions", letters.len()))
                };
            };
            let hidden = rank
                .checked_sub(letters.len())
                .ok_or_else(|| format!("has too many letters in {part}"))?;
            Ok(before.chars().chain(dots(hidden)).chain(after.chars()).collect())
        };
        let operands = parts
            .iter()
            .zip(ranks)
            .map(|(part, rank)| expand(part, *rank))
            .collect::<Result<Vec<_>, _>>()?;
        let hidden = operands
            .iter()
            .map(|letters| letters.iter().filter(|c| !c.is_ascii()).count())
            .max()
            .unwrap_or(0);
        let result = match right {
            Some(right) => {
                let letters = right.chars().filter(|c| *c != '.').count();
                let is_dotted = right.contains("...");
                expand(right, letters + if is_dotted { hidden } else { 0 })?
            }
            None => {
                let mut once: Vec<char> =
                    operands.iter().flatten().copied().filter(char::is_ascii).collect();
                let all = once.clone();
                once.retain(|c| all.iter().filter(|other| *other == c).count() == 1);
                once.sort_unstable();
                dots(hidden).into_iter().chain(once).collect()
            }
        };
        if let Some(letter) =
            result.iter().find(|c| !operands.iter().any(|letters| letters.contains(c)))
        {
            return Err(format!("has the letter {letter} in the result, and in no operand"));
        }
        Ok(Self { operands, result })
    }
}

/// (list, equation): Einstein's summation.
pub(crate) fn einsum(call: &OperatorCall) -> Checked<CompiledCall> {
    let (list, out) = (call.list(0)?, call.out(0)?);
    let ranks: Vec<usize> = list.iter().map(TensorRef::rank).collect();
    let wrong = |rule: String| Rejection::invalid(call.name(1), rule);
    let Equation { operands, result } = Equation::of(call.text(1), &ranks).map_err(wrong)?;
    let mut letters: Vec<(char, usize)> = Vec::new();
    for (names, tensor) in operands.iter().zip(list) {
        for (name, extent) in names.iter().zip(tensor.shape()) {
            match letters.iter_mut().find(|(known, _)| known == name) {
                None => letters.push((*name, *extent)),
                Some((_, known)) if *known == 1 => *known = *extent,
                Some((_, known)) if *extent == 1 || known == extent => {}
                Some((_, known)) => {
                    return Err(wrong(format!(
                        "gives the letter {name} the extents {known} and {extent}"
                    )));
                }
            }
        }
    }
    // Letters of the result first, so that sums are the inner loops.
    letters.sort_by_key(|(name, _)| !result.contains(name));
    letters[..result.len()].sort_by_key(|(name, _)| result.iter().position(|c| c == name));
    let extents: Vec<usize> = letters.iter().map(|(_, extent)| *extent).collect();
    let kept: usize = extents[..result.len()].iter().product();
    let summed: usize = extents[result.len()..].iter().product();
    let strides: Vec<Vec<usize>> = operands
        .iter()
        .zip(list)
        .map(|(names, tensor)| {
            let own = crate::call::strides(tensor.shape());
            letters
                .iter()
                .map(|(letter, _)| {
                    names
                        .iter()
                        .zip(tensor.shape())
                        .zip(&own)
                        .filter(|((name, extent), _)| *name == letter && **extent != 1)
                        .map(|(_, stride)| usize::try_from(*stride).unwrap_or(0))
                        .sum()
                })
                .collect()
        })
        .collect();
    let shape: Vec<usize> = extents[..result.len()].to_vec();
    let mut graph = CallGraph::new(call);
    let element =
        list.iter().fold(list[0].element, |element, tensor| element.promoted(tensor.element));
    let inputs: Vec<_> = list.iter().map(|tensor| graph.tensor(tensor)).collect();
    let is_single = element == ElementType::Complex64;
    let is_complex = element.is_complex();
    let made = graph.own(
        &inputs,
        &[(if is_complex { element } else { F64 }, shape.clone())],
        Box::new(move |given| {
            let values: Vec<Vec<[f64; 2]>> = given.iter().map(|value| value.pairs()).collect();
            let mut sums = Vec::with_capacity(kept);
            let mut at = vec![0_usize; extents.len()];
            for _ in 0..kept {
                let mut sum = [0.0, 0.0];
                for _ in 0..summed {
                    let mut term = [1.0, 0.0];
                    for (values, strides) in values.iter().zip(&strides) {
                        let place: usize =
                            at.iter().zip(strides).map(|(at, stride)| at * stride).sum();
                        let factor = values[place];
                        term = if is_complex {
                            [
                                term[0] * factor[0] - term[1] * factor[1],
                                term[0] * factor[1] + term[1] * factor[0],
                            ]
                        } else {
                            [term[0] * factor[0], 0.0]
                        };
                    }
                    sum = [sum[0] + term[0], sum[1] + term[1]];
                    step(&mut at, &extents);
                }
                sums.push(sum);
            }
            if is_complex {
                return Ok(vec![Value::of_pairs(&shape, &sums, is_single)]);
            }
            Ok(vec![Value::Real(doubles(
                &shape,
                &sums.iter().map(|sum| sum[0]).collect::<Vec<_>>(),
            ))])
        }),
    );
    graph.finish(&[(made[0], out)])
}

/// The next indices.
fn step(at: &mut [usize], extents: &[usize]) {
    for (at, extent) in at.iter_mut().zip(extents).rev() {
        *at += 1;
        if *at < *extent {
            return;
        }
        *at = 0;
    }
}

/// A matrix, row by row.
#[derive(Clone)]
struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    fn new(rows: usize, columns: usize, values: &[f64]) -> Self {
        Self { rows, columns, values: values.to_vec() }
    }

    fn identity(rows: usize, columns: usize) -> Self {
        let mut made = Self::new(rows, columns, &vec![0.0; rows * columns]);
        (0..rows.min(columns)).for_each(|at| *made.at(at, at) = 1.0);
        made
    }

    fn get(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.columns + column]
    }

    fn at(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.values[row * self.columns + column]
    }

    fn transposed(&self) -> Self {
        let values: Vec<f64> = (0..self.columns)
            .flat_map(|column| (0..self.rows).map(move |row| (row, column)))
            .map(|(row, column)| self.get(row, column))
            .collect();
        Self { rows: self.columns, columns: self.rows, values }
    }

    /// The first rows and columns.
    fn part(&self, rows: usize, columns: usize) -> Self {
        let values = (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(row, column)| self.get(row, column))
            .collect();
        Self { rows, columns, values }
    }

    /// Gauss-Jordan with the largest pivot: the inverse if there is one, the sign of the determinant, and the logarithm of its size.
    fn eliminated(&self) -> (Option<Self>, f64, f64) {
        let n = self.rows;
        let (mut a, mut inverse) = (self.clone(), Self::identity(n, n));
        let (mut sign, mut log) = (1.0, 0.0);
        for column in 0..n {
            let pivot = (column..n)
                .max_by(|x, y| a.get(*x, column).abs().total_cmp(&a.get(*y, column).abs()))
                .unwrap_or(column);
            let value = a.get(pivot, column);
            if value == 0.0 || value.is_nan() {
                let log = if value == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
                return (None, if value == 0.0 { 0.0 } else { f64::NAN }, log);
            }
            if pivot != column {
                sign = -sign;
                for at in 0..n {
                    a.values.swap(pivot * n + at, column * n + at);
                    inverse.values.swap(pivot * n + at, column * n + at);
                }
            }
            sign *= value.signum();
            log += value.abs().ln();
            for at in 0..n {
                *a.at(column, at) /= value;
                *inverse.at(column, at) /= value;
            }
            for row in (0..n).filter(|row| *row != column) {
                let factor = a.get(row, column);
                if factor != 0.0 {
                    for at in 0..n {
                        *a.at(row, at) -= factor * a.get(column, at);
                        *inverse.at(row, at) -= factor * inverse.get(column, at);
                    }
                }
            }
        }
        (Some(inverse), sign, log)
    }

    /// Householder's: an orthogonal matrix of all rows, and an upper triangle.
    fn orthogonal(&self) -> (Self, Self) {
        let (m, n) = (self.rows, self.columns);
        let (mut q, mut r) = (Self::identity(m, m), self.clone());
        for column in 0..n.min(m.saturating_sub(1)) {
            let norm = (column..m).map(|row| r.get(row, column).powi(2)).sum::<f64>().sqrt();
            if norm == 0.0 {
                continue;
            }
            let mut v: Vec<f64> = (column..m).map(|row| r.get(row, column)).collect();
            v[0] += norm.copysign(v[0]);
            let length: f64 = v.iter().map(|x| x * x).sum();
            let reflect = |matrix: &mut Self, by_row: bool| {
                let others = if by_row { matrix.columns } else { matrix.rows };
                for other in 0..others {
                    let place = |at: usize| {
                        if by_row { (column + at, other) } else { (other, column + at) }
                    };
                    let dot: f64 = v
                        .iter()
                        .enumerate()
                        .map(|(at, x)| x * matrix.get(place(at).0, place(at).1))
                        .sum();
                    for (at, x) in v.iter().enumerate() {
                        *matrix.at(place(at).0, place(at).1) -= 2.0 * dot / length * x;
                    }
                }
            };
            reflect(&mut r, true);
            reflect(&mut q, false);
            (column + 1..m).for_each(|row| *r.at(row, column) = 0.0);
        }
        (q, r)
    }

    /// One-sided Jacobi rotations (of at least as many rows as columns): left vectors times values, values, right vectors; the largest value first.
    fn singular(&self) -> (Self, Vec<f64>, Self) {
        let n = self.columns;
        let (mut a, mut v) = (self.clone(), Self::identity(n, n));
        for _ in 0..60 {
            let mut largest: f64 = 0.0;
            for p in 0..n {
                for q in p + 1..n {
                    let dot = |x: usize, y: usize| {
                        (0..a.rows).map(|row| a.get(row, x) * a.get(row, y)).sum::<f64>()
                    };
                    let (alpha, beta, gamma) = (dot(p, p), dot(q, q), dot(p, q));
                    if gamma == 0.0 || gamma.abs() <= 1e-16 * (alpha * beta).sqrt() {
                        continue;
                    }
                    largest = largest.max(gamma.abs() / (alpha * beta).sqrt());
                    let zeta = (beta - alpha) / (2.0 * gamma);
                    let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                    let t = if zeta == 0.0 { 1.0 } else { t };
                    let c = 1.0 / (1.0 + t * t).sqrt();
                    let s = c * t;
                    for matrix in [&mut a, &mut v] {
                        for row in 0..matrix.rows {
                            let (x, y) = (matrix.get(row, p), matrix.get(row, q));
                            *matrix.at(row, p) = c * x - s * y;
                            *matrix.at(row, q) = s * x + c * y;
                        }
                    }
                }
            }
            if largest < 1e-15 {
                break;
            }
        }
        let norms: Vec<f64> = (0..n)
            .map(|column| (0..a.rows).map(|row| a.get(row, column).powi(2)).sum::<f64>().sqrt())
            .collect();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|x, y| norms[*y].total_cmp(&norms[*x]));
        let permuted = |matrix: &Self| {
            let mut made = matrix.clone();
            for (to, from) in order.iter().enumerate() {
                (0..matrix.rows).for_each(|row| *made.at(row, to) = matrix.get(row, *from));
            }
            made
        };
        (permuted(&a), order.iter().map(|at| norms[*at]).collect(), permuted(&v))
    }

    /// Columns of length 1 that are orthogonal to each other: those of this matrix that have a length, and others for the rest, up to so many.
    fn completed(&self, values: &[f64], columns: usize) -> Self {
        let m = self.rows;
        let limit = values.first().copied().unwrap_or(0.0) * 1e-14;
        let mut made: Vec<Vec<f64>> = Vec::new();
        let mut unit = 0;
        for column in 0..columns {
            let own = values
                .get(column)
                .filter(|value| **value > limit)
                .map(|value| (0..m).map(|row| self.get(row, column) / value).collect::<Vec<f64>>());
            let mut vector = own.unwrap_or_default();
            while vector.is_empty() && unit < m {
                let mut trial = vec![0.0; m];
                trial[unit] = 1.0;
                unit += 1;
                let known =
                    (0..self.columns).filter(|at| *at > column && values[*at] > limit).map(|at| {
                        (0..m).map(|row| self.get(row, at) / values[at]).collect::<Vec<f64>>()
                    });
                let others: Vec<Vec<f64>> = made.iter().cloned().chain(known).collect();
                for _ in 0..2 {
                    for other in &others {
                        let dot: f64 = trial.iter().zip(other).map(|(x, y)| x * y).sum();
                        trial.iter_mut().zip(other).for_each(|(x, y)| *x -= dot * y);
                    }
                }
                let length = trial.iter().map(|x| x * x).sum::<f64>().sqrt();
                if length > 1e-8 {
                    vector = trial.into_iter().map(|x| x / length).collect();
                }
            }
            vector.resize(m, 0.0);
            made.push(vector);
        }
        let values: Vec<f64> = made.concat();
        Self { rows: columns, columns: m, values }.transposed()
    }
}

/// What a decomposition makes of a matrix: matrices, in the order of the outputs.
type Decompose = Box<dyn Fn(&Matrix) -> Result<Vec<Vec<f64>>, String> + Send + Sync>;

/// A decomposition of each matrix of a batch.
fn batched(
    call: &OperatorCall,
    shapes: &[Vec<usize>],
    outs: &[&TensorRef],
    decompose: Decompose,
) -> Checked<CompiledCall> {
    let x = call.tensor(0)?;
    let [.., rows, columns] = *x.shape() else {
        return Err(Rejection::invalid(
            call.name(0),
            format!("has the extents {:?}; give a matrix", x.shape()),
        ));
    };
    if !matches!(x.element, ElementType::Real(dtype) if dtype.is_float() && dtype != DType::BF16) {
        return Err(Rejection::invalid(
            call.name(0),
            format!("is {}; give real floats", x.element.name()),
        ));
    }
    let batch = x.shape()[..x.rank() - 2].to_vec();
    let types: Vec<(ElementType, Vec<usize>)> =
        shapes.iter().map(|shape| (F64, batch.iter().chain(shape).copied().collect())).collect();
    let mut graph = CallGraph::new(call);
    graph.can_fail();
    let value = graph.tensor(x);
    let shapes: Vec<Vec<usize>> = types.iter().map(|(_, shape)| shape.clone()).collect();
    let made = graph.own(
        &[value],
        &types,
        Box::new(move |given| {
            let mut results: Vec<Vec<f64>> = vec![Vec::new(); shapes.len()];
            let all = given[0].doubles();
            for number in 0..elements(&batch) {
                let matrix = Matrix::new(
                    rows,
                    columns,
                    &all[number * rows * columns..(number + 1) * rows * columns],
                );
                for (result, part) in results.iter_mut().zip(decompose(&matrix)?) {
                    result.extend(part);
                }
            }
            Ok(shapes
                .iter()
                .zip(&results)
                .map(|(shape, values)| Value::Real(doubles(shape, values)))
                .collect())
        }),
    );
    let results: Vec<_> = made.into_iter().zip(outs.iter().copied()).collect();
    graph.finish(&results)
}

fn extents(call: &OperatorCall) -> Checked<[usize; 2]> {
    let x = call.tensor(0)?;
    match *x.shape() {
        [.., rows, columns] => Ok([rows, columns]),
        _ => Err(Rejection::invalid(
            call.name(0),
            format!("has the extents {:?}; give a matrix", x.shape()),
        )),
    }
}

fn square(call: &OperatorCall) -> Checked<usize> {
    let [rows, columns] = extents(call)?;
    if rows != columns {
        return Err(Rejection::invalid(
            call.name(0),
            format!("has {rows} rows and {columns} columns; give a square matrix"),
        ));
    }
    Ok(rows)
}

/// The inverse. A matrix that has none is reported when the stream is synchronised.
pub(crate) fn inverse(call: &OperatorCall) -> Checked<CompiledCall> {
    let n = square(call)?;
    batched(
        call,
        &[vec![n, n]],
        &[call.out(0)?],
        Box::new(|matrix| {
            let (inverse, ..) = matrix.eliminated();
            Ok(vec![inverse.ok_or("the matrix is singular")?.values])
        }),
    )
}

/// The sign of the determinant, and the logarithm of its size.
pub(crate) fn determinant(call: &OperatorCall) -> Checked<CompiledCall> {
    square(call)?;
    batched(
        call,
        &[Vec::new(), Vec::new()],
        &[call.out(0)?, call.out(1)?],
        Box::new(|matrix| {
            let (_, sign, log) = matrix.eliminated();
            Ok(vec![vec![sign], vec![log]])
        }),
    )
}

/// (self, reduced): an orthogonal matrix and an upper triangle.
pub(crate) fn orthogonal(call: &OperatorCall) -> Checked<CompiledCall> {
    let [m, n] = extents(call)?;
    let width = if call.flag(1) { m.min(n) } else { m };
    batched(
        call,
        &[vec![m, width], vec![width, n]],
        &[call.out(0)?, call.out(1)?],
        Box::new(move |matrix| {
            let (q, r) = matrix.orthogonal();
            Ok(vec![q.part(m, width).values, r.part(width, n).values])
        }),
    )
}

/// (self, full, with vectors): singular values, left vectors, right vectors. The right ones are rows where the output has that shape.
pub(crate) fn singular(call: &OperatorCall) -> Checked<CompiledCall> {
    let [m, n] = extents(call)?;
    let k = m.min(n);
    let sigma = call.out(0)?;
    let decompose = move |matrix: &Matrix| {
        // Of a wide matrix the transposed one.
        let is_wide = m < n;
        let tall = if is_wide { matrix.transposed() } else { matrix.clone() };
        let (scaled, values, right) = tall.singular();
        (is_wide, scaled, values, right)
    };
    if !call.flag(2) {
        return batched(
            call,
            &[vec![k]],
            &[sigma],
            Box::new(move |matrix| Ok(vec![decompose(matrix).2])),
        );
    }
    let (u, v) = (call.out(1)?, call.out(2)?);
    let (left, right) = if call.flag(1) { (m, n) } else { (k, k) };
    let is_rows = v.rank() >= 2 && v.shape()[v.rank() - 2..] == [right, n];
    let shape = if is_rows { vec![right, n] } else { vec![n, right] };
    batched(
        call,
        &[vec![k], vec![m, left], shape],
        &[sigma, u, v],
        Box::new(move |matrix| {
            let (is_wide, scaled, values, rotation) = decompose(matrix);
            let (long, short) = if is_wide { (right, left) } else { (left, right) };
            let outer = scaled.completed(&values, long);
            let inner = rotation.part(rotation.rows, short);
            let (u, v) = if is_wide { (inner, outer) } else { (outer, inner) };
            let v = if is_rows { v.transposed() } else { v };
            Ok(vec![values, u.values, v.values])
        }),
    )
}
