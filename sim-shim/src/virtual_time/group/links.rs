//! When bytes arrive: each rank has a port out and a port in, which its transfers share one after the other.

use super::profile::NetworkProfile;

/// A port: when it is taken, in ascending order; what follows without a gap is one span.
#[derive(Clone, Debug, Default)]
struct Port {
    taken: Vec<(u64, u64)>,
}

impl Port {
    /// Takes the port for so long, from `at_ns` on or as soon as there is a gap that is long enough; when that begins. A transfer that comes
    /// earlier than one whose time was taken before passes it. `now_ns`: no later call asks for an earlier time.
    fn take(&mut self, at_ns: u64, wire_ns: u64, now_ns: u64) -> u64 {
        self.taken.retain(|(_, end_ns)| *end_ns > now_ns);
        let mut begins_ns = at_ns;
        let mut index = 0;
        for (start_ns, end_ns) in &self.taken {
            if begins_ns + wire_ns <= *start_ns {
                break;
            }
            begins_ns = begins_ns.max(*end_ns);
            index += 1;
        }
        let ends_ns = begins_ns + wire_ns;
        let follows = index > 0 && self.taken[index - 1].1 == begins_ns;
        let precedes = self.taken.get(index).is_some_and(|next| next.0 == ends_ns);
        match (follows, precedes) {
            (true, true) => {
                self.taken[index - 1].1 = self.taken[index].1;
                self.taken.remove(index);
            }
            (true, false) => self.taken[index - 1].1 = ends_ns,
            (false, true) => self.taken[index].0 = begins_ns,
            (false, false) => self.taken.insert(index, (begins_ns, ends_ns)),
        }
        begins_ns
    }
}

/// The ports of all ranks.
#[derive(Debug)]
pub(super) struct Links {
    profile: NetworkProfile,
    /// By rank.
    out: Vec<Port>,
    into: Vec<Port>,
    /// A link that is slow: from, to, and how many times as long it takes.
    slow: Option<(u32, u32, u64)>,
}

impl Links {
    pub(super) fn new(profile: NetworkProfile, size: u32, slow: Option<(u32, u32, u64)>) -> Self {
        let free = vec![Port::default(); size as usize];
        Self { profile, out: free.clone(), into: free, slow }
    }

    /// Bytes leave at `now_ns` or as soon as the port is free; when the last one has come. The network between the ports is not
    /// blocked by other pairs, as that of a Clos network.
    pub(super) fn arrival_ns(&mut self, from: u32, to: u32, bytes: u64, now_ns: u64) -> u64 {
        let tier = self.profile.between(from, to);
        let begins_ns = now_ns + self.profile.start_ns;
        let factor = self.slow.filter(|(a, b, _)| (*a, *b) == (from, to)).map_or(1, |slow| slow.2);
        let wire_ns = factor * (1_000 * bytes).div_ceil(tier.bytes_per_us.max(1));
        let port = |ports: &mut [Port], rank: u32, at_ns: u64| {
            let port = ports.get_mut(rank as usize);
            port.map_or(at_ns, |port| port.take(at_ns, wire_ns, now_ns))
        };
        // What stays on a device uses no port.
        if from == to {
            return begins_ns + wire_ns;
        }
        let left_ns = port(&mut self.out, from, begins_ns);
        let comes_ns = port(&mut self.into, to, left_ns + tier.latency_ns);
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
        assert_eq!(links.arrival_ns(0, 2, 196_000, 0), 500 + 500 + 1_000);
        assert_eq!(links.arrival_ns(0, 4, 196_000, 0), 500 + 1_000 + 500 + 1_000, "the port out");
        assert_eq!(links.arrival_ns(6, 2, 196_000, 0), 500 + 500 + 2_000, "the port in");
        assert_eq!(links.arrival_ns(8, 10, 196_000, 0), 500 + 500 + 1_000);
        // It is on the wire from 11 us on; what starts later and is there sooner does not wait for it.
        assert_eq!(links.arrival_ns(12, 14, 196_000, 10_000), 10_000 + 2_000);
        assert_eq!(links.arrival_ns(10, 14, 196_000, 8_000), 8_000 + 2_000, "a gap");
        let mut slow = Links::new(pod, 32, Some((0, 2, 10)));
        assert_eq!(slow.arrival_ns(0, 2, 196_000, 0), 500 + 500 + 10_000);
        assert_eq!(slow.arrival_ns(2, 0, 196_000, 0), 500 + 500 + 1_000);
    }
}
