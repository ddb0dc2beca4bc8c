//! Builds a kernel instruction by instruction. Each is checked when it is added.
//!
//! A tensor parameter is an operand like any other: its tile is loaded once, at the start of the kernel, and keeps the old
//! elements after a store. A product and an explicit load read the tensor when they are reached. [`lower`] puts
//! these loads in.

use pto_aicore_kernels::tile::op::Moves;
use pto_aicore_kernels::tile::{
    Binary, Compare, DType, Direction, Mistake, Name, Op, Param, ParamKind, Reduce, Rejected,
    Spread, TileType, Unary, ValueId, infer, limits, spread,
};

use super::lower;
use crate::kernel::tile_kernel::TileKernel;

/// Why a kernel cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// A text is no name.
    #[error(
        "Kernel {kernel}: {name:?} is no name. A name has up to 47 letters, digits and underscores, and no digit first."
    )]
    Name {
        /// The kernel.
        kernel: String,
        /// The text.
        name: String,
    },
    /// A tile has no elements or too many.
    #[error(
        "Kernel {kernel}, parameter {name}: a tile of {rows} x {cols} elements is not possible. Use 1 to 65535 rows and columns."
    )]
    Extents {
        /// The kernel.
        kernel: String,
        /// The parameter.
        name: String,
        /// Rows.
        rows: u64,
        /// Columns.
        cols: u64,
    },
    /// An instruction is wrong.
    #[error("Kernel {kernel}, {op}({operands}): {mistake}")]
    Op {
        /// The kernel.
        kernel: String,
        /// The instruction.
        op: &'static str,
        /// The operands, with their types.
        operands: String,
        /// What is wrong.
        mistake: Mistake,
    },
    /// Two operands have shapes that do not go together.
    #[error(
        "Kernel {kernel}, {op}({a}, {b}): the shapes do not go together. The second operand needs the shape of the first, or one element for each row, for each column, or for all."
    )]
    Shapes {
        /// The kernel.
        kernel: String,
        /// The instruction.
        op: &'static str,
        /// The type of the first operand.
        a: TileType,
        /// The type of the second operand.
        b: TileType,
    },
    /// A kernel that ends without a store does nothing.
    #[error("Kernel {0} stores nothing. Store a tile to an `out` or `inout` parameter.")]
    StoresNothing(String),
    /// The whole kernel is wrong.
    #[error("Kernel {kernel}: {rejected}")]
    Rejected {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        rejected: Rejected,
    },
}

/// A parameter or a result, as an operand of further instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TileValue(pub(super) u16);

/// Builds a [`TileKernel`].
#[derive(Clone, Debug)]
pub struct KernelBuilder {
    name: String,
    params: Vec<Param>,
    /// The instructions, whose operands are [`TileValue`]s.
    ops: Vec<Op>,
    /// The types of the operands: first the parameters, then the results.
    types: Vec<TileType>,
}

impl KernelBuilder {
    /// A kernel without parameters and instructions. All parameters come before the first instruction.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), params: Vec::new(), ops: Vec::new(), types: Vec::new() }
    }

    fn push_param(
        &mut self,
        name: &str,
        kind: ParamKind,
        tile: TileType,
    ) -> Result<TileValue, KernelError> {
        assert!(self.ops.is_empty(), "parameters come before instructions");
        let checked = Name::new(name).ok_or_else(|| KernelError::Name {
            kernel: self.name.clone(),
            name: name.to_owned(),
        })?;
        self.params.push(Param { name: checked, kind });
        if self.params.len() > limits::PARAMS {
            return Err(self.rejected(Rejected::Params(self.params.len())));
        }
        Ok(self.push_type(tile))
    }

    fn push_type(&mut self, tile: TileType) -> TileValue {
        let number = u16::try_from(self.types.len()).unwrap_or(u16::MAX);
        self.types.push(tile);
        TileValue(number)
    }

    fn rejected(&self, rejected: Rejected) -> KernelError {
        KernelError::Rejected { kernel: self.name.clone(), rejected }
    }

    /// A tile of a tensor.
    ///
    /// # Errors
    /// The name is none, or the extents are not possible.
    pub fn tensor(
        &mut self,
        name: &str,
        direction: Direction,
        dtype: DType,
        [rows, cols]: [u64; 2],
    ) -> Result<TileValue, KernelError> {
        let extent = |extent: u64| u16::try_from(extent).ok().filter(|extent| *extent > 0);
        let Some((rows, cols)) = extent(rows).zip(extent(cols)) else {
            let (kernel, name) = (self.name.clone(), name.to_owned());
            return Err(KernelError::Extents { kernel, name, rows, cols });
        };
        let tile = TileType::tile(dtype, rows, cols);
        self.push_param(name, ParamKind::Tensor { direction, tile }, tile)
    }

    /// A scalar.
    ///
    /// # Errors
    /// The name is none.
    pub fn scalar(&mut self, name: &str, dtype: DType) -> Result<TileValue, KernelError> {
        self.push_param(name, ParamKind::Scalar(dtype), TileType::scalar(dtype))
    }

    /// The type of an operand.
    #[must_use]
    pub fn type_of(&self, operand: TileValue) -> TileType {
        self.types[usize::from(operand.0)]
    }

    fn mistake(&self, op: &Op, mistake: Mistake) -> KernelError {
        let shown = op.operands().into_iter().flatten().map(|id| self.shown(id));
        let operands = shown.collect::<Vec<_>>().join(", ");
        KernelError::Op { kernel: self.name.clone(), op: op.name(), operands, mistake }
    }

    /// An operand in an error: a parameter by name, a result by type.
    fn shown(&self, id: ValueId) -> String {
        let number = usize::from(id.0);
        let tile = self.types.get(number).map_or(String::new(), ToString::to_string);
        self.params.get(number).map_or(tile.clone(), |param| format!("{}: {tile}", param.name))
    }

    /// Whether the kernel may read what an instruction reads.
    fn check_reads(&self, op: &Op) -> Result<(), Mistake> {
        for id in op.operands().into_iter().flatten() {
            let param = self.params.get(usize::from(id.0)).and_then(Param::tensor);
            if let Some((direction, _)) = param.filter(|(direction, _)| !direction.is_read()) {
                return Err(Mistake::Direction(u8::try_from(id.0).unwrap_or(u8::MAX), direction));
            }
        }
        Ok(())
    }

    /// Adds an instruction; the result of one without a result is its own number, of no use.
    fn push(&mut self, op: Op) -> Result<TileValue, KernelError> {
        let checked = self.check_reads(&op).and_then(|()| infer(&op, &self.types, &self.params));
        let tile = checked.map_err(|mistake| self.mistake(&op, mistake))?;
        self.ops.push(op);
        if self.ops.len() > limits::OPS {
            return Err(self.rejected(Rejected::Ops(self.ops.len())));
        }
        Ok(tile.map_or(TileValue(u16::MAX), |tile| self.push_type(tile)))
    }

    fn param_number(&self, operand: TileValue) -> u8 {
        u8::try_from(operand.0).unwrap_or(u8::MAX)
    }

    /// Reads a tensor now, from an offset on; where the mask is zero, the element is 0.
    ///
    /// # Errors
    /// The operand is no tensor, or the mask has another shape.
    pub fn load(
        &mut self,
        tensor: TileValue,
        offset: [u16; 2],
        mask: Option<TileValue>,
    ) -> Result<TileValue, KernelError> {
        let mask = self.mask(mask)?;
        self.push(Op::Load { param: self.param_number(tensor), offset, mask })
    }

    /// Writes a tensor from an offset on, where the mask is not zero. Another element type is converted.
    ///
    /// # Errors
    /// The target is no tensor that may be written, or a shape differs.
    pub fn store(
        &mut self,
        tensor: TileValue,
        source: TileValue,
        offset: [u16; 2],
        mask: Option<TileValue>,
    ) -> Result<(), KernelError> {
        let mask = self.mask(mask)?;
        let source = self.converted(source, self.type_of(tensor).dtype)?;
        let param = self.param_number(tensor);
        self.push(Op::Store { param, source: ValueId(source.0), offset, mask }).map(drop)
    }

    /// A mask as `u8`: 1 where it is not zero.
    fn mask(&mut self, mask: Option<TileValue>) -> Result<Option<ValueId>, KernelError> {
        let Some(mask) = mask else { return Ok(None) };
        let dtype = self.type_of(mask).dtype;
        if dtype == DType::U8 {
            return Ok(Some(ValueId(mask.0)));
        }
        let zero = self.push(Op::Constant { dtype, bits: 0 })?;
        self.compare(Compare::NotEqual, mask, zero).map(|mask| Some(ValueId(mask.0)))
    }

    /// A scalar constant: the number, converted as a conversion would.
    ///
    /// # Errors
    /// The kernel is too long.
    pub fn constant(&mut self, value: f64, dtype: DType) -> Result<TileValue, KernelError> {
        self.constant_bits(super::text::bits_of(value, dtype), dtype)
    }

    /// A scalar constant by its bits.
    ///
    /// # Errors
    /// There are more bits than the type has.
    pub fn constant_bits(&mut self, bits: u64, dtype: DType) -> Result<TileValue, KernelError> {
        self.push(Op::Constant { dtype, bits })
    }

    /// A tile of zeros.
    ///
    /// # Errors
    /// An extent is zero.
    pub fn zeros(&mut self, dtype: DType, shape: [u16; 2]) -> Result<TileValue, KernelError> {
        self.push(Op::Zeros { dtype, shape })
    }

    /// A row 0, 1, 2, ..
    ///
    /// # Errors
    /// The extent is zero.
    pub fn iota(&mut self, dtype: DType, cols: u16) -> Result<TileValue, KernelError> {
        self.push(Op::Iota { dtype, cols })
    }

    /// A function of each element.
    ///
    /// # Errors
    /// The function is not defined for the type.
    pub fn unary(&mut self, function: Unary, x: TileValue) -> Result<TileValue, KernelError> {
        self.push(Op::Unary { function, x: ValueId(x.0) })
    }

    /// The element type of a pair: of two tiles the one that holds both, of a tile and a scalar that of the tile.
    fn common(&self, a: TileValue, b: TileValue) -> DType {
        let (a, b) = (self.type_of(a), self.type_of(b));
        match (a.is_scalar, b.is_scalar) {
            (true, false) => b.dtype,
            (false, true) => a.dtype,
            _ => wider(a.dtype, b.dtype),
        }
    }

    fn converted(&mut self, x: TileValue, dtype: DType) -> Result<TileValue, KernelError> {
        if self.type_of(x).dtype == dtype {
            return Ok(x);
        }
        self.push(Op::Convert { dtype, x: ValueId(x.0) })
    }

    /// A function of pairs of elements. The result has the element type of the first operand, or of the tile where one operand is a scalar.
    ///
    /// # Errors
    /// The shapes do not go together.
    pub fn binary(
        &mut self,
        function: Binary,
        a: TileValue,
        b: TileValue,
    ) -> Result<TileValue, KernelError> {
        let found = spread(self.type_of(a), self.type_of(b));
        let spread = found.ok_or_else(|| self.shapes(function.name(), a, b))?;
        self.spread(function, a, b, spread)
    }

    /// As [`Self::binary`], where the second operand has one element for each row or column, as `spread` says.
    ///
    /// # Errors
    /// The shapes do not allow that.
    pub fn spread(
        &mut self,
        function: Binary,
        a: TileValue,
        b: TileValue,
        spread: Spread,
    ) -> Result<TileValue, KernelError> {
        let given = self.type_of(if spread == Spread::FirstOne { b } else { a }).dtype;
        let common = self.common(a, b);
        let (a, b) = (self.converted(a, common)?, self.converted(b, common)?);
        let result =
            self.push(Op::Binary { function, a: ValueId(a.0), b: ValueId(b.0), spread })?;
        self.converted(result, given)
    }

    /// A comparison: 1 or 0 in `u8`.
    ///
    /// # Errors
    /// The shapes do not go together.
    pub fn compare(
        &mut self,
        function: Compare,
        a: TileValue,
        b: TileValue,
    ) -> Result<TileValue, KernelError> {
        let found = spread(self.type_of(a), self.type_of(b));
        let spread = found.ok_or_else(|| self.shapes(function.name(), a, b))?;
        let common = self.common(a, b);
        let (a, b) = (self.converted(a, common)?, self.converted(b, common)?);
        self.push(Op::Compare { function, a: ValueId(a.0), b: ValueId(b.0), spread })
    }

    fn shapes(&self, op: &'static str, a: TileValue, b: TileValue) -> KernelError {
        let (a, b) = (self.type_of(a), self.type_of(b));
        KernelError::Shapes { kernel: self.name.clone(), op, a, b }
    }

    /// `a` where the mask is not zero, `b` elsewhere.
    ///
    /// # Errors
    /// The types or shapes differ.
    pub fn select(
        &mut self,
        mask: TileValue,
        a: TileValue,
        b: TileValue,
    ) -> Result<TileValue, KernelError> {
        let mask = self.mask(Some(mask))?.unwrap_or(ValueId(mask.0));
        self.push(Op::Select { mask, a: ValueId(a.0), b: ValueId(b.0) })
    }

    /// A reduction.
    ///
    /// # Errors
    /// The operand is a scalar.
    pub fn reduce(&mut self, function: Reduce, x: TileValue) -> Result<TileValue, KernelError> {
        self.push(Op::Reduce { function, x: ValueId(x.0) })
    }

    /// Converts to another element type.
    ///
    /// # Errors
    /// The kernel is too long.
    pub fn convert(&mut self, dtype: DType, x: TileValue) -> Result<TileValue, KernelError> {
        self.push(Op::Convert { dtype, x: ValueId(x.0) })
    }

    /// A product, plus `acc` if there is one.
    ///
    /// # Errors
    /// The shapes or types do not go together.
    pub fn matmul(
        &mut self,
        a: TileValue,
        b: TileValue,
        acc: Option<TileValue>,
    ) -> Result<TileValue, KernelError> {
        let acc = acc.map(|acc| ValueId(acc.0));
        self.push(Op::Matmul { a: ValueId(a.0), b: ValueId(b.0), acc, moves: Moves::default() })
    }

    /// Every second column, from the first or the second on.
    ///
    /// # Errors
    /// The number of columns is odd.
    pub fn slice(&mut self, x: TileValue, is_odd: bool) -> Result<TileValue, KernelError> {
        let x = ValueId(x.0);
        self.push(if is_odd { Op::SliceOdd { x } } else { Op::SliceEven { x } })
    }

    /// Columns of `a` and `b` in turn.
    ///
    /// # Errors
    /// The types differ.
    pub fn interleave(&mut self, a: TileValue, b: TileValue) -> Result<TileValue, KernelError> {
        self.push(Op::Interleave { a: ValueId(a.0), b: ValueId(b.0) })
    }

    /// A larger shape.
    ///
    /// # Errors
    /// An extent is neither kept nor 1.
    pub fn broadcast(&mut self, x: TileValue, shape: [u16; 2]) -> Result<TileValue, KernelError> {
        self.push(Op::Broadcast { x: ValueId(x.0), shape })
    }

    /// Sorts 32 scores with their indices.
    ///
    /// # Errors
    /// The operands are not `f32[1, 32]` and `u32[1, 32]`.
    pub fn sort32(
        &mut self,
        scores: TileValue,
        indices: TileValue,
    ) -> Result<TileValue, KernelError> {
        self.push(Op::Sort32 { scores: ValueId(scores.0), indices: ValueId(indices.0) })
    }

    /// The indices of the first `k` pairs.
    ///
    /// # Errors
    /// `k` is not between 1 and 32.
    pub fn topk(&mut self, pairs: TileValue, k: u16) -> Result<TileValue, KernelError> {
        self.push(Op::TopK { pairs: ValueId(pairs.0), k })
    }

    /// Adds to the cycles that the kernel reports.
    ///
    /// # Errors
    /// The operand is not an integer scalar.
    pub fn add_cycles(&mut self, x: TileValue) -> Result<(), KernelError> {
        self.push(Op::AddCycles { x: ValueId(x.0) }).map(drop)
    }

    /// The kernel.
    ///
    /// # Errors
    /// It stores nothing, or is too large.
    pub fn finish(self) -> Result<TileKernel, KernelError> {
        if !self.ops.iter().any(|op| matches!(op, Op::Store { .. })) {
            return Err(KernelError::StoresNothing(self.name));
        }
        let name = Name::new(&self.name).ok_or_else(|| KernelError::Name {
            kernel: self.name.clone(),
            name: self.name.clone(),
        })?;
        let ops = lower::lower(&self.params, &self.ops);
        let code = pto_aicore_kernels::tile::Kernel::check(name, &self.params, &ops);
        code.map(TileKernel::new)
            .map_err(|rejected| KernelError::Rejected { kernel: self.name, rejected })
    }
}

/// The type that holds the elements of both: floats before integers, `f32` for two kinds of half, the wider, the signed.
fn wider(a: DType, b: DType) -> DType {
    match (a.is_float(), b.is_float()) {
        _ if a == b => a,
        (true, false) => a,
        (false, true) => b,
        (true, true) if a == DType::F64 || b == DType::F64 => DType::F64,
        (true, true) => DType::F32,
        (false, false) if a.bytes() != b.bytes() => {
            if a.bytes() > b.bytes() {
                a
            } else {
                b
            }
        }
        (false, false) => {
            if a.is_unsigned() {
                b
            } else {
                a
            }
        }
    }
}
