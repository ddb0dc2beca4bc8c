//! Times the tile machine on one thread, and NumPy if it is installed, and prints the ratios.
//!
//! The time of an instruction is the difference between a kernel with many of it and a kernel with few, so that loads and stores
//! do not count. Of several repetitions the fastest counts. The figures mean something on a quiet machine only.

mod models;
mod timing;

use std::collections::BTreeMap;
use std::process::Command;

use pto_workload::tile::view::tensor_of;
use pto_workload::tile::{Binary, Call, DType, Direction, Interpreter, Reduce, TileView, Unary};
use pto_workload::{KernelBuilder, KernelError, TileKernel};

use timing::fastest_ns;

/// How many of an instruction the two kernels have.
const FEW: usize = 4;
const MANY: usize = 20;

/// What is timed, and how much slower than NumPy it may be.
struct BenchCase {
    name: &'static str,
    aim: f64,
    what: BenchOp,
}

#[derive(Clone, Copy)]
enum BenchOp {
    Binary(Binary),
    Unary(Unary),
    Reduce(Reduce),
    Matmul,
}

const CASES: [BenchCase; 13] = [
    BenchCase { name: "add", aim: 1.5, what: BenchOp::Binary(Binary::Add) },
    BenchCase { name: "mul", aim: 1.5, what: BenchOp::Binary(Binary::Mul) },
    BenchCase { name: "div", aim: 1.5, what: BenchOp::Binary(Binary::Div) },
    BenchCase { name: "max", aim: 1.5, what: BenchOp::Binary(Binary::Max) },
    BenchCase { name: "exp", aim: 4.0, what: BenchOp::Unary(Unary::Exp) },
    BenchCase { name: "log", aim: 4.0, what: BenchOp::Unary(Unary::Log) },
    BenchCase { name: "tanh", aim: 4.0, what: BenchOp::Unary(Unary::Tanh) },
    BenchCase { name: "sqrt", aim: 4.0, what: BenchOp::Unary(Unary::Sqrt) },
    BenchCase { name: "sin", aim: 4.0, what: BenchOp::Unary(Unary::Sin) },
    BenchCase { name: "cos", aim: 4.0, what: BenchOp::Unary(Unary::Cos) },
    BenchCase { name: "rowsum", aim: 1.5, what: BenchOp::Reduce(Reduce::RowSum) },
    BenchCase { name: "colsum", aim: 1.5, what: BenchOp::Reduce(Reduce::ColSum) },
    BenchCase { name: "matmul", aim: 2.0, what: BenchOp::Matmul },
];

/// A kernel with `count` of an instruction on tiles of `extent` by `extent`.
fn kernel(what: BenchOp, extent: u64, count: usize) -> Result<TileKernel, KernelError> {
    let mut k = KernelBuilder::new("timed");
    let x = k.tensor("x", Direction::InOut, DType::F32, [extent, extent])?;
    // A value, so that a product does not load its operands.
    let local = k.unary(Unary::Copy, x)?;
    for _ in 0..count {
        match what {
            BenchOp::Binary(function) => drop(k.binary(function, local, local)?),
            BenchOp::Unary(function) => drop(k.unary(function, local)?),
            BenchOp::Reduce(function) => drop(k.reduce(function, local)?),
            BenchOp::Matmul => drop(k.matmul(local, local, None)?),
        }
    }
    k.store(x, local, [0, 0], None)?;
    k.finish()
}

/// Nanoseconds of one run.
fn run_ns(kernel: &TileKernel, extent: u16) -> f64 {
    let elements = usize::from(extent) * usize::from(extent);
    let mut x: Vec<f32> = (0..elements).map(|at| 0.5 + (at % 97) as f32 / 100.0).collect();
    let views = [TileView::new(tensor_of(&mut x), 0, [i64::from(extent), 1], [extent, extent])];
    let call = Call { tensors: &views, scalars: &[] };
    let (machine, mut scratch) = (Interpreter::new(), vec![0; kernel.code().scratch_words()]);
    fastest_ns(|| {
        let cycles = machine.run(kernel.code(), &call, &mut scratch);
        std::hint::black_box(cycles.is_ok());
    })
}

fn instruction_ns(what: BenchOp, extent: u16) -> Result<f64, KernelError> {
    let of = |count| Ok(run_ns(&kernel(what, u64::from(extent), count)?, extent));
    Ok((of(MANY)? - of(FEW)?) / (MANY - FEW) as f64)
}

/// What NumPy takes, by name and extent; nothing where Python has no NumPy.
fn numpy_ns() -> BTreeMap<String, f64> {
    const SCRIPT: &str = r"
import time
import numpy as np

def fastest(f):
    best = float('inf')
    for _ in range(30):
        start, runs = time.perf_counter(), 0
        while time.perf_counter() - start < 0.002:
            f()
            runs += 1
        best = min(best, (time.perf_counter() - start) / runs)
    return best * 1e9

for extent in (64, 256):
    x = (0.5 + np.arange(extent * extent) % 97 / 100).astype(np.float32).reshape(extent, extent)
    out, line = np.empty_like(x), np.empty(extent, np.float32)
    cases = {name: (lambda f=f: f(x, x, out=out)) for name, f in
             dict(add=np.add, mul=np.multiply, div=np.divide, max=np.maximum, matmul=np.matmul).items()}
    cases |= {name: (lambda f=f: f(x, out=out)) for name, f in
              dict(exp=np.exp, log=np.log, tanh=np.tanh, sqrt=np.sqrt, sin=np.sin, cos=np.cos).items()}
    cases['rowsum'] = lambda: np.sum(x, axis=1, out=line)
    cases['colsum'] = lambda: np.sum(x, axis=0, out=line)
    for name, f in cases.items():
        print(f'{name}_{extent} {fastest(f)}')
";
    let python = std::env::args().nth(1).unwrap_or_else(|| "python3".to_owned());
    let mut command = Command::new(python);
    command.args(["-c", SCRIPT]).env("OPENBLAS_NUM_THREADS", "1").env_remove("OPENBLAS_CORETYPE");
    let Ok(output) = command.output() else { return BTreeMap::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(name, time)| Some((name.to_owned(), time.parse().ok()?))).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Tiles of one element: what is left is the interpretation.
    println!(
        "interpretation: {:.1} ns an instruction (aim 40)",
        instruction_ns(BenchOp::Unary(Unary::Copy), 1)?
    );
    let numpy = numpy_ns();
    if numpy.is_empty() {
        println!("NumPy was not found. Give a Python that has it as the first argument.");
    }
    for extent in [64u16, 256] {
        // The first kernel of a size gets its memory from the system, the others what it has given back: it does not count.
        instruction_ns(CASES[0].what, extent)?;
        for BenchCase { name, aim, what } in &CASES {
            let ours = instruction_ns(*what, extent)?;
            print!("{name:>7} {extent:>3} x {extent:<3} {ours:>12.0} ns");
            match numpy.get(&format!("{name}_{extent}")) {
                Some(theirs) => {
                    println!(", NumPy {theirs:>12.0} ns, ratio {:.2} (aim {aim})", ours / theirs)
                }
                None => println!(),
            }
        }
    }
    models::compare()
}
