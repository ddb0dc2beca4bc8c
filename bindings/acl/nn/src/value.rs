//! Tensors while an operator is computed: real ones, and complex ones as two planes of `f64`.

use std::ptr;

use pto_operators::{Binary, DType, Operator, Reduction, Tensor, TensorType, Unary, broadcast};

use crate::element::ElementType;

/// A tensor that an operator reads or gives.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Real(Tensor),
    Complex(Complex),
}

/// A complex tensor.
#[derive(Clone, Debug)]
pub(crate) struct Complex {
    /// The real and the imaginary parts, of type `f64`.
    pub(crate) parts: [Tensor; 2],
    /// Whether the elements are pairs of `f32`.
    pub(crate) is_single: bool,
}

/// Where a tensor is in memory, but for its address.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<usize>,
    /// In elements.
    pub(crate) strides: Vec<i64>,
    pub(crate) is_dense: bool,
}

impl View {
    pub(crate) fn elements(&self) -> usize {
        pto_operators::elements(&self.shape)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.elements() * self.element.bytes()
    }

    /// Calls `each` with the address of each run of elements that stand side by side, and with their number.
    fn runs(&self, first: usize, mut each: impl FnMut(usize, usize)) {
        let all = self.elements();
        if all == 0 {
            return;
        }
        if self.is_dense {
            return each(first, all);
        }
        let size = self.element.bytes().cast_signed();
        let mut at = vec![0_usize; self.shape.len()];
        let mut offset = 0_isize;
        loop {
            each(first.wrapping_add_signed(offset * size), 1);
            let mut axis = self.shape.len();
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                let stride = isize::try_from(self.strides[axis]).unwrap_or(0);
                at[axis] += 1;
                offset += stride;
                if at[axis] < self.shape[axis] {
                    break;
                }
                offset -= stride * at[axis].cast_signed();
                at[axis] = 0;
            }
        }
    }

    /// Copies the elements out of memory.
    ///
    /// # Safety
    /// The view lies in memory that is mapped, and that no other thread writes meanwhile.
    unsafe fn gather(&self, first: usize) -> Vec<u8> {
        let (bytes, size) = (self.bytes(), self.element.bytes());
        let mut held = vec![0_u8; bytes];
        let mut done = 0;
        self.runs(first, |at, count| {
            let to = held[done..done + count * size].as_mut_ptr();
            let from = ptr::with_exposed_provenance::<u8>(at);
            // SAFETY: the caller promises the memory; `held` is our own.
            unsafe { ptr::copy_nonoverlapping(from, to, count * size) };
            done += count * size;
        });
        held
    }

    /// Copies the elements into memory.
    ///
    /// # Safety
    /// The view lies in memory that is mapped, and that no other thread uses meanwhile.
    unsafe fn scatter(&self, first: usize, bytes: &[u8]) {
        let size = self.element.bytes();
        let mut done = 0;
        self.runs(first, |at, count| {
            let from = bytes[done..done + count * size].as_ptr();
            let to = ptr::with_exposed_provenance_mut::<u8>(at);
            // SAFETY: the caller promises the memory; `bytes` are our own.
            unsafe { ptr::copy_nonoverlapping(from, to, count * size) };
            done += count * size;
        });
    }

    /// The tensor there.
    ///
    /// # Safety
    /// As for `gather`.
    pub(crate) unsafe fn read(&self, first: usize) -> Value {
        // SAFETY: the caller promises it.
        Value::of_bytes(self.element, &self.shape, unsafe { self.gather(first) })
    }

    /// Puts a tensor of this element type and these extents there.
    ///
    /// # Safety
    /// As for `scatter`.
    pub(crate) unsafe fn write(&self, first: usize, value: &Value) -> Result<(), String> {
        if value.element() != self.element || value.elements() != self.elements() {
            return Err(format!(
                "the result is {}{:?}, and the output {}{:?}",
                value.element().name(),
                value.shape(),
                self.element.name(),
                self.shape
            ));
        }
        // SAFETY: the caller promises it.
        unsafe { self.scatter(first, &value.to_bytes()) };
        Ok(())
    }
}

fn tensor(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Tensor {
    Tensor::from_bytes(TensorType::new(dtype, shape), bytes)
        .unwrap_or_else(|bytes| unreachable!("{bytes} bytes are those of {dtype}{shape:?}"))
}

/// A tensor of `f64`.
pub(crate) fn doubles(shape: &[usize], values: &[f64]) -> Tensor {
    tensor(DType::F64, shape, values.iter().flat_map(|value| value.to_ne_bytes()).collect())
}

impl Value {
    fn of_bytes(element: ElementType, shape: &[usize], bytes: Vec<u8>) -> Self {
        let parts = |size: usize, number: &dyn Fn(&[u8]) -> f64| {
            let part = |half: usize| {
                let values: Vec<f64> =
                    bytes.chunks_exact(2 * size).map(|pair| number(&pair[half * size..])).collect();
                doubles(shape, &values)
            };
            [part(0), part(1)]
        };
        match element {
            ElementType::Real(dtype) => Self::Real(tensor(dtype, shape, bytes)),
            ElementType::Complex64 => Self::Complex(Complex {
                parts: parts(4, &|bytes| {
                    bytes.first_chunk().map_or(0.0, |bytes| f64::from(f32::from_ne_bytes(*bytes)))
                }),
                is_single: true,
            }),
            ElementType::Complex128 => Self::Complex(Complex {
                parts: parts(8, &|bytes| {
                    bytes.first_chunk().map_or(0.0, |bytes| f64::from_ne_bytes(*bytes))
                }),
                is_single: false,
            }),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Real(tensor) => tensor.bytes().to_vec(),
            Self::Complex(complex) => {
                let [re, im] = complex.parts.each_ref().map(Tensor::to_doubles);
                let pairs = re.into_iter().zip(im).flat_map(|(re, im)| [re, im]);
                if complex.is_single {
                    #[expect(clippy::cast_possible_truncation, reason = "rounded to the type")]
                    return pairs.flat_map(|part| (part as f32).to_ne_bytes()).collect();
                }
                pairs.flat_map(f64::to_ne_bytes).collect()
            }
        }
    }

    pub(crate) fn element(&self) -> ElementType {
        match self {
            Self::Real(tensor) => ElementType::Real(tensor.dtype()),
            Self::Complex(Complex { is_single: true, .. }) => ElementType::Complex64,
            Self::Complex(_) => ElementType::Complex128,
        }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            Self::Real(tensor) => tensor.shape(),
            Self::Complex(complex) => complex.parts[0].shape(),
        }
    }

    pub(crate) fn elements(&self) -> usize {
        pto_operators::elements(self.shape())
    }

    /// The real elements, or the real parts.
    pub(crate) fn doubles(&self) -> Vec<f64> {
        match self {
            Self::Real(tensor) => tensor.to_doubles(),
            Self::Complex(complex) => complex.parts[0].to_doubles(),
        }
    }

    /// Real and imaginary parts.
    pub(crate) fn pairs(&self) -> Vec<[f64; 2]> {
        match self {
            Self::Real(tensor) => tensor.to_doubles().into_iter().map(|re| [re, 0.0]).collect(),
            Self::Complex(complex) => {
                let [re, im] = complex.parts.each_ref().map(Tensor::to_doubles);
                re.into_iter().zip(im).map(|(re, im)| [re, im]).collect()
            }
        }
    }

    /// The elements as integers; floats are cut off.
    pub(crate) fn integers(&self) -> Vec<i64> {
        let wide = self.cast(crate::element::I64);
        match &wide {
            Self::Real(tensor) => tensor.to_elements().unwrap_or_default(),
            Self::Complex(_) => Vec::new(),
        }
    }

    /// A complex tensor.
    pub(crate) fn of_pairs(shape: &[usize], pairs: &[[f64; 2]], is_single: bool) -> Self {
        let round = |x: f64| {
            #[expect(clippy::cast_possible_truncation, reason = "rounded to the type")]
            if is_single { f64::from(x as f32) } else { x }
        };
        let part = |at: usize| {
            doubles(shape, &pairs.iter().map(|pair| round(pair[at])).collect::<Vec<_>>())
        };
        Self::Complex(Complex { parts: [part(0), part(1)], is_single })
    }

    /// A tensor of these numbers, rounded to the type as a cast does.
    pub(crate) fn of_doubles(element: ElementType, shape: &[usize], values: &[f64]) -> Self {
        Self::Real(doubles(shape, values)).cast(element)
    }

    /// A tensor of `i64`.
    pub(crate) fn of_integers(shape: &[usize], values: &[i64]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        Self::Real(tensor(DType::I64, shape, bytes))
    }

    /// The elements as another type. Of complex numbers the real part stays; everything but 0 is true.
    pub(crate) fn cast(&self, element: ElementType) -> Self {
        if self.element() == element {
            return self.clone();
        }
        match (self, element) {
            (Self::Real(tensor), ElementType::Real(to)) => Self::Real(
                evaluate(&Operator::Cast { to }, &[tensor]).unwrap_or_else(|_| tensor.clone()),
            ),
            (Self::Complex(_), ElementType::Real(DType::Bool)) => {
                let truths: Vec<f64> = self
                    .pairs()
                    .iter()
                    .map(|pair| f64::from(u8::from(*pair != [0.0, 0.0])))
                    .collect();
                Self::of_doubles(element, self.shape(), &truths)
            }
            (Self::Complex(complex), ElementType::Real(_)) => {
                Self::Real(complex.parts[0].clone()).cast(element)
            }
            _ => Self::of_pairs(self.shape(), &self.pairs(), element == ElementType::Complex64),
        }
    }
}

/// The first result of an operator.
pub(crate) fn evaluate(operator: &Operator, inputs: &[&Tensor]) -> Result<Tensor, String> {
    let given: Vec<_> = inputs.iter().map(|tensor| Some(*tensor)).collect();
    let mut results = operator.evaluate(&given).map_err(|error| error.to_string())?;
    Ok(results.swap_remove(0))
}

/// What an operator gives of these values.
pub(crate) fn apply(operator: &Operator, inputs: &[&Value]) -> Result<Vec<Value>, String> {
    let real: Option<Vec<Option<&Tensor>>> = inputs
        .iter()
        .map(|value| match value {
            Value::Real(tensor) => Some(Some(tensor)),
            Value::Complex(_) => None,
        })
        .collect();
    if let Some(real) = real {
        let results = operator.evaluate(&real).map_err(|error| error.to_string())?;
        return Ok(results.into_iter().map(Value::Real).collect());
    }
    complex(operator, inputs).map(|value| vec![value])
}

/// Whether an operator is defined for complex numbers.
pub(crate) fn takes_complex(operator: &Operator) -> bool {
    is_linear(operator)
        || matches!(
            operator,
            Operator::Unary(
                Unary::Identity
                    | Unary::Abs
                    | Unary::Neg
                    | Unary::Sign
                    | Unary::Sqrt
                    | Unary::Reciprocal
                    | Unary::Round
                    | Unary::Square
                    | Unary::Exp
                    | Unary::Log
                    | Unary::Log2
                    | Unary::Log10
                    | Unary::Sin
                    | Unary::Cos
                    | Unary::Tan
                    | Unary::Sinh
                    | Unary::Cosh
                    | Unary::Tanh
                    | Unary::IsNaN
            ) | Operator::Binary(
                Binary::Add
                    | Binary::Sub
                    | Binary::Mul
                    | Binary::Div
                    | Binary::Pow
                    | Binary::Equal
                    | Binary::NotEqual
            ) | Operator::MatMul { epilogue: pto_operators::Epilogue::None }
                | Operator::CumProd { .. }
                | Operator::Reduce { reduction: Reduction::Prod, .. }
        )
}

/// Whether real and imaginary parts are computed apart.
fn is_linear(operator: &Operator) -> bool {
    matches!(
        operator,
        Operator::Reduce { reduction: Reduction::Sum | Reduction::Mean, .. }
            | Operator::CumSum { .. }
            | Operator::Reshape { .. }
            | Operator::Flatten { .. }
            | Operator::Transpose { .. }
            | Operator::Slice { .. }
            | Operator::Concat { .. }
            | Operator::Expand { .. }
            | Operator::Fill { .. }
            | Operator::Tile { .. }
            | Operator::Gather { .. }
            | Operator::GatherElements { .. }
            | Operator::GatherNd { .. }
            | Operator::ScatterNd {
                reduction: pto_operators::ScatterReduction::None
                    | pto_operators::ScatterReduction::Add
            }
            | Operator::ScatterElements {
                reduction: pto_operators::ScatterReduction::None
                    | pto_operators::ScatterReduction::Add,
                ..
            }
            | Operator::Trilu { .. }
            | Operator::Where
    )
}

fn complex(operator: &Operator, inputs: &[&Value]) -> Result<Value, String> {
    let is_single = !inputs.iter().any(|value| value.element() == ElementType::Complex128);
    if is_linear(operator) {
        let part = |at: usize| {
            let planes: Vec<&Tensor> = inputs
                .iter()
                .map(|value| match value {
                    Value::Real(tensor) => tensor,
                    Value::Complex(complex) => &complex.parts[at],
                })
                .collect();
            evaluate(operator, &planes)
        };
        return Ok(Value::Complex(Complex { parts: [part(0)?, part(1)?], is_single }));
    }
    let x = inputs.first().ok_or("the operator has no operand")?;
    let unary = |function: fn([f64; 2]) -> [f64; 2]| {
        let pairs: Vec<_> = x.pairs().into_iter().map(function).collect();
        Ok(Value::of_pairs(x.shape(), &pairs, is_single))
    };
    let to_real = |function: fn([f64; 2]) -> f64, element: ElementType| {
        let values: Vec<_> = x.pairs().into_iter().map(function).collect();
        Ok(Value::of_doubles(element, x.shape(), &values))
    };
    match operator {
        Operator::Unary(Unary::Abs) => to_real(|[re, im]| re.hypot(im), x.element().part()),
        Operator::Unary(Unary::IsNaN) => to_real(
            |[re, im]| f64::from(u8::from(re.is_nan() || im.is_nan())),
            crate::element::BOOL,
        ),
        Operator::Unary(function) => unary(match function {
            Unary::Identity => |z| z,
            Unary::Neg => |[re, im]| [-re, -im],
            Unary::Sign => |z| {
                let length = z[0].hypot(z[1]);
                if length == 0.0 { [0.0, 0.0] } else { [z[0] / length, z[1] / length] }
            },
            Unary::Sqrt => square_root,
            Unary::Reciprocal => |z| divide([1.0, 0.0], z),
            Unary::Round => |z| z.map(f64::round_ties_even),
            Unary::Square => |z| multiply(z, z),
            Unary::Exp => exponential,
            Unary::Log => logarithm,
            Unary::Log2 => |z| logarithm(z).map(|part| part / std::f64::consts::LN_2),
            Unary::Log10 => |z| logarithm(z).map(|part| part / std::f64::consts::LN_10),
            Unary::Sin => |[re, im]| [re.sin() * im.cosh(), re.cos() * im.sinh()],
            Unary::Cos => |[re, im]| [re.cos() * im.cosh(), -re.sin() * im.sinh()],
            Unary::Tan => |[re, im]| {
                let [a, b] = hyperbolic_tangent([-im, re]);
                [b, -a]
            },
            Unary::Sinh => |[re, im]| [re.sinh() * im.cos(), re.cosh() * im.sin()],
            Unary::Cosh => |[re, im]| [re.cosh() * im.cos(), re.sinh() * im.sin()],
            Unary::Tanh => hyperbolic_tangent,
            _ => return Err(format!("{} is not defined for complex numbers", operator.name())),
        }),
        Operator::Binary(binary) => {
            let y = inputs.get(1).ok_or("the operator has one operand")?;
            let shape = broadcast(x.shape(), y.shape()).ok_or("the operands do not broadcast")?;
            let pairs = expanded(x, &shape)?.into_iter().zip(expanded(y, &shape)?);
            let function: fn([f64; 2], [f64; 2]) -> [f64; 2] = match binary {
                Binary::Add => |a, b| [a[0] + b[0], a[1] + b[1]],
                Binary::Sub => |a, b| [a[0] - b[0], a[1] - b[1]],
                Binary::Mul => multiply,
                Binary::Div => divide,
                Binary::Pow => power,
                Binary::Equal | Binary::NotEqual => {
                    let wanted = matches!(binary, Binary::Equal);
                    let truths: Vec<f64> =
                        pairs.map(|(a, b)| f64::from(u8::from((a == b) == wanted))).collect();
                    return Ok(Value::of_doubles(crate::element::BOOL, &shape, &truths));
                }
                _ => return Err(format!("{} is not defined for complex numbers", operator.name())),
            };
            let pairs: Vec<_> = pairs.map(|(a, b)| function(a, b)).collect();
            Ok(Value::of_pairs(&shape, &pairs, is_single))
        }
        Operator::MatMul { .. } => {
            let y = inputs.get(1).ok_or("the operator has one operand")?;
            let [a, b] = [x, y].map(|value| planes(value));
            let product = |left: &Tensor, right: &Tensor| evaluate(operator, &[left, right]);
            let combine = |function: Binary, left: &Tensor, right: &Tensor| {
                evaluate(&Operator::Binary(function), &[left, right])
            };
            let re = combine(Binary::Sub, &product(&a[0], &b[0])?, &product(&a[1], &b[1])?)?;
            let im = combine(Binary::Add, &product(&a[0], &b[1])?, &product(&a[1], &b[0])?)?;
            Ok(Value::Complex(Complex { parts: [re, im], is_single }))
        }
        Operator::Reduce { axes, keep_dims, .. } => {
            let rank = x.shape().len();
            let axes: Vec<usize> = axes.as_ref().map_or_else(
                || (0..rank).collect(),
                |axes| axes.iter().map(|axis| axis_of(*axis, rank)).collect(),
            );
            let shape: Vec<usize> = x
                .shape()
                .iter()
                .enumerate()
                .map(|(at, extent)| if axes.contains(&at) { 1 } else { *extent })
                .collect();
            let mut products = vec![[1.0, 0.0]; pto_operators::elements(&shape)];
            for (position, pair) in x.pairs().into_iter().enumerate() {
                let (mut rest, mut to, mut stride) = (position, 0, 1);
                for (at, extent) in x.shape().iter().enumerate().rev() {
                    if !axes.contains(&at) {
                        to += rest % extent * stride;
                        stride *= extent;
                    }
                    rest /= extent;
                }
                products[to] = multiply(products[to], pair);
            }
            let kept: Vec<usize> = if *keep_dims {
                shape
            } else {
                x.shape()
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| !axes.contains(at))
                    .map(|(_, extent)| *extent)
                    .collect()
            };
            Ok(Value::of_pairs(&kept, &products, is_single))
        }
        Operator::CumProd { axis, .. } => {
            let axis = axis_of(*axis, x.shape().len());
            let inner: usize = x.shape()[axis + 1..].iter().product();
            let extent = x.shape()[axis];
            let mut pairs = x.pairs();
            for at in 0..pairs.len() {
                if !(at / inner).is_multiple_of(extent) {
                    pairs[at] = multiply(pairs[at - inner], pairs[at]);
                }
            }
            Ok(Value::of_pairs(x.shape(), &pairs, is_single))
        }
        _ => Err(format!("{} is not defined for complex numbers", operator.name())),
    }
}

fn axis_of(axis: i64, rank: usize) -> usize {
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    usize::try_from(if axis < 0 { axis + rank } else { axis }).unwrap_or(0)
}

/// Real and imaginary parts as tensors.
fn planes(value: &Value) -> [Tensor; 2] {
    match value {
        Value::Complex(complex) => complex.parts.clone(),
        Value::Real(_) => {
            let re = value.doubles();
            [doubles(value.shape(), &re), doubles(value.shape(), &vec![0.0; re.len()])]
        }
    }
}

fn expanded(value: &Value, shape: &[usize]) -> Result<Vec<[f64; 2]>, String> {
    if value.shape() == shape {
        return Ok(value.pairs());
    }
    let shape = shape.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
    let expand = Operator::Expand { shape };
    let [re, im] = planes(value);
    let [re, im] =
        [evaluate(&expand, &[&re])?, evaluate(&expand, &[&im])?].map(|part| part.to_doubles());
    Ok(re.into_iter().zip(im).map(|(re, im)| [re, im]).collect())
}

fn multiply(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// By Smith's algorithm, which does not overflow where the result does not.
fn divide(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    if b[0].abs() >= b[1].abs() {
        if b[0] == 0.0 && b[1] == 0.0 {
            return [a[0] / b[0].abs(), a[1] / b[0].abs()];
        }
        let ratio = b[1] / b[0];
        let scale = 1.0 / (b[0] + b[1] * ratio);
        [(a[0] + a[1] * ratio) * scale, (a[1] - a[0] * ratio) * scale]
    } else {
        let ratio = b[0] / b[1];
        let scale = 1.0 / (b[0] * ratio + b[1]);
        [(a[0] * ratio + a[1]) * scale, (a[1] * ratio - a[0]) * scale]
    }
}

fn exponential([re, im]: [f64; 2]) -> [f64; 2] {
    let scale = re.exp();
    if im == 0.0 { [scale, im] } else { [scale * im.cos(), scale * im.sin()] }
}

fn logarithm([re, im]: [f64; 2]) -> [f64; 2] {
    [re.hypot(im).ln(), im.atan2(re)]
}

fn square_root([re, im]: [f64; 2]) -> [f64; 2] {
    let length = re.hypot(im);
    if length == 0.0 {
        return [0.0, im];
    }
    let root = ((length + re.abs()) / 2.0).sqrt();
    if re >= 0.0 { [root, im / (2.0 * root)] } else { [im.abs() / (2.0 * root), root.copysign(im)] }
}

fn hyperbolic_tangent([re, im]: [f64; 2]) -> [f64; 2] {
    if re.abs() > 20.0 {
        return [1.0_f64.copysign(re), 4.0 * im.sin() * im.cos() * (-2.0 * re.abs()).exp()];
    }
    divide(
        [re.sinh() * im.cos(), re.cosh() * im.sin()],
        [re.cosh() * im.cos(), re.sinh() * im.sin()],
    )
}

fn power(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    if b == [0.0, 0.0] {
        return [1.0, 0.0];
    }
    if a == [0.0, 0.0] {
        return if b[0] > 0.0 && b[1] == 0.0 { [0.0, 0.0] } else { [f64::NAN, f64::NAN] };
    }
    #[expect(clippy::cast_possible_truncation, reason = "a small whole number")]
    if b[1] == 0.0 && b[0].fract() == 0.0 && b[0].abs() <= 64.0 {
        let mut result = [1.0, 0.0];
        for _ in 0..b[0].abs() as i32 {
            result = multiply(result, a);
        }
        return if b[0] < 0.0 { divide([1.0, 0.0], result) } else { result };
    }
    exponential(multiply(b, logarithm(a)))
}
