//! Reading what stands within a line: names of closed sets, views, arguments.

use pto_abi::limits::MAX_RANK;
use pto_abi::{CoreKind, GmAddr, RuntimeVariant};
use pto_graph::{Comparison, DependencyMode, ElementType, Priority, StartMode, ViewDefect};
use serde_json::Value;

use super::PartLine;
use crate::program::{Argument, Tensor, Use, View, row_major};
use crate::submit::tensor_view;

/// Which field, what is wrong, what to do.
pub(super) type Wrong = String;

/// A member of a closed set, by its name.
pub(super) fn named<T>(
    field: &str,
    name: &str,
    from_name: fn(&str) -> Option<T>,
    all: &[&str],
) -> Result<T, Wrong> {
    from_name(name).ok_or_else(|| format!("{field}: no '{name}'; use one of {}", all.join(", ")))
}

macro_rules! names {
    ($($function:ident => $set:ident),* $(,)?) => {
        $(
            pub(super) fn $function(field: &str, name: &str) -> Result<$set, Wrong> {
                let all: Vec<_> = $set::ALL.iter().map(|one| one.name()).collect();
                named(field, name, $set::from_name, &all)
            }
        )*
    };
}

names! {
    variant => RuntimeVariant,
    core_kind => CoreKind,
    element => ElementType,
    mode => DependencyMode,
    start => StartMode,
    priority => Priority,
    comparison => Comparison,
}

/// What is wrong with a view.
pub(super) const fn defect(defect: ViewDefect) -> &'static str {
    match defect {
        ViewDefect::Rank => "it has more dimensions than 5, or not as many strides as extents",
        ViewDefect::Range => {
            "an element of it is outside of its tensor, or it has none: check offset, shape and strides, which count elements"
        }
        ViewDefect::Element => "its element type is not one of the supported ones",
    }
}

/// The tensors that are known, by id.
pub(super) trait Tensors {
    /// A tensor and its index.
    fn tensor(&self, id: u32) -> Option<(usize, &Tensor)>;
}

/// A view: the id of a tensor, which is meant as a whole, or an object.
pub(super) fn view(tensors: &impl Tensors, field: &str, value: &Value) -> Result<View, Wrong> {
    let part = match value {
        Value::Number(number) => {
            let id = number.as_u64().and_then(|id| u32::try_from(id).ok());
            let tensor = id.ok_or_else(|| {
                format!(
                    "{field}: {number} is not the id of a tensor: ids are whole numbers below 2^32"
                )
            })?;
            PartLine { tensor, element: None, offset: 0, shape: None, strides: None }
        }
        Value::Object(_) => {
            serde_json::from_value(value.clone()).map_err(|error| format!("{field}: {error}"))?
        }
        _ => {
            return Err(format!(
                "{field}: a view is the id of a tensor, or an object such as \
                 {{\"tensor\": 0, \"offset\": 8, \"shape\": [4, 4], \"strides\": [16, 1]}}"
            ));
        }
    };
    let Some((index, tensor)) = tensors.tensor(part.tensor) else {
        let id = part.tensor;
        return Err(format!(
            "{field}: no tensor {id} is known here; declare it above, by a line with \"tensor\" or \"alloc\""
        ));
    };
    let element_type = match &part.element {
        Some(name) => element(&format!("{field}.element"), name)?,
        None => tensor.element,
    };
    let shape = match (part.shape, &tensor.shape) {
        (Some(shape), _) => shape,
        (None, Some(shape)) if part.offset == 0 && part.strides.is_none() => shape.clone(),
        (None, None) if part.offset == 0 && part.strides.is_none() => {
            let elements = tensor.bytes / element_type.bytes();
            let extent = u32::try_from(elements);
            vec![extent.map_err(|_| {
                format!("{field}: {tensor} has no shape, and is too large to be one row; give the view a \"shape\"")
            })?]
        }
        _ => return Err(format!("{field}: offset and strides want a \"shape\" beside them")),
    };
    let strides = part.strides.unwrap_or_else(|| row_major(&shape));
    let view = View::new(index, element_type, part.offset, (&shape, &strides));
    let view = view.ok_or_else(|| {
        format!(
            "{field}: {} extents and {} strides; there are as many of one as of the other, and at most {MAX_RANK}",
            shape.len(),
            strides.len()
        )
    })?;
    match tensor_view(&view, GmAddr::NULL, tensor.bytes).defect() {
        Some(found) => Err(format!(
            "{field}: {tensor} has {} bytes, and of this view {}",
            tensor.bytes,
            defect(found)
        )),
        None => Ok(view),
    }
}

/// An argument.
pub(super) fn argument(
    tensors: &impl Tensors,
    field: &str,
    value: &Value,
) -> Result<Argument, Wrong> {
    const KNOWN: &str = "an argument is a whole number (a scalar), or an object with one of in, out, inout, nodep, bound, f32";
    let object = match value {
        Value::Number(number) => {
            let word = number.as_u64().ok_or_else(|| {
                format!(
                    "{field}: {number} is not a word of 64 bits; a float is {{\"f32\": {number}}}"
                )
            })?;
            return Ok(Argument::Scalar(word));
        }
        Value::Object(object) => object,
        _ => return Err(format!("{field}: {KNOWN}")),
    };
    let is_known =
        |name: &str| matches!(name, "in" | "out" | "inout" | "nodep" | "use" | "bound" | "f32");
    if let Some(name) = object.keys().find(|name| !is_known(name)) {
        return Err(format!("{field}: unknown field '{name}'; {KNOWN}"));
    }
    let mut heads = object.iter().filter(|(name, _)| *name != "use");
    let (Some((name, value)), None) = (heads.next(), heads.next()) else {
        return Err(format!("{field}: {KNOWN}"));
    };
    let used = object.get("use");
    if used.is_some() && name != "nodep" {
        return Err(format!("{field}.use: it is for \"nodep\": what is done with others is known"));
    }
    let field = format!("{field}.{name}");
    match name.as_str() {
        "in" => Ok(Argument::In(view(tensors, &field, value)?)),
        "out" => Ok(Argument::Out(view(tensors, &field, value)?)),
        "inout" => Ok(Argument::InOut(view(tensors, &field, value)?)),
        "nodep" => Ok(Argument::NoDep(view(tensors, &field, value)?, used_as(&field, used)?)),
        "bound" => {
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            let number =
                number.ok_or_else(|| format!("{field}: it is the number of a bound scalar"))?;
            Ok(Argument::BoundScalar(number))
        }
        _ => Ok(Argument::Scalar(float(&field, value)?.to_bits().into())),
    }
}

/// A float: a number that one can hold, or the name of what JSON has no number for.
fn float(field: &str, value: &Value) -> Result<f32, Wrong> {
    let named = value.as_str().and_then(|name| match name {
        "inf" => Some(f32::INFINITY),
        "-inf" => Some(f32::NEG_INFINITY),
        "nan" => Some(f32::NAN),
        _ => None,
    });
    if let Some(named) = named {
        return Ok(named);
    }
    let number = value.as_f64().ok_or_else(|| {
        format!("{field}: it is a number, or one of \"inf\", \"-inf\" and \"nan\"")
    })?;
    #[expect(clippy::cast_possible_truncation, reason = "the nearest f32 is meant")]
    let nearest = number as f32;
    if nearest.is_finite() {
        return Ok(nearest);
    }
    let sign = if number < 0.0 { "-" } else { "" };
    Err(format!(
        "{field}: {value} is beyond the largest f32, {sign}{:e}; for infinity write \"{sign}inf\"",
        f32::MAX
    ))
}

fn used_as(field: &str, value: Option<&Value>) -> Result<Use, Wrong> {
    match value.map(Value::as_str) {
        None => Ok(Use::Unknown),
        Some(Some("read")) => Ok(Use::Read),
        Some(Some("write")) => Ok(Use::Write),
        Some(Some("none")) => Ok(Use::None),
        _ => Err(format!("{field}: \"use\" is \"read\", \"write\" or \"none\"")),
    }
}
