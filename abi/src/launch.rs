//! What a host writes into an arena for one launch: the one writer of it. What the firmware makes of that is
//! `pto_aicpu_fw::Launch`.
//!
//! ```text
//! ArenaLayout::plan  the host allocates, Arena::new        once
//! Handshake::reset of every worker                         once, before cores are brought up
//! LaunchBlock::write  graph image, inputs                  for each run, while no agent uses the arena
//! ```

use bytemuck::Zeroable;

use crate::arena::{Arena, ArenaLayout, Capacities};
use crate::kinds::CoreKind;
use crate::launch_args::LaunchArgs;
use crate::layout::LAYOUT_HASH;
use crate::limits::MAX_FUNC_ID;
use crate::runtime::{
    ABI_MAJOR, ABI_MINOR, OrchArgs, RUNTIME_MAGIC, Region, RunConfig, Runtime, RuntimeHeader,
    WorkerEntry, region,
};
use crate::stream::StreamCapacities;

/// Numbers that tell one run and one bring-up from the next; never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epochs {
    /// Changes with every run.
    pub run: u32,
    /// Changes with every bring-up of the cores.
    pub bring_up: u32,
}

/// One launch: everything that the host decides.
#[derive(Clone, Copy, Debug)]
pub struct LaunchBlock<'a> {
    /// How the run is done. Its `worker_count` is that of `cores`.
    pub config: RunConfig,
    /// The builder's arguments.
    pub orch: OrchArgs,
    /// What the run uses of the arena, which may be larger.
    pub capacities: &'a Capacities,
    /// Size of the graph image; 0: there is none.
    pub image_bytes: u64,
    /// Where the code of each function is, by its id.
    pub kernels: &'a [u64; MAX_FUNC_ID],
    /// Cores, by [`CoreKind::index`].
    pub cores: [u32; CoreKind::COUNT],
    /// Which run, and which bring-up.
    pub epochs: Epochs,
}

impl LaunchBlock<'_> {
    /// Writes everything but the graph image, which belongs at the start of the region `GRAPH` of those that are returned.
    /// Only while no agent uses the arena, which has this layout. `None`: it holds less than the capacities.
    #[must_use]
    pub fn write(
        &self,
        arena: &Arena<'_>,
        layout: &ArenaLayout,
    ) -> Option<[Region; region::COUNT]> {
        let mut regions = layout.regions;
        regions[region::GRAPH] = cut(regions[region::GRAPH], self.image_bytes)?;
        regions[region::TRACE] = cut(regions[region::TRACE], self.capacities.trace.bytes())?;
        if self.capacities.stream == StreamCapacities::OFF {
            regions[region::STREAM] = cut(regions[region::STREAM], 0)?;
        }
        arena.set_header(&self.header(arena, layout));
        arena.set_config(&RunConfig { worker_count: self.cores.iter().sum(), ..self.config });
        arena.set_regions(&regions);
        arena.set_orch_args(&self.orch);
        arena.set_kernel_addrs(self.kernels);
        for (worker, entry) in worker_table(self.cores).enumerate() {
            arena.set_worker_entry(worker, &entry);
        }
        if regions[region::TRACE].bytes > 0 {
            arena.set_trace_header(regions[region::TRACE], &self.capacities.trace.header())?;
        }
        if self.capacities.stream != StreamCapacities::OFF {
            arena.set_stream_sizes(regions[region::STREAM], self.capacities)?;
        }
        arena.prepare_run();
        Some(regions)
    }

    fn header(&self, arena: &Arena<'_>, layout: &ArenaLayout) -> RuntimeHeader {
        RuntimeHeader {
            magic: RUNTIME_MAGIC,
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            #[expect(clippy::cast_possible_truncation, reason = "28 KiB")]
            header_bytes: size_of::<Runtime>() as u32,
            layout_hash: LAYOUT_HASH,
            total_bytes: layout.total_bytes,
            arena_address: arena.window().address(),
            gm_address: arena.gm().address(),
            gm_bytes: arena.gm().bytes(),
            run_epoch: self.epochs.run,
            bring_up_epoch: self.epochs.bring_up,
        }
    }
}

/// The part of a region that a run uses; no place, if it uses nothing.
fn cut(kept: Region, bytes: u64) -> Option<Region> {
    let offset = if bytes > 0 { kept.offset } else { 0 };
    (bytes <= kept.bytes).then_some(Region { offset, bytes })
}

impl OrchArgs {
    /// These arguments; `None`: they are more than `MAX_ORCH_ARGS` words.
    #[must_use]
    pub fn of(args: LaunchArgs<'_>) -> Option<Self> {
        let mut orch = Self::zeroed();
        let (program, group) = orch.orch_args.split_at_mut_checked(args.program.len())?;
        program.copy_from_slice(args.program);
        group.get_mut(..args.group.len())?.copy_from_slice(args.group);
        orch.orch_argc = u32::try_from(args.program.len()).ok()?;
        orch.group_argc = u32::try_from(args.group.len()).ok()?;
        Some(orch)
    }

    /// The arguments; `None`: the counts are of more than `MAX_ORCH_ARGS` words.
    #[must_use]
    pub fn args(&self) -> Option<LaunchArgs<'_>> {
        let (program, group) = self.orch_args.split_at_checked(self.orch_argc as usize)?;
        Some(LaunchArgs { program, group: group.get(..self.group_argc as usize)? })
    }
}

/// The worker table: all AIC, then all AIV. Cluster `i` is AIC `i` with AIV `2i` and `2i + 1`; surplus cores of one kind are in clusters
/// without the other kind.
pub fn worker_table([aic, aiv]: [u32; CoreKind::COUNT]) -> impl Iterator<Item = WorkerEntry> {
    let entry = |kind: CoreKind, cluster| WorkerEntry { kind: kind.get().into(), cluster };
    let cubes = (0..aic).map(move |core| entry(CoreKind::AIC, core));
    cubes.chain((0..aiv).map(move |core| entry(CoreKind::AIV, core / 2)))
}

#[cfg(test)]
mod tests {
    use super::{OrchArgs, cut, worker_table};
    use crate::launch_args::LaunchArgs;
    use crate::limits::MAX_ORCH_ARGS;
    use crate::runtime::Region;

    #[test]
    fn clusters_are_one_cube_and_two_vector_cores() {
        let clusters = |cores, expected: &[(u32, u32)]| {
            assert!(
                worker_table(cores)
                    .map(|entry| (entry.kind, entry.cluster))
                    .eq(expected.iter().copied())
            );
        };
        clusters([2, 4], &[(0, 0), (0, 1), (1, 0), (1, 0), (1, 1), (1, 1)]);
        clusters([0, 3], &[(1, 0), (1, 0), (1, 1)]);
        clusters([3, 1], &[(0, 0), (0, 1), (0, 2), (1, 0)]);
        clusters([1, 5], &[(0, 0), (1, 0), (1, 0), (1, 1), (1, 1), (1, 2)]);
    }

    #[test]
    fn words_are_kept_up_to_the_limit() {
        for (program, group) in [(MAX_ORCH_ARGS, 0), (MAX_ORCH_ARGS - 5, 5), (0, 6), (0, 0)] {
            let (program, group) = (&[7; MAX_ORCH_ARGS][..program], &[8; 6][..group]);
            let args = LaunchArgs { program, group };
            let mut orch = OrchArgs::of(args).unwrap();
            assert_eq!(orch.args(), Some(args));
            orch.group_argc = u32::try_from(MAX_ORCH_ARGS - program.len() + 1).unwrap();
            assert_eq!(orch.args(), None);
            orch.orch_argc = u32::MAX;
            assert_eq!(orch.args(), None);
        }
        assert!(OrchArgs::of(LaunchArgs::of(&[7; MAX_ORCH_ARGS + 1])).is_none());
        let (program, group) = (&[7; MAX_ORCH_ARGS][..], &[8][..]);
        assert!(OrchArgs::of(LaunchArgs { program, group }).is_none());
    }

    #[test]
    fn a_run_has_its_own_part_of_a_region() {
        let kept = Region { offset: 64, bytes: 128 };
        assert_eq!(cut(kept, 100), Some(Region { offset: 64, bytes: 100 }));
        assert_eq!(cut(kept, 0), Some(Region { offset: 0, bytes: 0 }));
        assert_eq!(cut(kept, 129), None);
    }
}
