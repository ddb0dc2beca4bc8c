//! Reductions, scans along an axis, sorts.

use pto_operators::{DType, Operator, Reduction, Unary, ValueId};

use super::builder::{Builder, one, several};
use super::call::{Call, NodeValue, Step, stop};

/// A reduction; from version `from` on its axes are an input.
pub(super) fn reduce(
    b: &mut Builder<'_>,
    c: &Call<'_>,
    reduction: Reduction,
    from: i64,
) -> Step<Vec<NodeValue>> {
    let keep_dims = c.flag("keepdims", true)?;
    let x = c.input(0)?;
    let (axes, is_noop) = if c.version < from {
        (c.ints("axes")?, false)
    } else {
        let axes = match c.optional(1)? {
            Some(axes) => Some(b.ints(axes, "input 1 (axes)")?),
            None => None,
        };
        (axes, c.flag("noop_with_empty_axes", false)?)
    };
    let axes = match axes {
        Some(axes) if !axes.is_empty() => Some(axes),
        _ if is_noop => Some(Vec::new()),
        _ => None,
    };
    one(b.add(Operator::Reduce { reduction, axes, keep_dims }, &[x])?)
}

pub(super) fn arg_reduce(b: &mut Builder<'_>, c: &Call<'_>, largest: bool) -> Step<Vec<NodeValue>> {
    let operator = Operator::ArgReduce {
        largest,
        axis: c.int("axis", 0)?,
        keep_dims: c.flag("keepdims", true)?,
        select_last: c.flag("select_last_index", false)?,
    };
    one(b.add(operator, &[c.input(0)?])?)
}

pub(super) fn cumulative(
    b: &mut Builder<'_>,
    c: &Call<'_>,
    is_product: bool,
) -> Step<Vec<NodeValue>> {
    let (exclusive, reverse) = (c.flag("exclusive", false)?, c.flag("reverse", false)?);
    let axis = b.int(c.input(1)?, "input 1 (axis)")?;
    let operator = if is_product {
        Operator::CumProd { axis, exclusive, reverse }
    } else {
        Operator::CumSum { axis, exclusive, reverse }
    };
    one(b.add(operator, &[c.input(0)?])?)
}

pub(super) fn top_k(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let axis = c.int("axis", -1)?;
    let k = if c.version < 10 { c.required_int("k")? } else { b.int(c.input(1)?, "input 1 (K)")? };
    let k = usize::try_from(k).or_else(|_| stop(format!("K is {k}, and has to be 0 or more")))?;
    let (mut largest, mut sorted) = (true, true);
    if c.version >= 11 {
        largest = c.flag("largest", true)?;
        sorted = c.flag("sorted", true)?;
    }
    let inputs = [Some(c.input(0)?)];
    several(b.add_all(Operator::TopK { k, axis, largest, sorted }, &inputs)?)
}

/// Softmax and its kin: before version 13 over all dimensions from the axis on, together.
pub(super) fn softmax(
    b: &mut Builder<'_>,
    c: &Call<'_>,
    make: fn(i64) -> Operator,
) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    if c.version >= 13 {
        let axis = c.int("axis", -1)?;
        return one(if matches!(make(axis), Operator::Softmax { .. }) {
            plain_softmax(b, x, axis)?
        } else {
            b.add(make(axis), &[x])?
        });
    }
    let shape = b.shape(x);
    let axis = c.int("axis", 1)?;
    let axis = if axis == shape.len() as i64 { shape.len() } else { b.axis(axis, shape.len())? };
    let (rows, columns) = (shape[..axis].iter().product(), shape[axis..].iter().product());
    let matrix = b.reshape(x, &[rows, columns])?;
    let result = b.add(make(1), &[matrix])?;
    one(b.reshape(result, &shape)?)
}

/// The operator; of `f16` the steps that define it, each rounded to `f16`.
pub(super) fn plain_softmax(b: &mut Builder<'_>, x: ValueId, axis: i64) -> Step<ValueId> {
    if b.dtype(x) != DType::F16 {
        return b.add(Operator::Softmax { axis }, &[x]);
    }
    let largest = b.reduce(Reduction::Max, x, &[axis], true)?;
    let below = b.difference(x, largest)?;
    let powers = b.unary(Unary::Exp, below)?;
    let sum = b.reduce(Reduction::Sum, powers, &[axis], true)?;
    b.quotient(powers, sum)
}

/// A sum of products over letters, by products of matrices or broadcast ones.
pub(super) fn einsum(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let Some(equation) = c.optional_text("equation")? else {
        return stop("attribute equation is missing");
    };
    let equation: String = equation.chars().filter(|letter| !letter.is_whitespace()).collect();
    let inputs = c.all()?;
    let (terms, output) = match equation.split_once("->") {
        Some((terms, output)) => (terms.to_owned(), Some(output.to_owned())),
        None => (equation.clone(), None),
    };
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != inputs.len() {
        return stop(format!(
            "the equation '{equation}' has {} terms, and {} inputs are given",
            terms.len(),
            inputs.len()
        ));
    }
    let mut broadcast = 0;
    for (term, input) in terms.iter().zip(&inputs) {
        if term.contains("...") {
            let letters = term.len() - 3;
            broadcast = broadcast.max(b.rank(*input).saturating_sub(letters));
        }
    }
    let letters_of = |term: &str, rank: Option<usize>| -> Step<Vec<char>> {
        let mut letters = Vec::new();
        match term.split_once("...") {
            None => letters.extend(term.chars()),
            Some((before, after)) => {
                let own = rank.map_or(broadcast, |rank| rank.saturating_sub(term.len() - 3));
                letters.extend(before.chars());
                letters.extend((broadcast - own.min(broadcast)..broadcast).map(marker));
                letters.extend(after.chars());
            }
        }
        let is_letter = |letter: &char| letter.is_ascii_alphabetic() || (*letter as u32) >= MARKERS;
        if letters.iter().all(is_letter) {
            Ok(letters)
        } else {
            stop(format!("'{term}' is no term of an equation"))
        }
    };
    let mut parts = Vec::new();
    for (term, input) in terms.iter().zip(&inputs) {
        let letters = letters_of(term, Some(b.rank(*input)))?;
        if letters.len() != b.rank(*input) {
            return stop(format!(
                "the term '{term}' stands for {} dimensions, and the input has {}",
                letters.len(),
                b.rank(*input)
            ));
        }
        parts.push(without_repeats(b, *input, letters)?);
    }
    let wanted = match output {
        Some(output) => letters_of(&output, None)?,
        None => {
            let mut once: Vec<char> = (0..broadcast).map(marker).collect();
            let all: Vec<char> = terms
                .iter()
                .flat_map(|term| term.chars().filter(char::is_ascii_alphabetic))
                .collect();
            let mut single: Vec<char> = all
                .iter()
                .copied()
                .filter(|one| all.iter().filter(|other| *other == one).count() == 1)
                .collect();
            single.sort_unstable();
            once.extend(single);
            once
        }
    };
    let mut parts = parts.into_iter();
    let Some(mut sum) = parts.next() else { return stop("the equation has no terms") };
    let rest: Vec<_> = parts.collect();
    for (at, next) in rest.iter().enumerate() {
        let later = |letter: &char| {
            wanted.contains(letter)
                || rest[at + 1..].iter().any(|(_, letters)| letters.contains(letter))
        };
        sum = contracted(b, sum, next.clone(), later)?;
    }
    let (value, letters) = summed(b, sum.0, sum.1, |letter| wanted.contains(letter))?;
    let permutation = wanted.iter().map(|letter| letters.iter().position(|other| other == letter));
    let Some(permutation) = permutation.collect::<Option<Vec<_>>>() else {
        return stop(format!(
            "the result of '{equation}' has a letter that no term has, or one twice"
        ));
    };
    if permutation.len() != letters.len() {
        return stop(format!("the result of '{equation}' has a letter twice"));
    }
    one(b.transpose(value, &permutation)?)
}

/// Letters of broadcast dimensions begin here.
const MARKERS: u32 = 0x1000;

fn marker(at: usize) -> char {
    u32::try_from(at).ok().and_then(|at| char::from_u32(MARKERS + at)).unwrap_or('?')
}

/// A tensor whose letters are different: of equal ones the diagonal.
fn without_repeats(
    b: &mut Builder<'_>,
    mut x: ValueId,
    mut letters: Vec<char>,
) -> Step<(ValueId, Vec<char>)> {
    loop {
        let pair = letters.iter().enumerate().find_map(|(at, letter)| {
            letters[at + 1..]
                .iter()
                .position(|other| other == letter)
                .map(|later| (at, at + 1 + later))
        });
        let Some((first, second)) = pair else { return Ok((x, letters)) };
        let shape = b.shape(x);
        if shape[first] != shape[second] {
            return stop(format!(
                "letter {} stands for {} and {}",
                letters[first], shape[first], shape[second]
            ));
        }
        // Both to the end, then every (extent + 1)th element.
        let rest: Vec<usize> =
            (0..shape.len()).filter(|at| *at != first && *at != second).collect();
        let order: Vec<usize> = rest.iter().copied().chain([first, second]).collect();
        let moved = b.transpose(x, &order)?;
        let extent = shape[first];
        let mut flat: Vec<usize> = rest.iter().map(|at| shape[*at]).collect();
        flat.push(extent * extent);
        let moved = b.reshape(moved, &flat)?;
        let operator = Operator::Slice {
            starts: vec![0],
            ends: vec![i64::MAX],
            axes: Some(vec![rest.len() as i64]),
            steps: Some(vec![extent as i64 + 1]),
        };
        x = b.add(operator, &[moved])?;
        let letter = letters[first];
        letters = rest.iter().map(|at| letters[*at]).chain([letter]).collect();
    }
}

/// Sums over letters that are not kept.
fn summed(
    b: &mut Builder<'_>,
    x: ValueId,
    letters: Vec<char>,
    keep: impl Fn(&char) -> bool,
) -> Step<(ValueId, Vec<char>)> {
    let axes: Vec<i64> = letters
        .iter()
        .enumerate()
        .filter(|(_, letter)| !keep(letter))
        .map(|(at, _)| at as i64)
        .collect();
    if axes.is_empty() {
        return Ok((x, letters));
    }
    let x = b.reduce(Reduction::Sum, x, &axes, false)?;
    Ok((x, letters.into_iter().filter(keep).collect()))
}

/// The product of two tensors, summed over letters that neither the result nor a later term has.
fn contracted(
    b: &mut Builder<'_>,
    (x, x_letters): (ValueId, Vec<char>),
    (y, y_letters): (ValueId, Vec<char>),
    later: impl Fn(&char) -> bool,
) -> Step<(ValueId, Vec<char>)> {
    let (x, x_letters) =
        summed(b, x, x_letters.clone(), |letter| later(letter) || y_letters.contains(letter))?;
    let (y, y_letters) =
        summed(b, y, y_letters.clone(), |letter| later(letter) || x_letters.contains(letter))?;
    let both: Vec<char> =
        x_letters.iter().copied().filter(|letter| y_letters.contains(letter)).collect();
    let batch: Vec<char> = both.iter().copied().filter(|letter| later(letter)).collect();
    let inner: Vec<char> = both.iter().copied().filter(|letter| !later(letter)).collect();
    let left: Vec<char> =
        x_letters.iter().copied().filter(|letter| !both.contains(letter)).collect();
    let right: Vec<char> =
        y_letters.iter().copied().filter(|letter| !both.contains(letter)).collect();
    let extent = |b: &Builder<'_>, letter: char| {
        let of = |value: ValueId, letters: &[char]| {
            letters.iter().position(|other| *other == letter).map(|at| b.shape(value)[at])
        };
        match (of(x, &x_letters), of(y, &y_letters)) {
            (Some(1), Some(other)) | (Some(other), Some(1) | None) | (None, Some(other)) => {
                Ok(other)
            }
            (Some(a), Some(d)) if a == d => Ok(a),
            (a, d) => stop(format!("letter {letter} stands for extents {a:?} and {d:?}")),
        }
    };
    let sizes = |b: &Builder<'_>, letters: &[char]| {
        letters.iter().map(|letter| extent(b, *letter)).collect::<Step<Vec<usize>>>()
    };
    let (batches, inners, lefts, rights) =
        (sizes(b, &batch)?, sizes(b, &inner)?, sizes(b, &left)?, sizes(b, &right)?);
    let arranged = |b: &mut Builder<'_>,
                    value: ValueId,
                    letters: &[char],
                    order: Vec<char>,
                    sizes: Vec<usize>| {
        let permutation: Vec<usize> = order
            .iter()
            .filter_map(|letter| letters.iter().position(|other| other == letter))
            .collect();
        let moved = b.transpose(value, &permutation)?;
        b.expand(moved, &sizes)
    };
    let x_order = [batch.clone(), left.clone(), inner.clone()].concat();
    let y_order = [batch.clone(), inner.clone(), right.clone()].concat();
    let x = arranged(
        b,
        x,
        &x_letters,
        x_order,
        [batches.clone(), lefts.clone(), inners.clone()].concat(),
    )?;
    let y = arranged(
        b,
        y,
        &y_letters,
        y_order,
        [batches.clone(), inners.clone(), rights.clone()].concat(),
    )?;
    let count = |sizes: &[usize]| sizes.iter().product::<usize>();
    let x = b.reshape(x, &[count(&batches), count(&lefts), count(&inners)])?;
    let y = b.reshape(y, &[count(&batches), count(&inners), count(&rights)])?;
    let product = if b.dtype(x).is_float() {
        b.matmul(x, y)?
    } else {
        let x = b.add(Operator::Unsqueeze { axes: vec![3] }, &[x])?;
        let y = b.add(Operator::Unsqueeze { axes: vec![1] }, &[y])?;
        let all = b.product(x, y)?;
        b.reduce(Reduction::Sum, all, &[2], false)?
    };
    let shape = [batches, lefts, rights].concat();
    let letters = [batch, left, right].concat();
    Ok((b.reshape(product, &shape)?, letters))
}

/// Ones at the indices, zeros elsewhere: of values `off` and `on`.
pub(super) fn one_hot(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let axis = c.int("axis", -1)?;
    let depth = b.double(c.input(1)?, "input 1 (depth)")?;
    if !(0.0..=1e15).contains(&depth) {
        return stop(format!("depth is {depth}, and has to be 0 or more"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and 1e15"
    )]
    let depth = depth as usize;
    let indices = b.cast(c.input(0)?, DType::I64)?;
    one(b.add(Operator::OneHot { depth, axis }, &[indices, c.input(2)?])?)
}
