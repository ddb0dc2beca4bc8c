//! Operators that only move elements, and those that make shapes.

use pto_operators::{DType, DepthOrder, Operator, ScatterReduction, Tensor, TensorType, ValueId};

use super::builder::{Builder, one, several};
use super::call::{Call, NodeValue, Step, Stop, stop};
use crate::tensor::tensor_of;

pub(super) fn reshape(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["consumed_inputs"]);
    let x = c.input(0)?;
    let shape = if c.version < 5 {
        c.ints("shape")?.unwrap_or_default()
    } else {
        b.ints(c.input(1)?, "input 1 (shape)")?
    };
    let allow_zero = c.version >= 14 && c.flag("allowzero", false)?;
    one(b.add(Operator::Reshape { shape, allow_zero }, &[x])?)
}

/// Axes that are an attribute before version 13, and an input from then on.
fn axes(b: &Builder<'_>, c: &Call<'_>) -> Step<Option<Vec<i64>>> {
    if c.version < 13 {
        return c.ints("axes");
    }
    match c.optional(1)? {
        Some(axes) => Ok(Some(b.ints(axes, "input 1 (axes)")?)),
        None => Ok(None),
    }
}

pub(super) fn squeeze(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let axes = axes(b, c)?;
    one(b.add(Operator::Squeeze { axes }, &[c.input(0)?])?)
}

pub(super) fn unsqueeze(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let Some(axes) = axes(b, c)? else { return stop("axes are missing") };
    one(b.add(Operator::Unsqueeze { axes }, &[c.input(0)?])?)
}

pub(super) fn flatten(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    one(b.add(Operator::Flatten { axis: c.int("axis", 1)? }, &[c.input(0)?])?)
}

pub(super) fn transpose(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let permutation = match c.ints("perm")? {
        Some(_) => Some(c.counts("perm")?),
        None => None,
    };
    one(b.add(Operator::Transpose { permutation }, &[c.input(0)?])?)
}

pub(super) fn slice(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    let operator = if c.version < 10 {
        let (Some(starts), Some(ends)) = (c.ints("starts")?, c.ints("ends")?) else {
            return stop("attributes starts and ends are missing");
        };
        Operator::Slice { starts, ends, axes: c.ints("axes")?, steps: None }
    } else {
        let list = |b: &Builder<'_>, at: usize, what: &str| -> Step<Option<Vec<i64>>> {
            c.optional(at)?.map(|value| b.ints(value, what)).transpose()
        };
        let starts = b.ints(c.input(1)?, "input 1 (starts)")?;
        let ends = b.ints(c.input(2)?, "input 2 (ends)")?;
        let axes = list(b, 3, "input 3 (axes)")?;
        let steps = list(b, 4, "input 4 (steps)")?;
        Operator::Slice { starts, ends, axes, steps }
    };
    one(b.add(operator, &[x])?)
}

pub(super) fn concat(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let axis = if c.version < 4 { c.int("axis", 1)? } else { c.required_int("axis")? };
    one(b.add(Operator::Concat { axis }, &c.all()?)?)
}

pub(super) fn split(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    let axis = c.int("axis", 0)?;
    let extent = b.shape(x)[b.axis(axis, b.rank(x))?];
    let given = if c.version < 13 {
        c.ints("split")?
    } else {
        match c.optional(1)? {
            Some(value) => Some(b.ints(value, "input 1 (split)")?),
            None => None,
        }
    };
    let sizes = match given {
        Some(sizes) => sizes
            .iter()
            .map(|size| {
                usize::try_from(*size).or_else(|_| stop(format!("a part has the extent {size}")))
            })
            .collect::<Step<Vec<usize>>>()?,
        None => {
            let parts =
                if c.version >= 18 { c.count("num_outputs", c.outputs())? } else { c.outputs() };
            if parts == 0 {
                return stop("there are no parts");
            }
            if parts > 65_536 {
                return stop(format!("{parts} parts are too many"));
            }
            if c.version < 18 && !extent.is_multiple_of(parts) {
                return stop(format!("{extent} elements are no {parts} equal parts"));
            }
            let size = extent.div_ceil(parts);
            (0..parts).map(|part| extent.saturating_sub(part * size).min(size)).collect()
        }
    };
    several(b.add_all(Operator::Split { axis, sizes }, &[Some(x)])?)
}

pub(super) fn expand(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let shape = b.ints(c.input(1)?, "input 1 (shape)")?;
    one(b.add(Operator::Expand { shape }, &[c.input(0)?])?)
}

pub(super) fn tile(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    if c.version < 6 {
        return stop("versions before 6 repeat otherwise, and are not supported");
    }
    let repeats = b.ints(c.input(1)?, "input 1 (repeats)")?;
    one(b.add(Operator::Tile { repeats }, &[c.input(0)?])?)
}

pub(super) fn gather(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let axis = c.int("axis", 0)?;
    one(b.add(Operator::Gather { axis }, &[c.input(0)?, c.input(1)?])?)
}

pub(super) fn gather_elements(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let axis = c.int("axis", 0)?;
    one(b.add(Operator::GatherElements { axis }, &[c.input(0)?, c.input(1)?])?)
}

pub(super) fn gather_nd(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let batch_dims = c.count("batch_dims", 0)?;
    one(b.add(Operator::GatherNd { batch_dims }, &[c.input(0)?, c.input(1)?])?)
}

fn scatter_reduction(c: &Call<'_>, from: i64) -> Step<ScatterReduction> {
    if c.version < from {
        return Ok(ScatterReduction::None);
    }
    match c.text("reduction", "none")?.as_str() {
        "none" => Ok(ScatterReduction::None),
        "add" => Ok(ScatterReduction::Add),
        "mul" => Ok(ScatterReduction::Mul),
        "max" => Ok(ScatterReduction::Max),
        "min" => Ok(ScatterReduction::Min),
        other => stop(format!(
            "attribute reduction is '{other}', and has to be none, add, mul, max or min"
        )),
    }
}

pub(super) fn scatter_elements(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (axis, reduction) = (c.int("axis", 0)?, scatter_reduction(c, 16)?);
    one(b.add(
        Operator::ScatterElements { axis, reduction },
        &[c.input(0)?, c.input(1)?, c.input(2)?],
    )?)
}

pub(super) fn scatter_nd(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let reduction = scatter_reduction(c, 16)?;
    one(b.add(Operator::ScatterNd { reduction }, &[c.input(0)?, c.input(1)?, c.input(2)?])?)
}

pub(super) fn space_to_depth(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let block = c.count("blocksize", 0)?;
    if c.version >= 27 && c.text("mode", "DCR")? == "CRD" {
        let x = c.input(0)?;
        let [n, channels, height, width] = b.shape(x)[..] else {
            return stop("input 0 does not have 4 dimensions");
        };
        if block == 0 || height % block != 0 || width % block != 0 {
            return stop(format!("{height} x {width} pixels are not blocks of side {block}"));
        }
        let x = b.reshape(x, &[n, channels, height / block, block, width / block, block])?;
        let x = b.transpose(x, &[0, 1, 3, 5, 2, 4])?;
        return one(b.reshape(x, &[n, channels * block * block, height / block, width / block])?);
    }
    one(b.add(Operator::SpaceToDepth { block }, &[c.input(0)?])?)
}

pub(super) fn depth_to_space(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let block = c.count("blocksize", 0)?;
    let order = match c.text("mode", "DCR")?.as_str() {
        "DCR" => DepthOrder::Dcr,
        "CRD" => DepthOrder::Crd,
        other => return stop(format!("attribute mode is '{other}', and has to be DCR or CRD")),
    };
    one(b.add(Operator::DepthToSpace { block, order }, &[c.input(0)?])?)
}

pub(super) fn range(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["stash_type"]);
    let names = ["input 0 (start)", "input 1 (limit)", "input 2 (delta)"];
    let mut inputs = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        let tensor = b.known(c.input(at)?, name)?;
        let scalar =
            tensor.reshaped(&[]).ok_or_else(|| Stop::Reason(format!("{name} is no scalar")))?;
        inputs.push(b.constant(scalar));
    }
    one(b.add(Operator::Range, &inputs)?)
}

pub(super) fn constant(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    if let Some(proto) = c.tensor("value")? {
        let tensor = tensor_of(proto, b.model.folder.as_deref()).or_else(stop)?;
        return one(b.constant(tensor));
    }
    #[expect(clippy::cast_possible_truncation, reason = "the file has these numbers as f32")]
    let narrow = |value: f64| value as f32;
    let tensor = if let Some(value) = c.optional_float("value_float")? {
        Tensor::scalar(narrow(value))
    } else if let Some(values) = c.floats("value_floats")? {
        Tensor::vector(&values.into_iter().map(narrow).collect::<Vec<f32>>())
    } else if let Some(value) = c.optional_int("value_int")? {
        Tensor::scalar(value)
    } else if let Some(values) = c.ints("value_ints")? {
        Tensor::vector(&values)
    } else {
        return stop(
            "it has neither value, value_float, value_floats, value_int nor value_ints; strings and sparse tensors are not supported",
        );
    };
    one(b.constant(tensor))
}

pub(super) fn constant_of_shape(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let shape = b.ints(c.input(0)?, "input 0 (shape)")?;
    let extent = |extent: &i64| {
        usize::try_from(*extent)
            .or_else(|_| stop(format!("an extent is {extent}, and has to be 0 or more")))
    };
    let shape = shape.iter().map(extent).collect::<Step<Vec<usize>>>()?;
    let value = match c.tensor("value")? {
        Some(proto) => tensor_of(proto, b.model.folder.as_deref()).or_else(stop)?,
        None => Tensor::scalar(0.0_f32),
    };
    let value = value
        .reshaped(&[])
        .ok_or_else(|| Stop::Reason("attribute value has not one element".to_owned()))?;
    let value = b.constant(value);
    one(b.add(Operator::Fill { shape }, &[value])?)
}

pub(super) fn shape(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (start, end) =
        if c.version < 15 { (0, None) } else { (c.int("start", 0)?, c.optional_int("end")?) };
    one(b.add(Operator::Shape { start, end }, &[c.input(0)?])?)
}

pub(super) fn size(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    one(b.add(Operator::Size, &[c.input(0)?])?)
}

pub(super) fn non_zero(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let tensor = b.known(c.input(0)?, "input 0")?;
    let x = b.constant(tensor);
    one(b.add(Operator::NonZero, &[x])?)
}

pub(super) fn compress(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let axis = c.optional_int("axis")?;
    let condition = b.ints(c.input(1)?, "input 1 (condition)")?;
    let mut x = c.input(0)?;
    if axis.is_none() {
        let count = b.ty(x).elements();
        x = b.reshape(x, &[count])?;
    }
    let axis = axis.unwrap_or(0);
    let extent = b.shape(x)[b.axis(axis, b.rank(x))?];
    if condition.len() > extent {
        return stop(format!(
            "the condition has {} elements, and the axis {extent}",
            condition.len()
        ));
    }
    let chosen: Vec<i64> = (0_i64..)
        .zip(&condition)
        .filter(|(_, is_chosen)| **is_chosen != 0)
        .map(|(at, _)| at)
        .collect();
    let chosen = b.constant(Tensor::vector(&chosen));
    one(b.add(Operator::Gather { axis }, &[x, chosen])?)
}

pub(super) fn reverse_sequence(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let operator = Operator::ReverseSequence {
        batch_axis: c.count("batch_axis", 1)?,
        time_axis: c.count("time_axis", 0)?,
    };
    one(b.add(operator, &[c.input(0)?, c.input(1)?])?)
}

/// Cut or filled with zeros around the centre, to these extents.
pub(super) fn center_crop_pad(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let mut x = c.input(0)?;
    let sizes = b.ints(c.input(1)?, "input 1 (shape)")?;
    let rank = b.rank(x);
    let axes = match c.ints("axes")? {
        Some(axes) => axes,
        None => (0..rank as i64).collect(),
    };
    if axes.len() != sizes.len() {
        return stop(format!("{} axes and {} extents are given", axes.len(), sizes.len()));
    }
    for (axis, size) in axes.iter().zip(&sizes) {
        let axis = b.axis(*axis, rank)?;
        let extent = b.shape(x)[axis];
        let size = usize::try_from(*size)
            .or_else(|_| stop(format!("an extent is {size}, and has to be 0 or more")))?;
        if size < extent {
            let start = (extent - size) / 2;
            x = b.part(x, axis, start, start + size)?;
        } else if size > extent {
            let before = (size - extent) / 2;
            let mut pads = vec![0; 2 * rank];
            pads[axis] = before as i64;
            pads[rank + axis] = (size - extent - before) as i64;
            x = b.add(
                Operator::Pad { mode: pto_operators::PadMode::Constant, pads, axes: None },
                &[x],
            )?;
        }
    }
    one(x)
}

/// The different elements of a tensor that is known; the outputs depend on its values.
pub(super) fn unique(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let tensor = b.known(c.input(0)?, "input 0")?;
    let is_sorted = c.flag("sorted", true)?;
    let axis = c.optional_int("axis")?;
    let (shape, size) = (tensor.shape().to_vec(), tensor.dtype().bytes());
    let axis_number = match axis {
        Some(axis) => b.axis(axis, shape.len())?,
        None => 0,
    };
    if tensor.ty().elements() > 1 << 14 {
        return stop(format!("input 0 is {}, and 16,384 elements are the limit", tensor.ty()));
    }
    // Slices of the axis, each as one row.
    let (rows, dims) = match axis {
        None => (
            tensor.bytes().chunks(size).map(<[u8]>::to_vec).collect::<Vec<_>>(),
            vec![tensor.ty().elements()],
        ),
        Some(_) => {
            let x = b.constant(tensor.clone());
            let mut order: Vec<usize> = (0..shape.len()).collect();
            order.remove(axis_number);
            order.insert(0, axis_number);
            let moved = b.transpose(x, &order)?;
            let moved = b.known(moved, "input 0")?;
            let dims: Vec<usize> = moved.shape().to_vec();
            let row = (moved.bytes().len() / dims[0].max(1)).max(1);
            (moved.bytes().chunks(row).map(<[u8]>::to_vec).collect(), dims)
        }
    };
    let numbers = |row: &[u8]| -> Vec<f64> {
        let ty = TensorType::new(tensor.dtype(), &[row.len() / size]);
        Tensor::from_bytes(ty, row.to_vec()).map_or_else(|_| Vec::new(), |row| row.to_doubles())
    };
    let mut found: Vec<(usize, &Vec<u8>)> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if !found.iter().any(|(_, known)| *known == row) {
            found.push((at, row));
        }
    }
    if is_sorted {
        found.sort_by(|(_, left), (_, right)| {
            let (left, right) = (numbers(left), numbers(right));
            left.iter()
                .zip(&right)
                .map(|(a, d)| a.total_cmp(d))
                .find(|order| order.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        });
    }
    let position =
        |row: &Vec<u8>| found.iter().position(|(_, known)| *known == row).unwrap_or(0) as i64;
    let inverse: Vec<i64> = rows.iter().map(position).collect();
    let counts: Vec<i64> = (0..found.len() as i64)
        .map(|at| inverse.iter().filter(|one| **one == at).count() as i64)
        .collect();
    let first: Vec<i64> = found.iter().map(|(at, _)| *at as i64).collect();
    let bytes: Vec<u8> = found.iter().flat_map(|(_, row)| row.iter().copied()).collect();
    let mut extents = dims;
    extents[0] = found.len();
    let Ok(values) = Tensor::from_bytes(TensorType::new(tensor.dtype(), &extents), bytes) else {
        return stop("the different elements do not fill a tensor");
    };
    let mut values = b.constant(values);
    if axis.is_some() {
        let mut back: Vec<usize> = (1..extents.len()).collect();
        back.insert(axis_number, 0);
        values = b.transpose(values, &back)?;
    }
    let (first, inverse, counts) =
        (Tensor::vector(&first), Tensor::vector(&inverse), Tensor::vector(&counts));
    several([values, b.constant(first), b.constant(inverse), b.constant(counts)])
}

/// Elements of a cache that new ones replace, at a position for each batch.
pub(super) fn tensor_scatter(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (cache, update) = (c.input(0)?, c.input(1)?);
    let axis = b.axis(c.int("axis", -2)?, b.rank(cache))?;
    let is_circular = match c.text("mode", "linear")?.as_str() {
        "linear" => false,
        "circular" => true,
        other => {
            return stop(format!("attribute mode is '{other}', and has to be linear or circular"));
        }
    };
    let (shape, added) = (b.shape(cache), b.shape(update));
    if axis == 0 || added.len() != shape.len() {
        return stop("the axis is that of batches, or the update has another number of dimensions");
    }
    let steps: Vec<f64> = (0..added[axis]).map(|at| at as f64).collect();
    let mut of_axis = vec![1; shape.len()];
    of_axis[axis] = added[axis];
    let mut indices = b.numbers(DType::I64, &of_axis, &steps)?;
    if let Some(begin) = c.optional(2)? {
        let mut of_batch = vec![1; shape.len()];
        of_batch[0] = shape[0];
        let begin = b.cast(begin, DType::I64)?;
        let begin = b.reshape(begin, &of_batch)?;
        indices = b.sum(indices, begin)?;
    }
    if is_circular {
        let extent = b.scalar(DType::I64, shape[axis] as f64);
        indices = b.binary(pto_operators::Binary::Mod, indices, extent)?;
    }
    let indices: ValueId = b.expand(indices, &added)?;
    let operator =
        Operator::ScatterElements { axis: axis as i64, reduction: ScatterReduction::None };
    one(b.add(operator, &[cache, indices, update])?)
}
