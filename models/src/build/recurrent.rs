//! Recurrent layers, unrolled: `LSTM`, `GRU`, `RNN`.

use pto_operators::{Activation, Binary, DType, Operator, Unary, ValueId};

use super::builder::{Builder, several};
use super::call::{Call, NodeValue, Step, stop};

/// Which layer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Rnn,
    Gru,
    Lstm,
}

impl Kind {
    const fn gates(self) -> usize {
        match self {
            Self::Rnn => 1,
            Self::Gru => 3,
            Self::Lstm => 4,
        }
    }

    const fn activations(self) -> &'static [&'static str] {
        match self {
            Self::Rnn => &["Tanh"],
            Self::Gru => &["Sigmoid", "Tanh"],
            Self::Lstm => &["Sigmoid", "Tanh", "Tanh"],
        }
    }
}

/// What all directions share.
struct Layer {
    kind: Kind,
    hidden: usize,
    steps: usize,
    batch: usize,
    clip: Option<f64>,
    linear_before_reset: bool,
    input_forget: bool,
    lengths: Option<ValueId>,
}

/// The tensors of one direction.
struct RecurrentDirection {
    w: ValueId,
    r: ValueId,
    input_bias: Option<ValueId>,
    hidden_bias: Option<ValueId>,
    peepholes: Option<ValueId>,
    activations: Vec<(String, Option<f64>, Option<f64>)>,
}

pub(super) fn layer(b: &mut Builder<'_>, c: &Call<'_>, kind: Kind) -> Step<Vec<NodeValue>> {
    let is_batch_first = c.version >= 14 && c.flag("layout", false)?;
    let mut x = c.input(0)?;
    if b.rank(x) != 3 {
        return stop("input 0 has to have 3 dimensions");
    }
    if is_batch_first {
        x = b.transpose(x, &[1, 0, 2])?;
    }
    let (w, r) = (c.input(1)?, c.input(2)?);
    let (w_shape, r_shape) = (b.shape(w), b.shape(r));
    let ([directions, rows, _], [_, _, hidden]) = (&w_shape[..], &r_shape[..]) else {
        return stop("inputs 1 and 2 have to have 3 dimensions");
    };
    let (directions, hidden) = (*directions, *hidden);
    if let Some(given) = c.optional_int("hidden_size")?
        && usize::try_from(given) != Ok(hidden)
    {
        return stop(format!("attribute hidden_size is {given}, and input 2 has {hidden}"));
    }
    if *rows != kind.gates() * hidden {
        return stop(format!(
            "input 1 has {rows} rows, and {} gates of {hidden} are wanted",
            kind.gates()
        ));
    }
    let direction = c.text("direction", "forward")?;
    let reversed: &[bool] = match direction.as_str() {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return stop(format!("attribute direction is '{other}', which there is not")),
    };
    if reversed.len() != directions {
        return stop(format!(
            "attribute direction is '{direction}', and the weights are for {directions} directions"
        ));
    }
    let lengths = c.optional(4)?;
    let layer = Layer {
        kind,
        hidden,
        steps: b.shape(x)[0],
        batch: b.shape(x)[1],
        clip: c.optional_float("clip")?,
        linear_before_reset: kind == Kind::Gru && c.flag("linear_before_reset", false)?,
        input_forget: kind == Kind::Lstm && c.flag("input_forget", false)?,
        lengths: lengths.map(|lengths| b.cast(lengths, DType::I64)).transpose()?,
    };
    if layer.steps == 0 {
        return stop("a sequence without elements is not supported");
    }
    let all = activations(c, kind, directions)?;
    let per = kind.activations().len();
    let (mut sequences, mut last_h, mut last_c) = (Vec::new(), Vec::new(), Vec::new());
    for (number, reversed) in reversed.iter().enumerate() {
        let of_direction = |b: &mut Builder<'_>, at: usize| -> Step<Option<ValueId>> {
            let Some(value) = c.optional(at)? else { return Ok(None) };
            let value = if is_batch_first && (at == 5 || at == 6) {
                b.transpose(value, &[1, 0, 2])?
            } else {
                value
            };
            let part = b.part(value, 0, number, number + 1)?;
            Ok(Some(b.add(Operator::Squeeze { axes: Some(vec![0]) }, &[part])?))
        };
        let (w, r) = (of_direction(b, 1)?, of_direction(b, 2)?);
        let (Some(w), Some(r)) = (w, r) else { return stop("weights are missing") };
        let bias = of_direction(b, 3)?;
        let rows = kind.gates() * hidden;
        let tensors = RecurrentDirection {
            w: b.transpose(w, &[1, 0])?,
            r: b.transpose(r, &[1, 0])?,
            input_bias: bias.map(|bias| b.part(bias, 0, 0, rows)).transpose()?,
            hidden_bias: bias.map(|bias| b.part(bias, 0, rows, 2 * rows)).transpose()?,
            peepholes: if kind == Kind::Lstm { of_direction(b, 7)? } else { None },
            activations: all[number * per..(number + 1) * per].to_vec(),
        };
        let dtype = b.dtype(x);
        let start = |b: &mut Builder<'_>, given: Option<ValueId>| match given {
            Some(given) => Ok(given),
            None => b.filled(dtype, &[layer.batch, hidden], 0.0),
        };
        let given = of_direction(b, 5)?;
        let h = start(b, given)?;
        let given = if kind == Kind::Lstm { of_direction(b, 6)? } else { None };
        let cell = start(b, given)?;
        let (sequence, h, cell) = run(b, &layer, &tensors, x, (h, cell), *reversed)?;
        sequences.push(sequence);
        last_h.push(b.reshape(h, &[1, layer.batch, hidden])?);
        last_c.push(b.reshape(cell, &[1, layer.batch, hidden])?);
    }
    let mut y = b.concat(&sequences, 1)?;
    let (mut h, mut cell) = (b.concat(&last_h, 0)?, b.concat(&last_c, 0)?);
    if is_batch_first {
        y = b.transpose(y, &[2, 0, 1, 3])?;
        h = b.transpose(h, &[1, 0, 2])?;
        cell = b.transpose(cell, &[1, 0, 2])?;
    }
    several(if kind == Kind::Lstm { vec![y, h, cell] } else { vec![y, h] })
}

/// The name of an activation, its alpha and its beta.
type NamedActivation = (String, Option<f64>, Option<f64>);

/// The activations of all directions, with their numbers.
fn activations(c: &Call<'_>, kind: Kind, directions: usize) -> Step<Vec<NamedActivation>> {
    let usual = || {
        (0..directions)
            .flat_map(|_| kind.activations().iter().map(|name| (*name).to_owned()))
            .collect()
    };
    let names: Vec<String> = c.texts("activations")?.unwrap_or_else(usual);
    let mut alphas = c.floats("activation_alpha")?.unwrap_or_default().into_iter();
    let mut betas = c.floats("activation_beta")?.unwrap_or_default().into_iter();
    if names.len() != directions * kind.activations().len() {
        return stop(format!(
            "attribute activations has {} names, and {} are wanted",
            names.len(),
            directions * kind.activations().len()
        ));
    }
    let with = |name: String| {
        // Numbers are given for those functions that take them, one after another.
        let (takes_alpha, takes_beta) = match name.as_str() {
            "LeakyRelu" | "ThresholdedRelu" | "Elu" => (true, false),
            "Affine" | "HardSigmoid" | "ScaledTanh" => (true, true),
            _ => (false, false),
        };
        let alpha = if takes_alpha { alphas.next() } else { None };
        let beta = if takes_beta { betas.next() } else { None };
        (name, alpha, beta)
    };
    Ok(names.into_iter().map(with).collect())
}

fn activate(
    b: &mut Builder<'_>,
    (name, alpha, beta): &(String, Option<f64>, Option<f64>),
    x: ValueId,
) -> Step<ValueId> {
    let activation = match name.as_str() {
        "Sigmoid" => return b.unary(Unary::Sigmoid, x),
        "Tanh" => return b.unary(Unary::Tanh, x),
        "Relu" => return b.unary(Unary::Relu, x),
        "Softsign" => return b.unary(Unary::Softsign, x),
        "Softplus" => return b.unary(Unary::Softplus, x),
        "LeakyRelu" => Activation::LeakyRelu { alpha: alpha.unwrap_or(f64::from(0.01_f32)) },
        "ThresholdedRelu" => Activation::ThresholdedRelu { alpha: alpha.unwrap_or(1.0) },
        "Elu" => Activation::Elu { alpha: alpha.unwrap_or(1.0) },
        "HardSigmoid" => Activation::HardSigmoid {
            alpha: alpha.unwrap_or(f64::from(0.2_f32)),
            beta: beta.unwrap_or(0.5),
        },
        "Affine" => Activation::Affine { alpha: alpha.unwrap_or(1.0), beta: beta.unwrap_or(0.0) },
        other => return stop(format!("activation {other} is not supported")),
    };
    b.activation(activation, x)
}

/// One direction: the sequence (steps, 1, batch, hidden), the last state, the last cell.
fn run(
    b: &mut Builder<'_>,
    layer: &Layer,
    of: &RecurrentDirection,
    mut x: ValueId,
    (mut h, mut cell): (ValueId, ValueId),
    reversed: bool,
) -> Step<(ValueId, ValueId, ValueId)> {
    let own_order = reversed && layer.lengths.is_some();
    let reverse = Operator::ReverseSequence { batch_axis: 1, time_axis: 0 };
    if let Some(lengths) = layer.lengths.filter(|_| own_order) {
        x = b.add(reverse.clone(), &[x, lengths])?;
    }
    let input = b.shape(x)[2];
    // The products of all inputs at once.
    let flat = b.reshape(x, &[layer.steps * layer.batch, input])?;
    let mut products = b.matmul(flat, of.w)?;
    if let Some(bias) = of.input_bias {
        products = b.sum(products, bias)?;
    }
    let rows = layer.kind.gates() * layer.hidden;
    let products = b.reshape(products, &[layer.steps, layer.batch, rows])?;
    let mut sequence = Vec::new();
    for step in 0..layer.steps {
        let at = if reversed && !own_order { layer.steps - 1 - step } else { step };
        let row = b.part(products, 0, at, at + 1)?;
        let row = b.reshape(row, &[layer.batch, rows])?;
        let (mut next_h, mut next_cell) = match layer.kind {
            Kind::Rnn => (simple(b, layer, of, row, h)?, cell),
            Kind::Gru => (gru(b, layer, of, row, h)?, cell),
            Kind::Lstm => lstm(b, layer, of, row, (h, cell))?,
        };
        let mut shown = next_h;
        if let Some(lengths) = layer.lengths {
            let number = b.scalar(DType::I64, step as f64);
            let is_in = b.binary(Binary::Less, number, lengths)?;
            let is_in = b.reshape(is_in, &[layer.batch, 1])?;
            let zero = b.scalar(b.dtype(h), 0.0);
            shown = b.add(Operator::Where, &[is_in, next_h, zero])?;
            next_h = b.add(Operator::Where, &[is_in, next_h, h])?;
            next_cell = b.add(Operator::Where, &[is_in, next_cell, cell])?;
        }
        (h, cell) = (next_h, next_cell);
        sequence.push(b.reshape(shown, &[1, 1, layer.batch, layer.hidden])?);
    }
    if reversed && !own_order {
        sequence.reverse();
    }
    let mut sequence = b.concat(&sequence, 0)?;
    if let Some(lengths) = layer.lengths.filter(|_| own_order) {
        let plain = b.reshape(sequence, &[layer.steps, layer.batch, layer.hidden])?;
        let turned = b.add(reverse, &[plain, lengths])?;
        sequence = b.reshape(turned, &[layer.steps, 1, layer.batch, layer.hidden])?;
    }
    Ok((sequence, h, cell))
}

fn clipped(b: &mut Builder<'_>, layer: &Layer, x: ValueId) -> Step<ValueId> {
    match layer.clip {
        Some(clip) => b.activation(Activation::Clamp { low: -clip, high: clip }, x),
        None => Ok(x),
    }
}

/// The product of the state with some rows of the weights, and its bias.
fn recurrent(
    b: &mut Builder<'_>,
    of: &RecurrentDirection,
    h: ValueId,
    from: usize,
    to: usize,
) -> Step<ValueId> {
    let r = b.part(of.r, 1, from, to)?;
    let product = b.matmul(h, r)?;
    match of.hidden_bias {
        Some(bias) => {
            let bias = b.part(bias, 0, from, to)?;
            b.sum(product, bias)
        }
        None => Ok(product),
    }
}

fn simple(
    b: &mut Builder<'_>,
    layer: &Layer,
    of: &RecurrentDirection,
    row: ValueId,
    h: ValueId,
) -> Step<ValueId> {
    let own = recurrent(b, of, h, 0, layer.hidden)?;
    let sum = b.sum(row, own)?;
    let sum = clipped(b, layer, sum)?;
    activate(b, &of.activations[0], sum)
}

fn gru(
    b: &mut Builder<'_>,
    layer: &Layer,
    of: &RecurrentDirection,
    row: ValueId,
    h: ValueId,
) -> Step<ValueId> {
    let n = layer.hidden;
    let own = recurrent(b, of, h, 0, 2 * n)?;
    let both = b.part(row, 1, 0, 2 * n)?;
    let both = b.sum(both, own)?;
    let both = clipped(b, layer, both)?;
    let both = activate(b, &of.activations[0], both)?;
    let (z, r) = (b.part(both, 1, 0, n)?, b.part(both, 1, n, 2 * n)?);
    let own = if layer.linear_before_reset {
        let own = recurrent(b, of, h, 2 * n, 3 * n)?;
        b.product(r, own)?
    } else {
        let reset = b.product(r, h)?;
        recurrent(b, of, reset, 2 * n, 3 * n)?
    };
    let candidate = b.part(row, 1, 2 * n, 3 * n)?;
    let candidate = b.sum(candidate, own)?;
    let candidate = clipped(b, layer, candidate)?;
    let candidate = activate(b, &of.activations[1], candidate)?;
    let one = b.scalar(b.dtype(h), 1.0);
    let rest = b.difference(one, z)?;
    let (new, old) = (b.product(rest, candidate)?, b.product(z, h)?);
    b.sum(new, old)
}

fn lstm(
    b: &mut Builder<'_>,
    layer: &Layer,
    of: &RecurrentDirection,
    row: ValueId,
    (h, cell): (ValueId, ValueId),
) -> Step<(ValueId, ValueId)> {
    let n = layer.hidden;
    let own = recurrent(b, of, h, 0, 4 * n)?;
    let all = b.sum(row, own)?;
    let gate = |b: &mut Builder<'_>, at: usize| b.part(all, 1, at * n, (at + 1) * n);
    // The file has them as input, output, forget, cell.
    let (mut i, mut o, mut f, candidate) = (gate(b, 0)?, gate(b, 1)?, gate(b, 2)?, gate(b, 3)?);
    let peep = |b: &mut Builder<'_>, gate: ValueId, at: usize, cell: ValueId| match of.peepholes {
        Some(all) => {
            let weights = b.part(all, 0, at * n, (at + 1) * n)?;
            let product = b.product(weights, cell)?;
            b.sum(gate, product)
        }
        None => Ok(gate),
    };
    i = peep(b, i, 0, cell)?;
    f = peep(b, f, 2, cell)?;
    let i = clipped(b, layer, i)?;
    let i = activate(b, &of.activations[0], i)?;
    let f = if layer.input_forget {
        let one = b.scalar(b.dtype(h), 1.0);
        b.difference(one, i)?
    } else {
        let f = clipped(b, layer, f)?;
        activate(b, &of.activations[0], f)?
    };
    let candidate = clipped(b, layer, candidate)?;
    let candidate = activate(b, &of.activations[1], candidate)?;
    let (kept, added) = (b.product(f, cell)?, b.product(i, candidate)?);
    let next = b.sum(kept, added)?;
    o = peep(b, o, 1, next)?;
    let o = clipped(b, layer, o)?;
    let o = activate(b, &of.activations[0], o)?;
    let shown = activate(b, &of.activations[2], next)?;
    Ok((b.product(o, shown)?, next))
}
