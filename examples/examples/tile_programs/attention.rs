//! Attention over sequences of different lengths that lie one after the other. A task takes up to 8 queries of a sequence and all of its keys. Where
//! a sequence ends inside of a tile, the tile is partial. Other lengths need no other program: the device reads them when it reaches them.

use pto_host::workloads::tile::{Binary, DType, Direction, Reduce, Unary};
use pto_host::workloads::{KernelBuilder, TileKernel};

use crate::program::{Outcome, Program, numbers, wide};

const ROWS: usize = 8;
const WIDTH: usize = 16;
const LONGEST: usize = 40;
const TOTAL: usize = 96;
const F32: DType = DType::F32;

fn attend() -> Outcome<TileKernel> {
    let [rows, width, longest] = [ROWS, WIDTH, LONGEST].map(|extent| extent as u64);
    let mut k = KernelBuilder::new("attend");
    let q = k.tensor("q", Direction::In, F32, [rows, width])?;
    let keys = k.tensor("keys", Direction::In, F32, [width, longest])?;
    let values = k.tensor("values", Direction::In, F32, [longest, width])?;
    let out = k.tensor("out", Direction::Out, F32, [rows, width])?;
    let scale = k.constant(0.25, F32)?;
    let products = k.matmul(q, keys, None)?;
    let scores = k.binary(Binary::Mul, products, scale)?;
    let most = k.reduce(Reduce::RowMax, scores)?;
    let below = k.binary(Binary::Sub, scores, most)?;
    let powers = k.unary(Unary::Exp, below)?;
    let sum = k.reduce(Reduce::RowSum, powers)?;
    let weights = k.binary(Binary::Div, powers, sum)?;
    let result = k.matmul(weights, values, None)?;
    k.store(out, result, [0, 0], None)?;
    Ok(k.finish()?)
}

pub(crate) fn program(seed: u64) -> Outcome<Program> {
    with_lengths(seed, [13, 1, 40, 22])
}

pub(crate) fn with_lengths(seed: u64, lengths: [usize; 4]) -> Outcome<Program> {
    let attend = attend()?;
    let (begin, end) = ("slot_i64(0)", "slot_i64(1)");
    let queries = format!("{begin} + tile * 8 for {end} - {begin} - tile * 8");
    let keys = format!("{begin} for {end} - {begin}");
    let text = format!(
        "workload attention {{
  schedule round_robin workers 4 window 8192 stall
  tensor ENDS : i32[4, 2]
  tensor Q : f32[{TOTAL}, {WIDTH}]
  tensor K : f32[{WIDTH}, {TOTAL}]
  tensor V : f32[{TOTAL}, {WIDTH}]
  tensor OUT : f32[{TOTAL}, {WIDTH}]
  {attend}
  do parallel t (row, tile) in ragged(sequences, tiles) {{
    sequential {{
      slot 0 from ENDS[row for 1] at (0, 0)
      slot 1 from ENDS[row for 1] at (0, 1)
      attend[t](q = Q[{queries}], keys = K[0 for {WIDTH}, {keys}], values = V[{keys}], out = OUT[{queries}])
    }}
  }}
}}"
    );
    let mut program = Program::new("attention", &text, "OUT")?;
    let [q, keys, values] = [0, 1, 2].map(|which| numbers(3 * seed + which, TOTAL * WIDTH));
    let (mut ends, mut expected, mut begin) = (Vec::new(), vec![0.0; TOTAL * WIDTH], 0);
    for length in lengths {
        let end = begin + length;
        ends.extend([i32::try_from(begin)?, i32::try_from(end)?]);
        for row in begin..end {
            let result = &mut expected[row * WIDTH..(row + 1) * WIDTH];
            one_query(&wide(&q), &wide(&keys), &wide(&values), row, begin..end, result);
        }
        begin = end;
    }
    let tiles = lengths.map(|length| length.div_ceil(ROWS));
    let lengths_in_tiles = tiles.into_iter().map(i32::try_from).collect::<Result<_, _>>()?;
    program.expected = expected;
    program.tasks = tiles.iter().sum::<usize>() as u64;
    program.floats = vec![("Q", q), ("K", keys), ("V", values), ("OUT", vec![0.0; TOTAL * WIDTH])];
    program.integers = vec![("ENDS", ends)];
    program.arrays = vec![("tiles", lengths_in_tiles)];
    program.symbols = vec![("sequences", lengths.len() as u64)];
    Ok(program)
}

/// The same for one query, in `f64`.
fn one_query(
    q: &[f64],
    keys: &[f64],
    values: &[f64],
    row: usize,
    sequence: std::ops::Range<usize>,
    result: &mut [f64],
) {
    let score =
        |at: usize| (0..WIDTH).map(|i| q[row * WIDTH + i] * keys[i * TOTAL + at]).sum::<f64>();
    let powers: Vec<f64> = sequence.clone().map(|at| (score(at) / 4.0).exp()).collect();
    let sum: f64 = powers.iter().sum();
    for (at, power) in sequence.zip(&powers) {
        for (result, value) in result.iter_mut().zip(&values[at * WIDTH..]) {
            *result += power / sum * value;
        }
    }
}
