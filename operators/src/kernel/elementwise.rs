//! Elementwise operators: a list of steps over registers, each of which holds a block of elements.
//!
//! ```text
//! inputs --load (broadcast, convert)--> registers --step--> registers --step--> .. --store (convert)--> output
//! ```
//! A block has [`BLOCK`] elements of the output, so that registers stay in the cache. A register has the type of the value that it stands for; what is
//! computed in a larger one is rounded or wrapped after each step, so that a fused list of steps gives the bits of single operators.

use bytemuck::cast_slice;
use half::{bf16, f16};

use super::function::{double, signed, single, unsigned};
use super::memory::{In, Out};
use crate::dtype::DType;
use crate::element::{Element, odd, with_type};
use crate::infer::strides_of;
use crate::operator::{Activation, Binary, Function, Nary, Step, Unary};

/// Elements of a block.
const BLOCK: usize = 1024;

/// The elements of a block, in the type in which they are computed.
#[derive(Clone, Debug)]
enum Block {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    U64(Vec<u64>),
}

/// The type in which elements are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Computed {
    F32,
    F64,
    I64,
    U64,
}

const fn computed(dtype: DType) -> Computed {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => Computed::F32,
        DType::F64 => Computed::F64,
        DType::U64 => Computed::U64,
        _ => Computed::I64,
    }
}

impl Block {
    fn new(dtype: DType) -> Self {
        match computed(dtype) {
            Computed::F32 => Self::F32(vec![0.0; BLOCK]),
            Computed::F64 => Self::F64(vec![0.0; BLOCK]),
            Computed::I64 => Self::I64(vec![0; BLOCK]),
            Computed::U64 => Self::U64(vec![0; BLOCK]),
        }
    }

    fn lane(&self, count: usize) -> Lane<'_> {
        match self {
            Self::F32(values) => Lane::F32(&values[..count]),
            Self::F64(values) => Lane::F64(&values[..count]),
            Self::I64(values) => Lane::I64(&values[..count]),
            Self::U64(values) => Lane::U64(&values[..count]),
        }
    }

    fn lane_mut(&mut self, count: usize) -> LaneMut<'_> {
        match self {
            Self::F32(values) => LaneMut::F32(&mut values[..count]),
            Self::F64(values) => LaneMut::F64(&mut values[..count]),
            Self::I64(values) => LaneMut::I64(&mut values[..count]),
            Self::U64(values) => LaneMut::U64(&mut values[..count]),
        }
    }
}

/// Elements of a register, or of an input that is read in place.
#[derive(Clone, Copy)]
enum Lane<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    I64(&'a [i64]),
    U64(&'a [u64]),
}

/// Where the result of a step goes.
enum LaneMut<'a> {
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
    I64(&'a mut [i64]),
    U64(&'a mut [u64]),
}

/// Where the elements of an input are, in the order of the output.
enum Pattern {
    /// Side by side.
    Dense,
    /// One element, for all.
    One,
    /// In rows: extents and distances from the outermost dimension inwards, dimensions joined where they can be.
    Rows(Vec<(usize, usize)>),
}

fn pattern(shape: &[usize], output: &[usize]) -> Pattern {
    let own = strides_of(shape);
    let missing = output.len() - shape.len();
    let mut rows: Vec<(usize, usize)> = Vec::new();
    for (at, extent) in output.iter().enumerate() {
        if *extent == 1 {
            continue;
        }
        let stride = match at.checked_sub(missing) {
            Some(at) if shape[at] != 1 => own[at],
            _ => 0,
        };
        match rows.last_mut() {
            Some((outer, distance)) if *distance == stride * extent => {
                *outer *= extent;
                *distance = stride;
            }
            _ => rows.push((*extent, stride)),
        }
    }
    match rows.as_slice() {
        [] | [(_, 0)] => Pattern::One,
        [(_, 1)] => Pattern::Dense,
        _ => Pattern::Rows(rows),
    }
}

/// Calls `each(position in the block, first element, distance, count)` for runs of elements `start .. start + count` of the output.
fn runs(
    rows: &[(usize, usize)],
    start: usize,
    count: usize,
    mut each: impl FnMut(usize, usize, usize, usize),
) {
    let Some(((inner, stride), outer)) = rows.split_last() else { return };
    let mut done = 0;
    while done < count {
        let place = start + done;
        let (mut rest, column) = (place / inner, place % inner);
        let mut at = column * stride;
        for (extent, stride) in outer.iter().rev() {
            at += rest % extent * stride;
            rest /= extent;
        }
        let length = (inner - column).min(count - done);
        each(done, at, *stride, length);
        done += length;
    }
}

fn load<T: Element, C: Copy>(
    (input, pattern): (&In<'_>, &Pattern),
    (start, to): (usize, &mut [C]),
    convert: impl Fn(T) -> C,
) {
    let values = input.elements::<T>();
    match pattern {
        Pattern::Dense => {
            for (to, from) in to.iter_mut().zip(&values[start..]) {
                *to = convert(*from);
            }
        }
        Pattern::One => to.fill(convert(values[0])),
        Pattern::Rows(rows) => runs(rows, start, to.len(), |place, at, stride, length| {
            let to = &mut to[place..place + length];
            match stride {
                0 => to.fill(convert(values[at])),
                1 => to
                    .iter_mut()
                    .zip(&values[at..at + length])
                    .for_each(|(to, from)| *to = convert(*from)),
                _ => to
                    .iter_mut()
                    .zip(values[at..].iter().step_by(stride))
                    .for_each(|(to, from)| *to = convert(*from)),
            }
        }),
    }
}

/// Loads elements of an input into a register.
fn load_block(input: &In<'_>, pattern: &Pattern, start: usize, to: LaneMut<'_>) {
    let from = (input, pattern);
    match (input.ty.dtype, to) {
        (DType::F16, LaneMut::F32(to)) => load(from, (start, to), |x: f16| x.to_f32()),
        (DType::BF16, LaneMut::F32(to)) => load(from, (start, to), |x: bf16| x.to_f32()),
        (DType::F32, LaneMut::F32(to)) => load(from, (start, to), |x: f32| x),
        (DType::F64, LaneMut::F64(to)) => load(from, (start, to), |x: f64| x),
        (DType::U64, LaneMut::U64(to)) => load(from, (start, to), |x: u64| x),
        (DType::I64, LaneMut::I64(to)) => load(from, (start, to), |x: i64| x),
        (DType::I32, LaneMut::I64(to)) => load(from, (start, to), |x: i32| i64::from(x)),
        (DType::I16, LaneMut::I64(to)) => load(from, (start, to), |x: i16| i64::from(x)),
        (DType::I8, LaneMut::I64(to)) => load(from, (start, to), |x: i8| i64::from(x)),
        (DType::U32, LaneMut::I64(to)) => load(from, (start, to), |x: u32| i64::from(x)),
        (DType::U16, LaneMut::I64(to)) => load(from, (start, to), |x: u16| i64::from(x)),
        (DType::U8, LaneMut::I64(to)) => load(from, (start, to), |x: u8| i64::from(x)),
        (DType::Bool, LaneMut::I64(to)) => load(from, (start, to), |x: u8| i64::from(x != 0)),
        _ => unreachable!("a register has the type of its value"),
    }
}

/// Stores a register.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "registers are wrapped to their type"
)]
fn store(from: Lane<'_>, dtype: DType, output: &mut Out<'_>, start: usize) {
    macro_rules! put {
        ($T:ty, $values:expr, |$x:ident| $convert:expr) => {{
            let to = output.elements::<$T>(start, $values.len());
            to.iter_mut().zip($values).for_each(|(to, $x)| *to = $convert)
        }};
    }
    match (dtype, from) {
        (DType::F16, Lane::F32(values)) => put!(f16, values, |x| f16::from_f32(*x)),
        (DType::BF16, Lane::F32(values)) => put!(bf16, values, |x| bf16::from_f32(*x)),
        (DType::F32, Lane::F32(values)) => put!(f32, values, |x| *x),
        (DType::F64, Lane::F64(values)) => put!(f64, values, |x| *x),
        (DType::U64, Lane::U64(values)) => put!(u64, values, |x| *x),
        (DType::I64, Lane::I64(values)) => put!(i64, values, |x| *x),
        (DType::I32, Lane::I64(values)) => put!(i32, values, |x| *x as i32),
        (DType::I16, Lane::I64(values)) => put!(i16, values, |x| *x as i16),
        (DType::I8, Lane::I64(values)) => put!(i8, values, |x| *x as i8),
        (DType::U32, Lane::I64(values)) => put!(u32, values, |x| *x as u32),
        (DType::U16, Lane::I64(values)) => put!(u16, values, |x| *x as u16),
        (DType::U8 | DType::Bool, Lane::I64(values)) => put!(u8, values, |x| *x as u8),
        _ => unreachable!("a register has the type of its value"),
    }
}

/// Rounds or wraps a register to its type.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "wrapping is the purpose"
)]
fn settle(dtype: DType, lane: LaneMut<'_>) {
    match (dtype, lane) {
        (DType::F16, LaneMut::F32(values)) => {
            values.iter_mut().for_each(|x| *x = f16::from_f32(*x).to_f32());
        }
        (DType::BF16, LaneMut::F32(values)) => {
            values.iter_mut().for_each(|x| *x = bf16::from_f32(*x).to_f32());
        }
        (DType::I32, LaneMut::I64(values)) => {
            values.iter_mut().for_each(|x| *x = i64::from(*x as i32))
        }
        (DType::I16, LaneMut::I64(values)) => {
            values.iter_mut().for_each(|x| *x = i64::from(*x as i16))
        }
        (DType::I8, LaneMut::I64(values)) => {
            values.iter_mut().for_each(|x| *x = i64::from(*x as i8))
        }
        (DType::U32, LaneMut::I64(values)) => {
            values.iter_mut().for_each(|x| *x = i64::from(*x as u32))
        }
        (DType::U16, LaneMut::I64(values)) => {
            values.iter_mut().for_each(|x| *x = i64::from(*x as u16))
        }
        (DType::U8, LaneMut::I64(values)) => {
            values.iter_mut().for_each(|x| *x = i64::from(*x as u8))
        }
        (DType::Bool, LaneMut::I64(values)) => values.iter_mut().for_each(|x| *x &= 1),
        _ => {}
    }
}

/// Runs the steps for elements `first .. first + count` of the output.
pub(crate) fn run(
    steps: &[Step],
    inputs: &[Option<In<'_>>],
    output: &mut Out<'_>,
    (first, count): (usize, usize),
) {
    let shape = &output.ty.shape;
    let mut values: Vec<Register<'_>> = inputs
        .iter()
        .map(|input| {
            let Some(input) = input else {
                return Register { dtype: DType::F32, block: None, input: None };
            };
            let pattern = pattern(&input.ty.shape, shape);
            let in_place = matches!(pattern, Pattern::Dense)
                && matches!(input.ty.dtype, DType::F32 | DType::F64 | DType::I64 | DType::U64);
            let block = (!in_place).then(|| Block::new(input.ty.dtype));
            Register { dtype: input.ty.dtype, block, input: Some((*input, pattern)) }
        })
        .collect();
    let registers = values.len();
    for step in steps {
        let operands: Vec<_> =
            step.operands.iter().map(|at| at.map(|at| values[at].dtype)).collect();
        let dtype = step.function.result(&operands);
        values.push(Register { dtype, block: Some(Block::new(dtype)), input: None });
    }
    // One element for all is loaded once.
    for value in &mut values {
        if let Register {
            block: Some(block), input: Some((input, pattern @ Pattern::One)), ..
        } = value
        {
            load_block(input, pattern, 0, block.lane_mut(BLOCK));
        }
    }
    let mut done = 0;
    while done < count {
        let length = BLOCK.min(count - done);
        let start = first + done;
        for value in &mut values[..registers] {
            if let Register { block: Some(block), input: Some((input, pattern)), .. } = value
                && !matches!(pattern, Pattern::One)
            {
                load_block(input, pattern, start, block.lane_mut(length));
            }
        }
        for (at, step) in steps.iter().enumerate() {
            let (before, rest) = values.split_at_mut(registers + at);
            let operands: Vec<_> = step
                .operands
                .iter()
                .map(|at| at.map(|at| (before[at].lane(start, length), before[at].dtype)))
                .collect();
            let dtype = rest[0].dtype;
            if let Some(block) = &mut rest[0].block {
                apply(&step.function, &operands, dtype, block.lane_mut(length));
                settle(dtype, block.lane_mut(length));
            }
        }
        if let Some(last) = values.last() {
            store(last.lane(start, length), last.dtype, output, start);
        }
        done += length;
    }
}

/// A value of the list: an input, or the result of a step.
struct Register<'a> {
    dtype: DType,
    /// `None`: the input is read in place.
    block: Option<Block>,
    input: Option<(In<'a>, Pattern)>,
}

impl Register<'_> {
    fn lane(&self, start: usize, count: usize) -> Lane<'_> {
        match (&self.block, &self.input) {
            (Some(block), _) => block.lane(count),
            (None, Some((input, _))) => {
                let bytes = self.dtype.bytes();
                let bytes = &input.bytes[start * bytes..(start + count) * bytes];
                match computed(self.dtype) {
                    Computed::F32 => Lane::F32(cast_slice(bytes)),
                    Computed::F64 => Lane::F64(cast_slice(bytes)),
                    Computed::I64 => Lane::I64(cast_slice(bytes)),
                    Computed::U64 => Lane::U64(cast_slice(bytes)),
                }
            }
            (None, None) => Lane::I64(&[]),
        }
    }
}

impl Function {
    /// The type of the result, of operands of these types.
    pub(crate) fn result(&self, operands: &[Option<DType>]) -> DType {
        let first = operands.first().copied().flatten().unwrap_or(DType::F32);
        match self {
            Self::Unary(Unary::IsNaN) | Self::Activation(Activation::IsInf { .. }) => DType::Bool,
            Self::Binary(binary) if binary.is_comparison() => DType::Bool,
            Self::Where => operands.get(1).copied().flatten().unwrap_or(first),
            Self::Cast(to) => *to,
            _ => first,
        }
    }
}

type Operands<'a> = [Option<(Lane<'a>, DType)>];

fn apply(function: &Function, operands: &Operands<'_>, dtype: DType, to: LaneMut<'_>) {
    let operand = |at: usize| operands.get(at).copied().flatten().map(|(lane, _)| lane);
    let Some(a) = operand(0) else { return };
    match function {
        Function::Unary(Unary::IsNaN) => match (a, to) {
            (Lane::F32(a), LaneMut::I64(to)) => each(a, to, |x| i64::from(x.is_nan())),
            (Lane::F64(a), LaneMut::I64(to)) => each(a, to, |x| i64::from(x.is_nan())),
            _ => {}
        },
        Function::Activation(Activation::IsInf { negative, positive }) => {
            let is_it = |x: f64| {
                i64::from(
                    (*positive && x == f64::INFINITY) || (*negative && x == f64::NEG_INFINITY),
                )
            };
            match (a, to) {
                (Lane::F32(a), LaneMut::I64(to)) => each(a, to, |x| is_it(f64::from(x))),
                (Lane::F64(a), LaneMut::I64(to)) => each(a, to, is_it),
                _ => {}
            }
        }
        Function::Unary(unary) => match (a, to) {
            (Lane::F32(a), LaneMut::F32(to)) => single::unary(*unary, a, to),
            (Lane::F64(a), LaneMut::F64(to)) => double::unary(*unary, a, to),
            (Lane::I64(a), LaneMut::I64(to)) => signed::unary(*unary, a, to),
            (Lane::U64(a), LaneMut::U64(to)) => unsigned::unary(*unary, a, to),
            _ => {}
        },
        Function::Activation(activation) => match (a, to) {
            (Lane::F32(a), LaneMut::F32(to)) => single::activation(activation, a, to),
            (Lane::F64(a), LaneMut::F64(to)) => double::activation(activation, a, to),
            (a, to) => integer_activation(activation, a, dtype, to),
        },
        Function::Binary(Binary::Pow) => {
            if let Some(b) = operand(1) {
                power(a, b, to);
            }
        }
        Function::Binary(binary) => {
            if let Some(b) = operand(1) {
                apply_binary(*binary, (a, b), dtype, to);
            }
        }
        Function::Nary(nary) => apply_nary(*nary, operands, dtype, to),
        Function::Where => {
            if let (Lane::I64(condition), Some(x), Some(y)) = (a, operand(1), operand(2)) {
                choose(condition, x, y, to);
            }
        }
        Function::Clip => {
            macro_rules! clipped {
                ($Lane:ident, $a:expr, $to:expr) => {{
                    let limit = |at: usize| match operand(at) {
                        Some(Lane::$Lane(values)) => Some(values),
                        _ => None,
                    };
                    let (low, high) = (limit(1), limit(2));
                    for (at, (to, x)) in $to.iter_mut().zip($a).enumerate() {
                        let mut x = *x;
                        if let Some(low) = low
                            && x < low[at]
                        {
                            x = low[at];
                        }
                        if let Some(high) = high
                            && x > high[at]
                        {
                            x = high[at];
                        }
                        *to = x;
                    }
                }};
            }
            match (a, to) {
                (Lane::F32(a), LaneMut::F32(to)) => clipped!(F32, a, to),
                (Lane::F64(a), LaneMut::F64(to)) => clipped!(F64, a, to),
                (Lane::I64(a), LaneMut::I64(to)) => clipped!(I64, a, to),
                (Lane::U64(a), LaneMut::U64(to)) => clipped!(U64, a, to),
                _ => {}
            }
        }
        Function::Cast(_) => {
            let from = operands.first().copied().flatten().map_or(dtype, |(_, dtype)| dtype);
            cast((a, from), (to, dtype));
        }
    }
}

fn each<A: Copy, B>(a: &[A], to: &mut [B], function: impl Fn(A) -> B) {
    a.iter().zip(to).for_each(|(a, to)| *to = function(*a));
}

fn choose(condition: &[i64], x: Lane<'_>, y: Lane<'_>, to: LaneMut<'_>) {
    fn chosen<T: Copy>(condition: &[i64], x: &[T], y: &[T], to: &mut [T]) {
        for (((to, condition), x), y) in to.iter_mut().zip(condition).zip(x).zip(y) {
            *to = if *condition != 0 { *x } else { *y };
        }
    }
    match (x, y, to) {
        (Lane::F32(x), Lane::F32(y), LaneMut::F32(to)) => chosen(condition, x, y, to),
        (Lane::F64(x), Lane::F64(y), LaneMut::F64(to)) => chosen(condition, x, y, to),
        (Lane::I64(x), Lane::I64(y), LaneMut::I64(to)) => chosen(condition, x, y, to),
        (Lane::U64(x), Lane::U64(y), LaneMut::U64(to)) => chosen(condition, x, y, to),
        _ => {}
    }
}

fn bits(dtype: DType) -> u32 {
    match dtype.bytes() {
        1 => 8,
        2 => 16,
        4 => 32,
        _ => 64,
    }
}

fn apply_binary(binary: Binary, operands: (Lane<'_>, Lane<'_>), dtype: DType, to: LaneMut<'_>) {
    let function = (binary, bits(dtype));
    match (operands.0, operands.1, to) {
        (Lane::F32(a), Lane::F32(b), LaneMut::I64(to)) => single::compare(binary, a, b, to),
        (Lane::F64(a), Lane::F64(b), LaneMut::I64(to)) => double::compare(binary, a, b, to),
        (Lane::U64(a), Lane::U64(b), LaneMut::I64(to)) => unsigned::compare(binary, a, b, to),
        (Lane::I64(a), Lane::I64(b), LaneMut::I64(to)) if binary.is_comparison() => {
            signed::compare(binary, a, b, to)
        }
        (Lane::F32(a), Lane::F32(b), LaneMut::F32(to)) => single::binary(binary, a, b, to),
        (Lane::F64(a), Lane::F64(b), LaneMut::F64(to)) => double::binary(binary, a, b, to),
        (Lane::I64(a), Lane::I64(b), LaneMut::I64(to)) => signed::binary(function, a, b, to),
        (Lane::U64(a), Lane::U64(b), LaneMut::U64(to)) => unsigned::binary(function, a, b, to),
        _ => {}
    }
}

/// Elements as `f64`.
#[expect(clippy::cast_precision_loss, reason = "the nearest one is wanted")]
fn doubles(lane: Lane<'_>) -> Vec<f64> {
    match lane {
        Lane::F32(values) => values.iter().map(|x| f64::from(*x)).collect(),
        Lane::F64(values) => values.to_vec(),
        Lane::I64(values) => values.iter().map(|x| *x as f64).collect(),
        Lane::U64(values) => values.iter().map(|x| *x as f64).collect(),
    }
}

/// a to the power b, whose types may differ.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a power of an integer with a float is the float towards zero, saturating"
)]
fn power(a: Lane<'_>, b: Lane<'_>, to: LaneMut<'_>) {
    let exponents = |b: Lane<'_>| match b {
        Lane::I64(b) => Some(b.to_vec()),
        Lane::U64(b) => Some(b.iter().map(|b| i64::try_from(*b).unwrap_or(i64::MAX)).collect()),
        _ => None,
    };
    match (a, to) {
        (Lane::F32(a), LaneMut::F32(to)) => single::power(a, &doubles(b), to),
        (Lane::F64(a), LaneMut::F64(to)) => double::power(a, &doubles(b), to),
        (Lane::I64(a), LaneMut::I64(to)) => match exponents(b) {
            Some(b) => signed::power(a, &b, to),
            None => a
                .iter()
                .zip(doubles(b))
                .zip(to)
                .for_each(|((a, b), to)| *to = (*a as f64).powf(b) as i64),
        },
        (Lane::U64(a), LaneMut::U64(to)) => match exponents(b) {
            Some(b) => unsigned::power(a, &b, to),
            None => a
                .iter()
                .zip(doubles(b))
                .zip(to)
                .for_each(|((a, b), to)| *to = (*a as f64).powf(b) as u64),
        },
        _ => {}
    }
}

/// Any number of operands. Sums of floats are added in `f64`.
fn apply_nary(nary: Nary, operands: &Operands<'_>, dtype: DType, to: LaneMut<'_>) {
    let lanes: Vec<_> = operands.iter().flatten().map(|(lane, _)| *lane).collect();
    if let (Nary::Sum | Nary::Mean, true) = (nary, dtype.is_float()) {
        let mut sums = doubles(lanes[0]);
        for lane in &lanes[1..] {
            sums.iter_mut().zip(doubles(*lane)).for_each(|(sum, x)| *sum += x);
        }
        if nary == Nary::Mean {
            let count = f64::from(u32::try_from(lanes.len()).unwrap_or(u32::MAX));
            sums.iter_mut().for_each(|sum| *sum /= count);
        }
        return cast((Lane::F64(&sums), DType::F64), (to, dtype));
    }
    let binary = match nary {
        Nary::Max => Binary::Max,
        Nary::Min => Binary::Min,
        Nary::Sum | Nary::Mean => Binary::Add,
    };
    let mut so_far = Block::new(dtype);
    let mut next = Block::new(dtype);
    let count = length(lanes[0]);
    cast((lanes[0], dtype), (so_far.lane_mut(count), dtype));
    for lane in &lanes[1..] {
        apply_binary(binary, (so_far.lane(count), *lane), dtype, next.lane_mut(count));
        std::mem::swap(&mut so_far, &mut next);
    }
    if nary == Nary::Mean {
        let divisor = i64::try_from(lanes.len()).unwrap_or(1);
        let (signed, unsigned) = (vec![divisor; count], vec![divisor.unsigned_abs(); count]);
        settle(dtype, so_far.lane_mut(count));
        let divisors = if computed(dtype) == Computed::U64 {
            Lane::U64(&unsigned)
        } else {
            Lane::I64(&signed)
        };
        return apply_binary(Binary::Div, (so_far.lane(count), divisors), dtype, to);
    }
    cast((so_far.lane(count), dtype), (to, dtype));
}

const fn length(lane: Lane<'_>) -> usize {
    match lane {
        Lane::F32(values) => values.len(),
        Lane::F64(values) => values.len(),
        Lane::I64(values) => values.len(),
        Lane::U64(values) => values.len(),
    }
}

fn integer_activation(activation: &Activation, a: Lane<'_>, dtype: DType, to: LaneMut<'_>) {
    let from: Vec<_> =
        doubles(a).into_iter().map(|x| super::function::activation(activation, x)).collect();
    cast((Lane::F64(&from), DType::F64), (to, dtype));
}

/// Converts elements.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "conversions between elements round and drop bits as documented"
)]
fn cast((from, _): (Lane<'_>, DType), (to, dtype): (LaneMut<'_>, DType)) {
    let is_half = matches!(dtype, DType::F16 | DType::BF16);
    if dtype == DType::Bool {
        let LaneMut::I64(to) = to else { return };
        return match from {
            Lane::F32(a) => each(a, to, |x| i64::from(x != 0.0)),
            Lane::F64(a) => each(a, to, |x| i64::from(x != 0.0)),
            Lane::I64(a) => each(a, to, |x| i64::from(x != 0)),
            Lane::U64(a) => each(a, to, |x| i64::from(x != 0)),
        };
    }
    // Towards zero and saturating to the type, which the register is wider than.
    let whole = |x: f64| with_type!(dtype, T => T::from_f64(x).to_i128() as i64);
    match (from, to) {
        (Lane::F32(a), LaneMut::F32(to)) => to.copy_from_slice(a),
        (Lane::F32(a), LaneMut::F64(to)) => each(a, to, f64::from),
        (Lane::F32(a), LaneMut::I64(to)) => each(a, to, |x| whole(f64::from(x))),
        (Lane::F32(a), LaneMut::U64(to)) => each(a, to, |x| x as u64),
        (Lane::F64(a), LaneMut::F32(to)) if is_half => each(a, to, odd),
        (Lane::F64(a), LaneMut::F32(to)) => each(a, to, |x| x as f32),
        (Lane::F64(a), LaneMut::F64(to)) => to.copy_from_slice(a),
        (Lane::F64(a), LaneMut::I64(to)) => each(a, to, whole),
        (Lane::F64(a), LaneMut::U64(to)) => each(a, to, |x| x as u64),
        (Lane::I64(a), LaneMut::F32(to)) if is_half => each(a, to, |x| odd(x as f64)),
        (Lane::I64(a), LaneMut::F32(to)) => each(a, to, |x| x as f32),
        (Lane::I64(a), LaneMut::F64(to)) => each(a, to, |x| x as f64),
        (Lane::I64(a), LaneMut::I64(to)) => to.copy_from_slice(a),
        (Lane::I64(a), LaneMut::U64(to)) => each(a, to, i64::cast_unsigned),
        (Lane::U64(a), LaneMut::F32(to)) if is_half => each(a, to, |x| odd(x as f64)),
        (Lane::U64(a), LaneMut::F32(to)) => each(a, to, |x| x as f32),
        (Lane::U64(a), LaneMut::F64(to)) => each(a, to, |x| x as f64),
        (Lane::U64(a), LaneMut::I64(to)) => each(a, to, u64::cast_signed),
        (Lane::U64(a), LaneMut::U64(to)) => to.copy_from_slice(a),
    }
}

/// Where the element of a tensor is that is broadcast to an element of another.
pub(crate) struct Places(Pattern);

impl Places {
    pub(crate) fn of(shape: &[usize], output: &[usize]) -> Self {
        Self(pattern(shape, output))
    }

    pub(crate) fn at(&self, place: usize) -> usize {
        match &self.0 {
            Pattern::Dense => place,
            Pattern::One => 0,
            Pattern::Rows(rows) => {
                let (mut rest, mut at) = (place, 0);
                for (extent, stride) in rows.iter().rev() {
                    at += rest % extent * stride;
                    rest /= extent;
                }
                at
            }
        }
    }
}
