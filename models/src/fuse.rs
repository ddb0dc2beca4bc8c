//! Neighbouring operators become one: less memory is read and written, and fewer tasks run.
//!
//! - A batch normalisation whose numbers are known goes into the weights of the convolution in front of it.
//! - The addition of a constant goes into the bias of a product or a convolution.
//! - An elementwise function goes into the end of a product or a convolution.
//!
//! Each holds only where nothing else needs the value between them. Nodes whose values nothing needs are left out.

use std::collections::{BTreeMap, BTreeSet};

use pto_operators::{Binary, DType, Epilogue, Node, Operator, OperatorGraph, Tensor, ValueId};

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
    /// How many nodes and outputs read a value.
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
            node.inputs
                .iter()
                .flatten()
                .for_each(|value| *work.readers.entry(*value).or_default() += 1);
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
            if self.fuse(at).is_some() {
                // The result may take the next one along.
                self.next = 0;
                return true;
            }
            self.next += 1;
        }
        false
    }

    /// The product or convolution that makes a value which nothing else reads, and which has nothing behind it yet.
    fn producer(&self, value: ValueId) -> Option<usize> {
        let at = *self.makers.get(&value)?;
        let node = self.nodes[at].as_ref()?;
        let is_open = matches!(epilogue(&node.operator)?, Epilogue::None);
        (is_open && self.readers.get(&value) == Some(&1)).then_some(at)
    }

    fn fuse(&mut self, at: usize) -> Option<()> {
        let node = self.nodes[at].clone()?;
        match &node.operator {
            Operator::Unary(unary) => self.activation(at, &node, Epilogue::Unary(*unary)),
            Operator::Activation(activation) => {
                self.activation(at, &node, Epilogue::Activation(activation.clone()))
            }
            Operator::Binary(Binary::Add) => self.bias(at, &node),
            Operator::BatchNormalization { epsilon } => self.normalization(at, &node, *epsilon),
            _ => None,
        }
    }

    /// The node at `at` is done by `producer`.
    fn replace(&mut self, at: usize, producer: usize, mut draft: Draft) {
        let node = self.nodes[at].take();
        let outputs = node.map(|node| node.outputs).unwrap_or_default();
        draft.outputs.clone_from(&outputs);
        self.makers.extend(outputs.into_iter().map(|value| (value, producer)));
        self.nodes[producer] = Some(draft);
    }

    fn activation(&mut self, at: usize, node: &Draft, epilogue: Epilogue) -> Option<()> {
        let input = node.inputs.first().copied().flatten()?;
        let producer = self.producer(input)?;
        // The type stays: the function of a product is of its elements.
        let (before, after) =
            (&self.graph.value(input).ty, &self.graph.value(*node.outputs.first()?).ty);
        if before != after || !before.dtype.is_float() {
            return None;
        }
        let mut draft = self.nodes[producer].clone()?;
        set_epilogue(&mut draft.operator, epilogue);
        draft.name = format!("{}+{}", draft.name, node.name);
        self.replace(at, producer, draft);
        Some(())
    }

    fn bias(&mut self, at: usize, node: &Draft) -> Option<()> {
        let (left, right) =
            (node.inputs.first().copied().flatten()?, node.inputs.get(1).copied().flatten()?);
        let (product, added) =
            if self.constant(right).is_some() { (left, right) } else { (right, left) };
        let bias = self.constant(added)?.clone();
        let producer = self.producer(product)?;
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
        self.replace(at, producer, draft);
        Some(())
    }

    /// scale (conv(x, w) + b - mean) / sqrt(variance + epsilon) + bias is a convolution with other weights and another bias.
    fn normalization(&mut self, at: usize, node: &Draft, epsilon: f64) -> Option<()> {
        let input = node.inputs.first().copied().flatten()?;
        let producer = self.producer(input)?;
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
        self.replace(at, producer, draft);
        Some(())
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
