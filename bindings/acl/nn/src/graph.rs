//! How a rule of an operator puts a plan together: values, and operators of the project on them. Types and extents are checked as each is added.
//!
//! ```text
//! elementwise operators alone --fuse--> one operator | on dense tensors: direct, in blocks | in place: by chunks
//! one operator, types as they are ----> direct, in blocks
//! anything else ----------------------> a list of steps on copies
//! ```

use pto_operators::{
    Activation, Binary, DType, Input, Operator, PreparedOperator, TensorType, Unary, blocks_of,
};

use crate::call::{Alias, OperatorCall, TensorRef};
use crate::element::ElementType;
use crate::plan::{
    Action, Body, CallStep, CompiledCall, DirectOperand, Function, ValueSource, chunk,
};
use crate::refusal::{Checked, Rejection};
use crate::value::{Value, takes_complex};

/// A value of a graph, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct V(usize);

struct Known {
    element: ElementType,
    shape: Vec<usize>,
}

/// A plan that is being made.
pub(crate) struct CallGraph<'c> {
    call: &'c OperatorCall,
    known: Vec<Known>,
    sources: Vec<ValueSource>,
    steps: Vec<CallStep>,
    can_fail: bool,
}

impl<'c> CallGraph<'c> {
    pub(crate) fn new(call: &'c OperatorCall) -> Self {
        Self { call, known: Vec::new(), sources: Vec::new(), steps: Vec::new(), can_fail: false }
    }

    /// What the launch says where elements of a tensor cannot be.
    pub(crate) fn can_fail(&mut self) {
        self.can_fail = true;
    }

    fn add(&mut self, element: ElementType, shape: &[usize], source: ValueSource) -> V {
        self.known.push(Known { element, shape: shape.to_vec() });
        self.sources.push(source);
        V(self.known.len() - 1)
    }

    /// A tensor of the call.
    pub(crate) fn tensor(&mut self, tensor: &TensorRef) -> V {
        self.add(tensor.element, &tensor.object.shape, ValueSource::Tensor(tensor.index))
    }

    /// A constant.
    pub(crate) fn constant(&mut self, value: Value) -> V {
        let (element, shape) = (value.element(), value.shape().to_vec());
        self.add(element, &shape, ValueSource::Constant(value))
    }

    /// A number as a constant without dimensions.
    pub(crate) fn number(&mut self, number: f64, element: ElementType) -> V {
        self.constant(Value::of_doubles(element, &[], &[number]))
    }

    pub(crate) fn element(&self, value: V) -> ElementType {
        self.known[value.0].element
    }

    pub(crate) fn shape(&self, value: V) -> &[usize] {
        &self.known[value.0].shape
    }

    /// The value in another element type.
    pub(crate) fn cast(&mut self, value: V, element: ElementType) -> V {
        if self.element(value) == element {
            return value;
        }
        if let ValueSource::Constant(constant) = &self.sources[value.0] {
            let cast = constant.cast(element);
            return self.constant(cast);
        }
        let shape = self.shape(value).to_vec();
        let result = self.add(element, &shape, ValueSource::Computed);
        let action = match (self.element(value), element) {
            (ElementType::Real(_), ElementType::Real(to)) => {
                Action::Operator(Operator::Cast { to })
            }
            _ => Action::Cast(element),
        };
        self.steps.push(CallStep { action, inputs: vec![value.0], outputs: vec![result.0] });
        result
    }

    /// An operator: all that it gives.
    pub(crate) fn node(&mut self, operator: Operator, inputs: &[V]) -> Checked<Vec<V>> {
        let complex = inputs
            .iter()
            .map(|value| self.element(*value))
            .filter(|element| element.is_complex())
            .max_by_key(|element| element.bytes());
        if complex.is_some() && !takes_complex(&operator) {
            return Err(Rejection::new(
                crate::refusal::INVALID,
                format!("operator {} is not defined for complex numbers", operator.name()),
            ));
        }
        let types: Vec<TensorType> = inputs
            .iter()
            .map(|value| {
                let Known { element, shape } = &self.known[value.0];
                let dtype = match element {
                    ElementType::Real(DType::Bool) => DType::Bool,
                    ElementType::Real(dtype) if complex.is_none() || !dtype.is_float() => *dtype,
                    _ => DType::F64,
                };
                TensorType::new(dtype, shape)
            })
            .collect();
        let given: Vec<_> = types.iter().map(|ty| Some(Input::from(ty))).collect();
        let results = operator.infer(&given)?;
        let is_abs = matches!(operator, Operator::Unary(Unary::Abs));
        let outputs: Vec<V> = results
            .into_iter()
            .map(|ty| {
                let element = match complex {
                    Some(complex) if ty.dtype == DType::F64 && is_abs => complex.part(),
                    Some(complex) if ty.dtype == DType::F64 => complex,
                    _ => ElementType::Real(ty.dtype),
                };
                self.add(element, &ty.shape, ValueSource::Computed)
            })
            .collect();
        self.steps.push(CallStep {
            action: Action::Operator(operator),
            inputs: inputs.iter().map(|value| value.0).collect(),
            outputs: outputs.iter().map(|value| value.0).collect(),
        });
        Ok(outputs)
    }

    /// The first result of an operator.
    pub(crate) fn one(&mut self, operator: Operator, inputs: &[V]) -> Checked<V> {
        Ok(self.node(operator, inputs)?[0])
    }

    pub(crate) fn unary(&mut self, function: Unary, x: V) -> Checked<V> {
        self.one(Operator::Unary(function), &[x])
    }

    pub(crate) fn activation(&mut self, activation: Activation, x: V) -> Checked<V> {
        self.one(Operator::Activation(activation), &[x])
    }

    pub(crate) fn binary(&mut self, function: Binary, a: V, b: V) -> Checked<V> {
        self.one(Operator::Binary(function), &[a, b])
    }

    pub(crate) fn choose(&mut self, condition: V, x: V, y: V) -> Checked<V> {
        self.one(Operator::Where, &[condition, x, y])
    }

    /// Two values in the type that both have in common; `bool` as `u8` where numbers are needed.
    pub(crate) fn promote(&mut self, a: V, b: V) -> [V; 2] {
        let element = self.element(a).promoted(self.element(b));
        [self.cast(a, element), self.cast(b, element)]
    }

    /// A value as a number: `bool` becomes `u8`.
    pub(crate) fn numeric(&mut self, value: V) -> V {
        match self.element(value) {
            ElementType::Real(DType::Bool) => self.cast(value, ElementType::Real(DType::U8)),
            _ => value,
        }
    }

    /// A function of our own; results of these types.
    pub(crate) fn own(
        &mut self,
        inputs: &[V],
        results: &[(ElementType, Vec<usize>)],
        function: Function,
    ) -> Vec<V> {
        let outputs: Vec<V> = results
            .iter()
            .map(|(element, shape)| self.add(*element, shape, ValueSource::Computed))
            .collect();
        self.steps.push(CallStep {
            action: Action::Own(function),
            inputs: inputs.iter().map(|value| value.0).collect(),
            outputs: outputs.iter().map(|value| value.0).collect(),
        });
        outputs
    }

    /// The plan that writes these values to these tensors, each as that tensor's type.
    pub(crate) fn finish(mut self, results: &[(V, &TensorRef)]) -> Checked<CompiledCall> {
        let mut outputs = Vec::new();
        for (value, tensor) in results {
            let own = self.shape(*value).to_vec();
            if own != tensor.object.shape {
                return Err(Rejection::invalid(
                    tensor.name,
                    format!(
                        "has the extents {:?}, and the result {own:?}; give an output of that shape",
                        tensor.object.shape
                    ),
                ));
            }
            let made = self.element(*value);
            if made.is_complex() && !tensor.element.is_complex() {
                return Err(Rejection::invalid(
                    tensor.name,
                    format!(
                        "is {}, and the result {}; give an output of that type",
                        tensor.element.name(),
                        made.name()
                    ),
                ));
            }
            let value = self.cast(*value, tensor.element);
            // A tensor that is an output as it is has no step yet.
            let is_made = self.steps.iter().any(|step| step.outputs.contains(&value.0));
            let value = if is_made { value } else { self.unary(Unary::Identity, value)? };
            outputs.push((value.0, tensor.index));
        }
        let call = self.call;
        let tensors = call.views();
        let plan = |body: Body, (blocks, cost_ns): (u32, u64), can_fail: bool| CompiledCall {
            operator: call.operator,
            tensors: call.views(),
            body,
            blocks,
            block_ns: cost_ns.div_ceil(blocks.into()),
            is_shared: true,
            can_fail,
        };
        if results.iter().all(|(_, tensor)| pto_operators::elements(&tensor.object.shape) == 0) {
            return Ok(plan(Body::Nothing, (1, 0), false));
        }
        self.fuse(&outputs);
        if let Some((operator, operands)) = self.direct(&outputs, &tensors)? {
            let (units, all) = (operator.work().units, tensors[outputs[0].1].elements());
            let ns = operator.cost((0, units)).ns();
            return Ok(match call.alias {
                Alias::None => {
                    let blocks = blocks_of(units, ns);
                    plan(Body::Direct { operator, operands }, (blocks, ns), self.can_fail)
                }
                _ => {
                    let ns = ns.saturating_mul(all.div_ceil(units.max(1)) as u64);
                    let body = Body::InPlace { operator, operands, elements: all };
                    plan(body, (blocks_of(all, ns), ns), self.can_fail)
                }
            });
        }
        let ns = self.steps.iter().map(|step| self.step_ns(step)).sum();
        let Self { sources, steps, can_fail, .. } = self;
        Ok(plan(Body::Steps { steps, sources, outputs }, (1, ns), can_fail))
    }

    /// What a step takes on a core of the device, in ns: a function of our own as long as a copy of what it gives. Of complex numbers that is not known.
    fn step_ns(&self, step: &CallStep) -> u64 {
        let types = |values: &[usize]| -> Option<Vec<TensorType>> {
            let of = |at: &usize| match &self.known[*at] {
                Known { element: ElementType::Real(dtype), shape } => {
                    Some(TensorType::new(*dtype, shape))
                }
                Known { .. } => None,
            };
            values.iter().map(of).collect()
        };
        let (Some(given), Some(made)) = (types(&step.inputs), types(&step.outputs)) else {
            return 0;
        };
        let ns = |operator: Operator, given: &[TensorType], made: &[TensorType]| {
            let given = given.iter().cloned().map(Some).collect();
            let prepared = PreparedOperator::new(operator, given, made.to_vec()).ok()?;
            Some(prepared.cost((0, prepared.work().units)).ns())
        };
        match &step.action {
            Action::Operator(operator) => ns(operator.clone(), &given, &made).unwrap_or(0),
            Action::Cast(_) | Action::Own(_) => {
                let copy = |ty: TensorType| {
                    let ty = [ty];
                    ns(Operator::Unary(Unary::Identity), &ty, &ty)
                };
                made.into_iter().filter_map(copy).sum()
            }
        }
    }

    /// Makes one operator of a list of elementwise ones with one result.
    fn fuse(&mut self, outputs: &[(usize, usize)]) {
        let is_elementwise = |step: &CallStep| match &step.action {
            Action::Operator(operator) => operator.function().is_some(),
            _ => false,
        };
        let is_real = self.known.iter().all(|known| !known.element.is_complex());
        let (&[(result, _)], true) = (outputs, is_real && self.steps.len() > 1) else { return };
        if !self.steps.iter().all(is_elementwise)
            || self.steps.last().is_none_or(|step| step.outputs != [result])
        {
            return;
        }
        // Values that no step of the list makes come first.
        let given: Vec<usize> = (0..self.sources.len())
            .filter(|at| {
                !matches!(self.sources[*at], ValueSource::Computed)
                    && self.steps.iter().any(|step| step.inputs.contains(at))
            })
            .collect();
        let number = |value: usize| {
            given.iter().position(|at| *at == value).or_else(|| {
                let made = self.steps.iter().position(|step| step.outputs == [value])?;
                Some(given.len() + made)
            })
        };
        let steps: Option<Vec<_>> = self
            .steps
            .iter()
            .map(|step| {
                let Action::Operator(operator) = &step.action else { return None };
                Some(pto_operators::Step {
                    function: operator.function()?,
                    operands: step
                        .inputs
                        .iter()
                        .map(|at| number(*at).map(Some))
                        .collect::<Option<_>>()?,
                })
            })
            .collect();
        let Some(steps) = steps else { return };
        // Every value has the extents of the result, or broadcasts to them: the operator says so.
        let types: Vec<TensorType> = given
            .iter()
            .filter_map(|at| match self.known[*at].element {
                ElementType::Real(dtype) => Some(TensorType::new(dtype, &self.known[*at].shape)),
                _ => None,
            })
            .collect();
        let operator = Operator::Fused { steps };
        let inputs: Vec<_> = types.iter().map(|ty| Some(Input::from(ty))).collect();
        let Ok(found) = operator.infer(&inputs) else { return };
        if found[0].shape != self.known[result].shape {
            return;
        }
        self.steps = vec![CallStep {
            action: Action::Operator(operator),
            inputs: given,
            outputs: vec![result],
        }];
    }

    /// The one operator on the tensors as they are, with its operands; `None`: copies are needed.
    fn direct(
        &self,
        outputs: &[(usize, usize)],
        tensors: &[crate::value::View],
    ) -> Checked<Option<(PreparedOperator, Vec<DirectOperand>)>> {
        let [CallStep { action: Action::Operator(operator), inputs, outputs: made }] =
            self.steps.as_slice()
        else {
            return Ok(None);
        };
        let is_prefix = made.len() >= outputs.len()
            && made.iter().zip(outputs).all(|(made, (value, _))| made == value);
        let dense = |at: usize| match &self.sources[at] {
            ValueSource::Tensor(number) => tensors[*number].is_dense,
            ValueSource::Constant(value) => !value.element().is_complex(),
            ValueSource::Computed => false,
        };
        let is_real = inputs.iter().chain(made).all(|at| !self.known[*at].element.is_complex());
        let is_elementwise =
            matches!(operator, Operator::Fused { .. }) || operator.function().is_some();
        if !is_prefix
            || !is_real
            || !inputs.iter().all(|at| dense(*at))
            || !outputs.iter().all(|(_, number)| tensors[*number].is_dense)
            || matches!(self.call.alias, Alias::Partial)
            || (matches!(self.call.alias, Alias::Same) && !is_elementwise)
        {
            return Ok(None);
        }
        let all = pto_operators::elements(&self.known[outputs[0].0].shape);
        let result = &self.known[outputs[0].0].shape;
        let is_flat = is_elementwise
            && inputs.iter().all(|at| {
                let shape = &self.known[*at].shape;
                shape == result || pto_operators::elements(shape) == 1
            });
        if matches!(self.call.alias, Alias::Same) && !is_flat {
            return Ok(None);
        }
        let in_place = matches!(self.call.alias, Alias::Same);
        let length = if in_place { chunk(all) } else { all };
        let ty = |at: &usize| {
            let Known { element, shape } = &self.known[*at];
            let ElementType::Real(dtype) = *element else { return None };
            let shape = match is_flat {
                true if shape == result => vec![length],
                true => Vec::new(),
                false => shape.clone(),
            };
            Some(TensorType { dtype, shape })
        };
        let types: Option<Vec<_>> = inputs.iter().map(|at| ty(at).map(Some)).collect();
        let results: Option<Vec<_>> = outputs.iter().map(|(at, _)| ty(at)).collect();
        let (Some(types), Some(results)) = (types, results) else { return Ok(None) };
        let prepared = PreparedOperator::new(operator.clone(), types, results)?;
        if prepared.work().can_fail && !self.can_fail {
            return Ok(None);
        }
        let operands = inputs
            .iter()
            .map(|at| match &self.sources[*at] {
                ValueSource::Tensor(number) => Some(DirectOperand::Tensor(*number)),
                ValueSource::Constant(Value::Real(tensor)) => Some(DirectOperand::constant(tensor)),
                _ => None,
            })
            .chain(outputs.iter().map(|(_, number)| Some(DirectOperand::Tensor(*number))))
            .collect::<Option<Vec<_>>>();
        Ok(operands.map(|operands| (prepared, operands)))
    }
}
