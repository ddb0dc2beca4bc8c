//! The memory of tasks with block shapes, in the region `stream` of an arena.

use pto_abi::arena::Arena;
use pto_abi::runtime::Region;
use pto_abi::stream::{BLOCK_WORDS, StreamPlan};
use pto_abi::{CoreKind, GmAddr};

use super::BlockShapeMemory;
use crate::block_shapes::lanes::{LANE_SETS, Lanes};
use crate::divide::{ClusterTally, WorkerTable};

impl<'a> BlockShapeMemory<'a> {
    /// The memory in the region at `at`; `None`: there is no such region, or it is not what it says, which
    /// [`StreamMemory::accept`](crate::stream::StreamMemory::accept) reports.
    #[must_use]
    pub fn of(arena: &Arena<'a>, at: Region, workers: &WorkerTable) -> Option<Self> {
        let header = arena.stream_header(at)?;
        let sizes = header.capacities();
        let plan = StreamPlan::of(&sizes).filter(|plan| plan.bytes <= at.bytes)?;
        let window = arena.window().part(at.offset, at.bytes)?;
        let tally = workers.tally();
        Some(Self {
            board: &header.board,
            lines: window.live_slice(plan.blocks, sizes.window as usize)?,
            parts: window.live_slice(plan.parts, BLOCK_WORDS * workers.len())?,
            parts_address: GmAddr(window.address().0).offset(plan.parts),
            gm: arena.gm(),
            room: core::array::from_fn(|lanes| room((workers, &tally), lanes)),
        })
    }
}

/// Blocks with these lanes that the device can run at once.
fn room((workers, tally): (&WorkerTable, &ClusterTally), lanes: usize) -> u32 {
    let lanes = Lanes(u8::try_from(lanes % LANE_SETS).unwrap_or(0));
    match lanes.single() {
        Some(kind) => u32::try_from(workers.count(kind)).unwrap_or(u32::MAX),
        None => {
            let mut cores = [0; CoreKind::COUNT];
            cores[CoreKind::AIC.index()] = usize::from(lanes.has(0));
            cores[CoreKind::AIV.index()] = usize::from(lanes.has(1)) + usize::from(lanes.has(2));
            tally.with(cores)
        }
    }
}
