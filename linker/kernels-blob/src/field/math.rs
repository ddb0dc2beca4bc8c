//! Functions of `<math.h>` that kernels call: those of our own kernels. Square roots, absolute values and roundings are instructions.

use pto_kernels_blob::library::exp::exp as exp_f32;
use pto_kernels_blob::library::tile::math;

/// To the nearest float.
#[expect(clippy::cast_possible_truncation, reason = "to the nearest float")]
const fn rounded(value: f64) -> f32 {
    value as f32
}

#[unsafe(no_mangle)]
extern "C" fn expf(x: f32) -> f32 {
    exp_f32(x)
}

#[unsafe(no_mangle)]
extern "C" fn exp(x: f64) -> f64 {
    math::exp(x)
}

#[unsafe(no_mangle)]
extern "C" fn logf(x: f32) -> f32 {
    rounded(math::ln_for_f32(x.into()))
}

#[unsafe(no_mangle)]
extern "C" fn log(x: f64) -> f64 {
    math::ln(x)
}

#[unsafe(no_mangle)]
extern "C" fn tanhf(x: f32) -> f32 {
    rounded(math::tanh_for_f32(x.into()))
}

#[unsafe(no_mangle)]
extern "C" fn tanh(x: f64) -> f64 {
    math::tanh(x)
}

#[unsafe(no_mangle)]
extern "C" fn sinf(x: f32) -> f32 {
    rounded(math::sin_large(x.into()))
}

#[unsafe(no_mangle)]
extern "C" fn sin(x: f64) -> f64 {
    math::sin_large(x)
}

#[unsafe(no_mangle)]
extern "C" fn cosf(x: f32) -> f32 {
    rounded(math::cos_large(x.into()))
}

#[unsafe(no_mangle)]
extern "C" fn cos(x: f64) -> f64 {
    math::cos_large(x)
}
