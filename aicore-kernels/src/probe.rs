//! Kernels that test the runtime rather than compute: empty, `dag_node`, spin. Each exists for both
//! core kinds.

use core::hint::black_box;

use crate::args;

/// The increment of splitmix64 (Steele, Lea and Flood 2014): 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// One step of splitmix64: a bijection of 64 bits that changes about half of them for any change.
#[inline]
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What node `index` of a graph must hold: a fold of its producers' values, in their order.
///
/// A node that ran before a producer, or twice with other inputs, or with its producers exchanged,
/// gets another value, and so do all nodes that depend on it. The kernels compute this; so can a host, as
/// the reference.
#[must_use]
pub fn dag_value(seed: u64, index: u64, producer_values: impl Iterator<Item = u64>) -> u64 {
    producer_values.fold(mix(mix(seed) ^ index), |value, producer| mix(value ^ producer))
}

/// Counts its execution and writes its [`dag_value`]; `producers` is a table and how many entries it has. A producer that does not come before the node is ignored:
/// so what the table holds does not say how far the kernel reaches.
///
/// # Safety
/// The [argument contract](crate::args): `values` is a table of `u64` and `counters` one of `u32`,
/// both with the elements up to `index`, which is written; the producers are indices (`u32`) into
/// `values`. The counter must be initialised, and so must the value of each producer.
#[inline]
pub unsafe fn dag_node(
    index: u64,
    seed: u64,
    values: u64,
    counters: u64,
    (producers, n): (u64, u64),
) {
    let node = args::size(index);
    // Read, add, write on purpose: if the node runs twice, the count shows it.
    //
    // SAFETY: the caller keeps the contract: there is a counter for this node, and no other core runs the node now.
    let count: u32 = unsafe { args::load(counters, node) };
    // SAFETY: the caller keeps the contract.
    unsafe { args::store(counters, node, count.wrapping_add(1)) };
    let producer_values = (0..args::size(n)).filter_map(|i| {
        // SAFETY: the caller keeps the contract: there are `n` producers.
        let producer: u32 = unsafe { args::load(producers, i) };
        let producer = producer as usize;
        // SAFETY: the caller keeps the contract: an element before that of the node, and a producer has finished.
        (producer < node).then(|| unsafe { args::load(values, producer) })
    });
    let value = dag_value(seed, index, producer_values);
    // SAFETY: the caller keeps the contract: there is a value for this node, and no kernel reads it before the node
    // finishes.
    unsafe { args::store(values, node, value) }
}

/// A chain of `iterations` dependent steps that the compiler can neither shorten nor remove.
///
/// One takes about 4.3 ns (measured on a 2.3 GHz Xeon, release build).
pub fn spin(iterations: u64) {
    let mut state = iterations;
    for _ in 0..iterations {
        state = black_box(mix(state));
    }
}
