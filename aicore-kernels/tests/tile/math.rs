//! The error of the transcendental functions against the standard library, in double precision.

use pto_aicore_kernels::tile::{DType, math};

use crate::number::{SplitMix64, ulps};

type Function = fn(f64) -> f64;

/// The largest error over arguments in a range, some of them on a logarithmic scale.
fn worst(ours: fn(f64) -> f64, theirs: fn(f64) -> f64, low: f64, high: f64) -> f64 {
    let mut random = SplitMix64(21);
    let mut worst: f64 = 0.0;
    for _ in 0..200_000 {
        let linear = low + (high - low) * (random.unit() * 0.5 + 0.5);
        let small = linear * 2f64.powi(-(random.below(60) as i32));
        for x in [linear, small] {
            let (found, exact) = (ours(x), theirs(x));
            assert_eq!(found.is_nan(), exact.is_nan(), "{x:e}: {found} and {exact}");
            worst = worst.max(ulps(DType::F64, found, exact));
        }
    }
    worst
}

#[test]
fn errors_of_the_functions() {
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    let cases: [(&str, Function, Function, f64, f64); 8] = [
        ("exp", math::exp, f64::exp, -745.0, 709.0),
        ("ln", math::ln, f64::ln, 0.0, 1e300),
        ("tanh", math::tanh, f64::tanh, -20.0, 20.0),
        ("sigmoid", math::sigmoid, logistic, -700.0, 40.0),
        ("sin", math::sin_small, f64::sin, -math::LARGE, math::LARGE),
        ("cos", math::cos_small, f64::cos, -math::LARGE, math::LARGE),
        ("sin_large", math::sin_large, f64::sin, 1.0, 1e300),
        ("cos_large", math::cos_large, f64::cos, 1.0, 1e300),
    ];
    for (name, ours, theirs, low, high) in cases {
        let found = worst(ours, theirs, low, high);
        println!("{name}: {found:.2} ulp");
        assert!(found <= 3.0, "{name}: {found} ulp");
    }
    assert_eq!(worst(math::sqrt, f64::sqrt, 0.0, 1e300), 0.0);
}

/// Functions whose results become `f32` are as good as exact there: `2^-33` of the result is a 512th of a unit in the last place.
#[test]
fn errors_of_the_functions_for_f32() {
    let cases: [(&str, Function, Function, f64, f64); 3] = [
        ("ln", math::ln_for_f32, f64::ln, 0.0, f64::from(f32::MAX)),
        ("ln near 1", math::ln_for_f32, f64::ln, 0.5, 2.0),
        ("tanh", math::tanh_for_f32, f64::tanh, -10.0, 10.0),
    ];
    for (name, ours, theirs, low, high) in cases {
        let found = worst(ours, theirs, low, high) * f64::EPSILON;
        println!("{name}: 2^{:.1}", found.log2());
        assert!(found <= 2f64.powi(-33), "{name}: {found:e}");
    }
}

/// The largest error over every 509th `f32` from zero to infinity.
fn worst_of_f32(ours: Function, theirs: Function) -> f64 {
    let all = (1..f32::INFINITY.to_bits()).step_by(509).map(|bits| f64::from(f32::from_bits(bits)));
    let errors = all.filter(|x| theirs(*x) != 0.0).map(|x| (ours(x) / theirs(x) - 1.0).abs());
    errors.fold(0.0, f64::max)
}

/// Over all of the 2^31 magnitudes, which take a minute, the errors are `2^-35.12` for `tanh` and `2^-34.19` for `ln`.
#[test]
fn errors_over_the_arguments_that_an_f32_can_be() {
    let cases: [(&str, Function, Function, f64); 2] =
        [("tanh", math::tanh_for_f32, f64::tanh, -35.1), ("ln", math::ln_for_f32, f64::ln, -34.1)];
    for (name, ours, theirs, bound) in cases {
        let found = worst_of_f32(ours, theirs).log2();
        println!("{name}: 2^{found:.2}");
        assert!(found <= bound && found > bound - 0.2, "{name}: 2^{found}");
    }
}

#[test]
fn ends_of_the_functions() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let cases: [(&str, Function, Function); 7] = [
        ("ln", math::ln_for_f32, f64::ln),
        ("tanh", math::tanh_for_f32, f64::tanh),
        ("exp", math::exp, f64::exp),
        ("ln", math::ln, f64::ln),
        ("tanh", math::tanh, f64::tanh),
        ("sin", math::sin_small, f64::sin),
        ("sqrt", math::sqrt, f64::sqrt),
    ];
    let arguments = [0.0, -0.0, 1.0, -1.0, nan, 5e-324, -5e-324, f64::MIN_POSITIVE, 1e-310];
    for (name, ours, theirs) in cases {
        for x in arguments {
            let (found, exact) = (ours(x), theirs(x));
            let is_close = ulps(DType::F64, found, exact) <= 1.0;
            assert!(
                is_close && found.is_sign_negative() == exact.is_sign_negative() || found.is_nan(),
                "{name}({x}): {found}, not {exact}"
            );
        }
    }
    for (function, at_inf, at_minus_inf) in
        [(math::exp as fn(f64) -> f64, inf, 0.0), (math::tanh, 1.0, -1.0)]
    {
        assert_eq!((function(inf), function(-inf)), (at_inf, at_minus_inf));
    }
    assert_eq!((math::exp(709.79), math::exp(-746.0)), (inf, 0.0));
    assert!(math::exp(-744.0) > 0.0 && math::ln(-1.0).is_nan() && math::ln(inf) == inf);
    assert!(math::sin_large(inf).is_nan() && math::cos_large(nan).is_nan());
}
