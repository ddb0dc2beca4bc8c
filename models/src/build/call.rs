//! A node while it is translated: its attributes, each of which has to be looked at, and its inputs.

use std::cell::RefCell;
use std::collections::BTreeSet;

use pto_operators::ValueId;

use crate::proto::{AttributeProto, GraphProto, NodeProto, TensorProto, attribute_type};

/// What a name of the model stands for.
#[derive(Clone, Debug)]
pub(super) enum NodeValue {
    /// A tensor.
    Value(ValueId),
    /// A sequence of tensors.
    Sequence(Vec<ValueId>),
    /// An optional value that is not there.
    Nothing,
    /// What a node gives that could not be translated.
    Failed,
}

/// Why a node is not translated.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// It cannot be.
    Reason(String),
    /// The values of these inputs decide a shape.
    Needs(BTreeSet<String>),
    /// A node in front of it failed.
    Failed,
}

impl From<pto_operators::OperatorError> for Stop {
    fn from(error: pto_operators::OperatorError) -> Self {
        Self::Reason(error.to_string())
    }
}

/// What comes of an attempt.
pub(super) type Step<T> = Result<T, Stop>;

/// A node, with what its inputs are.
pub(super) struct Call<'m> {
    pub(super) proto: &'m NodeProto,
    /// The version of the operator set.
    pub(super) version: i64,
    pub(super) inputs: Vec<Option<NodeValue>>,
    /// Names of attributes that were looked at.
    seen: RefCell<BTreeSet<&'static str>>,
}

/// An error of a node.
pub(super) fn stop<T>(reason: impl Into<String>) -> Step<T> {
    Err(Stop::Reason(reason.into()))
}

impl<'m> Call<'m> {
    pub(super) const fn new(
        proto: &'m NodeProto,
        version: i64,
        inputs: Vec<Option<NodeValue>>,
    ) -> Self {
        Self { proto, version, inputs, seen: RefCell::new(BTreeSet::new()) }
    }

    /// How many outputs the model takes; later ones that have no name are not counted.
    pub(super) fn outputs(&self) -> usize {
        self.proto.output.iter().rposition(|name| !name.is_empty()).map_or(0, |at| at + 1)
    }

    /// Whether the model takes this output.
    pub(super) fn takes(&self, output: usize) -> bool {
        self.proto.output.get(output).is_some_and(|name| !name.is_empty())
    }

    /// Refuses attributes that nothing has looked at.
    pub(super) fn check_attributes(&self) -> Step<()> {
        let seen = self.seen.borrow();
        match self.proto.attribute.iter().find(|one| !seen.contains(one.name.as_str())) {
            None => Ok(()),
            Some(one) => stop(format!("attribute {} is not known for this version", one.name)),
        }
    }

    fn attribute(&self, name: &'static str, kind: i32) -> Step<Option<&'m AttributeProto>> {
        self.seen.borrow_mut().insert(name);
        let Some(found) = self.proto.attribute.iter().find(|one| one.name == name) else {
            return Ok(None);
        };
        if !found.ref_attr_name.is_empty() {
            return stop(format!(
                "attribute {name} refers to one of a function, and this node is in none"
            ));
        }
        // Files of the first versions have no type.
        if found.r#type != kind && found.r#type != 0 {
            return stop(format!(
                "attribute {name} has type {}, and type {kind} is wanted",
                found.r#type
            ));
        }
        Ok(Some(found))
    }

    /// Looks at an attribute without effect here.
    pub(super) fn ignore(&self, names: &[&'static str]) {
        self.seen.borrow_mut().extend(names);
    }

    pub(super) fn optional_int(&self, name: &'static str) -> Step<Option<i64>> {
        Ok(self.attribute(name, attribute_type::INT)?.map(|found| found.i))
    }

    pub(super) fn int(&self, name: &'static str, default: i64) -> Step<i64> {
        Ok(self.optional_int(name)?.unwrap_or(default))
    }

    pub(super) fn required_int(&self, name: &'static str) -> Step<i64> {
        self.optional_int(name)?.ok_or_else(|| Stop::Reason(format!("attribute {name} is missing")))
    }

    /// An attribute that is a number from 0 on.
    pub(super) fn count(&self, name: &'static str, default: usize) -> Step<usize> {
        match self.optional_int(name)? {
            None => Ok(default),
            Some(value) => usize::try_from(value).map_err(|_| {
                Stop::Reason(format!("attribute {name} is {value}, and has to be 0 or more"))
            }),
        }
    }

    /// An attribute that is 0 or 1.
    pub(super) fn flag(&self, name: &'static str, default: bool) -> Step<bool> {
        match self.optional_int(name)? {
            None => Ok(default),
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(other) => stop(format!("attribute {name} is {other}, and has to be 0 or 1")),
        }
    }

    pub(super) fn optional_float(&self, name: &'static str) -> Step<Option<f64>> {
        Ok(self.attribute(name, attribute_type::FLOAT)?.map(|found| f64::from(found.f)))
    }

    pub(super) fn float(&self, name: &'static str, default: f32) -> Step<f64> {
        Ok(self.optional_float(name)?.unwrap_or(f64::from(default)))
    }

    pub(super) fn optional_text(&self, name: &'static str) -> Step<Option<String>> {
        let found = self.attribute(name, attribute_type::STRING)?;
        Ok(found.map(|found| String::from_utf8_lossy(&found.s).into_owned()))
    }

    pub(super) fn text(&self, name: &'static str, default: &str) -> Step<String> {
        Ok(self.optional_text(name)?.unwrap_or_else(|| default.to_owned()))
    }

    pub(super) fn texts(&self, name: &'static str) -> Step<Option<Vec<String>>> {
        let found = self.attribute(name, attribute_type::STRINGS)?;
        Ok(found.map(|found| {
            found.strings.iter().map(|one| String::from_utf8_lossy(one).into_owned()).collect()
        }))
    }

    pub(super) fn ints(&self, name: &'static str) -> Step<Option<Vec<i64>>> {
        Ok(self.attribute(name, attribute_type::INTS)?.map(|found| found.ints.clone()))
    }

    /// An attribute of numbers from 0 on; empty, where it is not there.
    pub(super) fn counts(&self, name: &'static str) -> Step<Vec<usize>> {
        let ints = self.ints(name)?.unwrap_or_default();
        let count = |value: i64| {
            usize::try_from(value).map_err(|_| {
                Stop::Reason(format!("attribute {name} has {value}, and needs 0 or more"))
            })
        };
        ints.into_iter().map(count).collect()
    }

    pub(super) fn floats(&self, name: &'static str) -> Step<Option<Vec<f64>>> {
        let found = self.attribute(name, attribute_type::FLOATS)?;
        Ok(found.map(|found| found.floats.iter().map(|one| f64::from(*one)).collect()))
    }

    pub(super) fn tensor(&self, name: &'static str) -> Step<Option<TensorProto>> {
        Ok(self.attribute(name, attribute_type::TENSOR)?.and_then(|found| found.t.clone()))
    }

    pub(super) fn graph(&self, name: &'static str) -> Step<&'m GraphProto> {
        let found = self.attribute(name, attribute_type::GRAPH)?.and_then(|found| found.g.as_ref());
        found.ok_or_else(|| Stop::Reason(format!("attribute {name} is missing")))
    }

    /// An input that may be missing.
    pub(super) fn optional(&self, at: usize) -> Step<Option<ValueId>> {
        match self.inputs.get(at) {
            None | Some(None) | Some(Some(NodeValue::Nothing)) => Ok(None),
            Some(Some(NodeValue::Value(value))) => Ok(Some(*value)),
            Some(Some(NodeValue::Sequence(_))) => {
                stop(format!("input {at} is a sequence, and a tensor is wanted"))
            }
            Some(Some(NodeValue::Failed)) => Err(Stop::Failed),
        }
    }

    /// An input.
    pub(super) fn input(&self, at: usize) -> Step<ValueId> {
        self.optional(at)?.ok_or_else(|| Stop::Reason(format!("input {at} is missing")))
    }

    /// An input that is a sequence.
    pub(super) fn sequence(&self, at: usize) -> Step<Vec<ValueId>> {
        match self.inputs.get(at) {
            Some(Some(NodeValue::Sequence(values))) => Ok(values.clone()),
            Some(Some(NodeValue::Failed)) => Err(Stop::Failed),
            _ => stop(format!("input {at} is no sequence, and a sequence is wanted")),
        }
    }

    /// All inputs.
    pub(super) fn all(&self) -> Step<Vec<ValueId>> {
        (0..self.inputs.len()).map(|at| self.input(at)).collect()
    }
}
