//! The softmax of each row, in three phases over tiles of 8 rows and 32 columns, the last of which are partial: the largest element of each row,
//! the sum of the powers, the quotient. The check fails where a tile was left out, because every element of a softmax is above zero.

use pto_host::workloads::tile::{Binary, DType, Direction, Reduce, Unary};
use pto_host::workloads::{KernelBuilder, TileKernel};

use crate::program::{Outcome, Program, numbers};

const ROWS: usize = 28;
pub(crate) const COLS: usize = 80;
const F32: DType = DType::F32;
const TILE: [u64; 2] = [8, 32];
const COLUMN: [u64; 2] = [8, 1];

fn largest() -> Outcome<TileKernel> {
    let mut k = KernelBuilder::new("largest");
    let x = k.tensor("x", Direction::In, F32, TILE)?;
    let most = k.tensor("most", Direction::InOut, F32, COLUMN)?;
    let own = k.reduce(Reduce::RowMax, x)?;
    let both = k.binary(Binary::Max, most, own)?;
    k.store(most, both, [0, 0], None)?;
    Ok(k.finish()?)
}

fn power() -> Outcome<TileKernel> {
    let mut k = KernelBuilder::new("power");
    let x = k.tensor("x", Direction::In, F32, TILE)?;
    let most = k.tensor("most", Direction::In, F32, COLUMN)?;
    let sum = k.tensor("sum", Direction::InOut, F32, COLUMN)?;
    let y = k.tensor("y", Direction::Out, F32, TILE)?;
    let below = k.binary(Binary::Sub, x, most)?;
    let power = k.unary(Unary::Exp, below)?;
    let own = k.reduce(Reduce::RowSum, power)?;
    let both = k.binary(Binary::Add, sum, own)?;
    k.store(y, power, [0, 0], None)?;
    k.store(sum, both, [0, 0], None)?;
    Ok(k.finish()?)
}

fn quotient() -> Outcome<TileKernel> {
    let mut k = KernelBuilder::new("quotient");
    let y = k.tensor("y", Direction::InOut, F32, TILE)?;
    let sum = k.tensor("sum", Direction::In, F32, COLUMN)?;
    let quotient = k.binary(Binary::Div, y, sum)?;
    k.store(y, quotient, [0, 0], None)?;
    Ok(k.finish()?)
}

pub(crate) fn program(seed: u64) -> Outcome<Program> {
    let (largest, power, quotient) = (largest()?, power()?, quotient()?);
    let tile = "r * 8 for 8, c * 32 for 32";
    let text = format!(
        "workload softmax {{
  schedule round_robin workers 4 window 8192 stall
  tensor X : f32[{ROWS}, {COLS}]
  tensor MOST : f32[{ROWS}, 1]
  tensor SUM : f32[{ROWS}, 1]
  tensor Y : f32[{ROWS}, {COLS}]
  {largest}
  {power}
  {quotient}
  do sequential {{
    parallel r in dense 4 {{ each c in dense 3 {{ largest[r, c](x = X[{tile}], most = MOST[r * 8 for 8]) }} }}
    parallel r in dense 4 {{ each c in dense 3 {{ power[r, c](x = X[{tile}], most = MOST[r * 8 for 8], sum = SUM[r * 8 for 8], y = Y[{tile}]) }} }}
    parallel r in dense 4 {{ parallel c in dense 3 {{ quotient[r, c](y = Y[{tile}], sum = SUM[r * 8 for 8]) }} }}
  }}
}}"
    );
    let mut program = Program::new("softmax", &text, "Y")?;
    let x: Vec<f32> = numbers(seed, ROWS * COLS).into_iter().map(|x| 4.0 * x).collect();
    program.expected = x.chunks(COLS).flat_map(of_row).collect();
    program.floats = vec![
        ("X", x),
        ("MOST", vec![f32::NEG_INFINITY; ROWS]),
        ("SUM", vec![0.0; ROWS]),
        ("Y", vec![0.0; ROWS * COLS]),
    ];
    program.tasks = 3 * 4 * 3;
    Ok(program)
}

fn of_row(row: &[f32]) -> Vec<f64> {
    let powers: Vec<f64> = row.iter().map(|x| f64::from(*x).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}
