//! What the rules of operators are made of: inputs by position, axes, broadcasting, reduced extents, and the errors about them.

use crate::dtype::DType;
use crate::error::{Argument, OperatorError};
use crate::tensor::{Tensor, TensorType};

/// What is known of an input.
#[derive(Clone, Copy, Debug)]
pub struct Input<'t> {
    /// Its type.
    pub ty: &'t TensorType,
    /// Its elements, where they are known.
    pub constant: Option<&'t Tensor>,
}

impl<'t> From<&'t Tensor> for Input<'t> {
    fn from(tensor: &'t Tensor) -> Self {
        Self { ty: tensor.ty(), constant: Some(tensor) }
    }
}

impl<'t> From<&'t TensorType> for Input<'t> {
    fn from(ty: &'t TensorType) -> Self {
        Self { ty, constant: None }
    }
}

/// The extents to which both are broadcast, as NumPy does; `None`: they do not fit.
#[must_use]
pub fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let extent =
        |shape: &[usize], at: usize| (at + shape.len()).checked_sub(rank).map_or(1, |at| shape[at]);
    let extents = (0..rank).map(|at| match (extent(a, at), extent(b, at)) {
        (a, b) if a == b => Some(a),
        (1, other) | (other, 1) => Some(other),
        _ => None,
    });
    extents.collect()
}

/// The distances between elements of a dense tensor, in elements.
pub(crate) fn strides_of(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at].saturating_mul(shape[at]);
    }
    strides
}

/// The extents without, or with extent 1 at, these axes.
pub(crate) fn reduced(shape: &[usize], axes: &[usize], keep_dims: bool) -> Vec<usize> {
    let extents = shape.iter().enumerate();
    let kept = extents.filter_map(|(at, extent)| match axes.contains(&at) {
        true => keep_dims.then_some(1),
        false => Some(*extent),
    });
    kept.collect()
}

/// The inputs of an operator, under examination.
pub(crate) struct OperatorCheck<'c> {
    pub(crate) operator: &'static str,
    pub(crate) names: &'static [&'static str],
    pub(crate) inputs: &'c [Option<Input<'c>>],
}

impl<'c> OperatorCheck<'c> {
    pub(crate) fn refuse(&self, rule: String) -> OperatorError {
        OperatorError { operator: self.operator, argument: Argument::Operator, rule }
    }

    pub(crate) fn wrong(&self, at: usize, rule: String) -> OperatorError {
        let name = self.names.get(at).or(self.names.last()).copied().unwrap_or("?");
        OperatorError { operator: self.operator, argument: Argument::Input(at, name), rule }
    }

    pub(crate) fn attribute(&self, name: &'static str, rule: String) -> OperatorError {
        OperatorError { operator: self.operator, argument: Argument::Attribute(name), rule }
    }

    /// Whether there are as many inputs as the operator takes.
    pub(crate) fn count(&self, required: usize, takes_more: bool) -> Result<(), OperatorError> {
        let found = self.inputs.len();
        if found > self.names.len() && !takes_more {
            return Err(
                self.refuse(format!("there are {found} inputs; {} are the most", self.names.len()))
            );
        }
        for at in 0..required.max(if takes_more { found } else { 0 }) {
            self.input(at)?;
        }
        Ok(())
    }

    pub(crate) fn optional(&self, at: usize) -> Option<&'c TensorType> {
        self.inputs.get(at).copied().flatten().map(|input| input.ty)
    }

    pub(crate) fn constant(&self, at: usize) -> Option<&'c Tensor> {
        self.inputs.get(at).copied().flatten().and_then(|input| input.constant)
    }

    pub(crate) fn input(&self, at: usize) -> Result<&'c TensorType, OperatorError> {
        self.optional(at).ok_or_else(|| self.wrong(at, "is missing; give it".to_owned()))
    }

    pub(crate) fn known(&self, at: usize) -> Result<&'c Tensor, OperatorError> {
        self.input(at)?;
        self.constant(at).ok_or_else(|| {
            self.wrong(
                at,
                "is computed, and the shape of the result depends on its elements; give a constant"
                    .to_owned(),
            )
        })
    }

    pub(crate) fn typed(&self, at: usize, dtype: DType) -> Result<&'c TensorType, OperatorError> {
        let ty = self.input(at)?;
        if ty.dtype == dtype {
            Ok(ty)
        } else {
            Err(self.wrong(at, format!("is {ty}; it has to be of type {dtype}")))
        }
    }

    pub(crate) fn number(&self, at: usize) -> Result<&'c TensorType, OperatorError> {
        let ty = self.input(at)?;
        if ty.dtype == DType::Bool {
            Err(self.wrong(at, format!("is {ty}; the operator is for numbers")))
        } else {
            Ok(ty)
        }
    }

    pub(crate) fn float(&self, at: usize) -> Result<&'c TensorType, OperatorError> {
        let ty = self.input(at)?;
        if ty.dtype.is_float() {
            Ok(ty)
        } else {
            Err(self.wrong(at, format!("is {ty}; the operator is for floats")))
        }
    }

    pub(crate) fn integer(&self, at: usize) -> Result<&'c TensorType, OperatorError> {
        let ty = self.input(at)?;
        if ty.dtype.is_float() {
            Err(self.wrong(at, format!("is {ty}; the operator is for integers")))
        } else {
            Ok(ty)
        }
    }

    /// Indices: `i32` or `i64`.
    pub(crate) fn indices(&self, at: usize) -> Result<&'c TensorType, OperatorError> {
        let ty = self.input(at)?;
        match ty.dtype {
            DType::I32 | DType::I64 => Ok(ty),
            _ => Err(self.wrong(at, format!("is {ty}; indices are of type i32 or i64"))),
        }
    }

    /// An optional input of one element of this type.
    pub(crate) fn scalar_of(&self, at: usize, dtype: DType) -> Result<(), OperatorError> {
        let Some(ty) = self.optional(at) else { return Ok(()) };
        self.typed(at, dtype)?;
        if ty.elements() == 1 {
            Ok(())
        } else {
            Err(self.wrong(at, format!("is {ty}; give one element")))
        }
    }

    /// An input of `extent` elements in one dimension, of this type.
    pub(crate) fn vector_of(
        &self,
        at: usize,
        dtype: DType,
        extent: usize,
    ) -> Result<(), OperatorError> {
        let ty = self.typed(at, dtype)?;
        if ty.shape == [extent] {
            Ok(())
        } else {
            Err(self.wrong(at, format!("is {ty}; give {dtype}[{extent}]")))
        }
    }

    pub(crate) fn broadcast(
        &self,
        at: usize,
        so_far: &[usize],
        shape: &[usize],
    ) -> Result<Vec<usize>, OperatorError> {
        broadcast(so_far, shape).ok_or_else(|| {
            self.wrong(at, format!("has the extents {shape:?}, which do not broadcast with {so_far:?}; extents are equal, or one is 1"))
        })
    }

    pub(crate) fn axis(
        &self,
        name: &'static str,
        axis: i64,
        rank: usize,
    ) -> Result<usize, OperatorError> {
        let signed = i64::try_from(rank).unwrap_or(i64::MAX);
        let from_front = if axis < 0 { axis.checked_add(signed) } else { Some(axis) };
        from_front
            .and_then(|axis| usize::try_from(axis).ok())
            .filter(|axis| *axis < rank)
            .ok_or_else(|| {
                self.attribute(
                    name,
                    format!(
                        "is {axis}, and the tensor has {rank} dimensions; use {} to {}",
                        -signed,
                        signed - 1
                    ),
                )
            })
    }

    pub(crate) fn axes(
        &self,
        name: &'static str,
        axes: &[i64],
        rank: usize,
    ) -> Result<Vec<usize>, OperatorError> {
        let found: Vec<usize> =
            axes.iter().map(|axis| self.axis(name, *axis, rank)).collect::<Result<_, _>>()?;
        match found.iter().enumerate().find(|(at, axis)| found[..*at].contains(axis)) {
            Some((_, axis)) => {
                Err(self.attribute(name, format!("names axis {axis} twice; once is enough")))
            }
            None => Ok(found),
        }
    }

    pub(crate) fn axes_or_all(
        &self,
        name: &'static str,
        axes: Option<&[i64]>,
        rank: usize,
    ) -> Result<Vec<usize>, OperatorError> {
        axes.map_or_else(|| Ok((0..rank).collect()), |axes| self.axes(name, axes, rank))
    }

    pub(crate) fn extent(&self, name: &'static str, extent: i64) -> Result<usize, OperatorError> {
        usize::try_from(extent)
            .map_err(|_| self.attribute(name, format!("has the extent {extent}; use 0 or more")))
    }
}
