//! What a seed decides: the group, its network, the calls of its program, and what goes wrong.

use std::fmt;

use pto_graph::group::{Algorithm, Order, Reduction};

use crate::session::choice::Seeded;
use pto_sim_shim::virtual_time::group::{NetFaults, NetworkProfile};

/// Elements of a tensor, at most.
pub(super) const MOST: usize = 160;

/// One call of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) what: CallKind,
    pub(super) reduction: Reduction,
    pub(super) algorithm: Algorithm,
    pub(super) order: Order,
    pub(super) elements: usize,
    pub(super) root: u32,
    pub(super) tile_bytes: u64,
}

pto_abi::closed_set! {
    /// The operation of a call in a soak test.
    pub struct CallKind(u8) {
        /// A broadcast from the root.
        BROADCAST = 0, "broadcast";
        /// A reduce to the root, then a broadcast from it, so that the result is defined on all ranks.
        REDUCE = 1, "reduce";
        /// An all-reduce in place.
        ALL_REDUCE = 2, "all_reduce";
        /// Reduce-scatter, then all-gather.
        SCATTER_GATHER = 3, "scatter_gather";
        /// An all-to-all from the first tensor to the second one.
        ALL_TO_ALL = 4, "all_to_all";
        /// A put into the slot that the next rank has for this one, with a signal.
        PUT = 5, "put";
        /// A send and a receive that copy to the second tensor of the next rank.
        SEND = 6, "send";
        /// A barrier that uses the first tensor.
        BARRIER = 7, "barrier";
    }
}

/// The failure that a soak test injects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No failure.
    None,
    /// A link is slow.
    Slow(u32, u32, u64),
    /// A transfer is lost.
    Lost(u64),
    /// A rank dies at a moment.
    Dies(u32, u64),
    /// A rank makes no calls.
    NeverComes(u32),
    /// The builder of a rank fails.
    Fails(u32),
    /// A rank makes its last call with another size.
    Differs(u32),
}

/// See the file.
pub(super) struct Setting {
    pub(super) seed: u64,
    pub(super) ranks: u32,
    pub(super) network: NetworkProfile,
    pub(super) aiv: u32,
    pub(super) aicpu: u32,
    pub(super) calls: Vec<Call>,
    pub(super) trouble: Trouble,
}

impl Setting {
    /// The setting of a seed.
    pub(super) fn drawn(seed: u64) -> Self {
        let mut random = Seeded::new(seed);
        let ranks = [2, 2, 3, 3, 4, 4, 5, 6, 8][random.below(9)];
        let network = NetworkProfile::ALL[random.below(NetworkProfile::ALL.len())];
        // Small groups have nodes as well.
        let is_even = ranks % 2 == 0 && random.below(2) == 0;
        let ranks_per_node = if is_even { 2 } else { network.ranks_per_node };
        let network = NetworkProfile { ranks_per_node, ..network };
        let calls: Vec<_> = (0..1 + random.below(4)).map(|_| call(&mut random, ranks)).collect();
        let trouble = match (choose_trouble(&mut random, ranks), calls.last().map(|last| last.what))
        {
            // A put of another size is right, and a barrier has none.
            (Trouble::Differs(_), Some(CallKind::PUT | CallKind::BARRIER)) => Trouble::None,
            (drawn, _) => drawn,
        };
        Self {
            seed,
            ranks,
            network,
            aiv: [2, 3, 4][random.below(3)],
            aicpu: number(2 + random.below(2)),
            calls,
            trouble,
        }
    }

    /// The faults of the network.
    pub(super) fn faults(&self) -> NetFaults {
        match self.trouble {
            Trouble::Slow(from, to, times) => {
                NetFaults { slow: Some((from, to, times)), ..NetFaults::default() }
            }
            Trouble::Lost(number) => NetFaults { lost: Some(number), ..NetFaults::default() },
            Trouble::Dies(rank, at_ns) => {
                NetFaults { dies: Some((rank, at_ns)), ..NetFaults::default() }
            }
            _ => NetFaults::default(),
        }
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn rank(random: &mut Seeded, ranks: u32) -> u32 {
    number(random.below(ranks as usize))
}

fn call(random: &mut Seeded, ranks: u32) -> Call {
    let one = |random: &mut Seeded, of: usize| random.below(of);
    let what = CallKind::ALL[one(random, CallKind::ALL.len())];
    let elements = 1 + one(random, MOST - 1);
    let size = ranks as usize;
    // An all-to-all has whole parts.
    let elements = if what == CallKind::ALL_TO_ALL {
        size * (1 + elements / size).min(MOST / size)
    } else {
        elements
    };
    Call {
        what,
        reduction: Reduction::ALL[one(random, Reduction::ALL.len())],
        algorithm: Algorithm::ALL[one(random, Algorithm::ALL.len())],
        order: Order::ALL[one(random, Order::ALL.len())],
        elements,
        root: rank(random, ranks),
        tile_bytes: [16, 64, 200, 4096][one(random, 4)],
    }
}

/// Chooses the failure to inject. Two of three seeds inject one.
fn choose_trouble(random: &mut Seeded, ranks: u32) -> Trouble {
    let who = rank(random, ranks);
    let other = (who + 1 + number(random.below(ranks as usize - 1))) % ranks;
    match random.below(9) {
        0 => Trouble::Slow(who, other, 10_u64.pow(number(1 + random.below(4)))),
        1 => Trouble::Lost(random.below(40) as u64),
        2 | 3 => Trouble::Dies(who, 1_000 + random.below(120_000) as u64),
        4 => Trouble::NeverComes(who),
        5 => [Trouble::Fails(who), Trouble::Differs(who)][random.below(2)],
        _ => Trouble::None,
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ranks, aiv, aicpu, trouble, .. } = self;
        let (network, ranks_per_node) =
            (self.network.name, self.network.ranks_per_node.min(*ranks));
        write!(
            f,
            "{ranks} ranks, {ranks_per_node} a node, network {network}, {aiv} vector cores, {aicpu} AICPU instances, trouble: {trouble:?}"
        )?;
        for call in &self.calls {
            let Call { what, reduction, algorithm, order, elements, root, tile_bytes } = call;
            write!(
                f,
                "\n    {} of {elements} i32, {}, {}, order {}, root {root}, tiles of {tile_bytes} bytes",
                what.name(),
                reduction.name(),
                algorithm.name(),
                order.name()
            )?;
        }
        Ok(())
    }
}
