//! Single operators: `aclop*`.

use super::data_set::extent;
use super::tensor_desc;
use crate::common::argument::{In, Text};
use crate::common::entry::{api, give, values};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::current;
use crate::device::model::Extent;
use crate::device::operator_attributes::{self, AttributeValue};
use crate::device::single_operator::{self, Operand};
use crate::device::tensor_desc::NO_TYPE;

/// Numbers of an attribute, at most.
const MAX_NUMBERS: usize = 4096;
/// Tensors of a side, at most.
const MAX_TENSORS: usize = 128;

values! {
    fn aclopCreateAttr() -> Handle, 0, { Ok(operator_attributes::create()) }
}

api! {
    fn aclopSetAttrBool(attributes: Handle, name: Text, value: u8) {
        set(attributes, &name, AttributeValue::Bool(value != 0))
    }

    fn aclopSetAttrInt(attributes: Handle, name: Text, value: i64) {
        set(attributes, &name, AttributeValue::Int(value))
    }

    fn aclopSetAttrFloat(attributes: Handle, name: Text, value: f32) {
        set(attributes, &name, AttributeValue::Float(value))
    }

    fn aclopSetAttrListInt(attributes: Handle, name: Text, count: i32, values: In<i64>) {
        let count = usize::try_from(count).ok().filter(|count| *count <= MAX_NUMBERS).ok_or_else(|| {
            Refusal::argument(format!("numValues is {count}; pass 0 to {MAX_NUMBERS}"))
        })?;
        set(attributes, &name, AttributeValue::Ints(values.list("values", count)?))
    }

    fn aclopSetAttrString(attributes: Handle, name: Text, value: Text) {
        set(attributes, &name, AttributeValue::Text(value.read("attrValue")?))
    }

    fn aclopCompileAndExecute(operator: Text, count: i32, input_descriptions: In<Handle>, inputs: In<Handle>, output_count: i32,
        output_descriptions: In<Handle>, outputs: In<Handle>, attributes: Handle, engine: u32, compile: u32, path: Text, stream: Handle) {
        let operator = operator.read("opType")?;
        require(engine <= 2, || {
            Refusal::argument(format!("there is no engineType {engine}; there are 0 to 2"))
        })?;
        require(compile <= 1, || {
            Refusal::argument(format!("there is no compileFlag {compile}; there are 0 and 1"))
        })?;
        let inputs = operands("input", count, &input_descriptions, &inputs)?;
        let outputs = operands("output", output_count, &output_descriptions, &outputs)?;
        let attributes = match attributes {
            0 => Default::default(),
            attributes => operator_attributes::get(attributes)?,
        };
        // An operator is compiled in memory here, and no file is looked for in this folder.
        let _ = path;
        let stream = current::submitting(stream)?;
        single_operator::submit(&operator, inputs, outputs, &attributes, &stream)
    }
}

/// Destroys attributes.
// SAFETY: the interface defines this name, and no other function here has the same name.
#[unsafe(no_mangle)]
extern "C" fn aclopDestroyAttr(attributes: Handle) {
    give("aclopDestroyAttr", (), || operator_attributes::destroy(checked(attributes)?));
}

fn checked(attributes: Handle) -> Answer<Handle> {
    require(attributes != 0, || Refusal::argument("attr is null; call aclopCreateAttr first"))?;
    Ok(attributes)
}

fn set(attributes: Handle, name: &Text, value: AttributeValue) -> Answer {
    operator_attributes::set(checked(attributes)?, name.read("attrName")?, value)
}

/// The tensors of a side, each with its buffer.
fn operands(
    side: &str,
    count: i32,
    descriptions: &In<Handle>,
    buffers: &In<Handle>,
) -> Answer<Vec<Operand>> {
    let count =
        usize::try_from(count).ok().filter(|count| *count <= MAX_TENSORS).ok_or_else(|| {
            Refusal::argument(format!("there are {count} {side}s; pass 0 to {MAX_TENSORS}"))
        })?;
    let descriptions = descriptions.list(&format!("{side}Desc"), count)?;
    let buffers = buffers.list(&format!("{side}s"), count)?;
    descriptions
        .into_iter()
        .zip(buffers)
        .map(|(description, buffer)| {
            let description = tensor_desc::checked(description)?;
            // An input that is not given has a buffer without memory, or none.
            let is_given = description.data_type != NO_TYPE || buffer != 0;
            let extent = if is_given { extent(buffer)? } else { Extent { address: 0, bytes: 0 } };
            Ok((description, extent))
        })
        .collect()
}
