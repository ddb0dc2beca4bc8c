//! What the host writes into the arena before a launch.

use std::time::Duration;

use bytemuck::Zeroable;
use pto_abi::arena::{Arena, Capacities};
use pto_abi::kinds::RunFlags;
use pto_abi::layout::LAYOUT_HASH;
use pto_abi::limits::{MAX_FUNC_ID, MAX_ORCH_ARGS};
use pto_abi::runtime::{
    ABI_MAJOR, ABI_MINOR, OrchArgs, RUNTIME_MAGIC, Region, RunConfig, Runtime, RuntimeHeader,
    WorkerEntry, region,
};
use pto_abi::stream::StreamCapacities;
use pto_abi::symbol::symbol;
use pto_abi::{CoreKind, GmAddr};

use crate::arena::{RuntimeArena, larger};
use crate::{Error, GraphImage, KernelTimes, RunOptions, Work, trace};

/// One launch, decided; nothing is written yet.
pub(crate) struct Launch<'a> {
    config: RunConfig,
    orch: OrchArgs,
    image: Option<&'a GraphImage>,
    /// The image stands in the arena, and its tasks as well.
    again: bool,
    /// What the arena must provide for.
    pub(crate) capacities: Capacities,
}

/// What a launch takes from the device.
pub(crate) struct DeviceTables<'a> {
    pub(crate) gm_address: GmAddr,
    pub(crate) gm_bytes: u64,
    pub(crate) workers: &'a [WorkerEntry],
    pub(crate) kernels: &'a [u64; MAX_FUNC_ID],
    pub(crate) run_epoch: u32,
    pub(crate) bring_up_epoch: u32,
}

impl<'a> Launch<'a> {
    pub(crate) fn plan(
        work: Work<'a>,
        options: &RunOptions,
        workers: usize,
    ) -> Result<Self, Error> {
        let mut config = configure(options, workers)?;
        let mut orch = OrchArgs::zeroed();
        let mut capacities = options.capacities;
        let mut image = None;
        config.variant = work.variant().get();
        match work {
            Work::HostGraph(graph) => {
                capacities = larger(&capacities, &graph.needs());
                image = Some(graph);
            }
            Work::AicpuBuilder { builder, orch_args } => {
                config.builder = symbol(builder);
                orch = marshal(orch_args)?;
            }
            Work::Stream { builder, orch_args } => {
                config.builder = symbol(builder);
                orch = marshal(orch_args)?;
                capacities = streaming(capacities);
            }
        }
        if !matches!(work, Work::Stream { .. }) {
            capacities.stream = StreamCapacities::OFF;
        }
        capacities.trace = trace::rings(options, &capacities, workers);
        Ok(Self { config, orch, image, again: false, capacities })
    }

    /// The arena holds the graph, from a run before: it runs again.
    pub(crate) fn again(&mut self) {
        self.again = true;
        self.config.flags |= RunFlags::RUN_AGAIN.bits();
    }

    /// Writes everything. `arena` holds the capacities, and no agent uses it.
    pub(crate) fn write(
        &self,
        arena: &RuntimeArena,
        device: &DeviceTables<'_>,
    ) -> Result<(), Error> {
        let view = arena.view();
        let layout = arena.layout();
        let mut regions = layout.regions;
        regions[region::GRAPH] = self.image_region(regions[region::GRAPH]);
        regions[region::TRACE] = own_size(regions[region::TRACE], self.capacities.trace.bytes());
        view.set_header(&RuntimeHeader {
            magic: RUNTIME_MAGIC,
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            header_bytes: u32::try_from(size_of::<Runtime>()).unwrap_or(0),
            layout_hash: LAYOUT_HASH,
            total_bytes: layout.total_bytes,
            arena_address: arena.address(),
            gm_address: device.gm_address,
            gm_bytes: device.gm_bytes,
            run_epoch: device.run_epoch,
            bring_up_epoch: device.bring_up_epoch,
        });
        view.set_config(&self.config);
        view.set_regions(&regions);
        view.set_orch_args(&self.orch);
        view.set_kernel_addrs(device.kernels);
        for (index, entry) in device.workers.iter().enumerate() {
            view.set_worker_entry(index, entry);
        }
        self.write_trace_header(&view, regions[region::TRACE])?;
        if self.capacities.stream != StreamCapacities::OFF {
            let written = view.set_stream_sizes(regions[region::STREAM], &self.capacities);
            // The capacities hold the header; a failure would be an error of `ArenaLayout`.
            written.ok_or(Error::ImageRegion { bytes: regions[region::STREAM].bytes })?;
        }
        view.prepare_run();
        let Some(image) = self.image.filter(|_| !self.again) else { return Ok(()) };
        let written = image.write_to(&view.window(), regions[region::GRAPH].offset);
        // The capacities hold the image; a failure would be an error of `ArenaLayout`.
        written.ok_or(Error::ImageRegion { bytes: image.byte_count() as u64 })
    }

    /// The image's own size within the region that is kept for images; no image: no region.
    fn image_region(&self, kept: Region) -> Region {
        own_size(kept, self.image.map_or(0, |image| image.byte_count() as u64))
    }

    fn write_trace_header(&self, view: &Arena<'_>, at: Region) -> Result<(), Error> {
        if at.bytes == 0 {
            return Ok(());
        }
        // The capacities hold the rings; a failure would be an error of `ArenaLayout`.
        let written = view.set_trace_header(at, &self.capacities.trace.header());
        written.ok_or(Error::ImageRegion { bytes: at.bytes })
    }
}

/// What a streaming run gets: its slots are the window, and what it does not ask for is as large as usual.
fn streaming(asked: Capacities) -> Capacities {
    let mut capacities = asked;
    if asked.stream == StreamCapacities::OFF {
        capacities.stream = StreamCapacities::STANDARD;
        capacities.arg_words = 16 * u64::from(capacities.stream.window);
        capacities.edges = 16 * u64::from(capacities.stream.window);
    }
    capacities.tasks = capacities.stream.window;
    capacities
}

/// The part of a region that a run uses; none, if it uses nothing.
fn own_size(kept: Region, bytes: u64) -> Region {
    if bytes > 0 { Region { offset: kept.offset, bytes } } else { Region { offset: 0, bytes: 0 } }
}

fn configure(options: &RunOptions, workers: usize) -> Result<RunConfig, Error> {
    // The machine lets the cores go before the arena does: `Backend::release`.
    let mut flags = RunFlags::KEEP_CORES;
    flags.set(RunFlags::KERNEL_TIMES, options.kernel_times == KernelTimes::Measure);
    flags |= options.trace.map_or(RunFlags::empty(), |trace| trace.when_full.flags());
    Ok(RunConfig {
        variant: 0,
        build_mode: options.build_mode.get(),
        fanout: options.fanout.get(),
        flags: flags.bits(),
        aicpu_instances: options.aicpu_instances,
        worker_count: u32::try_from(workers).unwrap_or(u32::MAX),
        builder: 0,
        task_budget_ns: nanoseconds("task_budget", options.task_budget)?,
        stall_budget_ns: nanoseconds("stall_budget", options.stall_budget)?,
        bring_up_budget_ns: nanoseconds("bring_up_budget", options.bring_up_budget)?,
        // On the wire, zero says that there is none.
        run_budget_ns: match options.run_budget {
            None => 0,
            Some(budget) => nanoseconds("run_budget", budget)?,
        },
    })
}

fn nanoseconds(name: &'static str, budget: Duration) -> Result<u64, Error> {
    let nanoseconds = u64::try_from(budget.as_nanos()).ok().filter(|ns| *ns > 0);
    nanoseconds.ok_or(Error::Budget { name, budget })
}

fn marshal(orch_args: &[u64]) -> Result<OrchArgs, Error> {
    let given = orch_args.len();
    let mut orch = OrchArgs::zeroed();
    let Some(words) = orch.orch_args.get_mut(..given) else {
        return Err(Error::OrchArgs { given });
    };
    words.copy_from_slice(orch_args);
    orch.orch_argc = u32::try_from(given).unwrap_or(0);
    debug_assert!(given <= MAX_ORCH_ARGS);
    Ok(orch)
}

/// The worker table: all AIC, then all AIV. Cluster `i` is AIC `i` with AIV `2i` and `2i + 1`; cores of
/// which there are too many for that stand in clusters without the other kind.
pub(crate) fn worker_table(aic: u32, aiv: u32) -> Vec<WorkerEntry> {
    let entry = |kind: CoreKind, cluster| WorkerEntry { kind: kind.get().into(), cluster };
    let cubes = (0..aic).map(|core| entry(CoreKind::AIC, core));
    let vectors = (0..aiv).map(|core| entry(CoreKind::AIV, core / 2));
    cubes.chain(vectors).collect()
}

#[cfg(test)]
mod tests {
    use super::{Launch, nanoseconds, worker_table};
    use crate::{Error, RunOptions, Work};
    use std::time::Duration;

    #[test]
    fn clusters_are_one_cube_and_two_vector_cores() {
        let clusters = |aic, aiv| -> Vec<(u32, u32)> {
            worker_table(aic, aiv).iter().map(|entry| (entry.kind, entry.cluster)).collect()
        };
        assert_eq!(clusters(2, 4), [(0, 0), (0, 1), (1, 0), (1, 0), (1, 1), (1, 1)]);
        assert_eq!(clusters(0, 3), [(1, 0), (1, 0), (1, 1)]);
        assert_eq!(clusters(3, 1), [(0, 0), (0, 1), (0, 2), (1, 0)]);
        assert_eq!(clusters(1, 5), [(0, 0), (1, 0), (1, 0), (1, 1), (1, 1), (1, 2)]);
    }

    #[test]
    fn a_budget_is_above_zero_and_fits_the_wire() {
        assert_eq!(nanoseconds("x", Duration::from_micros(3)).unwrap(), 3_000);
        for budget in [Duration::ZERO, Duration::MAX] {
            assert!(matches!(nanoseconds("x", budget), Err(Error::Budget { name: "x", .. })));
        }
        let options = RunOptions { run_budget: Some(Duration::ZERO), ..RunOptions::default() };
        let work = Work::AicpuBuilder { builder: "b", orch_args: &[] };
        let refused = Launch::plan(work, &options, 3).err();
        assert!(matches!(refused, Some(Error::Budget { name: "run_budget", .. })));
    }

    #[test]
    fn too_many_orchestration_words_are_refused() {
        let plan = |orch_args: &[u64]| {
            let work = Work::AicpuBuilder { builder: "b", orch_args };
            Launch::plan(work, &RunOptions::default(), 3).map(|launch| launch.orch)
        };
        let orch = plan(&[7; 128]).unwrap();
        assert_eq!((orch.orch_argc, orch.orch_args[127]), (128, 7));
        assert!(matches!(plan(&[0; 129]), Err(Error::OrchArgs { given: 129 })));
    }
}
