//! Two processes and a channel. The first four tiles are quick to make and the rest are slow; the first tile is slow to use. How many tokens the
//! channel holds decides how far the first process may run ahead, and thereby when the last tile is done.

use pto_host::workloads::tile::{DType, Direction};
use pto_host::workloads::{KernelBuilder, TileKernel};

use crate::program::{Outcome, Program, numbers};

const TILES: usize = 10;
const QUICK: usize = 4;
const ROWS: usize = 64;
const COLS: usize = 128;

fn copy(name: &str, tile: [u64; 2]) -> Outcome<TileKernel> {
    let mut k = KernelBuilder::new(name);
    let x = k.tensor("x", Direction::In, DType::F32, tile)?;
    let y = k.tensor("y", Direction::Out, DType::F32, tile)?;
    k.store(y, x, [0, 0], None)?;
    Ok(k.finish()?)
}

pub(crate) fn program(seed: u64) -> Outcome<Program> {
    with_depth(seed, 1)
}

pub(crate) fn with_depth(seed: u64, depth: u64) -> Outcome<Program> {
    let (small, medium, large) =
        (copy("small", [4, 4])?, copy("medium", [64, 64])?, copy("large", [64, 128])?);
    let text = format!(
        "workload pipeline {{
  tensor X : f32[{TILES}, {ROWS}, {COLS}]
  tensor MADE : f32[{TILES}, {ROWS}, {COLS}]
  tensor USED : f32[{TILES}, {ROWS}, {COLS}]
  channel tiles depth {depth}
  {small}
  {medium}
  {large}
  do pipeline {{
    process maker produces tiles {{
      each t in dense {TILES} {{
        if t < {QUICK} {{ send tiles small[t](x = X[t, 0 for 4, 0 for 4], y = MADE[t, 0 for 4, 0 for 4]) }}
        else {{ send tiles large[t](x = X[t], y = MADE[t]) }}
      }}
    }}
    process user consumes tiles {{
      consume tiles as t {{
        if t < 1 {{ large[t](x = MADE[t], y = USED[t]) }}
        else {{ medium[t](x = MADE[t, 0 for 64, 0 for 64], y = USED[t, 0 for 64, 0 for 64]) }}
      }}
    }}
  }}
}}"
    );
    let mut program = Program::new("pipeline", &text, "USED")?;
    let x = numbers(seed, TILES * ROWS * COLS);
    let (made, used) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    // The part of each tile that went through both processes.
    let passes = |at: usize| {
        let (tile, row, col) = (at / (ROWS * COLS), at / COLS % ROWS, at % COLS);
        if tile < QUICK { row < 4 && col < 4 } else { col < 64 }
    };
    let expected = x.iter().enumerate().map(|(at, x)| if passes(at) { f64::from(*x) } else { 0.0 });
    program.expected = expected.collect();
    program.tasks = 2 * TILES as u64;
    program.floats = vec![("X", x), ("MADE", made), ("USED", used)];
    Ok(program)
}
