//! A sparse mixture of experts. A task writes which experts a token needs; the device reads these flags when it gets there, after the task, and
//! calls only those experts. Nothing of it is known before the run.

use pto_host::workloads::tile::{Binary, Compare, DType, Direction, Unary};
use pto_host::workloads::{KernelBuilder, TileKernel};

use crate::program::{Outcome, Program, numbers, product, wide};

const TOKENS: usize = 12;
const WIDTH: usize = 16;
const EXPERTS: usize = 4;
const F32: DType = DType::F32;
const ROW: [u64; 2] = [1, WIDTH as u64];

fn choose() -> Outcome<TileKernel> {
    let mut k = KernelBuilder::new("choose");
    let x = k.tensor("x", Direction::In, F32, ROW)?;
    let gate = k.tensor("gate", Direction::In, F32, [WIDTH as u64, EXPERTS as u64])?;
    let flags = k.tensor("flags", Direction::Out, DType::I32, [1, EXPERTS as u64])?;
    let scores = k.matmul(x, gate, None)?;
    let limit = k.constant(0.5, F32)?;
    let chosen = k.compare(Compare::Greater, scores, limit)?;
    k.store(flags, chosen, [0, 0], None)?;
    Ok(k.finish()?)
}

fn expert() -> Outcome<TileKernel> {
    let mut k = KernelBuilder::new("expert");
    let x = k.tensor("x", Direction::In, F32, ROW)?;
    let weights = k.tensor("weights", Direction::In, F32, [WIDTH as u64; 2])?;
    let y = k.tensor("y", Direction::InOut, F32, ROW)?;
    let product = k.matmul(x, weights, None)?;
    let active = k.unary(Unary::Silu, product)?;
    let sum = k.binary(Binary::Add, y, active)?;
    k.store(y, sum, [0, 0], None)?;
    Ok(k.finish()?)
}

pub(crate) fn program(seed: u64) -> Outcome<Program> {
    let (choose, expert) = (choose()?, expert()?);
    let text = format!(
        "workload experts {{
  schedule round_robin workers 4 window 8192 stall
  tensor X : f32[{TOKENS}, {WIDTH}]
  tensor GATE : f32[{WIDTH}, {EXPERTS}]
  tensor FLAGS : i32[{TOKENS}, {EXPERTS}]
  tensor W : f32[{EXPERTS}, {WIDTH}, {WIDTH}]
  tensor Y : f32[{TOKENS}, {WIDTH}]
  {choose}
  {expert}
  do parallel t in dense {TOKENS} {{
    sequential {{
      choose[t](x = X[t for 1], gate = GATE, flags = FLAGS[t for 1])
      parallel e in dense {EXPERTS} {{
        sequential {{
          slot 0 from FLAGS[t for 1] at (0, e)
          if slot_u64(0) != 0 {{ expert[t, e](x = X[t for 1], weights = W[e], y = Y[t for 1]) }} else {{ empty }}
        }}
      }}
    }}
  }}
}}"
    );
    let mut program = Program::new("experts", &text, "Y")?;
    let (x, gate) = (numbers(seed, TOKENS * WIDTH), numbers(seed + 1, WIDTH * EXPERTS));
    let weights = numbers(seed + 2, EXPERTS * WIDTH * WIDTH);
    let scores = product(&wide(&x), &wide(&gate), [TOKENS, WIDTH, EXPERTS]);
    let mut expected = vec![0.0; TOKENS * WIDTH];
    let mut calls = TOKENS;
    for (at, _) in scores.iter().enumerate().filter(|(_, score)| **score > 0.5) {
        let (token, expert) = (at / EXPERTS, at % EXPERTS);
        let row = wide(&x[token * WIDTH..][..WIDTH]);
        let own = wide(&weights[expert * WIDTH * WIDTH..][..WIDTH * WIDTH]);
        let each = product(&row, &own, [1, WIDTH, WIDTH]);
        for (sum, x) in expected[token * WIDTH..].iter_mut().zip(each) {
            *sum += x / (1.0 + (-x).exp());
        }
        calls += 1;
    }
    (program.expected, program.tasks) = (expected, calls as u64);
    let (flags, y) = (vec![0; TOKENS * EXPERTS], vec![0.0; TOKENS * WIDTH]);
    program.floats = vec![("X", x), ("GATE", gate), ("W", weights), ("Y", y)];
    program.integers = vec![("FLAGS", flags)];
    Ok(program)
}
