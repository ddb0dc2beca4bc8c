//! `pto bench groups`: collectives and a tensor-parallel layer on more and more devices, in virtual time without computation.

use std::time::{Duration, Instant};

use pto_examples::{comm_bench, comm_layer, host};
use pto_graph::group::{Algorithm, Collective, Order};
use pto_host::group::{Group, GroupOptions, GroupWork, NetworkProfile};
use pto_host::virtual_time::{Compute, VirtualOptions};
use pto_host::{Capacities, DeviceOptions, Hosting, RunOptions};

use super::bounds::Bounds;
use super::scaling_table::{ScalingLayer, ScalingRow, as_json, text};
use crate::args::CommScalingArgs;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer;

/// Collectives that are measured.
const COLLECTIVES: [Collective; 6] = [
    Collective::ALL_REDUCE,
    Collective::REDUCE_SCATTER,
    Collective::ALL_GATHER,
    Collective::ALL_TO_ALL,
    Collective::BROADCAST,
    Collective::REDUCE,
];
/// Cores of a device.
const CORES: [u32; 2] = [24, 48];
/// The layer: rows, inner extent of all ranks together, columns, and columns that are added up at once.
const LAYER: [u64; 4] = [512, 18_432, 8192, 1024];
/// Memory of a device. Without computation it is not touched, and costs nothing.
const GM_BYTES: u64 = 2 << 30;

/// Tasks of several calls that a run has room for at once.
const MOST_TASKS: u64 = 1 << 14;

/// Measures.
pub(crate) fn scaling(args: &CommScalingArgs) -> Result<Exit, Failure> {
    let network = NetworkProfile::by_name(&args.network).ok_or_else(|| {
        let names = NetworkProfile::NAMES.join(", ");
        Failure::usage(format!("there is no network '{}'; use one of {names}", args.network))
    })?;
    let (mut rows, mut layers) = (Vec::new(), Vec::new());
    for &ranks in &args.ranks {
        let rig = ScalingGroup { ranks, network, aicpu: args.aicpu, rounds: args.rounds };
        if !args.layer {
            let wanted = |of: &&Collective| args.collective.is_none_or(|only| only == **of);
            for &collective in COLLECTIVES.iter().filter(wanted) {
                for &bytes in &args.sizes {
                    rows.push(rig.collective(collective, bytes)?);
                }
            }
        }
        // A rank has whole tiles of the inner extent.
        if args.collective.is_none() && LAYER[1].is_multiple_of(ranks.into()) {
            layers.push(rig.layer()?);
        }
    }
    let head = (network.name, args.aicpu);
    answer(
        Form::from(args.json),
        Exit::Pass,
        || text(head, &rows, &layers),
        || as_json(head, &rows, &layers),
    )
}

/// A group of so many devices.
struct ScalingGroup {
    ranks: u32,
    network: NetworkProfile,
    aicpu: u32,
    /// Calls of a collective in one run.
    rounds: u32,
}

impl ScalingGroup {
    fn open(&self, windows: [u64; 2]) -> Result<Group, Failure> {
        let hosting =
            Hosting::Virtual(VirtualOptions { compute: Compute::Off, ..VirtualOptions::default() });
        let device = DeviceOptions { aic: CORES[0], aiv: CORES[1], gm_bytes: GM_BYTES, hosting };
        let options = GroupOptions { device, ..GroupOptions::default() };
        let mut group =
            host::open_virtual_group(self.ranks, &options, self.network).map_err(Failure::usage)?;
        for bytes in windows {
            group.window(bytes).map_err(Failure::usage)?;
        }
        Ok(group)
    }

    /// The time of one run, the tasks of all ranks, and what the run has taken on this machine.
    fn run(
        &self,
        group: &mut Group,
        (builder, words): (&str, &[u64]),
        tasks: u64,
    ) -> Result<(Duration, u64, Duration), Failure> {
        let words = words.to_vec();
        let words = |_| words.clone();
        let capacities = Capacities {
            tasks: u32::try_from(tasks).unwrap_or(u32::MAX).next_power_of_two().max(1024),
            arg_words: 0,
            edges: 0,
            ..Capacities::default()
        };
        let mut capacities = capacities.streamed_whole();
        capacities.stream.heap_bytes = 128 << 20;
        let options =
            RunOptions { capacities, aicpu_instances: self.aicpu, ..RunOptions::default() };
        let start = Instant::now();
        let work = GroupWork { builder, args: &words };
        let report = group.run(&work, &options)?;
        Ok((report.makespan(), report.tasks(), start.elapsed()))
    }

    fn collective(&self, collective: Collective, bytes: u64) -> Result<ScalingRow, Failure> {
        // Whole parts for every rank.
        let elements = (bytes / 4 / u64::from(self.ranks)).max(1) * u64::from(self.ranks);
        let bytes = elements * 4;
        let mut group = self.open([bytes, bytes])?;
        let args = comm_bench::Args {
            collective: collective.get().into(),
            algorithm: Algorithm::AUTO.get().into(),
            order: Order::ANY.get().into(),
            elements,
            rounds: self.rounds.into(),
        };
        // A tile has a send, a receive and a reduction, and a rank at least a tile for each other one.
        let tiles = (bytes >> 19).max(1) + u64::from(self.ranks);
        let tasks = (8 * tiles * u64::from(self.rounds)).min(MOST_TASKS.max(8 * tiles));
        let (time, tasks, wall) = self.run(&mut group, ("comm_bench", &args.words()), tasks)?;
        let ran = (time / self.rounds, tasks, wall);
        let bounds = Bounds::of(collective, self.ranks, bytes, &self.network);
        Ok(ScalingRow { collective, ranks: self.ranks, bytes, ran, bounds })
    }

    fn layer(&self) -> Result<ScalingLayer, Failure> {
        let [rows, inner, cols, together] = LAYER;
        let inner = inner / u64::from(self.ranks);
        let mut times = [Duration::ZERO; 4];
        let (mut tasks, mut wall) = (0, Duration::ZERO);
        for (time, part) in times.iter_mut().zip(comm_layer::LayerPart::ALL) {
            let mut group = self.open([4 * inner * (rows + cols), 4 * rows * cols])?;
            let part = part.get().into();
            let args = comm_layer::Args { rows, inner, cols, together, part };
            let each = (rows * cols) >> 14;
            let sums = cols / together * 6 * (u64::from(self.ranks) + 4);
            let ran = self.run(&mut group, ("comm_layer", &args.words()), each + sums)?;
            *time = ran.0;
            tasks = tasks.max(ran.1);
            wall += ran.2;
        }
        Ok(ScalingLayer { ranks: self.ranks, times, tasks, wall, pieces: cols / together })
    }
}
