//! A collective call, as those see it who watch what collectives do: which ranks make it, on which tensor, and whose values it leaves where.

use pto_abi::closed_set;
use pto_abi::ids::GmAddr;

closed_set! {
    /// What ranks do together.
    pub struct Collective(u8) {
        /// Everybody gets the tensor of one rank.
        BROADCAST = 0, "broadcast";
        /// One rank gets the reduction of all tensors.
        REDUCE = 1, "reduce";
        /// Everybody gets it.
        ALL_REDUCE = 2, "all_reduce";
        /// Everybody gets the parts of all.
        ALL_GATHER = 3, "all_gather";
        /// Everybody gets one part of the reduction.
        REDUCE_SCATTER = 4, "reduce_scatter";
        /// Everybody gets one part from everybody.
        ALL_TO_ALL = 5, "all_to_all";
        /// A barrier: each rank continues when all ranks have arrived.
        BARRIER = 6, "barrier";
    }
}

/// Where the part of rank `rank` begins, of `elements` that are divided among `size`.
pub(crate) fn part_bound(elements: u64, rank: u32, size: u32) -> u64 {
    // Below 2^32 elements and 2^32 ranks.
    (elements * u64::from(rank)).checked_div(size.into()).unwrap_or(0)
}

/// The ranks whose values an element has after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Contributions of all ranks of the call.
    All,
    /// The contribution of this rank of the group only.
    One(u32),
}

/// One rank's collective call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveCall {
    /// What the ranks do.
    pub collective: Collective,
    /// How many of its communicator's calls there were before, and this one.
    pub number: u32,
    /// The first rank of the communicator, the distance to the next one, and how many there are.
    pub ranks: (u32, u32, u32),
    /// This rank, of the communicator.
    pub rank: u32,
    /// The rank that the others give to or get from, of the communicator; 0 where there is none.
    pub root: u32,
    /// The [call](crate::group::tag::call) of the tags of its transfers.
    pub tags: u128,
    /// Where the result is, how many elements it has, and how many bytes each of these.
    pub result: (GmAddr, u64, u64),
}

impl CollectiveCall {
    /// The rank of the group that `rank` of the communicator is.
    #[must_use]
    pub const fn world_rank(&self, rank: u32) -> u32 {
        let (first, stride, _) = self.ranks;
        first + rank * stride
    }

    /// Hands on what its result has at this rank after the call: the elements from the first to before the second number, and whose values
    /// these have. Elements that are not defined then are left out.
    pub fn result_holds(&self, mut hand_on: impl FnMut((u64, u64), Holds)) {
        let (_, _, size) = self.ranks;
        let (_, elements, _) = self.result;
        let bound = |rank| part_bound(elements, rank, size);
        match self.collective {
            Collective::BROADCAST => {
                hand_on((0, elements), Holds::One(self.world_rank(self.root)));
            }
            Collective::REDUCE if self.rank != self.root => {}
            Collective::REDUCE | Collective::ALL_REDUCE => hand_on((0, elements), Holds::All),
            Collective::REDUCE_SCATTER => {
                hand_on((bound(self.rank), bound(self.rank + 1)), Holds::All);
            }
            Collective::ALL_GATHER | Collective::ALL_TO_ALL => {
                for of in 0..size {
                    hand_on((bound(of), bound(of + 1)), Holds::One(self.world_rank(of)));
                }
            }
            _ => {}
        }
    }
}
