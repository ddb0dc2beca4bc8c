//! Puts loads, scalars and moves into a kernel whose operands are parameters.
//!
//! - A tensor that an instruction other than a product takes is loaded at the start, in the order of the parameters.
//! - A product loads a tensor where it is; a value of the kernel is moved to the matrix unit.
//! - The result of a product that anything but a product or a store takes is moved from the matrix unit, once.

use pto_aicore_kernels::tile::op::Moves;
use pto_aicore_kernels::tile::{Op, Param, ParamKind, ValueId};

/// The instructions, whose operands are values.
pub(super) fn lower(params: &[Param], ops: &[Op]) -> Vec<Op> {
    let mut lowered =
        Lowered { params, places: vec![None; params.len()], ops: Vec::new(), values: 0 };
    for number in 0..params.len() {
        lowered.start(number, ops);
    }
    let mut defined = params.len();
    for op in ops {
        let moves = moves(op, params, ops, defined);
        lowered.op(op, moves);
        defined += usize::from(has_result(op));
    }
    lowered.ops
}

const fn has_result(op: &Op) -> bool {
    !matches!(op, Op::Store { .. } | Op::AddCycles { .. })
}

fn reads(op: &Op, number: usize) -> bool {
    op.operands().into_iter().flatten().any(|id| usize::from(id.0) == number)
}

/// The moves of a product whose result is the operand `defined`.
fn moves(op: &Op, params: &[Param], ops: &[Op], defined: usize) -> Moves {
    let Op::Matmul { a, b, .. } = op else { return Moves::default() };
    let is_local = |id: &ValueId| usize::from(id.0) >= params.len();
    let takes =
        |op: &&Op| !matches!(op, Op::Matmul { .. } | Op::Store { .. }) && reads(op, defined);
    Moves { left: is_local(a), right: is_local(b), result: ops.iter().any(|op| takes(&op)) }
}

struct Lowered<'a> {
    params: &'a [Param],
    /// The value of each operand.
    places: Vec<Option<ValueId>>,
    ops: Vec<Op>,
    values: u16,
}

impl Lowered<'_> {
    fn push(&mut self, op: Op) -> ValueId {
        let value = ValueId(self.values);
        self.values += u16::from(has_result(&op));
        self.ops.push(op);
        value
    }

    /// What a parameter needs at the start.
    fn start(&mut self, number: usize, ops: &[Op]) {
        let param = u8::try_from(number).unwrap_or(u8::MAX);
        let is_used = |op: &&Op| reads(op, number);
        let is_loaded = |op: &&Op| match op {
            Op::Matmul { acc, .. } => acc.is_some_and(|acc| usize::from(acc.0) == number),
            op => reads(op, number),
        };
        let first = match self.params[number].kind {
            ParamKind::Scalar(_) if ops.iter().any(|op| is_used(&op)) => Op::Scalar { param },
            ParamKind::Tensor { .. } if ops.iter().any(|op| is_loaded(&op)) => {
                Op::Load { param, offset: [0, 0], mask: None }
            }
            _ => return,
        };
        self.places[number] = Some(self.push(first));
    }

    fn mapped(&self, id: ValueId) -> ValueId {
        // Every operand of a checked instruction is mapped by now.
        self.places[usize::from(id.0)].unwrap_or(ValueId(u16::MAX))
    }

    /// The operand of a product: a tensor is loaded here.
    fn factor(&mut self, id: ValueId) -> ValueId {
        let number = usize::from(id.0);
        match self.params.get(number).and_then(Param::tensor) {
            Some(_) => {
                let param = u8::try_from(number).unwrap_or(u8::MAX);
                self.push(Op::Load { param, offset: [0, 0], mask: None })
            }
            None => self.mapped(id),
        }
    }

    fn op(&mut self, op: &Op, moves: Moves) {
        let lowered = match *op {
            Op::Matmul { a, b, acc, .. } => {
                let (a, b) = (self.factor(a), self.factor(b));
                Op::Matmul { a, b, acc: acc.map(|acc| self.mapped(acc)), moves }
            }
            _ => self.renamed(op),
        };
        let value = self.push(lowered);
        if has_result(op) {
            self.places.push(Some(value));
        }
    }

    /// The instruction with values instead of operands.
    fn renamed(&self, op: &Op) -> Op {
        let mut renamed = *op;
        let at = |id: &mut ValueId| *id = self.mapped(*id);
        match &mut renamed {
            Op::Load { mask, .. } => mask.iter_mut().for_each(at),
            Op::Store { source, mask, .. } => {
                at(source);
                mask.iter_mut().for_each(at);
            }
            Op::Unary { x, .. }
            | Op::Reduce { x, .. }
            | Op::Convert { x, .. }
            | Op::SliceEven { x }
            | Op::SliceOdd { x }
            | Op::Broadcast { x, .. }
            | Op::AddCycles { x } => at(x),
            Op::Binary { a, b, .. } | Op::Compare { a, b, .. } | Op::Interleave { a, b } => {
                at(a);
                at(b);
            }
            Op::Select { mask, a, b } => [mask, a, b].into_iter().for_each(at),
            Op::Matmul { a, b, acc, .. } => {
                at(a);
                at(b);
                acc.iter_mut().for_each(at);
            }
            Op::Sort32 { scores, indices } => {
                at(scores);
                at(indices);
            }
            Op::TopK { pairs, .. } => at(pairs),
            Op::Scalar { .. } | Op::Constant { .. } | Op::Zeros { .. } | Op::Iota { .. } => {}
        }
        renamed
    }
}
