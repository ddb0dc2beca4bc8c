//! When bytes arrive: each rank has a port out and a port in, which its transfers share one after the other.

use super::profile::NetworkProfile;

/// The ports of all ranks.
#[derive(Debug)]
pub(super) struct Links {
    profile: NetworkProfile,
    /// When they are free again, by rank.
    out_ns: Vec<u64>,
    in_ns: Vec<u64>,
    /// A link that is slow: from, to, and how many times as long it takes.
    slow: Option<(u32, u32, u64)>,
}

impl Links {
    pub(super) fn new(profile: NetworkProfile, size: u32, slow: Option<(u32, u32, u64)>) -> Self {
        let free = vec![0; size as usize];
        Self { profile, out_ns: free.clone(), in_ns: free, slow }
    }

    /// Bytes leave at `now_ns` or as soon as the port is free; when the last one has come. The network between the ports is not
    /// blocked by other pairs, as that of a Clos network.
    pub(super) fn arrival_ns(&mut self, (from, to): (u32, u32), bytes: u64, now_ns: u64) -> u64 {
        let tier = self.profile.between(from, to);
        let begins_ns = now_ns + self.profile.start_ns;
        let factor = self.slow.filter(|(a, b, _)| (*a, *b) == (from, to)).map_or(1, |slow| slow.2);
        let wire_ns = factor * (1_000 * bytes).div_ceil(tier.bytes_per_us.max(1));
        let port = |ports: &mut Vec<u64>, rank: u32, at_ns: u64| {
            let Some(free_ns) = ports.get_mut(rank as usize) else { return at_ns };
            let begins_ns = at_ns.max(*free_ns);
            *free_ns = begins_ns + wire_ns;
            begins_ns
        };
        // What stays on a device uses no port.
        let left_ns = if from == to { begins_ns } else { port(&mut self.out_ns, from, begins_ns) };
        let comes_ns = left_ns + tier.latency_ns;
        let comes_ns = if from == to { comes_ns } else { port(&mut self.in_ns, to, comes_ns) };
        comes_ns + wire_ns
    }
}

#[cfg(test)]
mod tests {
    use super::Links;
    use crate::virtual_time::group::NetworkProfile;

    #[test]
    fn transfers_share_their_ports_and_nothing_else() {
        let pod = NetworkProfile::by_name("a3-pod").unwrap();
        let mut links = Links::new(pod, 32, None);
        // 196,000 bytes take 1 us within a node.
        assert_eq!(links.arrival_ns((0, 2), 196_000, 0), 500 + 500 + 1_000);
        assert_eq!(links.arrival_ns((0, 4), 196_000, 0), 500 + 1_000 + 500 + 1_000, "the port out");
        assert_eq!(links.arrival_ns((6, 2), 196_000, 0), 500 + 500 + 2_000, "the port in");
        assert_eq!(links.arrival_ns((8, 10), 196_000, 0), 500 + 500 + 1_000);
        let mut slow = Links::new(pod, 32, Some((0, 2, 10)));
        assert_eq!(slow.arrival_ns((0, 2), 196_000, 0), 500 + 500 + 10_000);
        assert_eq!(slow.arrival_ns((2, 0), 196_000, 0), 500 + 500 + 1_000);
    }
}
