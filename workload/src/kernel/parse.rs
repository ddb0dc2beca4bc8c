//! The textual form of a kernel, read. What was printed reads as the same kernel.

use pto_abi::numbers::Counted;

use crate::lexer::ParseError;
use crate::lexer::{Lexer, Token};
use pto_aicore_kernels::tile::op::Moves;
use pto_aicore_kernels::tile::{
    Binary, Compare, DType, Direction, Kernel, Name, Op, Param, ParamKind, Reduce, Spread,
    TileType, Unary, ValueId, infer,
};

use super::text;
use crate::kernel::tile_kernel::TileKernel;

impl TileKernel {
    /// Reads the textual form.
    ///
    /// # Errors
    /// Where the text is not a kernel, or the kernel is wrong.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        kernel_alone(text)
    }

    /// Reads a text of several kernels, one after the other.
    ///
    /// # Errors
    /// Where the text is no kernel, a kernel is wrong, or two have one name.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, ParseError> {
        let mut lexer = Lexer::new(text)?;
        let mut kernels: Vec<Self> = Vec::new();
        while kernels.is_empty() || *lexer.peek() != Token::End {
            let found = kernel(&mut lexer)?;
            if kernels.iter().any(|known| known.name() == found.name()) {
                let message = format!("there are two kernels `{}`", found.name());
                return Err(lexer.error_before(message));
            }
            kernels.push(found);
        }
        Ok(kernels)
    }
}

/// A text that is a kernel and nothing else.
fn kernel_alone(text: &str) -> Result<TileKernel, ParseError> {
    let mut lexer = Lexer::new(text)?;
    let found = kernel(&mut lexer)?;
    match lexer.peek() {
        Token::End => Ok(found),
        other => Err(lexer.error(format!("expected the end of the text, found {other}"))),
    }
}

/// A kernel.
pub(crate) fn kernel(lexer: &mut Lexer) -> Result<TileKernel, ParseError> {
    lexer.keyword("kernel")?;
    let name = checked_name(lexer)?;
    let params = params(lexer)?;
    lexer.mark("{")?;
    let mut body = KernelBody { params: &params, types: Vec::new(), ops: Vec::new() };
    while !lexer.takes("}") {
        body.line(lexer)?;
    }
    let code = Kernel::check(name, &params, &body.ops);
    code.map(TileKernel::new).map_err(|rejected| lexer.error_before(rejected.to_string()))
}

fn checked_name(lexer: &mut Lexer) -> Result<Name, ParseError> {
    let text = lexer.name()?;
    Name::new(&text).ok_or_else(|| lexer.error_before(format!("`{text}` is too long for a name")))
}

fn params(lexer: &mut Lexer) -> Result<Vec<Param>, ParseError> {
    lexer.mark("(")?;
    let mut params = Vec::new();
    while !lexer.takes(")") {
        if !params.is_empty() {
            lexer.mark(",")?;
        }
        let name = checked_name(lexer)?;
        lexer.mark(":")?;
        let direction =
            Direction::ALL.into_iter().find(|direction| lexer.takes_name(direction.name()));
        let tile = tile_type(lexer)?;
        let kind = match (direction, tile.is_scalar) {
            (Some(direction), false) => ParamKind::Tensor { direction, tile },
            (None, true) => ParamKind::Scalar(tile.dtype),
            _ => return Err(lexer.error_before("a tile has a direction, and a scalar has none")),
        };
        params.push(Param { name, kind });
    }
    Ok(params)
}

pub(crate) fn dtype(lexer: &mut Lexer) -> Result<DType, ParseError> {
    let text = lexer.name()?;
    DType::from_name(&text)
        .ok_or_else(|| lexer.error_before(format!("`{text}` is no element type")))
}

fn tile_type(lexer: &mut Lexer) -> Result<TileType, ParseError> {
    let dtype = dtype(lexer)?;
    if !lexer.takes("[") {
        return Ok(TileType::scalar(dtype));
    }
    let rows = lexer.unsigned()?;
    lexer.mark(",")?;
    let cols = lexer.unsigned()?;
    lexer.mark("]")?;
    Ok(TileType::tile(dtype, rows, cols))
}

fn value(lexer: &mut Lexer) -> Result<ValueId, ParseError> {
    match lexer.next() {
        Token::Value(number) => Ok(ValueId(number)),
        other => Err(lexer.error_before(format!("expected a value such as `%0`, found {other}"))),
    }
}

/// What an instruction has before its type is known.
struct InstructionHead {
    name: String,
    param: Option<u8>,
    operands: Vec<ValueId>,
    literal: Option<String>,
    bits: Option<u64>,
    count: u16,
    offset: [u16; 2],
    mask: Option<ValueId>,
    acc: Option<ValueId>,
    spread: Spread,
    moves: Moves,
}

impl InstructionHead {
    const fn new(name: String) -> Self {
        let moves = Moves { left: false, right: false, result: false };
        Self {
            name,
            param: None,
            operands: Vec::new(),
            literal: None,
            bits: None,
            count: 0,
            offset: [0, 0],
            mask: None,
            acc: None,
            spread: Spread::Same,
            moves,
        }
    }
}

/// The instructions so far.
struct KernelBody<'a> {
    params: &'a [Param],
    types: Vec<TileType>,
    ops: Vec<Op>,
}

impl KernelBody<'_> {
    fn line(&mut self, lexer: &mut Lexer) -> Result<(), ParseError> {
        let result = match lexer.peek() {
            Token::Value(number) => Some(*number),
            _ => None,
        };
        if let Some(number) = result {
            lexer.next();
            if usize::from(number) != self.types.len() {
                let expected = self.types.len();
                return Err(lexer.error_before(format!("the next value is %{expected}")));
            }
            lexer.mark("=")?;
        }
        let line = self.operation(lexer)?;
        let stated = if lexer.takes(":") { Some(tile_type(lexer)?) } else { None };
        let op = line.op(stated).map_err(|message| lexer.error_before(message))?;
        let inferred = infer(&op, &self.types, self.params);
        let inferred = inferred.map_err(|mistake| lexer.error_before(mistake.to_string()))?;
        if inferred != stated || stated.is_some() != result.is_some() {
            let shown =
                |tile: Option<TileType>| tile.map_or("none".to_owned(), |tile| tile.to_string());
            let message = format!(
                "`{}` gives {}, and the text says {}",
                op.name(),
                shown(inferred),
                shown(stated)
            );
            return Err(lexer.error_before(message));
        }
        self.types.extend(inferred);
        self.ops.push(op);
        Ok(())
    }

    fn operation(&self, lexer: &mut Lexer) -> Result<InstructionHead, ParseError> {
        let mut line = InstructionHead::new(lexer.name()?);
        if matches!(line.name.as_str(), "load" | "store" | "scalar") {
            line.param = Some(self.param(lexer)?);
            if line.name == "store" {
                lexer.mark(",")?;
            }
        }
        if line.name == "constant" {
            if lexer.takes_name("bits") {
                line.bits = Some(lexer.unsigned()?);
            } else {
                line.literal = Some(lexer.signed_text()?);
            }
        }
        while matches!(lexer.peek(), Token::Value(_)) && self.is_operand(lexer) {
            line.operands.push(value(lexer)?);
            if !lexer.takes(",") {
                break;
            }
        }
        if line.name == "topk" {
            line.count = lexer.unsigned()?;
        }
        line.rest(lexer)?;
        Ok(line)
    }

    /// Whether the next value is an operand, and not the beginning of the next line.
    fn is_operand(&self, lexer: &Lexer) -> bool {
        !matches!(lexer.ahead(1), Token::Mark("="))
    }

    fn param(&self, lexer: &mut Lexer) -> Result<u8, ParseError> {
        let name = lexer.name()?;
        let found = self.params.iter().position(|param| param.name.as_str() == name);
        found
            .and_then(|number| u8::try_from(number).ok())
            .ok_or_else(|| lexer.error_before(format!("the kernel has no parameter `{name}`")))
    }
}

impl InstructionHead {
    /// What follows the operands.
    fn rest(&mut self, lexer: &mut Lexer) -> Result<(), ParseError> {
        loop {
            if lexer.takes_name("at") {
                lexer.mark("[")?;
                let row = lexer.unsigned()?;
                lexer.mark(",")?;
                self.offset = [row, lexer.unsigned()?];
                lexer.mark("]")?;
            } else if lexer.takes_name("mask") {
                self.mask = Some(value(lexer)?);
            } else if lexer.takes_name("acc") {
                self.acc = Some(value(lexer)?);
            } else if lexer.takes_name("by") {
                let name = lexer.name()?;
                let found = Spread::from_name(&name);
                self.spread = found
                    .ok_or_else(|| lexer.error_before(format!("`{name}` is no way to spread")))?;
            } else if lexer.takes_name("move") {
                let which = [&mut self.moves.left, &mut self.moves.right, &mut self.moves.result];
                let names = ["left", "right", "result"];
                let moved = names.into_iter().zip(which).find(|(name, _)| lexer.takes_name(name));
                let (_, is_moved) =
                    moved.ok_or_else(|| lexer.error("expected `left`, `right` or `result`"))?;
                *is_moved = true;
            } else {
                return Ok(());
            }
        }
    }

    fn operand(&self, number: usize) -> Result<ValueId, String> {
        let found = self.operands.get(number).copied();
        found.ok_or_else(|| format!("`{}` has too few operands", self.name))
    }

    /// The instruction, of which `stated` is the type of the result.
    fn op(&self, stated: Option<TileType>) -> Result<Op, String> {
        let op = self.known(stated)?;
        let taken = op.operands().into_iter().flatten().count();
        let given = self.operands.len()
            + usize::from(self.mask.is_some())
            + usize::from(self.acc.is_some());
        if taken != given {
            let given = Counted(given as u64, "operand");
            return Err(format!("`{}` has {given} and takes {taken}", self.name));
        }
        Ok(op)
    }

    fn known(&self, stated: Option<TileType>) -> Result<Op, String> {
        let tile = || stated.ok_or_else(|| format!("`{}` needs a type", self.name));
        let param = || self.param.ok_or_else(|| "a parameter is missing".to_owned());
        let (offset, mask, spread) = (self.offset, self.mask, self.spread);
        Ok(match self.name.as_str() {
            "load" => Op::Load { param: param()?, offset, mask },
            "store" => Op::Store { param: param()?, source: self.operand(0)?, offset, mask },
            "scalar" => Op::Scalar { param: param()? },
            "constant" => {
                Op::Constant { dtype: tile()?.dtype, bits: self.constant(tile()?.dtype)? }
            }
            "zeros" => Op::Zeros { dtype: tile()?.dtype, shape: [tile()?.rows, tile()?.cols] },
            "iota" => Op::Iota { dtype: tile()?.dtype, cols: tile()?.cols },
            "select" => {
                Op::Select { mask: self.operand(0)?, a: self.operand(1)?, b: self.operand(2)? }
            }
            "convert" => Op::Convert { dtype: tile()?.dtype, x: self.operand(0)? },
            "matmul" => {
                let (a, b) = (self.operand(0)?, self.operand(1)?);
                Op::Matmul { a, b, acc: self.acc, moves: self.moves }
            }
            "slice_even" => Op::SliceEven { x: self.operand(0)? },
            "slice_odd" => Op::SliceOdd { x: self.operand(0)? },
            "interleave" => Op::Interleave { a: self.operand(0)?, b: self.operand(1)? },
            "broadcast" => {
                Op::Broadcast { x: self.operand(0)?, shape: [tile()?.rows, tile()?.cols] }
            }
            "sort32" => Op::Sort32 { scores: self.operand(0)?, indices: self.operand(1)? },
            "topk" => Op::TopK { pairs: self.operand(0)?, k: self.count },
            "add_cycles" => Op::AddCycles { x: self.operand(0)? },
            name => return self.function(name, spread),
        })
    }

    fn function(&self, name: &str, spread: Spread) -> Result<Op, String> {
        if let Some(function) = Unary::from_name(name) {
            return Ok(Op::Unary { function, x: self.operand(0)? });
        }
        if let Some(function) = Reduce::from_name(name) {
            return Ok(Op::Reduce { function, x: self.operand(0)? });
        }
        let pair = || Ok::<_, String>((self.operand(0)?, self.operand(1)?));
        if let Some(function) = Binary::from_name(name) {
            let (a, b) = pair()?;
            return Ok(Op::Binary { function, a, b, spread });
        }
        if let Some(function) = Compare::from_name(name) {
            let (a, b) = pair()?;
            return Ok(Op::Compare { function, a, b, spread });
        }
        Err(format!("there is no instruction `{name}`"))
    }

    fn constant(&self, dtype: DType) -> Result<u64, String> {
        if let Some(bits) = self.bits {
            return Ok(bits);
        }
        let text = self.literal.as_deref().unwrap_or("");
        text::literal_bits(text, dtype).ok_or_else(|| format!("{dtype} has no number {text}"))
    }
}
