//! A graph of operators: values, and nodes that make values of values.

use crate::error::OperatorError;
use crate::infer::Input;
use crate::operator::Operator;
use crate::tensor::{Tensor, TensorType};

/// A value of a graph, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub usize);

/// A tensor of a graph.
#[derive(Clone, Debug)]
pub struct Value {
    /// What it is called.
    pub name: String,
    /// Its type.
    pub ty: TensorType,
    /// The elements, where they are known before a run.
    pub constant: Option<Tensor>,
}

/// A use of an operator.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is called, in errors and timelines.
    pub name: String,
    /// The operator.
    pub operator: Operator,
    /// What it takes; `None`: an optional input that is not given.
    pub inputs: Vec<Option<ValueId>>,
    /// What it makes: all that the operator can give.
    pub outputs: Vec<ValueId>,
}

/// A graph of operators. Nodes stand behind those whose values they take.
#[derive(Clone, Debug)]
pub struct OperatorGraph {
    pub(crate) name: String,
    pub(crate) values: Vec<Value>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) inputs: Vec<ValueId>,
    pub(crate) outputs: Vec<(String, ValueId)>,
}

impl OperatorGraph {
    /// An empty graph.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            values: Vec::new(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn add_value(&mut self, name: &str, ty: TensorType, constant: Option<Tensor>) -> ValueId {
        self.values.push(Value { name: name.to_owned(), ty, constant });
        ValueId(self.values.len() - 1)
    }

    /// A tensor that each run is given.
    pub fn add_input(&mut self, name: &str, ty: TensorType) -> ValueId {
        let value = self.add_value(name, ty, None);
        self.inputs.push(value);
        value
    }

    /// A tensor that is known.
    pub fn add_constant(&mut self, name: &str, tensor: Tensor) -> ValueId {
        self.add_value(name, tensor.ty().clone(), Some(tensor))
    }

    /// A use of an operator: the values that it makes, all that the operator can give. They are named after the node; [`rename`](Self::rename)
    /// names them otherwise.
    ///
    /// # Errors
    /// Those of [`Operator::infer`]. Nothing is added then.
    pub fn add_node(
        &mut self,
        name: &str,
        operator: Operator,
        inputs: &[Option<ValueId>],
    ) -> Result<Vec<ValueId>, OperatorError> {
        let given: Vec<_> =
            inputs.iter().map(|value| value.map(|value| self.given(value))).collect();
        let types = operator.infer(&given)?;
        let named = |at: usize| if at == 0 { name.to_owned() } else { format!("{name}:{at}") };
        let outputs: Vec<_> = types
            .into_iter()
            .enumerate()
            .map(|(at, ty)| self.add_value(&named(at), ty, None))
            .collect();
        let node = Node {
            name: name.to_owned(),
            operator,
            inputs: inputs.to_vec(),
            outputs: outputs.clone(),
        };
        self.nodes.push(node);
        Ok(outputs)
    }

    /// What [`Operator::infer`] is told of a value.
    #[must_use]
    pub fn given(&self, value: ValueId) -> Input<'_> {
        let Value { ty, constant, .. } = &self.values[value.0];
        Input { ty, constant: constant.as_ref() }
    }

    /// Calls a value otherwise.
    pub fn rename(&mut self, value: ValueId, name: &str) {
        name.clone_into(&mut self.values[value.0].name);
    }

    /// A value that each run gives, under this name. Every value can be one, an input and a constant too.
    pub fn add_output(&mut self, name: &str, value: ValueId) {
        self.outputs.push((name.to_owned(), value));
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A value.
    ///
    /// # Panics
    /// It is none of this graph.
    #[must_use]
    pub fn value(&self, value: ValueId) -> &Value {
        &self.values[value.0]
    }

    /// The values; the number of one is its position.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The nodes.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The values that each run is given.
    #[must_use]
    pub fn inputs(&self) -> &[ValueId] {
        &self.inputs
    }

    /// The values that each run gives, with their names.
    #[must_use]
    pub fn outputs(&self) -> &[(String, ValueId)] {
        &self.outputs
    }
}
