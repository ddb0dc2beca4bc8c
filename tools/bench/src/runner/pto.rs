//! The runtime itself: the simulator in one of its hosting modes, with one of the runtime variants.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use pto_abi::arena::ArenaLayout;
use pto_abi::{BuildMode, FanoutStrategy};
use pto_host::virtual_time::VirtualReport;
use pto_host::{
    Capacities, Device, DeviceOptions, GraphImage, HostGraph, Hosting, KernelTimes, RunOptions,
    TraceOptions, Work,
};

use super::{Class, Error, LoadedGraph, Runner, Sample, own_ns_per_iteration};
use crate::csr::{Csr, fold_values};
use crate::device;
use crate::program::{GraphJob, Kernel, NAME, Program};

/// Who builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// `host_build_graph`.
    Host,
    /// The same, with a graph that was built and run before: it is on the device.
    Prepared,
    /// `aicpu_build_graph` with this build mode.
    Aicpu(BuildMode),
}

/// Whether a run is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traced {
    /// It writes no events.
    Off,
    /// It writes all of them.
    On,
}

/// What [`Pto::run_timed`] found.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// From the launch to the last instance's return, ns.
    pub run_ns: f64,
    /// From the call to its return, with the timeline of a run that is traced, ns.
    pub whole_ns: f64,
    /// Events in the timeline.
    pub events: u64,
}

/// The device that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Die {
    /// Cube cores.
    pub aic: u32,
    /// Vector cores: the tasks of the benchmark run on these.
    pub aiv: u32,
    /// AICPU instances.
    pub aicpu: u32,
}

impl Default for Die {
    /// A full a2a3 die.
    fn default() -> Self {
        Self { aic: 24, aiv: 48, aicpu: 4 }
    }
}

/// GM of the measured device: room for 10,000,000 tasks; pages cost nothing until they are touched.
const GM_BYTES: u64 = 32 << 30;
/// The most tasks in hosting mode `threads`, where a dispatch may wake an OS thread, which takes microseconds.
const MOST_TASKS_OF_THREADS: u32 = 10_000;

/// The runtime.
#[derive(Debug)]
pub struct Pto {
    name: String,
    hosting: Hosting,
    variant: Variant,
    fanout: FanoutStrategy,
    die: Die,
    device: Device,
    program: Program,
    graph: Arc<Csr>,
    /// Of a graph that is prepared: its image, and what its tasks do.
    prepared: Option<(Kernel, GraphImage)>,
}

impl Pto {
    /// Opens a device.
    ///
    /// # Errors
    /// Those of [`Device::open_sim`].
    pub fn open(hosting: Hosting, variant: Variant, die: Die) -> Result<Self, Error> {
        let program = Program::default();
        let options = DeviceOptions { aic: die.aic, aiv: die.aiv, gm_bytes: GM_BYTES, hosting };
        let mut device = device::open(options, program.clone())?;
        device.register_library()?;
        let built = match variant {
            Variant::Host => "host-built",
            Variant::Prepared => "prepared",
            Variant::Aicpu(BuildMode::SEQUENTIAL) => "aicpu-built, then run",
            Variant::Aicpu(_) => "aicpu-built",
        };
        let hosted = match hosting {
            Hosting::Pool { os_threads } => format!("pool-{os_threads}"),
            hosting => hosting.to_string(),
        };
        Ok(Self {
            name: format!("pto {hosted} {built}"),
            hosting,
            variant,
            fanout: FanoutStrategy::LOCK_FREE,
            die,
            device,
            program,
            graph: Arc::new(Csr::with_capacity(0, 0)),
            prepared: None,
        })
    }

    /// The same with another fanout strategy.
    #[must_use]
    pub fn with_fanout(self, fanout: FanoutStrategy) -> Self {
        let name = match fanout {
            FanoutStrategy::LOCK_FREE => self.name,
            fanout => format!("{} {fanout}", self.name),
        };
        Self { name, fanout, ..self }
    }

    fn options(&self, kernel: Kernel) -> RunOptions {
        let tasks = self.graph.tasks();
        RunOptions {
            build_mode: match self.variant {
                Variant::Aicpu(mode) => mode,
                Variant::Host | Variant::Prepared => BuildMode::CONCURRENT,
            },
            fanout: self.fanout,
            aicpu_instances: self.die.aicpu,
            kernel_times: KernelTimes::Skip,
            capacities: capacities(tasks, self.graph.edges(), kernel),
            ..RunOptions::default()
        }
    }

    /// The graph as an image of the host.
    ///
    /// # Errors
    /// Those of [`HostGraph::build`].
    pub fn image(&self, kernel: Kernel) -> Result<GraphImage, Error> {
        let job = GraphJob { graph: Arc::clone(&self.graph), kernel };
        Ok(HostGraph::build(&self.device, &[], |graph| job.build(graph))?)
    }

    /// Builds and runs the graph.
    ///
    /// # Errors
    /// Those of the device.
    pub fn run(&mut self, kernel: Kernel) -> Result<Sample, Error> {
        let options = self.options(kernel);
        let start = Instant::now();
        match self.variant {
            Variant::Host => {
                let image = self.image(kernel)?;
                let build = start.elapsed();
                self.device.run(Work::HostGraph(&image), &options)?;
                let total = start.elapsed();
                Ok(Sample { build: Some(build), run: Some(total - build), total })
            }
            Variant::Prepared => self.run_again(kernel, &options),
            Variant::Aicpu(mode) => {
                self.program.assign(GraphJob { graph: Arc::clone(&self.graph), kernel });
                let work = Work::AicpuBuilder { builder: NAME, orch_args: &[] };
                self.device.run(work, &options)?;
                let total = start.elapsed();
                let build = (mode == BuildMode::SEQUENTIAL).then(|| self.program.took());
                Ok(Sample { build, run: build.map(|build| total.saturating_sub(build)), total })
            }
        }
    }

    /// Builds and runs the graph on the AICPU, with the times of its kernels, and with events if it is `traced`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn run_timed(&mut self, traced: Traced) -> Result<Timed, Error> {
        let options = RunOptions {
            kernel_times: KernelTimes::Measure,
            trace: (traced == Traced::On).then(TraceOptions::default),
            ..self.options(Kernel::Empty)
        };
        self.program.assign(GraphJob { graph: Arc::clone(&self.graph), kernel: Kernel::Empty });
        let work = Work::AicpuBuilder { builder: NAME, orch_args: &[] };
        let start = Instant::now();
        let report = self.device.run(work, &options)?;
        let whole_ns = start.elapsed().as_secs_f64() * 1e9;
        let events = report.trace.iter().flat_map(|trace| &trace.lanes).map(|lane| lane.read);
        Ok(Timed { run_ns: report.makespan.as_secs_f64() * 1e9, whole_ns, events: events.sum() })
    }

    /// Builds and runs the graph in virtual time, on AICPU instance 0.
    ///
    /// # Errors
    /// Those of the device, and [`Error::NotVirtual`] where the device does not run in virtual time.
    pub fn run_virtual(&mut self, kernel: Kernel) -> Result<Box<VirtualReport>, Error> {
        let options = self.options(kernel);
        self.program.assign(GraphJob { graph: Arc::clone(&self.graph), kernel });
        let work = Work::AicpuBuilder { builder: NAME, orch_args: &[] };
        let report = self.device.run(work, &options)?;
        report.virtual_report.ok_or(Error::NotVirtual)
    }

    /// Runs the graph that is prepared; one that is not, is prepared before.
    fn run_again(&mut self, kernel: Kernel, options: &RunOptions) -> Result<Sample, Error> {
        let image = match self.prepared.take().filter(|(prepared, _)| *prepared == kernel) {
            Some((_, image)) => image,
            None => {
                let image = self.image(kernel)?;
                self.device.run(Work::HostGraph(&image), options)?;
                image
            }
        };
        let start = Instant::now();
        self.device.run(Work::HostGraph(&image), options)?;
        let total = start.elapsed();
        self.prepared = Some((kernel, image));
        Ok(Sample { build: None, run: Some(total), total })
    }
}

/// What a run of a graph needs.
#[must_use]
pub fn capacities(tasks: u32, edges: u64, kernel: Kernel) -> Capacities {
    let arg_words = u64::from(tasks) * kernel.words();
    Capacities { tasks, arg_words, edges, log_entries: 16, ..Capacities::default() }
}

/// Bytes of the arena that a graph takes, with tasks without arguments, beyond what an arena of one task takes.
///
/// # Errors
/// When the graph exceeds a limit.
pub fn arena_bytes(tasks: u32, edges: u64) -> Result<u64, pto_abi::arena::CapacityError> {
    let bytes = |tasks, edges| -> Result<u64, pto_abi::arena::CapacityError> {
        Ok(ArenaLayout::plan(&capacities(tasks, edges, Kernel::Empty))?.total_bytes)
    };
    Ok(bytes(tasks, edges)? - bytes(1, 0)?)
}

impl Runner for Pto {
    fn name(&self) -> &str {
        &self.name
    }

    fn class(&self) -> Class {
        if self.variant == Variant::Prepared { Class::Prepared } else { Class::Ours }
    }

    fn threads(&self) -> usize {
        match self.hosting {
            Hosting::Pool { os_threads } => os_threads.get(),
            _ => (self.die.aic + self.die.aiv + self.die.aicpu) as usize,
        }
    }

    fn most_tasks(&self) -> u32 {
        match self.hosting {
            Hosting::Threads => MOST_TASKS_OF_THREADS,
            _ => u32::MAX,
        }
    }

    fn load(&mut self, loaded: LoadedGraph<'_>) -> Result<(), Error> {
        self.graph = Arc::clone(loaded.graph);
        self.prepared = None;
        Ok(())
    }

    fn check(&mut self) -> Result<u64, Error> {
        let tasks = self.graph.tasks() as usize;
        let values = self.device.zeroed::<u64>(tasks)?;
        let counters = self.device.zeroed::<u32>(tasks)?;
        // A buffer is never empty; a graph may have no edges.
        let listed = self.graph.producers();
        let producers = self.device.upload(if listed.is_empty() { &[0] } else { listed })?;
        self.run(Kernel::Check {
            values: values.address(),
            counters: counters.address(),
            producers: producers.address(),
        })?;
        // A graph is prepared by a run.
        let runs = if self.variant == Variant::Prepared { 2 } else { 1 };
        let as_often = counters.read()?.iter().all(|count| *count == runs);
        let sum = fold_values(values.read()?);
        Ok(if as_often { sum } else { !sum })
    }

    fn ns_per_iteration(&mut self) -> Result<f64, Error> {
        Ok(own_ns_per_iteration())
    }

    fn sample(&mut self, iterations: u64) -> Result<Sample, Error> {
        self.run(if iterations == 0 { Kernel::Empty } else { Kernel::Spin { iterations } })
    }

    fn memory_bytes(&mut self) -> Result<Option<u64>, Error> {
        let (tasks, edges) = (self.graph.tasks(), self.graph.edges());
        let arena = arena_bytes(tasks, edges).map_err(pto_host::Error::from)?;
        let image = match self.variant {
            Variant::Host | Variant::Prepared => self.image(Kernel::Empty)?.byte_count() as u64,
            Variant::Aicpu(_) => 0,
        };
        Ok(Some(arena + image))
    }
}

/// A pool of so many OS threads.
///
/// # Panics
/// When there are none.
#[must_use]
pub fn pool(os_threads: usize) -> Hosting {
    Hosting::Pool { os_threads: NonZeroUsize::new(os_threads).expect("a pool has a thread") }
}

#[cfg(test)]
mod tests {
    use super::{Die, Pto, Variant, pool};
    use crate::family::Family;
    use crate::program::Kernel;
    use crate::runner::{LoadedGraph, Runner};
    use pto_abi::BuildMode;
    use pto_host::Hosting;
    use pto_host::virtual_time::VirtualOptions;
    use std::sync::Arc;

    #[test]
    fn half_of_the_tasks_run_on_each_kind_of_core() {
        let die = Die { aic: 3, aiv: 6, aicpu: 3 };
        let variant = Variant::Aicpu(BuildMode::CONCURRENT);
        let graph = Arc::new(Family::all().next().unwrap().graph(100));
        let run = |hosting| {
            let mut runner = Pto::open(hosting, variant, die).unwrap();
            runner.load(LoadedGraph { graph: &graph, file: None }).unwrap();
            runner.run_virtual(Kernel::Halves)
        };
        let report = run(Hosting::Virtual(VirtualOptions::default())).unwrap();
        let tasks = report.kinds.map(|kind| kind.parts);
        assert_eq!(tasks.iter().sum::<u64>(), report.tasks);
        assert!(tasks[0].abs_diff(tasks[1]) <= 1, "{tasks:?}");
        let error = run(pool(1)).unwrap_err().to_string();
        assert!(error.contains("does not run in virtual time"), "{error}");
    }

    #[test]
    fn every_shape_runs_in_order_in_every_mode() {
        let die = Die { aic: 3, aiv: 6, aicpu: 3 };
        let modes = [
            Variant::Host,
            Variant::Prepared,
            Variant::Aicpu(BuildMode::SEQUENTIAL),
            Variant::Aicpu(BuildMode::CONCURRENT),
        ];
        for (threads, variant) in [1, 2].into_iter().flat_map(|n| modes.map(|mode| (n, mode))) {
            let mut runner = Pto::open(pool(threads), variant, die).unwrap();
            for family in Family::all() {
                let graph = Arc::new(family.graph(700));
                runner.load(LoadedGraph { graph: &graph, file: None }).unwrap();
                assert_eq!(runner.check().unwrap(), graph.checksum(), "{} {family}", runner.name());
                let sample = runner.sample(1).unwrap();
                assert_eq!(
                    sample.build.is_some(),
                    !matches!(variant, Variant::Prepared | Variant::Aicpu(BuildMode::CONCURRENT))
                );
            }
        }
    }
}
