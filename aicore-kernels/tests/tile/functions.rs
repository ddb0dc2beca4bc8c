//! Functions of one element, on every type that they are defined for; on others they are refused.

use pto_aicore_kernels::tile::{DType, Mistake, Op, Rejected, TileType, Unary};

use crate::number::{Float, Integer, Number, SplitMix64, is_same, read, ulps, write};
use crate::rig::{Small, V};

/// The value in double precision by the standard library.
fn exact(function: Unary, x: f64) -> f64 {
    let gelu = |x: f64| {
        let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
        0.5 * x * (1.0 + inner.tanh())
    };
    match function {
        Unary::Exp => x.exp(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Log => x.ln(),
        Unary::Sqrt => x.sqrt(),
        Unary::Tanh => x.tanh(),
        Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Unary::Gelu if x == f64::NEG_INFINITY => -0.0,
        Unary::Gelu => gelu(x),
        Unary::Silu if x == f64::NEG_INFINITY => -0.0,
        Unary::Silu => x / (1.0 + (-x).exp()),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Relu if x.is_nan() => x,
        Unary::Relu => x.max(0.0),
        Unary::Copy => x,
    }
}

/// How far a result may be off: rounding to a type of at most 24 bits hides the error of the double. `gelu` far on the left
/// loses digits in the reference.
fn allowed(function: Unary, dtype: DType, x: f64) -> f64 {
    match function {
        Unary::Neg | Unary::Abs | Unary::Relu | Unary::Copy | Unary::Sqrt => 0.0,
        Unary::Gelu if x < -1.0 => f64::INFINITY,
        _ if dtype == DType::F64 => 3.0,
        _ => 0.501,
    }
}

fn check(function: Unary, dtype: DType, x: Number, found: &[u8]) {
    let failed = || format!("{} of {x:?} as {dtype}: {:?}", function.name(), read(dtype, found));
    match x {
        Integer(x) => {
            let expected = match function {
                Unary::Neg => -x,
                Unary::Abs => x.abs(),
                Unary::Relu => x.max(0),
                _ => x,
            };
            assert_eq!(found, write(dtype, Integer(expected)), "{}", failed());
        }
        Float(x) => {
            let exact = exact(function, x);
            let Float(value) = read(dtype, found) else { panic!() };
            let rounded = write(dtype, Float(exact));
            let is_right = is_same(dtype, found, &rounded)
                || (exact == 0.0 && value == 0.0)
                || ulps(dtype, value, exact) <= allowed(function, dtype, x);
            assert!(is_right, "{}, not {exact:?}", failed());
        }
    }
}

fn is_defined(function: Unary, dtype: DType) -> bool {
    match function {
        Unary::Copy | Unary::Abs | Unary::Relu => true,
        Unary::Neg => !dtype.is_unsigned(),
        _ => dtype.is_float(),
    }
}

#[test]
fn every_function_of_every_type() {
    let mut random = SplitMix64(11);
    for function in Unary::ALL.iter().copied() {
        for dtype in DType::ALL {
            let tile = TileType::tile(dtype, 9, 67);
            let ops = vec![Op::Unary { function, x: V(0) }];
            let small = Small { inputs: vec![tile], output: tile, ops };
            if !is_defined(function, dtype) {
                let refused = small.kernel().unwrap_err();
                assert_eq!(refused, Rejected::Wrong(1, Mistake::WrongType(V(0), dtype)));
                continue;
            }
            let x = random.elements(dtype, tile.elements());
            let (out, cycles) = small.run(std::slice::from_ref(&x));
            assert_eq!(cycles, 3 * 9 * 67);
            for at in 0..tile.elements() {
                let x = read(dtype, &x[at * dtype.bytes()..][..dtype.bytes()]);
                check(function, dtype, x, out.element(dtype, at));
            }
        }
    }
}

#[test]
fn gelu_on_the_left_of_minus_one_against_digits_that_are_kept() {
    // With `1 + tanh(y) = 2 / (1 + e^-2y)` nothing is lost.
    let tile = TileType::tile(DType::F64, 1, 64);
    let ops = vec![Op::Unary { function: Unary::Gelu, x: V(0) }];
    let small = Small { inputs: vec![tile], output: tile, ops };
    let inputs: Vec<f64> = (0..64).map(|i| -1.0 - f64::from(i) * 0.1).collect();
    let (out, _) = small.run(&[bytemuck::cast_slice(&inputs).to_vec()]);
    for (x, found) in inputs.iter().zip(bytemuck::cast_slice::<u8, f64>(out.bytes())) {
        let y = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
        let exact = x / (1.0 + (-2.0 * y).exp());
        assert!((found - exact).abs() <= exact.abs() * 1e-13, "gelu({x}): {found}, not {exact}");
    }
}
