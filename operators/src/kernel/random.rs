//! Random numbers by a counter: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). Element `i` has the counter
//! `i / 2` and the seed as the key, so that the numbers do not depend on how they are split into tasks.

use super::memory::Out;
use crate::element::{Element, with_type};

/// Four words of a counter and a key.
pub(crate) const fn philox(counter: u64, key: u64) -> [u32; 4] {
    const LOW: u64 = 0xFFFF_FFFF;
    let (mut words, mut keys) = ([counter & LOW, counter >> 32, 0, 0], [key & LOW, key >> 32]);
    let mut round = 0;
    while round < 10 {
        let (a, b) = (0xD251_1F53 * words[0], 0xCD9E_8D57 * words[2]);
        words = [(b >> 32) ^ words[1] ^ keys[0], b & LOW, (a >> 32) ^ words[3] ^ keys[1], a & LOW];
        keys = [(keys[0] + 0x9E37_79B9) & LOW, (keys[1] + 0xBB67_AE85) & LOW];
        round += 1;
    }
    #[expect(clippy::cast_possible_truncation, reason = "words have 32 bits")]
    [words[0] as u32, words[1] as u32, words[2] as u32, words[3] as u32]
}

/// Two numbers from 0 up to, and without, 1, of 53 bits.
fn pair(counter: u64, seed: u64) -> [f64; 2] {
    let [a, b, c, d] = philox(counter, seed).map(u64::from);
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    [a << 32 | b, c << 32 | d].map(|bits| (bits >> 11) as f64 / (1_u64 << 53) as f64)
}

/// A uniform or, if `normal`, a normally distributed number: (low, high) or (mean, deviation). A unit is an element.
pub(crate) fn run(
    (seed, normal): (u64, bool),
    (first, second): (f64, f64),
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    with_type!(output.ty.dtype, T => {
        let to = output.elements::<T>(units.0, units.1);
        for (number, to) in to.iter_mut().enumerate() {
            let place = units.0 + number;
            let [a, b] = pair(place as u64 / 2, seed);
            let x = if normal {
                let radius = (-2.0 * (1.0 - a).ln()).sqrt();
                let (sin, cos) = (std::f64::consts::TAU * b).sin_cos();
                first + second * radius * if place.is_multiple_of(2) { cos } else { sin }
            } else {
                let x = if place.is_multiple_of(2) { a } else { b };
                // Rounding must not reach the upper limit.
                let y = T::from_f64(first + (second - first) * x).to_f64();
                if y >= second && second > first { first } else { y }
            };
            *to = T::from_f64(x);
        }
    });
}
