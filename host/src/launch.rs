//! What the host writes into the arena before a launch.

use std::time::Duration;

use pto_abi::CoreKind;
use pto_abi::arena::Capacities;
use pto_abi::kinds::RunFlags;
use pto_abi::launch::{Epochs, LaunchBlock};
use pto_abi::launch_args::LaunchArgs;
use pto_abi::limits::MAX_FUNC_ID;
use pto_abi::runtime::{OrchArgs, RunConfig, region};
use pto_abi::session::board::RESIDENT_PROGRAM;
use pto_abi::stream::StreamCapacities;
use pto_abi::symbol::symbol;

use crate::arena::{RuntimeArena, larger};
use crate::error::Error;
use crate::image::GraphImage;
use crate::options::{KernelTimes, RunOptions, Work};
use crate::trace;

/// One launch, decided; nothing is written yet.
pub(crate) struct Launch<'a> {
    config: RunConfig,
    /// The program's own words.
    orch_args: &'a [u64],
    image: Option<&'a GraphImage>,
    /// The image and its tasks are in the arena.
    again: bool,
    /// What the arena must provide for.
    pub(crate) capacities: Capacities,
}

/// What a launch takes from the device.
pub(crate) struct DeviceTables<'a> {
    pub(crate) cores: [u32; CoreKind::COUNT],
    pub(crate) kernels: &'a [u64; MAX_FUNC_ID],
    pub(crate) epochs: Epochs,
    /// The words of the group that it is a rank of; empty: it is in none.
    pub(crate) group: &'a [u64],
}

impl<'a> Launch<'a> {
    pub(crate) fn plan(
        work: Work<'a>,
        options: &RunOptions,
        workers: usize,
    ) -> Result<Self, Error> {
        let mut config = configure(options)?;
        let mut orch_args = &[][..];
        let mut capacities = options.capacities;
        let mut image = None;
        config.variant = work.variant().get();
        match work {
            Work::HostGraph(graph) => {
                capacities = larger(&capacities, &graph.needs());
                image = Some(graph);
            }
            Work::AicpuBuilder { builder, orch_args: words } => {
                config.builder = symbol(builder);
                orch_args = words;
            }
            Work::Stream { builder, orch_args: words } => {
                config.builder = symbol(builder);
                orch_args = words;
                capacities = streaming(capacities);
            }
        }
        match work {
            Work::HostGraph(graph) => capacities.stream = graph.needs().stream,
            // The session says whether its streams may have transfers.
            Work::AicpuBuilder { builder: RESIDENT_PROGRAM, .. } | Work::Stream { .. } => {}
            Work::AicpuBuilder { .. } => capacities.stream = StreamCapacities::OFF,
        }
        capacities.trace = trace::rings(options, &capacities, workers);
        Ok(Self { config, orch_args, image, again: false, capacities })
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
        let args = LaunchArgs { program: self.orch_args, group: device.group };
        let block = LaunchBlock {
            config: self.config,
            orch: OrchArgs::of(args).ok_or(Error::OrchArgs { given: args.word_count() })?,
            capacities: &self.capacities,
            image_bytes: self.image.map_or(0, |image| image.byte_count() as u64),
            kernels: device.kernels,
            cores: device.cores,
            epochs: device.epochs,
        };
        // The capacities hold everything; a failure would be an error of `ArenaLayout`.
        let too_small = || Error::ImageRegion { bytes: block.image_bytes };
        let regions = block.write(&view, arena.layout()).ok_or_else(too_small)?;
        let Some(image) = self.image.filter(|_| !self.again) else { return Ok(()) };
        let written = image.write_to(&view.window(), regions[region::GRAPH].offset);
        written.ok_or_else(too_small)
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

fn configure(options: &RunOptions) -> Result<RunConfig, Error> {
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
        // Of the device.
        worker_count: 0,
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

#[cfg(test)]
mod tests {
    use super::{Launch, nanoseconds};
    use crate::error::Error;
    use crate::options::{RunOptions, Work};
    use std::time::Duration;

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
}
