//! The builder of one model: it translates nodes one by one, and keeps what their names stand for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use half::{bf16, f16};
use pto_operators::{
    Activation, Binary, DType, Operator, OperatorGraph, Reduction, Tensor, TensorType, Unary,
    ValueId, elements,
};

use super::call::{Call, NodeValue, Step, Stop, stop};
use crate::error::{ModelError, Problem};
use crate::model::{Model, usual};
use crate::proto::{GraphProto, NodeProto};
use crate::tensor::{has_large_extents, tensor_of};

/// What is known of the inputs before a build.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Extents of inputs.
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// Extents that have names.
    pub symbols: BTreeMap<String, usize>,
    /// Values of inputs. They also give the extents. A value becomes part of the program only where it decides a shape.
    pub values: BTreeMap<String, Tensor>,
}

/// A model for certain extents of its inputs.
#[derive(Clone, Debug)]
pub struct Built {
    /// The operators.
    pub graph: OperatorGraph,
    /// Inputs whose values decided shapes: the graph holds for these values alone.
    pub decided: BTreeMap<String, Tensor>,
    /// What a user may want to know: nothing that makes results wrong.
    pub notes: Vec<String>,
}

/// A constant above this size is not computed while a model is built.
const MAX_FOLDED_BYTES: usize = 1 << 28;

/// Bytes of all constants that a build computes, at most.
const MAX_ALL_FOLDED_BYTES: usize = 1 << 31;

/// Nodes that a build translates at most, each turn of a loop counted.
const MAX_STEPS: usize = 500_000;

/// Nodes that a build makes at most: loops are unrolled.
const MAX_NODES: usize = 200_000;

/// Turns of a loop at most.
pub(super) const MAX_TURNS: i64 = 65_536;

/// Translates a node of one type.
pub(super) type Translator =
    for<'b, 'm, 'c> fn(&'b mut Builder<'m>, &'c Call<'m>) -> Step<Vec<NodeValue>>;

/// Translates one model.
pub(super) struct Builder<'m> {
    /// The translator of each type of node; `None`: there is none.
    find: fn(&str) -> Option<Translator>,
    pub(super) model: &'m Model,
    given: &'m Given,
    decided: &'m BTreeSet<String>,
    pub(super) graph: OperatorGraph,
    /// What names stand for: of the graph, and of each branch that is open.
    pub(super) scopes: Vec<HashMap<String, NodeValue>>,
    /// For each value the node that makes it; `None`: an input or a constant.
    makers: HashMap<ValueId, usize>,
    inputs: HashMap<ValueId, String>,
    problems: Vec<Problem>,
    notes: Vec<String>,
    steps: usize,
    folded_bytes: usize,
    /// The node that is translated.
    pub(super) current: String,
    /// The branches and turns that are open, for the names of nodes.
    pub(super) path: String,
}

impl<'m> Builder<'m> {
    pub(super) fn new(
        find: fn(&str) -> Option<Translator>,
        model: &'m Model,
        given: &'m Given,
        decided: &'m BTreeSet<String>,
    ) -> Self {
        Self {
            find,
            model,
            given,
            decided,
            graph: OperatorGraph::new(&model.name),
            scopes: vec![HashMap::new()],
            makers: HashMap::new(),
            inputs: HashMap::new(),
            problems: Vec::new(),
            notes: Vec::new(),
            steps: 0,
            folded_bytes: 0,
            current: String::new(),
            path: String::new(),
        }
    }

    /// Translates the model; the inputs that have to be constants, if there are more of them.
    pub(super) fn run(
        &mut self,
        types: &[TensorType],
    ) -> Result<Option<BTreeSet<String>>, ModelError> {
        let model = self.model;
        self.check_types();
        for (input, ty) in model.inputs.iter().zip(types) {
            let value = match self.given.values.get(&input.name) {
                Some(tensor) if self.decided.contains(&input.name) => {
                    self.graph.add_constant(&input.name, tensor.clone())
                }
                _ => {
                    let value = self.graph.add_input(&input.name, ty.clone());
                    self.inputs.insert(value, input.name.clone());
                    value
                }
            };
            self.bind(&input.name, NodeValue::Value(value));
        }
        for name in model.others.keys() {
            self.bind(name, NodeValue::Failed);
        }
        match self.body(&model.graph) {
            Err(Stop::Needs(inputs)) => return Ok(Some(inputs)),
            Err(Stop::Reason(reason)) => return Err(ModelError::File(reason)),
            Err(Stop::Failed) | Ok(()) => {}
        }
        for output in &model.graph.output {
            match self.find(&output.name) {
                Some(NodeValue::Value(value)) => self.graph.add_output(&output.name, value),
                Some(NodeValue::Failed) => {}
                Some(NodeValue::Sequence(_) | NodeValue::Nothing) => self.problem_of_output(
                    &output.name,
                    "it is no tensor, and a run gives tensors only",
                ),
                None => self.problem_of_output(&output.name, "no node makes it"),
            }
        }
        for (name, what) in &model.others {
            let problem = Problem {
                node: name.clone(),
                op_type: "input".to_owned(),
                version: self.version_of(""),
                reason: what.clone(),
            };
            self.problems.push(problem);
        }
        Ok(None)
    }

    pub(super) fn problem_of_output(&mut self, name: &str, reason: &str) {
        let version = self.version_of("");
        self.problems.push(Problem {
            node: name.to_owned(),
            op_type: "output".to_owned(),
            version,
            reason: reason.to_owned(),
        });
    }

    pub(super) fn finish(self, given: &Given) -> Result<Built, ModelError> {
        if !self.problems.is_empty() {
            return Err(ModelError::Nodes(self.problems));
        }
        let decided = self
            .decided
            .iter()
            .filter_map(|name| Some((name.clone(), given.values.get(name)?.clone())));
        Ok(Built {
            decided: decided.collect(),
            graph: crate::fuse::fused(&self.graph),
            notes: self.notes,
        })
    }

    /// Notes every node whose type is not here at all, in branches too: these are told whatever else is wrong.
    pub(super) fn check_types(&mut self) {
        let mut open = vec![&self.model.graph];
        while let Some(graph) = open.pop() {
            for node in &graph.node {
                open.extend(node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()));
                if let Err(reason) = self.translator(node) {
                    self.note_problem(node, reason);
                }
            }
        }
    }

    /// The function that translates such nodes.
    pub(super) fn translator(&self, node: &NodeProto) -> Result<Translator, String> {
        let domain = usual(&node.domain);
        let is_function =
            |(of, name): &(String, String)| usual(of) == domain && *name == node.op_type;
        if self.model.functions.iter().any(is_function) {
            return Err("it is a function of the model, and these are not supported".to_owned());
        }
        if !domain.is_empty() {
            return Err(format!("operators of the domain {domain} are not supported"));
        }
        if !self.model.versions.contains_key("") {
            return Err("the model imports no version of the operators of ai.onnx".to_owned());
        }
        (self.find)(&node.op_type).ok_or_else(|| "there is no such operator here".to_owned())
    }

    pub(super) fn version_of(&self, domain: &str) -> i64 {
        self.model.versions.get(usual(domain)).copied().unwrap_or(0)
    }

    pub(super) fn note_problem(&mut self, node: &NodeProto, reason: String) {
        let name = self.named(node);
        let op_type = match usual(&node.domain) {
            "" => node.op_type.clone(),
            domain => format!("{domain}.{}", node.op_type),
        };
        let problem =
            Problem { node: name, op_type, version: self.version_of(&node.domain), reason };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// What a node is called.
    pub(super) fn named(&self, node: &NodeProto) -> String {
        let name = match node.output.iter().find(|name| !name.is_empty()) {
            _ if !node.name.is_empty() => &node.name,
            Some(output) => output,
            None => &node.op_type,
        };
        format!("{}{name}", self.path)
    }

    /// Gives a name of the model its meaning.
    pub(super) fn bind(&mut self, name: &str, slot: NodeValue) {
        if name.is_empty() {
            return;
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), slot);
        }
    }

    /// What a name stands for.
    pub(super) fn find(&self, name: &str) -> Option<NodeValue> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).cloned()
    }

    /// Translates the constants and nodes of a graph.
    pub(super) fn body(&mut self, graph: &'m GraphProto) -> Step<()> {
        for proto in &graph.initializer {
            let tensor = tensor_of(proto.clone(), self.model.folder.as_deref());
            let slot = match tensor {
                Ok(tensor) => NodeValue::Value(self.graph.add_constant(&proto.name, tensor)),
                Err(reason) => {
                    let version = self.version_of("");
                    self.problems.push(Problem {
                        node: proto.name.clone(),
                        op_type: "initializer".to_owned(),
                        version,
                        reason,
                    });
                    NodeValue::Failed
                }
            };
            self.bind(&proto.name, slot);
        }
        for sparse in &graph.sparse_initializer {
            let name = sparse.values.as_ref().map_or("", |values| values.name.as_str());
            let version = self.version_of("");
            self.problems.push(Problem {
                node: name.to_owned(),
                op_type: "sparse_initializer".to_owned(),
                version,
                reason: "sparse tensors are not supported".to_owned(),
            });
            self.bind(name, NodeValue::Failed);
        }
        for node in &graph.node {
            self.node(node)?;
        }
        Ok(())
    }

    /// Translates a node, or notes why it cannot be.
    pub(super) fn node(&mut self, node: &'m NodeProto) -> Step<()> {
        let named = self.named(node);
        let outer = std::mem::replace(&mut self.current, named);
        let made = self.translate(node);
        self.current = outer;
        match made {
            Ok(slots) => {
                for (name, slot) in node.output.iter().zip(slots) {
                    if let NodeValue::Value(value) = slot
                        && self.makers.contains_key(&value)
                        && !name.is_empty()
                    {
                        self.graph.rename(value, name);
                    }
                    self.bind(name, slot);
                }
                return Ok(());
            }
            Err(Stop::Needs(inputs)) => return Err(Stop::Needs(inputs)),
            Err(Stop::Failed) => {}
            Err(Stop::Reason(reason)) => self.note_problem(node, reason),
        }
        for name in &node.output {
            self.bind(name, NodeValue::Failed);
        }
        Ok(())
    }

    pub(super) fn translate(&mut self, node: &'m NodeProto) -> Step<Vec<NodeValue>> {
        let translator = match self.translator(node) {
            Ok(translator) => translator,
            Err(reason) => return stop(reason),
        };
        let mut inputs = Vec::new();
        for name in &node.input {
            inputs.push(match name.as_str() {
                "" => None,
                name => Some(self.find(name).ok_or_else(|| {
                    Stop::Reason(format!(
                        "input {name} is neither a constant nor made by a node in front of this one"
                    ))
                })?),
            });
        }
        if inputs.iter().any(|slot| matches!(slot, Some(NodeValue::Failed))) {
            return Err(Stop::Failed);
        }
        self.steps += 1;
        if self.graph.nodes().len() > MAX_NODES || self.steps > MAX_STEPS {
            return stop(format!(
                "the model becomes more than {MAX_NODES} operators, or has more than {MAX_STEPS} nodes with all turns of its loops"
            ));
        }
        let call = Call::new(node, self.version_of(""), inputs);
        let slots = translator(self, &call)?;
        call.check_attributes()?;
        if slots.len() < call.outputs() {
            return stop(format!(
                "{} outputs are taken, and this version gives {}",
                call.outputs(),
                slots.len()
            ));
        }
        Ok(slots)
    }

    /// Adds an operator with all its outputs. Where everything that it reads is known, so is what it gives.
    pub(super) fn add_all(
        &mut self,
        operator: Operator,
        inputs: &[Option<ValueId>],
    ) -> Step<Vec<ValueId>> {
        let has_inputs = inputs.iter().any(Option::is_some);
        let of_types =
            matches!(operator, Operator::Shape { .. } | Operator::Size | Operator::EyeLike { .. });
        let given: Vec<_> =
            inputs.iter().map(|value| value.map(|value| self.graph.given(value))).collect();
        let types = operator.infer(&given)?;
        let bytes = types.iter().fold(0, |sum: usize, ty| sum.saturating_add(ty.bytes()));
        if let Some(ty) = types.iter().find(|ty| has_large_extents(&ty.shape)) {
            return stop(format!("the result is {ty}, and its extents are too large"));
        }
        let has_room = bytes <= MAX_FOLDED_BYTES
            && self.folded_bytes.saturating_add(bytes) <= MAX_ALL_FOLDED_BYTES;
        // A tensor without elements is known, too.
        let known = |value: ValueId| {
            let ty = &self.graph.value(value).ty;
            self.tensor(value)
                .cloned()
                .or_else(|| (ty.elements() == 0).then(|| Tensor::zeros(ty.clone())))
        };
        let is_known = |value: &Option<ValueId>| {
            value.is_none_or(|value| self.tensor(value).is_some() || self.ty(value).elements() == 0)
        };
        let is_folded = has_inputs && inputs.iter().all(is_known) && has_room;
        if is_folded {
            let tensors: Vec<_> = inputs.iter().map(|value| value.and_then(known)).collect();
            let tensors: Vec<_> = tensors.iter().map(Option::as_ref).collect();
            let results = operator.evaluate(&tensors)?;
            self.folded_bytes += bytes;
            return Ok(results.into_iter().map(|tensor| self.constant(tensor)).collect());
        }
        if of_types && has_room {
            self.folded_bytes += bytes;
            let results = self.of_type(&operator, inputs)?;
            return Ok(results.into_iter().map(|tensor| self.constant(tensor)).collect());
        }
        let name = self.current.clone();
        let made = self.graph.add_node(&name, operator, inputs)?;
        let node = self.graph.nodes().len() - 1;
        self.makers.extend(made.iter().map(|value| (*value, node)));
        Ok(made)
    }

    /// What an operator gives that reads the type of its input alone.
    pub(super) fn of_type(
        &self,
        operator: &Operator,
        inputs: &[Option<ValueId>],
    ) -> Step<Vec<Tensor>> {
        let Some(input) = inputs.first().copied().flatten() else {
            return stop("input 0 is missing");
        };
        let ty = self.ty(input);
        let extents: Vec<_> =
            ty.shape.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
        match operator {
            Operator::Size => {
                Ok(vec![Tensor::scalar(i64::try_from(ty.elements()).unwrap_or(i64::MAX))])
            }
            Operator::Shape { start, end } => {
                let rank = extents.len();
                let clamped = |at: i64| {
                    let distance = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
                    if at < 0 { rank.saturating_sub(distance) } else { distance.min(rank) }
                };
                let (start, end) = (clamped(*start), end.map_or(rank, clamped));
                Ok(vec![Tensor::vector(extents.get(start..end.max(start)).unwrap_or_default())])
            }
            _ => {
                let zeros = Tensor::zeros(ty);
                Ok(operator.evaluate(&[Some(&zeros)])?)
            }
        }
    }

    /// Adds an operator; its first output.
    pub(super) fn add(&mut self, operator: Operator, inputs: &[ValueId]) -> Step<ValueId> {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        self.add_with(operator, &inputs)
    }

    /// The same, with inputs that may be missing.
    pub(super) fn add_with(
        &mut self,
        operator: Operator,
        inputs: &[Option<ValueId>],
    ) -> Step<ValueId> {
        let made = self.add_all(operator, inputs)?;
        made.first().copied().ok_or_else(|| Stop::Reason("the operator gives nothing".to_owned()))
    }

    /// A constant.
    pub(super) fn constant(&mut self, tensor: Tensor) -> ValueId {
        let name = self.current.clone();
        self.graph.add_constant(&name, tensor)
    }

    /// The elements of a value that is known.
    pub(super) fn tensor(&self, value: ValueId) -> Option<&Tensor> {
        self.graph.value(value).constant.as_ref()
    }

    pub(super) fn ty(&self, value: ValueId) -> TensorType {
        self.graph.value(value).ty.clone()
    }

    pub(super) fn dtype(&self, value: ValueId) -> DType {
        self.graph.value(value).ty.dtype
    }

    pub(super) fn shape(&self, value: ValueId) -> Vec<usize> {
        self.graph.value(value).ty.shape.clone()
    }

    pub(super) fn rank(&self, value: ValueId) -> usize {
        self.graph.value(value).ty.shape.len()
    }

    /// An axis, counted from the front.
    pub(super) fn axis(&self, axis: i64, rank: usize) -> Step<usize> {
        let all = rank as i64;
        let from_front = if axis < 0 { axis + all } else { axis };
        usize::try_from(from_front).ok().filter(|axis| *axis < rank).ok_or_else(|| {
            Stop::Reason(format!("axis {axis} is none of a tensor with {rank} dimensions"))
        })
    }

    /// A value that decides a shape: it has to be known, or to come from inputs whose values are at hand.
    pub(super) fn known(&self, value: ValueId, what: &str) -> Step<Tensor> {
        if let Some(tensor) = self.tensor(value) {
            return Ok(tensor.clone());
        }
        let mut inputs = BTreeSet::new();
        let (mut open, mut seen) = (vec![value], BTreeSet::new());
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            if let Some(name) = self.inputs.get(&value) {
                inputs.insert(name.clone());
            }
            if let Some(node) = self.makers.get(&value) {
                open.extend(self.graph.nodes()[*node].inputs.iter().flatten());
            }
        }
        let missing: Vec<_> = inputs
            .iter()
            .filter(|name| !self.given.values.contains_key(*name))
            .map(String::as_str)
            .collect();
        if inputs.is_empty() {
            return stop(format!("{what} decides a shape, and depends on random numbers"));
        }
        if missing.is_empty() {
            return Err(Stop::Needs(inputs));
        }
        stop(format!(
            "{what} decides a shape, and depends on the values of {}; give these when the model is built",
            missing.join(", ")
        ))
    }

    /// Whole numbers that decide a shape.
    pub(super) fn ints(&self, value: ValueId, what: &str) -> Step<Vec<i64>> {
        let tensor = self.known(value, what)?;
        tensor.to_integers().ok_or_else(|| {
            Stop::Reason(format!(
                "{what} has elements of type {}, and whole numbers are wanted",
                tensor.dtype()
            ))
        })
    }

    /// One whole number that decides a shape.
    pub(super) fn int(&self, value: ValueId, what: &str) -> Step<i64> {
        match self.ints(value, what)?[..] {
            [one] => Ok(one),
            ref other => stop(format!("{what} has {} elements, and one is wanted", other.len())),
        }
    }

    /// Floats that decide how an operator works.
    pub(super) fn doubles(&self, value: ValueId, what: &str) -> Step<Vec<f64>> {
        Ok(self.known(value, what)?.to_doubles())
    }

    /// One float that decides how an operator works.
    pub(super) fn double(&self, value: ValueId, what: &str) -> Step<f64> {
        match self.doubles(value, what)?[..] {
            [one] => Ok(one),
            ref other => stop(format!("{what} has {} elements, and one is wanted", other.len())),
        }
    }

    pub(super) fn binary(&mut self, binary: Binary, a: ValueId, b: ValueId) -> Step<ValueId> {
        self.add(Operator::Binary(binary), &[a, b])
    }

    pub(super) fn sum(&mut self, a: ValueId, b: ValueId) -> Step<ValueId> {
        self.binary(Binary::Add, a, b)
    }

    pub(super) fn difference(&mut self, a: ValueId, b: ValueId) -> Step<ValueId> {
        self.binary(Binary::Sub, a, b)
    }

    pub(super) fn product(&mut self, a: ValueId, b: ValueId) -> Step<ValueId> {
        self.binary(Binary::Mul, a, b)
    }

    pub(super) fn quotient(&mut self, a: ValueId, b: ValueId) -> Step<ValueId> {
        self.binary(Binary::Div, a, b)
    }

    pub(super) fn unary(&mut self, unary: Unary, x: ValueId) -> Step<ValueId> {
        self.add(Operator::Unary(unary), &[x])
    }

    pub(super) fn activation(&mut self, activation: Activation, x: ValueId) -> Step<ValueId> {
        self.add(Operator::Activation(activation), &[x])
    }

    pub(super) fn cast(&mut self, x: ValueId, to: DType) -> Step<ValueId> {
        if self.dtype(x) == to { Ok(x) } else { self.add(Operator::Cast { to }, &[x]) }
    }

    pub(super) fn reduce(
        &mut self,
        reduction: Reduction,
        x: ValueId,
        axes: &[i64],
        keep_dims: bool,
    ) -> Step<ValueId> {
        self.add(Operator::Reduce { reduction, axes: Some(axes.to_vec()), keep_dims }, &[x])
    }

    pub(super) fn reshape(&mut self, x: ValueId, shape: &[usize]) -> Step<ValueId> {
        if self.shape(x) == shape {
            return Ok(x);
        }
        let shape = shape.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
        self.add(Operator::Reshape { shape, allow_zero: true }, &[x])
    }

    pub(super) fn transpose(&mut self, x: ValueId, permutation: &[usize]) -> Step<ValueId> {
        if permutation.iter().copied().eq(0..permutation.len()) {
            return Ok(x);
        }
        self.add(Operator::Transpose { permutation: Some(permutation.to_vec()) }, &[x])
    }

    /// The elements from `from` to `to` of an axis.
    pub(super) fn part(
        &mut self,
        x: ValueId,
        axis: usize,
        from: usize,
        to: usize,
    ) -> Step<ValueId> {
        let operator = Operator::Slice {
            starts: vec![from as i64],
            ends: vec![to as i64],
            axes: Some(vec![axis as i64]),
            steps: None,
        };
        self.add(operator, &[x])
    }

    pub(super) fn concat(&mut self, values: &[ValueId], axis: usize) -> Step<ValueId> {
        match values {
            [one] => Ok(*one),
            _ => self.add(Operator::Concat { axis: axis as i64 }, values),
        }
    }

    pub(super) fn expand(&mut self, x: ValueId, shape: &[usize]) -> Step<ValueId> {
        if self.shape(x) == shape {
            return Ok(x);
        }
        let shape = shape.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
        self.add(Operator::Expand { shape }, &[x])
    }

    pub(super) fn matmul(&mut self, a: ValueId, b: ValueId) -> Step<ValueId> {
        self.add(Operator::MatMul { epilogue: pto_operators::Epilogue::None }, &[a, b])
    }

    /// A scalar of this type.
    pub(super) fn scalar(&mut self, dtype: DType, value: f64) -> ValueId {
        let tensor = scalar_of(dtype, value);
        self.constant(tensor)
    }

    /// A tensor of one value.
    pub(super) fn filled(&mut self, dtype: DType, shape: &[usize], value: f64) -> Step<ValueId> {
        let scalar = self.scalar(dtype, value);
        self.add(Operator::Fill { shape: shape.to_vec() }, &[scalar])
    }

    /// A tensor of these numbers.
    pub(super) fn numbers(
        &mut self,
        dtype: DType,
        shape: &[usize],
        values: &[f64],
    ) -> Step<ValueId> {
        if elements(shape) != values.len() {
            return stop(format!("{} numbers do not fill {shape:?}", values.len()));
        }
        let tensor = Tensor::from_elements(shape, values).map(|tensor| self.constant(tensor));
        let value =
            tensor.ok_or_else(|| Stop::Reason(format!("no tensor has the extents {shape:?}")))?;
        self.cast(value, dtype)
    }
}

/// A scalar of this type.
pub(super) fn scalar_of(dtype: DType, value: f64) -> Tensor {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "callers give numbers that the type has"
    )]
    match dtype {
        DType::Bool => Tensor::scalar(pto_operators::Boolean::from(value != 0.0)),
        DType::F16 => Tensor::scalar(f16::from_f64(value)),
        DType::BF16 => Tensor::scalar(bf16::from_f64(value)),
        DType::F32 => Tensor::scalar(value as f32),
        DType::F64 => Tensor::scalar(value),
        DType::I8 => Tensor::scalar(value as i8),
        DType::I16 => Tensor::scalar(value as i16),
        DType::I32 => Tensor::scalar(value as i32),
        DType::I64 => Tensor::scalar(value as i64),
        DType::U8 => Tensor::scalar(value as u8),
        DType::U16 => Tensor::scalar(value as u16),
        DType::U32 => Tensor::scalar(value as u32),
        DType::U64 => Tensor::scalar(value as u64),
    }
}

/// One value.
pub(super) fn one(value: ValueId) -> Step<Vec<NodeValue>> {
    Ok(vec![NodeValue::Value(value)])
}

/// Several values.
pub(super) fn several(values: impl IntoIterator<Item = ValueId>) -> Step<Vec<NodeValue>> {
    Ok(values.into_iter().map(NodeValue::Value).collect())
}
