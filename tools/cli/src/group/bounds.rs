//! The bounds that times of collectives are compared with, of n ranks, s bytes, the bandwidth b of a rank, and the time a of a transfer without
//! bytes:
//!
//! | collective | wire | steps |
//! |---|---|---|
//! | all_reduce | 2 (n - 1) / n s / b | 2 log2(n) |
//! | reduce_scatter, all_gather | (n - 1) / n s / b | log2(n) |
//! | all_to_all | (n - 1) / n s / b | log2(n) |
//! | broadcast, reduce | s / b | log2(n) |
//!
//! A step takes a: beginning with the transfer, the latency, and the hops on the devices, dispatch and completion. The bound is their sum.

use std::time::Duration;

use pto_graph::group::Collective;
use pto_host::group::NetworkProfile;

/// What a collective takes at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// What the bytes take on the wire of a rank.
    pub(crate) wire: Duration,
    /// With the steps.
    pub(crate) whole: Duration,
}

impl Bounds {
    /// Of a collective. The bandwidth and the latency are those between the ranks that are farthest from each other.
    pub(crate) fn of(
        collective: Collective,
        ranks: u32,
        bytes: u64,
        network: &NetworkProfile,
    ) -> Self {
        let figures = network.figures(ranks);
        let n = u64::from(ranks.max(1));
        let rounds = u64::from(n.next_power_of_two().ilog2());
        let (times, carried, steps) = match collective {
            Collective::ALL_REDUCE => (2 * (n - 1), n, 2 * rounds),
            Collective::BROADCAST | Collective::REDUCE => (1, 1, rounds),
            _ => (n - 1, n, rounds),
        };
        let wire_ns = 1000 * (bytes * times / carried) / figures.bytes_per_us.max(1);
        let steps_ns = steps * u64::from(figures.latency_ns);
        Self {
            wire: Duration::from_nanos(wire_ns),
            whole: Duration::from_nanos(wire_ns + steps_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bounds;
    use pto_graph::group::Collective;
    use pto_host::group::NetworkProfile;
    use std::time::Duration;

    #[test]
    fn bounds_are_wire_and_steps() {
        let pod = NetworkProfile::by_name("a3-pod").unwrap();
        let of = |collective, bytes| Bounds::of(collective, 8, bytes, &pod);
        let large = of(Collective::ALL_REDUCE, 64 << 20);
        assert_eq!(large.wire.as_micros(), 599);
        assert_eq!(large.whole - large.wire, Duration::from_micros(6 * 4));
        assert_eq!(of(Collective::BROADCAST, 64 << 20).wire.as_micros(), 342);
        assert_eq!(of(Collective::ALL_GATHER, 0).whole, Duration::from_micros(3 * 4));
    }
}
