//! What units of an operator take on a core of the device.
//!
//! The numbers are those of [`pto_aicore_kernels::cost`], from which library kernels and tile kernels have theirs: one transfer in, the
//! computation, one transfer out, one after the other. An operator is the vector instructions that each element takes, or products of the matrix unit.

use pto_abi::CoreKind;
use pto_aicore_kernels::cost::{
    self, GM_TO_L1, GM_TO_UB, L0C_TO_GM, UB_TO_GM, V_ADD, V_ADDS, V_CADD, V_CGMAX, V_CONV, V_COPY,
    V_DIV, V_EXP, V_MAX, V_MUL, V_MULS, V_SEL, V_SQRT, V_SUB, Vector, large_product,
    transfer_bytes, vector_bytes,
};
use pto_aicore_kernels::tile::Unary as OnTiles;

use super::conv::Conv;
use super::line::AxisLayout;
use super::matmul::Batch;
use super::split::WorkSplit;
use crate::infer::{self, Input, OperatorCheck};
use crate::operator::{
    Activation, Binary, Epilogue, Function, Interpolation, Nary, Operator, Pooling, Reduction,
    Unary,
};
use crate::tensor::TensorType;

/// What a task takes on a core, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCost {
    /// Between global memory and the core.
    pub transfer_ps: u64,
    /// On the core.
    pub compute_ps: u64,
}

impl TaskCost {
    /// Nanoseconds of both, one after the other.
    #[must_use]
    pub const fn ns(self) -> u64 {
        self.transfer_ps.saturating_add(self.compute_ps).div_ceil(1_000)
    }

    pub(crate) const fn sum(self, other: Self) -> Self {
        Self {
            transfer_ps: self.transfer_ps.saturating_add(other.transfer_ps),
            compute_ps: self.compute_ps.saturating_add(other.compute_ps),
        }
    }
}

/// The vector unit has no narrower elements than these.
const LEAST_BYTES: u64 = 2;
/// Bytes that a transfer moves at least: of a scattered element as many.
const BURST: u64 = 32;

/// An operator whose costs are asked for.
pub(crate) struct CostModel<'o> {
    pub(crate) operator: &'o Operator,
    pub(crate) inputs: &'o [Option<&'o TensorType>],
    pub(crate) outputs: &'o [TensorType],
    pub(crate) work: &'o WorkSplit,
}

/// Larger tensors and extents do not fit the memory of a device: they cost as much as these, so that no sum overflows.
const MOST_BYTES: u64 = 1 << 44;
const MOST_EXTENT: u64 = 1 << 24;
const MOST_PRODUCTS: u64 = 1 << 50;
const MOST_OPERAND: u64 = 1 << 34;

/// Picoseconds of a transfer.
const fn moved(bytes: u64, megabytes_per_s: u64) -> u64 {
    transfer_bytes(if bytes < MOST_BYTES { bytes } else { MOST_BYTES }, megabytes_per_s)
}

/// Picoseconds of an instruction over so many bytes.
const fn vector(of: &Vector, bytes: u64) -> u64 {
    vector_bytes(of, if bytes < MOST_BYTES { bytes } else { MOST_BYTES })
}

/// Bytes of a matrix.
const fn matrix(rows: u64, cols: u64, bytes: u64) -> u64 {
    rows.saturating_mul(cols).saturating_mul(bytes)
}

/// A part of an operator: units (first, count) of so many.
#[derive(Clone, Copy)]
struct Share {
    units: (usize, usize),
    of: usize,
}

impl Share {
    /// This share of so many, rounded up.
    fn part(self, all: u64) -> u64 {
        let part = u128::from(all) * self.units.1 as u128;
        u64::try_from(part.div_ceil(self.of.max(1) as u128)).unwrap_or(u64::MAX)
    }

    /// How the share is spread over groups: so many of them, and the share of each.
    fn of_groups(self, groups: u64) -> (u64, Self) {
        let groups = usize::try_from(groups).unwrap_or(usize::MAX).max(1);
        let of = self.of.div_ceil(groups).max(1);
        let times = self.units.1.div_ceil(of).clamp(1, groups);
        (times as u64, Self { units: (0, self.units.1.div_ceil(times)), of })
    }
}

/// Products of the matrix unit, all of the same extents.
struct Products {
    extents: [u64; 3],
    /// Bytes of both sides in global memory.
    operands: [u64; 2],
    times: u64,
    /// Bytes of an element.
    bytes: u64,
}

impl CostModel<'_> {
    /// What units (first, count) take on a core of the kind that runs them.
    pub(crate) fn task(&self, units: (usize, usize)) -> TaskCost {
        self.on(self.work.kind, units)
    }

    /// What all units take on a core of the other kind; `None`: only vector cores can do this.
    pub(crate) fn elsewhere(&self) -> Option<(CoreKind, TaskCost)> {
        let all = (0, self.work.units);
        self.products(Share { units: all, of: all.1 })?;
        let kind = if self.work.kind == CoreKind::AIC { CoreKind::AIV } else { CoreKind::AIC };
        Some((kind, self.on(kind, all)))
    }

    /// The kind of core on which all units take less time.
    pub(crate) fn kind(&self) -> CoreKind {
        let all = (0, self.work.units);
        if self.products(Share { units: all, of: all.1 }).is_none() {
            return CoreKind::AIV;
        }
        let [cube, vector] = [CoreKind::AIC, CoreKind::AIV].map(|kind| self.on(kind, all).ns());
        if vector < cube { CoreKind::AIV } else { CoreKind::AIC }
    }

    fn on(&self, kind: CoreKind, units: (usize, usize)) -> TaskCost {
        if units.1 == 0 {
            return TaskCost::default();
        }
        let share = Share { units, of: self.work.units };
        let written = self.outputs.iter().map(|ty| share.part(ty.bytes() as u64));
        let written = written.fold(0, u64::saturating_add);
        let elements = share.part(self.outputs.first().map_or(0, |ty| ty.elements() as u64));
        let bytes = elements.saturating_mul(self.element_bytes());
        match self.products(share) {
            Some(products) => {
                let Products { extents, operands: [a, b], times, bytes: size } = products;
                let [m, k, n] = extents.map(|extent| extent.min(MOST_EXTENT));
                let extents = [m.min(MOST_PRODUCTS / (k * n).max(1)).max(1), k, n];
                let behind = self.epilogue().map_or(0, |epilogue| after_product(epilogue, bytes))
                    + self.beside_products(share);
                let rest = self.addend_bytes(share);
                if kind == CoreKind::AIC {
                    let operands = [a, b].map(|bytes| bytes.min(MOST_OPERAND));
                    let [read, on_core] = large_product(extents, size, operands);
                    return TaskCost {
                        transfer_ps: read.saturating_mul(times)
                            + moved(rest, GM_TO_L1)
                            + moved(written, L0C_TO_GM),
                        compute_ps: on_core.saturating_mul(times).saturating_add(behind),
                    };
                }
                TaskCost {
                    transfer_ps: moved(
                        a.saturating_add(b).saturating_mul(times).saturating_add(rest),
                        GM_TO_UB,
                    ) + moved(written, UB_TO_GM),
                    // A multiply-add for each product.
                    compute_ps: times
                        .saturating_mul(vector(
                            &V_MUL,
                            matrix(extents[0], extents[1], extents[2] * size),
                        ))
                        .saturating_add(behind),
                }
            }
            None => TaskCost {
                transfer_ps: moved(self.read(share), GM_TO_UB) + moved(written, UB_TO_GM),
                compute_ps: self.instructions(share, bytes),
            },
        }
    }

    fn input(&self, at: usize) -> Option<&TensorType> {
        self.inputs.get(at).copied().flatten()
    }

    fn output(&self) -> &TensorType {
        &self.outputs[0]
    }

    /// Bytes of an element in the vector unit.
    fn element_bytes(&self) -> u64 {
        (self.output().dtype.bytes() as u64).max(LEAST_BYTES)
    }

    const fn epilogue(&self) -> Option<&Epilogue> {
        match self.operator {
            Operator::MatMul { epilogue }
            | Operator::Gemm { epilogue, .. }
            | Operator::Conv { epilogue, .. }
            | Operator::ConvTranspose { epilogue, .. } => Some(epilogue),
            _ => None,
        }
    }

    /// Bytes of the addend of a product, or of the mask of an attention.
    fn addend_bytes(&self, share: Share) -> u64 {
        let at = if matches!(self.operator, Operator::Attention { .. }) { 3 } else { 2 };
        self.input(at).map_or(0, |ty| {
            let all = ty.bytes() as u64;
            if ty.elements() == self.output().elements() { share.part(all) } else { all }
        })
    }

    fn convolution(&self) -> Option<Conv> {
        let x = self.input(0)?;
        let given: Vec<_> =
            self.inputs.iter().map(|ty| ty.map(|ty| Input { ty, constant: None })).collect();
        let (name, names) = (self.operator.name(), self.operator.signature().0);
        let check = OperatorCheck { operator: name, names, inputs: &given };
        let (geometry, groups) = match self.operator {
            Operator::Conv { window, groups, .. } => {
                (infer::conv(&check, window, *groups).ok()?, *groups)
            }
            Operator::ConvTranspose { window, groups, output_padding, output_shape, .. } => {
                let output = (output_padding.as_slice(), output_shape.as_slice());
                (infer::conv_transpose(&check, window, *groups, output).ok()?, *groups)
            }
            _ => return None,
        };
        Some(Conv::of(&geometry, groups, x.shape[0], [x.shape[1], self.output().shape[1]]))
    }

    /// The products that the share is; `None`: the operator has none for the matrix unit.
    fn products(&self, share: Share) -> Option<Products> {
        let x = self.input(0)?;
        let bytes = x.dtype.bytes() as u64;
        match self.operator {
            Operator::MatMul { .. } => {
                Some(of_batch(&Batch::of_matmul(&x.shape, &self.input(1)?.shape), share, bytes))
            }
            Operator::Gemm { .. } => {
                let (batch, _) = Batch::of_gemm(self.operator, x, &self.output().shape)?;
                Some(of_batch(&batch, share, bytes))
            }
            Operator::Conv { .. } => {
                let conv = self.convolution().filter(|conv| !conv.is_depthwise())?;
                let groups = (conv.groups * conv.images) as u64;
                let [_, out] = conv.channels.map(|channels| channels as u64);
                let (times, rest) = share.of_groups(groups);
                let blocks = conv.channel_blocks();
                // Blocks of channels are the inner units.
                let (rows, n) = if share.units.1 < blocks {
                    (conv.pixel_block() as u64, out.div_ceil(blocks as u64) * share.units.1 as u64)
                } else {
                    (rest.part(conv.pixels() as u64), out)
                };
                let (m, k) = (rows.min(conv.pixels() as u64), conv.depth() as u64);
                let image = (x.elements() as u64).checked_div(groups)?;
                let part = (image as u128 * u128::from(m)).div_ceil(conv.pixels().max(1) as u128);
                let part = u64::try_from(part).unwrap_or(u64::MAX);
                let image = part.saturating_add(conv.halo() as u64).min(image);
                Some(Products {
                    extents: [m, k, n],
                    operands: [image.saturating_mul(bytes), matrix(k, n, bytes)],
                    times,
                    bytes,
                })
            }
            Operator::ConvTranspose { .. } => {
                let conv = self.convolution()?;
                let groups = (conv.groups * conv.images) as u64;
                let [k, out] = conv.channels.map(|channels| channels as u64);
                let (times, rest) = share.of_groups(groups);
                let n = rest.part(out) * (conv.depth() as u64 / k.max(1));
                let m = conv.input.iter().product::<usize>() as u64;
                Some(Products {
                    extents: [m, k, n],
                    operands: [matrix(m, k, bytes), matrix(k, n, bytes)],
                    times,
                    bytes,
                })
            }
            Operator::Attention { .. } => {
                let (keys, [depth, width]) = self.attention()?;
                let queries = x.shape[x.rank().checked_sub(2)?] as u64;
                let rows = share.units.1 as u64;
                let heads = rows.div_ceil(queries.max(1)).max(1);
                let m = rows.div_ceil(heads);
                // Scores and sums of values: two products, in one of both depths.
                Some(Products {
                    extents: [m, depth + width, keys],
                    operands: [matrix(m, depth, bytes), matrix(keys, depth + width, bytes)],
                    times: heads,
                    bytes,
                })
            }
            _ => None,
        }
    }

    /// The number of keys; extents of a key and of a value.
    fn attention(&self) -> Option<(u64, [u64; 2])> {
        let (k, v) = (self.input(1)?, self.input(2)?);
        let [keys, depth] = k.shape.last_chunk::<2>()?.map(|extent| extent as u64);
        Some((keys, [depth, *v.shape.last()? as u64]))
    }

    /// Vector instructions that stand between products: the softmax of an attention.
    fn beside_products(&self, share: Share) -> u64 {
        match (self.operator, self.attention()) {
            (Operator::Attention { .. }, Some((keys, _))) => {
                let bytes = matrix(share.units.1 as u64, keys, self.element_bytes());
                all(SOFTMAX, bytes) + vector(&V_MULS, bytes)
            }
            _ => 0,
        }
    }

    /// Bytes that a vector core reads.
    fn read(&self, share: Share) -> u64 {
        let written = self.outputs.iter().map(|ty| ty.elements() as u64);
        let elements = share.part(written.fold(0, u64::saturating_add));
        // In elements.
        let of = |(at, ty): (usize, &TensorType)| {
            let (all, size) = (ty.elements() as u64, ty.dtype.bytes() as u64);
            let reach = self.work.inputs.get(at).filter(|reach| reach.units > 0);
            if let Some(reach) = reach {
                let (from, to) = reach.of(share.units, ty.elements());
                return (to - from) as u64;
            }
            match self.operator {
                // Whole slices, each of which begins a transfer.
                Operator::Gather { .. } | Operator::GatherNd { .. } if at == 0 => {
                    let units = share.units.1 as u64;
                    let slice = elements.checked_div(units).unwrap_or(0).saturating_mul(size);
                    slice.div_ceil(BURST).saturating_mul(BURST / size).saturating_mul(units)
                }
                Operator::GatherElements { .. } if at == 0 => elements.saturating_mul(BURST / size),
                Operator::Gather { .. } | Operator::GatherNd { .. } => share.part(all),
                Operator::ScatterElements { .. } if at == 2 => all.saturating_mul(2 * BURST / size),
                Operator::Concat { .. }
                | Operator::Resize(_)
                | Operator::Pool { .. }
                | Operator::Reduce { .. }
                | Operator::GlobalPool { .. } => share.part(all),
                Operator::Conv { .. } if at == 1 => share.part(all),
                Operator::NonZero | Operator::Compress { .. } => all,
                // Broadcast, or a part of it.
                _ if at == 0 || self.is_elementwise() => all.min(elements),
                _ => all,
            }
        };
        let inputs = self.inputs.iter().enumerate();
        let given = inputs.filter_map(|(at, ty)| Some((at, (*ty)?)));
        let bytes = given.map(|(at, ty)| of((at, ty)).saturating_mul(ty.dtype.bytes() as u64));
        bytes.fold(0, u64::saturating_add)
    }

    fn is_elementwise(&self) -> bool {
        matches!(self.operator, Operator::Fused { .. }) || self.operator.function().is_some()
    }

    /// What the vector unit does: `bytes` of the output.
    fn instructions(&self, share: Share, bytes: u64) -> u64 {
        let elements_in = share.part(self.input(0).map_or(0, |x| x.elements() as u64));
        let bytes_in = elements_in.saturating_mul(self.element_bytes());
        let line = |axis: i64| {
            let x = self.input(0);
            let rank = x.map_or(0, TensorType::rank);
            let axis = if axis < 0 { axis + rank.cast_signed() as i64 } else { axis };
            let axis = usize::try_from(axis).unwrap_or(0);
            x.map_or(1, |x| AxisLayout::of(&x.shape, axis).extent as u64)
        };
        // Passes of a sort: five for each 32, and one for each doubling of a run.
        let passes = |extent: u64| 5 + u64::from((extent / 32).max(1).ilog2());
        match self.operator {
            Operator::Fused { steps } => {
                steps.iter().map(|step| function(&step.function, bytes)).sum()
            }
            Operator::Reduce { reduction, axes, .. } => {
                let rank = self.input(0).map_or(0, TensorType::rank);
                let is_last = axes.as_ref().is_none_or(|axes| {
                    axes.iter().any(|axis| *axis == -1 || usize::try_from(*axis) == Ok(rank - 1))
                });
                reduced(*reduction, is_last, [bytes_in, bytes])
            }
            Operator::GlobalPool { pooling } => match pooling {
                Pooling::Max { .. } => vector(&V_CGMAX, bytes_in),
                Pooling::Average { .. } => all(&[&V_CADD], bytes_in) + all(&[&V_MULS], bytes),
                Pooling::Lp { .. } => all(&[&V_MUL, &V_CADD], bytes_in) + vector(&V_SQRT, bytes),
            },
            Operator::Pool { pooling, window, .. } => {
                let taps = window.kernel.iter().product::<usize>().max(1) as u64;
                let tap: &[&Vector] = match pooling {
                    Pooling::Max { .. } => &[&V_MAX],
                    Pooling::Average { .. } => &[&V_ADD],
                    Pooling::Lp { .. } => &[&V_MUL, &V_ADD],
                };
                taps.saturating_mul(all(tap, bytes)).saturating_add(vector(&V_MULS, bytes))
            }
            // A depthwise one: the others are products.
            Operator::Conv { epilogue, .. } => {
                let taps = self.convolution().map_or(1, |conv| conv.depth() as u64);
                let rest = vector(&V_ADDS, bytes) + after_product(epilogue, bytes);
                taps.saturating_mul(vector(&V_MUL, bytes)).saturating_add(rest)
            }
            Operator::Softmax { .. } => all(SOFTMAX, bytes),
            Operator::LogSoftmax { .. } => {
                all(&[&V_CGMAX, &V_SUB, &V_EXP, &V_CADD, &V_EXP, &V_SUB], bytes)
            }
            Operator::Hardmax { .. } | Operator::ArgReduce { .. } => {
                all(&[&V_CGMAX, &V_SEL], bytes_in)
            }
            Operator::CumSum { axis, .. } | Operator::CumProd { axis, .. } => {
                let steps = u64::from(line(*axis).max(2).next_power_of_two().ilog2());
                steps * vector(&V_MUL, bytes)
            }
            Operator::TopK { axis, .. } | Operator::Sort { axis, .. } => {
                passes(line(*axis)) * vector(&V_MAX, bytes_in.saturating_mul(2))
            }
            Operator::Resize(resize) => match resize.interpolation {
                Interpolation::Nearest(_) => vector(&V_COPY, bytes),
                // Along each of two dimensions, so many neighbours.
                Interpolation::Linear => 4 * vector(&V_MUL, bytes),
                Interpolation::Cubic { .. } => 8 * vector(&V_MUL, bytes),
            },
            Operator::BatchNormalization { .. } => all(&[&V_MULS, &V_ADDS], bytes),
            Operator::LayerNormalization { .. }
            | Operator::InstanceNormalization { .. }
            | Operator::GroupNormalization { .. }
            | Operator::MeanVarianceNormalization { .. } => {
                all(&[&V_CADD, &V_SUB, &V_MUL, &V_CADD, &V_MULS, &V_MUL, &V_ADD], bytes)
            }
            Operator::RmsNormalization { .. } | Operator::LpNormalization { .. } => {
                all(&[&V_MUL, &V_CADD, &V_MULS, &V_MUL], bytes)
            }
            Operator::Lrn { size, .. } => {
                (*size as u64).saturating_mul(vector(&V_MUL, bytes)).min(MOST_BYTES)
                    + all(&[&V_EXP, &V_MUL, &V_EXP, &V_DIV], bytes)
            }
            // Ten rounds, each two products and two exclusive ors of 32 bits.
            Operator::RandomUniform { .. } => 10 * all(&[&V_MUL, &V_ADD], bytes),
            Operator::RandomNormal { .. } => {
                10 * all(&[&V_MUL, &V_ADD], bytes)
                    + all(&[&V_EXP, &V_SQRT], bytes)
                    + cost::unary(OnTiles::Sin, bytes)
            }
            _ => match self.operator.function() {
                Some(of) => function(&of, bytes),
                None => vector(&V_COPY, bytes),
            },
        }
    }
}

const SOFTMAX: &[&Vector] = &[&V_CGMAX, &V_SUB, &V_EXP, &V_CADD, &V_DIV];

fn all(instructions: &[&Vector], bytes: u64) -> u64 {
    instructions.iter().map(|of| vector(of, bytes)).sum()
}

/// What units of a batch of products multiply.
fn of_batch(batch: &Batch, share: Share, bytes: u64) -> Products {
    let outer = batch.outer.iter().product::<usize>().max(1) as u64;
    let (times, rest) = share.of_groups(outer);
    let [m, k, n] = [batch.m, batch.k, batch.n].map(|extent| extent as u64);
    let cols = batch.col_blocks();
    // Blocks of columns are the inner units.
    let (m, n) = if rest.units.1 < cols {
        (
            m.div_ceil(batch.row_blocks().max(1) as u64),
            n.div_ceil(cols as u64) * rest.units.1 as u64,
        )
    } else {
        (rest.part(m), n)
    };
    Products {
        extents: [m, k, n],
        operands: [matrix(m, k, bytes), matrix(k, n, bytes)],
        times,
        bytes,
    }
}

fn after_product(epilogue: &Epilogue, bytes: u64) -> u64 {
    match epilogue {
        Epilogue::None => 0,
        Epilogue::Unary(of) => unary(*of, bytes),
        Epilogue::Activation(of) => activation(of, bytes),
        Epilogue::Steps(steps) => steps.iter().map(|step| function(&step.function, bytes)).sum(),
    }
}

fn reduced(reduction: Reduction, is_last: bool, [bytes_in, bytes]: [u64; 2]) -> u64 {
    let (sum, largest) = if is_last { (&V_CADD, &V_CGMAX) } else { (&V_ADD, &V_MAX) };
    match reduction {
        Reduction::Sum => vector(sum, bytes_in),
        Reduction::Mean => vector(sum, bytes_in) + vector(&V_MULS, bytes),
        Reduction::Max | Reduction::Min | Reduction::All | Reduction::Any => {
            vector(largest, bytes_in)
        }
        Reduction::Prod => vector(&V_MUL, bytes_in),
        Reduction::L1 => all(&[&V_MAX, sum], bytes_in),
        Reduction::L2 => all(&[&V_MUL, sum], bytes_in) + vector(&V_SQRT, bytes),
        Reduction::LogSum => vector(sum, bytes_in) + vector(&V_EXP, bytes),
        Reduction::LogSumExp => {
            all(&[largest, &V_SUB, &V_EXP, sum], bytes_in) + all(&[&V_EXP, &V_ADD], bytes)
        }
        Reduction::SumSquare => all(&[&V_MUL, sum], bytes_in),
    }
}

fn function(function: &Function, bytes: u64) -> u64 {
    match function {
        Function::Unary(of) => unary(*of, bytes),
        Function::Activation(of) => activation(of, bytes),
        Function::Binary(of) => binary(*of, bytes),
        Function::Nary(Nary::Sum | Nary::Mean) => vector(&V_ADD, bytes),
        Function::Nary(Nary::Max | Nary::Min) => vector(&V_MAX, bytes),
        Function::Where => vector(&V_SEL, bytes),
        Function::Clip => all(&[&V_MAX, &V_MAX], bytes),
        Function::Cast(_) => vector(&V_CONV, bytes),
    }
}

fn unary(function: Unary, bytes: u64) -> u64 {
    let of_tiles = |function: OnTiles| cost::unary(function, bytes);
    match function {
        Unary::Identity => of_tiles(OnTiles::Copy),
        Unary::Abs => of_tiles(OnTiles::Abs),
        Unary::Neg => of_tiles(OnTiles::Neg),
        Unary::Relu => of_tiles(OnTiles::Relu),
        Unary::Sqrt => of_tiles(OnTiles::Sqrt),
        Unary::Rsqrt => of_tiles(OnTiles::Rsqrt),
        Unary::Exp | Unary::Log => of_tiles(OnTiles::Exp),
        Unary::Sigmoid => of_tiles(OnTiles::Sigmoid),
        Unary::Tanh => of_tiles(OnTiles::Tanh),
        Unary::Gelu | Unary::GeluTanh => of_tiles(OnTiles::Gelu),
        Unary::Reciprocal => vector(&V_DIV, bytes),
        Unary::Square => vector(&V_MUL, bytes),
        Unary::Exp2 | Unary::Log2 | Unary::Log10 => all(&[&V_EXP, &V_MULS], bytes),
        Unary::Expm1 | Unary::Log1p => all(&[&V_EXP, &V_ADDS], bytes),
        Unary::Softplus => all(&[&V_EXP, &V_ADDS, &V_EXP], bytes),
        Unary::Softsign => all(&[&V_MAX, &V_ADDS, &V_DIV], bytes),
        Unary::HardSwish => all(&[&V_MULS, &V_ADDS, &V_MAX, &V_MAX, &V_MUL], bytes),
        Unary::Mish => all(&[&V_EXP, &V_ADDS, &V_EXP, &V_MUL], bytes) + of_tiles(OnTiles::Tanh),
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => all(&[&V_CONV, &V_CONV], bytes),
        Unary::Sign | Unary::IsNaN => all(&[&V_ADD, &V_SEL], bytes),
        Unary::Not | Unary::BitwiseNot => vector(&V_ADD, bytes),
        Unary::Sinh | Unary::Cosh => all(&[&V_EXP, &V_DIV, &V_ADD, &V_MULS], bytes),
        Unary::Asinh | Unary::Acosh | Unary::Atanh => {
            all(&[&V_MUL, &V_ADDS, &V_SQRT, &V_ADD, &V_EXP], bytes)
        }
        // A polynomial.
        Unary::Sin
        | Unary::Cos
        | Unary::Tan
        | Unary::Asin
        | Unary::Acos
        | Unary::Atan
        | Unary::Erf => of_tiles(OnTiles::Sin),
    }
}

fn activation(of: &Activation, bytes: u64) -> u64 {
    match of {
        Activation::LeakyRelu { .. } => all(&[&V_MULS, &V_MAX], bytes),
        Activation::Elu { .. } | Activation::Selu { .. } | Activation::Celu { .. } => {
            all(&[&V_EXP, &V_ADDS, &V_MULS, &V_SEL], bytes)
        }
        Activation::HardSigmoid { .. } => all(&[&V_MULS, &V_ADDS, &V_MAX, &V_MAX], bytes),
        Activation::ThresholdedRelu { .. } | Activation::Shrink { .. } => {
            all(&[&V_ADDS, &V_SEL], bytes)
        }
        Activation::Swish { .. } => all(&[&V_MULS, &V_EXP, &V_ADD, &V_DIV], bytes),
        Activation::Clamp { .. } => all(&[&V_MAX, &V_MAX], bytes),
        Activation::IsInf { .. } => all(&[&V_ADD, &V_SEL], bytes),
        Activation::Affine { .. } => all(&[&V_MULS, &V_ADDS], bytes),
    }
}

fn binary(function: Binary, bytes: u64) -> u64 {
    match function {
        Binary::Sub => vector(&V_SUB, bytes),
        Binary::Mul => vector(&V_MUL, bytes),
        Binary::Div => vector(&V_DIV, bytes),
        Binary::Mod | Binary::Fmod => all(&[&V_DIV, &V_CONV, &V_MUL, &V_SUB], bytes),
        Binary::Pow => all(&[&V_EXP, &V_MUL, &V_EXP], bytes),
        Binary::Max | Binary::Min => vector(&V_MAX, bytes),
        Binary::PRelu => all(&[&V_MUL, &V_SEL], bytes),
        Binary::Atan2 => vector(&V_DIV, bytes) + cost::unary(OnTiles::Sin, bytes),
        _ => vector(&V_ADD, bytes),
    }
}
