//! A product of matrices in tiles of 16 by 16: rows and columns of tiles in no order, the steps along the inner dimension one after another. The
//! matrices are 40 by 56 and 56 by 24, so that the last tiles of each side are partial.

use pto_host::workloads::KernelBuilder;
use pto_host::workloads::tile::{DType, Direction};

use crate::program::{Outcome, Program, numbers, product, wide};

const T: u64 = 16;
const ROWS: usize = 40;
const INNER: usize = 56;
const COLS: usize = 24;

pub(crate) fn program(seed: u64) -> Outcome<Program> {
    let mut k = KernelBuilder::new("step");
    let x = k.tensor("x", Direction::In, DType::F32, [T, T])?;
    let y = k.tensor("y", Direction::In, DType::F32, [T, T])?;
    let sums = k.tensor("sums", Direction::InOut, DType::F32, [T, T])?;
    let sum = k.matmul(x, y, Some(sums))?;
    k.store(sums, sum, [0, 0], None)?;
    let step = k.finish()?;
    let text = format!(
        "workload product {{
  schedule round_robin workers 4 window 8192 stall
  tensor A : f32[{ROWS}, {INNER}]
  tensor B : f32[{INNER}, {COLS}]
  tensor C : f32[{ROWS}, {COLS}]
  {step}
  do parallel i in dense 3 {{
    parallel j in dense 2 {{
      each n in dense 4 {{
        step[i, j, n](x = A[i * 16 for 16, n * 16 for 16], y = B[n * 16 for 16, j * 16 for 16], sums = C[i * 16 for 16, j * 16 for 16])
      }}
    }}
  }}
}}"
    );
    let mut program = Program::new("product", &text, "C")?;
    let (a, b) = (numbers(seed, ROWS * INNER), numbers(seed + 1, INNER * COLS));
    program.expected = product(&wide(&a), &wide(&b), [ROWS, INNER, COLS]);
    program.floats = vec![("A", a), ("B", b), ("C", vec![0.0; ROWS * COLS])];
    program.tasks = 3 * 2 * 4;
    Ok(program)
}
