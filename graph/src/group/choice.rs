//! Which algorithm a collective takes: the one with the lowest bound for its size and the network, a pure function.
//!
//! With n ranks, s bytes, the latency a of a transfer (with the hops on the devices), the bandwidth b of a rank, and the time o
//! that a rank spends on each transfer in addition (a quarter of the latency), an all-reduce takes at least
//!
//! | algorithm | bound |
//! |---|---|
//! | direct | 2 a + 2 (n - 1) o + 2 (n - 1) / n s / b |
//! | ring | 2 (n - 1) a + 2 (n - 1) / n s / b |
//! | halving | 2 log2(n) a + 2 (n - 1) / n s / b, of a power of two |
//! | doubling | log2(n) (a + s / b), of a power of two |
//! | tree | 2 log2(n) (a + s / b) |
//! | two-level | as direct within a node, and as direct between nodes on 1 / m of the bytes, m ranks a node |
//!
//! All-gather and reduce-scatter take half of it. A direct broadcast, and a direct reduction to one rank, go through relays: 2 a + (n - 2) o + s / b.

use pto_abi::closed_set;

use super::kernel::{MOST_PARTS, blocks_of};
use crate::collective::Collective;

closed_set! {
    /// How a collective goes about it.
    pub struct Algorithm(u8) {
        /// Whichever has the lowest bound.
        AUTO = 0, "auto";
        /// Every rank with every other one.
        DIRECT = 1, "direct";
        /// Every rank with its neighbours.
        RING = 2, "ring";
        /// Recursive halving and doubling; a power of two of ranks only.
        HALVING = 3, "halving";
        /// A binomial tree with the whole tensor.
        TREE = 4, "tree";
        /// Within nodes, then between them.
        TWO_LEVEL = 5, "two-level";
        /// Recursive doubling with the whole tensor; an all-reduce of a power of two of ranks only.
        DOUBLING = 6, "doubling";
    }
}

closed_set! {
    /// In which order elements are reduced.
    pub struct Order(u8) {
        /// As it suits the algorithm. The result depends on the algorithm and on the number of ranks, not on timing.
        ANY = 0, "any";
        /// In the order of the ranks: the result is that of one device which reduces them one after the other.
        FIXED = 1, "fixed";
    }
}

/// What the network between two ranks can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkFigures {
    /// The time from the end of the task before a transfer to the start of the task after it, for a transfer without bytes.
    pub latency_ns: u32,
    /// Bytes in a microsecond, of one rank, one way.
    pub bytes_per_us: u64,
}

impl NetworkFigures {
    /// Of a node of A3 packages: 196 GB/s a die; 0.5 us, and 4 us for dispatch and completion.
    pub const DEFAULT: Self = Self { latency_ns: 4_500, bytes_per_us: 196_000 };
}

/// The default size of a tile in bytes. 512 KiB: a tile then takes 2.7 us on the wire of an A3 package. A builder adds its send, its
/// receive and its reduction in that time.
pub const TILE_BYTES: u64 = 512 << 10;

/// Bytes up to which two ranks exchange their whole tensors. That is one step instead of two, and each of them reduces all elements instead of half of
/// them. With more ranks `direct` has two steps, and `doubling` as many or more, with more bytes.
const EXCHANGED_WHOLE_BYTES: u64 = 128 << 10;

/// The least bytes of a tile that [`relayed_tile_bytes`] asks for.
const LEAST_TILE_BYTES: u64 = 64 << 10;

/// Bytes of the tiles of a tensor that relays pass on. Each rank other than the root is a relay: where tiles of the size that was asked for
/// would leave some ranks without one, they are smaller.
pub(super) fn relayed_tile_bytes(bytes: u64, size: u32, asked: u64) -> u64 {
    let share = bytes.div_ceil(u64::from(size.max(2) - 1));
    asked.min(share.max(LEAST_TILE_BYTES))
}

/// What a call of a collective may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How to go about it.
    pub algorithm: Algorithm,
    /// In which order elements are reduced.
    pub order: Order,
    /// The grain: a kernel can start on a tile of this many bytes while the next one is on its way.
    pub tile_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { algorithm: Algorithm::AUTO, order: Order::ANY, tile_bytes: TILE_BYTES }
    }
}

/// What an algorithm is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which collective.
    pub collective: Collective,
    /// Ranks.
    pub size: u32,
    /// Ranks of a node; they divide the ranks, or there is one node.
    pub ranks_per_node: u32,
    /// Bytes of the tensor.
    pub bytes: u64,
    /// The network.
    pub network: NetworkFigures,
}

impl Choice {
    /// The algorithms that this collective has, with this number of ranks.
    pub fn candidates(&self) -> impl Iterator<Item = Algorithm> {
        use Algorithm as A;
        let all: &[A] = match self.collective {
            Collective::BROADCAST | Collective::REDUCE => &[A::TREE, A::DIRECT, A::RING],
            Collective::ALL_REDUCE => {
                &[A::DIRECT, A::HALVING, A::RING, A::TREE, A::TWO_LEVEL, A::DOUBLING]
            }
            Collective::ALL_GATHER | Collective::REDUCE_SCATTER => {
                &[A::DIRECT, A::HALVING, A::RING]
            }
            _ => &[A::DIRECT],
        };
        let is_power = self.size.is_power_of_two();
        let nodes = self.size / self.ranks_per_node.max(1);
        let has_levels = self.ranks_per_node > 1 && nodes > 1;
        let is_even = nodes * self.ranks_per_node == self.size;
        all.iter().copied().filter(move |algorithm| match *algorithm {
            A::HALVING | A::DOUBLING => is_power,
            A::TWO_LEVEL => has_levels && is_even,
            _ => true,
        })
    }

    /// The algorithm that is taken: what was asked for, if there is such a one here; else the one with the lowest bound.
    #[must_use]
    pub fn algorithm(&self, options: &Options) -> Algorithm {
        if options.order == Order::FIXED {
            return Algorithm::DIRECT;
        }
        let asked = self.candidates().find(|candidate| *candidate == options.algorithm);
        let takes_ns = |of: &Algorithm| self.bound_ns(*of) + self.tail_ns(*of, options.tile_bytes);
        let is_short = self.size == 2 && self.bytes <= EXCHANGED_WHOLE_BYTES;
        let is_sensible = |of: &Algorithm| *of != Algorithm::DOUBLING || is_short;
        let best = || self.candidates().filter(is_sensible).min_by_key(takes_ns);
        asked.or_else(best).unwrap_or(Algorithm::DIRECT)
    }

    /// What is left to do when the last tile has come. `direct` reduces a tile's parts with a kernel for every few of them; a
    /// round of `halving` begins with a tile when the one before is reduced. A relay of a broadcast gives its last tile to all others.
    fn tail_ns(&self, algorithm: Algorithm, tile_bytes: u64) -> u64 {
        let part = (self.bytes / u64::from(self.size.max(1))).max(1);
        let (others, is_root) = (self.size.saturating_sub(1), self.has_root());
        let asked = match algorithm {
            Algorithm::DIRECT if is_root => relayed_tile_bytes(self.bytes, self.size, tile_bytes),
            _ => tile_bytes,
        };
        let is_whole = is_root || algorithm == Algorithm::DOUBLING;
        let tile = asked.min(if is_whole { self.bytes } else { part }).max(1);
        let one_ns = self.reduction_ns(tile, 1);
        let rounds = u64::from(self.size.max(1).ilog2());
        let relayed_ns = u64::from(others.saturating_sub(1)) * self.wire_ns(tile);
        match algorithm {
            _ if self.collective == Collective::BROADCAST && algorithm == Algorithm::DIRECT => {
                relayed_ns
            }
            _ if !self.reduces() => 0,
            Algorithm::DIRECT if is_root => relayed_ns + self.reduction_ns(tile, others),
            Algorithm::DIRECT => self.reduction_ns(tile, others),
            Algorithm::TWO_LEVEL => self.reduction_ns(tile, self.ranks_per_node),
            Algorithm::RING => (u64::from(others) / part.div_ceil(tile).max(1)).max(1) * one_ns,
            _ => rounds * one_ns,
        }
    }

    /// Reducing a tile with this many parts. A vector core reads about 90 bytes in a nanosecond, and several share a large tile.
    fn reduction_ns(&self, tile: u64, parts: u32) -> u64 {
        let most = u64::from(parts.min(MOST_PARTS));
        let kernels = u64::from(parts.div_ceil(MOST_PARTS));
        let hop_ns = u64::from(self.network.latency_ns) / 2;
        kernels * (tile * (2 + most) / 90 / blocks_of(tile, most).max(1) + hop_ns)
    }

    const fn reduces(&self) -> bool {
        matches!(
            self.collective,
            Collective::ALL_REDUCE | Collective::REDUCE | Collective::REDUCE_SCATTER
        )
    }

    const fn has_root(&self) -> bool {
        matches!(self.collective, Collective::BROADCAST | Collective::REDUCE)
    }

    /// What so many bytes take on the wire of one rank.
    fn wire_ns(&self, bytes: u64) -> u64 {
        1_000 * bytes / self.network.bytes_per_us.max(1)
    }

    /// The least that an algorithm takes, in nanoseconds.
    #[must_use]
    pub fn bound_ns(&self, algorithm: Algorithm) -> u64 {
        let latency = u64::from(self.network.latency_ns);
        let (n, rounds) = (u64::from(self.size), u64::from(self.size.max(1).ilog2()));
        let rounds = rounds + u64::from(!self.size.is_power_of_two());
        let own_ns = latency / 4;
        let wire_ns = |bytes: u64| self.wire_ns(bytes);
        let others = n.saturating_sub(1);
        // One phase: a scatter, a gather, or an exchange.
        let phase = |ranks: u64, bytes: u64| {
            latency + ranks.saturating_sub(1) * (own_ns + wire_ns(bytes / ranks.max(1)))
        };
        let phases = match self.collective {
            Collective::ALL_REDUCE | Collective::BROADCAST | Collective::REDUCE => 2,
            _ => 1,
        };
        match algorithm {
            Algorithm::RING => phases * others * (latency + wire_ns(self.bytes / n.max(1))),
            Algorithm::HALVING => {
                phases * (rounds * latency + others * wire_ns(self.bytes / n.max(1)))
            }
            Algorithm::DOUBLING => rounds * (latency + wire_ns(self.bytes)),
            Algorithm::TREE => {
                let trees = if self.collective == Collective::ALL_REDUCE { 2 } else { 1 };
                trees * rounds * (latency + wire_ns(self.bytes))
            }
            Algorithm::TWO_LEVEL => {
                let (m, k) = (
                    u64::from(self.ranks_per_node.max(1)),
                    n / u64::from(self.ranks_per_node.max(1)),
                );
                phases * (phase(m, self.bytes) + phase(k, self.bytes / m))
            }
            Algorithm::DIRECT if self.has_root() => {
                phases * latency + others.saturating_sub(1) * own_ns + wire_ns(self.bytes)
            }
            _ => phases * phase(n, self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Algorithm, Choice, NetworkFigures, Options, Order, TILE_BYTES};
    use crate::collective::Collective;

    fn all_reduce(size: u32, ranks_per_node: u32, bytes: u64) -> Choice {
        let network = NetworkFigures::DEFAULT;
        Choice { collective: Collective::ALL_REDUCE, size, ranks_per_node, bytes, network }
    }

    #[test]
    fn the_lowest_bound_is_taken() {
        let chosen = |choice: Choice| choice.algorithm(&Options::default());
        assert_eq!(chosen(all_reduce(384, 16, 1 << 10)), Algorithm::TREE);
        assert_eq!(chosen(all_reduce(384, 16, 64 << 20)), Algorithm::TWO_LEVEL);
        assert_eq!(chosen(all_reduce(2, 2, 64 << 10)), Algorithm::DOUBLING);
        assert_ne!(chosen(all_reduce(2, 2, 1 << 20)), Algorithm::DOUBLING);
        assert_ne!(chosen(all_reduce(4, 4, 64 << 10)), Algorithm::DOUBLING);
        for (size, per_node, bytes) in [(8, 8, 8 << 10), (8, 8, 64 << 20), (6, 6, 1 << 20)] {
            let choice = all_reduce(size, per_node, bytes);
            let takes = |of| choice.bound_ns(of) + choice.tail_ns(of, TILE_BYTES);
            let taken = takes(chosen(choice));
            let sensible = choice.candidates().filter(|other| *other != Algorithm::DOUBLING);
            assert!({ sensible }.all(|other| taken <= takes(other)));
        }
    }

    #[test]
    fn what_is_asked_for_is_taken_where_it_exists() {
        let ask = |algorithm| Options { algorithm, ..Options::default() };
        let six = all_reduce(6, 6, 1 << 20);
        assert_eq!(six.algorithm(&ask(Algorithm::RING)), Algorithm::RING);
        assert_ne!(six.algorithm(&ask(Algorithm::HALVING)), Algorithm::HALVING);
        let fixed = Options { order: Order::FIXED, ..ask(Algorithm::RING) };
        assert_eq!(
            six.algorithm(&fixed),
            Algorithm::DIRECT,
            "the order of ranks has one algorithm"
        );
    }
}
