//! Single operators by the names of CANN, written as nodes of ONNX: the operators have one home, and that is where models find them.
//!
//! A row for each operator: its name, and what translates it. Names and attributes are those of the public catalogue of operators. An attribute that
//! nothing has looked at is refused.

use std::collections::BTreeSet;

use pto_models::number_of;
use pto_models::proto::{
    AttributeProto, Dimension, DimensionValue, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, TypeValue,
    ValueInfoProto, attribute_type,
};
use pto_operators::DType;

use super::data_type;
use super::operator_attributes::{AttributeValue, OperatorAttributes};
use super::tensor_desc::TensorDesc;
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};

/// The version of ONNX's operators that nodes are written for.
const VERSION: i64 = 13;

/// Translates one operator.
type CannTranslator = fn(&mut Translation<'_>) -> Answer;

/// What the operator is in ONNX, where only the name may differ.
const SAME: &[(&str, &str)] = &[
    ("Abs", "Abs"),
    ("Acos", "Acos"),
    ("Add", "Add"),
    ("Asin", "Asin"),
    ("Atan", "Atan"),
    ("Ceil", "Ceil"),
    ("Cos", "Cos"),
    ("Div", "Div"),
    ("Equal", "Equal"),
    ("Erf", "Erf"),
    ("Floor", "Floor"),
    ("Greater", "Greater"),
    ("GreaterEqual", "GreaterOrEqual"),
    ("Identity", "Identity"),
    ("Less", "Less"),
    ("LessEqual", "LessOrEqual"),
    ("LogicalAnd", "And"),
    ("LogicalNot", "Not"),
    ("LogicalOr", "Or"),
    ("Maximum", "Max"),
    ("Minimum", "Min"),
    ("Mul", "Mul"),
    ("Neg", "Neg"),
    ("Pow", "Pow"),
    ("RealDiv", "Div"),
    ("Reciprocal", "Reciprocal"),
    ("Relu", "Relu"),
    ("Rint", "Round"),
    ("Round", "Round"),
    ("Select", "Where"),
    ("Sigmoid", "Sigmoid"),
    ("Sign", "Sign"),
    ("Sin", "Sin"),
    ("Sqrt", "Sqrt"),
    ("Sub", "Sub"),
    ("Tan", "Tan"),
    ("Tanh", "Tanh"),
];

/// Operators whose attributes or inputs differ.
const OTHERS: &[(&str, CannTranslator)] = &[
    ("AvgPoolV2", |t| t.pool("AveragePool")),
    ("BatchMatMul", |t| t.product("adj_x1", "adj_x2")),
    ("BatchMatMulV2", |t| t.product("adj_x1", "adj_x2")),
    ("BatchNorm", |t| t.batch_norm()),
    ("BroadcastTo", |t| t.broadcast()),
    ("BroadcastToD", |t| t.broadcast()),
    ("Cast", |t| t.cast()),
    ("Conv2D", |t| t.convolution()),
    ("Conv3D", |t| t.convolution()),
    ("Exp", |t| t.exponential("Exp")),
    ("Fill", |t| t.fill()),
    ("Flatten", |t| t.flatten()),
    ("GEMM", |t| t.gemm()),
    ("Log", |t| t.exponential("Log")),
    ("MatMul", |t| t.product("transpose_x1", "transpose_x2")),
    ("MatMulV2", |t| t.product("transpose_x1", "transpose_x2")),
    ("MaxPoolV3", |t| t.pool("MaxPool")),
    ("Reshape", |t| t.reshape()),
    ("SoftmaxV2", |t| t.softmax()),
    ("Transpose", |t| t.transpose()),
    ("TransposeD", |t| t.transpose()),
];

/// An operator that is translated.
struct Translation<'t> {
    operator: &'t str,
    inputs: &'t [Option<TensorDesc>],
    outputs: &'t [TensorDesc],
    attributes: &'t OperatorAttributes,
    seen: BTreeSet<&'static str>,
    graph: GraphProto,
}

/// The model with this operator alone: its inputs are those that are no constants, `x0` and so on by their numbers, and its outputs `y0` and so on.
pub(super) fn model(
    operator: &str,
    inputs: &[Option<TensorDesc>],
    outputs: &[TensorDesc],
    attributes: &OperatorAttributes,
) -> Answer<ModelProto> {
    let same = SAME.iter().find(|(name, _)| *name == operator);
    let other = OTHERS.iter().find(|(name, _)| *name == operator);
    let mut translation = Translation {
        operator,
        inputs,
        outputs,
        attributes,
        seen: BTreeSet::new(),
        graph: GraphProto { name: operator.to_owned(), ..GraphProto::default() },
    };
    translation.declare()?;
    match (same, other) {
        (Some((_, onnx)), _) => translation.same(onnx)?,
        (None, Some((_, translate))) => translate(&mut translation)?,
        (None, None) => {
            let mut known: Vec<_> =
                SAME.iter().map(|row| row.0).chain(OTHERS.iter().map(|row| row.0)).collect();
            known.sort_unstable();
            let text =
                format!("there is no operator {operator} here; there are {}", known.join(", "));
            return Err(Refusal::new(codes::OP_NOT_FOUND, text));
        }
    }
    translation.finish()
}

fn attribute(name: &str, r#type: i32) -> AttributeProto {
    AttributeProto { name: name.to_owned(), r#type, ..AttributeProto::default() }
}

fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { i, ..attribute(name, attribute_type::INT) }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto { ints: ints.to_vec(), ..attribute(name, attribute_type::INTS) }
}

fn float(name: &str, f: f32) -> AttributeProto {
    AttributeProto { f, ..attribute(name, attribute_type::FLOAT) }
}

fn text(name: &str, s: &str) -> AttributeProto {
    AttributeProto { s: s.as_bytes().to_vec(), ..attribute(name, attribute_type::STRING) }
}

/// The element type of a description.
fn dtype(description: &TensorDesc) -> Answer<DType> {
    data_type::of(description.data_type).ok_or_else(|| {
        let text = format!("no operator here takes elements of the type {}", description.data_type);
        Refusal::new(codes::DATA_TYPE, text)
    })
}

impl Translation<'_> {
    fn refuse(&self, code: i32, what: String) -> Refusal {
        Refusal::new(code, format!("operator {}: {what}", self.operator))
    }

    /// Declares inputs, constants and outputs.
    fn declare(&mut self) -> Answer {
        const DENSE: [i32; 5] = [-1, 0, 1, 2, 30];
        let described = self.inputs.iter().flatten().chain(self.outputs);
        if let Some(other) = described.into_iter().find(|other| !DENSE.contains(&other.format)) {
            let what =
                format!("a tensor has the format {}; pass row-major ones (ND, NCHW)", other.format);
            return Err(self.refuse(codes::FORMAT_NOT_MATCH, what));
        }
        for (number, input) in self.inputs.iter().enumerate() {
            let Some(input) = input else { continue };
            let name = format!("x{number}");
            let elem_type = number_of(dtype(input)?);
            match &input.constant {
                Some(elements) => self.graph.initializer.push(TensorProto {
                    dims: input.shape.clone(),
                    data_type: elem_type,
                    name,
                    raw_data: Some(elements.clone()),
                    ..TensorProto::default()
                }),
                None => {
                    let extent =
                        |extent: &i64| Dimension { value: Some(DimensionValue::Value(*extent)) };
                    let shape = TensorShapeProto { dim: input.shape.iter().map(extent).collect() };
                    let tensor = TensorTypeProto { elem_type, shape: Some(shape) };
                    let r#type = Some(TypeProto { value: Some(TypeValue::Tensor(tensor)) });
                    self.graph.input.push(ValueInfoProto { name, r#type });
                }
            }
        }
        let output = |number| ValueInfoProto { name: format!("y{number}"), r#type: None };
        self.graph.output = (0..self.outputs.len()).map(output).collect();
        Ok(())
    }

    fn finish(self) -> Answer<ModelProto> {
        let unseen = self.attributes.keys().find(|name| !self.seen.contains(name.as_str()));
        if let Some(name) = unseen {
            let what = format!("it has no attribute {name}");
            return Err(self.refuse(codes::OP_ATTR_NOT_MATCH, what));
        }
        let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: VERSION }];
        Ok(ModelProto { graph: Some(self.graph), opset_import, ..ModelProto::default() })
    }

    /// Refuses another number of inputs.
    fn takes(&self, least: usize, most: usize) -> Answer {
        let there = self.inputs.len();
        let are_given = self.inputs.iter().take(least).all(Option::is_some);
        require((least..=most).contains(&there) && are_given, || {
            let wanted =
                if least == most { format!("{least}") } else { format!("{least} to {most}") };
            self.refuse(
                codes::OP_INPUT_NOT_MATCH,
                format!("it has {wanted} inputs, and {there} are given"),
            )
        })
    }

    fn value(&mut self, name: &'static str) -> Option<&AttributeValue> {
        self.seen.insert(name);
        self.attributes.get(name)
    }

    fn other_type(&self, name: &str) -> Refusal {
        self.refuse(codes::OP_ATTR_NOT_MATCH, format!("attribute {name} has another type"))
    }

    fn take_bool(&mut self, name: &'static str) -> Answer<bool> {
        match self.value(name) {
            None => Ok(false),
            Some(AttributeValue::Bool(value)) => Ok(*value),
            Some(_) => Err(self.other_type(name)),
        }
    }

    fn take_int(&mut self, name: &'static str) -> Answer<Option<i64>> {
        match self.value(name) {
            None => Ok(None),
            Some(AttributeValue::Int(value)) => Ok(Some(*value)),
            Some(_) => Err(self.other_type(name)),
        }
    }

    fn take_float(&mut self, name: &'static str) -> Answer<Option<f32>> {
        match self.value(name) {
            None => Ok(None),
            Some(AttributeValue::Float(value)) => Ok(Some(*value)),
            Some(_) => Err(self.other_type(name)),
        }
    }

    fn take_ints(&mut self, name: &'static str) -> Answer<Option<Vec<i64>>> {
        match self.value(name) {
            None => Ok(None),
            Some(AttributeValue::Ints(values)) => Ok(Some(values.clone())),
            Some(_) => Err(self.other_type(name)),
        }
    }

    fn take_text(&mut self, name: &'static str) -> Answer<Option<String>> {
        match self.value(name) {
            None => Ok(None),
            Some(AttributeValue::Text(value)) => Ok(Some(value.clone())),
            Some(_) => Err(self.other_type(name)),
        }
    }

    /// Refuses every layout of channels but that of ONNX.
    fn channels_first(&mut self) -> Answer {
        let found = self.take_text("data_format")?;
        require(
            found.as_deref().is_none_or(|found| matches!(found, "NCHW" | "NCDHW" | "ND")),
            || {
                let what =
                    format!("data_format is {}; pass NCHW", found.as_deref().unwrap_or_default());
                self.refuse(codes::OP_ATTR_NOT_MATCH, what)
            },
        )
    }

    fn node(
        &mut self,
        op_type: &str,
        input: &[&str],
        output: &str,
        attribute: Vec<AttributeProto>,
    ) {
        self.graph.node.push(NodeProto {
            input: input.iter().map(|name| (*name).to_owned()).collect(),
            output: vec![output.to_owned()],
            name: self.operator.to_owned(),
            op_type: op_type.to_owned(),
            attribute,
            domain: String::new(),
        });
    }

    fn constant(&mut self, name: &str, values: &[i64]) {
        let dims = vec![i64::try_from(values.len()).unwrap_or(0)];
        let data_type = number_of(DType::I64);
        let raw_data = Some(values.iter().flat_map(|value| value.to_le_bytes()).collect());
        let name = name.to_owned();
        self.graph.initializer.push(TensorProto {
            dims,
            data_type,
            name,
            raw_data,
            ..TensorProto::default()
        });
    }

    /// The whole numbers of an input that is a constant.
    fn known(&self, number: usize) -> Answer<Vec<i64>> {
        let input = self.inputs.get(number).and_then(Option::as_ref);
        let found = input.and_then(|input| {
            let elements = input.constant.as_ref()?;
            match dtype(input).ok()? {
                DType::I64 => Some(
                    elements.as_chunks().0.iter().map(|word| i64::from_ne_bytes(*word)).collect(),
                ),
                DType::I32 => {
                    let words = elements.as_chunks().0.iter();
                    Some(words.map(|word| i64::from(i32::from_ne_bytes(*word))).collect())
                }
                _ => None,
            }
        });
        found.ok_or_else(|| {
            let what = format!(
                "input {number} decides the shape; give its whole numbers with aclSetTensorConst"
            );
            self.refuse(codes::OP_INPUT_NOT_MATCH, what)
        })
    }

    /// The extents of the first input.
    fn shape(&self) -> &[i64] {
        self.inputs.first().and_then(Option::as_ref).map_or(&[], |input| &input.shape)
    }

    fn same(&mut self, onnx: &str) -> Answer {
        let names: Vec<String> =
            (0..self.inputs.len()).map(|number| format!("x{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.takes(1, 3)?;
        self.node(onnx, &names, "y0", Vec::new());
        Ok(())
    }

    fn exponential(&mut self, onnx: &str) -> Answer {
        for (name, usual) in [("base", -1.0), ("scale", 1.0), ("shift", 0.0)] {
            let found = self.take_float(name)?.unwrap_or(usual);
            require(found.to_bits() == usual.to_bits(), || {
                self.refuse(
                    codes::OP_ATTR_NOT_MATCH,
                    format!("{name} is {found}, and {usual} is supported"),
                )
            })?;
        }
        self.takes(1, 1)?;
        self.node(onnx, &["x0"], "y0", Vec::new());
        Ok(())
    }

    /// An input with its last two axes exchanged, where that is asked for; the name of what it is then.
    fn turned(&mut self, number: usize, is_turned: bool) -> String {
        let name = format!("x{number}");
        let rank = self.inputs[number].as_ref().map_or(0, |input| input.shape.len());
        if !is_turned || rank < 2 {
            return name;
        }
        let mut axes: Vec<i64> = (0..).take(rank).collect();
        axes.swap(rank - 1, rank - 2);
        let turned = format!("{name}_turned");
        self.node("Transpose", &[&name], &turned, vec![ints("perm", &axes)]);
        turned
    }

    fn product(&mut self, first: &'static str, second: &'static str) -> Answer {
        let turns = [self.take_bool(first)?, self.take_bool(second)?];
        self.takes(2, 3)?;
        let (a, b) = (self.turned(0, turns[0]), self.turned(1, turns[1]));
        let has_bias = self.inputs.get(2).is_some_and(Option::is_some);
        self.node("MatMul", &[&a, &b], if has_bias { "product" } else { "y0" }, Vec::new());
        if has_bias {
            self.node("Add", &["product", "x2"], "y0", Vec::new());
        }
        Ok(())
    }

    /// `alpha * a * b + beta * c`, with numbers of type float.
    fn gemm(&mut self) -> Answer {
        let turns = [self.take_bool("transpose_a")?, self.take_bool("transpose_b")?];
        self.takes(5, 5)?;
        let (a, b) = (self.turned(0, turns[0]), self.turned(1, turns[1]));
        let to = self.inputs[0].as_ref().map(dtype).transpose()?.map_or(0, number_of);
        for (factor, cast) in [("x3", "alpha"), ("x4", "beta")] {
            self.node("Cast", &[factor], cast, vec![int("to", to.into())]);
        }
        self.node("MatMul", &[&a, &b], "product", Vec::new());
        self.node("Mul", &["product", "alpha"], "scaled", Vec::new());
        self.node("Mul", &["x2", "beta"], "added", Vec::new());
        self.node("Add", &["scaled", "added"], "y0", Vec::new());
        Ok(())
    }

    fn convolution(&mut self) -> Answer {
        self.takes(2, 3)?;
        self.channels_first()?;
        let spatial = self.shape().len().saturating_sub(2);
        let mut attributes = Vec::new();
        for name in ["strides", "dilations"] {
            // Those of the batch and the channels come first.
            if let Some(values) = self.take_ints(name)? {
                let first = values.len().saturating_sub(spatial);
                attributes.push(ints(name, &values[first..]));
            }
        }
        if let Some(pads) = self.take_ints("pads")? {
            attributes.push(ints("pads", &self.pads(&pads, spatial)?));
        }
        let groups = [self.take_int("group")?, self.take_int("groups")?];
        attributes.extend(groups.into_iter().flatten().next().map(|groups| int("group", groups)));
        match self.take_text("auto_pad")?.as_deref() {
            None | Some("NOTSET") => {}
            Some(mode) => {
                attributes.retain(|one| one.name != "pads");
                attributes.push(text("auto_pad", mode));
            }
        }
        // They repeat what the extents say.
        self.take_int("dim_size")?;
        self.take_bool("trans_2d")?;
        let has_bias = self.inputs.get(2).is_some_and(Option::is_some);
        let inputs: &[&str] = if has_bias { &["x0", "x1", "x2"] } else { &["x0", "x1"] };
        self.node("Conv", inputs, "y0", attributes);
        Ok(())
    }

    /// Pads in the order of ONNX: all begins, then all ends.
    fn pads(&self, pads: &[i64], spatial: usize) -> Answer<Vec<i64>> {
        require(pads.len() == 2 * spatial, || {
            let what =
                format!("pads has {} numbers, and the input takes {}", pads.len(), 2 * spatial);
            self.refuse(codes::OP_ATTR_NOT_MATCH, what)
        })?;
        Ok(pads.to_vec())
    }

    fn pool(&mut self, onnx: &str) -> Answer {
        self.takes(1, 1)?;
        self.channels_first()?;
        let spatial = self.shape().len().saturating_sub(2);
        let mut attributes = Vec::new();
        for (name, to) in [("ksize", "kernel_shape"), ("strides", "strides")] {
            if let Some(values) = self.take_ints(name)? {
                let first = values.len().saturating_sub(spatial);
                attributes.push(ints(to, &values[first..]));
            }
        }
        let pads = self.take_ints("pads")?;
        match self.take_text("padding_mode")?.as_deref() {
            None | Some("CALCULATED") => {
                if let Some(pads) = pads {
                    attributes.push(ints("pads", &self.pads(&pads, spatial)?));
                }
            }
            Some("SAME") => attributes.push(text("auto_pad", "SAME_UPPER")),
            Some("VALID") => attributes.push(text("auto_pad", "VALID")),
            Some(other) => {
                let what = format!("padding_mode is {other}; pass CALCULATED, SAME or VALID");
                return Err(self.refuse(codes::OP_ATTR_NOT_MATCH, what));
            }
        }
        attributes.push(int("ceil_mode", self.take_bool("ceil_mode")?.into()));
        let is_global = self.take_bool("global_pooling")?;
        if onnx == "AveragePool" {
            // Without the attribute, padding does not count.
            let excludes =
                !self.attributes.contains_key("exclusive") || self.take_bool("exclusive")?;
            attributes.push(int("count_include_pad", (!excludes).into()));
        }
        if is_global {
            let global = if onnx == "AveragePool" { "GlobalAveragePool" } else { "GlobalMaxPool" };
            self.node(global, &["x0"], "y0", Vec::new());
        } else {
            self.node(onnx, &["x0"], "y0", attributes);
        }
        Ok(())
    }

    /// For inference: the further outputs are the mean and the variance as they are given.
    fn batch_norm(&mut self) -> Answer {
        self.takes(5, 5)?;
        self.channels_first()?;
        let epsilon = self.take_float("epsilon")?.unwrap_or(1e-4);
        let is_training = self.attributes.get("is_training") != Some(&AttributeValue::Bool(false));
        self.take_bool("is_training")?;
        require(!is_training, || {
            let what = "is_training is true; statistics of a batch are not supported".to_owned();
            self.refuse(codes::OP_ATTR_NOT_MATCH, what)
        })?;
        let inputs = ["x0", "x1", "x2", "x3", "x4"];
        self.node("BatchNormalization", &inputs, "y0", vec![float("epsilon", epsilon)]);
        let given = ["x3", "x4", "x3", "x4"].into_iter().zip(["y1", "y2", "y3", "y4"]);
        for (from, to) in given.take(self.outputs.len().saturating_sub(1)) {
            self.node("Identity", &[from], to, Vec::new());
        }
        Ok(())
    }

    fn cast(&mut self) -> Answer {
        self.takes(1, 1)?;
        let number = self.take_int("dst_type")?.and_then(|number| i32::try_from(number).ok());
        let to = number.and_then(data_type::of).ok_or_else(|| {
            let what = "dst_type is missing, or is no type of operators here".to_owned();
            self.refuse(codes::OP_ATTR_NOT_MATCH, what)
        })?;
        self.node("Cast", &["x0"], "y0", vec![int("to", number_of(to).into())]);
        Ok(())
    }

    fn flatten(&mut self) -> Answer {
        self.takes(1, 1)?;
        let axis = self.take_int("axis")?.unwrap_or(1);
        self.node("Flatten", &["x0"], "y0", vec![int("axis", axis)]);
        Ok(())
    }

    fn reshape(&mut self) -> Answer {
        self.takes(1, 2)?;
        let (axis, axes) =
            (self.take_int("axis")?.unwrap_or(0), self.take_int("num_axes")?.unwrap_or(-1));
        require(axis == 0 && axes == -1, || {
            let what = format!("axis is {axis} and num_axes {axes}; 0 and -1 are supported");
            self.refuse(codes::OP_ATTR_NOT_MATCH, what)
        })?;
        let shape = match self.inputs.len() {
            1 => self.outputs.first().map_or_else(Vec::new, |output| output.shape.clone()),
            _ => self.known(1)?,
        };
        self.constant("shape", &shape);
        self.node("Reshape", &["x0", "shape"], "y0", Vec::new());
        Ok(())
    }

    fn transpose(&mut self) -> Answer {
        self.takes(1, 2)?;
        let axes = match self.take_ints("perm")? {
            Some(axes) => axes,
            None => self.known(1)?,
        };
        self.node("Transpose", &["x0"], "y0", vec![ints("perm", &axes)]);
        Ok(())
    }

    fn broadcast(&mut self) -> Answer {
        self.takes(1, 2)?;
        let shape = match self.take_ints("shape")? {
            Some(shape) => shape,
            None => self.known(1)?,
        };
        self.constant("shape", &shape);
        self.node("Expand", &["x0", "shape"], "y0", Vec::new());
        Ok(())
    }

    /// The extents, and the value of every element.
    fn fill(&mut self) -> Answer {
        self.takes(2, 2)?;
        let shape = self.known(0)?;
        self.constant("shape", &shape);
        self.constant("scalar", &[]);
        self.node("Reshape", &["x1", "scalar"], "value", Vec::new());
        self.node("Expand", &["value", "shape"], "y0", Vec::new());
        Ok(())
    }

    fn softmax(&mut self) -> Answer {
        self.takes(1, 1)?;
        self.take_bool("half_to_float")?;
        let axes = self.take_ints("axes")?.unwrap_or_else(|| vec![-1]);
        let [axis] = axes[..] else {
            let what = format!("axes is {axes:?}; one axis is supported");
            return Err(self.refuse(codes::OP_ATTR_NOT_MATCH, what));
        };
        self.node("Softmax", &["x0"], "y0", vec![int("axis", axis)]);
        Ok(())
    }
}
