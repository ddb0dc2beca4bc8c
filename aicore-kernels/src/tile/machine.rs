//! The tile machine: executes a [`Kernel`], one instruction a tile.
//!
//! A run has three kinds of memory: the tensors, through [`View`]s that check every access; the frame, in which each value has
//! its place; and working storage of products. The last two are the caller's scratch memory.
//!
//! Every value has **extents that count**: those of the view that it was loaded from, which may be less than the tile's. What
//! lies beyond is never computed, stored or counted.

use half::{bf16, f16};

use super::cycles::{Counted, cost};
use super::dtype::{DType, with_type};
use super::element::Element;
use super::elementwise::{self, Grid};
use super::fault::{Cause, TileFault};
use super::frame::Place;
use super::kernel::{Kernel, Step, Value, limits};
use super::load;
use super::op::{Op, Reduce, Spread, TileType, Unary, ValueId};
use super::param::{Param, ParamKind};
use super::product::{self, Operands};
use super::view::View;
use super::wide::Wide;
use super::{reduce, select, sort};

/// Names an element type `$T` and the type `$S` of its sums.
macro_rules! with_sum {
    ($dtype:expr, $T:ident, $S:ident => $body:expr) => {
        match $dtype {
            DType::F16 => {
                type $T = f16;
                type $S = f32;
                $body
            }
            DType::BF16 => {
                type $T = bf16;
                type $S = f32;
                $body
            }
            DType::F32 => {
                type $T = f32;
                type $S = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                type $S = f64;
                $body
            }
            DType::I8 => {
                type $T = i8;
                type $S = i32;
                $body
            }
            DType::I16 => {
                type $T = i16;
                type $S = i32;
                $body
            }
            DType::I32 => {
                type $T = i32;
                type $S = i32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                type $S = i64;
                $body
            }
            DType::U8 => {
                type $T = u8;
                type $S = u32;
                $body
            }
            DType::U16 => {
                type $T = u16;
                type $S = u32;
                $body
            }
            DType::U32 => {
                type $T = u32;
                type $S = u32;
                $body
            }
            DType::U64 => {
                type $T = u64;
                type $S = u64;
                $body
            }
        }
    };
}

/// What a kernel is called with: a view for each tensor and the bits of each scalar, in the order of the parameters.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The tensors.
    pub tensors: &'a [View<'a>],
    /// The scalars: the bits of an element of the parameter's type.
    pub scalars: &'a [u64],
}

/// Executes kernels.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    wide: Wide,
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine {
    /// A machine that uses what this processor has.
    #[must_use]
    pub fn new() -> Self {
        Self { wide: Wide::detect() }
    }

    /// A machine that uses the instructions of the target alone. The results are the same.
    #[must_use]
    pub const fn of_target() -> Self {
        Self { wide: Wide::Target }
    }

    /// Executes `kernel`; returns the cycles that it reports on the `v9` clock. `scratch` has
    /// [`Kernel::scratch_words`] or more.
    ///
    /// # Errors
    /// The fault that ended the kernel. Stores before it have been done.
    #[expect(
        clippy::result_large_err,
        reason = "a fault ends a kernel, and carries the names that it is read with"
    )]
    pub fn run(self, kernel: &Kernel, call: &Call, scratch: &mut [u64]) -> Result<u64, TileFault> {
        let before = |cause| fault(kernel, None, cause);
        check_call(kernel, call).map_err(before)?;
        let (needed, found) = (kernel.scratch_words(), scratch.len());
        let scratch = scratch.get_mut(..needed);
        let scratch = scratch.ok_or(Cause::Scratch { needed, found }).map_err(before)?;
        let (frame, work) = scratch.split_at_mut(kernel.frame_words());
        let extents = [[0; 2]; limits::OPS];
        let mut run = Run { wide: self.wide, kernel, call, frame, work, extents, cycles: 0 };
        for (number, step) in kernel.steps().iter().enumerate() {
            run.step(step).map_err(|cause| fault(kernel, Some((number, step)), cause))?;
        }
        Ok(run.cycles)
    }
}

fn fault(kernel: &Kernel, at: Option<(usize, &Step)>, cause: Cause) -> TileFault {
    let param = match at {
        Some((_, Step { op: Op::Load { param, .. } | Op::Store { param, .. }, .. })) => {
            kernel.params().get(usize::from(*param)).map(|param| param.name)
        }
        _ => None,
    };
    let instruction = at.and_then(|(number, _)| u16::try_from(number).ok());
    let name = at.map_or("", |(_, step)| step.op.name());
    TileFault { kernel: *kernel.name(), instruction, name, param, cause }
}

/// Whether a call has what the kernel needs.
fn check_call(kernel: &Kernel, call: &Call) -> Result<(), Cause> {
    let params = kernel.params();
    let tiles = || params.iter().filter_map(Param::tensor);
    let (needed, found) = (tiles().count(), call.tensors.len());
    if needed != found {
        return Err(Cause::Tensors { needed, found });
    }
    let (needed, found) = (params.len() - needed, call.scalars.len());
    if needed != found {
        return Err(Cause::Scalars { needed, found });
    }
    for ((_, tile), view) in tiles().zip(call.tensors) {
        let ([rows, cols], tile) = (view.extents(), [tile.rows, tile.cols]);
        if rows > tile[0] || cols > tile[1] {
            return Err(Cause::ViewTooLarge { view: [rows, cols], tile });
        }
    }
    Ok(())
}

/// A run of a kernel.
struct Run<'r> {
    wide: Wide,
    kernel: &'r Kernel,
    call: &'r Call<'r>,
    frame: &'r mut [u64],
    work: &'r mut [u64],
    /// What counts of each value.
    extents: [[u16; 2]; limits::OPS],
    cycles: u64,
}

/// The frame without the place of a result.
struct Rest<'f> {
    before: &'f [u64],
    after: &'f [u64],
    after_start: usize,
}

impl<'f> Rest<'f> {
    fn words(&self, place: Place) -> Option<&'f [u64]> {
        let start = place.start.checked_sub(self.after_start);
        start.map_or_else(
            || self.before.get(place.start..place.end()),
            |start| self.after.get(start..start + place.words),
        )
    }

    fn tile<T: Element>(&self, value: &Value) -> Result<&'f [T], Cause> {
        let words = self.words(value.place).ok_or(Cause::Broken)?;
        bytemuck::cast_slice(words).get(..value.tile.elements()).ok_or(Cause::Broken)
    }
}

/// The elements of a value, to write, and the rest of the frame.
fn split<'f, T: Element>(
    frame: &'f mut [u64],
    value: &Value,
) -> Result<(&'f mut [T], Rest<'f>), Cause> {
    let Place { start, words } = value.place;
    let (before, rest) = frame.split_at_mut_checked(start).ok_or(Cause::Broken)?;
    let (out, after) = rest.split_at_mut_checked(words).ok_or(Cause::Broken)?;
    let out = bytemuck::cast_slice_mut(out).get_mut(..value.tile.elements());
    let rest = Rest { before, after, after_start: start + words };
    Ok((out.ok_or(Cause::Broken)?, rest))
}

const fn grid(tile: TileType, [rows, cols]: [u16; 2]) -> Grid {
    Grid { rows: rows as usize, cols: cols as usize, pitch: tile.cols as usize }
}

impl<'r> Run<'r> {
    fn value(&self, id: ValueId) -> Result<&'r Value, Cause> {
        self.kernel.values().get(usize::from(id.0)).ok_or(Cause::Broken)
    }

    fn counted(&self, id: ValueId) -> [u16; 2] {
        self.extents.get(usize::from(id.0)).copied().unwrap_or_default()
    }

    fn grid(&self, id: ValueId) -> Result<Grid, Cause> {
        Ok(grid(self.value(id)?.tile, self.counted(id)))
    }

    /// The view of a tensor parameter.
    fn view(&self, param: u8) -> Result<&'r View<'r>, Cause> {
        let before = self.kernel.params().iter().take(usize::from(param));
        let number = before.filter(|param| param.tensor().is_some()).count();
        self.call.tensors.get(number).ok_or(Cause::Broken)
    }

    fn scalar(&self, param: u8) -> Result<u64, Cause> {
        let before = self.kernel.params().iter().take(usize::from(param));
        let number = before.filter(|param| matches!(param.kind, ParamKind::Scalar(_))).count();
        self.call.scalars.get(number).copied().ok_or(Cause::Broken)
    }

    /// Executes one instruction and counts its cycles.
    fn step(&mut self, step: &Step) -> Result<(), Cause> {
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
    fn effect(&mut self, op: &Op) -> Result<[u16; 2], Cause> {
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
            _ => Err(Cause::Broken),
        }
    }

    fn store(
        &mut self,
        param: u8,
        source: ValueId,
        offset: [u16; 2],
        mask: Option<ValueId>,
    ) -> Result<[u16; 2], Cause> {
        let (view, value, counted) = (self.view(param)?, self.value(source)?, self.counted(source));
        let extents = view.extents();
        if extents[0] > counted[0] || extents[1] > counted[1] {
            return Err(Cause::StoreTooSmall { source: counted, view: extents });
        }
        let mask = mask.map(|mask| self.value(mask)).transpose()?;
        let (_, rest) = split::<u64>(self.frame, &EMPTY)?;
        let mask = mask.map(|mask| rest.tile::<u8>(mask)).transpose()?;
        let pitch = usize::from(value.tile.cols);
        with_type!(value.tile.dtype, T => {
            load::store::<T>((rest.tile(value)?, pitch), view, offset, mask)?;
        });
        Ok(extents)
    }

    /// The rows and columns of a result that count.
    fn extents_of(&self, op: &Op, tile: TileType) -> Result<[u16; 2], Cause> {
        let all = [tile.rows, tile.cols];
        Ok(match *op {
            Op::Load { param, .. } => self.view(param)?.extents(),
            Op::Unary { x, .. } | Op::Convert { x, .. } => self.counted(x),
            Op::Binary { a, b, spread, .. } | Op::Compare { a, b, spread, .. } => {
                meet(spread, self.counted(a), self.counted(b))?
            }
            Op::Select { a, b, mask } => {
                meet(Spread::Same, meet(Spread::Same, self.counted(a), self.counted(b))?, {
                    self.counted(mask)
                })?
            }
            Op::Reduce { function, x } => {
                let [rows, cols] = self.counted(x);
                match function {
                    Reduce::ColSum | Reduce::ColMax => [1, cols],
                    _ => [rows, 1],
                }
            }
            Op::Matmul { a, b, acc, .. } => self.product_extents(a, b, acc)?,
            Op::SliceEven { x } => {
                let [rows, cols] = self.counted(x);
                [rows, cols.div_ceil(2)]
            }
            Op::SliceOdd { x } => {
                let [rows, cols] = self.counted(x);
                [rows, cols / 2]
            }
            Op::Interleave { a, b } => {
                let [rows, cols] = meet(Spread::Same, self.counted(a), self.counted(b))?;
                [rows, cols * 2]
            }
            Op::Broadcast { x, .. } => {
                let ([rows, cols], from) = (self.counted(x), self.value(x)?.tile);
                let pick = |had: u16, counted: u16, wanted: u16| {
                    if had == wanted { counted } else { wanted.min(wanted * counted) }
                };
                [pick(from.rows, rows, all[0]), pick(from.cols, cols, all[1])]
            }
            Op::TopK { .. } | Op::Sort32 { .. } | Op::Scalar { .. } | Op::Constant { .. } => all,
            Op::Zeros { .. } | Op::Iota { .. } | Op::Store { .. } | Op::AddCycles { .. } => all,
        })
    }

    fn product_extents(
        &self,
        a: ValueId,
        b: ValueId,
        acc: Option<ValueId>,
    ) -> Result<[u16; 2], Cause> {
        let (a, b) = (self.counted(a), self.counted(b));
        let product = [a[0], b[1]];
        let is_product = a[1] == b[0];
        let acc = acc.map_or(product, |acc| self.counted(acc));
        let is_covered = acc[0] >= product[0] && acc[1] >= product[1];
        if is_product && is_covered { Ok(product) } else { Err(Cause::Remainders { a, b }) }
    }

    /// Computes the result of an instruction.
    fn define(&mut self, op: &Op, value: &Value, counted: [u16; 2]) -> Result<(), Cause> {
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
            Op::Store { .. } | Op::AddCycles { .. } => Err(Cause::Broken),
        }
    }

    fn load(
        &mut self,
        value: &Value,
        param: u8,
        offset: [u16; 2],
        mask: Option<ValueId>,
    ) -> Result<(), Cause> {
        let (view, mask) = (self.view(param)?, mask.map(|mask| self.value(mask)).transpose()?);
        let pitch = usize::from(value.tile.cols);
        with_type!(value.tile.dtype, T => {
            let (elements, rest) = split::<T>(self.frame, value)?;
            let mask = mask.map(|mask| rest.tile::<u8>(mask)).transpose()?;
            load::load(load::Tile { elements, pitch }, view, offset, mask)
        })
    }

    /// The same bits in every element.
    fn fill(&mut self, value: &Value, bits: u64) -> Result<(), Cause> {
        with_type!(value.tile.dtype, T => {
            let (out, _) = split::<T>(self.frame, value)?;
            out.fill(<T as Element>::from_bits(bits));
            Ok(())
        })
    }

    fn unary(
        &mut self,
        value: &Value,
        (function, x): (Unary, ValueId),
        grid: Grid,
    ) -> Result<(), Cause> {
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

    fn pair(&mut self, op: &Op, value: &Value, grid: Grid) -> Result<(), Cause> {
        let (Op::Binary { a, b, spread, .. } | Op::Compare { a, b, spread, .. }) = *op else {
            return Err(Cause::Broken);
        };
        let b_grid = self.grid(b)?;
        let (a, b, wide) = (self.value(a)?, self.value(b)?, self.wide);
        with_type!(a.tile.dtype, T => match *op {
            Op::Binary { function, .. } => {
                let (out, rest) = split::<T>(self.frame, value)?;
                let operands = (rest.tile(a)?, rest.tile(b)?);
                if function == super::op::Binary::Div {
                    elementwise::check_divisor(operands.1, (b_grid, spread))?;
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
            _ => Err(Cause::Broken),
        })
    }

    fn reduce(&mut self, value: &Value, function: Reduce, x: ValueId) -> Result<(), Cause> {
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

    fn convert(&mut self, value: &Value, x: ValueId, grid: Grid) -> Result<(), Cause> {
        let (x, wide) = (self.value(x)?, self.wide);
        with_type!(value.tile.dtype, B => with_type!(x.tile.dtype, A => {
            let (out, rest) = split::<B>(self.frame, value)?;
            elementwise::convert::<A, B>(wide, out, rest.tile(x)?, grid);
            Ok(())
        }))
    }

    fn matmul(
        &mut self,
        value: &Value,
        a: ValueId,
        b: ValueId,
        acc: Option<ValueId>,
    ) -> Result<(), Cause> {
        let (a_grid, b_grid, wide) = (self.grid(a)?, self.grid(b)?, self.wide);
        let acc = acc.map(|acc| self.value(acc)).transpose()?;
        let (a, b, out_pitch) = (self.value(a)?, self.value(b)?, usize::from(value.tile.cols));
        with_sum!(a.tile.dtype, T, S => {
            let (out, rest) = split::<S>(self.frame, value)?;
            let (a, b) = ((rest.tile::<T>(a)?, a_grid), (rest.tile::<T>(b)?, b_grid));
            let acc = acc.map(|acc| rest.tile::<S>(acc)).transpose()?;
            product::product(wide, Operands { out, a, b, acc, out_pitch, work: self.work });
            Ok(())
        })
    }
}

/// A place of no words, for instructions that define nothing.
const EMPTY: Value =
    Value { tile: TileType::tile(DType::U64, 0, 0), place: Place { start: 0, words: 0 } };

/// What counts of the result of a pair: what counts of both.
fn meet(spread: Spread, a: [u16; 2], b: [u16; 2]) -> Result<[u16; 2], Cause> {
    let counted = u32::from(b[0]) * u32::from(b[1]);
    let is_covered = match spread {
        Spread::Same => return Ok([a[0].min(b[0]), a[1].min(b[1])]),
        Spread::Row => counted >= u32::from(a[0]),
        Spread::Col => counted >= u32::from(a[1]),
        Spread::One => counted >= 1,
        Spread::FirstOne => return Ok(b),
    };
    if is_covered { Ok(a) } else { Err(Cause::Remainders { a, b }) }
}
