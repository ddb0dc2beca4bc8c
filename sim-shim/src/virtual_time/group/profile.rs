//! What a network is made of: tiers, from the nearest to the farthest.

use pto_graph::group::NetworkFigures;

/// What lies between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Ranks that have nothing farther than this between them: they follow each other.
    pub ranks: u32,
    /// From the last byte's leaving to its coming.
    pub latency_ns: u64,
    /// Bytes in a microsecond, one way.
    pub bytes_per_us: u64,
}

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkProfile {
    /// The profile's name.
    pub name: &'static str,
    /// From the nearest to the farthest.
    pub tiers: &'static [Tier],
    /// What a transfer engine needs to begin with a transfer. A guess: no figure is published.
    pub start_ns: u64,
    /// Ranks of a node, for collectives of two levels.
    pub ranks_per_node: u32,
}

/// An A3 pod: 48 nodes of 8 packages of 2 dies. The figures are those of the table of a public model of the field for A3 (224 GB/s and
/// 0.2 us between the dies of a package, 196 GB/s and 0.5 us within a node, 196 GB/s and 5.5 us between nodes).
const A3_POD: NetworkProfile = NetworkProfile {
    name: "a3-pod",
    tiers: &[
        Tier { ranks: 2, latency_ns: 200, bytes_per_us: 224_000 },
        Tier { ranks: 16, latency_ns: 500, bytes_per_us: 196_000 },
        Tier { ranks: 768, latency_ns: 5_500, bytes_per_us: 196_000 },
    ],
    start_ns: 500,
    ranks_per_node: 16,
};

/// Processes of one machine, by guesses: what a copy through shared memory takes.
const LOOPBACK: NetworkProfile = NetworkProfile {
    name: "loopback",
    tiers: &[Tier { ranks: u32::MAX, latency_ns: 1_000, bytes_per_us: 8_000 }],
    start_ns: 500,
    ranks_per_node: u32::MAX,
};

impl NetworkProfile {
    /// The names of the profiles.
    pub const NAMES: &'static [&'static str] = &["a3-pod", "loopback"];

    /// The profiles, in the order of their names.
    pub const ALL: &'static [Self] = &[A3_POD, LOOPBACK];

    /// The profile of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|profile| profile.name == name)
    }

    /// What lies between two ranks.
    #[must_use]
    pub fn between(&self, a: u32, b: u32) -> Tier {
        let is_in = |tier: &&Tier| a / tier.ranks == b / tier.ranks;
        let farthest = self.tiers.last().copied();
        let none = Tier { ranks: 1, latency_ns: 0, bytes_per_us: 1 };
        self.tiers.iter().find(is_in).copied().or(farthest).unwrap_or(none)
    }

    /// The most ranks that it has.
    #[must_use]
    pub fn most_ranks(&self) -> u32 {
        self.tiers.last().map_or(1, |tier| tier.ranks)
    }

    /// The shortest time in which a transfer between two ranks has an effect on the other one; at least one nanosecond.
    #[must_use]
    pub fn lookahead_ns(&self, a: u32, b: u32) -> u64 {
        (self.start_ns + self.between(a, b).latency_ns).max(1)
    }

    /// What collectives choose their algorithms by, with the hops on the devices: dispatch and completion, 3 us.
    #[must_use]
    pub fn figures(&self, ranks: u32) -> NetworkFigures {
        let tier = self.between(0, ranks.saturating_sub(1));
        let latency_ns = u32::try_from(self.start_ns + tier.latency_ns + 3_000);
        NetworkFigures {
            latency_ns: latency_ns.unwrap_or(u32::MAX),
            bytes_per_us: tier.bytes_per_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NetworkProfile;

    #[test]
    fn ranks_of_a_pod_are_as_far_apart_as_their_places() {
        let pod = NetworkProfile::by_name("a3-pod").unwrap();
        let latency = |a, b| pod.between(a, b).latency_ns;
        assert_eq!([latency(0, 1), latency(1, 2), latency(15, 16)], [200, 500, 5_500]);
        assert_eq!((latency(14, 15), latency(383, 0)), (200, 5_500));
        let lookaheads = [(0, 1), (1, 2), (15, 16)].map(|(a, b)| pod.lookahead_ns(a, b));
        assert_eq!((lookaheads, pod.most_ranks()), ([700, 1_000, 6_000], 768));
        assert!(NetworkProfile::NAMES.iter().all(|name| NetworkProfile::by_name(name).is_some()));
    }
}
