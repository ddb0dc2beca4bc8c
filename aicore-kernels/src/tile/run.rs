//! A run of a kernel: what counts of each value so far, and each instruction on its operands.
//!
//! Every value has **extents that count**: those of the view that it was loaded from, which may be less than the tile's. What
//! lies beyond is never computed, stored or counted.

use half::{bf16, f16};

use super::call::Call;
use super::cycles::{Counted, cost};
use super::dtype::{DType, with_sum, with_type};
use super::element::Element;
use super::elementwise::{self, Grid};
use super::fault::FaultCause;
#[cfg(target_arch = "x86_64")]
use super::fused;
use super::kernel::Kernel;
#[cfg(target_arch = "x86_64")]
use super::lines::Lines;
use super::meet::meet;
use super::op::{Op, Reduce, Spread, Unary, ValueId};
use super::operands::Operands;
use super::param::ParamKind;
use super::product;
use super::slices::{EMPTY, grid, split};
#[cfg(target_arch = "x86_64")]
use super::step::LoadSource;
use super::step::{FrameValue, Step, limits};
use super::view::TileView;
use super::wide::Wide;
use super::{load, reduce, select, sort};

/// A run of a kernel.
pub(super) struct KernelRun<'r> {
    wide: Wide,
    kernel: &'r Kernel,
    call: &'r Call<'r>,
    frame: &'r mut [u64],
    work: &'r mut [u64],
    /// What counts of each value.
    extents: [[u16; 2]; limits::OPS],
    cycles: u64,
}

impl<'r> KernelRun<'r> {
    /// Before the first instruction.
    pub(super) const fn new(
        wide: Wide,
        (kernel, call): (&'r Kernel, &'r Call<'r>),
        frame: &'r mut [u64],
        work: &'r mut [u64],
    ) -> Self {
        Self { wide, kernel, call, frame, work, extents: [[0; 2]; limits::OPS], cycles: 0 }
    }

    /// The cycles on the `v9` clock so far.
    pub(super) const fn cycles(&self) -> u64 {
        self.cycles
    }

    pub(super) fn value(&self, id: ValueId) -> Result<&'r FrameValue, FaultCause> {
        self.kernel.values().get(usize::from(id.0)).ok_or(FaultCause::Broken)
    }

    pub(super) fn counted(&self, id: ValueId) -> [u16; 2] {
        self.extents.get(usize::from(id.0)).copied().unwrap_or_default()
    }

    fn grid(&self, id: ValueId) -> Result<Grid, FaultCause> {
        Ok(grid(self.value(id)?.tile, self.counted(id)))
    }

    /// The view of a tensor parameter.
    pub(super) fn view(&self, param: u8) -> Result<&'r TileView<'r>, FaultCause> {
        let before = self.kernel.params().iter().take(usize::from(param));
        let number = before.filter(|param| param.tensor().is_some()).count();
        self.call.tensors.get(number).ok_or(FaultCause::Broken)
    }

    fn scalar(&self, param: u8) -> Result<u64, FaultCause> {
        let before = self.kernel.params().iter().take(usize::from(param));
        let number = before.filter(|param| matches!(param.kind, ParamKind::Scalar(_))).count();
        self.call.scalars.get(number).copied().ok_or(FaultCause::Broken)
    }

    /// Executes one instruction and counts its cycles.
    pub(super) fn step(&mut self, step: &Step) -> Result<(), FaultCause> {
        let op = &step.op;
        let first = op.operands()[0].map_or([0, 0], |id| self.counted(id));
        let Some(id) = step.result.map(ValueId) else {
            let result = self.effect(op)?;
            self.cycles =
                self.cycles.wrapping_add(cost(op, Counted { result, first, is_scalar: false }));
            return Ok(());
        };
        let value = self.value(id)?;
        let result = self.extents_of(op, value.tile)?;
        if let Some(extents) = self.extents.get_mut(usize::from(id.0)) {
            *extents = result;
        }
        self.define(op, value, result)?;
        let counted = Counted { result, first, is_scalar: value.tile.is_scalar };
        self.cycles = self.cycles.wrapping_add(cost(op, counted));
        Ok(())
    }

    /// An instruction without a result; returns what a store stored.
    fn effect(&mut self, op: &Op) -> Result<[u16; 2], FaultCause> {
        match *op {
            Op::Store { param, source, offset, mask } => self.store(param, source, offset, mask),
            Op::AddCycles { x } => {
                let value = self.value(x)?;
                let (_, rest) = split::<u64>(self.frame, &EMPTY)?;
                let added = with_type!(value.tile.dtype, T => {
                    rest.tile::<T>(value)?.first().map_or(0, |x| x.cast::<u64>())
                });
                self.cycles = self.cycles.wrapping_add(added);
                Ok([0, 0])
            }
            _ => Err(FaultCause::Broken),
        }
    }

    fn store(
        &mut self,
        param: u8,
        source: ValueId,
        offset: [u16; 2],
        mask: Option<ValueId>,
    ) -> Result<[u16; 2], FaultCause> {
        let (view, value, counted) = (self.view(param)?, self.value(source)?, self.counted(source));
        let extents = view.extents();
        if extents[0] > counted[0] || extents[1] > counted[1] {
            return Err(FaultCause::StoreTooSmall { source: counted, view: extents });
        }
        let mask = mask.map(|mask| self.mask(mask, extents)).transpose()?;
        let (_, rest) = split::<u64>(self.frame, &EMPTY)?;
        let mask = mask.map(|mask| rest.tile::<u8>(mask)).transpose()?;
        let pitch = usize::from(value.tile.cols);
        with_type!(value.tile.dtype, T => {
            load::store::<T>((rest.tile(value)?, pitch), view, offset, mask)?;
        });
        Ok(extents)
    }

    /// Computes the result of an instruction.
    fn define(&mut self, op: &Op, value: &FrameValue, counted: [u16; 2]) -> Result<(), FaultCause> {
        let out_grid = grid(value.tile, counted);
        match *op {
            Op::Load { param, offset, mask } => self.load(value, param, offset, mask),
            Op::Scalar { param } => {
                let bits = self.scalar(param)?;
                self.fill(value, bits)
            }
            Op::Constant { bits, .. } => self.fill(value, bits),
            Op::Zeros { .. } => self.fill(value, 0),
            Op::Iota { .. } => with_type!(value.tile.dtype, T => {
                let (out, _) = split::<T>(self.frame, value)?;
                for (number, out) in (0..).zip(out) {
                    *out = T::from_u64(number);
                }
                Ok(())
            }),
            Op::Unary { function, x } => self.unary(value, (function, x), out_grid),
            Op::Binary { .. } | Op::Compare { .. } => self.pair(op, value, out_grid),
            Op::Select { mask, a, b } => with_type!(value.tile.dtype, T => {
                let (mask, a, b) = (self.value(mask)?, self.value(a)?, self.value(b)?);
                let (out, rest) = split::<T>(self.frame, value)?;
                elementwise::select(out, rest.tile(mask)?, (rest.tile(a)?, rest.tile(b)?), out_grid);
                Ok(())
            }),
            Op::Reduce { function, x } => self.reduce(value, function, x),
            Op::Convert { x, .. } => self.convert(value, x, out_grid),
            Op::Matmul { a, b, acc, .. } => self.matmul(value, a, b, acc),
            Op::SliceEven { x } | Op::SliceOdd { x } => with_type!(value.tile.dtype, T => {
                let (x, x_grid) = (self.value(x)?, self.grid(x)?);
                let (out, rest) = split::<T>(self.frame, value)?;
                let first = usize::from(matches!(op, Op::SliceOdd { .. }));
                select::slice(out, rest.tile(x)?, x_grid, out_grid, first);
                Ok(())
            }),
            Op::Interleave { a, b } => with_type!(value.tile.dtype, T => {
                let (a_grid, a, b) = (self.grid(a)?, self.value(a)?, self.value(b)?);
                let (out, rest) = split::<T>(self.frame, value)?;
                select::interleave(out, (rest.tile(a)?, rest.tile(b)?), a_grid, out_grid);
                Ok(())
            }),
            Op::Broadcast { x, .. } => with_type!(value.tile.dtype, T => {
                let (x, x_grid) = (self.value(x)?, self.grid(x)?);
                let (out, rest) = split::<T>(self.frame, value)?;
                select::broadcast(out, rest.tile(x)?, x_grid, out_grid);
                Ok(())
            }),
            Op::Sort32 { scores, indices } => {
                let [_, counted] = meet(Spread::Same, self.counted(scores), self.counted(indices))?;
                let (scores, indices) = (self.value(scores)?, self.value(indices)?);
                let (out, rest) = split::<f32>(self.frame, value)?;
                sort::sort32(out, rest.tile(scores)?, rest.tile(indices)?, usize::from(counted));
                Ok(())
            }
            Op::TopK { pairs, .. } => {
                let pairs = self.value(pairs)?;
                let (out, rest) = split::<i32>(self.frame, value)?;
                sort::topk(out, rest.tile(pairs)?)
            }
            Op::Store { .. } | Op::AddCycles { .. } => Err(FaultCause::Broken),
        }
    }

    fn load(
        &mut self,
        value: &FrameValue,
        param: u8,
        offset: [u16; 2],
        mask: Option<ValueId>,
    ) -> Result<(), FaultCause> {
        #[cfg(target_arch = "x86_64")]
        if self.in_place(value)?.is_some() {
            return Ok(());
        }
        let view = self.view(param)?;
        let mask = mask.map(|mask| self.mask(mask, view.extents())).transpose()?;
        let pitch = usize::from(value.tile.cols);
        with_type!(value.tile.dtype, T => {
            let (elements, rest) = split::<T>(self.frame, value)?;
            let mask = mask.map(|mask| rest.tile::<u8>(mask)).transpose()?;
            load::load(load::Tile { elements, pitch }, view, offset, mask)
        })
    }

    /// The rows in its tensor of a value that is not loaded.
    #[cfg(target_arch = "x86_64")]
    fn in_place(&self, value: &FrameValue) -> Result<Option<Lines<'r>>, FaultCause> {
        let Some(LoadSource { param, offset }) = value.source else { return Ok(None) };
        if !fused::reads_in_place(self.wide) {
            return Ok(None);
        }
        let elements = self.view(param)?.elements::<f32>(offset)?;
        Ok(elements.lines(value.tile.cols.into(), fused::DEEP))
    }

    /// A mask, of which as much counts as of the view.
    fn mask(&self, mask: ValueId, view: [u16; 2]) -> Result<&'r FrameValue, FaultCause> {
        let counted = self.counted(mask);
        if counted[0] < view[0] || counted[1] < view[1] {
            return Err(FaultCause::Remainders { a: view, b: counted });
        }
        self.value(mask)
    }

    /// Writes the same bits to every element.
    fn fill(&mut self, value: &FrameValue, bits: u64) -> Result<(), FaultCause> {
        with_type!(value.tile.dtype, T => {
            let (out, _) = split::<T>(self.frame, value)?;
            out.fill(<T as Element>::from_bits(bits));
            Ok(())
        })
    }

    fn unary(
        &mut self,
        value: &FrameValue,
        (function, x): (Unary, ValueId),
        grid: Grid,
    ) -> Result<(), FaultCause> {
        /// The operand, and what takes it.
        macro_rules! apply {
            ($T:ty, $apply:path) => {{
                let x = self.value(x)?;
                let (out, rest) = split::<$T>(self.frame, value)?;
                $apply(self.wide, function, (out, rest.tile(x)?), grid);
                Ok(())
            }};
        }
        match value.tile.dtype {
            DType::F16 => apply!(f16, elementwise::real),
            DType::BF16 => apply!(bf16, elementwise::real),
            DType::F32 => apply!(f32, elementwise::real),
            DType::F64 => apply!(f64, elementwise::real),
            DType::I8 => apply!(i8, elementwise::unary),
            DType::I16 => apply!(i16, elementwise::unary),
            DType::I32 => apply!(i32, elementwise::unary),
            DType::I64 => apply!(i64, elementwise::unary),
            DType::U8 => apply!(u8, elementwise::unary),
            DType::U16 => apply!(u16, elementwise::unary),
            DType::U32 => apply!(u32, elementwise::unary),
            DType::U64 => apply!(u64, elementwise::unary),
        }
    }

    fn pair(&mut self, op: &Op, value: &FrameValue, grid: Grid) -> Result<(), FaultCause> {
        let (Op::Binary { a, b, spread, .. } | Op::Compare { a, b, spread, .. }) = *op else {
            return Err(FaultCause::Broken);
        };
        let b_grid = self.grid(b)?;
        let (a, b, wide) = (self.value(a)?, self.value(b)?, self.wide);
        with_type!(a.tile.dtype, T => match *op {
            Op::Binary { function, .. } => {
                let (out, rest) = split::<T>(self.frame, value)?;
                let operands = (rest.tile(a)?, rest.tile(b)?);
                if function == super::op::Binary::Div {
                    let divisors = if spread == Spread::Same { grid } else { b_grid };
                    elementwise::check_divisor(operands.1, (divisors, spread))?;
                }
                elementwise::binary::<T>(wide, function, out, operands, (grid, spread));
                Ok(())
            }
            Op::Compare { function, .. } => {
                let (out, rest) = split::<u8>(self.frame, value)?;
                let operands = (rest.tile::<T>(a)?, rest.tile(b)?);
                elementwise::compare(wide, function, out, operands, (grid, spread));
                Ok(())
            }
            _ => Err(FaultCause::Broken),
        })
    }

    fn reduce(
        &mut self,
        value: &FrameValue,
        function: Reduce,
        x: ValueId,
    ) -> Result<(), FaultCause> {
        let (grid, x, wide) = (self.grid(x)?, self.value(x)?, self.wide);
        let has_sum_type = value.tile.dtype == x.tile.dtype.sum();
        if has_sum_type {
            return with_sum!(x.tile.dtype, T, S => {
                let (out, rest) = split::<S>(self.frame, value)?;
                reduce::reduce::<T, S>(wide, function, (out, rest.tile(x)?), grid);
                Ok(())
            });
        }
        with_type!(x.tile.dtype, T => {
            let (out, rest) = split::<T>(self.frame, value)?;
            reduce::reduce::<T, T>(wide, function, (out, rest.tile(x)?), grid);
            Ok(())
        })
    }

    fn convert(&mut self, value: &FrameValue, x: ValueId, grid: Grid) -> Result<(), FaultCause> {
        let (x, wide) = (self.value(x)?, self.wide);
        with_type!(value.tile.dtype, B => with_type!(x.tile.dtype, A => {
            let (out, rest) = split::<B>(self.frame, value)?;
            elementwise::convert::<A, B>(wide, out, rest.tile(x)?, grid);
            Ok(())
        }))
    }

    fn matmul(
        &mut self,
        value: &FrameValue,
        a: ValueId,
        b: ValueId,
        acc: Option<ValueId>,
    ) -> Result<(), FaultCause> {
        let (a_grid, b_grid, wide) = (self.grid(a)?, self.grid(b)?, self.wide);
        let acc = acc.map(|acc| self.value(acc)).transpose()?;
        let (a, b, out_pitch) = (self.value(a)?, self.value(b)?, usize::from(value.tile.cols));
        #[cfg(target_arch = "x86_64")]
        let lines = self.in_place(b)?;
        with_sum!(a.tile.dtype, T, S => {
            let (out, rest) = split::<S>(self.frame, value)?;
            let (a, b) = ((rest.tile::<T>(a)?, a_grid), (rest.tile::<T>(b)?, b_grid));
            let acc = acc.map(|acc| rest.tile::<S>(acc)).transpose()?;
            let operands = Operands { out, a, b, acc, out_pitch, work: self.work };
            #[cfg(target_arch = "x86_64")]
            if fused::fits::<S>(wide) {
                fused::product(wide, operands, lines);
                return Ok(());
            }
            product::product(wide, operands);
            Ok(())
        })
    }
}
