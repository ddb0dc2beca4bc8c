//! Which rows and columns of a result count: what counts of the operands decides.

use super::fault::FaultCause;
use super::meet::meet;
use super::op::{Op, Reduce, Spread, TileType, ValueId};
use super::run::KernelRun;

impl KernelRun<'_> {
    /// The rows and columns of a result that count.
    pub(super) fn extents_of(&self, op: &Op, tile: TileType) -> Result<[u16; 2], FaultCause> {
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
    ) -> Result<[u16; 2], FaultCause> {
        let (a, b) = (self.counted(a), self.counted(b));
        let product = [a[0], b[1]];
        let is_product = a[1] == b[0];
        let acc = acc.map_or(product, |acc| self.counted(acc));
        let is_covered = acc[0] >= product[0] && acc[1] >= product[1];
        if is_product && is_covered { Ok(product) } else { Err(FaultCause::Remainders { a, b }) }
    }
}
