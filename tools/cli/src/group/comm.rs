//! `pto bench collectives`: what a collective takes on a group, by size, in the table that users of the collective tests of other systems know.

use std::io::Write as _;
use std::time::{Duration, Instant};

use pto_examples::comm_bench::Args;
use pto_graph::group::{Collective, Order};
use pto_host::group::{GroupOptions, GroupWork, RankDevice};
use pto_host::{Capacities, DeviceOptions, RunOptions};

use super::comm_plot::picture;
use super::comm_table::{CommRow, json, text};
use super::open::{Opened, cores};
use crate::args::CommBenchArgs;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer;
use crate::output_file;

/// Elements are of 4 bytes.
const ELEMENT_BYTES: u64 = 4;
/// Tasks that a run has room for.
const WINDOW: u32 = 1 << 16;

/// Measures.
pub(crate) fn bench(args: &CommBenchArgs) -> Result<Exit, Failure> {
    if args.from > args.to || args.from < ELEMENT_BYTES {
        return Err(Failure::usage(format!(
            "--from {} is no size below --to {}; sizes are in bytes, from {ELEMENT_BYTES} on",
            args.from, args.to
        )));
    }
    if let Some(path) = &args.svg {
        output_file::check_form(path, "svg")?;
    }
    let aiv = args.aiv.unwrap_or_else(|| cores(&args.group).1);
    let device = DeviceOptions {
        aic: aiv.div_ceil(2),
        aiv,
        // Two windows, and rings of heaps that hold what a reduction receives.
        gm_bytes: args.to.saturating_mul(24).saturating_add(256 << 20),
        ..GroupOptions::default().device
    };
    let options = GroupOptions { device, ..GroupOptions::default() };
    let mut bench = Bench::new(Opened::open(&args.group, &options)?, args)?;
    let mut rows = Vec::new();
    let mut size = args.from;
    while size <= args.to {
        rows.push(bench.measure(size)?);
        size = size.saturating_mul(args.factor);
    }
    let exit = if rows.iter().all(|row| row.wrong == 0) { Exit::Pass } else { Exit::Wrong };
    if !bench.opened.is_teller() {
        return Ok(exit);
    }
    let (group_name, ranks) = (bench.opened.describe(), bench.opened.group.size());
    let head = (args.collective, group_name.as_str(), ranks);
    if let Some(path) = &args.svg {
        output_file::write(path, |to| to.write_all(picture(head, &rows).as_bytes()))?;
    }
    answer(Form::from(args.json), exit, || text(head, &rows), || json(head, &rows))
}

struct Bench<'a> {
    opened: Opened,
    args: &'a CommBenchArgs,
    windows: [u32; 2],
}

impl<'a> Bench<'a> {
    fn new(mut opened: Opened, args: &'a CommBenchArgs) -> Result<Self, Failure> {
        let mut window = || opened.group.window(args.to).map_err(Failure::usage);
        let windows = [window()?, window()?];
        Ok(Self { opened, args, windows })
    }

    /// The time of one call: that of many, less that of one, so that what a run takes to begin and to end is left out.
    fn measure(&mut self, bytes: u64) -> Result<CommRow, Failure> {
        let ranks = u64::from(self.opened.group.size());
        // Whole parts for every rank.
        let elements = (bytes / ELEMENT_BYTES / ranks).max(1) * ranks;
        let wrong = self.check(elements)?;
        self.fill(elements, |_, _| 0.0)?;
        let rounds = self.args.rounds;
        let (mut one, mut many) = (Duration::MAX, Duration::MAX);
        for _ in 0..self.args.repeats {
            one = one.min(self.run(elements, 1)?);
            many = many.min(self.run(elements, 1 + rounds)?);
        }
        let time = many.saturating_sub(one) / u32::try_from(rounds).unwrap_or(u32::MAX);
        let mpi = self.mpi(elements)?;
        Ok(CommRow { bytes: elements * ELEMENT_BYTES, time, wrong, mpi })
    }

    fn run(&mut self, elements: u64, rounds: u64) -> Result<Duration, Failure> {
        let args = Args {
            collective: u64::from(self.args.collective.get()),
            algorithm: u64::from(self.args.algorithm.get()),
            order: u64::from(Order::ANY.get()),
            elements,
            rounds,
        };
        let words = args.words().to_vec();
        let words = |_| words.clone();
        let work = GroupWork { builder: "comm_bench", args: &words };
        let capacities =
            Capacities { tasks: WINDOW, arg_words: 0, edges: 0, ..Capacities::default() };
        let mut capacities = capacities.streamed_whole();
        capacities.stream.heap_bytes = (4 * self.args.to).next_power_of_two().max(1 << 20);
        let options =
            RunOptions { capacities, aicpu_instances: self.args.aicpu, ..RunOptions::default() };
        let report = self.opened.group.run(&work, &options)?;
        let own = u64::try_from(report.makespan().as_nanos()).unwrap_or(u64::MAX);
        let slowest = self.opened.exchange(own)?.into_iter().max().unwrap_or(own);
        Ok(Duration::from_nanos(slowest))
    }

    fn fill(&self, elements: u64, value: impl Fn(u32, u64) -> f32) -> Result<(), Failure> {
        for member in self.opened.group.members() {
            let values: Vec<f32> = (0..elements).map(|at| value(member.rank(), at)).collect();
            member.write(self.windows[0], 0, &values).map_err(Failure::internal)?;
        }
        Ok(())
    }

    /// One call on small whole numbers, whose result is known exactly; how many elements are wrong, at all ranks.
    fn check(&mut self, elements: u64) -> Result<u64, Failure> {
        self.fill(elements, value)?;
        self.run(elements, 1)?;
        let ranks = self.opened.group.size();
        let mut wrong = 0;
        for member in self.opened.group.members() {
            let found = self.result(member, elements)?;
            let part = (elements / u64::from(ranks), u64::from(member.rank()));
            let rank = member.rank();
            wrong += (0_u64..)
                .zip(found)
                .filter(|(at, found)| {
                    let expected = expected(self.args.collective, (rank, ranks), part, *at);
                    expected.is_some_and(|expected| expected != *found)
                })
                .count() as u64;
        }
        Ok(self.opened.exchange(wrong)?.into_iter().sum())
    }

    fn result(&self, member: &RankDevice, elements: u64) -> Result<Vec<f32>, Failure> {
        let is_moved = self.args.collective == Collective::ALL_TO_ALL;
        let count = usize::try_from(elements).map_err(Failure::internal)?;
        let window = self.windows[usize::from(is_moved)];
        member.read::<f32>(window, 0, count).map_err(Failure::internal)
    }

    /// MPI's own all-reduce of as many elements.
    fn mpi(&self, elements: u64) -> Result<Option<Duration>, Failure> {
        let Some(mpi) = self.opened.mpi() else { return Ok(None) };
        if self.args.collective != Collective::ALL_REDUCE {
            return Ok(None);
        }
        let count = usize::try_from(elements).map_err(Failure::internal)?;
        let (from, mut to) = (vec![0.0; count], vec![0.0; count]);
        mpi.barrier().map_err(Failure::faulted)?;
        let mut shortest = Duration::MAX;
        for _ in 0..self.args.repeats {
            mpi.all_reduce_sum(&from, &mut to).map_err(Failure::faulted)?;
            let start = Instant::now();
            for _ in 0..self.args.rounds {
                mpi.all_reduce_sum(&from, &mut to).map_err(Failure::faulted)?;
            }
            shortest = shortest.min(start.elapsed());
        }
        let own = shortest / u32::try_from(self.args.rounds).unwrap_or(u32::MAX);
        let own = u64::try_from(own.as_nanos()).unwrap_or(u64::MAX);
        let slowest = self.opened.exchange(own)?.into_iter().max().unwrap_or(own);
        Ok(Some(Duration::from_nanos(slowest)))
    }
}

/// What an element is before the call.
fn value(rank: u32, at: u64) -> f32 {
    f32::from(u16::try_from((at + 3 * u64::from(rank)) % 17).unwrap_or(0))
}

/// What it is afterwards; `None`: that is not defined. `part`: elements of a rank's part, and the own one.
fn expected(
    collective: Collective,
    (rank, ranks): (u32, u32),
    (length, own): (u64, u64),
    at: u64,
) -> Option<f32> {
    let sum = || (0..ranks).map(|rank| value(rank, at)).sum();
    let of_part = u32::try_from(at / length).unwrap_or(u32::MAX);
    match collective {
        Collective::ALL_REDUCE => Some(sum()),
        Collective::REDUCE => (rank == 0).then(sum),
        Collective::REDUCE_SCATTER => (at / length == own).then(sum),
        Collective::BROADCAST => Some(value(0, at)),
        Collective::ALL_GATHER => Some(value(of_part, at)),
        _ => Some(value(of_part, own * length + at % length)),
    }
}
