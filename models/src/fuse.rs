//! Neighbouring operators become one: less memory is read and written, and fewer tasks run.
//!
//! - A batch normalisation whose numbers are known goes into the weights of the convolution in front of it.
//! - The addition of a constant goes into the bias of a product or a convolution.
//! - Elementwise functions of values with the same extents become one operator.
//! - Elementwise functions of one value, and of numbers, go into the end of a product or a convolution.
//!
//! Each holds only where nothing else needs the value between them. Nodes whose values nothing needs are left out.

use std::collections::{BTreeMap, BTreeSet};

use pto_operators::{
    Activation, Binary, DType, Epilogue, Function, Node, Operator, OperatorGraph, Step, Tensor,
    Unary, ValueId,
};

/// Inputs and steps of a fused operator, at most: what it needs at once stays small.
const MOST_INPUTS: usize = 12;
const MOST_STEPS: usize = 24;

/// A node with the values of the graph that is fused.
#[derive(Clone)]
struct Draft {
    name: String,
    operator: Operator,
    inputs: Vec<Option<ValueId>>,
    outputs: Vec<ValueId>,
}

/// The graph with fewer nodes: it gives the same.
pub(crate) fn fused(graph: &OperatorGraph) -> OperatorGraph {
    let mut work = FusionState::new(graph);
    while work.one_step() {}
    work.rebuilt().unwrap_or_else(|| graph.clone())
}

struct FusionState<'g> {
    graph: &'g OperatorGraph,
    nodes: Vec<Option<Draft>>,
    /// Constants that fusion has made, by the values that they replace.
    constants: BTreeMap<ValueId, Tensor>,
    fresh: usize,
    /// How many nodes read a value; each output of the graph counts as one.
    readers: BTreeMap<ValueId, usize>,
    makers: BTreeMap<ValueId, usize>,
    next: usize,
}

impl<'g> FusionState<'g> {
    fn new(graph: &'g OperatorGraph) -> Self {
        let draft = |node: &Node| {
            let Node { name, operator, inputs, outputs } = node;
            Some(Draft {
                name: name.clone(),
                operator: operator.clone(),
                inputs: inputs.clone(),
                outputs: outputs.clone(),
            })
        };
        let mut work = Self {
            graph,
            nodes: graph.nodes().iter().map(draft).collect(),
            constants: BTreeMap::new(),
            fresh: graph.values().len(),
            readers: BTreeMap::new(),
            makers: BTreeMap::new(),
            next: 0,
        };
        for (at, node) in graph.nodes().iter().enumerate() {
            distinct(&node.inputs)
                .into_iter()
                .for_each(|value| *work.readers.entry(value).or_default() += 1);
            node.outputs.iter().for_each(|value| {
                work.makers.insert(*value, at);
            });
        }
        for (_, value) in graph.outputs() {
            *work.readers.entry(*value).or_default() += 1;
        }
        work
    }

    fn constant(&self, value: ValueId) -> Option<&Tensor> {
        self.constants.get(&value).or_else(|| self.graph.values().get(value.0)?.constant.as_ref())
    }

    fn shape(&self, value: ValueId) -> &[usize] {
        match self.constants.get(&value) {
            Some(tensor) => tensor.shape(),
            None => &self.graph.value(value).ty.shape,
        }
    }

    /// Fuses one node with the one in front of it; whether there was one.
    fn one_step(&mut self) -> bool {
        while self.next < self.nodes.len() {
            let at = self.next;
            if let Some(fused) = self.fuse(at) {
                // The result may take the next one along.
                self.next = fused;
                return true;
            }
            self.next += 1;
        }
        false
    }

    /// The product or convolution that makes a value which nothing else reads.
    fn producer(&self, value: ValueId) -> Option<usize> {
        let at = *self.makers.get(&value)?;
        epilogue(&self.nodes[at].as_ref()?.operator)?;
        (self.readers.get(&value) == Some(&1)).then_some(at)
    }

    /// The same, where it has nothing behind it yet.
    fn plain_producer(&self, value: ValueId) -> Option<usize> {
        let at = self.producer(value)?;
        let is_plain = matches!(epilogue(&self.nodes[at].as_ref()?.operator)?, Epilogue::None);
        is_plain.then_some(at)
    }

    /// Fuses the node at `at` with one in front of it. Where the result is.
    fn fuse(&mut self, at: usize) -> Option<usize> {
        let node = self.nodes[at].clone()?;
        match &node.operator {
            Operator::BatchNormalization { epsilon } => self.normalization(at, &node, *epsilon),
            _ => self
                .bias(at, &node)
                .or_else(|| self.functions_of_product(at, &node))
                .or_else(|| self.elementwise(at, &node)),
        }
    }

    /// The node at `at` is done by `producer`.
    fn replace(&mut self, at: usize, producer: usize, mut draft: Draft) -> usize {
        let node = self.nodes[at].take();
        let outputs = node.map(|node| node.outputs).unwrap_or_default();
        draft.outputs.clone_from(&outputs);
        self.makers.extend(outputs.into_iter().map(|value| (value, producer)));
        self.nodes[producer] = Some(draft);
        producer
    }

    /// Elementwise functions of a product and of numbers become its end.
    fn functions_of_product(&mut self, at: usize, node: &Draft) -> Option<usize> {
        let steps = steps_of(node)?;
        let is_open = |value: &ValueId| self.constant(*value).is_none();
        let [product] = distinct(&node.inputs).into_iter().filter(is_open).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let producer = self.producer(product)?;
        // The type stays: the functions of a product are of its elements.
        let (before, after) =
            (&self.graph.value(product).ty, &self.graph.value(*node.outputs.first()?).ty);
        if before != after || !before.dtype.is_float() {
            return None;
        }
        let mut draft = self.nodes[producer].clone()?;
        let mut all = steps_of_epilogue(epilogue(&draft.operator)?);
        let result = all.len();
        for step in &steps {
            all.push(self.step_of_product(step, node, (product, result))?);
        }
        let epilogue = match all.as_slice() {
            [Step { function: Function::Unary(unary), .. }] => Epilogue::Unary(*unary),
            [Step { function: Function::Activation(activation), .. }] => {
                Epilogue::Activation(activation.clone())
            }
            _ if matches!(before.dtype, DType::F32 | DType::F64) && all.len() <= MOST_STEPS => {
                Epilogue::Steps(all)
            }
            _ => return None,
        };
        set_epilogue(&mut draft.operator, epilogue);
        draft.name = format!("{}+{}", draft.name, node.name);
        Some(self.replace(at, producer, draft))
    }

    /// A step as one of a product, whose value has the number `result` there. Numbers become part of the function.
    fn step_of_product(
        &self,
        step: &Step,
        node: &Draft,
        (product, result): (ValueId, usize),
    ) -> Option<Step> {
        let operand = |at: usize| -> Option<Operand> {
            let number = step.operands.get(at).copied().flatten()?;
            match node.inputs.get(number) {
                Some(value) if *value == Some(product) => Some(Operand::Value(result)),
                Some(value) => self.number((*value)?).map(Operand::Number),
                // Steps count from behind the inputs, and there from behind the product.
                None => Some(Operand::Value(result + 1 + number - node.inputs.len())),
            }
        };
        let affine = |alpha: f64, beta: f64| Activation::Affine { alpha, beta };
        let of_one =
            |value: usize, function: Function| Some(Step { function, operands: vec![Some(value)] });
        let of_number =
            |value: usize, activation: Activation| of_one(value, Function::Activation(activation));
        let (first, second) = (operand(0)?, operand(1));
        match (&step.function, first, second) {
            (Function::Unary(Unary::IsNaN), ..)
            | (Function::Activation(Activation::IsInf { .. }), ..) => None,
            (Function::Unary(_) | Function::Activation(_), Operand::Value(x), None) => {
                of_one(x, step.function.clone())
            }
            (
                Function::Binary(
                    Binary::Add
                    | Binary::Sub
                    | Binary::Mul
                    | Binary::Div
                    | Binary::Max
                    | Binary::Min,
                ),
                Operand::Value(a),
                Some(Operand::Value(b)),
            ) => Some(Step { function: step.function.clone(), operands: vec![Some(a), Some(b)] }),
            (Function::Binary(binary), Operand::Value(x), Some(Operand::Number(number))) => {
                match binary {
                    Binary::Add => of_number(x, affine(1.0, number)),
                    Binary::Sub => of_number(x, affine(1.0, -number)),
                    Binary::Mul => of_number(x, affine(number, 0.0)),
                    Binary::Div if number != 0.0 => of_number(x, affine(1.0 / number, 0.0)),
                    _ => None,
                }
            }
            (Function::Binary(binary), Operand::Number(number), Some(Operand::Value(x))) => {
                match binary {
                    Binary::Add => of_number(x, affine(1.0, number)),
                    Binary::Sub => of_number(x, affine(-1.0, number)),
                    Binary::Mul => of_number(x, affine(number, 0.0)),
                    _ => None,
                }
            }
            (Function::Clip, Operand::Value(x), _) => {
                let limit = |at: usize, none: f64| match step.operands.get(at).copied().flatten() {
                    None => Some(none),
                    Some(_) => match operand(at)? {
                        Operand::Number(number) => Some(number),
                        Operand::Value(_) => None,
                    },
                };
                let (low, high) = (limit(1, f64::NEG_INFINITY)?, limit(2, f64::INFINITY)?);
                of_number(x, Activation::Clamp { low, high })
            }
            _ => None,
        }
    }

    /// The finite number that a constant of one element is.
    fn number(&self, value: ValueId) -> Option<f64> {
        let constant = self.constant(value)?;
        let is_one = constant.ty().elements() == 1 && constant.dtype().is_float();
        let numbers = is_one.then(|| constant.to_doubles())?;
        numbers.first().copied().filter(|number| number.is_finite())
    }

    /// An elementwise operator takes the one along that makes one of its inputs, where nothing else reads that.
    fn elementwise(&mut self, at: usize, node: &Draft) -> Option<usize> {
        let steps = steps_of(node)?;
        let made = *node.outputs.first()?;
        let before = distinct(&node.inputs).into_iter().find_map(|value| {
            let before = *self.makers.get(&value)?;
            let draft = self.nodes[before].as_ref()?;
            let is_alone = self.readers.get(&value) == Some(&1) && draft.outputs == [value];
            let own = steps_of(draft)?;
            let fits = is_alone
                && self.graph.value(value).ty.shape == self.graph.value(made).ty.shape
                && own.len() + steps.len() <= MOST_STEPS;
            fits.then(|| (value, before, draft.clone(), own))
        });
        let (value, before, draft, own) = before?;
        let mut inputs = distinct(&draft.inputs);
        inputs.extend(distinct(&node.inputs).into_iter().filter(|other| *other != value));
        let mut seen = BTreeSet::new();
        inputs.retain(|input| seen.insert(*input));
        if inputs.len() > MOST_INPUTS {
            return None;
        }
        let input = |value: ValueId| inputs.iter().position(|input| *input == value);
        // Both of them read it: now one does.
        let both =
            distinct(&draft.inputs).into_iter().filter(|one| node.inputs.contains(&Some(*one)));
        both.for_each(|one| {
            self.readers.entry(one).and_modify(|readers| *readers -= 1);
        });
        let first = renumbered(&own, |number| match draft.inputs.get(number) {
            Some(value) => input((*value)?),
            None => Some(inputs.len() + number - draft.inputs.len()),
        });
        let second = renumbered(&steps, |number| match node.inputs.get(number) {
            Some(one) if *one == Some(value) => Some(inputs.len() + own.len() - 1),
            Some(one) => input((*one)?),
            None => Some(inputs.len() + own.len() + number - node.inputs.len()),
        });
        self.nodes[before] = None;
        self.nodes[at] = Some(Draft {
            name: format!("{}+{}", draft.name, node.name),
            operator: Operator::Fused { steps: [first, second].concat() },
            inputs: inputs.into_iter().map(Some).collect(),
            outputs: node.outputs.clone(),
        });
        Some(at)
    }

    fn bias(&mut self, at: usize, node: &Draft) -> Option<usize> {
        if !matches!(node.operator, Operator::Binary(Binary::Add)) {
            return None;
        }
        let (left, right) =
            (node.inputs.first().copied().flatten()?, node.inputs.get(1).copied().flatten()?);
        let (product, added) =
            if self.constant(right).is_some() { (left, right) } else { (right, left) };
        let bias = self.constant(added)?.clone();
        let producer = self.plain_producer(product)?;
        let mut draft = self.nodes[producer].clone()?;
        if draft.inputs.get(2).copied().flatten().is_some() {
            return None;
        }
        let made = self.shape(product).to_vec();
        if self.graph.value(*node.outputs.first()?).ty.shape != made {
            return None;
        }
        let bias = match &draft.operator {
            Operator::Conv { .. } | Operator::ConvTranspose { .. } => of_channels(bias, &made)?,
            Operator::MatMul { .. } => bias,
            _ => return None,
        };
        let value = ValueId(self.fresh);
        self.fresh += 1;
        self.constants.insert(value, bias);
        draft.inputs.resize(3, None);
        draft.inputs[2] = Some(value);
        draft.name = format!("{}+{}", draft.name, node.name);
        Some(self.replace(at, producer, draft))
    }

    /// scale (conv(x, w) + b - mean) / sqrt(variance + epsilon) + bias is a convolution with other weights and another bias.
    fn normalization(&mut self, at: usize, node: &Draft, epsilon: f64) -> Option<usize> {
        let input = node.inputs.first().copied().flatten()?;
        let producer = self.plain_producer(input)?;
        let mut draft = self.nodes[producer].clone()?;
        let Operator::Conv { .. } = &draft.operator else { return None };
        let numbers =
            |at: usize| Some(self.constant(node.inputs.get(at).copied().flatten()?)?.to_doubles());
        let (scale, bias, mean, variance) = (numbers(1)?, numbers(2)?, numbers(3)?, numbers(4)?);
        let weights = self.constant(draft.inputs.get(1).copied().flatten()?)?;
        if weights.dtype() != DType::F32 {
            return None;
        }
        let channels = *weights.shape().first()?;
        if [&scale, &bias, &mean, &variance].iter().any(|all| all.len() != channels)
            || channels == 0
        {
            return None;
        }
        let own = match draft.inputs.get(2).copied().flatten() {
            Some(own) => self.constant(own)?.to_doubles(),
            None => vec![0.0; channels],
        };
        let factors: Vec<f64> = scale
            .iter()
            .zip(&variance)
            .map(|(scale, variance)| scale / (variance + epsilon).sqrt())
            .collect();
        let each = weights.ty().elements() / channels;
        #[expect(clippy::cast_possible_truncation, reason = "weights are rounded once")]
        let scaled: Vec<f32> = weights
            .to_doubles()
            .iter()
            .enumerate()
            .map(|(at, weight)| (weight * factors[at / each.max(1)]) as f32)
            .collect();
        #[expect(clippy::cast_possible_truncation, reason = "a bias is rounded once")]
        let moved: Vec<f32> = (0..channels)
            .map(|at| ((own[at] - mean[at]) * factors[at] + bias[at]) as f32)
            .collect();
        let weights = Tensor::from_elements(weights.shape(), &scaled)?;
        draft.inputs.resize(3, None);
        for (input, tensor) in [(1, weights), (2, Tensor::vector(&moved))] {
            let value = ValueId(self.fresh);
            self.fresh += 1;
            self.constants.insert(value, tensor);
            draft.inputs[input] = Some(value);
        }
        draft.name = format!("{}+{}", draft.name, node.name);
        Some(self.replace(at, producer, draft))
    }

    /// The graph of the nodes that are left, and that something needs.
    fn rebuilt(&self) -> Option<OperatorGraph> {
        let mut needed: BTreeSet<ValueId> =
            self.graph.outputs().iter().map(|(_, value)| *value).collect();
        let mut kept = Vec::new();
        // A fused node is where its product was: everything that it reads is in front of it.
        for node in self.nodes.iter().rev().flatten() {
            if node.outputs.iter().any(|value| needed.contains(value)) {
                needed.extend(node.inputs.iter().flatten());
                kept.push(node);
            }
        }
        let mut graph = OperatorGraph::new(self.graph.name());
        let mut known: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        for input in self.graph.inputs() {
            let value = self.graph.value(*input);
            known.insert(*input, graph.add_input(&value.name, value.ty.clone()));
        }
        for value in needed {
            if let Some(tensor) = self.constant(value) {
                let name =
                    self.graph.values().get(value.0).map_or("fused", |value| value.name.as_str());
                known.insert(value, graph.add_constant(name, tensor.clone()));
            }
        }
        for node in kept.into_iter().rev() {
            let inputs: Option<Vec<_>> = node
                .inputs
                .iter()
                .map(|input| {
                    input.map_or(Some(None), |input| known.get(&input).map(|value| Some(*value)))
                })
                .collect();
            let made = graph.add_node(&node.name, node.operator.clone(), &inputs?).ok()?;
            for (old, new) in node.outputs.iter().zip(made) {
                graph.rename(new, &self.graph.value(*old).name);
                known.insert(*old, new);
            }
        }
        for (name, value) in self.graph.outputs() {
            graph.add_output(name, *known.get(value)?);
        }
        Some(graph)
    }
}

/// An operand of a function behind a product.
enum Operand {
    /// The product, or the result of a step.
    Value(usize),
    Number(f64),
}

/// The values that a node reads, each once.
fn distinct(inputs: &[Option<ValueId>]) -> Vec<ValueId> {
    let mut seen = BTreeSet::new();
    inputs.iter().flatten().copied().filter(|value| seen.insert(*value)).collect()
}

/// The functions of an elementwise operator.
fn steps_of(node: &Draft) -> Option<Vec<Step>> {
    match &node.operator {
        Operator::Fused { steps } => Some(steps.clone()),
        Operator::Unary(Unary::Identity) => None,
        operator => {
            let inputs = node.inputs.iter().enumerate();
            let operands = inputs.map(|(at, input)| input.map(|_| at)).collect();
            Some(vec![Step { function: operator.function()?, operands }])
        }
    }
}

fn steps_of_epilogue(epilogue: &Epilogue) -> Vec<Step> {
    let one = |function: Function| vec![Step { function, operands: vec![Some(0)] }];
    match epilogue {
        Epilogue::None => Vec::new(),
        Epilogue::Unary(unary) => one(Function::Unary(*unary)),
        Epilogue::Activation(activation) => one(Function::Activation(activation.clone())),
        Epilogue::Steps(steps) => steps.clone(),
    }
}

/// Steps with other numbers of their operands.
fn renumbered(steps: &[Step], number: impl Fn(usize) -> Option<usize>) -> Vec<Step> {
    let step = |step: &Step| Step {
        function: step.function.clone(),
        operands: step.operands.iter().map(|at| at.and_then(&number)).collect(),
    };
    steps.iter().map(step).collect()
}

/// A bias of channels: the tensor is the same everywhere but in dimension 1.
fn of_channels(bias: Tensor, made: &[usize]) -> Option<Tensor> {
    let channels = *made.get(1)?;
    let padded: Vec<usize> = std::iter::repeat_n(1, made.len().checked_sub(bias.shape().len())?)
        .chain(bias.shape().iter().copied())
        .collect();
    let is_of_channels =
        padded.iter().enumerate().all(|(at, extent)| *extent == if at == 1 { channels } else { 1 });
    if is_of_channels { bias.reshaped(&[channels]) } else { None }
}

fn epilogue(operator: &Operator) -> Option<&Epilogue> {
    match operator {
        Operator::MatMul { epilogue }
        | Operator::Gemm { epilogue, .. }
        | Operator::Conv { epilogue, .. }
        | Operator::ConvTranspose { epilogue, .. } => Some(epilogue),
        _ => None,
    }
}

fn set_epilogue(operator: &mut Operator, to: Epilogue) {
    match operator {
        Operator::MatMul { epilogue }
        | Operator::Gemm { epilogue, .. }
        | Operator::Conv { epilogue, .. }
        | Operator::ConvTranspose { epilogue, .. } => *epilogue = to,
        _ => {}
    }
}
