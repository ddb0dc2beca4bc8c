//! Single operators of a program: each becomes a model with one operator, which is built once for its types, extents and attributes, and runs in a stream.

use std::fmt::Write as _;

use pto_models::{Given, Model};
use pto_operators::TensorType;

use super::model::{Extent, put};
use super::model_graph::lowered;
use super::operator_attributes::OperatorAttributes;
use super::stream::Stream;
use super::tensor_desc::{NO_TYPE, TensorDesc};
use super::{cann_operator, data_type, memory_map, models, operator_cache};
use crate::common::codes;
use crate::common::notes::look;
use crate::common::refusal::{Answer, Refusal};

/// A tensor of a call: what it is, and where.
pub(crate) type Operand = (TensorDesc, Extent);

/// Runs an operator in a stream.
pub(crate) fn submit(
    operator: &str,
    inputs: Vec<Operand>,
    outputs: Vec<Operand>,
    attributes: &OperatorAttributes,
    stream: &Stream,
) -> Answer {
    let inputs = inputs.into_iter().map(with_host_scalar).collect::<Answer<Vec<_>>>()?;
    let given = |(description, _): &Operand| {
        (description.data_type != NO_TYPE).then(|| description.clone())
    };
    let described: Vec<Option<TensorDesc>> = inputs.iter().map(given).collect();
    let wanted: Vec<TensorDesc> =
        outputs.iter().map(|(description, _)| description.clone()).collect();
    let open = &stream.context.open;
    let key = (open.index, key(operator, &described, &wanted, attributes));
    let model = match operator_cache::find(&key) {
        Some(model) => model,
        None => {
            let proto = cann_operator::model(operator, &described, &wanted, attributes)?;
            let model = Model::from_proto(proto)
                .map_err(|error| Refusal::new(codes::GRAPH_COMPILER, error.to_string()))?;
            let lowered = lowered(&model, &Given::default())?;
            for (number, ((_, found), wanted)) in lowered.outputs.iter().zip(&wanted).enumerate() {
                check_output(operator, number, found, wanted)?;
            }
            let model = put(open, lowered.program)?;
            operator_cache::keep(key, &model);
            model
        }
    };
    let is_passed = |(description, _): &&Operand| {
        description.data_type != NO_TYPE && description.constant.is_none()
    };
    let passed: Vec<Extent> = inputs.iter().filter(is_passed).map(|(_, extent)| *extent).collect();
    let outputs: Vec<Extent> = outputs.iter().map(|(_, extent)| *extent).collect();
    models::submit(stream, model, &passed, &outputs)
}

/// A number in memory of the host is read here, as a constant: programs pass factors so.
fn with_host_scalar((mut description, extent): Operand) -> Answer<Operand> {
    let is_open = description.data_type != NO_TYPE && description.constant.is_none();
    if is_open && description.elements()? == 1 && extent.address != 0 {
        let wanted = description.bytes()?;
        if extent.bytes >= wanted && memory_map::device_of(extent.address, wanted)?.is_none() {
            let elements = look(extent.address as u64, wanted);
            if elements.len() == wanted {
                description.constant = Some(elements);
            }
        }
    }
    Ok((description, extent))
}

/// Everything that a build depends on, as text.
fn key(
    operator: &str,
    inputs: &[Option<TensorDesc>],
    outputs: &[TensorDesc],
    attributes: &OperatorAttributes,
) -> String {
    let mut key = operator.to_owned();
    // Writing to a text does not fail.
    let _ = write!(key, " {inputs:?} {outputs:?} {attributes:?}");
    key
}

fn check_output(operator: &str, number: usize, found: &TensorType, wanted: &TensorDesc) -> Answer {
    let extent =
        |(found, wanted): (&usize, &i64)| *wanted < 0 || usize::try_from(*wanted) == Ok(*found);
    let fits = data_type::of(wanted.data_type) == Some(found.dtype)
        && found.shape.len() == wanted.shape.len()
        && found.shape.iter().zip(&wanted.shape).all(extent);
    if fits {
        return Ok(());
    }
    Err(Refusal::new(
        codes::OP_OUTPUT_NOT_MATCH,
        format!(
            "operator {operator}: output {number} is {found}, and it is described with the type {} and the extents {:?}",
            wanted.data_type, wanted.shape
        ),
    ))
}
